"""Where rows are counted, and the compiled step against NumPy and tensor operations."""

import itertools
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fairgrad.torch
from fairgrad import On
from fairgrad.groups import Groups
from fairgrad.measures import MEASURES
from fairgrad.torch import CrossEntropyLoss, FairLoss, is_compiled
from fairgrad.torch.cells import NOWHERE, CellLookup

LABELS = {"two": [0, 1], "three": [0, 1, 2], "gap": [0, 2], "signed": [-1, 1], "many": range(20)}
IDS = {"from 0": [0, 1, 2], "others": [3, 7], "unknown": [-1, 0, 1]}


def lookup_of(labels, ids, *, by_label=True, **settings):
    y, s = np.array(list(itertools.product(labels, ids))).T
    return CellLookup(Groups.from_data(y, s), by_label=by_label, **settings), np.sort(ids)


@pytest.mark.parametrize("by_label", [True, False])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_every_label_and_group_has_its_cell(labels, ids, by_label):
    lookup, order = lookup_of(labels, ids, by_label=by_label, ignore_index=-100)
    known = order[order >= 0]  # unknown values are the last group
    group_of = {s: i for i, s in enumerate([*known, *order[order < 0]])}
    for (row, y), s in itertools.product(enumerate(labels), ids):
        cell = row * len(ids) * by_label + group_of[s]
        assert int(lookup(torch.tensor([y]), torch.tensor([s]))) == cell < lookup.n_cells


@pytest.mark.parametrize("ignore_index", [-100, -1, 2, 3, 255])
def test_targets_to_be_ignored_have_cells_of_their_own(ignore_index):
    lookup, ids = lookup_of([0, 1], range(32), ignore_index=ignore_index)
    for s in ids.tolist():
        cell = int(lookup(torch.tensor([ignore_index]), torch.tensor([s])))
        assert lookup.n_cells <= cell < lookup.n_slots


@pytest.mark.parametrize("stray", [-1, 3, 10**9, -(10**9), 2**36, 2**62, -(2**62)])
def test_values_never_seen_lead_beyond_all_cells(stray):
    lookup, _ = lookup_of([0, 1], [0, 1, 2], ignore_index=-100)
    stray = torch.tensor([stray])
    assert int(lookup(torch.tensor([1]), stray)) >= NOWHERE
    assert int(lookup(stray, torch.tensor([1]))) >= NOWHERE
    assert NOWHERE + lookup.n_slots < 2**31


def test_rows_to_be_ignored_are_not_part_of_the_training_set():
    y = torch.tensor([0, 1, 0, 1, -100, -100])
    s = torch.tensor([0, 0, 1, 1, 0, 2])
    criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.1)
    assert criterion.cell_names == ("y=0, s=0", "y=0, s=1", "y=1, s=0", "y=1, s=1")
    assert len(criterion.constraint_names) == len(criterion.cell_weights) == 4
    assert criterion.groups.mass.sum() == 4


def test_it_is_compiled_where_a_compiler_is():
    if shutil.which("cc") or shutil.which("gcc"):
        assert is_compiled


PRINT_STATE = "import fairgrad.torch as t; print(t.__file__, t.is_compiled)"


