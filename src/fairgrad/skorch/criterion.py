"""What stands for the fair loss until the training rows are known."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class NotYetFitted(nn.Module):
    """Keeps a state that is loaded before the loss can be made.

    A fair loss is made from the labels and sensitive values of the training rows, which skorch
    gets to see in ``fit`` only. A state loaded before that (``net.initialize()``,
    ``net.load_params(f_criterion=...)``) waits here for the loss that ``partial_fit`` makes.

    Args:
        base_loss: the loss that will be made fair; plain losses are computed with it.
    """

    def __init__(self, base_loss: nn.Module) -> None:
        super().__init__()
        self.base_loss = base_loss
        self.waiting: dict[str, Any] | None = None

    def forward(self, input: Tensor, target: Tensor) -> Any:  # noqa: A002 - PyTorch's name
        """The plain loss."""
        return self.base_loss(input, target)

    def load_state_dict(self, state_dict: Any, *_: Any, **__: Any) -> Any:
        """Keeps the state for the loss to come."""
        self.waiting = dict(state_dict)

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:  # type: ignore[override] # one form of two
        """The state that is waiting."""
        return dict(self.waiting or {})
