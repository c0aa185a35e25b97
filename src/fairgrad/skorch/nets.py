"""What makes a net of skorch's fair: its loss is made of the training rows, when they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from skorch.callbacks import PrintLog
from skorch.utils import to_device, to_tensor
from torch import Tensor, nn

from fairgrad.skorch.criterion import NotYetFitted
from fairgrad.skorch.rows import (
    SensitiveRows,
    WithSensitive,
    check_sensitive,
    index_of,
    labels_of,
    take,
)
from fairgrad.torch import FairLoss
from fairgrad.torch.monitor import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable

OWN = (
    "fairness_measure",
    "predict",
    "fairness_rate",
    "epsilon",
    "proportional_rate",
    "error_memory",
    "negative_weights",
    "y_desirable",
    "process_group",
)
"""Arguments of the fair loss that PyTorch's losses do not know."""


class FairNet:
    """For classes that are also a net of skorch's; see `FairNeuralNetClassifier`."""

    criterion: Any
    criterion_: Any
    device: Any
    history: Any
    _columns: dict[str, Any] | None = None
    _labels: Any = None

    def initialize_criterion(self) -> Any:
        """Makes the plain loss; the fair one is made when the training rows are known."""
        arguments = self._criterion_arguments()
        plain = {name: value for name, value in arguments.items() if name not in OWN}
        made = self.criterion
        if isinstance(made, type):
            made = getattr(made, "base", made)(**plain)  # of a loss of fairgrad.torch
        self.criterion_ = NotYetFitted(made)
        return self

    def _criterion_arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = self.get_params_for("criterion")  # type: ignore[attr-defined] # skorch's
        return arguments

    def fit_loop(
        self,
        X: Any,
        y: Any = None,
        epochs: int | None = None,
        *,
        sensitive_features: Any = None,
        **fit_params: Any,
    ) -> Any:
        """Trains; the sensitive values are taken out before skorch shows the rest to the module."""
        labels = labels_of(X, y)
        self._columns = check_sensitive(sensitive_features, len(labels))
        self._labels = labels
        try:
            return super().fit_loop(X, y, epochs, **fit_params)  # type: ignore[misc] # skorch's
        finally:
            self._columns = self._labels = None  # a fitted net keeps no data

    def get_split_datasets(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """The parts skorch makes; the rows of the training part carry their sensitive values."""
        whole = self.get_dataset(X, y)  # type: ignore[attr-defined] # skorch's
        train, valid = super().get_split_datasets(whole, y, **fit_params)  # type: ignore[misc] # skorch's
        if self._columns is None:  # not called by `fit_loop`
            return train, valid
        index = index_of(train, whole)
        s = take(self._columns, index)
        if isinstance(self.criterion_, NotYetFitted):
            self._make_criterion(self._labels[index], s)
        return SensitiveRows(train, self.criterion_.groups.encode(s)), valid

    def _make_criterion(self, labels: Any, s: dict[str, Any]) -> None:
        arguments = self._criterion_arguments()
        is_fair = isinstance(self.criterion, type) and issubclass(self.criterion, FairLoss)
        make: Callable[..., FairLoss] = self.criterion if is_fair else FairLoss
        given = () if is_fair else (self.criterion,)
        made = make(*given, labels, s, **arguments)
        if self.criterion_.waiting is not None:
            made.load_state_dict(self.criterion_.waiting)
        self.criterion_ = to_device(made, self.device)

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """What the module gives; it never sees sensitive values."""
        features = x.features if isinstance(x, WithSensitive) else x
        return super().infer(features, **fit_params)  # type: ignore[misc] # skorch's

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """The fair loss in training, the plain one in validation.

        Raises:
            TypeError: if the module gave something without scores. Of a tuple the first counts, as
                in skorch's predictions.
        """
        scores = _scores(y_pred)
        if isinstance(self.criterion_.base_loss, nn.NLLLoss):  # skorch's modules give probabilities
            scores = torch.log(scores + torch.finfo(scores.dtype).eps)
        target = to_tensor(y_true, device=self.device)
        if not training:
            plain: Tensor = self.criterion_.eval()(scores, target)
            return plain
        s = to_tensor(X.s, device=self.device)
        loss: Tensor = self.criterion_.train()(scores, target, s)
        return loss

    def on_epoch_end(self, net: Any, *args: Any, **kwargs: Any) -> None:
        """Notes where fairness stands, as ``net.history[-1, "fairness"]``."""
        super().on_epoch_end(net, *args, **kwargs)  # type: ignore[misc] # skorch's
        self.history.record("fairness", numbers_of(self.criterion_))

    def get_default_callbacks(self) -> list[tuple[str, Any]]:
        """skorch's; the printed table leaves out the many numbers of fairness."""
        return [
            (name, PrintLog(keys_ignored="fairness") if name == "print_log" else callback)
            for name, callback in super().get_default_callbacks()  # type: ignore[misc] # skorch's
        ]

    def _get_predict_nonlinearity(self) -> Any:
        """From what the module gives to probabilities: skorch looks at the class of the loss."""
        fair = self.criterion_
        try:
            self.criterion_ = fair.base_loss
            return super()._get_predict_nonlinearity()  # type: ignore[misc] # skorch's
        finally:
            self.criterion_ = fair


def _scores(y_pred: Any) -> Tensor:
    scores = y_pred[0] if isinstance(y_pred, tuple) and y_pred else y_pred
    if not isinstance(scores, Tensor):
        raise TypeError(
            "module: expected a tensor of scores, or a tuple that starts with one, got "
            f"{type(scores).__name__}."
        )
    return scores
