"""The loss compiles into one graph, with the same numbers: nothing waits for the host."""

import pytest
import torch

from fairgrad.torch import CrossEntropyLoss

Y = torch.arange(200) % 2
S = torch.arange(200) % 3 % 2
SETTINGS = {
    "exact": {},
    "everything": {
        "epsilon": 0.05,
        "proportional_rate": 1.0,
        "error_memory": 0.5,
        "negative_weights": False,
    },
}


# PyTorch's own compiler still uses what PyTorch has deprecated.
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_same_numbers(backend, settings):
    torch._dynamo.reset()  # noqa: SLF001 - each case compiles afresh
    eager, original = (
        CrossEntropyLoss(Y, S, "equalized_odds", fairness_rate=0.5, **settings) for _ in range(2)
    )
    compiled = torch.compile(original, fullgraph=True, backend=backend)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        logits = [torch.randn(200, 2, generator=generator).requires_grad_()]
        logits.append(logits[0].detach().clone().requires_grad_())
        losses = eager(logits[0], Y, S), compiled(logits[1], Y, S)
        for loss in losses:
            loss.backward()
        torch.testing.assert_close(*losses)
        torch.testing.assert_close(logits[0].grad, logits[1].grad)
        torch.testing.assert_close(original.multipliers, eager.multipliers)
        torch.testing.assert_close(original.levels, eager.levels)
