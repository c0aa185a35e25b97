"""What fairness costs in time: the paper's networks, and a table and figure of the costs."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from fairgrad.datasets import load
from fairgrad_bench import measure_overhead, overhead, write_overhead
from fairgrad_bench.overhead import BERT, RESNET, Bert, _sizes, network, resnet18
from fairgrad_bench.paper import paper_overhead


def test_the_networks_have_as_many_parameters_as_the_papers():
    for row in paper_overhead().to_dict(orient="records"):
        if row["setting"] == BERT:
            continue
        built = resnet18() if row["setting"] == RESNET else network(52, _sizes(row["hidden"]))
        assert sum(part.numel() for part in built.parameters()) == row["parameters"]


def test_the_transformer_is_as_large_as_bert():
    with torch.device("meta"):
        n_parameters = sum(part.numel() for part in Bert().parameters())
    assert n_parameters == 109_483_778  # of BertForSequenceClassification with two labels
    (papers,) = paper_overhead().query("setting == @BERT")["parameters"]
    assert n_parameters == pytest.approx(papers, rel=1e-3)


def few_rows_of_adult():
    part = load("adult").split().train
    return SimpleNamespace(train=tuple(column[:1024] for column in part))


def test_a_table_and_a_figure_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(overhead, "load", lambda _: SimpleNamespace(split=few_rows_of_adult))
    torch.manual_seed(1)
    before = torch.get_rng_state()
    found = measure_overhead(epochs=1, large=False)
    assert torch.equal(torch.get_rng_state(), before)
    assert found["setting"].tolist() == paper_overhead()["setting"].tolist()[:5]
    # One epoch of each: the ratio is that of the two times, up to their rounding.
    ratios = found["fairgrad"] / found["unconstrained"]
    assert found["ratio"].tolist() == pytest.approx(ratios.tolist(), rel=0.05)
    assert found["paper_delta"].tolist() == [0.03, 0.001, 0.024, 0.016, 0.017]
    written = write_overhead(found, tmp_path)
    assert [path.name for path in written] == [
        "overhead_paper.csv",
        "overhead_paper.md",
        "overhead.png",
    ]
    pd.testing.assert_frame_equal(pd.read_csv(written[0]), found)
    assert "| 20 layers | 80642 | 512 |" in written[1].read_text(encoding="utf-8")


def test_epochs_must_be_positive():
    with pytest.raises(ValueError, match="epochs: expected at least 1, got 0"):
        measure_overhead(0)
