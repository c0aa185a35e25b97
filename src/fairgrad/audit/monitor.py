"""Audits of a running system: a verdict that may be looked at after every batch of decisions.

An ordinary audit keeps its error for one look: of systems exactly at the tolerance, more than a
third are called unfair on some day of a year. A monitor uses *confidence sequences*, whose limits
hold at all looks together: those of an audit of all rows so far, at a confidence that depends on
the number of rows. If each limit may be wrong with probability a over the whole life of the system,
then after n rows it lies m(n) standard errors from the estimate,

    m(n)^2 = 2 (1 + rho / n) log(1 + sqrt(1 + n / rho) / (2 a)),

the one-sided normal mixture of Robbins (Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics
49, 2021, equation 14). Each limit of the audit gets the error ``P(Z > m(n))``. The number rho sets
where the limits are tightest: at `TIGHTEST` times the rows of the first batch.

The verdict is about the average level since the start. Changes have a rule of their own: the rows
before and after a day are compared by an ordinary two-sample interval, whose error is spread over
all days and levels, so that a system which never changes gets a false alarm with probability at
most `CHANGE_ALARMS` in its whole life.
"""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Group
from scipy.special import gammaln, lambertw, ndtr

from fairgrad.audit import sections, words
from fairgrad.audit.audit import Audit
from fairgrad.audit.comparisons import WITHOUT_LABELS
from fairgrad.audit.record import plain_values
from fairgrad.audit.verdicts import UNDECIDED, level_limits
from fairgrad.checks import check_number
from fairgrad.columns import as_columns, as_pandas
from fairgrad.files import locked, read_sealed, sealed_json, write_whole
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import as_measure
from fairgrad.text import Block, Section, ShownAndWritten, as_plain_text

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

SCHEMA, SCHEMA_VERSION = "fairgrad.monitor", 1
TIGHTEST = 40
"""The limits are tightest at so many times the rows of the first batch: from the tenth to the
365th batch of equal size they are at most 1.7 times as wide as those of a single audit, for up to
four levels."""
CHANGE_ALARMS = 0.05
"""How often a system that never changes is reported to have changed, in its whole life."""
ALIKE = 1e-5
"""Batches that are less often alike by chance are one batch that was given twice."""
LEAST_ERROR = 1e-12
"""Smaller errors of a limit are not told apart."""
TRUE, PREDICTED, COUNT = "true label", "y_pred", "count"
"""Names of columns in the counts of a batch, after the sensitive attributes."""
LEVELS = ["measure", "attribute", "name", "level", "low", "high"]
NOTHING_YET = "There are no two groups of people to compare yet."
WAITING = "Batches that wait for their true labels: {n:,}."
PROMISE = (
    "These are averages since {start}, and the verdict has been the same since {since}. You may "
    "look after every batch: the probability that a verdict is ever wrong is at most {error}."
)


@dataclass
class Batch:
    """The decisions of a day, a week or a file.

    Attributes:
        name: such as its date.
        has_labels: whether true labels are known.
        counts: rows by sensitive values, true label (None if not known), prediction, and their
            number.
        digest: of the sensitive values and predictions, row by row; of counts in any order.
        verdict: on all rows up to this batch, as it was when the batch came in.
        levels: what was known of each level then: measure, attribute, name, level, low, high.
        changes: the changes that were detected then, as sentences.
    """

    name: str
    has_labels: bool
    counts: list[list[Any]]
    digest: str
    verdict: str = UNDECIDED
    levels: list[list[Any]] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(line[-1] for line in self.counts)

    def decisions(self) -> dict[str, int]:
        """Rows by sensitive values and prediction alone, as texts."""
        numbers: dict[str, int] = {}
        for *values, _, predicted, n in self.counts:
            key = json.dumps([*values, predicted])
            numbers[key] = numbers.get(key, 0) + n
        return numbers

    def chance(self, *, is_counted: bool) -> float:
        """How likely another batch is to have equal rows in the same order, or equal counts."""
        counts = np.array([n for n in self.decisions().values() if n], dtype=float)
        log = float(counts @ np.log(counts / counts.sum()))
        orders = gammaln(counts.sum() + 1) - gammaln(counts + 1).sum() if is_counted else 0.0
        return float(np.exp(log + orders))


