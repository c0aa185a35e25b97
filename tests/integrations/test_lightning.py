"""Lightning: logged numbers are those of a plain loop; checkpoints and processes change nothing."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

lightning = pytest.importorskip("lightning.pytorch", reason="the extra 'lightning' is needed")
from lightning.pytorch.loggers import CSVLogger  # noqa: E402 - after the skip

from fairgrad.groups import Groups  # noqa: E402 - after the skip
from fairgrad.lightning import FairnessMonitor  # noqa: E402 - after the skip
from fairgrad.torch import CrossEntropyLoss  # noqa: E402 - after the skip

# Advice on the number of worker processes, which depends on the machine.
pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers")

BATCH, RATE = 32, 2.0


class Linear(lightning.LightningModule):
    def __init__(self, counts):
        super().__init__()
        self.save_hyperparameters()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, 2)
        groups = Groups.from_counts(counts)
        self.criterion = CrossEntropyLoss(
            groups, fairness_measure="equalized_odds", fairness_rate=RATE
        )

    def training_step(self, batch, _):
        x, y, s = batch
        return self.criterion(self.layer(x), y, s)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def counts_of(people):
    return dict(Counter(zip(people.y.tolist(), people.s.tolist(), strict=True)))


def loader(people):
    return DataLoader(TensorDataset(people.x, people.y, people.s), BATCH)


def make_trainer(tmp_path, *, epochs=2, **arguments):
    settings = {
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": tmp_path,
        "max_epochs": epochs,
        "num_sanity_val_steps": 0,
    }
    return lightning.Trainer(**{**settings, **arguments})


def plain_loop(people, epochs=2):
    """The same training without Lightning: the numbers after each step."""
    model = Linear(counts_of(people))
    optimizer = model.configure_optimizers()
    steps = []
    for _ in range(epochs):
        for x, y, s in loader(people):
            optimizer.zero_grad()
            model.criterion(model.layer(x), y, s).backward()
            optimizer.step()
            criterion = model.criterion
            steps.append((criterion.levels, criterion.multipliers, criterion.cell_weights))
    return model, steps


def logged_rows(folder):
    with (Path(folder) / "metrics.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["fairness/negative_share"]]


def numbers(row, kind, names):
    return torch.tensor([float(row[f"fairness/{kind}/{name}"]) for name in names])


def test_every_step_is_logged_as_in_a_plain_loop(people, tmp_path):
    logger = CSVLogger(tmp_path)
    model = Linear(counts_of(people))
    trainer = make_trainer(
        tmp_path, logger=logger, log_every_n_steps=1, callbacks=[FairnessMonitor("step")]
    )
    trainer.fit(model, loader(people))
    rows = logged_rows(logger.log_dir)
    _, steps = plain_loop(people)
    assert len(rows) == len(steps)
    cells = ["y=0, s=0", "y=0, s=1", "y=1, s=0", "y=1, s=1"]
    mass = torch.tensor(
        [float(((people.y == k // 2) & (people.s == k % 2)).sum()) for k in range(4)]
    )
    for row, (levels, multipliers, weights) in zip(rows, steps, strict=True):
        torch.testing.assert_close(numbers(row, "level", cells), levels)
        torch.testing.assert_close(numbers(row, "multiplier", cells), multipliers)
        torch.testing.assert_close(numbers(row, "weight", cells), weights)
        share = mass[weights < 0].sum() / mass.sum()
        assert float(row["fairness/negative_share"]) == pytest.approx(float(share), abs=1e-6)
    assert any(float(row["fairness/negative_share"]) > 0 for row in rows)


def test_an_epoch_is_logged_with_the_mean_of_its_levels(people, tmp_path):
    logger = CSVLogger(tmp_path)
    model = Linear(counts_of(people))
    trainer = make_trainer(
        tmp_path, logger=logger, log_every_n_steps=1, callbacks=[FairnessMonitor()]
    )
    trainer.fit(model, loader(people))
    rows = logged_rows(logger.log_dir)
    _, steps = plain_loop(people)
    per_epoch = len(steps) // 2
    names = model.criterion.constraint_names
    for epoch, row in enumerate(rows):
        own = steps[epoch * per_epoch : (epoch + 1) * per_epoch]
        mean = torch.stack([levels for levels, _, _ in own]).mean(0)
        torch.testing.assert_close(numbers(row, "level", names), mean)
        torch.testing.assert_close(numbers(row, "multiplier", names), own[-1][1])
    assert len(rows) == 2


def test_a_resumed_run_has_the_multipliers_of_an_uninterrupted_one(people, tmp_path):
    counts = counts_of(people)
    first = make_trainer(tmp_path, callbacks=[FairnessMonitor()])
    first.fit(Linear(counts), loader(people))
    first.save_checkpoint(tmp_path / "half.ckpt")
    resumed = Linear(counts)
    trainer = make_trainer(tmp_path, epochs=4, callbacks=[FairnessMonitor()])
    trainer.fit(resumed, loader(people), ckpt_path=tmp_path / "half.ckpt")
    whole, _ = plain_loop(people, epochs=4)
    assert torch.equal(resumed.criterion.multipliers, whole.criterion.multipliers)
    assert torch.equal(resumed.layer.weight, whole.layer.weight)


def test_a_checkpoint_loads_without_training_data(people, tmp_path):
    trainer = make_trainer(tmp_path)
    model = Linear(counts_of(people))
    trainer.fit(model, loader(people))
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    loaded = Linear.load_from_checkpoint(tmp_path / "model.ckpt")
    assert torch.equal(loaded.criterion.multipliers, model.criterion.multipliers)


def test_validation_gives_the_plain_loss_and_changes_nothing(people, tmp_path):
    class Validated(Linear):
        def validation_step(self, batch, _):
            x, y, _ = batch
            self.log("plain", self.criterion(self.layer(x), y))

    model = Validated(counts_of(people))
    model.criterion.state.multipliers += 0.5
    before = model.criterion.multipliers
    trainer = make_trainer(tmp_path)
    trainer.validate(
        model, DataLoader(TensorDataset(people.x, people.y, people.s), 192), verbose=False
    )
    expected = torch.nn.functional.cross_entropy(model.layer(people.x), people.y)
    torch.testing.assert_close(trainer.callback_metrics["plain"], expected.detach())
    assert torch.equal(model.criterion.multipliers, before)


def test_training_stops_when_the_loss_is_not_a_number(people, tmp_path):
    x = people.x.clone()
    x[70] = torch.nan  # in the third batch
    model = Linear(counts_of(people))
    spoilt = DataLoader(TensorDataset(x, people.y, people.s), BATCH)
    trainer = make_trainer(tmp_path, callbacks=[FairnessMonitor()])
    with pytest.raises(FloatingPointError, match=r"step 3: .* the loss is nan\. Try a smaller"):
        trainer.fit(model, spoilt)


def test_training_stops_when_multipliers_are_infinite(people, tmp_path):
    model = Linear(counts_of(people))
    model.criterion.fairness_rate = 1e38
    trainer = make_trainer(tmp_path, callbacks=[FairnessMonitor("step")], epochs=20)
    with pytest.raises(FloatingPointError, match="training has diverged"):
        trainer.fit(model, loader(people))


def test_two_losses_are_told_apart(people, tmp_path):
    class Two(Linear):
        def __init__(self, counts):
            super().__init__(counts)
            groups = Groups.from_counts(counts)
            self.second = CrossEntropyLoss(groups, fairness_measure="accuracy_parity")

        def training_step(self, batch, _):
            x, y, s = batch
            logits = self.layer(x)
            return self.criterion(logits, y, s) + self.second(logits, y, s)

    trainer = make_trainer(tmp_path, callbacks=[FairnessMonitor()])
    trainer.fit(Two(counts_of(people)), loader(people))
    assert "fairness/criterion/level/y=0, s=0" in trainer.callback_metrics
    assert "fairness/second/level/s=0" in trainer.callback_metrics


def test_a_module_without_a_fair_loss_is_refused(people, tmp_path):
    model = Linear(counts_of(people))
    del model.criterion
    trainer = make_trainer(tmp_path, callbacks=[FairnessMonitor()])
    with pytest.raises(ValueError, match=r"expected a fair loss .* Linear.*got \['layer'\]"):
        trainer.fit(model, loader(people))


def test_a_batch_without_sensitive_values_is_refused(people, tmp_path):
    class Forgetful(Linear):
        def training_step(self, batch, _):
            x, y, _ = batch
            return self.criterion(self.layer(x), y)

    model = Forgetful(counts_of(people))
    with pytest.raises(ValueError, match="s: required in training"):
        make_trainer(tmp_path).fit(model, loader(people))


def test_an_unknown_time_to_log_is_refused():
    with pytest.raises(ValueError, match=r"every: expected one of .*, got 'batch'"):
        FairnessMonitor("batch")


def test_two_processes_are_as_one(tmp_path):
    worker = Path(__file__).with_name("lightning_worker.py")
    two_ranks = Path(__file__).parents[1] / "two_ranks.py"
    run = subprocess.run(
        [sys.executable, two_ranks, "lightning.pytorch,fairgrad.lightning", worker, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
