"""The pages as written: nothing is forgotten, names are spelled as their owners spell them."""

import ast
import re
from pathlib import Path

import gallery_order
import pytest
from repository_pages import with_contents

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("plot_*.py"))
WRITTEN = [
    path
    for pattern in ("*.md", "*/*.md", "reference/*.rst", "gallery/*.py")
    for path in sorted(DOCS.glob(pattern))
    if not path.is_relative_to(DOCS / "auto_gallery") and not path.name.startswith("reproduction")
]
MISSPELLED = {
    r"\bPytorch\b": "PyTorch",
    r"\bScikit-[Ll]earn\b|\bsklearn estimator": "scikit-learn",
    r"\bFair[Ll]earn\b": "fairlearn",
    r"\bAif360\b|\bAIF 360\b": "AIF360",
    r"\bFairgrad\b|\bFair-Grad\b": "FairGrad",
    r"\bLight GBM\b|\bLightGbm\b": "LightGBM",
    r"\bXGboost\b|\bXgboost\b": "XGBoost",
    r"\bHuggingFace\b|\bHuggingface\b": "Hugging Face",
    r"\bFairRet\b|\bFairret\b": "fairret",
    r"\bNumpy\b": "NumPy",
    r"\bTensorboard\b": "TensorBoard",
}


def test_the_gallery_s_order_names_every_script():
    assert sorted(gallery_order.ORDER) == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_and_draws(path):
    text = path.read_text(encoding="utf-8")
    title, underline, *_ = (ast.get_docstring(ast.parse(text), clean=False) or "").splitlines()
    assert underline == "=" * len(title)
    charts = re.findall(r"description=|figures\[|\.plot\(|history_figures", text)
    assert charts, "no picture"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(DOCS)))
def test_names_are_spelled_right(path):
    text = path.read_text(encoding="utf-8")
    for pattern, right in MISSPELLED.items():
        wrong = re.search(pattern, text)
        assert wrong is None, f"{wrong[0]!r}: write {right}"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(DOCS)))
def test_no_figure_is_copied_from_this_machine(path):
    assert not re.search(r"/(?:home|root|work|tmp)/\w+", path.read_text(encoding="utf-8"))


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in WRITTEN:
        text = with_contents(page.read_text("utf-8"))
        for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            base = page.parent.relative_to(DOCS)
            listed |= {str(base / e) if not e.startswith("/") else e[1:] for e in entries}
    pages = {
        str(path.relative_to(DOCS).with_suffix(""))
        for path in WRITTEN
        if path.suffix in {".md", ".rst"} and path.parent.name != "gallery"
    }
    assert pages - listed == {"index"}


def test_pages_linked_from_the_readme_read_well_on_a_code_host():
    """No roles, and no directives but code to run, which is shown as code there."""
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    linked = {DOCS / name for name in re.findall(r"\]\(docs/([\w/]+\.md)\)", readme)}
    assert len(linked) > 8
    raw = re.compile(r"```\{(?!run\})\w+\}|\{(?:doc|ref|py:\w+)\}`|^:::", re.MULTILINE)
    assert not {path.name: raw.findall(path.read_text("utf-8")) for path in linked
                if raw.search(path.read_text("utf-8"))}  # fmt: skip
