"""The reference: the names that users need, each explained, with an example that runs.

A page of docs/reference lists the names of its module; what no page lists is private. The examples
themselves are run as doctests with all others (``--doctest-modules``).
"""

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import fairgrad

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
TEXT = {page.stem: page.read_text(encoding="utf-8") for page in PAGES.iterdir()}
LISTING = re.compile(r"^\.\. module-reference:: (fairgrad\.(\w+))\n\n((?:   \w+\n)+)", re.MULTILINE)
LISTED = {
    (module, name)
    for text in TEXT.values()
    for module, _, names in LISTING.findall(text)
    for name in names.split()
}
OBJECTS = [
    pytest.param(getattr(importlib.import_module(module), name), id=f"{module}.{name}")
    for module, name in sorted(LISTED)
]
READ = [
    ROOT / "README.md",
    *(path for kind in ("*.md", "*/*.md") for path in sorted((ROOT / "docs").glob(kind))),
    *sorted((ROOT / "docs" / "gallery").glob("plot_*.py")),
]


@pytest.mark.parametrize("stem", sorted(set(TEXT) - {"index"}))
def test_a_page_is_named_after_its_module_and_lists_its_names(stem):
    ((module, name, _),) = LISTING.findall(TEXT[stem])
    assert name == stem
    assert TEXT[stem].startswith(f"{module}\n")


def test_every_page_is_in_the_table_of_contents():
    listed = set(re.findall(r"^([a-z]+)$", TEXT["index"], re.MULTILINE))
    assert set(TEXT) - {"index"} == listed


def test_the_reference_lists_what_users_need_and_no_more():
    assert 50 <= len(LISTED) <= 100


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_that_pages_import_are_listed(path):
    text = path.read_text(encoding="utf-8")
    for module, names in re.findall(r"^from (fairgrad[.\w]*) import ([\w, ]+)", text, re.MULTILINE):
        for name in re.split(r"[,\s]+", names.strip()):
            if module == "fairgrad":
                assert name in fairgrad.__all__ or f"fairgrad.{name}" in dict(LISTED)
            else:
                assert (module, name) in LISTED


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_the_reference_name_what_is_listed(path):
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\{py:(?:class|func)\}`(?:[^`<]*<|~)?(fairgrad\.\w+)\.(\w+)>?`", text)
    assert not set(links) - LISTED


def test_constants_have_their_values():
    described = re.compile(r"\.\. py:data:: (fairgrad\.\w+)\.(\w+)\n(?:   :value: (.*)\n)?\n   \w")
    found = [entry for text in TEXT.values() for entry in described.findall(text)]
    assert len(found) == sum(text.count(".. py:data::") for text in TEXT.values())
    for module, name, value in found:
        actual = getattr(importlib.import_module(module), name)
        assert not value or ast.literal_eval(value) == actual, name


@pytest.mark.parametrize("name", fairgrad.__all__)
def test_the_package_s_own_names_are_listed_with_their_homes(name):
    home = getattr(fairgrad, name).__module__.split(".")[1]
    role = "class" if inspect.isclass(getattr(fairgrad, name)) else "func"
    assert (f"fairgrad.{home}", name) in LISTED
    assert f"| `fairgrad.{name}` | {{py:{role}}}`fairgrad.{home}.{name}` |" in TEXT["index"]


@pytest.mark.parametrize("value", OBJECTS)
def test_it_is_explained_with_an_example(value):
    words = inspect.getdoc(value)
    assert words, "no docstring"
    assert re.search(r"^ *>>> |for an example", words, re.MULTILINE), "no example"


@pytest.mark.parametrize("value", OBJECTS)
def test_what_it_raises_is_said(value):
    for part in parts_of(value):
        if raises_errors(part):
            assert "Raises:" in (inspect.getdoc(part) or "") + docs_of_owner(part, value), part


def parts_of(value):
    """A function; or a class's constructor and the public methods that it defines."""
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
