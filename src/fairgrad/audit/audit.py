"""The audit: how fair given predictions are, how sure that is, and who pays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import notices, tables, text, words
from fairgrad.audit.comparisons import Comparison, compare
from fairgrad.audit.counts import CountTable, GroupGap, group_gaps, predicted_labels, read_rows
from fairgrad.audit.notices import Notice
from fairgrad.audit.verdicts import FOUR_FIFTHS, Change, Finding, VerdictRule, gravest
from fairgrad.checks import check_number, is_number
from fairgrad.columns import as_columns
from fairgrad.constraints import Constraints
from fairgrad.files import write_whole
from fairgrad.measures import ALIASES, MEASURES, On, desirable_labels, measure_name, uses_desirable

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pandas as pd

    from fairgrad.groups import GroupedRows

DEFAULT_MEASURES = (
    "demographic_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "accuracy_parity",
)
DEFAULT_TOLERANCE = 0.05


class Audit:
    """How fair the predictions of any classifier are, and how sure that is.

    Args:
        y_true: one true label per row; two labels or more.
        y_pred: one predicted label per row.
        sensitive_features: one column, or a table or mapping with one column per attribute. With
            several, groups are compared by each attribute alone and by all of them crossed. Rows
            with a missing value, or the integer -1, are counted and set aside.
        measures: names, or what else `fairgrad.torch.FairLoss` takes. Default: demographic
            parity, equalized odds, equality of opportunity (if a desirable label is known),
            accuracy parity.
        tolerance: the largest absolute level still called fair; "four_fifths" for the 80 % rule on
            demographic parity; or a mapping from measures to either. Measures with bounds of their
            own are judged by these.
        confidence: of every interval and verdict.
        baseline: predictions of another model for the same rows, or its audit, to compare with.
        y_score: scores the predictions come from, to check the threshold.
        sample_weight: one weight per row; intervals are approximate then.
        y_desirable: the desirable label or labels; by default the second of two in sorted order.
            Of more labels none is taken by itself, and measures that need one ask for it.
        labels: all labels there are; by default those in y_true.
        threshold: the score at which the model was trained to switch (0.5 for probabilities).

    Attributes:
        labels: all labels, sorted.
        findings: one `Finding` per measure and attribute (or crossing).
        warnings: what to know before trusting the figures.
        views: the count tables by attribute.

    Raises:
        ValueError: if the input cannot be audited; the message says which argument and why.

    Example:
        >>> audit = Audit([0, 1, 0, 1] * 50, [0, 1, 1, 1] * 50, ["F", "F", "M", "M"] * 50,
        ...               measures="accuracy_parity")
        >>> audit.verdict
        'unfair'
        >>> audit.to_frame("levels")[["name", "level"]].values.tolist()
        [['sensitive_features=F', 0.25], ['sensitive_features=M', -0.25]]
    """

    def __init__(
        self,
        y_true: Any,
        y_pred: Any,
        sensitive_features: Any,
        measures: Any = None,
        tolerance: Any = DEFAULT_TOLERANCE,
        confidence: float = 0.95,
        baseline: Any = None,
        y_score: Any = None,
        *,
        sample_weight: Any = None,
        y_desirable: Any = None,
        labels: Any = None,
        threshold: float = 0.5,
    ) -> None:
        check_number("confidence", confidence, above=0, below=1)
        rows = read_rows(y_true, sensitive_features, sample_weight, labels)
        predicted = predicted_labels(rows, y_pred, "y_pred")
        desirable = _desirable(rows.groups.labels.tolist(), y_desirable)
        usual = [name for name in DEFAULT_MEASURES if desirable or not uses_desirable(name)]
        left_out = set(DEFAULT_MEASURES) - set(usual) if measures is None else set()
        measures = usual if measures is None else measures
        asked = _asked_measures(measures, tolerance, rows.groups.attributes)
        table = CountTable.from_rows(rows, predicted)
        self._set_up(table, asked, desirable, confidence, rows.weight is not None)
        self.baseline: Audit | None = self._audit_baseline(baseline, rows)
        finest = self.views[" x ".join(self.attributes)]
        columns = as_columns(sensitive_features, "sensitive_features")
        score = y_score, predicted, desirable, len(self.labels), threshold
        said = [
            ("desirable", notices.left_out(left_out, len(self.labels))),
            ("constant", notices.constant_predictions(finest)),
            *(("levelling_down", notices.levelling_down(change)) for change in self.changes),
            ("unknown", notices.unknown_values(table, self.views)),
            ("empty", notices.empty_groups(columns, finest)),
            ("tiny", notices.few_rows(finest)),
            ("weights", notices.WEIGHTS if self.is_weighted else ""),
            ("threshold", notices.other_threshold(*score)),
        ]
        self.warnings: tuple[Notice, ...] = tuple(Notice(*one) for one in said if one[1])

    def _set_up(
        self,
        table: CountTable,
        asked: tuple[AskedMeasure, ...],
        desirable: tuple[int, ...],
        confidence: float,
        is_weighted: bool,
    ) -> None:
        self.table, self.confidence, self.is_weighted = table, confidence, is_weighted
        self._asked, self._desirable, self.alpha = asked, desirable, 1.0 - confidence
        self.labels: list[Any] = table.groups.labels.tolist()
        self.attributes: tuple[str, ...] = table.groups.attributes
        keys = [*((name,) for name in self.attributes), self.attributes]
        self._view_keys = list(dict.fromkeys(keys))
        self.views: dict[str, CountTable] = {" x ".join(k): table.view(*k) for k in self._view_keys}
        self._check_comparable()
        self.findings: tuple[Finding, ...] = tuple(
            self._find(one, key) for one in asked for key in one.attributes or self._view_keys
        )
        self.baseline, self.warnings = None, ()

    def _find(self, asked: AskedMeasure, attributes: tuple[str, ...]) -> Finding:
        name = " x ".join(attributes)
        view = self.views[name] if name in self.views else self.table.view(*attributes)
        comparison = compare(asked.measure, view, self._desirable)
        rule = asked.rule(comparison)
        return Finding(asked.name, name, view, comparison, rule, self.alpha)

    def _check_comparable(self) -> None:
        for name, view in self.views.items():
            present = np.flatnonzero(view.mass.sum(axis=(1, 2)) > 0)
            if len(present) < 2:
                names = words.short_names(view.groups)
                only = f"the value {names[present[0]]!r}" if len(present) else "unknown values"
                raise ValueError(
                    f"sensitive_features ({name}): fairness compares at least two groups, got "
                    f"{only} alone (rows of weight 0 do not count)."
                )

    def _audit_baseline(self, baseline: Any, rows: GroupedRows) -> Audit | None:
        if baseline is None:
            return None
        if isinstance(baseline, Audit):
            table, own = baseline.table, self.table
            if (
                own.groups.labels.tolist() != table.groups.labels.tolist()
                or own.groups.names != table.groups.names
                or not np.allclose(own.mass.sum(axis=2), table.mass.sum(axis=2))
            ):
                raise ValueError(
                    "baseline: expected an audit of the same rows; labels, groups or their numbers "
                    "of rows differ."
                )
        else:
            table = CountTable.from_rows(rows, predicted_labels(rows, baseline, "baseline"))
        other = Audit.__new__(Audit)
        other._set_up(table, self._asked, self._desirable, self.confidence, self.is_weighted)  # noqa: SLF001 - its own class
        return other

    @property
    def desirable(self) -> list[Any]:
        """The desirable labels."""
        return [self.labels[index] for index in self._desirable]

    @property
    def shown_labels(self) -> Sequence[int]:
        """Indices of the labels whose rates are shown: of two labels only the desirable one."""
        return self._desirable if len(self.labels) == 2 else range(len(self.labels))

    def label_value(self, index: int) -> Any:
        """The label at an index; None for -1."""
        return None if index < 0 else self.labels[index]

    @property
    def verdict(self) -> str:
        """The gravest verdict of all findings."""
        return gravest(finding.verdict for finding in self.findings)

    @cached_property
    def figures(self) -> dict[str, list[GroupGap]]:
        """Differences and ratios by their known names, by attribute."""
        return {
            name: group_gaps(view, self.shown_labels, self.alpha)
            for name, view in self.views.items()
        }

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every finding before and after, if there is a baseline."""
        if self.baseline is None:
            return ()
        pairs = zip(self.baseline.findings, self.findings, strict=True)
        return tuple(Change(before, after) for before, after in pairs)

    def to_frame(self, kind: str = "rates") -> pd.DataFrame:
        """The figures as a data frame.

        Args:
            kind: "rates" (per group, with intervals), "groups" (sizes), "levels", "verdicts",
                "figures" (differences and ratios) or "changes" (against the baseline).

        Raises:
            ValueError: if there is no such kind, or no baseline to compare with.
        """
        if kind not in tables.FRAMES:
            raise ValueError(f"kind: expected one of {list(tables.FRAMES)}, got {kind!r}.")
        return tables.FRAMES[kind](self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with a schema version; NaN becomes None."""
        return tables.to_dict(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, also written to a file if a path is given."""
        said = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        if path is not None:
            write_whole(Path(path), said)
        return said

    def to_markdown(self) -> str:
        """A section for a model card."""
        return text.to_markdown(self)

    def summary(self, width: int = 80) -> str:
        """A readable overview as plain text; ``rich.print(audit)`` shows it in colour."""
        return text.as_plain_text(self, width)

    def __rich__(self) -> Any:
        return text.renderable(self)

    def __repr__(self) -> str:
        return (
            f"<Audit of {self.table.n_rows:,} rows by {', '.join(self.attributes)}: {self.verdict}>"
        )


@dataclass(frozen=True)
class AskedMeasure:
    """One measure to be checked.

    Attributes:
        measure: a name, a function, `Constraints`, or a pair (c0, C).
        attributes: whose groups to compare, one tuple per comparison; empty for each attribute
            alone and all crossed.
        tolerance: what is still fair, a number or "four_fifths".
    """

    measure: Any
    attributes: tuple[tuple[str, ...], ...]
    tolerance: float | str

    @property
    def name(self) -> str:
        """A short readable name."""
        return measure_name(self.measure)

    def rule(self, comparison: Comparison) -> VerdictRule:
        """The rule of the verdict; measures with bounds of their own are judged by these."""
        if self.name == "four_fifths_rule":
            return VerdictRule("ratio", 0.8 if isinstance(self.tolerance, str) else self.tolerance)
        if isinstance(self.tolerance, str):
            if comparison.ratio_row is None:
                raise ValueError(
                    "tolerance: 'four_fifths' is a ratio of the selection rates of one desirable "
                    f"label; it serves demographic_parity, not {self.name}. Name what it is for: "
                    "tolerance={'demographic_parity': 'four_fifths'}."
                )
            return VerdictRule("ratio", 0.8)
        if np.any(comparison.lower != 0) or np.any(comparison.upper != 0):
            return VerdictRule("bounds", 0.0)
        return VerdictRule("level", self.tolerance)


def _asked_measures(
    measures: Any, tolerance: Any, attributes: Sequence[str]
) -> tuple[AskedMeasure, ...]:
    """The measures to check, each with its groups and its tolerance."""
    flat = _flatten(measures)
    if not flat:
        raise ValueError("measures: expected at least one measure, got none.")
    names = [measure_name(part.measure if isinstance(part, On) else part) for part in flat]
    if isinstance(tolerance, Mapping):
        strangers = [key for key in tolerance if ALIASES.get(key, key) not in names]
        if strangers:
            raise ValueError(f"tolerance: got {strangers[0]!r}; the measures asked are {names}.")
    return tuple(_asked(part, tolerance, tuple(attributes)) for part in flat)


def _flatten(measures: Any) -> list[Any]:
    """One level list of measures; a pair (c0, C) and a name are single measures."""
    is_pair = isinstance(measures, tuple) and any(hasattr(part, "shape") for part in measures)
    if isinstance(measures, (list, tuple)) and not is_pair:
        return [single for part in measures for single in _flatten(part)]
    return [measures]


def _asked(part: Any, tolerance: Any, attributes: tuple[str, ...]) -> AskedMeasure:
    measure, own, wanted = part, None, None
    if isinstance(part, On):
        measure = part.measure
        wanted = (part.attributes,) if isinstance(part.attributes, str) else tuple(part.attributes)
        own = part.epsilon or None
    elif isinstance(part, (Constraints, tuple)):
        wanted = attributes  # matrices fit one set of cells only: those of all attributes
    strangers = [name for name in wanted or () if name not in attributes]
    if strangers:
        raise ValueError(
            f"measures: got the attribute {strangers[0]!r}; the sensitive attributes are "
            f"{list(attributes)}."
        )
    is_own = isinstance(measure, (Constraints, tuple)) or callable(measure)
    if not is_own and measure not in [*MEASURES, *ALIASES]:
        raise ValueError(
            f"measures: got {measure!r}; expected one of {[*MEASURES, *ALIASES]}, a function from "
            "Groups to Constraints, Constraints, a pair (c0, C), an On, or a list of these."
        )
    compared = () if wanted is None else (wanted,)
    measure = ALIASES.get(measure, measure) if isinstance(measure, str) else measure
    return AskedMeasure(measure, compared, _tolerance(measure_name(measure), tolerance, own))


def _tolerance(name: str, tolerance: Any, own: float | None) -> float | str:
    """The tolerance named for this measure, else its own slack, else the common one."""
    default: float | str = FOUR_FIFTHS if name == "four_fifths_rule" else DEFAULT_TOLERANCE
    if isinstance(tolerance, Mapping):
        named = {ALIASES.get(key, key): value for key, value in tolerance.items()}
        chosen: Any = named.get(name, own)
    else:  # a common number is about levels, not ratios
        chosen = tolerance if own is None and default != FOUR_FIFTHS else own
    chosen = default if chosen is None else chosen
    if chosen != FOUR_FIFTHS and not (is_number(chosen) and 0 <= chosen <= 1):
        raise ValueError(
            f"tolerance: expected a number from 0 to 1 or {FOUR_FIFTHS!r}, got {chosen!r}."
        )
    return chosen if isinstance(chosen, str) else float(chosen)


def _desirable(labels: list[Any], y_desirable: Any) -> tuple[int, ...]:
    """Indices of the desirable labels; of two labels one says whose rates are meant."""
    found = desirable_labels(labels, y_desirable)
    if len(labels) == 2 and len(found) != 1:
        wanted = [labels[index] for index in found]
        raise ValueError(f"y_desirable: expected one of the two labels {labels}, got {wanted}.")
    return found