@pytest.mark.skipif(not is_compiled, reason="there is no compiled module")
@pytest.mark.parametrize("changed", ["", "_step.c", "_linear.h"])
def test_a_module_older_than_the_source_beside_it_is_not_used(changed, tmp_path):
    package = Path(fairgrad.torch.__file__).parents[1]
    copy = tmp_path / "fairgrad"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "*.xz", "*.js"))
    if changed:
        with (copy / "compiled" / changed).open("a") as source:
            source.write("/* pulled */\n")
    done = subprocess.run(
        [sys.executable, "-c", PRINT_STATE], capture_output=True, text=True, check=True,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == [str(copy / "torch" / "__init__.py"), str(not changed)]
    assert ("pip install" in done.stderr) == bool(changed)
    if changed:
        assert "RuntimeWarning: The compiled step" in done.stderr


needs_compiler = pytest.mark.skipif(not is_compiled, reason="there is no compiler")
MEASURE = st.sampled_from([*MEASURES, "apart"])


def pair(measure, y, s, **settings):
    """The same loss with the compiled step, and with tensor operations."""
    if measure == "apart":
        names = ["s0", "s1"] if s.ndim == 2 else ["s"]
        measure = [On(name, "equalized_odds", 0.01) for name in names]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Constraints left out")
        criteria = [CrossEntropyLoss(y, s, measure, y_desirable=[1], **settings) for _ in range(2)]
    return ways(criteria)


def ways(criteria):
    """Two losses, each of which takes another way through the step."""
    criteria[1].state.is_compiled = False
    assert criteria[0].state.is_compiled
    return criteria


def same(criteria):
    first = criteria[0]
    for other in criteria[1:]:
        for name in ("levels", "multipliers", "cell_weights"):
            ours, theirs = getattr(first, name), getattr(other, name)
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
        for ours, theirs in zip(first.state.state, other.state.state, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@needs_compiler
@given(
    seed=st.integers(0, 2**32 - 1),
    measure=MEASURE,
    epsilon=st.sampled_from([0.0, 0.03]),
    proportional_rate=st.sampled_from([0.0, 1.5]),
    error_memory=st.sampled_from([0.0, 0.8]),
    negative_weights=st.booleans(),
    reduction=st.sampled_from(["mean", "sum", "none"]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16]),
    n_columns=st.integers(1, 3),
    first=st.sampled_from([-1, 0, 5]),
)
def test_all_ways_through_the_step_are_the_same(seed, measure, n_columns, dtype, first, **settings):
    rng = np.random.default_rng(seed)
    of_two = {"demographic_parity", "equalized_odds_all", "four_fifths_rule"}
    n_labels = 2 if measure in of_two else 3  # of more they are of what is predicted: not compiled
    n_groups = int(rng.integers(2, 40))
    n = n_labels * n_groups + 50
    y = torch.from_numpy(np.arange(n) % n_labels)
    s = rng.integers(first, max(first, 0) + n_groups, (n, n_columns))
    known = max(first, 0) + np.arange(n_labels * n_groups) // n_labels
    s[: n_labels * n_groups] = known[:, None]
    s = torch.from_numpy(s if n_columns > 1 else s[:, 0])
    criteria = pair(measure, y, s, fairness_rate=0.3, **settings)
    for _ in range(6):
        rows = torch.from_numpy(rng.integers(0, n, int(rng.integers(1, 60))))
        target = y[rows].clone()
        target[torch.from_numpy(rng.random(len(rows)) < 0.1)] = -100
        scores = torch.from_numpy(rng.normal(size=(len(rows), n_labels))).to(dtype)
        scores[torch.from_numpy(rng.random(scores.shape) < 0.1)] = 0.0  # ties
        weight = torch.from_numpy(rng.random(len(rows))) if rng.random() < 0.5 else None
        if target.eq(-100).all():
            continue
        losses = []
        for criterion in criteria:
            leaf = scores.clone().requires_grad_()
            loss = criterion(leaf, target, s[rows], sample_weight=weight)
            loss.sum().backward()
            losses.append((loss.detach(), leaf.grad, criterion(leaf, target, s[rows], mode="eval")))
        for ours, *others in zip(*losses, strict=True):
            exact = {"rtol": 1e-4, "atol": 1e-5} if dtype != torch.float16 else {"rtol": 1e-2}
            for theirs in others:
                torch.testing.assert_close(ours, theirs, **{"atol": 1e-3, **exact})
        same(criteria)


@needs_compiler
@given(seed=st.integers(0, 999))
def test_all_refuse_the_same_rows_and_change_nothing(seed):
    rng = np.random.default_rng(seed)
    y, s = torch.arange(12) % 2, torch.arange(12) // 2 % 3
    criteria = pair("equalized_odds", y, s, fairness_rate=0.3)
    for criterion in criteria:
        criterion(torch.randn(12, 2, requires_grad=True), y, s)
    bad_y, bad_s = y.clone(), s.clone()
    stray = int(rng.choice([-1, 3, 10**12, -(10**12)]))
    (bad_s if rng.random() < 0.7 else bad_y)[rng.integers(12)] = stray
    messages = []
    for criterion in criteria:
        before = [part.clone() for part in criterion.state.state]
        with pytest.raises(ValueError, match="never seen") as caught:
            criterion(torch.randn(12, 2, requires_grad=True), bad_y, bad_s)
        messages.append(str(caught.value))
        assert all(map(torch.equal, before, criterion.state.state))
    assert len(set(messages)) == 1


@needs_compiler
def test_losses_of_other_kinds_and_layouts():
    generator = torch.Generator().manual_seed(0)
    y, s = torch.arange(40) % 2, torch.arange(40) // 2 % 4
    scores = torch.randn(2, 40, generator=generator).T  # not contiguous
    same_y, strided = torch.stack([y, y], 1)[:, 0], torch.stack([s, s], 1)[:, 0]
    criteria = pair("accuracy_parity", y, s, fairness_rate=0.5)
    for criterion in criteria:
        criterion(scores.requires_grad_(), same_y, strided)
    same(criteria)
    own = [
        FairLoss(torch.nn.BCEWithLogitsLoss, y, s, "demographic_parity", fairness_rate=0.5)
        for _ in range(2)
    ]
    for criterion in ways(own):
        criterion(scores[:, :1], y[:, None].float(), s)
    same(own)


@pytest.mark.parametrize("compiled", [True, False])
def test_no_update_is_lost_between_threads(compiled):
    y, s = torch.arange(400) % 2, torch.arange(400) // 2 % 2
    scores = torch.where(s == 0, 1.0, -1.0)[:, None] * torch.nn.functional.one_hot(y, 2)
    criterion = CrossEntropyLoss(y, s, "accuracy_parity", fairness_rate=1e-4)
    criterion.state.is_compiled &= compiled

    def work():
        for _ in range(500):
            criterion(scores.requires_grad_(), y, s)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(criterion.multipliers.abs(), torch.full((2,), 2000 * 1e-4 * 0.5))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_the_default_dtype_does_not_matter(dtype):
    """The precision of the state does not depend on the inputs."""
    script = f"""
import torch
torch.set_default_dtype(torch.{dtype})
from fairgrad.torch import CrossEntropyLoss
y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
for compiled in (True, False):
    criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.5)
    criterion.state.is_compiled &= compiled
    logits = torch.tensor([[1.0, 0], [0, 1.0], [0, 1.0], [0, 1.0]], requires_grad=True)
    criterion(logits, y, s).backward()
    assert {{part.dtype for part in criterion.state.state}} == {{torch.float64}}
    print(criterion.multipliers.tolist())
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert found.stdout == "[0.25, -0.25, 0.0, 0.0]\n" * 2


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_that_others_have_replaced_is_no_danger(dtype, compiled):
    """Frameworks cast buffers or replace ours, without telling the module."""
    y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.5)
    criterion.state.is_compiled &= compiled
    cast = {name: part.to(dtype) for name, part in criterion.state_dict().items()}
    criterion.load_state_dict(cast, assign=True)
    logits = torch.tensor([[1.0, 0], [0, 1.0], [0, 1.0], [0, 1.0]], requires_grad=True)
    criterion(logits, y, s).backward()
    torch.testing.assert_close(
        criterion.multipliers, torch.tensor([0.25, -0.25, 0, 0]), rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("compiled", [True, False])
def test_an_average_of_checkpoints_can_be_loaded(compiled):
    y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    model = torch.nn.Module()
    model.net, model.criterion = torch.nn.Linear(2, 2), CrossEntropyLoss(y, s, "accuracy_parity")
    model.criterion.state.is_compiled &= compiled
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    for _ in range(3):
        model.criterion(model.net(torch.randn(4, 2)), y, s).backward()
        average.update_parameters(model)
    model.load_state_dict(average.module.state_dict())
    mixed = {k: 0.999 * v + 0.001 * v for k, v in model.state_dict().items()}
    model.load_state_dict(mixed)
