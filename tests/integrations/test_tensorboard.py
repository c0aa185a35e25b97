"""What was written is read back by TensorBoard itself."""

import pytest
import torch

accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="the extra 'tensorboard' is needed",
)
from torch.utils.tensorboard import SummaryWriter  # noqa: E402 - after the skip

from fairgrad.tensorboard import add_fairness  # noqa: E402 - after the skip
from fairgrad.torch import CrossEntropyLoss  # noqa: E402 - after the skip

CELLS = ("y=0, s=0", "y=0, s=1", "y=1, s=0", "y=1, s=1")


def train(people, writer, measure="equalized_odds"):
    """Some steps; gives what each of them left in the loss."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    criterion = CrossEntropyLoss(people.y, people.s, measure, fairness_rate=5.0)
    steps = []
    for step in range(8):
        optimizer.zero_grad()
        criterion(layer(people.x), people.y, people.s).backward()
        optimizer.step()
        add_fairness(writer, criterion, step)
        steps.append((criterion.levels, criterion.multipliers, criterion.cell_weights))
    return steps


def read(folder):
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return events


def test_scalars_are_read_back(people, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        steps = train(people, writer)
    events = read(tmp_path)
    for column, kind in enumerate(("level", "multiplier", "weight")):
        for k, cell in enumerate(CELLS):
            found = events.Scalars(f"fairness/{kind}/{cell}")
            assert [event.step for event in found] == list(range(8))
            expected = torch.stack([step[column][k] for step in steps])
            torch.testing.assert_close(torch.tensor([event.value for event in found]), expected)
    shares = [event.value for event in events.Scalars("fairness/negative_share")]
    rows = [(people.y == k // 2) & (people.s == k % 2) for k in range(4)]
    expected = [
        sum(float(rows[k].float().mean()) for k in range(4) if weights[k] < 0)
        for _, _, weights in steps
    ]
    assert shares == pytest.approx(expected, abs=1e-6)
    assert max(shares) > 0


def test_two_measures_on_the_same_cells_are_told_apart(people, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        steps = train(people, writer, ["equalized_odds", "demographic_parity"])
    events = read(tmp_path)
    last = [events.Scalars(f"fairness/level/y=1, s=1{n}")[-1].value for n in ("", " (2)")]
    torch.testing.assert_close(torch.tensor(last), steps[-1][0][[3, 7]])


def test_another_loss_is_refused(tmp_path):
    with (
        SummaryWriter(tmp_path) as writer,
        pytest.raises(TypeError, match=r"criterion: expected a loss of fairgrad\.torch"),
    ):
        add_fairness(writer, torch.nn.CrossEntropyLoss(), 0)
