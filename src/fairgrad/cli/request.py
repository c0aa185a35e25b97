"""What each command is asked: its options, typed and checked before any row is read.

Nothing here imports PyTorch: a misspelt column is reported at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.audit import UNDECIDED, UNFAIR, Notice
from fairgrad.audit.asked import DEFAULT_MEASURES
from fairgrad.audit.comparisons import WITHOUT_LABELS
from fairgrad.audit.notices import doubtful_desirable
from fairgrad.audit.words import conjoined
from fairgrad.cli.folder import MARK, check_file, check_folder
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import ALIASES, MEASURES, On, as_measure, uses_desirable
from fairgrad.splitting import TEST
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.reading import column_names, is_parquet, parquet_size, table_files
from fairgrad.tables.roles import ColumnRoles
from fairgrad.tables.sample import TRAIN_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.tables.reading import TableSource

SMALL_TABLE, FOLDS = 2_000, 5
"""Tables with fewer rows are audited by cross-validation: a fifth of them would settle nothing."""

TREES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
"""Models that are boosted trees, by the library that grows them."""

UNFAIR_CODE = 1
"""The exit code of --fail-on."""

NEEDS_COLUMNS = (
    "{} is missing; to audit a table with predictions: fairgrad audit table.csv --target COLUMN "
    "--prediction COLUMN --sensitive COLUMN (or --score COLUMN --threshold NUMBER in place of "
    "--prediction; without --target only selection rates are audited)"
)


def measures_on(
    measures: Sequence[str],
    attributes: Sequence[str],
    *,
    separate: bool = False,
    within: Sequence[str] = (),
) -> list[Any]:
    """Measures of all combinations of the attributes, or of each by itself, within some of them.

    Raises:
        ValueError: if `within` names no attributes, or no other is left to compare.
    """
    unknown = [name for name in within if name not in attributes]
    if unknown:
        raise ValueError(
            f"--within is {unknown[0]!r}; expected one of the sensitive columns "
            f"({', '.join(attributes)}): name it with --sensitive, too"
        )
    compared = tuple(name for name in attributes if name not in within)
    if not compared:
        raise ValueError("--within: no sensitive column is left whose groups could be compared")
    if separate and len(compared) == 1:
        raise ValueError(
            f"--separate has no effect: {compared[0]} is the only sensitive column that is compared"
        )
    if separate:
        return [On(name, measure, given=tuple(within)) for measure in measures for name in compared]
    if within:
        return [On(compared, measure, given=tuple(within)) for measure in measures]
    return list(measures)


def refuse_idle(options: Mapping[str, Any], names: Sequence[str], reason: str) -> None:
    """Refuses options that would have no effect.

    Args:
        options: values by the names of the options.
        names: options that have no effect in this call.
        reason: why.
    """
    for name in names:
        if options.get(name) not in (None, (), "", False):
            raise ValueError(f"--{name.replace('_', '-')} has no effect {reason}; leave it out")


def read_options(options: Mapping[str, Any]) -> ReadingOptions:
    """What the user says about files."""
    return ReadingOptions(
        options["sep"],
        options["decimal"],
        options["encoding"],
        tuple(options["missing"]),
        options["skip_rows"],
        options["sheet"],
        prefix="--",
    )


def read_columns(options: Mapping[str, Any]) -> ColumnRoles:
    """The role of each column."""
    return ColumnRoles(
        target=options["target"],
        sensitive=tuple(dict.fromkeys(options["sensitive"])),
        drop=tuple(options.get("drop", ())),
        categorical=tuple(options.get("categorical", ())),
        keep=tuple(options.get("keep", ())),
        bins=dict(options.get("bins", ())),
        y_desirable=options["desirable"],
        use_sensitive=options.get("use_sensitive", False),
        prefix="--",
    )


def _checked_outputs(options: Mapping[str, Any]) -> dict[str, Path]:
    """The files to write, by option."""
    outputs = {
        name: check_file(options[name], force=options["force"])
        for name in ("out", "report")
        if options.get(name) is not None
    }
    if not outputs:
        refuse_idle(options, ["force"], "without a file to write")
    return outputs


@dataclass(frozen=True)
class ModelSettings:
    """How to train, and how to choose among the models trained.

    Attributes:
        measures: the names of the fairness measures; all of them are enforced.
        tolerance: the largest |F| that is judged fair, or "80%" for the four-fifths rule.
        exact: train for exact fairness, in place of the most accurate model within the tolerance.
        certify: choose the model that is likeliest to be certified.
        max_unfairness: choose the most accurate model with at most this unfairness.
        min_accuracy: choose the fairest model with at least this accuracy.
        points: number of models to train; None for as few as the tolerance needs.
        baseline: whether to train a model for accuracy alone, to compare with.
        separate: constrain each sensitive column by itself, instead of their combinations.
        within: sensitive columns within whose values the groups of the others are compared.
        costs: mistakes, as ``TRUE:PREDICTED``, with what each costs; all others cost 1. If there
            are any, models are chosen by the mean cost in place of the accuracy.
        model: "network", or "lightgbm" or "xgboost" for boosted trees.
        layers: sizes of the hidden layers of a network; none is a linear model.
        epochs: passes over the rows, or the number of trees; None for the default.
        min_group: groups of fewer rows do not steer the training, and are not judged.
        seed: of the split, the initial weights and the shuffling.
    """

    measures: tuple[str, ...] = ("equalized_odds",)
    tolerance: float | str = 0.05
    exact: bool = False
    certify: bool = False
    max_unfairness: float | None = None
    min_accuracy: float | None = None
    points: int | None = None
    baseline: bool = True
    separate: bool = False
    within: tuple[str, ...] = ()
    costs: tuple[tuple[str, float], ...] = ()
    model: str = "network"
    layers: tuple[int, ...] = ()
    epochs: int | None = None
    min_group: float = MIN_GROUP
    seed: int = 0

    def __post_init__(self) -> None:
        named = tuple(dict.fromkeys(ALIASES.get(name, name) for name in self.measures))
        object.__setattr__(self, "measures", named)
        unknown = [n for n in named if isinstance(as_measure(n), str) and n not in MEASURES]
        if unknown or not named:
            got = repr(unknown[0]) if unknown else "empty"
            raise ValueError(f"--measure is {got}; expected {', '.join(MEASURES)}")
        bounds = {"--max-unfairness": self.max_unfairness, "--min-accuracy": self.min_accuracy}
        if None not in bounds.values():
            raise ValueError(f"{' and '.join(bounds)} exclude each other; use only one of them")
        if self.grows_trees:
            refuse_idle({"layers": self.layers}, ["layers"], f"with --model {self.model}")

    @property
    def grows_trees(self) -> bool:
        """Whether the model is boosted trees."""
        return self.model in TREES

    @property
    def audit_tolerance(self) -> Any:
        """As the audit takes it."""
        return audit_tolerance(self.tolerance)

    def cost_matrix(self, labels: Sequence[Any]) -> list[list[float]] | None:
        """(L, L) what predictions (columns) of each true label cost; None if all mistakes cost 1.

        Args:
            labels: the values of the target, in the order of rows and columns.

        Raises:
            ValueError: if a mistake is none of these labels, or no mistake costs anything.
        """
        if not self.costs:
            return None
        names = [str(label) for label in labels]
        matrix = [[float(true != other) for other in names] for true in names]
        for mistake, cost in self.costs:
            colons = [i for i, sign in enumerate(mistake) if sign == ":"]
            pairs = [(mistake[:i].strip(), mistake[i + 1 :].strip()) for i in colons]
            known = [(a, b) for a, b in pairs if a in names and b in names and a != b]
            if len(known) != 1:
                raise ValueError(
                    f"--cost is {mistake}={cost:g}; expected TRUE:PREDICTED=COST with two "
                    f"different values of the target: {', '.join(names)}"
                )
            true, predicted = (names.index(name) for name in known[0])
            matrix[true][predicted] = cost
        if not any(map(any, matrix)):
            raise ValueError("--cost: no mistake costs anything; expected one that costs more")
        return matrix

    def measure_on(self, attributes: Sequence[str]) -> Any:
        """The measures as estimator and audit take them."""
        measures = measures_on(
            self.measures, attributes, separate=self.separate, within=self.within
        )
        return measures[0] if len(measures) == 1 else measures

    def in_words(self, attributes: Sequence[str]) -> dict[str, str]:
        """What was asked, for people."""
        compared = [name for name in attributes if name not in self.within]
        joined = " and ".join(compared)
        several = f"{joined}, {'each by itself' if self.separate else 'combined'}"
        words = {
            "Fairness measure": conjoined([name.replace("_", " ") for name in self.measures]),
            "Groups by": (several if len(compared) > 1 else joined)
            + (f", within {' and '.join(self.within)}" if self.within else ""),
            "Asked for": self._goal(),
            "Model": self._model(),
            "Random seed": str(self.seed),
        }
        if self.costs:
            listed = ", ".join(f"{mistake} {cost:g}" for mistake, cost in self.costs)
            words["Costs (true value:predicted value)"] = f"{listed}; other mistakes 1"
        return words

    def _model(self) -> str:
        if self.grows_trees:
            return f"boosted trees ({TREES[self.model]}) with fair decisions"
        sizes = ", ".join(map(str, self.layers))
        return f"network with hidden layers {sizes}" if self.layers else "linear"

    def _goal(self) -> str:
        best = "cheapest" if self.costs else "most accurate"
        if self.exact:
            return "exact fairness (epsilon 0)"
        if self.max_unfairness is not None:
            return f"the {best} model with an unfairness of at most {self.max_unfairness:g}"
        if self.min_accuracy is not None:
            return f"the fairest model with an accuracy of at least {self.min_accuracy:g}"
        tolerance = (
            f"{self.tolerance} of the highest selection rate"
            if isinstance(self.tolerance, str)
            else f"a tolerance of {self.tolerance:g}"
        )
        judged = "certified" if self.certify else "judged"
        return f"the {best} model that is likely to be {judged} fair within {tolerance}"


@dataclass(frozen=True)
class JudgingPlan:
    """Which rows a model is judged on.

    Attributes:
        file: a table of test rows; None if they are held out of the training table.
        share: of the rows to hold out.
        folds: of cross-validation; 0 for none, None if small tables get some.
    """

    file: str | None = None
    share: float = TEST
    folds: int | None = 0

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, certify: bool) -> JudgingPlan:
        """The rows that the options name.

        Raises:
            ValueError: if two options exclude each other, or a file is missing.
        """
        asked = {
            "--test": options["test"],
            "--test-size": options["test_size"],
            "--folds": options.get("folds"),
        }
        named = [option for option, value in asked.items() if value is not None]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)} exclude each other; use only one of them")
        if asked["--folds"] == 1:
            raise ValueError("--folds is 1; use at least 2, or 0 for none")
        if options["test"] is not None:
            table_files(options["test"])  # that it exists
        is_open = not named and "folds" in options and not certify
        folds = None if is_open else options.get("folds") or 0
        return cls(options["test"], options["test_size"] or TEST, folds)

    def folds_of(self, rows: int) -> int:
        """How many folds a table of so many rows is divided into; 0 for none."""
        if self.folds is None:
            return FOLDS if rows < SMALL_TABLE else 0
        return self.folds


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What `fairgrad fit`, `certify` and `frontier` are asked.

    Attributes:
        table: the files of the training table.
        columns: the role of each column.
        reading: what the user says about files.
        plan: which rows the model is judged on.
        settings: how to train and to choose.
        train_rows: how many rows to train on at most.
        key: columns that identify a row when the table is sampled.
        out: the folder to write, as typed; None to write nothing.
        folder: the same, checked.
        fail_on: the verdict that the exit code reports.
        as_json: print JSON in place of text.
    """

    table: tuple[str, ...]
    columns: ColumnRoles
    settings: ModelSettings
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    plan: JudgingPlan = field(default_factory=JudgingPlan)
    train_rows: int = TRAIN_ROWS
    key: tuple[str, ...] = ()
    out: str | None = None
    folder: Path | None = None
    fail_on: str | None = None
    as_json: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, certify: bool = False) -> FitRequest:
        """Reads the options; all that can be checked without the rows is checked.

        Args:
            options: of `fit`, `certify` or `frontier`.
            certify: whether the model is to be certified.

        Raises:
            ValueError: if an option is wrong or has no effect, or a column is missing.
        """
        same = ("tolerance", "separate", "within", "model", "layers", "epochs", "min_group", "seed")
        of_some = ("exact", "max_unfairness", "min_accuracy", "points")
        settings = ModelSettings(
            tuple(options["measure"]),
            **{name: options[name] for name in same},
            **{name: options[name] for name in of_some if name in options},
            costs=tuple(options["cost"]),
            certify=certify,
            baseline=not options.get("no_baseline", False),
        )
        columns, reading = read_columns(options), read_options(options)
        settings.measure_on(columns.sensitive)  # refused before anything is read
        if settings.grows_trees and find_spec(settings.model) is None:
            raise ValueError(
                f"--model {settings.model} needs the package {settings.model}: "
                f"pip install 'fairgrad[{settings.model}]'"
            )
        out = options["out"]
        if out is None:
            refuse_idle(options, ["force"], "without --out")
        folder = None if out is None else check_folder(out, force=options["force"])
        columns.check(column_names(options["table"], reading))
        return cls(
            table=options["table"],
            columns=columns,
            settings=settings,
            reading=reading,
            plan=JudgingPlan.from_options(options, certify=certify),
            train_rows=options["train_rows"],
            key=tuple(options["key"]),
            out=out,
            folder=folder,
            fail_on=options.get("fail_on"),
            as_json=options["as_json"],
        )


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What `fairgrad audit`, `impact`, `compare` and `sql counts` are asked.

    Attributes:
        table: the files of the rows, or the name of a table in a warehouse.
        model: the folder of the model to audit; None to audit predictions in a column.
        reading: what the user says about files.
        target: column of true values; None to audit selection rates alone, or with a model.
        sensitive: columns that define the groups.
        desirable: desirable value of the target.
        bins: how to cut numeric sensitive columns into groups.
        prediction: column of predictions.
        baseline: column of another system's predictions.
        score: column of scores.
        threshold: scores of at least this predict the desirable value.
        weight: column of sample weights.
        cluster: column that says which rows belong together.
        value_map: what predicted values stand for.
        search: columns to search subgroups with.
        held_out: audit the rows that were held out when the model was trained.
        counts: each row of the table stands for as many rows as its column n_rows says.
        measure: the fairness measures that the verdict is about.
        within: sensitive columns within whose values groups are compared.
        tolerance: the largest |F| that is judged fair, or "80%".
        min_group: groups of fewer rows are shown, but not judged.
        confidence: of the intervals and the verdict.
        time: column of dates.
        period: the length of a period.
        outputs: files to write, by option.
        fail_on: the verdict that the exit code reports.
        as_json: print JSON in place of text.
    """

    table: tuple[str, ...]
    model: str | None = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    target: str | None = None
    sensitive: tuple[str, ...] = ()
    desirable: str | None = None
    bins: tuple[tuple[str, list[float]], ...] = ()
    prediction: str | None = None
    baseline: str | None = None
    score: str | None = None
    threshold: float | None = None
    weight: str | None = None
    cluster: str | None = None
    value_map: tuple[Mapping[str, str], ...] = ()
    search: tuple[str, ...] = ()
    held_out: bool = False
    counts: bool = False
    measure: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    tolerance: float | str = 0.05
    min_group: float = MIN_GROUP
    confidence: float = 0.95
    time: str | None = None
    period: str = "month"
    outputs: Mapping[str, Path] = field(default_factory=dict)
    fail_on: str | None = None
    as_json: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **changed: Any) -> AuditRequest:
        """Reads the options; those that would have no effect are refused.

        Args:
            options: of a command that audits.
            **changed: fields that do not follow from an option.

        Raises:
            ValueError: if an option is wrong or has no effect.
        """
        known = {name: v for name, v in options.items() if name in cls.__dataclass_fields__}
        known["value_map"], known["period"] = (
            options.get("map", ()),
            options.get("period") or "month",
        )
        known["reading"], known["outputs"] = read_options(options), _checked_outputs(options)
        request = cls(**known | changed)
        request._refuse_idle(options)
        return request

    @classmethod
    def of_subject(cls, options: Mapping[str, Any]) -> AuditRequest:
        """The request of a command whose first argument is a model, or the first file of a table.

        Raises:
            ValueError: if a model comes without a table, or an option is wrong or has no effect.
        """
        subject, table = options["subject"], options["table"]
        path = Path(subject)
        if not table or path.is_file() or subject == "-":
            if (path / MARK).is_file():
                raise ValueError(
                    f"{subject} is a folder; add the table to audit this model on: "
                    f"fairgrad audit {subject} table.csv"
                )
            return cls.from_options(options, table=(subject, *table))
        return cls.from_options(options, model=subject)

    def _refuse_idle(self, options: Mapping[str, Any]) -> None:
        """Refuses options that would have no effect in this call."""
        if self.model is not None:
            of_tables = ("prediction", "desirable", "bins", "target", "threshold", "counts")
            refuse_idle(options, of_tables, "with a model, which brings its own")
        else:
            refuse_idle(options, ["held_out"], "without a model")
        if "prediction" in options and not (self.prediction or self.baseline):
            refuse_idle(options, ["map"], "without a column of predictions")
        if self.time is None:
            refuse_idle(options, ["period"], "without --time")
        if self.as_json:
            refuse_idle(options, ["explain"], "with --json, which contains everything")
        if self.counts:
            refuse_idle(
                options, ["search", "cluster"], "with --counts: it needs the rows themselves"
            )
        for name in ("target", "prediction", "score", "baseline"):
            # Subgroups by what is predicted would have the largest gaps of all.
            if options.get(name) and options[name] in self.search:
                raise ValueError(f"--search {options[name]} is the column of --{name}; name others")

    @property
    def columns(self) -> ColumnRoles:
        """The role of each column; without a target the predictions take its place."""
        return ColumnRoles(
            target=self.target or self.prediction or self.score or "",
            sensitive=tuple(dict.fromkeys(self.sensitive)),
            bins=dict(self.bins),
            y_desirable=self.desirable,
            prefix="--",
        )

    @property
    def further(self) -> dict[str, str]:
        """The further columns that every row must have, by the option that names them."""
        named = {
            "prediction": self.prediction if self.target else None,
            "baseline": self.baseline,
            "score": self.score,
            "weight": self.weight,
            "cluster": self.cluster,
            "time": self.time,
        }
        return {option: column for option, column in named.items() if column}

    def check_columns(self) -> None:
        """Refuses a table with predictions if too little is known about its columns."""
        by_score = self.score is not None and self.threshold is not None
        if not self.prediction and not by_score:
            raise ValueError(NEEDS_COLUMNS.format("--prediction"))
        if not self.sensitive:
            raise ValueError(NEEDS_COLUMNS.format("--sensitive"))
        if not self.target and not self.prediction:
            raise ValueError(NEEDS_COLUMNS.format("--target"))
        if self.threshold is not None and not self.score:
            raise ValueError("--threshold needs --score, the column it is a threshold of")


LARGE_TABLE, LARGE_TEXT = 100_000_000, 1 << 30
"""Values of Parquet files, or bytes of text files, from which on rows are not held."""


def is_large(table: TableSource) -> bool:
    """Whether a table is so large that its rows should not be held."""
    files = table_files(table)
    if not all(is_parquet(path) for path in files):
        return sum(path.stat().st_size for path in files) >= LARGE_TEXT
    return parquet_size(files)[1] >= LARGE_TABLE


def audit_tolerance(tolerance: float | str) -> Any:
    """As the audit takes it: the four-fifths rule is about demographic parity alone."""
    return {"demographic_parity": tolerance} if isinstance(tolerance, str) else tolerance


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


def exit_code(verdict: str, fail_on: str | None) -> int:
    """1 if the verdict matches --fail-on; with "undecided", an unfair verdict matches as well."""
    fails = {"unfair": {UNFAIR}, "undecided": {UNFAIR, UNDECIDED}}
    return UNFAIR_CODE if fail_on is not None and verdict in fails[fail_on] else 0
