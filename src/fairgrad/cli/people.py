"""The rows that are audited: read, or counted by duckdb, by a warehouse, or by the user."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit import Audit
from fairgrad.audit.counts import RowCounts
from fairgrad.audit.words import conjoined
from fairgrad.cli import output
from fairgrad.cli.folder import held_out_rows
from fairgrad.cli.request import (
    RATIOS,
    audit_tolerance,
    guessed_desirable,
    measures_on,
    usual_measures,
)
from fairgrad.columns import FORMULA_STARTS, counted
from fairgrad.measures import On
from fairgrad.tables.column import (
    IDENTIFIER,
    ReadingReport,
    as_categories,
    column_kind,
    is_quantity,
)
from fairgrad.tables.hints import repeated_identifiers
from fairgrad.tables.reading import column_names, read_table, table_name
from fairgrad.tables.roles import ColumnRoles, check_named, number_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit import Notice
    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.request import AuditRequest

_MOST_SHOWN = 8


@dataclass(eq=False)
class AuditedPeople:
    """Rows of a table, and the predictions that are audited.

    Attributes:
        frame: the rows that have all values that are needed.
        columns: the role of each column.
        labels: all labels, in natural order.
        table: the name of the file.
        left_out: how many rows were left out, by reason.
        notes: how the files were read, and what was odd about them.
        counts: how many rows each row of the frame stands for, if they were counted.
        remarks: what readers should know about the rows.
        predicted: (n,) the predictions.
        has_labels: whether true values are known; else the target is the column of predictions.
        further: arguments of the audit.
        judged: the measures of the verdict; empty for the usual ones.
        asked: the request in words.
        model: what predicts; None if the predictions are a column.
    """

    frame: pd.DataFrame
    columns: ColumnRoles
    labels: list[str]
    table: str
    left_out: dict[str, int]
    notes: list[str]
    counts: RowCounts | None = None
    remarks: list[str | Notice] = field(default_factory=list)
    predicted: Any = None
    has_labels: bool = True
    further: dict[str, Any] = field(default_factory=dict)
    judged: Sequence[Any] = ()
    asked: dict[str, str] = field(default_factory=dict)
    model: SavedModel | None = None

    @property
    def times(self) -> NDArray[np.int64] | None:
        """(n,) how many rows each row stands for; None if each is one."""
        return None if self.counts is None else self.counts.times.astype(np.int64)

    @property
    def desirable(self) -> str | None:
        """The desirable label; None if there are several and none was named."""
        return self.columns.desirable(self.labels)

    def truth(self) -> pd.Series:
        """The labels of all rows, as texts."""
        target = self.columns.target
        texts = self._as_labels(as_categories(self.frame[target]), "the model's labels")
        return pd.Series(texts, name=target, dtype=object)

    def predictions(self, column: str, option: str) -> NDArray[Any]:
        """The predictions in a column, as labels of the target.

        Raises:
            ValueError: if it looks like a score, or its values match no labels.
        """
        value_map, named = self.columns.value_map, as_categories(self.frame[column])
        values = [str(value) for value in named.cat.categories]
        # A value that stands for itself is a label that the target happens not to have.
        new = [value for value, label in value_map.items() if value == label]
        if self.columns.is_part and len(self.labels) < 2:
            new += values
        self.labels += [value for value in new if value not in self.labels]
        if is_quantity(self.frame[column]) and not set(values) <= {*self.labels, *value_map}:
            raise ValueError(_score(self.frame[column], option))
        return self._as_labels(named, repr(self.columns.target), value_map)

    def _as_labels(
        self, named: pd.Series, target: str, value_map: Mapping[str, str] | None = None
    ) -> NDArray[Any]:
        """(n,) the labels that the values of a column stand for, with a remark."""
        matched, note = match_labels(
            [str(value) for value in named.cat.categories],
            self.labels,
            column=str(named.name),
            target=target,
            value_map=value_map,
        )
        self.remarks += [note] if note and note not in self.remarks else []
        return np.asarray(named.map(matched), dtype=object)

    def above(self, score: NDArray[np.float64], threshold: float) -> NDArray[Any]:
        """Predictions from a score of the desirable label."""
        if len(self.labels) != 2 or self.desirable is None:
            raise ValueError(
                f"--threshold needs a target with two values; {self.columns.target!r} has "
                f"{len(self.labels)}: {', '.join(self.labels)}"
            )
        (other,) = (label for label in self.labels if label != self.desirable)
        return np.where(score >= threshold, self.desirable, other).astype(object)

    def audit(self, request: AuditRequest, **options: Any) -> Audit:
        """Audits the predictions."""
        usual = usual_measures(self.desirable, has_labels=self.has_labels)
        truth = self.truth()
        if self.counts is not None:
            options["sample_weight"] = self.counts
        elif request.weight:
            options["sample_weight"] = number_column(self.frame, request.weight, "--weight")
        if request.cluster:
            options["cluster"] = self.frame[request.cluster].to_numpy(dtype=object)
        measures = list(self.judged) or usual
        if request.within and not any(isinstance(measure, On) for measure in measures):
            measures = measures_on(measures, self.columns.sensitive, within=request.within)
        named = [name for name in RATIOS if name in (*usual, *self.judged)]
        return Audit(
            truth if self.has_labels else None,
            self.predicted if self.has_labels else truth,
            self.columns.groups(self.frame, self.times),
            measures=measures,
            others=usual if self.judged else (),
            tolerance=audit_tolerance(request.tolerance, named),
            confidence=request.confidence,
            y_desirable=self.desirable,
            labels=self.labels,
            min_group=request.min_group,
            reference=request.reference_of(self.columns.sensitive),
            remarks=[*self.remarks, *guessed_desirable(self.columns, self.labels)],
            **self.further | options,
        )

    def periods(self, column: str, period: str) -> NDArray[Any]:
        """(n,) the first day of each row's day, week (from Monday) or month.

        Raises:
            ValueError: if the column does not hold dates.
        """
        if column_kind(self.frame[column]) != "date":
            raise ValueError(f"--time names {column!r}, whose values are not dates")
        days = pd.Series(pd.DatetimeIndex(self.frame[column])).dt.normalize()
        passed = {"day": days.dt.day * 0, "week": days.dt.day_of_week, "month": days.dt.day - 1}
        first = days - pd.to_timedelta(passed[period], unit="D")
        starts: NDArray[Any] = first.dt.strftime("%Y-%m-%d").to_numpy()
        return starts


def read_people(request: AuditRequest, models: Sequence[SavedModel] = ()) -> AuditedPeople:
    """The rows of a table that have a target and all further columns, such as predictions.

    Values of the models' features may be missing.
    """
    table, columns, further, more = request.table, request.columns, request.further, request.search
    known = (text for model in models for text in model.missing)
    reading = replace(request.reading, missing=(*request.reading.missing, *known))
    names = column_names(table, reading)
    for its in (model.columns for model in models):
        for name in {its.target, *its.sensitive} & {columns.target, *columns.sensitive}:
            if name not in names:
                holds = "true values" if name == its.target else "groups"
                raise ValueError(
                    f"the table lacks {name!r}, the model's column of {holds}, which an audit needs"
                )
    columns.check(names, further)
    check_named(more, names, "--search")
    wanted = [columns.target, *columns.sensitive, *further.values()]
    needed = dict.fromkeys([*wanted, *more, *(name for model in models for name in model.needed)])
    dates = [name for model in models for name in model.encoder.date_columns_]
    # Identifiers that repeat show that rows belong together, unless the caller said so.
    ids = [] if request.cluster else [n for n in names if IDENTIFIER.fullmatch(n.strip())]
    with output.progress_bar(1.0, "reading") as bar:
        read = list(dict.fromkeys([*needed, *ids]))
        frame = read_table(table, read, options=reading, texts=dates, done=bar.update)
    report, repeated = ReadingReport.of(frame), repeated_identifiers(frame[ids]) if ids else []
    if request.held_out:
        frame = held_out_rows(frame, str(request.model), table, models[0])
    people = gathered(frame, report, table_name(table), columns, further, models)
    people.notes += repeated
    return people


def gathered(
    frame: pd.DataFrame,
    report: ReadingReport,
    table: str,
    columns: ColumnRoles,
    further: Mapping[str, str],
    models: Sequence[SavedModel] = (),
    counts: RowCounts | None = None,
) -> AuditedPeople:
    """The rows of a frame that have a target and all further columns; others are counted."""
    left_out: dict[str, int] = {}
    times = np.ones(len(frame)) if counts is None else counts.times
    frame = columns.merged(frame, None if counts is None else times.astype(np.int64))
    keep = np.ones(len(frame), dtype=bool)
    for option, column in {"target": columns.target, **further}.items():
        lacking = keep & frame[column].isna().to_numpy()
        if lacking.any():
            left_out[f"a {option} ({column})"] = int(times[lacking].sum())
        keep &= ~lacking
    if not keep.any():
        lacked = conjoined([columns.target, *further.values()])
        raise ValueError(f"{table} has no row with a value of {lacked}")
    if counts is not None:
        counts = RowCounts(*(None if n is None else n[keep] for n in counts))  # type: ignore[arg-type] # the first is never None
    frame = frame[keep].reset_index(drop=True)
    notes = report.sentences([columns.target, *columns.sensitive, *further.values()], gaps=True)
    people = AuditedPeople(frame, columns, [], table, left_out, notes, counts)
    if models:
        labels = dict.fromkeys(label for model in models for label in model.labels)
        people.labels = sorted(labels, key=lambda label: label == models[-1].labels[-1])
    elif columns.target != further.get("score"):  # scores alone have no labels
        columns.label(people.frame, people.times)  # refuses a target that cannot be one
        truth = as_categories(people.frame[columns.target])
        people.labels = [str(value) for value in truth.cat.categories]
    if left_out:
        reasons = conjoined([f"{n:,} without {reason}" for reason, n in left_out.items()])
        why = f": {reasons}" if len(left_out) > 1 else f" for lack of {next(iter(left_out))}"
        n_rows, gone = int(times.sum()), sum(left_out.values())
        verb = "is" if gone == 1 else "are"
        people.remarks.append(f"{gone:,} of {counted(n_rows, 'row')} {verb} left out{why}.")
    return people


def model_columns(model: SavedModel, request: AuditRequest) -> ColumnRoles:
    """The role of each column of a table that a model is audited on."""
    its = model.columns
    wanted = request.columns.sensitive or its.sensitive
    return replace(
        request.columns,
        target=its.target,
        sensitive=wanted,
        bins={name: edges for name, edges in its.bins.items() if name in wanted},
        y_desirable=model.settings["desirable"],
    )


def model_predictions(
    model: SavedModel, people: AuditedPeople, missing: Sequence[str] = ()
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(n,) predicted labels, and (n, labels) their probabilities; oddities become notes."""
    labels, scores, odd = model.predict(people.frame, missing)
    people.notes += [note for note in odd.sentences() if note not in people.notes]
    return labels, scores


