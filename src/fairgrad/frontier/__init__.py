"""The accuracy-fairness frontier: models for many epsilons, judged, and the choice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fairgrad.checks import check_count, check_number, warn
from fairgrad.frontier.models import (
    EpsilonModels,
    FrontierRows,
    ModelAudits,
    best_of_kind,
    group_rates,
    non_dominated,
    point_merit,
    shown_points,
)
from fairgrad.groups import MIN_GROUP, group_rows
from fairgrad.measures import desirable_labels, measure_name, uses_desirable
from fairgrad.sklearn import FairGradClassifier
from fairgrad.splitting import hold_out, unpack_rows
from fairgrad.text import Section, as_html
from fairgrad.usefulness import TOLERATED_LOSS, FairnessWarning, ShownInNotebooks, Suggestions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Floats
    from fairgrad.report import FrontierData

__all__ = ["Frontier", "non_dominated"]

DEFAULT_MEASURE = "equalized_odds"

PART = "validation"
"""Models are chosen by these rows, never by test rows."""

SMALLEST, LARGEST = 0.002, 0.3
"""In most tables, less slack is lost in the noise, and with more slack few constraints bind."""

KINDS = {False: "blind", True: "aware: needs the sensitive value to predict"}
NOTE = (
    "Lines: {confidence:.0f} % intervals of the models that no other model beats in both figures."
)
AWARE_NOTE = (
    " Aware models use the sensitive value to predict. What they gain over the others is the price "
    "of not using it. The law may forbid them."
)
COST_NOTE = (
    " The models are compared and chosen by the mean cost of their predictions, not by the "
    "accuracy shown."
)


class Frontier(ShownInNotebooks, BaseEstimator):  # type: ignore[misc]  # untyped base
    """The trade-off between accuracy and fairness: one model for every epsilon.

    `FairGradClassifier` is trained for all epsilons in one pass, which takes about half as long as
    separate fits and gives the same models. Any other estimator with an epsilon is fitted once for
    each. Models are judged, and chosen, on rows they were not trained on.

    Args:
        estimator: a `FairGradClassifier` (the default), a Pipeline that ends in one, or any other
            classifier with a parameter `epsilon` whose fit takes `sensitive_features`.
        fairness_measure: as in `FairGradClassifier`; by default the estimator's own, or
            "equalized_odds".
        epsilons: the number of models, from exact fairness to the plain model; or a list of
            epsilons, in which infinity is the plain model.
        use_sensitive: whether models may use the sensitive values to predict; "both" trains
            blind and aware models for every epsilon and shows both, so that you can compare them.
            None takes the estimator's setting.
        validation_fraction: the share of the rows that is held out to judge the models, stratified
            by label and group. Not used if `fit` gets validation rows.
        y_desirable: desirable labels, for equality of opportunity and the four-fifths rule; by
            default the estimator's setting, or the second of two classes.
        min_group: groups with fewer rows are neither constrained nor judged; below 1 a share of the
            rows. None takes the estimator's setting, or 30 rows.
        confidence: the confidence level of each interval.
        n_jobs: the number of parallel fits, as in joblib, for estimators that are fitted one by
            one.
        random_state: the seed of the split and of the training.

    Attributes:
        points_: one row per model: epsilon, use_sensitive, and accuracy and unfairness (mean
            of |F|) on the validation rows and on the test rows, if there are any. The columns
            `_low` and `_high` are the ends of their intervals: Clopper and Pearson's for the
            accuracy, those of `fairgrad.audit.Finding` for the unfairness. `on_frontier` is true
            if, on the validation rows, no other model of the same `use_sensitive` is fairer and as
            accurate, or more accurate and as fair. If the estimator has a `cost_matrix`, there is
            also the mean cost of predictions (`_cost`), and models are compared by it instead of
            the accuracy.
        useful_: (points,) which models are better than one label for everybody on the validation
            rows: more accurate, or, where one label is not fair, fairer. If there are any, only
            these are chosen.
        estimators_: the fitted models, in the order of the points.
        audits_: for "validation" and "test", a sequence with the audit of each model.
        fairness_measure_: the measure in use.
        desirable_: the desirable labels; none if the measure does not use them.
        classes_: the class labels.
        seed_: the random state of every model.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=2000) > 0.5).astype(int)
        >>> frontier = Frontier(fairness_measure="demographic_parity", epsilons=8, random_state=0)
        >>> frontier = frontier.fit(X, y, sensitive_features=sex)
        >>> frontier.points_[["epsilon", "validation_accuracy"]].shape
        (8, 2)
        >>> model = frontier.select(max_unfairness=0.1)
        >>> model.predict([[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0]])
        array([1, 0])
    """

    def __init__(
        self,
        estimator: Any = None,
        fairness_measure: Any = None,
        epsilons: Any = 32,
        *,
        use_sensitive: bool | str | None = None,
        validation_fraction: float = 0.2,
        y_desirable: Any = None,
        min_group: float | None = None,
        confidence: float = 0.95,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fairness_measure = fairness_measure
        self.epsilons = epsilons
        self.use_sensitive = use_sensitive
        self.validation_fraction = validation_fraction
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.confidence = confidence
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        validation: Any = None,
        test: Any = None,
        membership: Any = None,
    ) -> Frontier:
        """Trains and judges all models.

        Args:
            X: (n, features) as the estimator takes them.
            y: (n,) labels.
            sensitive_features: (n,) sensitive values, or a table with one column per attribute.
            sample_weight: (n,) non-negative weights.
            validation: (X, y, sensitive_features) to judge the models and choose among them,
                instead of held-out rows.
            test: (X, y, sensitive_features) to judge the models; they are never chosen by it.
            membership: probabilities of the groups of rows whose group is unknown, as in
                `FairGradClassifier.fit`; requires `validation`.

        Raises:
            ValueError: if an argument is missing or not allowed.
        """
        models = EpsilonModels(FairGradClassifier() if self.estimator is None else self.estimator)
        if self.min_group is not None:
            models = models.with_setting("min_group", self.min_group)
        is_ours = "fairness_measure" in models.settings  # an infinite epsilon is the plain model
        epsilons = epsilon_grid(self.epsilons, with_plain=is_ours)
        measure = models.setting("fairness_measure", self.fairness_measure, DEFAULT_MEASURE)
        if measure is None:
            raise ValueError(
                "fairness_measure: the estimator has none; name the measure to judge models by."
            )
        kinds = models.kinds(self.use_sensitive)
        everything = FrontierRows.read(X, y, sensitive_features, sample_weight, membership)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        training, judged = everything, {}
        if validation is None:
            fraction = check_number(
                "validation_fraction", self.validation_fraction, above=0.0, below=1.0
            )
            cell = group_rows(everything.y, everything.s).cell()
            rows, held = hold_out(cell, fraction, seed)
            training, judged[PART] = everything.take(rows), everything.take(held)
        for name, argument in {PART: validation, "test": test}.items():
            if argument is not None:
                judged[name] = FrontierRows.read(*unpack_rows(argument, name))
        if membership is not None and validation is None:
            raise ValueError("validation: required together with membership.")
        fitted = [k.fit(training, measure, epsilons, seed, self.n_jobs) for k in kinds.values()]
        classes = np.asarray(fitted[0].models[0].classes_)
        asked = models.setting("y_desirable", self.y_desirable)
        desirable = [classes.tolist()[i] for i in desirable_labels(classes, asked)]
        costs = models.settings.get("cost_matrix")
        how: dict[str, Any] = {
            "desirable": desirable,
            "confidence": self.confidence,
            "min_group": models.setting("min_group", self.min_group, MIN_GROUP),
            "costs": None if costs is None else np.asarray(costs, dtype=np.float64),
        }
        self._fitted, self.fairness_measure_, self.classes_ = fitted, measure, classes
        self.seed_ = seed
        self.desirable_ = tuple(desirable) if uses_desirable(measure) else ()
        self.audits_ = {
            name: ModelAudits(
                people, [p for k in fitted for p in k.predict(people)], measure, classes, **how
            )
            for name, people in judged.items()
        }
        figures = {name: audits.figures() for name, audits in self.audits_.items()}
        points: dict[str, Any] = {
            "epsilon": np.tile(epsilons, len(kinds)),
            "use_sensitive": np.repeat(list(kinds), len(epsilons)),
        }
        for name, values in figures.items():
            points |= {f"{name}_{figure}": value for figure, value in values.items()}
        self.points_ = pd.DataFrame(points | {"on_frontier": best_of_kind(points, f"{PART}_")})
        self.useful_ = self.audits_[PART].useful(figures[PART])
        return self

    @property
    def estimators_(self) -> list[Any]:
        """The fitted models, in the order of the points."""
        check_is_fitted(self, "points_")
        return [model for kind in self._fitted for model in kind.estimators]

    def choose(
        self,
        *,
        max_unfairness: float | None = None,
        min_accuracy: float | None = None,
        use_sensitive: bool = False,
    ) -> int:
        """The position in `points_` of the model that `select` gives."""
        check_is_fitted(self, "points_")
        points = self.points_
        if len(self._fitted) > 1:  # blind and aware models
            points = points[points["use_sensitive"] == bool(use_sensitive)]
        useful = self.useful_[points.index]
        chosen = choose(points.reset_index(drop=True), max_unfairness, min_accuracy, useful)
        if not useful[chosen]:
            accuracy, unfair = points.iloc[chosen][[f"{PART}_accuracy", f"{PART}_unfairness"]]
            warn(
                f"The model is no better than a constant, at accuracy {accuracy:.4f} and mean |F| "
                f"{unfair:.4f} on the {PART} rows. No better model keeps the bound. Allow more "
                "unfairness, or use_sensitive=True if the law allows it.",
                FairnessWarning,
            )
        elif max_unfairness is not None:  # with min_accuracy the user knows the price
            self.warn_of_fault(int(points.index[chosen]), "max_unfairness", max_unfairness)
        return int(points.index[chosen])

    def warn_of_fault(
        self, position: int, bound: str, asked: float | None = None, enough: float | None = None
    ) -> None:
        """Warns (``FairnessWarning``) if a model is unusable on the validation rows.

        That is if everybody gets one label, if the plain model is fairer, or if more than 2 points
        of accuracy are lost against it. The warning names what to try.

        Args:
            position: of the model in `points_`.
            bound: the name of what the model was chosen by, which could be larger.
            asked: its value, if it is known.
            enough: the least value of it without such a fault, if it is known.
        """
        points, epsilon = self.points_, self.points_["epsilon"].to_numpy()
        merit, unfairness = point_merit(points, f"{PART}_"), points[f"{PART}_unfairness"]
        aware = points["use_sensitive"]
        same = aware == aware[position]
        plain = int(np.where(same, epsilon, -1.0).argmax())
        has_plain = bool(np.isinf(epsilon[plain]))
        if has_plain and bound == "max_unfairness" and f"{PART}_cost" not in points:
            enough = float(unfairness[same & (merit >= merit[plain] - TOLERATED_LOSS)].min())
        can_be_aware = "use_sensitive" in self._fitted[0].settings and not aware[position]
        suggestions = Suggestions(
            name=bound,
            asked=asked,
            aware="use_sensitive=True" if can_be_aware else "",
            enough=enough,
        )
        fault = self.audits_[PART].fault(position, plain if has_plain else None, suggestions)
        if fault:
            warn(fault, FairnessWarning)

    def select(
        self,
        *,
        max_unfairness: float | None = None,
        min_accuracy: float | None = None,
        use_sensitive: bool = False,
    ) -> Any:
        """A fitted classifier, chosen by its figures on the validation rows.

        Args:
            max_unfairness: selects the most accurate model whose unfairness is at most this; with
                costs, the cheapest.
            min_accuracy: selects the fairest model whose accuracy is at least this.
            use_sensitive: whether to select an aware model, if there are both kinds.

        Raises:
            ValueError: if no model qualifies; the message names the best model.
        """
        position = self.choose(
            max_unfairness=max_unfairness, min_accuracy=min_accuracy, use_sensitive=use_sensitive
        )
        return self.estimators_[position]

    def report_data(self, on: str = PART, chosen: int | None = None) -> FrontierData:
        """The frontier for ``fairgrad.report.Report(frontier=...)``.

        Args:
            on: "validation" or "test".
            chosen: position of the model that was chosen (see `choose`).

        Raises:
            ValueError: if there are no such rows.
        """
        check_is_fitted(self, "points_")
        if on not in self.audits_:
            raise ValueError(f"on: expected one of {list(self.audits_)}, got {on!r}.")
        from fairgrad.report import FrontierData  # noqa: PLC0415 - charts are loaded only if one is drawn

        points, note = shown_points(self.points_, on), NOTE.format(confidence=100 * self.confidence)
        note += COST_NOTE if f"{on}_cost" in self.points_ else ""
        kinds = self.points_["use_sensitive"]
        if kinds.any() and not kinds.all():
            points = points.assign(series=kinds.map(KINDS))
            note += AWARE_NOTE
        rates = [group_rates(i, audit) for i, audit in enumerate(self.audits_[on])]
        return FrontierData(
            points,
            pd.concat(rates, ignore_index=True),
            chosen=chosen,
            measure=measure_name(self.fairness_measure_).replace("_", " "),
            on=f"{on} rows",
            note=note,
        )

    def plot(self, on: str = PART, chosen: int | None = None) -> Any:
        """Accuracy against unfairness of all models, an Altair chart.

        Args:
            on: "validation" or "test".
            chosen: position of a model to mark (see `choose`).
        """
        from fairgrad.report import frontier_figures  # noqa: PLC0415 - as above

        return frontier_figures(self.report_data(on, chosen))[0].standalone()

    def _notebook_html(self) -> str:
        """What the models cost, in a sentence and a chart; empty before they are trained."""
        from fairgrad.report import frontier_figures  # noqa: PLC0415 - as above

        if not hasattr(self, "points_"):
            return ""
        data = self.report_data()
        section = Section("trade-off", "What fairness costs", (data.sentence,))
        return as_html(section, frontier_figures(data)[0].svg())


def epsilon_grid(epsilons: Any, *, with_plain: bool) -> Floats:
    """The epsilons in increasing order: those of a list, or a grid of this length.

    A number n gives exact fairness (0), values in equal ratios from 0.002 to 0.3, and, with
    `with_plain`, infinity: the plain model.
    """
    if isinstance(epsilons, (int, np.integer)) and not isinstance(epsilons, bool):
        ends = [0.0, np.inf] if with_plain else [0.0]
        check_count("epsilons", epsilons, least=len(ends))
        between = np.geomspace(SMALLEST, LARGEST, int(epsilons) - len(ends))
        return np.sort(np.concatenate([ends, between]))
    grid = None if isinstance(epsilons, (str, bool)) else np.asarray(epsilons, dtype=np.float64)
    if grid is None or grid.ndim != 1 or len(grid) == 0 or not (grid >= 0).all():
        raise ValueError(
            "epsilons: expected a number of models, or a list of values of at least 0, got "
            f"{epsilons!r}."
        )
    return np.unique(grid)


def choose(
    points: pd.DataFrame,
    max_unfairness: float | None,
    min_accuracy: float | None,
    useful: NDArray[np.bool_] | None = None,
) -> int:
    """The position of the most accurate model that is fair enough, or the fairest accurate model.

    With costs it is the cheapest model that is fair enough. Models that are not useful come last.
    """
    if (max_unfairness is None) == (min_accuracy is None):
        raise ValueError(
            "max_unfairness, min_accuracy: expected exactly one of the two, got "
            f"{max_unfairness!r} and {min_accuracy!r}."
        )
    accuracy, unfairness = points[f"{PART}_accuracy"], points[f"{PART}_unfairness"]
    merit = point_merit(points, f"{PART}_")
    by_merit, by_accuracy = (np.lexsort((unfairness, -values)) for values in (merit, accuracy))
    by_fairness = np.lexsort((-merit, unfairness))
    if max_unfairness is not None:
        check_number("max_unfairness", max_unfairness)
        fits, order, best = unfairness <= max_unfairness, by_merit, by_fairness[0]
        wanted = f"max_unfairness: no model has an unfairness of at most {max_unfairness:g}"
    else:
        check_number("min_accuracy", min_accuracy)
        fits, order, best = accuracy >= min_accuracy, by_fairness, by_accuracy[0]
        wanted = f"min_accuracy: no model has an accuracy of at least {min_accuracy:g}"
    if not fits.any():
        raise ValueError(
            f"{wanted} on the {PART} rows; the best is epsilon {points['epsilon'][best]:.4g} with "
            f"accuracy {accuracy[best]:.4f} and unfairness {unfairness[best]:.4f}."
        )
    fitting = order[fits.to_numpy()[order]]
    return int(fitting[0 if useful is None else np.argmax(useful[fitting])])
