"""What needs a GPU: ``make test-cuda``. Skipped where there is none.

``FAIRGRAD_TEST_DEVICE=cpu`` runs what makes sense without one, to try the tests themselves.
"""

import os
import subprocess
import sys

import pytest
import torch
from scene import N, S, X, Y, is_same, make, state_of
from torch import nn

DEVICE = os.environ.get("FAIRGRAD_TEST_DEVICE", "cuda")
IS_CUDA = DEVICE == "cuda"
pytestmark = pytest.mark.skipif(IS_CUDA and not torch.cuda.is_available(), reason="no GPU")
needs_cuda = pytest.mark.skipif(not IS_CUDA, reason="there is no such thing on the CPU")

EVERYTHING = {"epsilon": 0.02, "proportional_rate": 0.5, "error_memory": 0.5}


@pytest.fixture
def batch():
    return X.to(DEVICE), Y.to(DEVICE), S.to(DEVICE)


def network():
    torch.manual_seed(0)
    return nn.Linear(5, 2).to(DEVICE)


@pytest.mark.parametrize("settings", [{}, EVERYTHING, {"weight": torch.tensor([1.0, 2.0])}])
def test_the_same_multipliers_as_on_the_cpu(batch, settings):
    there, here = make(**settings).to(DEVICE), make(**settings)
    model, (x, y, s) = network(), batch
    for start in range(0, N, 20):
        rows = slice(start, start + 20)
        logits = model(x[rows])
        loss = there(logits, y[rows], s[rows])
        loss.backward()
        same = here(logits.detach().cpu().requires_grad_(), Y[rows], S[rows])
        torch.testing.assert_close(loss.detach().cpu(), same.detach())
        torch.testing.assert_close(there.multipliers.cpu(), here.multipliers)
    assert there.state.multipliers.device.type == DEVICE
    assert there.state.multipliers.dtype == torch.float64


@needs_cuda
def test_no_step_waits_for_the_device(batch):
    criterion, model, (x, y, s) = make(**EVERYTHING).to(DEVICE), network(), batch
    weight = torch.ones(N, device=DEVICE)
    criterion(model(x), y, s).backward()  # what is made once may wait
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            criterion(model(x), y, s, weight).backward()
            criterion(model(x), y, s, mode="eval").backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_leaves_the_update_alone(batch, dtype):
    criterion, exact, model, (x, y, s) = make().to(DEVICE), make(), network(), batch
    scaler = torch.amp.GradScaler(DEVICE, enabled=IS_CUDA and dtype == torch.float16)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=dtype):
            logits = model(x)
            loss = criterion(logits, y, s)
        assert logits.dtype == dtype
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        exact(logits.detach().float().cpu().requires_grad_(), Y, S)
        torch.testing.assert_close(criterion.multipliers.cpu(), exact.multipliers)
        assert loss.isfinite()


@needs_cuda
def test_a_criterion_left_on_the_cpu_says_so(batch):
    criterion, model, (x, y, s) = make(), network(), batch
    before = state_of(criterion)
    with pytest.raises(ValueError, match=r"the loss is on cpu; call criterion.to\('cuda:0'\)"):
        criterion(model(x), y, s)
    assert is_same(before, state_of(criterion))


@needs_cuda
def test_a_captured_graph_updates_the_state(batch):
    """The state is updated in its own memory, so that every replay of a graph is a step."""
    captured, eager, (x, y, s) = make().to(DEVICE), make().to(DEVICE), batch
    logits = x[:, :2].clone().requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        captured(logits, y, s).backward()  # a first call outside, as PyTorch asks for
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    logits.grad = None
    with torch.cuda.graph(graph):
        loss = captured(logits, y, s)
        loss.backward()
    captured.load_state_dict(make().state_dict())
    for _ in range(5):
        graph.replay()
        expected = eager(logits.detach().requires_grad_(), y, s)
        torch.testing.assert_close(loss.detach(), expected.detach())
        torch.testing.assert_close(captured.multipliers, eager.multipliers)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*TensorFloat32")
def test_compiled_steps_are_the_same(batch, mode):
    torch._dynamo.reset()  # noqa: SLF001 - compiles afresh
    original, eager, (x, y, s) = make(**EVERYTHING).to(DEVICE), make(**EVERYTHING), batch
    compiled = torch.compile(original, fullgraph=True, mode=mode)
    for size in (64, 64, 32, 50, 17, 64):
        logits = x[:size, :2].clone().requires_grad_()
        loss = compiled(logits, y[:size], s[:size])
        loss.backward()
        same = eager(logits.detach().cpu().requires_grad_(), Y[:size], S[:size])
        torch.testing.assert_close(loss.detach().cpu(), same.detach())
        torch.testing.assert_close(original.multipliers.cpu(), eager.multipliers)


UNSEEN = """
import sys; sys.path.insert(0, {folder!r})
import torch
from scene import make, X, Y, S
criterion = make().to({device!r})
if {compiled}:
    criterion = torch.compile(criterion, fullgraph=True)
s = S.clone()
s[3] = {unseen}
loss = criterion(X[:, :2].to({device!r}).requires_grad_(), Y.to({device!r}), s.to({device!r}))
print(loss.item())
"""


@pytest.mark.parametrize("unseen", [-1, 7, 2**36])
@pytest.mark.parametrize("compiled", [True, False])
def test_values_never_seen_end_the_run(unseen, compiled):
    """As a device-side assert, after which a process cannot continue: so in a separate process."""
    folder = os.path.dirname(__file__)  # noqa: PTH120 - as text
    script = UNSEEN.format(folder=folder, device=DEVICE, compiled=compiled, unseen=unseen)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert run.returncode != 0
    assert not run.stdout


def test_the_whole_state_moves_there_and_back(batch):
    criterion, (x, y, s) = make().to(DEVICE), batch
    criterion(x[:, :2].clone().requires_grad_(), y, s)
    there = state_of(criterion)
    assert all(buffer.device.type == DEVICE for buffer in criterion.buffers())
    criterion.cpu()
    assert is_same({name: part.cpu() for name, part in there.items()}, state_of(criterion))
    criterion(X[:, :2].clone().requires_grad_(), Y, S)
