"""Fair boosted trees with XGBoost: ``from fairgrad.xgboost import FairGradXGBClassifier``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from xgboost import Booster, XGBClassifier, collective

from fairgrad.boosting.estimator import FAIRNESS_PARAMETERS, FairBoostingMixin
from fairgrad.boosting.objective import BoostingObjective
from fairgrad.checks import naming_rows
from fairgrad.columns import as_column
from fairgrad.decisions import largest

if TYPE_CHECKING:
    from typing import Self

    from fairgrad.groups import Floats

__all__ = ["FairGradXGBClassifier", "XGBoostObjective"]


class XGBoostObjective(BoostingObjective):
    """The log loss with fairness, as XGBoost takes it: ``xgboost.train(..., obj=objective)``.

    The arguments are those of `fairgrad.boosting.BoostingObjective`. The rows are those of the
    training matrix, whose labels are 0, 1, ...; its weights weigh the loss. Name XGBoost's own log
    loss in the parameters as well ("binary:logistic", or "multi:softprob" with num_class): it then
    knows what the scores mean, so that metrics, predictions and saved models are in probabilities.

    Several workers may share the rows, as in ``xgboost.dask.train(..., obj=objective)``. No worker
    has all of them then, so the objective is made from the `Groups` of all rows together
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
        counts = self.count(largest(scores.T), label, cell, row_weights)
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

    A warning states what fairness costs if it costs much accuracy. If the weights have moved far
    enough for that, a fair and a plain model of half the rounds are trained on 70 % of the rows, or
    of 8,000 of them, and judged on the others. A fit with eval sets, an `xgb_model` or further
    options is not compared. Compare such a model with one of ``fairness_measure=None`` on new rows.

    Args:
        {Args}
        **kwargs: XGBClassifier's parameters. Its objective is the log loss; weigh the classes by
            `sample_weight` (`scale_pos_weight` is refused).

    Attributes:
        {Attributes}

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
    plain_class = "XGBClassifier"
    not_packed = {"_Booster": None}  # noqa: RUF012 - as above

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
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
            eval_set: pairs (X, y) to evaluate the model on after each round; of an aware model
                (X, y, sensitive_features). XGBoost's metrics do not look at fairness: to stop
                early, give `eval_metric` a function of your own that knows the groups.
            xgb_model: a fitted model, booster or file to continue from. The multipliers of a
                fitted model continue as well.
            verbose: whether to print the metrics of the eval sets.
            **fit_options: whatever else `XGBClassifier.fit` takes.

        Raises:
            ValueError: if sensitive_features are missing, or an argument is not allowed.
        """
        prepared = self._prepare(X, y, sensitive_features, sample_weight, xgb_model, eval_set)
        labels = np.unique(prepared.labels)
        if not np.array_equal(labels, np.arange(len(labels))):
            raise ValueError(
                f"y: expected the classes 0, 1, ..., as XGBoost does; got {labels.tolist()}. "
                "Encode them first, with sklearn.preprocessing.LabelEncoder."
            )
        objective: XGBoostObjective | None = prepared.objective
        own_objective = self.objective

        def gradients(y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
            assert objective is not None  # noqa: S101 - for type checkers
            objective.check_labels(y_true)
            return objective.gradients(y_pred, sample_weight)

        if objective is not None:
            self.objective = gradients
        try:
            with naming_rows("X"):
                super().fit(
                    prepared.features,
                    prepared.labels,
                    sample_weight=as_column(sample_weight),
                    eval_set=prepared.eval_set or None,
                    xgb_model=xgb_model,
                    verbose=verbose,
                    **fit_options,
                )
        finally:
            self.objective = own_objective
        is_default = xgb_model is None and not (eval_set or fit_options)
        self._set_fitted(prepared, with_price=is_default)
        return self

    def _wrapper_params(self) -> set[str]:
        """Parameters that XGBoost's own code does not know."""
        return {*super()._wrapper_params(), *FAIRNESS_PARAMETERS}

    def tree_bytes(self) -> bytes:
        """The trees in the library's own format."""
        return bytes(self.get_booster().save_raw("ubj"))

    def load_trees(self, trees: bytes) -> None:
        """Sets the trees from what `tree_bytes` gave."""
        self._Booster = Booster()
        self._Booster.load_model(bytearray(trees))