def match_labels(
    values: Sequence[str],
    labels: Sequence[str],
    *,
    column: str,
    target: str,
    value_map: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], str]:
    """Which label each value of a column stands for, and what to say about it.

    Raises:
        ValueError: if a value matches no label; the message shows both sets.
    """
    mapped = value_map or {}
    unknown = [label for value, label in mapped.items() if label not in {value, *labels}]
    if unknown:
        raise ValueError(
            f"--map gives {unknown[0]!r}, which is not a value of {target} ({_listed(labels)})"
        )
    matched = {}
    for value in values:
        same = [label for label in labels if _key(label) == _key(value)]
        if value in mapped or value in labels:
            matched[value] = mapped.get(value, value)
        elif len(same) == 1:
            matched[value] = same[0]
    unmatched = [value for value in values if value not in matched]
    if unmatched:
        pairs = zip(unmatched[::-1], [*labels][::-1], strict=False)
        example, first = ",".join(f"{value}={label}" for value, label in pairs), unmatched[0]
        hint = f"; if {first} is a label that {target} happens not to have, --map {first}={first}"
        raise ValueError(
            f"the values of {column} ({_listed(values)}) do not match those of {target} "
            f"({_listed(labels)}); map them, for example with --map {example}"
            f"{hint if matched else ''}"
        )
    read = [f"{value} as {label}" for value, label in matched.items() if value != label]
    if not read:
        return matched, ""
    joined = " and ".join(filter(None, [", ".join(read[:-1]), read[-1]]))
    return matched, f"{column}: {joined.replace(' as ', ' was read as ', 1)}, as in {target}."


def _key(value: str) -> str:
    """The same for what is plainly the same, also after `fairgrad.columns.without_formulas`."""
    unmarked = value[1:] if value[:1] == "'" and value[1:].startswith(FORMULA_STARTS) else value
    plain = " ".join(unmarked.casefold().split())
    return {"true": "1", "false": "0"}.get(plain, plain)


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(values[:_MOST_SHOWN])
    more = len(values) - _MOST_SHOWN
    return shown if more <= 0 else f"{shown} and {more} more"


def _score(column: pd.Series, option: str) -> str:
    numbers = column.dropna().astype(float)
    example = "0.5" if numbers.between(0, 1).all() else f"{numbers.median():.3g}"
    return (
        f"{option} names {column.name!r}, which looks like a score and not like predictions: "
        f"{numbers.nunique():,} different numbers from {numbers.min():.4g} to {numbers.max():.4g}. "
        f"Give it as --score {str(column.name)!r} with --threshold {example} instead of "
        "--prediction: scores of at least the threshold then predict the desirable value"
    )
