"""Fair boosted trees with XGBoost: ``from fairgrad.xgboost import FairGradXGBClassifier``."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from xgboost import XGBClassifier, collective

from fairgrad.boosting.estimator import (
    FAIRNESS_METRICS,
    FAIRNESS_PARAMETERS,
    EvalSets,
    FairBoostingMixin,
    fairness_file,
    list_metrics,
    read_model,
    write_model,
)
from fairgrad.boosting.objective import BoostingObjective, predicted_labels
from fairgrad.checks import naming_rows
from fairgrad.columns import as_column, as_pandas

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Self

    from fairgrad.groups import Floats

__all__ = ["FairGradXGBClassifier", "XGBoostObjective", "load", "save"]


class XGBoostObjective(BoostingObjective):
    """The log loss with fairness, as XGBoost takes it: ``xgboost.train(..., obj=objective)``.

    The arguments are those of `fairgrad.boosting.BoostingObjective`. The rows are those of the
    training matrix, whose labels are 0, 1, ...; its weights weigh the loss. Name XGBoost's own log
    loss in the parameters as well ("binary:logistic", or "multi:softprob" with num_class): it then
    knows what the scores mean, so that metrics, predictions and saved models are in probabilities.

    Several workers may share the rows, as in ``xgboost.dask.train(..., obj=objective)``. Nobody has
    all of them then, so the objective is made from the `Groups` of all rows together
    (`Groups.from_counts` or `Groups.merge`). The group of each row is the ``label_lower_bound`` of
    the matrix, a column that the log loss has no other use for. Each worker counts the errors of
    its own rows, and `xgboost.collective` sums the counts: all have the same multipliers.

    To continue from a saved model, keep ``objective.state()`` beside it (it is JSON), give it to
    ``objective.load_state`` and the model to ``xgb_model``.

    Example:
        >>> import xgboost, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(2, size=1000)
        >>> X = rng.normal(size=(1000, 3)) + np.outer(s, [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=1000) > 0.5).astype(int)
        >>> objective = XGBoostObjective(y, s, "demographic_parity")
        >>> params = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}
        >>> data = xgboost.DMatrix(X, y)
        >>> booster = xgboost.train(params, data, num_boost_round=100, obj=objective)
        >>> chosen = booster.predict(data) > 0.5
        >>> bool(abs(chosen[s == 0].mean() - chosen[s == 1].mean()) < 0.1)
        True
    """

    def __call__(self, scores: Any, matrix: Any) -> tuple[Floats, Floats]:
        """Gradients and hessians of a round, of the rows of this worker."""
        weight = matrix.get_weight() if len(matrix.get_weight()) else None
        if self.rows is not None:
            self.check_labels(matrix.get_label())
            return self.gradients(scores, weight)
        scores = np.asarray(scores)
        label = _whole_numbers(matrix, "label", len(self.groups.labels), matrix.num_row())
        group = _whole_numbers(matrix, "label_lower_bound", self.groups.n_groups, len(label))
        cell = label * self.groups.n_groups + group if self.constraints.by_label else group
        row_weights = None if weight is None else weight.astype(np.float64)
        counts = self.count(predicted_labels(scores), label, cell, row_weights)
        summed = collective.allreduce(counts.ravel(), collective.Op.SUM)
        self.take(summed.reshape(counts.shape))
        return self.weighted(scores, label, cell, weight)


def _whole_numbers(matrix: Any, name: str, n: int, n_rows: int) -> Any:
    """A column of a matrix whose values are 0, 1, ... n - 1."""
    codes = matrix.get_float_info(name).astype(np.int64)
    if len(codes) != n_rows:
        raise ValueError(
            f"{name}: expected the group of each row, as groups.group_index gives it, for {n_rows} "
            f"rows; got {len(codes)}."
        )
    if n_rows and not 0 <= codes.min() <= codes.max() < n:
        raise ValueError(
            f"{name}: expected whole numbers from 0 to {n - 1}, got {codes.min()} to {codes.max()}."
        )
    return codes


class FairGradXGBClassifier(FairBoostingMixin, XGBClassifier):
    """An `xgboost.XGBClassifier` whose levels of fairness are moved into their bounds.

    Each boosting round is one step of the method: the gradients of the rows of each (label, group)
    cell are weighted so that ``-epsilon <= F <= epsilon``. Sensitive values are needed to fit, and
    to predict only if the trees are to look at them (`use_sensitive`). Everything else is
    XGBoost's; as there, labels are 0, 1, ....

    Args:
        {fairness arguments}
        **kwargs: XGBClassifier's parameters. Its objective is the log loss; weigh the classes by
            `sample_weight` (`scale_pos_weight` is refused). An `eval_metric` may be, besides
            XGBoost's, "unfairness" (the mean of ``|F|``) and "fair_error" (the error rate plus
            the mean violation of the bounds).

    Attributes:
        {fairness attributes}

    All of them are None for a plain model. The rest is XGBoost's.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=2000) > 0.5).astype(int)
        >>> model = FairGradXGBClassifier("demographic_parity", max_depth=3, n_jobs=1)
        >>> model = model.fit(X, y, sensitive_features=sex)
        >>> model.predict(np.array([[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0]]))
        array([1, 0])
        >>> bool(np.abs(model.levels_).mean() < 0.05)
        True
    """

    objective_class = XGBoostObjective
    log_losses = (None, "binary:logistic", "multi:softprob")
    refused_parameters = {"scale_pos_weight": "sample_weight"}  # noqa: RUF012 - declared in the mixin
    file_format = "fairgrad.xgboost"

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_sensitive_features: Any = None,
        xgb_model: Any = None,
        verbose: Any = False,
        **fit_options: Any,
    ) -> Self:
        """Trains the classifier.

        Args:
            X: (n, features), as XGBClassifier takes it, or a frame of polars or Arrow.
            y: (n,) labels 0, 1, ....
            sensitive_features: (n,) sensitive values, or a table with one column per attribute;
                missing values and -1 are unknown and in no constraint.
            sample_weight: (n,) non-negative weights.
            eval_set: pairs (X, y) to evaluate the model on after each round.
            eval_sensitive_features: sensitive values of each of these pairs. With them the default
                metric is "fair_error", so that early stopping respects fairness.
            xgb_model: a fitted model, booster or file to continue from. If there are multipliers
                (in the model, or beside the file) they continue as well.
            verbose: whether to print the metrics of the eval sets.
            **fit_options: whatever else `XGBClassifier.fit` takes.

        Raises:
            ValueError: if sensitive_features are missing, or an argument is not allowed.
        """
        X, y = as_pandas(X), as_column(y)
        pairs = [(features, as_column(label)) for features, label in eval_set or ()]
        parts = self._prepare(
            X, y, sensitive_features, sample_weight, xgb_model, pairs, eval_sensitive_features
        )
        options = {
            "sample_weight": as_column(sample_weight),
            "eval_set": list(zip(parts.eval_features, parts.eval_labels, strict=True)) or None,
            "xgb_model": xgb_model,
            "verbose": verbose,
            **fit_options,
        }
        with self._fair_training(parts.objective, parts.sets), naming_rows("X"):
            super().fit(parts.features, y, **options)
        self._set_fitted(parts.objective, parts.encoder)
        if parts.objective is not None:
            self._warn_of_fault(parts.objective)
        return self

    def _wrapper_params(self) -> set[str]:
        """Parameters that XGBoost's own code does not know."""
        return {*super()._wrapper_params(), *FAIRNESS_PARAMETERS}

    def _configure_fit(self, booster: Any, params: Any, feature_weights: Any) -> Any:
        """As XGBoost does, with our metrics in a fair fit."""
        configured = super()._configure_fit(booster, params, feature_weights)
        metrics = getattr(self, "_fair_metrics", None)
        return configured if metrics is None else (configured[0], metrics, *configured[2:])

    def _metrics(self, sets: EvalSets) -> tuple[list[Any], Any]:
        """The metrics left to XGBoost (names, and at most one function), and a function for ours.

        XGBoost is told that the scores are those of its log loss, so it computes its own metrics.
        Early stopping follows the last metric of the last set.

        Raises:
            ValueError: if a metric needs sensitive values, or there are too many functions.
        """
        wanted = list_metrics(self.eval_metric)
        if sets and not wanted:
            wanted = ["fair_error"]
        ours = [name for name in wanted if name in FAIRNESS_METRICS]
        others = [name for name in wanted if name not in FAIRNESS_METRICS]
        sets.require(ours)
        if ours and any(callable(one) for one in others):
            raise ValueError(
                f"eval_metric: XGBoost takes one function only; not one of yours and {ours[0]!r}."
            )

        def metrics(scores: Any, matrix: Any) -> list[tuple[str, float]]:
            label, weight = matrix.get_label().astype(np.int64), matrix.get_weight()
            predicted = predicted_labels(np.asarray(scores))
            figures = sets.fairness(label, predicted, weight if len(weight) else None)
            return [(name, figures[name]) for name in ours if figures]

        return others, metrics if ours else None

    @contextmanager
    def _fair_training(
        self, objective: XGBoostObjective | None, sets: EvalSets | None
    ) -> Iterator[None]:
        """Inside, the model has our objective and metrics; its own parameters come back after."""
        if objective is None or sets is None:
            yield
            return
        eval_metric, metrics = self._metrics(sets)
        before = self.objective, self.eval_metric

        def gradients(y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
            objective.check_labels(y_true)
            return objective.gradients(y_pred, sample_weight)

        self.objective, self.eval_metric = gradients, eval_metric or None
        self._fair_metrics = metrics
        try:
            yield
        finally:
            self.objective, self.eval_metric = before
            del self._fair_metrics


def save(model: FairGradXGBClassifier, path: str | os.PathLike[str]) -> Path:
    """Writes a fitted model: the trees in XGBoost's format, the multipliers beside.

    Any program that reads XGBoost's files gets the probabilities from the first file alone.

    Args:
        model: a fitted `FairGradXGBClassifier`.
        path: the file of the trees, as text if it ends in ``.json``, else in XGBoost's binary
            format (by convention ``.ubj``); the other one has the same name with
            ``.fairness.json`` added.

    Raises:
        sklearn.exceptions.NotFittedError: if the model is not fitted.

    Example:
        >>> import tempfile, numpy as np
        >>> X, y, s = np.arange(200.0)[:, None] % 2, np.arange(200) % 2, np.arange(200) // 100
        >>> model = FairGradXGBClassifier("accuracy_parity", n_estimators=2, n_jobs=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(model.fit(X, y, sensitive_features=s), f"{folder}/model.ubj").exists()
        True
    """
    check_is_fitted(model)
    trees = model.get_booster().save_raw("json" if Path(path).suffix == ".json" else "ubj")
    return write_model(model, path, bytes(trees), {"n_classes": int(model.n_classes_)})


def load(path: str | os.PathLike[str]) -> FairGradXGBClassifier:
    """A model that `save` wrote: it predicts, and training can continue from it (``xgb_model=``).

    Parameters of the training, such as the depth of trees, are not restored: give them to the
    estimator that continues.

    Raises:
        FileNotFoundError: if one of the two files is missing.
        ValueError: if they are not what `save` wrote.

    Example:
        >>> import tempfile, numpy as np
        >>> X, y, s = np.arange(200.0)[:, None] % 2, np.arange(200) % 2, np.arange(200) // 100
        >>> model = FairGradXGBClassifier("accuracy_parity", n_estimators=2, n_jobs=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(model.fit(X, y, sensitive_features=s), f"{folder}/model.ubj")
        ...     bool((load(path).predict(X) == model.predict(X)).all())
        True
    """
    notes, trees = read_model(path, FairGradXGBClassifier.file_format)
    model = FairGradXGBClassifier(
        notes["fairness_measure"], epsilon=notes["epsilon"], use_sensitive="sensitive" in notes
    )
    model.load_model(bytearray(trees))
    if model.n_classes_ != notes["n_classes"]:
        raise ValueError(
            f"{path}: the trees know {model.n_classes_} classes, {fairness_file(path).name} "
            f"{notes['n_classes']}; the files are not of one model."
        )
    model._restore_fitted(notes)  # noqa: SLF001 - a method of our own class
    return model
