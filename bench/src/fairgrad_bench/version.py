"""Which version of the code a result belongs to: a digest of the modules that it depends on.

Only what can change a result counts: comments, docstrings, reports and commands do not, so that a
long run survives a change of words. The modules are found by following the imports of the method,
of the data set and of the code that runs a unit.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = "fairgrad"


def digest_of(modules: Iterable[str]) -> str:
    """Twelve hexadecimal digits that change with the code reached from these modules.

    Example:
        >>> digest_of(["fairgrad.groups"]) == digest_of(["fairgrad.groups"])
        True
        >>> digest_of(["fairgrad.groups"]) == digest_of(["fairgrad.measures"])
        False
    """
    sha = hashlib.sha256()
    for module in sorted(reached_from(modules)):
        sha.update(f"{module}\n{_code(module)}\n".encode())
    return sha.hexdigest()[:12]


def reached_from(modules: Iterable[str]) -> set[str]:
    """These modules and those of the package that they import, directly or not.

    Example:
        >>> sorted(reached_from(["fairgrad.groups"]))
        ['fairgrad.columns', 'fairgrad.groups']
    """
    waiting, found = list(modules), set()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(_imported_by(module))
    return found


@cache
def _imported_by(module: str) -> tuple[str, ...]:
    tree = _without_typing(ast.parse(_source(module)))
    return tuple(name for node in ast.walk(tree) for name in _targets(node))


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _is_ours(alias.name))
    elif isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
        yield from (_home(str(node.module), alias.name) for alias in node.names)


def _home(module: str, name: str) -> str:
    """The module that a name comes from, where a package only passes it on."""
    if _file(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and name in {a.asname or a.name for a in node.names}:
            home = str(node.module)
            return home if _is_ours(home) else module
    return module


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _without_typing(tree: ast.Module) -> ast.Module:
    """The tree without what only type checkers read."""

    class Remover(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                return None
            return self.generic_visit(node)

    cleaned: ast.Module = Remover().visit(tree)
    return cleaned


@cache
def _code(module: str) -> str:
    tree = ast.parse(_source(module))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def _source(module: str) -> str:
    file = _file(module)
    if file is None:
        raise ValueError(f"module: there is no source of {module!r} to tell its version by.")
    return file.read_text(encoding="utf-8")


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name in a module that is no package
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
