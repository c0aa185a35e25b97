"""Compares a fair model with a constant and with the plain model.

One label for everybody is fair by most definitions, but useless. A fair model has a fault if it is
no more accurate than that, loses much accuracy against the plain model, is not fairer than the
plain model, or misses its bounds. `find_fault` returns the sentence about it, for every estimator,
the program and the report. It also says if the fair model decides as the plain one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.checks import keeping_random_state, relative_costs, warn
from fairgrad.evaluate import levels_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, GroupedRows, Ints

REACHED = 0.005
"""Bounds are kept if no level lies further beyond them."""

TOLERATED_LOSS = 0.02
"""Accuracy a fair model may lose against the plain one, on new rows, without a warning. On the rows
of the fit, if two standard errors could hide such a loss, there is a warning from half of it on. On
rows that models are judged by, a loss of less than two standard errors is no fault."""

LEAST_GAIN = 0.001
"""A model that is more accurate than one label for everybody by less is no better than that."""


class FairnessWarning(UserWarning):
    """The model is no better than a constant or the plain model, or misses epsilon.

    Example:
        >>> import warnings
        >>> from fairgrad import FairnessWarning
        >>> warnings.simplefilter("error", FairnessWarning)  # such a fit is an error then
        >>> warnings.simplefilter("default", FairnessWarning)
    """


class ModelFigures(NamedTuple):
    """How good the predictions for some rows are.

    Attributes:
        accuracy: the share of rows predicted rightly; with costs the merit in its place
            (`cost_shares`).
        worst: the largest gap of a level of fairness, max |F|.
        beyond: by how much the worst level lies beyond its bounds, slack included; 0 if all are
            kept.
        predicted: (n,) the index of each row's label, if every row has one.
        by_costs: whether mistakes have costs.
    """

    accuracy: float
    worst: float
    beyond: float
    predicted: Ints | None = None
    by_costs: bool = False

    @property
    def gives_one_label(self) -> bool:
        """Whether all rows are known to be predicted as one label."""
        return self.predicted is not None and bool((self.predicted == self.predicted[0]).all())

    @property
    def merit(self) -> str:
        """What the accuracy is called."""
        return "merit (one less the mean cost)" if self.by_costs else "accuracy"


def cost_shares(cost_matrix: Any, n_labels: int) -> Floats:
    """(L, L) the extra cost of each prediction, as a share of that of the most expensive error.

    Models are chosen by their *merit*: one minus the mean of this over the rows. It is the accuracy
    if all errors cost the same.
    """
    costs = relative_costs(cost_matrix, n_labels)
    shares: Floats = costs / costs.max()
    return shares


def model_figures(
    constraints: Constraints, rows: GroupedRows, predicted: Ints, cost_matrix: Any = None
) -> ModelFigures:
    """The figures of predictions, counted with these rows.

    Args:
        constraints: on the cells of the rows' groups, with their slack.
        rows: labels, groups and weights.
        predicted: (n,) the index of each row's predicted label.
        cost_matrix: what mistakes cost; None if all cost the same.
    """
    shares = cost_shares(cost_matrix, len(rows.groups.labels))
    accuracy = 1.0 - float(np.average(shares[rows.label, predicted], weights=rows.weight))
    levels = levels_of(constraints, rows, predicted)
    return ModelFigures(
        accuracy, *worst_of(constraints, levels), predicted, cost_matrix is not None
    )


def worst_of(constraints: Constraints, levels: Floats) -> tuple[float, float]:
    """The largest gap of some levels, (J,), and by how much one is beyond its bounds, or 0."""
    off = np.maximum(levels - constraints.upper, constraints.lower - levels)
    both = (constraints.gaps(levels), off)
    worst, beyond = (float(np.nan_to_num(gaps).max(initial=0.0)) for gaps in both)
    return worst, beyond


def constant_figures(
    constraints: Constraints, rows: GroupedRows, cost_matrix: Any = None
) -> list[ModelFigures]:
    """The figures of each label as the one label for everybody."""
    return [
        model_figures(constraints, rows, np.full(len(rows), label), cost_matrix)
        for label in range(len(rows.groups.labels))
    ]


@dataclass(frozen=True)
class Suggestions:
    """What the user could try, in the terms of the caller's interface.

    Attributes:
        name: what the slack is called.
        asked: the slack that was asked for, if it is one number.
        search: how to have epsilon kept, where training was not asked to see to it; else empty.
        aware: how to let the model look at the sensitive values; empty if it does so already, or
            if it cannot.
        fewer: how to have fewer groups; empty where there are two.
        enough: the least slack known to be enough, or None.
    """

    name: str = "epsilon"
    asked: float | None = None
    search: str = ""
    aware: str = "use_sensitive=True"
    fewer: str = ""
    enough: float | None = None

    @property
    def bound(self) -> str:
        """The slack that was asked for, in words."""
        return self.name if self.asked is None else f"{self.name}={self.asked:g}"

    def __str__(self) -> str:
        enough, asked = self.enough, self.asked
        is_out_of_reach = enough is not None and enough > MOST_SLACK
        is_kept_anyway = enough is not None and asked is not None and enough <= asked
        larger = ""
        if not is_out_of_reach and not is_kept_anyway:
            known = "" if enough is None else f" ({_rounded_up(enough):g} would be enough)"
            larger = f"a larger {self.name}{known}"
        aware = f"{self.aware} if the law allows it" if self.aware else ""
        ideas = [idea for idea in (self.search, larger, aware, self.fewer) if idea]
        why = f" {OUT_OF_REACH.format(self.name)}" if is_out_of_reach else ""
        if not ideas:
            return why.strip()
        return f"Try {', '.join(ideas[:-1])}{' or ' if ideas[1:] else ''}{ideas[-1]}.{why}"


MOST_SLACK = 0.2
"""A larger slack would not be called fair by anybody, so none is recommended."""

OUT_OF_REACH = (
    "No {} up to 0.2 avoids this: the groups of this table differ too much, or are too small."
)
SAME_DECISIONS = "The fair model makes the same decisions as the plain one"
NOT_LEARNT = (
    "The plain model is no better ({0.merit} {0.accuracy:.4f}), so fairness is not the reason. Try "
    "another kind of model or other features."
)
FEWER = "fewer groups (merge small ones, or raise min_group)"
"""How to have fewer groups."""


def find_fault(
    fair: ModelFigures,
    constants: Sequence[ModelFigures],
    plain: ModelFigures | None,
    labels: Sequence[Any],
    suggestions: Suggestions,
    rows: str = "training",
    *,
    noise: float | None = None,
) -> str | None:
    """What is wrong with a fair model, in a sentence or two with its figures; None if nothing is.

    Everybody gets one label, or one label for everybody is at least as fair and not less accurate.
    If not: the bounds are not kept, or it is less fair than the plain model; and it may have lost
    more than 2 points of accuracy against the plain model. What to try is added.

    Args:
        fair: the model.
        constants: each label for everybody.
        plain: the model trained for accuracy alone, if there is one.
        labels: the labels.
        suggestions: what to try.
        rows: on which rows the figures are.
        noise: on new rows, how much less fair than the plain model the fair one may be by chance.
            A price that chance explains is then no fault either. None on the rows of the fit, on
            which the bounds are to be kept.

    Example:
        >>> fair, plain = ModelFigures(0.61, 0.02, 0.0), ModelFigures(0.70, 0.2, 0.2)
        >>> print(find_fault(fair, [], plain, [0, 1], Suggestions(aware="")))
        ... # doctest: +NORMALIZE_WHITESPACE
        Fairness costs 9.0 points of accuracy here: 0.6100, against 0.7000 of the plain model,
        on the training rows. Try a larger epsilon.
    """
    best = max((constant.accuracy for constant in constants), default=0.0)
    useless = _is_constant(fair, constants, labels, rows)
    if useless:
        is_learnt = plain is None or (
            plain.accuracy >= best + LEAST_GAIN and not plain.gives_one_label
        )
        return f"{useless} {suggestions if is_learnt else NOT_LEARNT.format(plain)}"
    faults = []
    if noise is None and fair.beyond > REACHED:
        faults.append(
            f"{suggestions.bound} is not kept: on the {rows} rows the worst level of fairness is "
            f"{fair.beyond:.4f} beyond its bounds (max |F| {fair.worst:.4f})."
        )
    if plain is not None:
        least = plain.worst + max(REACHED, noise or 0.0)
        if not faults and fair.beyond > 0 and fair.worst > least:
            faults.append(
                f"The model is less fair than the plain one: max |F| is {fair.worst:.4f}, against "
                f"{plain.worst:.4f}, on the {rows} rows."
            )
        is_unfair, cost, chance, differs = bool(faults), plain.accuracy - fair.accuracy, 0.0, None
        if fair.predicted is not None and plain.predicted is not None:
            differs = fair.predicted != plain.predicted
            chance = 2.0 * math.sqrt(differs.mean() / len(differs))
        least = max(TOLERATED_LOSS - chance, TOLERATED_LOSS / 2)
        if cost > (least if noise is None else max(TOLERATED_LOSS, chance)):
            constant = (
                "" if fair.accuracy >= best else f" and {best:.4f} of one label for everybody"
            )
            faults.append(
                f"Fairness costs {100 * cost:.1f} points of {fair.merit} here: {fair.accuracy:.4f},"
                f" against {plain.accuracy:.4f} of the plain model{constant}, on the {rows} rows."
            )
        if is_unfair and differs is not None and not differs.any():
            faults.append(f"{SAME_DECISIONS}.")
    return f"{' '.join(faults)} {suggestions}" if faults else None


def _is_constant(
    fair: ModelFigures, constants: Sequence[ModelFigures], labels: Sequence[Any], rows: str
) -> str:
    """A sentence if everybody gets one label, or a constant is as good; else empty."""
    if fair.predicted is not None and fair.gives_one_label:
        return f"Every {rows} row is predicted as {labels[fair.predicted[0]]!r}."
    for label, constant in zip(labels, constants, strict=False):
        is_as_fair = constant.worst <= fair.worst and constant.beyond <= fair.beyond
        if is_as_fair and fair.accuracy < constant.accuracy + LEAST_GAIN:
            return (
                f"The model is no better than a constant: predicting {label!r} for everybody "
                f"reaches {fair.merit} {constant.accuracy:.4f} and max |F| {constant.worst:.4f} on "
                f"the {rows} rows, the model {fair.accuracy:.4f} and {fair.worst:.4f}."
            )
    return ""


def suggestions_of(model: Any, search: str = "") -> Suggestions:
    """What the caller of one of our estimators could ask for; `search` as in `Suggestions`."""
    return Suggestions(
        asked=None if np.ndim(model.epsilon) else float(model.epsilon),
        search=search,
        aware="" if model.use_sensitive else "use_sensitive=True",
        fewer=FEWER if len(model.constraint_names_) > 4 else "",
    )


def warn_of_faults(
    suggestions: Suggestions,
    fair: ModelFigures,
    constants: Sequence[ModelFigures],
    plain: ModelFigures | None,
    rows: str = "training",
    *,
    labels: Sequence[Any],
    enough: float | None = None,
    overfits: str = "",
) -> None:
    """Warns of what is wrong with a fitted model, or if it decides every row as a plain one.

    Args:
        suggestions: what to try, `enough` aside.
        fair: its figures.
        constants: each label for everybody.
        plain: the model trained for accuracy alone, if there is one.
        rows: on which rows the figures are.
        labels: the labels.
        enough: the least slack known to cost little accuracy.
        overfits: what else is wrong, in a sentence.
    """
    if fair.beyond > REACHED:
        is_costly = plain is not None and plain.accuracy - fair.accuracy > TOLERATED_LOSS / 2
        enough = max(fair.worst, (enough or 0.0) if is_costly else 0.0)
    suggestions = replace(suggestions, enough=enough)
    faults = [find_fault(fair, constants, plain, labels, suggestions, rows) or "", overfits]
    if any(faults):
        warn(" ".join(filter(None, faults)), FairnessWarning)
    elif plain is None or fair.predicted is None or plain.predicted is None:
        return
    elif np.array_equal(fair.predicted, plain.predicted) and suggestions.asked != math.inf:
        warn(f"{SAME_DECISIONS}, which already keeps {suggestions.bound} ({rows} rows).")


def warn_of_small(set_aside: Mapping[str, int]) -> None:
    """Warns about groups with too few rows to be constrained, if there are some."""
    if not set_aside:
        return
    names = list(set_aside)
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    warn(
        f"{sum(set_aside.values()):,} training rows are in groups too small to be constrained or "
        f"judged: {listed}. Set min_group=0 to include them."
    )


def _rounded_up(value: float) -> float:
    """To two digits, upwards."""
    if value <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(value))
    unit = 10.0**digits
    return math.ceil(round(value * unit, 6)) / unit


class ShownInNotebooks:
    """A scikit-learn estimator that, once fitted, shows more than its diagram in a notebook."""

    def _notebook_html(self) -> str:
        """The level of every constraint after training; empty before it, and without one."""
        names, levels = (getattr(self, name, ()) for name in ("constraint_names_", "levels_"))
        if not names:
            return ""
        with keeping_random_state():  # rich draws numbers when it is imported
            from fairgrad.text import Block, Section, as_html  # noqa: PLC0415 - only notebooks do

        rows = [[str(name), f"{level:+.4f}"] for name, level in zip(names, levels, strict=True)]
        rule = "0 is equal treatment. Above 0 a group is better off than average, below 0 worse."
        block = Block("Level of each group", ("level of", "F"), rows)
        return as_html(Section("model", "How fair the fitted model is", (rule,), (block,)))

    def _repr_html_inner(self) -> str:
        return f"{super()._repr_html_inner()}{self._notebook_html()}"  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._notebook_html()
        return bundle
