"""Averages, pickles and copies of a loss, and settings changed after it was made."""

import copy
import io
import pickle

import pytest
import torch
from scene import S, X, Y, is_same, linear, make, state_of, train
from torch import nn

from fairgrad import Groups
from fairgrad.torch import CrossEntropyLoss


class Whole(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.net, self.criterion = linear(), make(**settings)


def test_an_averaged_model_with_its_loss_is_saved_and_loaded():
    """EMA as in torchvision's reference scripts, buffers included."""
    model = Whole()
    decay = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=decay, use_buffers=True)
    for step in range(5):
        train(model.net, model.criterion, steps=1, seed=step)
        average.update_parameters(model)
    file = io.BytesIO()
    torch.save(average.state_dict(), file)
    file.seek(0)
    fresh = torch.optim.swa_utils.AveragedModel(Whole(), multi_avg_fn=decay, use_buffers=True)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    assert is_same(state_of(average.module.criterion), state_of(fresh.module.criterion))
    train(fresh.module.net, fresh.module.criterion)
    with pytest.raises(ValueError, match="trained on another problem"):
        Whole(epsilon=0.1).load_state_dict(average.module.state_dict())


def test_lightning_averages_weights(tmp_path):
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")
    lightning = pytest.importorskip("lightning.pytorch")
    averaging = getattr(callbacks, "EMAWeightAveraging", None)
    if averaging is None:
        pytest.skip("this Lightning has no averages")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.criterion = linear(), make()

        def training_step(self, batch, _):
            return self.criterion(self.net(batch[0]), *batch[1:])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def trainer():
        return lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[averaging(decay=0.9, use_buffers=True)],
        )

    rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y, S), 50)
    first = trainer()
    first.fit(Model(), rows)
    first.save_checkpoint(tmp_path / "average.ckpt")
    again = Model()
    state = torch.load(tmp_path / "average.ckpt", weights_only=False)["state_dict"]
    again.load_state_dict(state)
    assert again.criterion.multipliers.abs().sum() > 0


def test_pickles_hold_nothing_of_the_last_batch():
    """Labels and losses of people are private, and large."""
    fresh, used = make(), make()
    rows = torch.arange(20_000) % len(Y)
    used(X[rows, :2].clone().requires_grad_(), Y[rows], S[rows])
    assert used.plain_loss is not None
    for write in (pickle.dumps, saved):
        assert len(write(used)) < len(write(fresh)) + 200
    assert copy.deepcopy(used).plain_loss is None
    restored = pickle.loads(pickle.dumps(used))  # noqa: S301 - our own
    assert restored.plain_loss is None
    assert is_same(state_of(restored), state_of(used))
    assert used.plain_loss is not None


def saved(criterion):
    file = io.BytesIO()
    torch.save(criterion, file)
    return file.getvalue()


@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 3.0])])
def test_the_reduction_may_be_changed_later(weight):
    changed = make(weight=weight)
    for reduction in ("sum", "none", "mean"):
        other = make(weight=weight, reduction=reduction)
        other.load_state_dict(changed.state_dict())
        changed.reduction = reduction
        logits = X[:, :2].clone().requires_grad_()
        torch.testing.assert_close(changed(logits, Y, S), other(logits, Y, S))
        torch.testing.assert_close(changed.plain_loss, other.plain_loss)
    with pytest.raises(ValueError, match=r"reduction: expected one of .* got 'average'"):
        changed.reduction = "average"
    assert changed.reduction == "mean"


def test_data_parallel_is_refused():
    """It needs several GPUs to run; what it asks of every module first is a copy."""
    with pytest.raises(RuntimeError, match="DataParallel: .* use DistributedDataParallel"):
        make()._replicate_for_data_parallel()  # noqa: SLF001 - as DataParallel does
    network = nn.DataParallel(linear())  # the loss outside of it is fine
    train(network, make())


def test_rows_to_be_ignored_are_in_no_cell():
    """Labels of -100, as in token classification, among the training labels."""
    y = torch.where(torch.arange(len(Y)) % 5 == 0, -100, Y)
    with_ignored = CrossEntropyLoss(y, S, "equalized_odds", fairness_rate=0.3)
    kept = y != -100
    without = CrossEntropyLoss(y[kept], S[kept], "equalized_odds", fairness_rate=0.3)
    assert with_ignored.cell_names == without.cell_names
    assert with_ignored.constraint_names == without.constraint_names
    assert (with_ignored.groups.mass == without.groups.mass).all()
    counted = Groups.from_data(y, S)
    from_groups = CrossEntropyLoss(counted, None, "equalized_odds", fairness_rate=0.3)
    assert from_groups.cell_names == without.cell_names
    logits = X[:, :2].clone().requires_grad_()
    loss = with_ignored(logits, y, S)
    torch.testing.assert_close(loss, without(logits[kept], y[kept], S[kept]))
    torch.testing.assert_close(with_ignored.cell_weights, without.cell_weights)
