"""The impact table: who is selected how often, as New York's Local Law 144 and the EEOC ask for it.

Per category of every attribute, and per intersection of all of them: number, share, selected,
selection rate, and the impact ratio, which is the selection rate divided by that of the most
selected category (6 RCNY 5-300; 29 CFR 1607.4 D). Tools that give scores have scoring rates in
place of selection rates: the share above the median score of everyone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from fairgrad.audit import words
from fairgrad.audit.audit import Audit
from fairgrad.audit.intervals import Proportion, impact_ratios, limited, ratio_high, ratio_low
from fairgrad.audit.record import plain_values
from fairgrad.audit.scores import as_scores
from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR
from fairgrad.columns import counted
from fairgrad.files import write_whole
from fairgrad.groups import judged_groups, least_rows
from fairgrad.text import Block, Section, ShownAndWritten

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from fairgrad.audit.counts import CountTable
    from fairgrad.groups import Ints

MIN_SHARE = 0.02
"""Categories of a smaller share may be left out of the impact ratios: 6 RCNY 5-301 (d)."""
FOUR_FIFTHS_RATIO = 0.8
ABOVE, NOT_ABOVE = "above the median", "not above the median"
UNKNOWN_CATEGORY = "unknown"
COLUMNS = ["attribute", "label", "category", "number", "share", "selected", "rate", "rate_low"]
COLUMNS += ["rate_high", "impact_ratio", "ratio_low", "ratio_high", "below_four_fifths"]
COLUMNS += ["standard_deviations", "fisher_p", "set_aside"]
LEAST_P = 0.0005
"""Smaller ones would be shown as 0.000."""
RATIOS = (
    "The impact ratio is the {rate} divided by that of the most selected category. Its interval "
    "holds for the ratio to the category that is most selected in truth, with {level}: multiple "
    "comparisons with the best (Hsu 1984) by MOVER limits (Donner and Zou 2012); upper limits "
    "share the error among the tables and all pairs of categories of each."
)
TESTS = (
    "SD: by how many standard deviations the category's rate differs from that of {against} if "
    "both were the same in truth; courts have looked at differences of more than two or three "
    "(Hazelwood v. United States, 1977). p: Fisher's exact test of the same, on both sides, times "
    "the number of {pairs} of its table and the number of tables."
)
GLOBAL = (
    "Global p-value {p}: if all categories were selected equally often in truth, a difference as "
    "large as the largest one here would occur with at most this probability."
)
REFERENCE = (
    "The impact ratio is the {rate} divided by that of {reference}. Tables without this category "
    "compare with the most selected one. Intervals hold with {level} (MOVER, Donner and Zou 2012); "
    "upper limits share the error."
)
N_METHOD = 2
"""The first notes explain how the figures are computed; the others, what they are about."""
CARE = (
    "A ratio below 0.8 is generally regarded as evidence of adverse impact (29 CFR 1607.4 D). It "
    "is not a finding of discrimination, and a higher ratio is not a finding of compliance."
)


@dataclass(frozen=True, eq=False)
class ImpactTable(ShownAndWritten):
    """Selection or scoring rates and impact ratios of all categories and intersections.

    Attributes:
        frame: one row per category: `attribute` (or several crossed), `label`, `category`,
            `number`, `share`, `selected`, `rate` with `rate_low` and `rate_high`, `impact_ratio`
            with `ratio_low` and `ratio_high`, `below_four_fifths`, `standard_deviations` and
            `fisher_p` (tests against the most selected category) and `set_aside`, the reason why a
            category has no impact ratio. People whose category is not known are a row "unknown".
        rate: "selection rate" or "scoring rate".
        n_rows: people assessed.
        confidence: of every interval.
        min_group: the share below which a category is set aside.
        median: the median score, of a scoring rate.
        reference: the category that rates are divided by; empty for the most selected category.

    Example:
        >>> table = ImpactTable.from_decisions(
        ...     [1] * 50 + [0] * 50 + [1] * 30 + [0] * 70, ["men"] * 100 + ["women"] * 100)
        >>> table.frame[["category", "number", "selected", "impact_ratio"]].values.tolist()
        [['men', 100, 50, 1.0], ['women', 100, 30, 0.6]]
        >>> scored = ImpactTable.from_scores(range(8), ["a"] * 4 + ["b"] * 4)
        >>> scored.median, scored.frame["rate"].tolist()
        (3.5, [0.0, 1.0])
    """

    frame: pd.DataFrame
    rate: str
    n_rows: int
    confidence: float
    min_group: float
    median: float | None = None
    reference: str = ""

    @classmethod
    def from_decisions(
        cls,
        y_pred: Any,
        sensitive_features: Any,
        *,
        y_desirable: Any = None,
        min_group: float = MIN_SHARE,
        confidence: float = 0.95,
        reference: Any = None,
    ) -> ImpactTable:
        """Of decisions: selection rates.

        Args:
            y_pred: one decision per person.
            sensitive_features: categories, as `Audit` takes them.
            y_desirable: the decision that means being selected; by default the second of two in
                sorted order, and of more each of them.
            min_group: categories of a smaller share (from 1 on: of fewer people) are set aside.
            confidence: of every interval.
            reference: the category to divide by; by default the most selected category.

        Raises:
            ValueError: if the input cannot be audited.
        """
        audit = Audit(
            y_pred=y_pred,
            sensitive_features=sensitive_features,
            y_desirable=y_desirable,
            confidence=confidence,
            measures="demographic_parity",
            min_group=min_group,
            reference=reference,
        )
        return cls.from_audit(audit)

    @classmethod
    def from_scores(cls, y_score: Any, sensitive_features: Any, **options: Any) -> ImpactTable:
        """Of scores: scoring rates, the share above the median score of everyone.

        Args:
            y_score: one score per person.
            sensitive_features: categories, as `Audit` takes them.
            options: `min_group`, `confidence` and `reference`, as in `from_decisions`.

        Raises:
            ValueError: if a score is missing, or none is above the median.
        """
        score = as_scores(y_score)
        if score.ndim != 1 or not len(score) or not np.isfinite(score).all():
            raise ValueError("y_score: expected one finite score per person.")
        median = float(np.median(score))
        if not (score > median).any():
            raise ValueError(
                f"y_score: no score is above the median, {median:.6g}, so there are no scoring "
                "rates to compare."
            )
        above = np.where(score > median, ABOVE, NOT_ABOVE)
        table = cls.from_decisions(above, sensitive_features, y_desirable=ABOVE, **options)
        return replace(table, rate="scoring rate", median=median)

    @classmethod
    def from_audit(cls, audit: Audit) -> ImpactTable:
        """Of the decisions of an audit; its groups that are not judged are set aside.

        Args:
            audit: with or without true labels. Its `min_group` decides which categories are
                compared; Local Law 144 allows 0.02.

        Raises:
            ValueError: if the audit has weights or clusters: it counts independent people.
        """
        if audit.is_weighted or audit.cluster is not None:
            raise ValueError(
                "sample_weight, cluster: an impact table counts independent people; audit without "
                "them."
            )
        views = dict(audit.views)
        if len(audit.attributes) > 2:  # the rule asks for sex by race, whatever else is recorded
            for pair in combinations(audit.attributes, 2):
                views[" x ".join(pair)] = audit.table.view(*pair)
        labels = audit.desirable_indices or range(len(audit.labels))
        rows = [
            row
            for name, view in views.items()
            for label in labels
            for row in _view_rows(audit, name, view, label, len(views) * len(labels))
        ]
        frame = pd.DataFrame(rows, columns=COLUMNS)
        # Labels, booleans and numbers unchanged: pandas would turn them into floats beside None.
        kinds: dict[str, Any] = dict.fromkeys(["label", "below_four_fifths"], object)
        for column, kind in {**kinds, "number": "Int64", "selected": "Int64"}.items():
            frame[column] = pd.Series([row.get(column) for row in rows], dtype=kind)
        reference = ", ".join(audit.reference.values())
        people, how = audit.table.n_rows, (audit.confidence, audit.min_group)
        return cls(frame, "selection rate", people, *how, reference=reference)

    @property
    def verdict(self) -> str:
        """By the four-fifths rule: unfair if the whole interval of a ratio is below 0.8.

        Fair within tolerance if all intervals are at least 0.8, else undecided.
        """
        compared = self.frame[self.frame["ratio_low"].notna()]
        if (compared["ratio_high"] < FOUR_FIFTHS_RATIO).any():
            return UNFAIR
        is_fair = len(compared) > 0 and (compared["ratio_low"] >= FOUR_FIFTHS_RATIO).all()
        return FAIR if is_fair else UNDECIDED

    @property
    def p_value(self) -> float:
        """The global p-value: the smallest one, corrected for all pairs; NaN without pairs.

        If all categories are alike in truth, it is below 0.05 in at most 5 % of tables.
        """
        return float(self.frame["fisher_p"].min())

    @property
    def notes(self) -> list[str]:
        """How to read it, who is set aside, and who is not known."""
        level = f"{100 * self.confidence:.4g} % confidence"
        ratios = REFERENCE if self.reference else RATIOS
        tests = TESTS.format(
            against=self.reference or "the most selected one",
            pairs="other categories" if self.reference else "pairs of categories",
        )
        notes = [ratios.format(rate=self.rate, level=level, reference=self.reference), tests, CARE]
        aside = self.frame[(self.frame["set_aside"] != "") & self.frame["rate"].notna()]
        for reason, rows in aside.groupby("set_aside", sort=False):
            pairs = zip(rows["attribute"], rows["category"], strict=True)
            names = list(dict.fromkeys(f"{a}: {c}" for a, c in pairs))
            notes.append(
                f"Set aside, without impact ratio, {reason}: {words.listed(names, most=12)}."
            )
        unknown = self.frame[self.frame["category"] == UNKNOWN_CATEGORY]
        unknown = unknown.drop_duplicates("attribute")
        for attribute, n in zip(unknown["attribute"], unknown["number"], strict=True):
            notes.append(f"{words.people_of(n)} assessed of unknown category, by {attribute}.")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        facts = ("confidence", "min_group", "median", "reference", "p_value")
        values = {
            "rate": self.rate,
            "rows": self.n_rows,
            **{name: getattr(self, name) for name in facts},
            "categories": [
                {name: None if pd.isna(value) else value for name, value in row.items()}
                for row in self.frame.to_dict(orient="records")
            ],
            "notes": self.notes,
        }
        plain: dict[str, Any] = plain_values(values)
        return plain

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table as CSV, also written to a file if a path is given."""
        text: str = self.frame.to_csv(index=False, lineterminator="\n")
        if path is not None:
            write_whole(Path(path), text)
        return text

    def blocks(self, notes: Sequence[str]) -> list[Block]:
        """One table per way of grouping, and these notes."""
        tables = []
        for (attribute, label), group in self.frame.groupby(["attribute", "label"], sort=False):
            rows = tuple(_cells(row) for row in group.to_dict(orient="records"))
            title = f"Impact ratios by {attribute} (selected means {label})"
            tables.append(Block(title, HEADS, rows))
        tables[-1] = tables[-1]._replace(sentences=notes)
        return tables

    @property
    def sections(self) -> tuple[Section, ...]:
        """The table that the law requires, and how to read it."""
        of = f" Their median score is {self.median:.6g}." if self.median is not None else ""
        opening = f"{words.people_of(self.n_rows)} were assessed.{of}"
        blocks = self.blocks(self.notes[N_METHOD:])
        method = Block("Intervals and tests", sentences=self.notes[:N_METHOD])
        title = f"{words.SIGNS[self.verdict]} {words.capitalized(self.verdict)}"
        return (
            Section("summary", title, (opening, *self._conclusion()), blocks),
            Section("method", "Method and definitions", (), (method,)),
        )

    @property
    def brief(self) -> Section:
        """The table, with all notes below it."""
        return self.sections[0]._replace(blocks=self.blocks(self.notes))

    def _conclusion(self) -> list[str]:
        """The lowest ratio, and whether all of them may be chance."""
        compared = self.frame[self.frame["impact_ratio"].notna()].sort_values("impact_ratio")
        if compared.empty:
            return []
        ratio, who = compared[["impact_ratio", "category"]].to_numpy()[0]
        against = self.reference or "the most selected category"
        lowest = (
            f"The {self.rate} of {words.in_sentence(str(who))} is the lowest: {ratio:.2f} times"
        )
        rule = f"The four-fifths rule asks for at least {FOUR_FIFTHS_RATIO:g}"
        told = [f"{lowest} that of {words.in_sentence(against)}. {rule}."]
        return [*told, GLOBAL.format(p=_shown_p(self.p_value))]


