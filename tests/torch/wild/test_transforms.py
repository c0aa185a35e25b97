"""Calls that PyTorch transforms: right numbers, or an error that leaves the state as it was."""

import pytest
import torch
from scene import N, S, X, Y, is_same, linear, make, state_of
from torch import distributed
from torch.utils.checkpoint import checkpoint

from fairgrad.torch import is_compiled


def logits_of(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N, 2, generator=generator).requires_grad_()


def refuses(criterion, call, error, match):
    """The call fails, changes nothing, and leaves a loss that trains as if nothing had been."""
    before, twin = state_of(criterion), make()
    twin.load_state_dict(before)
    twin.state.is_compiled &= criterion.state.is_compiled
    with pytest.raises(error, match=match):
        call()
    assert is_same(before, state_of(criterion))
    torch.testing.assert_close(criterion(logits_of(), Y, S), twin(logits_of(), Y, S))
    assert is_same(state_of(twin), state_of(criterion))


@pytest.mark.parametrize("compiled", [True, False])
def test_torch_func_is_refused(compiled):
    criterion, model = make(), linear()
    criterion.state.is_compiled &= compiled
    parameters = dict(model.named_parameters())

    def one(parameters, x, y, s):  # gradients of each example, as for differential privacy
        logits = torch.func.functional_call(model, parameters, (x[None],))
        return criterion(logits, y[None], s[None])

    def per_example():
        return torch.func.vmap(torch.func.grad(one), (None, 0, 0, 0))(parameters, X, Y, S)

    refuses(criterion, per_example, RuntimeError, "torch.func: the multipliers cannot be")
    stack = torch.randn(3, N, 2)
    members = lambda: torch.func.vmap(lambda z: criterion(z, Y, S))(stack)  # noqa: E731
    refuses(criterion, members, RuntimeError, "torch.func: the multipliers cannot be")
    gradient = lambda: torch.func.grad(lambda z: criterion(z, Y, S))(stack[0])  # noqa: E731
    refuses(criterion, gradient, RuntimeError, "torch.func: the multipliers cannot be")
    plain = torch.func.vmap(lambda z: criterion.eval()(z, Y))(stack)
    expected = [torch.nn.functional.cross_entropy(z, Y) for z in stack]
    torch.testing.assert_close(plain, torch.stack(expected))


@pytest.mark.parametrize("strict", [True, False])
def test_export_is_refused_in_training(strict):
    criterion, batch = make(), (torch.randn(N, 2), Y, S)
    export = lambda: torch.export.export(criterion, batch, strict=strict)  # noqa: E731
    refuses(criterion, export, RuntimeError, "torch.export: the update of the multipliers")


@pytest.mark.parametrize("strict", [True, False])
def test_export_of_the_plain_loss_takes_any_batch(strict):
    criterion = make(weight=torch.tensor([1.0, 2.0])).eval()
    n = torch.export.Dim("n", min=2, max=4096)
    shapes = {"input": {0: n}, "target": {0: n}}
    batch = torch.randn(N, 2), Y
    exported = torch.export.export(criterion, batch, dynamic_shapes=shapes, strict=strict)
    for size in (2, 50, N):
        logits = torch.randn(size, 2)
        torch.testing.assert_close(exported.module()(logits, Y[:size]), criterion(logits, Y[:size]))


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpointed_loss_is_refused(use_reentrant):
    criterion, model = make(), linear()
    loss = checkpoint(lambda z: criterion(z, Y, S), model(X), use_reentrant=use_reentrant)
    refuses(criterion, loss.backward, RuntimeError, "called while gradients are computed")


def test_a_checkpointed_model_is_fine():
    criterion, twin, model = make(), make(), linear()
    criterion(checkpoint(model, X, use_reentrant=False), Y, S).backward()
    twin(model(X), Y, S)
    assert is_same(state_of(criterion), state_of(twin))


class Wrapped(torch.Tensor):
    """A subclass without memory of its own, as those of distributed and quantised tensors."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(  # noqa: SLF001 - the way to make one
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        tree = torch.utils._pytree  # noqa: SLF001 - as in PyTorch's own examples
        unwrap = lambda item: item.inner if isinstance(item, cls) else item  # noqa: E731
        found = func(*tree.tree_map(unwrap, args), **tree.tree_map(unwrap, kwargs or {}))
        return tree.tree_map(lambda item: cls(item) if type(item) is torch.Tensor else item, found)


@pytest.mark.skipif(not is_compiled, reason="tensor operations read no memory")
def test_tensor_subclasses_are_no_danger():
    """The compiled step reads memory; these have none, and PyTorch gives 0 as its address."""
    criterion = make()
    logits = logits_of()
    call = lambda: criterion(Wrapped(logits), Y, S)  # noqa: E731
    refuses(criterion, call, TypeError, "input: expected a torch.Tensor, got Wrapped")


@pytest.mark.parametrize("compiled", [True, False])
def test_expanded_tensors_are_read_as_they_are(compiled):
    """They have memory for one row only."""
    criterion, twin = make(), make()
    criterion.state.is_compiled &= compiled
    twin.state.is_compiled &= compiled
    logits = torch.tensor([[0.0, 1.0]], requires_grad=True)
    one = torch.ones(1, dtype=torch.float64)
    expanded = logits.expand(N, 2), Y[1:2].expand(N), S[1:2].expand(N), one.expand(N)
    loss = criterion(*expanded)
    torch.testing.assert_close(loss, twin(*(part.contiguous() for part in expanded)))
    assert is_same(state_of(criterion), state_of(twin))


def test_distributed_tensors_in_the_state_are_refused(tmp_path):
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415 - slow to import
    from torch.distributed.tensor import distribute_module  # noqa: PLC0415 - slow to import

    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/s", rank=0, world_size=1)
    try:
        criterion = make()
        distribute_module(criterion, init_device_mesh("cpu", (1,)))
        with pytest.raises(TypeError, match="criterion: its buffers have become DTensors"):
            criterion(logits_of(), Y, S)
    finally:
        distributed.destroy_process_group()
