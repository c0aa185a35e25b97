"""What each command is asked: its options, typed and checked before any row is read.

Nothing here imports PyTorch: a misspelt column is reported at once.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.audit import UNDECIDED, UNFAIR, Notice
from fairgrad.audit.comparisons import DEFAULT_MEASURES, WITHOUT_LABELS
from fairgrad.audit.words import conjoined, doubtful_desirable
from fairgrad.cli.folder import MARK, check_file, check_folder
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import On, uses_desirable
from fairgrad.splitting import TEST
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.reading import (
    EXCEL_ENDINGS,
    WHOLE_ENDINGS,
    column_names,
    database_table,
    is_parquet,
    table_files,
)
from fairgrad.tables.roles import ColumnRoles, check_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.tables.reading import TableSource

TREES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
"""Models that are boosted trees, by the library that grows them."""

RATIOS = ("demographic_parity", "four_fifths_rule")
"""Measures of selection rates, which a tolerance such as 80% is about."""

NEEDS_COLUMNS = (
    "{} is missing; to audit a table with predictions: fairgrad audit table.csv --target COLUMN "
    "--prediction COLUMN --sensitive COLUMN (or --score COLUMN --threshold NUMBER instead of "
    "--prediction; without --target only selection rates are audited)"
)


def refuse_idle(options: Mapping[str, Any], names: Sequence[str], reason: str) -> None:
    """Refuses options that would have no effect in this call."""
    for name in names:
        value = options.get(name)
        if value is not None and value is not False and value != ():
            raise ValueError(f"--{name.replace('_', '-')} has no effect {reason}; leave it out")


def read_options(options: Mapping[str, Any], *tables: TableSource) -> ReadingOptions:
    """What the user says about files; options about files that are not there are refused."""
    names = ("sep", "decimal", "encoding", "skip_rows", "sheet")
    told = {name: options.get(name) for name in names}
    if any(value is not None for value in told.values()):
        files = [
            path.name.lower()
            for table in tables
            if database_table(table) is None
            for path in table_files(table)
            if not is_parquet(path)
        ]
        has_excel = any(name.endswith(EXCEL_ENDINGS) for name in files)
        has_text = any(not name.endswith((*EXCEL_ENDINGS, *WHOLE_ENDINGS)) for name in files)
        refuse_idle(told, () if has_text else names[:3], "without a text file, such as CSV")
        refuse_idle(told, () if has_excel else ["sheet"], "without an Excel file")
        refuse_idle(told, () if has_excel or has_text else ["skip_rows"], "on these files")
    return ReadingOptions(**told, missing=tuple(options.get("missing", ())))


def read_columns(options: Mapping[str, Any]) -> ColumnRoles:
    """The role of each column; without a target the predictions take its place."""
    option = next((n for n in ("target", "prediction", "score") if options.get(n)), "target")
    return ColumnRoles(
        target=options.get(option) or "",
        option=f"--{option}",
        sensitive=tuple(dict.fromkeys(options["sensitive"])),
        bins=dict(options.get("bins", ())),
        y_desirable=options.get("desirable"),
        use_sensitive=options.get("use_sensitive", False),
        value_map={v: label for pairs in options.get("map", ()) for v, label in pairs.items()},
        ignore_case=options.get("ignore_case", False),
        drop=tuple(options.get("drop", ())),
        categorical=tuple(options.get("categorical", ())),
        keep=tuple(options.get("keep", ())),
        is_part=options.get("state") is not None,
    )


def measures_on(
    measures: Sequence[str],
    attributes: Sequence[str],
    *,
    separate: bool = False,
    within: Sequence[str] = (),
) -> list[Any]:
    """Measures of all combinations of the attributes, or of each by itself, within some of them."""
    unknown = [name for name in within if name not in attributes]
    if unknown:
        raise ValueError(
            f"--within is {unknown[0]!r}; expected one of the sensitive columns "
            f"({', '.join(attributes)}): name it with --sensitive, too"
        )
    compared = tuple(name for name in attributes if name not in within)
    if not compared:
        raise ValueError("--within names all sensitive columns; none is left to compare")
    if separate and len(compared) == 1:
        raise ValueError(
            f"--separate has no effect: {compared[0]} is the only sensitive column that is compared"
        )
    if separate:
        return [
            On(name, measure, within=tuple(within)) for measure in measures for name in compared
        ]
    if within:
        return [On(compared, measure, within=tuple(within)) for measure in measures]
    return list(measures)


def audit_tolerance(tolerance: float | str, measures: Sequence[str]) -> Any:
    """A tolerance as the audit takes it: a ratio is about measures of selection rates alone."""
    if not isinstance(tolerance, str):
        return tolerance
    named = [name for name in RATIOS if name in measures]
    if not named:
        raise ValueError(
            f"--tolerance {tolerance} is a ratio of selection rates, which has no effect with "
            f"--measure {measures[0]}; use --measure {RATIOS[0]}, or a number as the tolerance"
        )
    return dict.fromkeys(named, tolerance)


def usual_measures(desirable: str | None, *, has_labels: bool = True) -> list[str]:
    """The audit's own measures, without those that need a desirable label if there is none."""
    known = DEFAULT_MEASURES if has_labels else WITHOUT_LABELS
    return [n for n in known if desirable is not None or not uses_desirable(n)]


