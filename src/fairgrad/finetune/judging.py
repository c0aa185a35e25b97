"""How a network in training fares on the validation rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.finetune.outputs import predict_logits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from fairgrad.finetune.outputs import Reading
    from fairgrad.finetune.rows import Labelled


def predicted_positions(logits: Tensor) -> NDArray[Any]:
    """(n,) positions among the classes of the labels that logits predict."""
    index = logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(1)
    found: NDArray[Any] = index.long().numpy()
    return found


def judge_of(
    judged: Labelled | None, output: Reading | None, batch_size: int, measure: Any, desirable: Any
) -> Callable[[nn.Module], dict[str, float]] | None:
    """A function from the network to its figures on the validation rows."""
    if judged is None:
        return None

    def figures(module: nn.Module) -> dict[str, float]:
        inputs = judged.inputs
        logits = predict_logits(
            module,
            inputs.rows,
            transform=inputs.transform,
            output=output,
            batch_size=4 * batch_size,
            progress=False,
        )
        return judged.figures(predicted_positions(logits), measure, desirable)

    return figures
