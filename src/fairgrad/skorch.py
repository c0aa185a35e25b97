"""skorch integration: ``from fairgrad.skorch import FairNeuralNetClassifier``.

A fair loss needs the labels and sensitive values of the training rows. skorch sees these in ``fit``
only, so `FairNet` passes them to the loss there.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier
from skorch.callbacks import PrintLog
from skorch.utils import data_from_dataset, to_device, to_numpy, to_tensor
from torch import Tensor, nn
from torch.utils.data import Subset

from fairgrad.columns import sensitive_columns
from fairgrad.torch import FairLoss
from fairgrad.torch.monitor import numbers_of
from fairgrad.torch.reading import scores_in

if TYPE_CHECKING:
    from fairgrad.groups import Ints

__all__ = ["FairNeuralNetBinaryClassifier", "FairNeuralNetClassifier"]


class WithSensitive(NamedTuple):
    """Features and sensitive values of a row or a batch; data loaders keep this type."""

    features: Any
    s: Any


class SensitiveRows(Subset[Any]):
    """Adds sensitive values, as integers, to the features of a data set of (features, label).

    It is a `Subset` of all rows because skorch looks into those: callbacks that score predictions
    on the training rows find the features and labels there.
    """

    def __init__(self, rows: Any, s: Ints) -> None:
        super().__init__(rows, list(range(len(s))))
        self.s = s

    def __getitem__(self, i: Any) -> tuple[WithSensitive, Any]:
        features, label = self.dataset[i]
        return WithSensitive(features, self.s[i]), label

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[i] for i in indices]


class FairNet:
    """Makes the loss of a skorch net fair; see `FairNeuralNetClassifier`."""

    criterion: Any
    criterion_: Any
    device: Any
    history: Any
    _columns: dict[str, Any] | None = None
    _labels: Any = None

    def initialize_criterion(self) -> Any:
        """Makes the loss, which receives the training rows in ``fit``."""
        is_fair = isinstance(self.criterion, type) and issubclass(self.criterion, FairLoss)
        make: Any = self.criterion if is_fair else partial(FairLoss, self.criterion)
        self.criterion_ = make(**self.get_params_for("criterion"))  # type: ignore[attr-defined] # skorch's
        return self

    def fit_loop(
        self,
        X: Any,
        y: Any = None,
        epochs: int | None = None,
        *,
        sensitive_features: Any = None,
        **fit_params: Any,
    ) -> Any:
        """Trains the module, which never receives the sensitive values."""
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features: required to fit; call fit(X, y, sensitive_features=...)."
            )
        labels = _labels(X, y)
        self._columns = sensitive_columns(sensitive_features, len(labels))
        self._labels = labels
        try:
            return super().fit_loop(X, y, epochs, **fit_params)  # type: ignore[misc] # skorch's
        finally:
            self._columns = self._labels = None  # a fitted net keeps no data

    def get_split_datasets(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """Splits the rows as skorch does, and adds sensitive values to the training rows."""
        whole = self.get_dataset(X, y)  # type: ignore[attr-defined] # skorch's
        train, valid = super().get_split_datasets(whole, y, **fit_params)  # type: ignore[misc] # skorch's
        if self._columns is None:  # not called by `fit_loop`
            return train, valid
        index = _row_numbers(train, whole)
        s = {name: _safe_indexing(column, index) for name, column in self._columns.items()}
        if not self.criterion_.group_names:
            self.criterion_.use_training_data(self._labels[index], s)
            to_device(self.criterion_, self.device)
        return SensitiveRows(train, self.criterion_.groups.encode(s)), valid

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """The output of the module, which never receives sensitive values."""
        features = x.features if isinstance(x, WithSensitive) else x
        return super().infer(features, **fit_params)  # type: ignore[misc] # skorch's

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """The fair loss in training, the plain loss in validation."""
        scores = scores_in(y_pred, "module")
        if isinstance(self.criterion_.base_loss, nn.NLLLoss):  # skorch's modules give probabilities
            scores = torch.log(scores + torch.finfo(scores.dtype).eps)
        target = to_tensor(y_true, device=self.device)
        s = (to_tensor(X.s, device=self.device),) if training else ()
        loss: Tensor = self.criterion_.train(training)(scores, target, *s)
        return loss

    def on_epoch_end(self, net: Any, *args: Any, **kwargs: Any) -> None:
        """Records levels, multipliers and weights as ``net.history[-1, "fairness"]``."""
        super().on_epoch_end(net, *args, **kwargs)  # type: ignore[misc] # skorch's
        self.history.record("fairness", numbers_of(self.criterion_))

    def get_default_callbacks(self) -> list[tuple[str, Any]]:
        """The default callbacks of skorch; the printed table has no fairness numbers."""
        return [
            (name, PrintLog(keys_ignored="fairness") if name == "print_log" else callback)
            for name, callback in super().get_default_callbacks()  # type: ignore[misc] # skorch's
        ]

    def _get_predict_nonlinearity(self) -> Any:
        """How outputs become probabilities; skorch infers it from the class of the loss."""
        fair = self.criterion_
        try:
            self.criterion_ = fair.base_loss
            return super()._get_predict_nonlinearity()  # type: ignore[misc] # skorch's
        finally:
            self.criterion_ = fair


class FairNeuralNetClassifier(FairNet, NeuralNetClassifier):  # type: ignore[misc] # skorch has no types
    """A `skorch.NeuralNetClassifier` whose loss is made fair.

    ``fit`` and ``partial_fit`` take the sensitive values of the rows as `sensitive_features`: one
    value per row, or one column per attribute. ``train_split`` splits them with their rows. The
    module never receives them, and they are not needed to predict. (Your own collate function
    receives pairs of features and sensitive value.) `criterion` is a loss of PyTorch or of
    `fairgrad.torch`. It is made fair with the labels and sensitive values of the training rows. Its
    settings are skorch's ``criterion__...``: ``fairness_measure`` (required), ``epsilon``,
    ``fairness_rate`` and the others of `fairgrad.torch.FairLoss`, so that ``GridSearchCV`` can
    search them. The validation loss is the plain loss.

    ``net.criterion_`` is the fitted loss, with `levels`, `multipliers` and `cell_weights`;
    ``net.history[:, "fairness"]`` has them by name for each epoch, with the share of negative
    weights. ``partial_fit`` continues with the current multipliers; ``save_params`` and
    ``load_params`` store them in `f_criterion`. In a search with metadata routing, call
    ``net.set_fit_request(sensitive_features=True)``; otherwise ``search.fit(X, y,
    sensitive_features=...)`` is enough.

    Everything else is as in skorch. By its convention the module returns probabilities with the
    default criterion `torch.nn.NLLLoss`, and logits with `torch.nn.CrossEntropyLoss`. If it returns
    a tuple, the first element is used. Any other output but a tensor is an error.

    Raises:
        ValueError: on fitting, if sensitive values or the measure are missing, lengths differ, or
            ``train_split`` returns training rows that are not a subset of the data.

    Example:
        >>> import numpy as np, torch
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 400)
        >>> X = rng.normal(size=(400, 3)).astype(np.float32)
        >>> X[:, 0] += 2 * (sex == "M")
        >>> y = (X.sum(1) + rng.normal(size=400) > 1).astype(np.int64)
        >>> _ = torch.manual_seed(0)
        >>> net = FairNeuralNetClassifier(
        ...     torch.nn.Linear,
        ...     module__in_features=3,
        ...     module__out_features=2,
        ...     criterion=torch.nn.CrossEntropyLoss,
        ...     criterion__fairness_measure="demographic_parity",
        ...     criterion__fairness_rate=0.2,
        ...     max_epochs=30,
        ...     lr=0.1,
        ...     verbose=0,
        ... ).fit(X, y, sensitive_features=sex)
        >>> chosen = net.predict(X)
        >>> bool(abs(chosen[sex == "F"].mean() - chosen[sex == "M"].mean()) < 0.15)
        True
    """


class FairNeuralNetBinaryClassifier(FairNet, NeuralNetBinaryClassifier):  # type: ignore[misc] # skorch has no types
    """A `skorch.NeuralNetBinaryClassifier` whose loss is made fair.

    The module returns one logit per row, for label 1; labels are 0 and 1 as floats. See
    `FairNeuralNetClassifier` for an example.
    """


def _row_numbers(subset: Any, whole: Any) -> Ints:
    """The numbers of a subset's rows in the whole data set."""
    if subset is whole:
        return np.arange(len(whole))
    if isinstance(subset, Subset):
        inner = _row_numbers(subset.dataset, whole)
        return inner[np.asarray(subset.indices, dtype=np.int64)]
    raise ValueError(
        "train_split: expected the training part to be the data set or a torch Subset of it, so "
        f"that sensitive values follow their rows; got {type(subset).__name__}."
    )


def _labels(X: Any, y: Any) -> Any:
    """(n,) labels, passed or taken from a skorch data set."""
    if y is None:
        with suppress(AttributeError):
            _, y = data_from_dataset(X)
    if y is None:
        raise ValueError(f"y: required, because {type(X).__name__} does not contain the labels.")
    return to_numpy(y)