HEADS = ("category", "people", "selected", "rate", "impact\nratio", "interval", "SD", "p")
"""Columns for people: with more of them, intersections would not fit a terminal."""


def _shown_p(p: float) -> str:
    return "-" if np.isnan(p) else "<0.001" if p < LEAST_P else f"{p:.3f}"


def _cells(row: dict[Any, Any]) -> tuple[str, ...]:
    """A row of the table for people: what is not defined is a dash."""

    def shown(name: str, form: str) -> str:
        return "-" if pd.isna(row[name]) else format(row[name], form)

    ends = f"{shown('ratio_low', '.2f')}-{shown('ratio_high', '.2f')}"
    return (
        str(row["category"]) + (" *" if row["set_aside"] else ""),
        f"{row['number']:,}",
        shown("selected", ",.0f"),
        shown("rate", ".1%"),
        shown("impact_ratio", ".2f"),
        "-" if pd.isna(row["ratio_low"]) else ends,
        shown("standard_deviations", "+.1f"),
        _shown_p(row["fisher_p"]),
    )


def _view_rows(
    audit: Audit, name: str, view: CountTable, label: int, n_tables: int
) -> list[dict[str, Any]]:
    """The categories of one way of grouping, and how many are in none."""
    rates = view.rates["selection_rate"].row(label)
    judged = judged_groups(view.size, audit.min_group) & (view.size > 0)
    reference = audit.reference_group(view, name)
    ratios = impact_ratios(rates.value, judged, reference)
    low, high = rates.exact_interval(audit.alpha)
    against = _against_best(rates, np.flatnonzero(judged), reference, n_tables, audit.alpha)
    shared = {"attribute": name, "label": audit.label_values[label]}
    reason = f"fewer than {counted(least_rows(view.n_rows, audit.min_group), 'person')}"
    if audit.min_group < 1:
        reason = f"less than {100 * audit.min_group:g} % of the people of known category"
    rows: list[dict[str, Any]] = []
    for g, category in enumerate(words.short_names(view.groups)):
        row = {
            **shared,
            "category": category,
            "number": int(view.size[g]),
            "share": view.size[g] / max(view.size.sum(), 1),
            "selected": round(float(rates.hits[g])),
            "rate": float(rates.value[g]),
            "rate_low": float(low[g]),
            "rate_high": float(high[g]),
            "set_aside": "" if judged[g] else reason,
        }
        if not np.isnan(ratios[g]):
            row["impact_ratio"] = float(ratios[g])
            row["below_four_fifths"] = bool(ratios[g] < FOUR_FIFTHS_RATIO)
            row |= against.get(g, {})
        rows.append(row)
    unknown = audit.table.n_rows - view.n_rows
    if unknown:
        row = {**shared, "category": UNKNOWN_CATEGORY, "number": unknown}
        rows.append({**row, "set_aside": "the category is not known"})
    return rows


