"""Whatever precision a script trains in, the multipliers keep theirs."""

import pytest
import torch
from scene import N, S, X, Y, linear, make, train
from torch import distributed, nn


@pytest.fixture
def default_dtype():
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_default_dtype_changes_nothing(default_dtype, dtype, compiled):
    usual = make(error_memory=0.5)
    train(linear(), usual)
    default_dtype(dtype)
    criterion = make(error_memory=0.5)
    criterion.state.is_compiled &= compiled
    train(linear(dtype=torch.float32), criterion)
    assert criterion.state.multipliers.dtype == torch.float64
    torch.testing.assert_close(criterion.multipliers, usual.multipliers)


def test_small_increments_are_not_lost():
    """In single precision a rate of 1e-7 would not move a multiplier of 5 at all."""
    criterion = make(fairness_rate=1e-7)
    criterion.state.multipliers.fill_(5)
    logits = X[:, :2].clone().requires_grad_()
    for _ in range(100):
        criterion(logits, Y, S)
    moved = criterion.state.multipliers.squeeze() - 5
    torch.testing.assert_close(moved, 1e-5 * criterion.levels.double(), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("compiled", [True, False])
def test_autocast_is_off_around_the_update(dtype, compiled):
    """As in an AMP loop; on the tensor path, which accelerators take, too."""
    criterion, exact = make(proportional_rate=0.5), make(proportional_rate=0.5)
    criterion.state.is_compiled &= compiled
    model = linear()
    for start in range(0, N, 20):
        rows = slice(start, start + 20)
        with torch.autocast("cpu", dtype=dtype):
            logits = model(X[rows])
            loss = criterion(logits, Y[rows], S[rows])
        assert logits.dtype == dtype
        loss.backward()
        exact(logits.detach().float().requires_grad_(), Y[rows], S[rows])
        assert torch.equal(criterion.state.multipliers, exact.state.multipliers)
    assert loss.isfinite()


def test_the_products_of_a_measure_are_exact_under_autocast(monkeypatch):
    """Emulates a device on which autocast reaches the update: matrix products in half precision."""
    seen = []
    original = torch.Tensor.index_add

    def spy(self, *args):
        seen.append(torch.is_autocast_enabled("cpu"))
        return original(self, *args)

    monkeypatch.setattr(torch.Tensor, "index_add", spy)
    criterion = make()
    criterion.state.is_compiled = False  # takes the path of accelerators
    with torch.autocast("cpu"):
        criterion(X[:, :2].clone().requires_grad_(), Y, S)
        assert torch.is_autocast_enabled("cpu")
    assert seen
    assert not any(seen)


@pytest.fixture
def one_process(tmp_path):
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


class Whole(nn.Module):
    """A model that holds its loss."""

    def __init__(self):
        super().__init__()
        self.net, self.criterion = linear(), make()

    def forward(self, x, y, s):
        return self.criterion(self.net(x), y, s)


@pytest.mark.filterwarnings("ignore:.*FSDP.*")
@pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")
@pytest.mark.usefixtures("one_process")
def test_fsdp_that_casts_buffers():
    from torch.distributed.fsdp import (  # noqa: PLC0415 - slow to import
        FullyShardedDataParallel,
        MixedPrecision,
    )

    precision = MixedPrecision(buffer_dtype=torch.bfloat16)
    cpu = torch.device("cpu")
    sharded = FullyShardedDataParallel(Whole(), mixed_precision=precision, device_id=cpu)
    plain = Whole()
    for _ in range(5):
        for model in (sharded, plain):
            model(X, Y, S).backward()
    criterion = sharded.module.criterion
    assert criterion.state.multipliers.dtype == torch.float64
    torch.testing.assert_close(criterion.multipliers, plain.criterion.multipliers)
    torch.testing.assert_close(criterion.cell_weights, plain.criterion.cell_weights)


@pytest.mark.parametrize("precision", ["bf16-true", "64-true", "bf16-mixed", "16-true"])
def test_lightning_precisions(precision):
    lightning = pytest.importorskip("lightning.pytorch")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.criterion = linear(), make()

        def training_step(self, batch, _):
            x, y, s = batch
            return self.criterion(self.net(x), y, s)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    rows = torch.utils.data.TensorDataset(X, Y, S)
    model = Model()
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        precision=precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, torch.utils.data.DataLoader(rows, 50))
    assert model.criterion.state.multipliers.dtype == torch.float64
    assert model.criterion.multipliers.abs().sum() > 0
    assert model.criterion.multipliers.isfinite().all()
