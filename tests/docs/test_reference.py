"""The reference is complete: every public name is in it, explained, with an example that runs.

The examples themselves are run as doctests with all others (``--doctest-modules``).
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path

import pytest

import fairgrad

PAGES = Path(__file__).parents[2] / "docs" / "reference"
TEXT = {page.stem: page.read_text(encoding="utf-8") for page in PAGES.iterdir()}
MODULES = sorted(module.name for module in pkgutil.iter_modules(fairgrad.__path__, "fairgrad."))


def public_names(module):
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return [
        name for name in own if inspect.isclass(vars(module)[name]) or callable(vars(module)[name])
    ]


def is_described_by_code(value):
    return inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "__wrapped__")


OBJECTS = [
    pytest.param(getattr(importlib.import_module(module), name), id=f"{module}.{name}")
    for module in MODULES
    for name in public_names(importlib.import_module(module))
    if is_described_by_code(getattr(importlib.import_module(module), name))
]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_a_page(name):
    page = TEXT[name.removeprefix("fairgrad.")]
    assert f".. module-reference:: {name}\n" in page
    assert page.startswith(f"{name}\n")


def test_every_page_is_in_the_table_of_contents():
    listed = set(re.findall(r"^([a-z]+)$", TEXT["index"], re.MULTILINE))
    assert set(TEXT) - {"index"} == listed


@pytest.mark.parametrize("name", MODULES)
def test_constants_are_described(name):
    module = importlib.import_module(name)
    for constant in getattr(module, "__all__", []):
        if not is_described_by_code(getattr(module, constant)):
            entry = rf"\.\. py:data:: {name}\.{constant}\n(   :value:.*\n)?\n   \w"
            assert re.search(entry, TEXT[name.removeprefix("fairgrad.")]), constant


@pytest.mark.parametrize("name", fairgrad.__all__)
def test_the_package_s_own_names_are_listed_with_their_homes(name):
    home = getattr(fairgrad, name).__module__.split(".")[1]
    role = "class" if inspect.isclass(getattr(fairgrad, name)) else "func"
    assert f"| `fairgrad.{name}` | {{py:{role}}}`fairgrad.{home}.{name}` |" in TEXT["index"]


@pytest.mark.parametrize("value", OBJECTS)
def test_it_is_explained_with_an_example(value):
    words = inspect.getdoc(value)
    assert words, "no docstring"
    assert "\n>>> " in textwrap.dedent(words) or "    >>> " in words, "no example"


@pytest.mark.parametrize("value", OBJECTS)
def test_what_it_raises_is_said(value):
    for part in parts_of(value):
        if raises_errors(part):
            assert "Raises:" in (inspect.getdoc(part) or "") + docs_of_owner(part, value), part


def parts_of(value):
    """A function; or a class's constructor and public methods of its own."""
    if not inspect.isclass(value):
        return [inspect.unwrap(value)]
    names = ("__init__", "__post_init__", *(n for n in vars(value) if not n.startswith("_")))
    found = [vars(value).get(name) for name in names]
    found = [getattr(part, "__func__", part) for part in found]
    return [part for part in found if inspect.isfunction(part)]


def docs_of_owner(part, value):
    """What the class says counts for its constructor."""
    return (inspect.getdoc(value) or "") if part.__name__.startswith("__") else ""


def raises_errors(function):
    """Whether the function itself raises something new, other than by its helpers."""
    if function.__code__.co_filename.startswith("<"):
        return False  # a dataclass's own constructor, which has no source
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree))