def _against_best(
    rates: Proportion, judged: Ints, reference: int, n_tables: int, alpha: float
) -> dict[int, dict[str, float]]:
    """By category, the interval of its impact ratio, and both tests.

    Which category is selected most often is itself observed. The ratio to the one that is so in
    truth is the least of the ratios to all others, so its limits are the least of theirs
    (multiple comparisons with the best: Hsu, Annals of Statistics 12, 1984). Any upper limit can
    be too low, so these share the error among all pairs, as does Fisher's test.
    """
    if len(judged) < 2:
        return {}
    n_others, x = len(judged) - 1, rates.value
    best, most = int(judged[np.argmax(x[judged])]) if reference < 0 else reference, np.inf
    n_tests = n_tables * n_others
    if reference < 0:
        n_tests, most = n_tests * len(judged) // 2, 1.0
    (wide_low, wide_high), (low, high) = (limited(rates, alpha / 2 / n) for n in (1, n_tests))
    figures: dict[int, dict[str, float]] = {}
    for g in judged[judged != reference].tolist():
        q = judged[judged != g] if reference < 0 else np.array([reference])
        least = ratio_low(x[g], wide_low[g], x[q], wide_high[q]).min()
        largest = ratio_high(x[g], high[g], x[q], low[q]).min()
        figures[g] = {"ratio_low": min(least, most), "ratio_high": min(largest, most)}
        if g != best:
            figures[g] |= _two_tests(rates, g, best, n_tests)
    return figures


def _two_tests(rates: Proportion, g: int, best: int, n_tests: int) -> dict[str, float]:
    """Standard deviations between two rates, and Fisher's test times the number of tests."""
    from scipy.stats import fisher_exact  # noqa: PLC0415 - slow to import

    n, m, hits, most = rates.total[g], rates.total[best], rates.hits[g], rates.hits[best]
    pooled = (hits + most) / (n + m)
    deviation = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    z = float((hits / n - most / m) / deviation) if deviation > 0 else 0.0
    table = np.array([[hits, n - hits], [most, m - most]]).astype(np.int64)
    # Of more rows scipy's products of counts overflow, and the two tests agree to many digits.
    is_small = float(table.sum()) ** 2 < 2.0**62
    p = fisher_exact(table).pvalue if is_small else 2 * ndtr(-abs(z))
    return {"standard_deviations": z, "fisher_p": float(min(p * n_tests, 1.0))}
