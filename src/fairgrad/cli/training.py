"""Trains what was asked for: one fair model, the paper's grid, or a frontier; and a plain model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import parallel_config

from fairgrad.cli.grid import fit_paper_grid
from fairgrad.cli.trees import boosted
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairGradClassifier
from fairgrad.training import fairest_of_accurate

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.cli.settings import Settings

VALIDATION = 0.25
"""Share of the rows that are not for the test on which models are judged while training."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Encoded rows.

    Attributes:
        X: (n, columns).
        y: (n,) labels as texts, named after the target.
        s: (n, attributes) sensitive values.
    """

    X: NDArray[np.float32]
    y: pd.Series
    s: pd.DataFrame

    def __len__(self) -> int:
        return len(self.y)

    @property
    def attributes(self) -> list[str]:
        """Names of the sensitive columns."""
        return [str(name) for name in self.s]

    def cut(self, part: slice) -> Rows:
        """Some consecutive rows, without a copy of the matrix."""
        return Rows(self.X[part], self.y.iloc[part], self.s.iloc[part])

    def __iter__(self) -> Any:
        return iter((self.X, self.y, self.s))


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gave.

    Attributes:
        fair: the fair classifier.
        plain: the one trained for accuracy alone; None if there is none.
        frontier: the models it was chosen from, if there are many.
        chosen: its position among them.
    """

    fair: Any
    plain: Any = None
    frontier: Frontier | None = None
    chosen: int | None = None


def train(
    rest: Rows,
    test: Rows,
    settings: Settings,
    desirable: str | None,
    *,
    with_plain: bool = True,
    show: Callable[[str], object] = lambda _: None,
) -> Trained:
    """Trains the model asked for, and the plain one to compare with.

    Args:
        rest: the rows that are not for the test, training rows first, then `VALIDATION` of them.
        test: the rows to judge by; no model is chosen by them.
        settings: what was asked.
        desirable: the desirable label, if there is one.
        with_plain: whether to train the plain model.
        show: called with what is done next.
    """
    if settings.by_frontier:
        show("Training a frontier of models")
        return chosen_of(fit_frontier(rest, test, settings, desirable), settings)
    show("Training the fair model")
    measure = settings.measure_on(rest.attributes)
    part, held = _parted(rest)
    if settings.paper_grid:
        fair = fit_paper_grid(part, held, settings, measure, desirable)
    elif settings.grows_trees:
        fair = _boosted(settings, rest, measure, desirable).fit(
            rest.X, rest.y, sensitive_features=rest.s
        )
    else:
        fair = _estimator(settings, measure, desirable).fit(
            part.X, part.y, sensitive_features=part.s, validation=tuple(held)
        )
    if not with_plain:
        return Trained(fair)
    show("Training the plain model to compare with")
    return Trained(fair, fit_plain(rest, settings))


def fit_plain(rest: Rows, settings: Settings) -> Any:
    """The same network, or the same trees, trained for accuracy alone."""
    if settings.grows_trees:
        return boosted(settings, len(rest), None).fit(rest.X, rest.y)
    part, held = _parted(rest)
    plain = FairGradClassifier(None, selection="most_accurate", **settings.network())
    return plain.fit(part.X, part.y, validation=tuple(held))


def fit_frontier(rest: Rows, test: Rows, settings: Settings, desirable: str | None) -> Frontier:
    """Models from exact fairness to the plain one: networks in one pass, trees side by side."""
    part, held = _parted(rest)
    measure = settings.measure_on(rest.attributes)
    estimator: Any = FairGradClassifier(
        measure, y_desirable=_listed(desirable), **settings.network()
    )
    if settings.grows_trees:
        estimator = _boosted(settings, part, measure, desirable).set_params(n_jobs=1)
    frontier = Frontier(estimator, epsilons=settings.points, random_state=settings.seed, n_jobs=-1)
    with parallel_config(backend="threading"):  # boosting mostly runs outside of Python's lock
        return frontier.fit(
            part.X, part.y, sensitive_features=part.s, validation=tuple(held), test=tuple(test)
        )


def chosen_of(frontier: Frontier, settings: Settings) -> Trained:
    """The model of a frontier that the user's bound asks for, and the plain one.

    Without a bound it is the paper's choice: the fairest within 3 points of the best accuracy.

    Raises:
        ValueError: if no model is within the bound.
    """
    points = frontier.points_
    if settings.by_frontier:
        chosen = frontier.choose(
            max_unfairness=settings.max_unfairness, min_accuracy=settings.min_accuracy
        )
    else:
        accuracy, unfairness = points["validation_accuracy"], points["validation_unfairness"]
        chosen = fairest_of_accurate(accuracy.to_numpy(), unfairness.to_numpy())
    models = frontier.estimators_
    plain = models[int(np.argmax(points["epsilon"]))]
    return Trained(models[chosen], plain, frontier, chosen)


def _estimator(settings: Settings, measure: Any, desirable: str | None) -> FairGradClassifier:
    return FairGradClassifier(
        measure,
        epsilon=settings.epsilon or 0.0,
        y_desirable=_listed(desirable),
        **settings.network(),
    )


def _boosted(settings: Settings, rows: Rows, measure: Any, desirable: str | None) -> Any:
    """All rows train: rounds are not chosen, so none are needed for validation."""
    return boosted(
        settings,
        len(rows),
        measure,
        epsilon=settings.epsilon or 0.0,
        y_desirable=_listed(desirable),
    )


def _parted(rest: Rows) -> tuple[Rows, Rows]:
    """Training rows and validation rows."""
    n_train = round(len(rest) * (1 - VALIDATION))
    return rest.cut(slice(n_train)), rest.cut(slice(n_train, None))


def _listed(desirable: str | None) -> list[str] | None:
    return None if desirable is None else [desirable]
