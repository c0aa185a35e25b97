"""The head of a model card, as the Hugging Face Hub's own library reads it."""

import json

import numpy as np
import pytest
from huggingface_hub import ModelCard

from fairgrad.audit import Audit
from fairgrad.cli.fit import hub_header
from fairgrad.text import escape


def test_the_hub_reads_the_card_of_a_model(fitted):
    folder, _ = fitted
    card = ModelCard((folder / "MODEL_CARD.md").read_text(encoding="utf-8"))
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert card.data.library_name == "fairgrad"
    assert card.data.pipeline_tag == "tabular-classification"
    assert "fairness" in card.data.tags
    assert card.text.lstrip().startswith("# A classifier of income")
    assert card.text.count(escape(audit["conclusion"])) == 1
    results = {one.metric_name: one for one in card.data.eval_results}
    unfair = {
        f"mean |F|, {one['measure']}, {one['attribute']}": one["unfairness"]
        for one in audit["verdicts"]
    }
    assert set(unfair) == set(results) - {"accuracy"}
    for name, value in unfair.items():
        assert results[name].metric_value == pytest.approx(value, rel=1e-5)
    overall = next(
        row["value"]
        for row in audit["rates"]
        if (row["group"], row["rate"]) == ("overall", "accuracy")
    )
    assert results["accuracy"].metric_value == pytest.approx(overall, rel=1e-5)
    assert results["accuracy"].dataset_name == "adult.csv"


@pytest.mark.parametrize("name", ['a "b": c', "Größe # 1", "- x\n---\ny", "{no: yes}", "null", ""])
def test_any_name_is_only_a_name(name):
    y = np.arange(400) % 2
    audit = Audit(y, y, {name: np.arange(400) // 200}, measures="accuracy_parity")
    card = ModelCard(f"{hub_header(audit, name or 'x', name)}\n\nbody")
    assert card.text.strip() == "body"
    assert card.data.eval_results[0].dataset_name == name
    assert card.data.eval_results[1].metric_name == f"mean |F|, accuracy_parity, {name}"
