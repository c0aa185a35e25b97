"""Model folders that somebody forged, with right checksums: used, or refused in one sentence.

Each trial changes one value in a model's `fairgrad.json`, or one array or one value of its
`model.skops`, computes the checksums again, and predicts a table with it.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import random
import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.cli import main
from fairgrad.cli.folder import MARK, MODEL
from fairgrad.files import CHECKSUM, read_sealed
from fairgrad.files import SEALED as SEALED_AS
from fairgrad.persistence import SEAL, SEALED
from reliability.faults import FAILED, NAMED, Trials, people, remove

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ODD = (None, True, -1, 0, 10**400, 1.5, float("nan"), float("inf"), "", "x", "\0", [], {}, [[]],
       ["x", "x"], [None], {"x": "x"}, "number", "f", [0, 1], "1" * 5000)  # fmt: skip
"""What takes the place of a value."""


def forged(folder: Path, n: int) -> dict[str, Trials]:
    """Predictions with n forged models: a result, or exit code 2 and one sentence."""
    table, model, results = people(folder), folder / "model", Trials()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(["fit", str(table), *NAMED, "--out", str(model)])
    chance, wrong, out = random.Random(5), folder / "forged", folder / "out.csv"  # noqa: S311 - no secret
    for _ in range(n):
        shutil.copytree(model, wrong)
        change = chance.choice((_forge_mark, _forge_mark, _forge_schema, _forge_array))
        what = change(wrong, chance)
        code, output = _run("predict", wrong, table, "--out", out)
        sentences = output.strip().splitlines()
        is_refused = (
            code == FAILED
            and sum(line.startswith("Error: ") for line in sentences) == 1
            and "Unexpected error" not in output
            and not out.exists()
        )
        is_right = code == 0 and bool(pd.read_csv(out)["probability"].between(0, 1).all())
        results.check(
            f"{what}: {code} {output[-330:]}",
            lambda done=is_right, no=is_refused: True if done else None if no else False,
        )
        remove(out)
        shutil.rmtree(wrong)
    return {"predict, a forged model": results}


def _run(*arguments: object) -> tuple[int, str]:
    output = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(output):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as left:
            return left.code if isinstance(left.code, int) else 0, output.getvalue()
    return 0, output.getvalue()


def _forge_mark(folder: Path, chance: random.Random) -> str:
    """Changes a value of the file that marks the folder."""
    path = folder / MARK
    known = read_sealed(path.read_text(encoding="utf-8"))
    what = change_value(known, chance)
    text = json.dumps({SEALED_AS: "sha256", **known, CHECKSUM: ""}, ensure_ascii=False, indent=2)
    head, quote, tail = text.rpartition('"')  # as `sealed_json`, but NaN is written, too
    path.write_text(f"{head}{hashlib.sha256(text.encode()).hexdigest()}{quote}{tail}", "utf-8")
    return f"{MARK}: {what}"


def _forge_schema(folder: Path, chance: random.Random) -> str:
    """Changes a value of the model's tree of types and values."""

    def change(entries: dict[str, bytes]) -> str:
        schema = json.loads(entries["schema.json"])
        what = change_value(schema, chance)
        entries["schema.json"] = json.dumps(schema).encode()
        return what

    return f"schema.json: {rewrite(folder / MODEL, change)}"


def _forge_array(folder: Path, chance: random.Random) -> str:
    """Fills an array of the model with other numbers, or changes its type or shape."""

    def change(entries: dict[str, bytes]) -> str:
        name = chance.choice([name for name in entries if name.endswith(".npy")])
        array = np.load(io.BytesIO(entries[name]))
        changed = chance.choice(
            (
                np.full_like(array, np.nan if array.dtype.kind == "f" else 0),
                np.full_like(array, np.inf if array.dtype.kind == "f" else -1),
                array[..., :0],
                array.ravel()[:-1],
                array.astype(str),
                array[None],
            )
        )
        stream = io.BytesIO()
        np.save(stream, changed)
        entries[name] = stream.getvalue()
        return (
            f"{array.dtype} {array.shape} -> {changed.dtype} {changed.shape} {changed.ravel()[:1]}"
        )

    return f"array: {rewrite(folder / MODEL, change)}"


def rewrite(path: Path, change: Callable[[dict[str, bytes]], str]) -> str:
    """Changes some parts of a model file, and seals it again."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    what = change(entries)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
        file.comment = SEAL + bytes(SEALED)
    content = archive.getvalue()[:-SEALED]
    path.write_bytes(content + hashlib.sha256(content).hexdigest().encode())
    return what


def change_value(values: Any, chance: random.Random) -> str:
    """Replaces, removes or adds one value, anywhere in a tree; says where and what."""
    places: list[tuple[Any, Any, str]] = []

    def walk(value: Any, place: str) -> None:
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key, f"{place}.{key}"))
            if isinstance(value[key], dict | list):
                walk(value[key], f"{place}.{key}")

    walk(values, "")
    owner, key, place = chance.choice(places)
    if chance.random() < 0.2:
        del owner[key]
        return f"{place} removed"
    owner[key] = copy.deepcopy(chance.choice(ODD))
    return f"{place} = {str(owner[key])[:40]!r}"


KINDS: Sequence[tuple[Callable[[Path, int], dict[str, Trials]], float]] = ((forged, 40.0),)
"""What is tried, and how often compared with what is killed."""
