"""The reference of a module: ``.. module-reference:: fairgrad.torch`` shows all its public names.

Classes and functions are found by listing the module, so that none is forgotten; constants are
described by hand on the page, below the directive.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from types import ModuleType


def public_names(module: ModuleType) -> list[str]:
    """``__all__``, or what the module itself defines, in the order of its source."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def kind_of(value: Any) -> str:
    """What autodoc calls it; "data" for constants."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    is_function = inspect.isroutine(value) or hasattr(value, "__wrapped__")  # or a cached one
    return "function" if is_function else "data"


def is_elsewhere(module: ModuleType, value: Any) -> bool:
    """Whether another public module is its home: the package's own names are such."""
    return module.__name__ == "fairgrad" and value.__module__ != "fairgrad"


def directives_of(module: ModuleType) -> list[str]:
    """The lines that make autodoc describe the module's classes and functions."""
    lines = [f".. py:module:: {module.__name__}", ""]
    for name in public_names(module):
        value = getattr(module, name)
        kind = kind_of(value)
        if kind == "data" or is_elsewhere(module, value):
            continue
        lines += [f".. auto{kind}:: {module.__name__}.{name}", ""]
    return lines


class ModuleReference(SphinxDirective):
    """All classes and functions of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """What autodoc makes of them."""
        module = importlib.import_module(self.arguments[0])
        lines = StringList(directives_of(module), source=f"<{module.__name__}>")
        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(lines, 0, holder)
        return holder.children


def skip_generated(  # the signature is Sphinx's
    _app: Any, _what: str, name: str, value: Any, _skip: bool, _options: Any
) -> bool | None:
    """Leaves out what scikit-learn adds to estimators, and what loss a fair one is made of."""
    if type(value).__name__ == "_tuplegetter":
        return True  # a field of a named tuple, which its class describes
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing|base", name) else None


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("module-reference", ModuleReference)
    app.connect("autodoc-skip-member", skip_generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
