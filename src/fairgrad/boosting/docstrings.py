"""What the docstrings of all fair boosted classifiers say of their arguments and attributes."""

from __future__ import annotations

import inspect
import textwrap

ARGUMENTS = """\
fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
    "accuracy_parity", "four_fifths_rule", one of your own (see `fairgrad.torch.FairLoss`),
    or None for a plain model.
epsilon: slack of the constraints; 0 is exact fairness.
fairness_rate: step size of the multipliers. They need time: rounds times rate should come
    to 15 or more. From there on, rates up to five times larger gave the same.
proportional_rate: how strongly the weights react to the violations of the current round; it
    keeps the levels from swinging.
error_memory: share of earlier rounds kept in the error estimates.
validation_fraction: share of the training rows, stratified by label and group, that is held
    out for the multipliers. Trees fit the rows they learn from better than new ones; levels
    measured on rows held out are those of new ones, but noisy where cells are small, and
    there are fewer rows to learn from. With LightGBM on Adult a fifth brought demographic
    parity from .0065 to .0042 and equalized odds from .0116 to .0166.
out_of_bag: number of parts that the rows are divided into, of which each tree leaves one out in
    turn; 0 for none. Levels are then measured, for every row, by the trees that left it out, so
    that rows learnt by heart do not hide unfairness. If fairness takes more than 3 points of
    accuracy as measured so, the trees are kept up to the fairest round that does not (unless
    there are eval sets). Such scores are noisy, so "auto" is 0 unless the trees come to know
    98 % of the training rows: then 5 parts are tried, and taken if new rows show that they help.
n_folds: number of folds by which the model is tried on rows that its trees have not learnt from,
    before it is fitted to all of them; 0 for none. So many rounds are kept as are most accurate
    there among those within their bounds; if none are, the fairest (mean violations within 0.005
    are taken for equal), and most accurate among those. If the trees may look at the sensitive
    values, the scores of each group are then shifted, by trees that are added at the end, so that
    levels keep their bounds there, if that makes a better model. If the model without weights is as
    good there, or nothing is fairer than it by more than one standard error, that one is fitted,
    and a warning says so. The model fitted to all rows is to decide as those of the folds did: if
    it gives more of a group a label, its shifts are moved until as many get it; if it still does
    (by a tenth of the group and two standard errors) the next best is taken, at last the plain
    one, and a warning says so. It takes twice as many further fits as there are folds, and one
    more where a next best is taken.
    "auto" is 3 folds on tables up to 50,000 rows, and 0 on larger ones, with eval sets, rows held
    out, `out_of_bag` given as a number, callbacks, or a model to continue from.
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
levels_: (J,) levels of fairness before the last round, on the rows held out if there are
    any, else on the training rows; with `out_of_bag` by the trees that left them out.
levels_cross_fitted_: (J,) levels of rows that the trees have not learnt from, by the models of the
    folds; None without folds. These are what to expect on new rows, and are to keep the bounds.
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
