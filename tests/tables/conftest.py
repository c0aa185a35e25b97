"""Tables of users, as the program reads them."""

import pandas as pd
import pytest

from fairgrad.tables.column import ReadingReport
from fairgrad.tables.reading import read_table, typed_table
from fairgrad.tables.roles import ColumnRoles


@pytest.fixture(scope="session")
def labelled():
    """A function from a file or a frame, and the roles of its columns, to labelled rows."""

    def apply(table, target="hired", sensitive="sex", **roles):
        frame = (
            typed_table(table.items(), ReadingReport())
            if isinstance(table, pd.DataFrame)
            else read_table(table)
        )
        sensitive = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        return ColumnRoles(target, sensitive, **roles).apply(frame)

    return apply
