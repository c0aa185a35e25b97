"""The audit: how fair given predictions are, how sure that is, and who pays."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit import comparisons, record, sections, words
from fairgrad.audit.changes import Change, count_moves
from fairgrad.audit.counts import (
    CountTable,
    RowCounts,
    counts_frame,
    predicted_labels,
    read_counts,
    read_rows,
)
from fairgrad.audit.intervals import least_holding
from fairgrad.audit.scores import check_scores, score_frames
from fairgrad.audit.verdicts import UNDECIDED, Finding, gravest, sharing_error
from fairgrad.checks import check_number
from fairgrad.columns import as_columns
from fairgrad.groups import MIN_GROUP, GroupedRows, judged_groups, least_rows
from fairgrad.measures import desirable_labels, uses_desirable
from fairgrad.membership import Membership
from fairgrad.text import Section, ShownAndWritten, as_markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit.compare import AuditComparison
    from fairgrad.audit.impact import ImpactTable
    from fairgrad.audit.subgroups import SubgroupSearch
    from fairgrad.groups import Floats, Groups, Ints
    from fairgrad.membership import PartlyKnown


class Audit(ShownAndWritten):
    """Measures how fair the predictions of any classifier are, with intervals and verdicts.

    Args:
        y_true: one true label per row; two labels or more. None if they are not known: the audit
            then compares who is selected, and refuses measures that need true labels.
        y_pred: one predicted label per row.
        sensitive_features: one column, or a table or mapping with one column per attribute. With
            several, groups are compared by each attribute alone and by all combinations. Rows
            with a missing value, or the integer -1, are counted and set aside.
        measures: the measures of the verdict: names, or others as in `fairgrad.torch.FairLoss`.
            Default: demographic parity, equalized odds, equality of opportunity (if a desirable
            label is known), accuracy parity. Without true labels: demographic parity, and the
            four-fifths rule if one desirable label is known.
        tolerance: the largest absolute level that is fair; "80%" for the four-fifths rule on
            demographic parity; or a mapping from measures to either. Measures with
            bounds are judged by these.
        confidence: the confidence level of every interval and verdict.
        baseline: predictions of another model for the same rows, to compare with.
        y_score: scores the predictions come from: (N,) of the desirable label, or (N, L). They are
            compared by group (AUC, calibration, distribution).
        sample_weight: one weight per row; intervals are approximate then.
        cluster: one value per row, the same for rows that are not independent, such as several of
            one person; intervals are wider then, and approximate.
        membership: if a sensitive attribute is known for only some rows: how likely each row has
            each of its values, as an array, a data frame or a `fairgrad.membership.Membership`.
            Rows of unknown value then count in all groups. The rows whose value is known must be a
            random sample: they correct the errors of the probabilities.
        y_desirable: the desirable label or labels; by default the second of two in sorted order.
            With more labels there is no default, and measures that need one raise an error.
        labels: all possible labels; by default those in y_true.
        threshold: the score at which the model was trained to switch (0.5 for probabilities);
            None if it is not known.
        others: further measures, shown beside the verdict but not part of it.
        min_group: groups with fewer rows are shown with their counts and not judged; below 1 a
            share of the rows, 0 to judge all. If fewer than two groups have enough rows, all are
            judged.
        reference: the group to compare all others with, instead of the mean over all rows: one of
            the attribute's values, or a mapping from attributes to values.
        baseline_name: what to call the baseline, such as "plain model".
        remarks: further sentences about the rows, shown with the warnings.

    Attributes:
        labels: all labels, sorted.
        label_values: (L + 1,) the same as objects; None at -1, for figures of no label.
        findings: one `Finding` per measure and attribute (or crossing), those of the verdict
            first.
        asked: the findings that the verdict is about.
        accuracy: the share of right predictions over all rows; NaN if true labels are not known.
        warnings: what to know before trusting the figures.
        views: the count tables by attribute.
        judged: by attribute, (G,) which groups have enough rows to be judged.
        least_rows: by attribute, the number of rows that a group needs to be judged.
        rows: labels and groups of the rows, as small integers.
        predicted: (N,) the index of each row's predicted label.
        target: what is predicted: the name of the true labels.
        desirable: the desirable labels.
        desirable_indices: their indices.
        shown_labels: indices of the labels whose rates are shown: of two labels only the desirable
            one.
        wanted: the measures asked for, and those beside them, with their tolerances.

    Raises:
        ValueError: if the input cannot be audited; the message names the argument and the reason.

    Example:
        >>> audit = Audit([0, 1, 0, 1] * 50, [0, 1, 1, 1] * 50, ["F", "F", "M", "M"] * 50,
        ...               measures="accuracy_parity")
        >>> audit.verdict
        'unfair'
        >>> print(audit.conclusion)  # doctest: +NORMALIZE_WHITESPACE
        F and M are predicted correctly at different rates: 100.0 % and 50.0 %. The rate of F is 25
        points above the overall rate, 75.0 %. Up to 5 points are tolerated, so the model is judged
        unfair (95 % confidence, 200 rows). It would be judged fair only at a tolerance of 30.3
        points: groups differ too much, or are too small, for a claim of fairness.
        Accuracy is 75.0 %.
        >>> audit.to_frame("levels")[["name", "level"]].values.tolist()
        [['sensitive_features=F', 0.25], ['sensitive_features=M', -0.25]]
    """

    def __init__(
        self,
        y_true: Any = None,
        y_pred: Any = None,
        sensitive_features: Any = None,
        measures: Any = None,
        tolerance: Any = comparisons.DEFAULT_TOLERANCE,
        confidence: float = 0.95,
        baseline: Any = None,
        y_score: Any = None,
        *,
        sample_weight: Any = None,
        cluster: Any = None,
        membership: Any = None,
        y_desirable: Any = None,
        labels: Any = None,
        threshold: float | None = 0.5,
        others: Any = (),
        min_group: float = MIN_GROUP,
        reference: Any = None,
        baseline_name: str = "the baseline",
        remarks: Sequence[str | words.Notice] = (),
    ) -> None:
        check_number("confidence", confidence, above=0, below=1)
        check_number("min_group", min_group)
        for name, argument in (("y_pred", y_pred), ("sensitive_features", sensitive_features)):
            if argument is None:
                raise ValueError(f"{name}: expected one value per row, got None.")
        self.has_labels = y_true is not None
        labelled, argument = (y_true, "y_true") if self.has_labels else (y_pred, "y_pred")
        rows = read_rows(labelled, sensitive_features, sample_weight, labels, argument)
        predicted = predicted_labels(rows, y_pred, "y_pred") if self.has_labels else rows.label
        self.labels = labels = rows.groups.labels.tolist()
        self.label_values = np.asarray([*labels, None], dtype=object)
        self.desirable_indices = desirable_labels(labels, y_desirable)
        self.desirable = [labels[index] for index in self.desirable_indices]
        if len(labels) == 2 and len(self.desirable) != 1:
            raise ValueError(
                f"y_desirable: expected one of the two labels {labels}, got {self.desirable}."
            )
        # The rates of one of two labels determine those of the other.
        self.shown_labels = self.desirable_indices if len(labels) == 2 else range(len(labels))
        known = comparisons.DEFAULT_MEASURES if self.has_labels else comparisons.WITHOUT_LABELS
        enough = bool(self.desirable) if self.has_labels else len(self.desirable) == 1
        usual = [name for name in known if enough or not uses_desirable(name)]
        left_out = set(known) - set(usual) if measures is None else set()
        self.wanted = comparisons.asked_measures(
            usual if measures is None else measures, others, tolerance, rows.groups.attributes
        )
        self.baseline_name, self.target = baseline_name, rows.groups.label_name
        self.counts = sample_weight if isinstance(sample_weight, RowCounts) else None
        # How many rows each row stands for.
        self.times = np.ones(len(rows)) if self.counts is None else self.counts.times
        self.cluster = None if cluster is None else _cluster_codes(cluster, len(rows))
        self.reference = {} if reference is None else _reference_values(reference, rows.groups)
        columns = as_columns(sensitive_features, "sensitive_features")
        self.partly: tuple[PartlyKnown, Membership] | None = None
        if membership is not None:
            if self.cluster is not None or self.counts is not None:
                raise ValueError("membership: cannot be combined with cluster or with counts.")
            membership = Membership.of(membership)
            self.partly = membership.read(columns), membership
        self.confidence, self.alpha, self.min_group = confidence, 1.0 - confidence, min_group
        self.score: Floats | None = None
        self.subgroups: SubgroupSearch | None = None
        self.baseline: Audit | None = None
        self.warnings: tuple[words.Notice, ...] = ()
        other = None if baseline is None else predicted_labels(rows, baseline, "baseline")
        self._judge(rows, predicted, other)
        if other is not None:
            self.baseline = self._of(other)
        if y_score is not None:
            self.score = check_scores(y_score, len(rows), len(labels))
        guessed = self.desirable if y_desirable is None else []
        finest = self.views[" x ".join(self.attributes)]
        n_clusters = 0 if self.cluster is None else len(np.unique(self.cluster))
        notices = [
            *(note if isinstance(note, words.Notice) else ("remark", note) for note in remarks),
            ("desirable", words.doubtful_desirable(guessed, self.target, labels)),
            ("desirable", words.left_out(left_out, len(labels)) if left_out else ""),
            ("constant", words.constant_predictions(finest)),
            ("levelling_down", "" if other is None else words.levelling_down(self)),
            ("unknown", words.unknown_values(self)),
            ("empty", words.empty_groups(columns, finest)),
            ("tolerance", words.wide_tolerance(self)),
            ("not_judged", words.not_judged(self)),
            ("remark", words.all_judged(self)),
            ("strata", words.single_group_strata(self)),
            ("weights", words.WEIGHTS if self.rows.weight is not None else ""),
            ("clusters", words.CLUSTERS.format(n_clusters) if n_clusters else ""),
            ("threshold", "" if y_score is None else words.other_threshold(self, threshold)),
        ]
        self.warnings = tuple(words.Notice(*notice) for notice in notices if notice[1])

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        target: str | None,
        prediction: str,
        sensitive_features: str | Sequence[str],
        *,
        count: str = "count",
        weight: str | None = None,
        squared_weight: str | None = None,
        baseline: str | None = None,
        **options: Any,
    ) -> Audit:
        """Audits rows that were counted where they are stored, such as by a database.

        The result is that of the rows themselves. ``SELECT sex, hired, predicted, count(*) AS
        count FROM people GROUP BY sex, hired, predicted`` is all that is needed of a billion rows.

        Args:
            counts: a frame of any library, one row per combination of values; a combination may
                stand in several rows.
            target: the column of true labels; None if they are not known.
            prediction: the column of predicted labels.
            sensitive_features: one column or several.
            count: the column with the number of rows that have these values.
            weight: the column with the sum of their sample weights, if rows have weights.
            squared_weight: the column with the sum of the squared weights, on which the width of
                intervals rests; needed with `weight`.
            baseline: the column of another model's predictions, to compare with.
            options: as `Audit` takes them (`measures`, `tolerance`, ...); `sample_weight` and
                `y_score` need rows.

        Raises:
            TypeError: if `counts` is no frame.
            ValueError: if a column is missing, a count is no whole number of at least 0, or the
                counts cannot be audited.

        Example:
            >>> import pandas as pd
            >>> counts = pd.DataFrame({
            ...     "sex": ["F", "F", "M", "M"], "hired": [0, 1, 0, 1], "predicted": [0, 1, 1, 1],
            ...     "count": [50_000_000] * 4})
            >>> audit = Audit.from_counts(counts, "hired", "predicted", "sex")
            >>> audit
            <Audit of 200,000,000 rows by sex: unfair>
        """
        for name in ("sample_weight", "y_score", "cluster"):
            if options.get(name) is not None:
                raise ValueError(f"{name}: expected None, as counts have no single rows.")
        further = {
            "count": count,
            "weight": weight,
            "squared_weight": squared_weight,
            "baseline": baseline,
        }
        columns = read_counts(counts, target, prediction, sensitive_features, further)
        return cls(**columns, **options)

    def to_counts(self) -> pd.DataFrame:
        """The rows counted by sensitive values, label and prediction, for `from_counts`.

        Columns are the sensitive attributes, the target, "prediction" (without true labels it has
        the name of the predictions), "baseline" (if there is one), "count", and with sample
        weights "weight" and "squared_weight".
        """
        return counts_frame(self)

    def _judge(self, rows: GroupedRows, predicted: Ints, other: Ints | None) -> None:
        """Counts these predictions and judges them; `other` are those they are compared with."""
        # Kept for comparisons with other predictions; small integers, as there may be many rows.
        small = (np.min_scalar_type(n) for n in rows.groups.mass.shape)
        label, group = (c.astype(t) for c, t in zip((rows.label, rows.group), small, strict=True))
        self.rows = replace(rows, label=label, group=group)
        self.predicted = predicted.astype(label.dtype)
        self.table = CountTable.from_rows(
            rows, predicted, counts=self.counts, has_labels=self.has_labels, cluster=self.cluster
        )
        # What `to_frame` has computed: terminal, page, card and JSON show the same figures.
        self._frames: dict[str, pd.DataFrame] = {}
        self.counted_rows = self.rows
        if self.partly is not None:
            from fairgrad.audit.known import soft_counts  # noqa: PLC0415 - most groups are known

            self.table, self.counted_rows = soft_counts(
                self.table, rows, predicted, *self.partly, other
            )
        self.is_weighted = self.counted_rows.weight is not None
        self.attributes: tuple[str, ...] = self.table.groups.attributes
        view_keys = list(dict.fromkeys([*((n,) for n in self.attributes), self.attributes]))
        self.views: dict[str, CountTable] = {
            " x ".join(key): self.table.view(*key) for key in view_keys
        }
        for by, view in self.views.items():
            present = np.flatnonzero(view.mass.sum(axis=(1, 2)) > 0)
            if len(present) < 2:
                names = words.short_names(view.groups)
                only = f"the value {names[present[0]]!r}" if len(present) else "unknown values"
                raise ValueError(
                    f"sensitive_features ({by}): fairness compares at least two groups, got "
                    f"{only} alone (rows of weight 0 do not count)."
                )
        views, least = self.views.items(), self.min_group
        self.judged = {by: judged_groups(view.size, least) for by, view in views}
        self.least_rows = {by: least_rows(view.n_rows, least) for by, view in views}
        # Each finding's measure, the attributes whose groups it compares, and if it is asked for.
        self._plan: list[tuple[comparisons.AskedMeasure, tuple[str, ...], bool]] = []
        seen = set()
        for measures, is_asked in zip(self.wanted, (True, False), strict=True):
            for measure in measures:
                for key in measure.attributes or view_keys:
                    name = measure.name if isinstance(measure.measure, str) else id(measure.measure)
                    identity = (name, key, measure.strata)
                    if is_asked or identity not in seen:
                        self._plan.append((measure, key, is_asked))
                    seen.add(identity)
        findings = [self._find(*planned) for planned in self._plan]
        self.findings: tuple[Finding, ...] = tuple(sharing_error(findings))
        self.asked = tuple(finding for finding in self.findings if finding.is_asked)
        right = self.table.mass.sum(axis=0)
        self.accuracy = float(right.trace() / right.sum()) if self.has_labels else float("nan")

    def findings_of(self, table: CountTable) -> list[Finding]:
        """The findings of the verdict if the counts were these."""
        return [self._find(*planned, table=table) for planned in self._plan if planned[-1]]

    def _find(
        self,
        asked: comparisons.AskedMeasure,
        attributes: tuple[str, ...],
        is_asked: bool,
        *,
        table: CountTable | None = None,
        unknown: int = -1,
    ) -> Finding:
        name, both = " x ".join(attributes), (*attributes, *asked.strata)
        view = self.views.get(" x ".join(both)) if table is None and unknown < 0 else None
        table = self.table if table is None else table
        view = table.view(*both, unknown=unknown) if view is None else view
        view = view.compared(judged_groups(view.size, self.min_group))
        reference = self.reference_group(view, name) if self.reference else -1
        if asked.strata:
            if reference >= 0:
                raise ValueError("reference: within strata, groups are compared with their mean.")
            name = f"{name} given {' x '.join(asked.strata)}"
            everyone = table.view(*asked.strata).groups.names
            comparison = comparisons.compare_within(
                asked.measure, view, self.desirable_indices, attributes, asked.strata, everyone
            )
        else:
            comparison = comparisons.compare(asked.measure, view, self.desirable_indices, reference)
        rule = asked.rule(comparison)
        return Finding(asked.name, name, view, comparison, rule, self.alpha, is_asked)

    def reference_group(self, view: CountTable, name: str) -> int:
        """The index of the reference group in a view; -1 for the mean over all rows.

        Raises:
            ValueError: if the reference group has too few rows.
        """
        attributes = view.groups.attributes
        if any(attribute not in self.reference for attribute in attributes):
            return -1
        columns = [view.groups.column(place).astype(str) for place in range(len(attributes))]
        wanted = [self.reference[attribute] for attribute in attributes]
        place = np.flatnonzero(
            np.logical_and.reduce([c == v for c, v in zip(columns, wanted, strict=True)])
        )
        if not len(place):
            raise ValueError(
                f"reference: {', '.join(wanted)} ({name}) has too few rows to compare others with; "
                f"at least {least_rows(view.n_rows, self.min_group):,} are needed (min_group)."
            )
        return int(place[0])

    def if_unknown(self, finding: Finding) -> tuple[str, str] | None:
        """The verdicts if all rows of unknown group were in the worst-off or the best-off group.

        None without such rows, and for measures that do not compare groups.
        """
        attributes = finding.table.groups.attributes
        name = " x ".join(attributes)
        is_simple = name == finding.attribute and finding.comparison.group.max() >= 0
        if not is_simple or finding.extremes is None or self.partly is not None:
            return None
        view = self.views[name] if name in self.views else self.table.view(*attributes)
        if view.n_rows == self.table.n_rows:
            return None
        planned, names = self._plan[self.findings.index(finding)], view.groups.names
        groups = (finding.table.groups.names[finding.comparison.group[j]] for j in finding.extremes)
        worst, best = (self._find(*planned, unknown=names.index(group)).verdict for group in groups)
        return worst, best

    def if_different(self, difference: float) -> list[Finding]:
        """The findings if groups are not missing at random.

        Args:
            difference: by how much, among rows with the same label and prediction, the share of
                each group among those of unknown group may differ from what the known rows say.

        Raises:
            ValueError: if all groups are known.
        """
        if self.table.soft is None:
            raise ValueError("difference: the groups of all rows are known, so none can differ.")
        table = replace(self.table, soft=self.table.soft._replace(difference=difference))
        return sharing_error(self.findings_of(table))

    @cached_property
    def largest_difference(self) -> float:
        """Up to which difference, as in `if_different`, the verdict stays what it is; up to 1."""

        def turns(difference: float) -> bool:
            return gravest(f.verdict for f in self.if_different(difference)) != self.verdict

        least = np.inf if self.verdict == UNDECIDED else least_holding(turns, 0.0, 1.0)
        return float(np.clip(least - 1e-3, 0.0, 1.0))

    def _of(self, predicted: Ints) -> Audit:
        """The same audit of other predictions, without scores and warnings."""
        other = copy(self)
        for name in [n for n in vars(self) if isinstance(vars(Audit).get(n), cached_property)]:
            del vars(other)[name]
        other.baseline = other.score = other.subgroups = None
        other.warnings = ()
        other._judge(self.rows, predicted, self.predicted)  # noqa: SLF001 - its own class
        return other

    def compare(
        self, other: Any, *, names: tuple[str, str] = ("first", "second")
    ) -> AuditComparison:
        """Compares another system with this one on the same rows.

        Args:
            other: its predictions.
            names: what to call this system and the other.
        """
        from fairgrad.audit.compare import AuditComparison  # noqa: PLC0415 - it imports this module

        second = self._of(predicted_labels(self.rows, other, "other"))
        second.baseline, second.baseline_name = self, names[0]
        kept = [warning for warning in self.warnings if warning.kind not in words.ABOUT_PREDICTIONS]
        levelled = words.levelling_down(second)
        second.warnings = (*kept, *([words.Notice("levelling_down", levelled)] if levelled else []))
        return AuditComparison(second, names)

    def worst_subgroups(self, columns: Any = None, **options: Any) -> SubgroupSearch:
        """Searches conjunctions of a few columns for the largest gaps: where to look.

        Subgroups are found in one half of the rows, and their gaps are measured in the other half.
        Summary, JSON and report then show them. The verdict does not change.

        Args:
            columns: further columns to make conditions of, one value per row: a table or a mapping;
                the sensitive attributes are searched as well. Numbers with more than ten values are
                cut into five bins with as many rows each.
            options: `measure` (what gaps are of; all measures asked for), `k` (the most
                conditions, 3), `top` (how many subgroups to list, 10), `min_group` (the fewest
                rows of a subgroup in the half searched; the audit's) and `random_state` (of the
                split in halves, 0).

        Raises:
            ValueError: if a column has another number of rows, a number is out of its range, or
                the measure cannot be searched by.
        """
        from fairgrad.audit.subgroups import worst_subgroups  # noqa: PLC0415 - only for searches

        if self.counts is not None:
            raise ValueError("columns: a search needs the rows themselves, not their counts.")
        self.subgroups = worst_subgroups(self, columns, **options)
        self._frames.pop("subgroups", None)
        return self.subgroups

    @property
    def verdict(self) -> str:
        """The gravest verdict on the measures asked for."""
        return gravest(finding.verdict for finding in self.asked)

    @property
    def conclusion(self) -> str:
        """What was found in a few sentences: rates, verdict, accuracy."""
        return " ".join(sections.conclusion(self))

    @property
    def sections(self) -> tuple[Section, ...]:
        """Everything the audit says, as plain data: what report, JSON and terminal show."""
        return sections.sections(self)

    @property
    def brief(self) -> Section:
        """What fits one screen: the conclusion, the rates of every group and the warnings."""
        return sections.brief(self)

    @property
    def risks(self) -> list[str]:
        """Bias, risks and limitations in sentences, for a model card."""
        return sections.risks(self)

    @cached_property
    def score_frames(self) -> dict[str, pd.DataFrame]:
        """What the scores say, by label; of two labels the desirable one alone.

        No rows without scores, without true labels to compare them with, and of counted rows.
        """
        return score_frames(self)

    @cached_property
    def moves(self) -> list[CountTable] | None:
        """The rows whose prediction differs from the baseline's; None without a baseline."""
        if self.baseline is None:
            return None
        rows, both = self.counted_rows, (self.baseline.predicted, self.predicted)
        if self.partly is None or rows.weight is None:
            return count_moves(rows, self.times, *both)
        before, after = (np.repeat(column, len(rows) // len(self.rows)) for column in both)
        return count_moves(rows, rows.weight, before, after)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Every finding before and after, if there is a baseline."""
        if self.baseline is None or self.moves is None:
            return ()
        changes = []
        for before, after in zip(self.baseline.findings, self.findings, strict=True):
            groups = after.table.groups
            tables = [table.view(*groups.attributes) for table in self.moves]
            compared = np.isin(tables[0].groups.names, groups.names)
            changes.append(Change(before, after, [table.take(compared) for table in tables]))
        return tuple(changes)

    @cached_property
    def impact_table(self) -> ImpactTable | None:
        """Impact ratios of all categories, if some verdict is about ratios of selection rates.

        None if none is, or if rows have weights or clusters: it counts independent people.
        """
        wanted = any(finding.tolerance.kind == "ratio" for finding in self.findings)
        if not wanted or self.is_weighted or self.cluster is not None:
            return None
        from fairgrad.audit.impact import ImpactTable  # noqa: PLC0415 - it imports this module

        return ImpactTable.from_audit(self)

    def to_frame(self, kind: str = "rates") -> pd.DataFrame:
        """The figures as a data frame.

        Args:
            kind: "rates" (per group, with intervals), "groups" (sizes), "levels", "verdicts",
                "figures" (differences and ratios), "confusion" (rows by true and predicted label),
                "changes" (against the baseline), "sides" (rows whose prediction differs from the
                baseline's), "scores" (AUC and calibration gap by group), "roc", "calibration" or
                "subgroups" (from `worst_subgroups`).

        Raises:
            ValueError: if there is no such kind, or no baseline to compare with.
        """
        if kind not in record.FRAMES:
            raise ValueError(f"kind: expected one of {list(record.FRAMES)}, got {kind!r}.")
        if kind not in self._frames:
            self._frames[kind] = record.FRAMES[kind](self)
        return self._frames[kind].copy()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with a schema version; NaN becomes None."""
        return record.to_dict(self)

    def record(self) -> dict[str, Any]:
        """`to_dict` with the hash of the rows, date and versions: a record to be kept in a file.

        `audit_schema` is the JSON Schema of what it holds.
        """
        return record.record(self)

    def to_markdown(self) -> str:
        """A section for a model card."""
        verdicts = sections.verdict_blocks(self)
        return as_markdown(self.brief._replace(blocks=(*self.brief.blocks, *verdicts)))

    def __repr__(self) -> str:
        return (
            f"<Audit of {self.table.n_rows:,} rows by {', '.join(self.attributes)}: {self.verdict}>"
        )


def _reference_values(reference: Any, groups: Groups) -> dict[str, str]:
    """The value of each attribute that others are compared with, as a text."""
    if not isinstance(reference, Mapping):
        if len(groups.attributes) > 1:
            raise ValueError(
                f"reference: expected a mapping from attributes to values, as there are "
                f"{len(groups.attributes)} attributes, got {reference!r}."
            )
        reference = {groups.attributes[0]: reference}
    for name, value in reference.items():
        if name not in groups.attributes:
            raise ValueError(
                f"reference: got the attribute {name!r}; there are {list(groups.attributes)}."
            )
        known = [str(v) for v in groups.values[groups.attributes.index(name)]]
        if str(value) not in known:
            raise ValueError(
                f"reference: got {value!r}, which is not a value of {name}; the values are "
                f"{words.listed(known, most=12)}."
            )
    return {name: str(value) for name, value in reference.items()}


def _cluster_codes(cluster: Any, n_rows: int) -> Ints:
    """(N,) the number of each row's cluster; a row without a value is one by itself."""
    (column,) = as_columns(cluster, "cluster").values()
    codes, values = pd.factorize(np.asarray(column, dtype=object))
    if len(codes) != n_rows:
        raise ValueError(f"cluster: expected one value per row ({n_rows}), got {len(codes)}.")
    alone = codes < 0
    return np.where(alone, len(values) + np.cumsum(alone), codes)
