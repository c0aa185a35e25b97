"""The American Community Survey's income table, through the folktables package."""

from __future__ import annotations

import contextlib
import importlib
import io
import tempfile
from typing import TYPE_CHECKING

from fairgrad.datasets.errors import FetchError

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd

COLUMNS = (
    "AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P", "PINCP",
)  # fmt: skip
#: Rows that the ACSIncome filter leaves of California's survey of 2018.
CALIFORNIA_2018_ROWS = 195_665


def california_income() -> bytes:
    """The ACSIncome table of California, 2018, with the income itself, as CSV.

    Raises:
        FetchError: folktables is not installed, cannot download, or delivers other data.
    """
    folktables = _folktables()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        source = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=folder)
        try:
            survey = source.get_data(states=["CA"], download=True)
        except (OSError, ValueError) as error:
            raise FetchError(f"folktables could not download the survey ({error})") from error
    table = income_table(survey)
    rows = table.count(b"\n") - 1
    if rows != CALIFORNIA_2018_ROWS:
        raise FetchError(f"the survey gave {rows} rows instead of {CALIFORNIA_2018_ROWS}")
    return table


def income_table(survey: pd.DataFrame) -> bytes:
    """Rows and columns of folktables' ACSIncome, with the income itself instead of a label."""
    folktables = _folktables()
    # folktables itself turns what is unknown into 0.
    table = folktables.acs.adult_filter(survey)[list(COLUMNS)].fillna(0).astype("int64")
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _folktables() -> ModuleType:
    """The package, imported when it is needed: it is optional."""
    try:
        return importlib.import_module("folktables")
    except ImportError as error:
        raise FetchError("folktables is not installed: pip install folktables") from error
