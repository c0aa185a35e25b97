"""What holds of every method; found by the same listing as the program's."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fairgrad_bench.methods import methods
from fairgrad_bench.methods.interface import MODELS

MEASURES = ("accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity")
SHAPES = ((2, 2), (2, 3), (3, 2))

pytest.importorskip("fairlearn")
pytest.importorskip("cooper")
pytest.importorskip("lightgbm")

each_method = pytest.mark.parametrize("name", list(methods()))


def _task(make_task, method, measure, **settings):
    return make_task(measure if method.uses_measure else None, rows=200, epochs=6, **settings)


def _one(method, model):
    """One combination, with few rounds where rounds are slow."""
    settings = method.settings(model, "quick")[0]
    return ({name: 2 if name == "rounds" else value for name, value in settings.items()},)


def _check(task, candidates):
    assert candidates
    assert {candidate.seed for candidate in candidates} == set(task.splits)
    for candidate in candidates:
        _, validation, test = task.splits[candidate.seed]
        for predicted, part in ((candidate.validation, validation), (candidate.test, test)):
            assert predicted.shape == part.y.shape
            assert predicted.dtype.kind == "i"
            assert np.isin(predicted, part.y).all()
        rate = candidate.test_positive_rate
        if rate is not None:
            assert rate.shape == test.y.shape
            assert ((rate >= 0) & (rate <= 1)).all()


@each_method
@pytest.mark.parametrize("model", MODELS)
def test_trains_or_gives_a_reason(name, model, make_task):
    method = methods()[name]
    measures = MEASURES if method.uses_measure else (None,)
    # Each shape and each measure, but not each with each.
    for (n_labels, n_groups), measure in zip(itertools.cycle(SHAPES), measures, strict=False):
        shape = {"n_labels": n_labels, "n_groups": n_groups, "model": model}
        task = _task(make_task, method, measure, **shape)
        task = replace(task, combinations=_one(method, model))
        reason = method.unsupported(task)
        if reason is None:
            _check(task, method.train(task))
        else:
            assert reason[0].islower()
            assert not reason.endswith(".")


@each_method
@pytest.mark.parametrize("model", MODELS)
def test_unknown_groups_are_welcome_or_a_reason(name, model, make_task):
    method = methods()[name]
    task = _task(make_task, method, "equality_of_opportunity", model=model, some_unknown=True)
    task = replace(task, combinations=_one(method, model))
    if method.unsupported(task) is None:
        _check(task, method.train(task))
    welcome = {"unconstrained", "weighted_erm", "fairgrad"}
    if name in (welcome if model == "lightgbm" else {*welcome, "fairret"}):
        assert method.unsupported(task) is None


@each_method
def test_supports_two_labels_and_groups(name, make_task):
    method = methods()[name]
    reasons = [
        method.unsupported(_task(make_task, method, "equality_of_opportunity", model=model))
        for model in ("linear", "nonlinear")
    ]
    assert None in reasons


@each_method
def test_who_trains_boosted_trees(name, make_task):
    method = methods()[name]
    task = _task(make_task, method, "equalized_odds", model="lightgbm")
    reason = method.unsupported(task)
    everything = {"constant", "unconstrained", "weighted_erm", "fairgrad", "reduction", "threshold"}
    estimators = {"fairgrad_stable", "fairgrad_aware", "fairgrad_frontier"}
    if name in {*everything, *estimators, "decision", "decision_aware", "plug_in"}:
        assert reason is None
    else:
        assert "not lightgbm" in reason or "linear models only" in reason


@each_method
def test_same_task_gives_same_models(name, make_task):
    method = methods()[name]
    task = _task(make_task, method, "equalized_odds", seeds=(3, 4))
    if method.unsupported(task):
        task = replace(task, model="nonlinear")
    task = replace(task, combinations=_one(method, task.model))
    first, second = method.train(task), method.train(task)
    _check(task, first)
    for one, other in zip(first, second, strict=True):
        assert (one.seed, one.settings, one.epoch) == (other.seed, other.settings, other.epoch)
        assert np.array_equal(one.test, other.test)
        assert np.array_equal(one.validation, other.validation)


@each_method
def test_grids_are_combinations_and_quick_is_smaller(name):
    method = methods()[name]
    for model in MODELS:
        paper, quick = (method.settings(model, grid) for grid in ("paper", "quick"))
        for grid in (paper, quick):
            assert len({tuple(sorted(one.items())) for one in grid}) == len(grid) >= 1
        assert len(quick) <= min(4, len(paper))
        assert {*quick[0]} == {*paper[0]}


@each_method
def test_images_are_no_table(name, make_task):
    method = methods()[name]
    task = _task(make_task, method, "equalized_odds", model="nonlinear")
    split = task.splits[1]
    images = replace(split.train, X=split.train.X.reshape(-1, 2, 2))
    task = replace(task, splits={1: split._replace(train=images)})
    assert name == "constant" or "not images" in method.unsupported(task)


def test_names_are_those_of_the_files():
    for name, method in methods().items():
        assert method.name == name
        assert method.description.endswith(".")
        assert type(method) is type(methods()["constant"])
