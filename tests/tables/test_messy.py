"""Messy files of known content are read correctly."""

import pytest
from reliability.messy import messy_file, misread

pytest.importorskip("openpyxl")


@pytest.mark.parametrize("seed", range(100))
def test_a_messy_file_is_read_as_it_is_meant(tmp_path, seed):
    file = messy_file(seed, tmp_path)
    assert misread(file) == "", file.how
