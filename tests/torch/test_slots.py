"""Where rows are counted: every label, prediction and group in a slot of its cell, or in none."""

import itertools

import numpy as np
import pytest
import torch

from fairgrad.groups import Groups
from fairgrad.torch.lookup import CellLookup

# Few classes and groups have a slot per predicted class; gaps, other ids and many do not.
LABELS = {"two": [0, 1], "three": [0, 1, 2], "gap": [0, 2], "signed": [-1, 1], "many": range(20)}
IDS = {"from 0": [0, 1, 2], "others": [3, 7], "unknown": [-1, 0, 1]}


def lookup_of(labels, ids, *, by_label=True, **settings):
    y, s = np.array(list(itertools.product(labels, ids))).T
    return CellLookup(Groups.from_data(y, s), by_label=by_label, **settings), np.sort(ids)


@pytest.mark.parametrize("by_label", [True, False])
@pytest.mark.parametrize("checks_labels", [True, False])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_slot_knows_the_cell_and_whether_the_prediction_is_wrong(
    labels, ids, checks_labels, by_label
):
    lookup, order = lookup_of(
        labels, ids, by_label=by_label, ignore_index=-100, checks_labels=checks_labels
    )
    known = order[order >= 0]  # unknown values are the last group
    group_of = {s: i for i, s in enumerate([*known, *order[order < 0]])}
    for (row, y), s in itertools.product(enumerate(labels), ids):
        cell = row * len(ids) * by_label + group_of[s]
        target, sensitive = torch.tensor([y]), torch.tensor([s])
        for wrong in (0, 1):
            slot = int(lookup.slots(target, torch.tensor([wrong]), sensitive, lookup.by_flag))
            assert (lookup.cell[slot], lookup.is_wrong[slot]) == (cell, wrong)
        for predicted in range(max(labels) + 1 if min(labels) >= 0 else 0):
            slot = int(lookup.slots(target, torch.tensor([predicted]), sensitive, lookup.by_class))
            assert (lookup.cell[slot], lookup.is_wrong[slot]) == (cell, predicted != y)


@pytest.mark.parametrize("ignore_index", [-100, -1, 2, 3, 255])
@pytest.mark.parametrize("n_groups", [2, 32])
def test_a_target_to_be_ignored_is_never_taken_for_a_slot(ignore_index, n_groups):
    """Where the label itself is the key, a stray one must lead outside of all slots."""
    lookup, ids = lookup_of([0, 1], range(n_groups), ignore_index=ignore_index, checks_labels=True)
    for predicted, s in itertools.product([0, 1], ids.tolist()):
        target = torch.tensor([ignore_index])
        try:
            slot = lookup.slots(
                target, torch.tensor([predicted]), torch.tensor([s]), lookup.by_class
            )
        except IndexError:
            continue
        assert not 0 <= int(slot) < len(lookup.cell)
        ignored = lookup.slots(
            target, torch.tensor([predicted]), torch.tensor([s]), lookup.by_flag_or_ignored
        )
        assert lookup.cell[int(ignored)] == 2 * n_groups + s


@pytest.mark.parametrize("stray", [-1, 3, 10**9, -(10**9)])
def test_a_sensitive_value_never_seen_leads_outside_of_all_slots(stray):
    lookup, _ = lookup_of([0, 1], [0, 1, 2], ignore_index=-100, checks_labels=True)
    for y, predicted in itertools.product([0, 1], [0, 1]):
        slot = lookup.slots(
            torch.tensor([y]), torch.tensor([predicted]), torch.tensor([stray]), lookup.by_class
        )
        assert not 0 <= int(slot) < len(lookup.cell)
