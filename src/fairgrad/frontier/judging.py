"""How accurate and how fair the models of a frontier are, in figures and for the report."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from fairgrad.audit import Audit
from fairgrad.audit.counts import OVERALL, CountTable, mean_costs, predicted_labels
from fairgrad.audit.intervals import Proportion, clopper_pearson
from fairgrad.columns import as_array
from fairgrad.measures import among_large, constraints_of, measure_name, on_groups
from fairgrad.usefulness import find_fault, model_figures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.frontier.frontier import Frontier
    from fairgrad.frontier.models import FrontierRows
    from fairgrad.groups import Floats
    from fairgrad.report import FrontierData
    from fairgrad.usefulness import ModelFigures, Suggestions

RATES = ("accuracy", "selection_rate", "true_positive_rate", "false_positive_rate")
KINDS = {False: "blind", True: "aware: needs the sensitive value to predict"}
NOTE = (
    "Bars are {confidence:.0%} intervals of the models on the frontier, exact for the accuracy and "
    "simultaneous over groups for the unfairness."
)
AWARE_NOTE = (
    " Aware models look at the sensitive value to predict: by what they are ahead of the others is "
    "what blindness costs. The law may forbid them."
)
COST_NOTE = (
    " Which models are on the frontier, and which is chosen, is judged by the mean cost of their "
    "predictions, not by the accuracy shown."
)


@dataclass(frozen=True, eq=False)
class FrontierJudge:
    """What models are judged by.

    Attributes:
        measure: the fairness measure, as in training.
        desirable: the desirable labels; none if there is no rule for them.
        classes: all labels.
        confidence: of each interval.
        min_group: groups with fewer rows are not judged, as they are in no constraint.
        costs: (L, L) of predictions (columns) of each true label, in the order of the classes;
            None if every mistake costs the same.
    """

    measure: Any
    desirable: list[Any]
    classes: NDArray[Any]
    confidence: float
    min_group: float
    costs: Any = None

    def audit(self, rows: FrontierRows, predicted: Any, **changed: Any) -> Audit:
        """Audits predictions by this measure, on the groups that training compares.

        Args:
            rows: to judge on.
            predicted: one label per row.
            **changed: what the audit is to have otherwise.
        """
        measures = on_groups(self.measure, tuple(rows.s))
        usual: dict[str, Any] = {
            # Sharing the error, the intervals of all measures hold at once.
            "confidence": 1 - (1 - self.confidence) / len(measures),
            "min_group": self.min_group,
        }
        return Audit(
            rows.y,
            predicted,
            rows.s,
            measures=measures,
            sample_weight=rows.weight,
            y_desirable=self.desirable or None,
            labels=self.classes,
            **{**usual, **changed},
        )


class ModelAudits(Sequence[Audit]):
    """The audits of many models on the same rows; each is made when it is first looked at.

    Args:
        judge: what models are judged by.
        rows: on which.
        predictions: of each model.
    """

    def __init__(
        self, judge: FrontierJudge, rows: FrontierRows, predictions: Sequence[Any]
    ) -> None:
        self._judge, self._rows = judge, replace(rows, X=None)
        first = judge.audit(rows, predictions[0])
        self._made = {0: first}
        index = [predicted_labels(first.rows, as_array(own), "y_pred") for own in predictions]
        self._predicted = np.array(index, dtype=first.predicted.dtype)

    def __len__(self) -> int:
        return len(self._predicted)

    @overload
    def __getitem__(self, position: int) -> Audit: ...
    @overload
    def __getitem__(self, position: slice) -> list[Audit]: ...
    def __getitem__(self, position: int | slice) -> Audit | list[Audit]:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        place = range(len(self))[position]
        if place not in self._made:
            predicted = np.asarray(self._made[0].labels)[self._predicted[place]]
            self._made[place] = self._judge.audit(self._rows, predicted)
        return self._made[place]

    def figures(self) -> dict[str, Floats]:
        """Accuracy and unfairness of each model, each with its ends; and the mean cost, if asked.

        The interval of the accuracy is Clopper and Pearson's. That of the unfairness is
        `fairgrad.audit.Finding.unfairness_interval`.
        """
        return self._figures_of(self._predicted)

    def figures_of_labels(self) -> dict[str, Floats]:
        """The same of each label as the prediction for everybody."""
        n_labels, n_rows = len(self._made[0].labels), self._predicted.shape[1]
        index = np.arange(n_labels, dtype=self._predicted.dtype)
        return self._figures_of(np.repeat(index[:, None], n_rows, axis=1))

    def fault(self, position: int, plain: int | None, suggestions: Suggestions) -> str | None:
        """What nobody would want of a model, in a sentence with what to try; None if all is well.

        That is one label for everybody, less fairness than the plain model has, or a high price.

        Args:
            position: of the model.
            plain: of the plain one; None if there is none.
            suggestions: what to try.
        """
        rows, judge = self._made[0].rows, self._judge
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cells without rows, which the audit names
            measure = among_large(judge.measure, rows, judge.min_group)
            constraints = constraints_of(measure, rows.groups, y_desirable=judge.desirable or None)

        def figures(place: int) -> ModelFigures:
            predicted = self._predicted[place].astype(np.int64)
            return model_figures(constraints, rows, predicted, judge.costs)

        own = None if plain is None else figures(plain)
        labels = rows.groups.labels.tolist()
        return find_fault(
            figures(position), [], own, labels, suggestions, "validation", bounds=False
        )

    def _figures_of(self, predicted: NDArray[Any]) -> dict[str, Floats]:
        first, alpha = self._made[0], 1 - self._judge.confidence
        tables = [CountTable.from_rows(first.rows, own, counts=first.counts) for own in predicted]
        overall = [table.together().rates["accuracy"] for table in tables]
        accuracy = Proportion(*(np.concatenate(part) for part in zip(*overall, strict=True)))
        ends = clopper_pearson(accuracy.value, accuracy.trials, alpha)
        accurate = np.stack([accuracy.value, *ends])
        found = [finding for finding in first.findings if finding.n_defined]
        unfair = np.empty((len(found), 3, len(tables)))
        for model, table in enumerate(tables):
            own = [finding for finding in first.findings_of(table) if finding.n_defined]
            for place, finding in enumerate(own):
                unfair[place, :, model] = finding.unfairness, *finding.unfairness_interval
        # One mean over the levels of all measures, not a mean of means.
        mean = np.average(unfair, axis=0, weights=[finding.n_defined for finding in found])
        figures = {
            f"{name}{end}": part
            for name, parts in {"accuracy": accurate, "unfairness": mean}.items()
            for end, part in zip(("", "_low", "_high"), parts, strict=True)
        }
        if self._judge.costs is not None:
            masses = np.array([table.mass.sum(axis=0) for table in tables])
            figures["cost"] = mean_costs(masses, self._judge.costs)
        return figures


def non_dominated(accuracy: Any, unfairness: Any) -> NDArray[np.bool_]:
    """(n,) whether no other point is at least as good in both and better in one.

    Example:
        >>> non_dominated([0.8, 0.9, 0.7], [0.01, 0.05, 0.02])
        array([ True,  True, False])
    """
    a, u = np.asarray(accuracy, dtype=np.float64), np.asarray(unfairness, dtype=np.float64)
    as_good = (a >= a[:, None]) & (u <= u[:, None])
    better = (a > a[:, None]) | (u < u[:, None])
    dominated = np.asarray((as_good & better).any(axis=1))
    return ~dominated


def best_of_kind(points: Mapping[str, Any] | pd.DataFrame, prefix: str) -> NDArray[np.bool_]:
    """(n,) which points no other one of their kind, blind or aware, dominates."""
    merit, unfairness = (
        np.asarray(part) for part in (point_merit(points, prefix), points[f"{prefix}unfairness"])
    )
    kind = np.asarray(points.get("use_sensitive", np.zeros(len(merit))))
    best = np.zeros(len(merit), dtype=bool)
    for one in np.unique(kind):
        best[kind == one] = non_dominated(merit[kind == one], unfairness[kind == one])
    return best


def point_merit(points: Mapping[str, Any] | pd.DataFrame, prefix: str) -> Any:
    """What models are chosen by, larger is better: the accuracy, or less the mean cost."""
    cost = points.get(f"{prefix}cost")
    return points[f"{prefix}accuracy"] if cost is None else -cost


def hypervolume(accuracy: Any, unfairness: Any, reference: tuple[float, float]) -> float:
    """The area of what the points are at least as good as, up to a reference point.

    ``area of the union over i of [u_i, u_ref] x [a_ref, a_i]``: larger is better. Two frontiers
    compare only with the same reference.

    Example:
        >>> round(hypervolume([0.8, 0.9], [0.0, 0.1], reference=(0.5, 0.2)), 4)
        0.07
    """
    worst_accuracy, worst_unfairness = reference
    order = np.argsort(unfairness)
    u = np.asarray(unfairness, dtype=np.float64)[order].clip(max=worst_unfairness)
    best = np.maximum.accumulate(np.asarray(accuracy, dtype=np.float64)[order])
    widths = np.diff(np.append(u, worst_unfairness))
    return float(widths @ (best - worst_accuracy).clip(min=0.0))


def report_data(frontier: Frontier, on: str, chosen: int | None) -> FrontierData:
    """The points on some rows, the rates of their groups, and what readers should know."""
    from fairgrad.report import FrontierData  # noqa: PLC0415 - charts are loaded where one is drawn

    own = _points(frontier.points_, on)
    audits = list(frontier.audits_[on])
    note, points = NOTE.format(confidence=frontier.confidence), own
    note += COST_NOTE if f"{on}_cost" in frontier.points_ else ""
    kinds = frontier.points_["use_sensitive"]
    if kinds.any() and not kinds.all():
        points = own.assign(series=kinds.map(KINDS))
        note += AWARE_NOTE
    return FrontierData(
        points,
        pd.concat([_rates(i, audit) for i, audit in enumerate(audits)], ignore_index=True),
        chosen=chosen,
        measure=f"mean |F|, {measure_name(frontier.fairness_measure_).replace('_', ' ')}",
        on=f"{on} rows",
        note=note,
    )


def _points(points: pd.DataFrame, on: str) -> pd.DataFrame:
    prefix = f"{on}_"
    figures = points[[name for name in points if str(name).startswith(prefix)]]
    figures = figures.rename(columns=lambda name: name.removeprefix(prefix))
    best = best_of_kind(points, prefix)  # on the rows that are shown
    ends = [name for name in figures if str(name).endswith(("_low", "_high"))]
    figures = figures.assign(on_frontier=best)
    figures.loc[~best, ends] = float("nan")
    return points[["epsilon"]].join(figures)


def _rates(position: int, audit: Audit) -> pd.DataFrame:
    """Rates of the finest groups; of several labels each has its own."""
    frame = audit.to_frame("rates")
    finest = " x ".join(audit.attributes)
    frame = frame[(frame["attribute"] == finest) & (frame["group"] != OVERALL)]
    frame = frame[frame["rate"].isin(RATES) & frame["value"].notna()]
    several = len(audit.shown_labels) > 1
    names = [
        f"{rate} of {label}" if several and label is not None else rate
        for rate, label in zip(frame["rate"], frame["label"], strict=True)
    ]
    kept = frame[["group", "value"]].assign(rate=names, point=position)
    return kept.reset_index(drop=True)