def guessed_desirable(columns: ColumnRoles, labels: Sequence[str]) -> list[Notice]:
    """A warning if the desirable value was not named, and its name is bad news."""
    desirable = columns.desirable(labels)
    guessed = [desirable] if columns.y_desirable is None and desirable is not None else []
    warning = doubtful_desirable(guessed, columns.target, labels)
    return [Notice("desirable", warning)] if warning else []


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What `fairgrad fit` and `frontier` are asked: their options, typed and checked.

    Attributes:
        columns: the role of each column.
        reading: what the user says about files.
        folds: of cross-validation; 0 for none, None if small tables get some.
        measures: the names of the fairness measures; all of them are enforced.
        points: number of models to train; None for as few as the tolerance needs.
        costs: mistakes, as ``TRUE:PREDICTED``, with what each costs; all others cost 1. If there
            are any, models are chosen by the mean cost instead of the accuracy.
        epochs: passes over the rows, or the number of trees; None for the default.
        out: the folder to write, as typed; None to write nothing.
        folder: the same, checked.
    """

    table: tuple[str, ...] = ()
    columns: ColumnRoles
    weight: str | None = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    train_rows: int = 1_000_000
    key: tuple[str, ...] = ()
    test: str | None = None
    test_size: float = TEST
    folds: int | None = 0
    measures: tuple[str, ...] = ("equalized_odds",)
    tolerance: float | str = 0.05
    exact: bool = False
    max_unfairness: float | None = None
    min_accuracy: float | None = None
    points: int | None = None
    separate: bool = False
    within: tuple[str, ...] = ()
    costs: tuple[tuple[str, float], ...] = ()
    model: str = "network"
    layers: tuple[int, ...] = ()
    epochs: int | None = None
    min_group: float = MIN_GROUP
    seed: int = 0
    out: str | None = None
    folder: Path | None = None
    fail_on: str | None = None
    as_json: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> FitRequest:
        """Reads the options; all that can be checked without the rows is checked.

        Raises:
            ValueError: if an option is wrong or has no effect, or a column is missing.
        """
        known = {name: v for name, v in options.items() if name in cls.__dataclass_fields__}
        out = options["out"]
        usual = RATIOS[:1] if isinstance(options["tolerance"], str) else cls.measures
        tests = {name: options.get(name) for name in ("test", "test_size", "folds")}
        known |= {
            "columns": read_columns(options),
            "reading": read_options(options, options["table"], *filter(None, [options["test"]])),
            "measures": tuple(dict.fromkeys(options["measure"])) or usual,
            "costs": tuple(options["cost"]),
            "layers": options["layers"] or (),
            "test_size": tests["test_size"] or TEST,
        }
        if "folds" not in options or any(v is not None for v in tests.values()):
            known["folds"] = tests["folds"] or 0
        if out is None:
            refuse_idle(options, ["force"], "without --out")
        else:
            known["folder"] = check_folder(out, force=options["force"])
        request = cls(**known)
        request._check(tests)
        return request

    def _check(self, tests: Mapping[str, Any]) -> None:
        """Refuses what could only fail later."""
        chosen = {"max_unfairness": self.max_unfairness, "min_accuracy": self.min_accuracy}
        for exclusive in (tests, chosen):
            named = [f"--{n.replace('_', '-')}" for n, v in exclusive.items() if v is not None]
            if len(named) > 1:
                raise ValueError(f"{' and '.join(named)} exclude each other; use only one of them")
        if self.folds == 1:
            raise ValueError("--folds is 1; use at least 2, or 0 for none")
        if self.exact and isinstance(self.tolerance, str):
            raise ValueError(f"--exact and --tolerance {self.tolerance} exclude each other")
        if self.model in TREES:
            refuse_idle(vars(self), ["layers"], f"with --model {self.model}")
            if find_spec(self.model) is None:
                raise ValueError(
                    f"--model {self.model} needs the package {self.model}: "
                    f"pip install 'fairgrad[{self.model}]'"
                )
        audit_tolerance(self.tolerance, self.measures)
        self.measure_on()
        names = column_names(self.table, self.reading)
        self.columns.check(names)
        if self.test is not None:
            table_files(self.test)  # that it exists
        if self.weight is not None:
            check_named([self.weight], names, "--weight")
            if self.weight in {self.columns.target, *self.columns.sensitive, *self.columns.drop}:
                raise ValueError(f"--weight {self.weight} has another role; name another column")

    def cost_matrix(self, labels: Sequence[Any]) -> list[list[float]] | None:
        """(L, L) what predictions (columns) of each true label cost; None if all mistakes cost 1.

        Raises:
            ValueError: if a mistake is none of these labels, or no mistake costs anything.
        """
        if not self.costs:
            return None
        names = [str(label) for label in labels]
        matrix = [[float(true != other) for other in names] for true in names]
        for mistake, cost in self.costs:
            typed = re.sub(r"\s*:\s*", ":", mistake.strip())
            known = [(t, p) for t in names for p in names if t != p and f"{t}:{p}" == typed]
            if len(known) != 1:
                raise ValueError(
                    f"--cost is {mistake}={cost:g}; expected TRUE:PREDICTED=COST with two "
                    f"different values of the target: {', '.join(names)}"
                )
            true, predicted = (names.index(name) for name in known[0])
            matrix[true][predicted] = cost
        if not any(map(any, matrix)):
            raise ValueError("--cost: at least one mistake must cost more than 0")
        return matrix

    def measure_on(self) -> Any:
        """The measures as estimator and audit take them."""
        attributes, within = self.columns.sensitive, self.within
        measures = measures_on(self.measures, attributes, separate=self.separate, within=within)
        return measures[0] if len(measures) == 1 else measures

    def in_words(self) -> dict[str, str]:
        """The request in words."""
        compared = [name for name in self.columns.sensitive if name not in self.within]
        groups = " and ".join(compared)
        if len(compared) > 1:
            groups += ", each by itself" if self.separate else ", combined"
        if self.within:
            groups += f", within {' and '.join(self.within)}"
        model = "linear"
        if self.model in TREES:
            model = f"boosted trees ({TREES[self.model]}) with fair decisions"
        elif self.layers:
            model = f"network with hidden layers {', '.join(map(str, self.layers))}"
        best = "cheapest" if self.costs else "most accurate"
        if self.exact:
            goal = "exact fairness (epsilon 0)"
        elif self.max_unfairness is not None:
            goal = f"the {best} model with an unfairness of at most {self.max_unfairness:g}"
        elif self.min_accuracy is not None:
            goal = f"the fairest model with an accuracy of at least {self.min_accuracy:g}"
        else:
            is_ratio = isinstance(self.tolerance, str)
            within = f"{self.tolerance}{' of the highest selection rate' if is_ratio else ''}"
            goal = f"the {best} model that is likely to be judged fair within {within}"
        words = {
            "Fairness measure": conjoined([name.replace("_", " ") for name in self.measures]),
            "Groups by": groups,
            "Asked for": goal,
            "Model": model,
            "Random seed": str(self.seed),
        }
        if self.weight is not None:
            words["Sample weights"] = self.weight
        if self.costs:
            listed = ", ".join(f"{mistake} {cost:g}" for mistake, cost in self.costs)
            words["Costs (true value:predicted value)"] = f"{listed}; other mistakes 1"
        return words


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What the commands that audit are asked: their options, typed and checked.

    Attributes:
        table: the files of the rows, or the name of a table in a warehouse.
        model: the folder of the model to audit; None to audit predictions in a column.
        columns: the role of each column; without a target the predictions take its place.
        reading: what the user says about files.
        further: the further columns that every row must have, by the option that names them.
        outputs: files to write, by option.
    """

    table: tuple[str, ...]
    columns: ColumnRoles
    model: str | None = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    target: str | None = None
    prediction: str | None = None
    score: str | None = None
    threshold: float | None = None
    weight: str | None = None
    cluster: str | None = None
    search: tuple[str, ...] = ()
    held_out: bool = False
    counts: bool = False
    measure: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    tolerance: float | str = 0.05
    min_group: float = MIN_GROUP
    reference: tuple[str, ...] = ()
    confidence: float = 0.95
    state: Path | None = None
    batch: str | None = None
    time: str | None = None
    period: str = "month"
    further: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Path] = field(default_factory=dict)
    fail_on: str | None = None
    as_json: bool = False
    explain: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> AuditRequest:
        """Reads the options; those that would have no effect are refused.

        The first of the arguments, `subject`, is a model, or a file of the table.

        Raises:
            ValueError: if a model comes without a table, or an option is wrong or has no effect.
        """
        known = {name: v for name, v in options.items() if name in cls.__dataclass_fields__}
        if "subject" in options:
            subject, path = options["subject"], Path(options["subject"])
            is_model = options["table"] and not path.is_file() and subject != "-"
            if not is_model and (path / MARK).is_file():
                raise ValueError(
                    f"{subject} is a folder; add the table to audit this model on: "
                    f"fairgrad audit {subject} table.csv"
                )
            known |= {"model": subject} if is_model else {"table": (subject, *options["table"])}
        outputs = {
            name: check_file(options[name], force=options["force"])
            for name in ("out", "report")
            if options.get(name) is not None
        }
        if not outputs:
            refuse_idle(options, ["force"], "without a file to write")
        if "report" in outputs:  # what draws may be missing, which is better said before the work
            importlib.import_module("fairgrad.report")
        further = {name: options.get(name) for name in ("score", "weight", "cluster", "time")}
        if options.get("target"):
            further = {"prediction": options.get("prediction"), **further}
        known |= {
            "columns": read_columns(options),
            "reading": read_options(options, known["table"]),
            "further": {option: column for option, column in further.items() if column},
            "outputs": outputs,
            "period": options.get("period") or "month",
            "state": Path(options["state"]) if options.get("state") else None,
        }
        request = cls(**known)
        has_model, has_time = request.model is not None, request.time is not None
        of_tables = ["prediction", "desirable", "bins", "target", "threshold", "counts"]
        lacks_predictions = "prediction" in options and not request.prediction
        for is_so, names, reason in (
            (has_model, of_tables, "with a model, which brings its own"),
            (not has_model, ["held_out"], "without a model"),
            (lacks_predictions, ["map"], "without a column of predictions"),
            (not request.score, ["threshold"], "without --score, the column it is about"),
            (not has_time, ["period"], "without --time"),
            (has_time, ["batch"], "with --time, which names the batches"),
            (request.as_json, ["explain"], "with --json, which contains everything"),
            (request.counts, ["search", "cluster"], "with --counts: it needs the rows themselves"),
        ):
            if is_so:
                refuse_idle(options, names, reason)
        if request.measure:
            audit_tolerance(request.tolerance, request.measure)
        for name in ("target", "prediction", "score"):
            # Subgroups by what is predicted would have the largest gaps of all.
            if options.get(name) and options[name] in request.search:
                raise ValueError(f"--search {options[name]} is the column of --{name}; name others")
        return request

    def reference_of(self, sensitive: Sequence[str]) -> dict[str, str] | None:
        """The groups to compare with, by sensitive column; None for the mean of all rows."""
        named = [text.partition("=") for text in self.reference]
        if any(not sign for _, sign, _ in named) and len(sensitive) > 1:
            raise ValueError("--reference: name the column, such as --reference sex=male")
        by_column = {column: value for column, sign, value in named if sign and column in sensitive}
        # A value may have the sign in it, where there is one column.
        return by_column or ({sensitive[0]: self.reference[0]} if self.reference else None)

    def check_columns(self) -> None:
        """Refuses predictions if a column is missing, or if one is the label as well."""
        by_score = self.score is not None and self.threshold is not None
        needed = {
            "--prediction": self.prediction or by_score,
            "--sensitive": self.columns.sensitive,
            "--target": self.target or self.prediction,
        }
        for option, value in needed.items():
            if not value:
                raise ValueError(NEEDS_COLUMNS.format(option))
        for option, column in (("--prediction", self.prediction), ("--score", self.score)):
            if column is not None and column == self.target:
                raise ValueError(
                    f"--target and {option} both name {column!r}; name different columns"
                )


def exit_code(verdict: str, fail_on: str | None) -> int:
    """1 if the verdict matches --fail-on; with "undecided", an unfair verdict matches as well."""
    fails = {None: (), "unfair": (UNFAIR,), "undecided": (UNFAIR, UNDECIDED)}
    return int(verdict in fails[fail_on])
