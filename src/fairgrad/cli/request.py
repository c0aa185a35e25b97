"""What the user asks for, checked before the table is read and before anything is trained.

Nothing here imports PyTorch: a misspelt column is reported at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fairgrad.audit import UNDECIDED, UNFAIR, Notice
from fairgrad.audit.asked import DEFAULT_MEASURES
from fairgrad.audit.comparisons import WITHOUT_LABELS
from fairgrad.audit.notices import doubtful_desirable
from fairgrad.audit.words import conjoined
from fairgrad.cli.folder import check_folder
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import ALIASES, MEASURES, On, as_measure, uses_desirable
from fairgrad.splitting import TEST
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.reading import column_names, is_parquet, stored_values, table_files
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fairgrad.tables.reading import TableSource

SMALL_TABLE, FOLDS = 2_000, 5
"""Tables with fewer rows are audited by cross-validation: a fifth of them would settle nothing."""

METHODS = {
    "gradient": "trained with weights",
    "decision": "made of fair decisions on a plain model",
    "auto": "the better of two methods on the validation rows",
}
"""What --method says, for people."""

UNFAIR_CODE = 1
"""The exit code of --fail-on."""


def measures_on(
    measures: Sequence[str],
    attributes: Sequence[str],
    *,
    separate: bool = False,
    given: Sequence[str] = (),
) -> list[Any]:
    """Measures of all combinations of the attributes, or of each by itself, given some of them.

    Raises:
        ValueError: if those given are no attributes, or no other is left to compare.
    """
    strangers = [name for name in given if name not in attributes]
    if strangers:
        raise ValueError(
            f"--given is {strangers[0]!r}; expected one of the sensitive columns "
            f"({', '.join(attributes)}): name it with --sensitive, too"
        )
    compared = tuple(name for name in attributes if name not in given)
    if not compared:
        raise ValueError("--given: no sensitive column is left whose groups could be compared")
    if separate and len(compared) > 1:
        within = tuple(given)
        return [On(name, one, given=within) for one in measures for name in compared]
    if given:
        return [On(compared, measure, given=tuple(given)) for measure in measures]
    return list(measures)


@dataclass(frozen=True)
class ModelSettings:
    """How to train.

    Attributes:
        measures: the names of the fairness measures; all of them are enforced.
        epsilon: slack of its constraints; None for exact fairness, or where a bound chooses it.
        max_unfairness: take the most accurate of several models with at most this unfairness.
        min_accuracy: take the fairest of several models with at least this accuracy.
        certify: take a model only if it is certified to be fair within the tolerance.
        separate: constrain each sensitive column by itself, instead of their combinations.
        given: sensitive columns within whose values the groups of the others are compared.
        costs: mistakes, as ``TRUE:PREDICTED``, with what each costs; all others cost 1. If there
            are any, models are chosen by the mean cost in place of the accuracy.
        model: "network", or "lightgbm" for boosted trees.
        method: "gradient" (weights in training), "decision" (fair decisions on the probabilities of
            a plain model), or "auto" for the better of both on the validation rows.
        hidden: sizes of the hidden layers; none is a linear model.
        epochs: passes over the rows, or the number of trees; None for the estimator's default.
        batch_size: rows per step; None for the estimator's default.
        paper_grid: train the paper's six combinations and select as the paper does.
        points: number of models of the frontier, where one is trained.
        min_group: groups of fewer rows do not steer the training, and are not judged.
        seed: of the split, the initial weights and the shuffling.
        verbose: whether to show a progress bar; "auto" on terminals, when it takes long.
    """

    measures: tuple[str, ...] = ("equalized_odds",)
    epsilon: float | None = None
    max_unfairness: float | None = None
    min_accuracy: float | None = None
    certify: bool = False
    separate: bool = False
    given: tuple[str, ...] = ()
    costs: tuple[tuple[str, float], ...] = ()
    model: str = "network"
    method: str = "gradient"
    hidden: tuple[int, ...] = ()
    epochs: int | None = None
    batch_size: int | None = None
    paper_grid: bool = False
    points: int = 16
    min_group: float = MIN_GROUP
    seed: int = 0
    verbose: bool | str = "auto"

    def __post_init__(self) -> None:
        named = tuple(dict.fromkeys(ALIASES.get(name, name) for name in self.measures))
        object.__setattr__(self, "measures", named)
        strangers = [n for n in named if isinstance(as_measure(n), str) and n not in MEASURES]
        if strangers or not named:
            got = repr(strangers[0]) if strangers else "empty"
            raise ValueError(f"--measure is {got}; expected {', '.join(MEASURES)}")
        bounds = {
            "--epsilon": self.epsilon,
            "--max-unfairness": self.max_unfairness,
            "--min-accuracy": self.min_accuracy,
            "--certify": self.certify or None,
        }
        given = [name for name, value in bounds.items() if value is not None]
        given += ["--grid paper"] if self.paper_grid and self.by_frontier else []
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; use only one of them")
        if self.paper_grid and self.batch_size is not None:
            raise ValueError("--grid paper tries batches of 64 and 512; leave out --batch-size")
        for_networks = {
            "--hidden": self.hidden,
            "--batch-size": self.batch_size,
            "--grid paper": self.paper_grid,
        }
        unfit = [option for option, value in for_networks.items() if value]
        if self.grows_trees and unfit:
            raise ValueError(f"{unfit[0]} is for networks; leave it out with --model lightgbm")
        if self.method != "gradient" and self.paper_grid:
            raise ValueError(f"--grid paper trains by gradient; leave out --method {self.method}")
        if self.method == "auto" and self.by_frontier and not self.certify:
            raise ValueError(
                "--method auto: a frontier is of one method; name gradient or decision"
            )

    def cost_matrix(self, labels: Sequence[str]) -> list[list[float]] | None:
        """What predictions (columns) of each true label cost; None if no costs were given.

        Args:
            labels: in the order of rows and columns.

        Raises:
            ValueError: if a cost is not of two of these labels, or no mistake costs anything.
        """
        if not self.costs:
            return None
        own = [str(label) for label in labels]
        found = [[float(true != other) for other in own] for true in own]
        for mistake, cost in self.costs:
            places = [i for i, sign in enumerate(mistake) if sign == ":"]
            pairs = [(mistake[:i].strip(), mistake[i + 1 :].strip()) for i in places]
            known = [(a, b) for a, b in pairs if a in own and b in own and a != b]
            if len(known) != 1:
                raise ValueError(
                    f"--cost is {mistake}={cost:g}; expected TRUE:PREDICTED=COST with two "
                    f"different values of the target: {', '.join(own)}"
                )
            true, predicted = (own.index(name) for name in known[0])
            found[true][predicted] = cost
        if not any(map(any, found)):
            raise ValueError("--cost: no mistake costs anything; expected one that costs more")
        return found

    @property
    def grows_trees(self) -> bool:
        """Whether the model is boosted trees."""
        return self.model == "lightgbm"

    @property
    def by_frontier(self) -> bool:
        """Whether the model is chosen among those of a frontier."""
        bounds = (self.max_unfairness, self.min_accuracy)
        return self.certify or any(bound is not None for bound in bounds)

    def measure_on(self, attributes: Sequence[str]) -> Any:
        """The measures as estimator and audit take them."""
        found = measures_on(self.measures, attributes, separate=self.separate, given=self.given)
        return found[0] if len(found) == 1 else found

    def in_words(self, attributes: Sequence[str]) -> dict[str, str]:
        """For people: what was asked."""
        attributes = [name for name in attributes if name not in self.given]
        joined = " and ".join(attributes)
        several = f"{joined}, {'each by itself' if self.separate else 'combined'}"
        words = {
            "Fairness measure": conjoined([name.replace("_", " ") for name in self.measures]),
            "Groups by": (several if len(attributes) > 1 else joined)
            + (f", given {' and '.join(self.given)}" if self.given else ""),
            "Asked for": self._asked(),
            "Model": self._model(),
            "Random seed": str(self.seed),
        }
        if self.costs:
            own = ", ".join(f"{mistake} {cost:g}" for mistake, cost in self.costs)
            words["Costs (true value:predicted value)"] = f"{own}; other mistakes 1"
        if self.paper_grid:
            words["Training"] = "the paper's grid of 6 combinations, selected on validation rows"
        return words

    def _model(self) -> str:
        kind = f"hidden layers {', '.join(map(str, self.hidden))}" if self.hidden else "linear"
        kind = "boosted trees (LightGBM)" if self.grows_trees else kind
        return kind if self.method == "gradient" else f"{kind}, {METHODS[self.method]}"

    def _asked(self) -> str:
        if self.max_unfairness is not None:
            best = "cheapest" if self.costs else "most accurate"
            return f"the {best} model with an unfairness of at most {self.max_unfairness:g}"
        if self.min_accuracy is not None:
            return f"the fairest model with an accuracy of at least {self.min_accuracy:g}"
        if self.certify:
            best = "cheapest" if self.costs else "most accurate"
            return f"the {best} model that is certified to be fair within the tolerance"
        return f"epsilon {self.epsilon:g}" if self.epsilon else "exact fairness (epsilon 0)"


@dataclass(frozen=True)
class JudgingPlan:
    """Which rows a model is judged on.

    Attributes:
        file: a table of their own; None if they are held out of the other.
        share: of the rows to hold out.
        folds: of cross-validation; 0 for none, None if small tables get some.
    """

    file: str | None = None
    share: float = TEST
    folds: int | None = 0

    def folds_of(self, rows: int) -> int:
        """How many folds a table of so many rows is divided into; 0 for none."""
        if self.folds is None:
            return FOLDS if rows < SMALL_TABLE else 0
        return self.folds


def read_plan(given: Mapping[str, Any]) -> JudgingPlan:
    """Which rows the model is judged on, as the options say."""
    asked = {
        "--test": given["test"],
        "--test-share": given["test_share"],
        "--folds": given.get("folds"),
    }
    named = [option for option, value in asked.items() if value is not None]
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} exclude each other; use only one of them")
    if asked["--folds"] == 1:
        raise ValueError("--folds is 1; two are the least, and 0 means none")
    certify = given.get("certify", False)
    if asked["--folds"] and certify:
        raise ValueError("--certify judges one model on test rows; leave out --folds")
    if given["test"] is not None:
        table_files(given["test"])  # that it is there
    is_open = not named and "folds" in given and not certify
    return JudgingPlan(
        given["test"], given["test_share"] or TEST, None if is_open else given.get("folds") or 0
    )


LARGE_TABLE, LARGE_TEXT = 100_000_000, 1 << 30
"""Values of Parquet files, or bytes of text files, from which on rows are not held."""


def is_large(table: TableSource) -> bool:
    """Whether a table is so large that its rows should not be held."""
    files = table_files(table)
    if not all(is_parquet(path) for path in files):
        return sum(path.stat().st_size for path in files) >= LARGE_TEXT
    return stored_values(files) >= LARGE_TABLE


def read_options(given: Mapping[str, Any]) -> ReadingOptions:
    """What the user says about files."""
    return ReadingOptions(
        given["sep"], given["decimal"], given["encoding"], tuple(given["missing"]), prefix="--"
    )


def read_request(given: Mapping[str, Any]) -> tuple[ColumnRoles, ModelSettings, Path | None]:
    """The columns, settings and output folder of `fit` or `frontier`.

    Every check that needs no data is done here.
    """
    columns, out = read_columns(given), given["out"]
    named = {one.name: given[one.name] for one in fields(ModelSettings) if one.name in given}
    named["measures"] = tuple(given["measure"])
    named["costs"] = tuple(given.get("cost", ()))
    settings = ModelSettings(**named, paper_grid=given.get("grid") == "paper")
    settings.measure_on(columns.sensitive)  # refused before anything is read
    folder = None if out is None else check_folder(out, force=given["force"])
    if settings.grows_trees and find_spec("lightgbm") is None:
        raise ValueError(
            "--model lightgbm needs the package lightgbm: pip install 'fairgrad[lightgbm]'"
        )
    columns.check(column_names(given["table"], read_options(given)))
    read_plan(given)
    return columns, settings, folder


def read_columns(given: Mapping[str, Any]) -> ColumnRoles:
    """The role of each column."""
    return ColumnRoles(
        target=given["target"],
        sensitive=tuple(dict.fromkeys(given["sensitive"])),
        drop=tuple(given.get("drop", ())),
        categorical=tuple(given.get("categorical", ())),
        keep=tuple(given.get("keep", ())),
        bins=dict(given["bins"]),
        y_desirable=given["desirable"],
        use_sensitive=given.get("use_sensitive", False),
        prefix="--",
    )


def read_tolerance(given: Mapping[str, Any]) -> Any:
    """As the audit takes it: the 80 % rule is about demographic parity alone."""
    tolerance = given["tolerance"]
    return {"demographic_parity": tolerance} if tolerance == "four_fifths" else tolerance


def usual_measures(desirable: str | None, *, has_labels: bool = True) -> list[str]:
    """The audit's own measures, without the one that needs a desirable label if there is none."""
    known = DEFAULT_MEASURES if has_labels else WITHOUT_LABELS
    return [n for n in known if desirable is not None or not uses_desirable(n)]


def guessed_desirable(columns: ColumnRoles, labels: Sequence[str]) -> list[Notice]:
    """What to say if the desirable value was not named, and its name is bad news."""
    desirable = columns.desirable(labels)
    guessed = [desirable] if columns.y_desirable is None and desirable is not None else []
    said = doubtful_desirable(guessed, columns.target, labels)
    return [Notice("desirable", said)] if said else []


def exit_code(verdict: str, fail_on: str | None) -> int:
    """1 if the verdict is one the user asked to fail on; an unfair one is no better than open."""
    fails = {"unfair": {UNFAIR}, "undecided": {UNFAIR, UNDECIDED}}
    return UNFAIR_CODE if fail_on is not None and verdict in fails[fail_on] else 0
