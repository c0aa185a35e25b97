"""What the docstrings of all fair boosted classifiers say of their arguments and attributes."""

from __future__ import annotations

import inspect
import textwrap

ARGUMENTS = """\
fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
    "accuracy_parity", "four_fifths_rule", one of your own (see `fairgrad.torch.FairLoss`),
    or None for a plain model.
epsilon: slack of the constraints; 0 asks for exact fairness.
fairness_rate: step size of the multipliers. They need time: rounds times rate should come
    to 15 or more. From there on, rates up to five times larger gave the same.
proportional_rate: how strongly the weights react to the violations of the current round; it
    keeps the levels from swinging.
error_memory: share of earlier rounds kept in the error estimates.
use_sensitive: whether the trees may look at the sensitive values, in fit and to predict: they
    become features (see `fairgrad.aware.SensitiveEncoder`). The law may forbid it. One value in
    twenty is hidden from the trees, so that "unknown" is learnt, too, and never fails;
    `levels_unknown_` says how fair the model is without them.
y_desirable: the desirable labels, for measures that look at them; by default the second of
    two labels in sorted order.
min_group: groups with fewer rows are in no constraint, and are not judged; below 1 a share of all
    rows. A warning says how many people are in them. 0 is for all groups.
negative_weights: whether weights may be negative; if not they are clipped at 0.
cost_matrix: what it costs to predict each class (columns) where each is true (rows), in sorted
    order; None for 1 for every mistake.
"""

ATTRIBUTES = """\
levels_: (J,) levels of fairness on the training rows, before the last round. New rows may have
    larger ones; where the bounds must hold on new rows, use
    `fairgrad.sklearn.FairDecisionClassifier`.
levels_unknown_: (J,) of an aware model, the levels on the training rows if it knew no sensitive
    value; None for others.
sensitive_encoder_: of an aware model, how it reads sensitive values; None for others.
multipliers_: (J,) their multipliers.
cell_weights_: (K,) weights of the cells in the last round.
constraint_names_: (J,) names of the levels and multipliers.
desirable_: the labels taken as desirable, for measures that look at them.
cell_names_: (K,) names of the cells.
groups_: groups and frequencies of the training rows.
set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
fairness_state_: what training continues from, as plain lists and numbers.
"""


def with_shared_parts(doc: str) -> str:
    """A docstring in which ``{fairness arguments}`` and ``{fairness attributes}`` are filled in."""
    words = inspect.cleandoc(doc)
    for part, text in (("arguments", ARGUMENTS), ("attributes", ATTRIBUTES)):
        words = words.replace(f"    {{fairness {part}}}\n", textwrap.indent(text, "    "))
    return words
