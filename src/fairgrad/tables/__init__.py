"""Users' tables: reading a file, which column plays which part, and features as a matrix.

The program and ``fairgrad.datasets`` both read tables through this room.
"""

from fairgrad.tables.encoding import (
    Oddities,
    TrainedFeature,
    check_columns,
    describe_features,
    encode_rows,
    feature_encoder,
    fitted_encoder,
    read_features,
)
from fairgrad.tables.reading import PARQUET_ENDINGS, column_names, pieces, read_table
from fairgrad.tables.roles import ColumnRoles, LabelledTable

__all__ = [
    "PARQUET_ENDINGS",
    "ColumnRoles",
    "LabelledTable",
    "Oddities",
    "TrainedFeature",
    "check_columns",
    "column_names",
    "describe_features",
    "encode_rows",
    "feature_encoder",
    "fitted_encoder",
    "pieces",
    "read_features",
    "read_table",
]
