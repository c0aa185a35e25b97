"""Objects in a real notebook: the tutorial runs, and shows what its pages say."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[2] / "docs" / "start" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell of code shows as HTML."""
    notebook = nbformat.read(TUTORIAL, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(
        notebook, startup_timeout=900, resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert (folder / "report.html").is_file()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
        for cell in cells
    ]


def test_audits_models_frontiers_and_reports_show_themselves(outputs):
    _, plain, model, audit, frontier, report = outputs
    assert "✗ Judged unfair" in plain
    assert "linear-gradient" in plain  # the rates have bars
    assert "How fair the fitted model is" in model
    assert "sex=Female" in model
    assert "more women and" in audit
    assert "Accuracy falls by" in audit
    assert "What fairness costs" in frontier
    assert frontier.count("<svg") == report.count("<svg") == 1
    assert "without the fairness constraint" in report


def test_the_stored_notebook_has_no_outputs():
    cells = nbformat.read(TUTORIAL, as_version=4).cells
    assert not any(cell.get("outputs") for cell in cells)
