"""Fair decisions, blind and aware, and the estimator, aware and at several epsilons."""

import pytest

from fairgrad_bench.methods import methods


@pytest.mark.parametrize(
    "name", ["decision", "decision_aware", "fairgrad_aware", "fairgrad_frontier"]
)
@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_decisions_are_fairer_than_the_plain_model(name, measure, make_task, judge, plain):
    method = methods()[name]
    task = make_task(measure, seeds=(1, 2), rows=2000)
    exact = [c for c in method.train(task) if c.settings.get("epsilon", 0) == 0]
    accuracy, unfairness = judge(task, exact, measure)
    assert unfairness < plain[measure][1] / 2
    assert accuracy > 0.6
