"""The audit: how fair given predictions are, how sure that is, and who pays."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import export, frames, markdown, notices, summary
from fairgrad.audit.changes import Change
from fairgrad.audit.figures import Figure, figures_of
from fairgrad.audit.findings import Finding, findings_of
from fairgrad.audit.inputs import Rows, read_rows
from fairgrad.audit.scores import threshold_warning
from fairgrad.audit.settings import DEFAULT_TOLERANCE, Asked, asked_measures, desirable_labels
from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pandas as pd

    from fairgrad.audit.notices import Notice
    from fairgrad.audit.table import Table


class Audit:
    """How fair the predictions of any classifier are, and how sure that is.

    Args:
        y_true: one true label per row; two labels or more.
        y_pred: one predicted label per row.
        sensitive_features: one column, or a table or mapping with one column per attribute. With
            several, groups are compared by each attribute alone and by all of them crossed. Rows
            with a missing value, or the integer -1, are counted and set aside.
        measures: names, or anything `fairgrad.measures.constraints_of` takes. Default: demographic
            parity, equalized odds, equality of opportunity, accuracy parity.
        tolerance: the largest absolute level still called fair; "four_fifths" for the 80 % rule on
            demographic parity; or a mapping from measures to either. Measures with bounds of their
            own are judged by these.
        confidence: of every interval and verdict.
        baseline: predictions of another model for the same rows, or its audit, to compare with.
        y_score: scores the predictions come from, to check the threshold.
        sample_weight: one weight per row; intervals are approximate then.
        y_desirable: the desirable label or labels; by default 1.
        labels: all labels there are; by default those in y_true.
        threshold: the score at which the model was trained to switch (0.5 for probabilities).

    Attributes:
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
        if not 0 < confidence < 1:
            raise ValueError(f"confidence: expected a number between 0 and 1, got {confidence!r}.")
        rows = read_rows(y_true, sensitive_features, sample_weight, labels)
        predicted = rows.predictions(y_pred, "y_pred")
        asked = asked_measures(measures, tolerance, rows.groups.attributes)
        desirable = desirable_labels(y_desirable, rows.groups.labels)
        self._set_up(rows.table(predicted), asked, desirable, confidence, rows.weight is not None)
        self.baseline: Audit | None = self._audit_of_baseline(baseline, rows)
        self.warnings: tuple[Notice, ...] = self._warnings(rows)
        if y_score is not None:
            positive = desirable[0] if desirable else 0
            said = threshold_warning(y_score, predicted, positive, self.table.n_labels, threshold)
            self.warnings += (notices.Notice("threshold", said),) if said else ()

    def _set_up(
        self,
        table: Table,
        asked: tuple[Asked, ...],
        desirable: tuple[int, ...],
        confidence: float,
        is_weighted: bool,
    ) -> None:
        self.table, self.confidence, self.is_weighted = table, confidence, is_weighted
        self._asked, self._desirable = asked, desirable
        attributes = table.groups.attributes
        self.attributes: tuple[str, ...] = attributes
        keys = [(name,) for name in attributes]
        self._view_keys: list[tuple[str, ...]] = [*keys, *([attributes] if len(keys) > 1 else [])]
        self.views: dict[str, Table] = {" x ".join(k): table.view(*k) for k in self._view_keys}
        self._check_comparable()
        self.findings: tuple[Finding, ...] = findings_of(
            table, asked, self._view_keys, desirable, self.alpha
        )
        self.baseline, self.warnings = None, ()

    def _check_comparable(self) -> None:
        for name, view in self.views.items():
            present = int((view.mass.sum(axis=(1, 2)) > 0).sum())
            if present < 2:
                raise ValueError(
                    f"sensitive_features ({name}): fairness compares at least two groups, but only "
                    f"{present} has rows with known values and weight."
                )

    def _audit_of_baseline(self, baseline: Any, rows: Rows) -> Audit | None:
        if baseline is None:
            return None
        if isinstance(baseline, Audit):
            table = baseline.table
            self._check_same_rows(table)
        else:
            table = rows.table(rows.predictions(baseline, "baseline"))
        other = Audit.__new__(Audit)
        other._set_up(table, self._asked, self._desirable, self.confidence, self.is_weighted)  # noqa: SLF001 - its own class
        return other

    def _check_same_rows(self, table: Table) -> None:
        own, other = self.table, table
        same = (
            own.groups.labels.tolist() == other.groups.labels.tolist()
            and own.groups.names == other.groups.names
            and np.allclose(own.mass.sum(axis=2), other.mass.sum(axis=2))
        )
        if not same:
            raise ValueError(
                "baseline: expected an audit of the same rows; labels, groups or their numbers of "
                "rows differ."
            )

    def _warnings(self, rows: Rows) -> tuple[Notice, ...]:
        finest = self.views[" x ".join(self.attributes)]
        found = notices.constant_predictions(finest)
        found += notices.levelling_down(self.changes)
        found += notices.unknown_values(self.table, self.attributes)
        found += notices.empty_groups(rows.empty, finest)
        found += notices.tiny_cells(finest)
        if self.is_weighted:
            said = "Rows have weights: intervals rest on effective sizes and are approximate."
            found.append(notices.Notice("weights", said))
        return tuple(found)

    @property
    def alpha(self) -> float:
        """1 - confidence."""
        return 1.0 - self.confidence

    @property
    def labels(self) -> list[Any]:
        """All labels."""
        values: list[Any] = self.table.groups.labels.tolist()
        return values

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
        found = {finding.verdict for finding in self.findings}
        return next((v for v in (UNFAIR, UNDECIDED) if v in found), FAIR)

    @cached_property
    def figures(self) -> dict[str, list[Figure]]:
        """Differences and ratios by their known names, by attribute."""
        return {
            name: figures_of(view, self.shown_labels, self.alpha)
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
        makers = {
            "rates": lambda: frames.rates_frame(self),
            "groups": lambda: frames.groups_frame(self),
            "levels": lambda: frames.levels_frame(self.findings),
            "verdicts": lambda: frames.verdicts_frame(self.findings),
            "figures": lambda: frames.figures_frame(self),
            "changes": lambda: frames.changes_frame(self),
        }
        if kind not in makers:
            raise ValueError(f"kind: expected one of {list(makers)}, got {kind!r}.")
        return makers[kind]()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with a schema version; NaN becomes None."""
        return export.to_dict(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, also written to a file if a path is given."""
        return export.to_json(self, path)

    def to_markdown(self) -> str:
        """A section for a model card."""
        return markdown.to_markdown(self)

    def summary(self, width: int = 80) -> str:
        """A readable overview as plain text; ``rich.print(audit)`` shows it in colour."""
        return summary.as_text(self, width)

    def __rich__(self) -> Any:
        return summary.renderable(self)

    def __repr__(self) -> str:
        rows = int(self.table.size.sum())
        return f"<Audit of {rows:,} rows by {', '.join(self.attributes)}: {self.verdict}>"
