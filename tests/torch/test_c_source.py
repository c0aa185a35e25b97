"""The C sources hold to the standard, so that other compilers take them as well."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import fairgrad.compiled

SOURCE = Path(fairgrad.compiled.__file__).with_name("_step.c")
FLAGS = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fPIC", "-O1")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("extensions", [True, False])
def test_it_compiles_without_warnings(compiler, extensions, tmp_path):
    """Without extensions: as a compiler that has none of GNU's, such as Microsoft's, reads it."""
    if shutil.which(compiler) is None or not SOURCE.is_file():
        pytest.skip(f"no {compiler}, or no sources")
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").is_file():
        pytest.skip("no headers of Python")
    plain = [] if extensions else ["-DFAIRGRAD_PLAIN_C"]
    command = [compiler, *FLAGS, *plain, f"-I{include}", "-c", str(SOURCE), "-o"]
    done = subprocess.run(
        [*command, str(tmp_path / "step.o")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
