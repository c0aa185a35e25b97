"""The reference of a module: the names that users need, listed on its page.

``.. module-reference:: fairgrad.torch`` lists the names; all other names of the module are
private. Constants are described by hand on the page, below the directive.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def kind_of(value: Any) -> str:
    """The word that autodoc uses for it."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function"


class ModuleReference(SphinxDirective):
    """Some classes and functions of a module."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The nodes that autodoc makes of them."""
        home = self.arguments[0]
        module = importlib.import_module(home)
        lines = [f".. py:module:: {home}", ""]
        for name in " ".join(self.content).split():
            lines += [f".. auto{kind_of(getattr(module, name))}:: {home}.{name}", ""]
        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(StringList(lines, source=f"<{home}>"), 0, holder)
        return holder.children


def skip_generated(  # the signature is Sphinx's
    _app: Any, _what: str, name: str, value: Any, _skip: bool, _options: Any
) -> bool | None:
    """Leaves out methods that scikit-learn adds to estimators, and the base of a fair loss."""
    if type(value).__name__ == "_tuplegetter":
        return True  # a field of a named tuple, which its class describes
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing|base", name) else None


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("module-reference", ModuleReference)
    app.connect("autodoc-skip-member", skip_generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