class Monitor(ShownAndWritten):
    """A verdict on a running system, valid at every look.

    "Unfair" is wrong with probability at most 1 - confidence over the whole life of the system, for
    all measures, attributes and groups together, and so is "fair". Both are about the average level
    since the start.

    Args:
        measures: what is judged, as in `Audit`. Measures other than demographic parity and the
            four-fifths rule need true labels: batches without them wait until they are added.
        tolerance: as in `Audit`.
        confidence: of the verdict over the whole life of the system.
        y_desirable: as in `Audit`.
        min_group: as in `Audit`.

    Attributes:
        attributes: names of the sensitive attributes.
        batches: every `Batch`, in the order of arrival.

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> monitor = Monitor("demographic_parity")
        >>> for day, n in {"2026-03-01": 500, "2026-03-02": 510, "2026-03-03": 490}.items():
        ...     sex = {"sex": ["F", "M"] * n}
        ...     monitor.update(y_pred=[0, 1, 1, 1] * (n // 2), sensitive_features=sex, batch=day)
        >>> monitor.verdict
        'unfair'
        >>> print(next(line for line in monitor.report().splitlines() if "M predicted 1" in line))
        M predicted 1   0.2500   0.2185   0.2814
    """

    def __init__(
        self,
        measures: Any = "demographic_parity",
        tolerance: Any = 0.05,
        confidence: float = 0.95,
        *,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
    ) -> None:
        check_number("confidence", confidence, above=0, below=1)
        self.measures = list(measures) if isinstance(measures, (list, tuple)) else [measures]
        self.tolerance, self.confidence = tolerance, confidence
        self.y_desirable, self.min_group = y_desirable, min_group
        self.attributes: list[str] = []
        self.batches: list[Batch] = []

    def update(
        self,
        y_true: Any = None,
        y_pred: Any = None,
        sensitive_features: Any = None,
        *,
        batch: str,
        count: Any = None,
    ) -> None:
        """Adds a batch of decisions, or the true labels of a batch that came without them.

        Args:
            y_true: true labels; None if they are not known yet.
            y_pred: predicted labels.
            sensitive_features: as in `Audit`.
            batch: the name of the batch, such as its date.
            count: how many rows each of these stands for, if they were counted where they are
                stored; 1 by default.

        Raises:
            ValueError: if the batch was counted before, or does not fit the earlier ones.
        """
        columns = as_columns(sensitive_features, "sensitive_features")
        if self.attributes and list(columns) != self.attributes:
            raise ValueError(
                f"sensitive_features: expected the columns {self.attributes}, got {list(columns)}."
            )
        if y_pred is None:
            raise ValueError("y_pred: expected one value per row, got None.")
        frame = pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})
        frame[TRUE] = None if y_true is None else np.asarray(as_pandas(y_true))
        frame[PREDICTED] = np.asarray(as_pandas(y_pred))
        frame[COUNT] = 1 if count is None else np.asarray(count)
        keys = [*columns, TRUE, PREDICTED]
        sums = frame.groupby(keys, dropna=False, observed=True)[COUNT].sum().reset_index()
        counts = plain_values(sums.astype(object).where(sums.notna(), None).to_numpy().tolist())
        seen = frame.drop(columns=TRUE).to_csv(index=False)
        if count is not None:  # counts come in any order
            seen = "".join(sorted(seen.splitlines(keepends=True)))
        digest = hashlib.sha256(seen.encode(errors="replace")).hexdigest()
        new = Batch(str(batch), y_true is not None, counts, digest)
        late = self._waiting_place(new, new.chance(is_counted=count is not None))
        before = self.attributes, self.batches
        self.attributes, self.batches = list(columns), list(self.batches)
        if late is None:
            self.batches.append(new)
        else:
            self.batches[late] = replace(self.batches[late], counts=counts, has_labels=True)
        try:
            if self.is_comparable:
                audit, last = self.current_audit(), self.batches[-1]
                levels = audit.to_frame("levels")[LEVELS].dropna()
                last.levels = levels.to_numpy().tolist()
                last.verdict, last.changes = audit.verdict, self._changes()
        except ValueError:
            self.attributes, self.batches = before
            raise

    def _waiting_place(self, new: Batch, chance: float) -> int | None:
        """The index of the batch whose labels this one brings; None if it is a new batch.

        Raises:
            ValueError: if it was counted before.
        """
        for place, old in enumerate(self.batches):
            if old.name == new.name and new.has_labels and not old.has_labels:
                if old.decisions() != new.decisions():
                    raise ValueError(
                        f"batch: the labels of {new.name!r} come with other predictions or "
                        "sensitive values than the batch itself."
                    )
                return place
            if old.name == new.name:
                raise ValueError(f"batch: {new.name!r} has been counted before.")
            if old.digest == new.digest and chance < ALIKE:
                raise ValueError(
                    f"batch: the rows of {new.name!r} are those of {old.name!r}, counted before."
                )
        return None

    @property
    def needs_labels(self) -> bool:
        """Whether a measure compares predictions with true labels."""
        measures = [as_measure(measure) for measure in self.measures]
        return not all(isinstance(name, str) and name in WITHOUT_LABELS for name in measures)

    @property
    def usable(self) -> list[Batch]:
        """The batches that the verdict rests on; the others wait for their labels."""
        return [batch for batch in self.batches if batch.has_labels or not self.needs_labels]

    @property
    def waiting(self) -> list[str]:
        """Names of the batches that wait for their labels."""
        needs_labels = self.needs_labels
        return [batch.name for batch in self.batches if needs_labels and not batch.has_labels]

    @property
    def verdict(self) -> str:
        """The verdict on all rows so far."""
        return self.batches[-1].verdict if self.batches else UNDECIDED

    @property
    def turns(self) -> pd.DataFrame:
        """The batches that changed the verdict: `batch`, `rows` until then, and `verdict`."""
        looks = self.to_frame().drop_duplicates("batch")[["batch", "rows", "verdict"]]
        return looks[looks["verdict"] != looks["verdict"].shift()]

    @property
    def since(self) -> str:
        """The name of the batch since which the verdict has been the same; empty without any."""
        return "".join(self.turns["batch"].tail(1))

    @property
    def n_rows(self) -> int:
        """Rows that the verdict rests on."""
        return sum(batch.rows for batch in self.usable)

    def current_audit(self) -> Audit:
        """The audit of all rows so far, with limits that hold at every look.

        Raises:
            ValueError: if there are no rows to compare yet.
        """
        usable = self.usable
        if not self.is_comparable:
            raise ValueError("batches: there are no two groups and two labels to compare yet.")
        findings = self._audit(usable, self.confidence).findings
        n_limits = 2 * max(sum(int(finding.comparison.tested.sum()) for finding in findings), 1)
        first = TIGHTEST * usable[0].rows
        error = lifelong_error((1 - self.confidence) / n_limits, self.n_rows, first)
        audit = self._audit(usable, 1 - max(n_limits * error, LEAST_ERROR))
        audit.confidence = self.confidence  # what its sentences state: that of all looks together
        return audit

    @property
    def is_comparable(self) -> bool:
        """Whether every attribute has two values, and there are two labels."""
        lines = [line[:-1] for batch in self.usable for line in batch.counts]
        if not lines:
            return False
        *groups, true, predicted = ({*column} - {None} for column in zip(*lines, strict=True))
        return all(len(values) > 1 for values in groups) and len(true | predicted) > 1

    def _audit(self, batches: Sequence[Batch], confidence: float) -> Audit:
        known = (label for batch in self.batches for line in batch.counts for label in line[-3:-1])
        columns = [*self.attributes, TRUE, PREDICTED, COUNT]
        lines = [line for batch in batches for line in batch.counts]
        return Audit.from_counts(
            pd.DataFrame(lines, columns=columns),
            TRUE if self.needs_labels else None,
            PREDICTED,
            self.attributes,
            measures=list(self.measures),
            tolerance=self.tolerance,
            confidence=confidence,
            y_desirable=self.y_desirable,
            labels=[label for label in dict.fromkeys(known) if label is not None],
            min_group=self.min_group,
        )

    def _changes(self) -> list[str]:
        """Levels that changed between the rows before and after some batch, as sentences.

        Only splits at 1, 2, 4, ... batches before the end are tried, since the last change.
        """
        usable = self.usable
        look = len(usable)
        changed = [place for place, batch in enumerate(usable) if batch.changes]
        recent = usable[changed[-1] :] if changed else usable
        splits = [len(recent) - 2**k for k in range(look.bit_length()) if 2**k < len(recent)]
        largest: dict[str, tuple[float, str]] = {}
        for split in splits:
            spent = CHANGE_ALARMS * 6 / np.pi**2 / look**2 / len(splits)
            sides = recent[:split], recent[split:]
            try:
                audits = [self._audit(batches, self.confidence) for batches in sides]
            except ValueError:  # one side lacks a group or a label
                continue
            n_levels = sum(len(finding.comparison.names) for finding in audits[0].findings)
            error = max(spent / (2 * n_levels), LEAST_ERROR)
            before, after = (_limits(audit, error) for audit in audits)
            both = before.merge(after, on=["measure", "attribute", "name"])
            rise = both["level_y"] - both["level_x"]
            up = np.hypot(both["level_x"] - both["low_x"], both["high_y"] - both["level_y"])
            down = np.hypot(both["high_x"] - both["level_x"], both["level_y"] - both["low_y"])
            reach = np.where(rise > 0, down, up)
            for place in np.flatnonzero(np.abs(rise) > reach):
                row, size = both.iloc[place], float(abs(rise[place]) / reach[place])
                sentence = (
                    f"The gap of {row['told_y']} changed from {100 * row['level_x']:+.1f} to "
                    f"{100 * row['level_y']:+.1f} points about {recent[split].name} "
                    f"({words.in_the_middle(row['measure'])})."
                )
                key = f"{row['measure']} {row['name']}"
                largest[key] = max(largest.get(key, (0.0, "")), (size, sentence))
        return [sentence for _, sentence in largest.values()]

    @property
    def sections(self) -> tuple[Section, ...]:
        """The verdict, its history and the changes that were detected."""
        first = Section("summary", f"{words.SIGNS[UNDECIDED]} Undecided", [NOTHING_YET])
        waits = [WAITING.format(n=len(self.waiting))] if self.waiting else []
        if self.is_comparable:
            error = f"{100 * (1 - self.confidence):.4g} %"
            promise = PROMISE.format(start=self.batches[0].name, since=self.since, error=error)
            first = sections.brief_section(self.current_audit(), [])
            waits = [promise, *waits]
        turns = [
            (name, f"{n:,}", words.short(verdict)) for name, n, verdict in self.turns.to_numpy()
        ]
        blocks = [
            Block("Gaps between groups over time", chart="monitor" if self.to_frame().size else ""),
        ]
        if turns:
            blocks.append(Block("When the verdict changed", ("batch", "rows", "verdict"), turns))
        changes = [sentence for batch in self.batches for sentence in batch.changes]
        if changes:
            blocks.append(Block("Changes detected", sentences=changes, is_warning=True))
        return (first._replace(sentences=(*first.sentences, *waits), blocks=blocks),)

    def report(self, width: int = 80) -> str:
        """The verdict, its history and the gaps of every group so far, as plain text.

        `fairgrad.report.Report` makes a page with charts of the same monitor.

        Args:
            width: of the lines.
        """
        findings = self.current_audit().findings if self.is_comparable else ()
        gaps = [sections.level_block(finding, place) for place, finding in enumerate(findings)]
        return as_plain_text(Group(self.on_terminal(), *gaps), width)

    def to_frame(self) -> pd.DataFrame:
        """The levels and their limits after each batch, as they were at the time."""
        rows = np.cumsum([batch.rows for batch in self.batches]).tolist()
        lines = [
            [batch.name, n, batch.verdict, *line]
            for batch, n in zip(self.batches, rows, strict=True)
            for line in batch.levels
        ]
        return pd.DataFrame(lines, columns=["batch", "rows", "verdict", *LEVELS])

    def to_dict(self) -> dict[str, Any]:
        """Everything the monitor knows, as plain values."""
        options = ("measures", "tolerance", "confidence", "y_desirable", "min_group", "attributes")
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in options},
            "batches": [asdict(batch) for batch in self.batches],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state to a file, whole or not at all.

        Raises:
            TypeError: if a measure is not given by its name.
        """
        if not all(isinstance(measure, str) for measure in self.measures):
            raise TypeError("measures: only measures given by their names can be saved.")
        write_whole(Path(path), sealed_json(self.to_dict()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        """Reads a state that `save` wrote.

        Raises:
            ValueError: if the file is not such a state, or has changed since it was written.
        """
        try:
            state = read_sealed(Path(path).read_text(encoding="utf-8"))
            if (state.pop("schema"), state.pop("schema_version")) != (SCHEMA, SCHEMA_VERSION):
                raise ValueError("it is of another kind or version")  # noqa: TRY301 - one message
            attributes, batches = state.pop("attributes"), state.pop("batches")
            monitor = cls(**state)
            monitor.attributes, monitor.batches = attributes, [Batch(**batch) for batch in batches]
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise ValueError(f"{path} is not the state of a monitor: {wrong}.") from wrong
        return monitor

    @classmethod
    @contextmanager
    def opened(cls, path: str | os.PathLike[str], **options: Any) -> Iterator[Monitor]:
        """The monitor of a state file, locked meanwhile, and saved if all went well.

        Args:
            path: the state; if there is no such file, a new monitor is made.
            options: of a new monitor; an existing one must have been made with the same.

        Raises:
            ValueError: if the options differ from those of the state.
        """
        with locked(Path(path)):
            monitor = cls.load(path) if Path(path).exists() else cls(**options)
            wanted = cls(**options)
            for name in options:
                if getattr(monitor, name) != getattr(wanted, name):
                    raise ValueError(
                        f"{name}: {path} was started with {getattr(monitor, name)!r}, got "
                        f"{getattr(wanted, name)!r}. Use the same options, or start another state."
                    )
            yield monitor
            monitor.save(path)

    def __repr__(self) -> str:
        return f"<Monitor of {len(self.batches)} batches, {self.n_rows:,} rows: {self.verdict}>"


def _limits(audit: Audit, error: float) -> pd.DataFrame:
    """The levels, their names in words (`told`), and limits each of which errs so rarely.

    Unlike intervals, limits do not depend on the tolerance.
    """
    frames = []
    for finding in audit.findings:
        names, ends = list(finding.comparison.names), level_limits(finding.comparison, error)
        columns = (finding.measure, finding.attribute, names, finding.levels, *ends)
        frame = pd.DataFrame(dict(zip(LEVELS, columns, strict=True)))
        frames.append(frame.assign(told=frame["name"].map(words.told_levels(finding))))
    return pd.concat(frames, ignore_index=True).dropna()


def lifelong_error(error: float, n_rows: float, tightest: float) -> float:
    """The error of a limit at one look, if at all looks together it may be wrong so often.

    Args:
        error: allowed to the limit over the whole life of the system.
        n_rows: rows so far.
        tightest: rows at which the limit is tightest compared with that of a single look.
    """
    rho = tightest / (-float(lambertw(-(error**2) / math.e, -1).real) - 1)
    distance = 2 * (1 + rho / n_rows) * np.log1p(np.sqrt(1 + n_rows / rho) / (2 * error))
    return float(ndtr(-np.sqrt(distance)))
