"""The loss makes models fair: Figure 1, Lemma 1, and a real run on Adult."""

import pytest
import torch
from torch import nn

from fairgrad import FairnessWarning, fairness_levels
from fairgrad.datasets import load
from fairgrad.torch import CrossEntropyLoss


def train_linear(x, y, s, criterion, *, epochs, batch_size, lr, clip, seed):
    torch.manual_seed(seed)
    model = nn.Linear(x.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(batch_size):
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows], s[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    return model


def figure_1(y_train, s_train, fairness_measure, data_loader, model, optimizer):
    # The library is available at https://pypi.org/project/fairgrad.
    from fairgrad.torch import CrossEntropyLoss  # noqa: PLC0415 - the paper's text, unchanged

    # Same as PyTorch's loss with some additional meta data.
    # A fairness rate of 0.01 is a good rule of thumb for standardized data.
    criterion = CrossEntropyLoss(y_train, s_train, fairness_measure, fairness_rate=0.01)

    # The dataloader and model are defined and used in the standard way.
    for x, y, s in data_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y, s)
        loss.backward()
        optimizer.step()
    return criterion


def test_figure_1_runs_unchanged():
    train, _, _ = load("adult").split(seed=10)
    x, y, s = (torch.as_tensor(part) for part in train)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y, s), 512)
    model = nn.Linear(x.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = nn.functional.cross_entropy(model(x), y)
    criterion = figure_1(y, s, "equalized_odds", loader, model, optimizer)
    assert nn.functional.cross_entropy(model(x), y) < before - 0.1
    assert (criterion.multipliers != 0).all()


class TestLemma1:
    """A problem whose best model for the worst-off group still disadvantages it.

    One feature, one threshold. Group 0's labels follow it exactly; group 1's are noisy, so that
    even the threshold that is best for group 1 errs more often there. Equal accuracy is possible
    only by moving the threshold to where group 0 loses more than group 1: with a negative weight.
    """

    @staticmethod
    def data(n=2000):
        generator = torch.Generator().manual_seed(0)
        s = torch.arange(n) % 2
        x = 2 * torch.rand(n, generator=generator) - 1
        chance = torch.rand(n, generator=generator)
        noise = ((x > 0) & (x < 0.5) & (chance < 0.4)) | ((x < -0.5) & (chance < 0.2))
        y = ((x > 0) ^ ((s == 1) & noise)).long()
        return x[:, None], y, s

    def unfairness(self, *, negative_weights):
        """Mean of |F| over the last 20 of 100 epochs, and the weight of group 0 at the end."""
        x, y, s = self.data()
        criterion = CrossEntropyLoss(
            y, s, "accuracy_parity", fairness_rate=0.1, negative_weights=negative_weights
        )
        torch.manual_seed(0)
        model = nn.Linear(1, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        found = []
        for _ in range(100):
            for rows in torch.randperm(len(y)).split(200):
                optimizer.zero_grad()
                criterion(model(x[rows]), y[rows], s[rows]).backward()
                optimizer.step()
            predicted = model(x).argmax(1)
            found.append(fairness_levels(y, predicted, s, "accuracy_parity").unfairness)
        return sum(found[-20:]) / 20, criterion.cell_weights[0]

    def test_clipped_weights_cannot_be_fair(self):
        unfairness, weight = self.unfairness(negative_weights=False)
        assert unfairness > 0.04
        assert weight == 0

    def test_signed_weights_are_fair(self):
        unfairness, weight = self.unfairness(negative_weights=True)
        assert unfairness < 0.02
        assert weight < 0


class TestAdult:
    """The paper's protocol, one seed: linear, batch 512, 50 epochs."""

    @staticmethod
    def run(fairness_rate):
        train, _, test = load("adult").split(seed=10)
        x, y, s = (torch.as_tensor(part) for part in train)
        criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=fairness_rate)
        model = train_linear(
            x, y, s, criterion, epochs=50, batch_size=512, lr=0.1, clip=0.05, seed=10
        )
        predicted = model(torch.as_tensor(test.X)).argmax(1)
        accuracy = (predicted.numpy() == test.y).mean()
        return accuracy, fairness_levels(test.y, predicted, test.s, "equalized_odds").unfairness

    def test_fair(self):
        accuracy, unfairness = self.run(fairness_rate=0.01)
        assert accuracy >= 0.815
        assert unfairness <= 0.02

    def test_unconstrained(self):
        accuracy, unfairness = self.run(fairness_rate=0.0)
        assert accuracy == pytest.approx(0.846, abs=0.005)
        assert unfairness == pytest.approx(0.043, abs=0.005)


class TestFullBatch:
    """All rows in every step, as optimizers with a line search need them."""

    @staticmethod
    def rows():
        generator = torch.Generator().manual_seed(0)
        s = torch.arange(4000) % 2
        x = torch.randn(4000, 3, generator=generator) + s[:, None] * torch.tensor([0.8, 0.0, -0.3])
        y = (x.sum(1) + torch.randn(4000, generator=generator) > 0.5).long()
        return x, y, s

    @staticmethod
    def largest_level(model, x, y, s):
        predicted = model(x).argmax(1)
        return fairness_levels(y, predicted, s, "demographic_parity").gaps.max()

    def train_lbfgs(self, criterion, *, steps, **settings):
        x, y, s = self.rows()
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.LBFGS(model.parameters(), **settings)

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(x), y, s)
            loss.backward()
            return loss

        for _ in range(steps):
            optimizer.step(closure)
        return model

    @pytest.mark.parametrize("search", ["strong_wolfe", None])
    def test_lbfgs_computes_one_objective_per_step(self, search):
        x, y, s = self.rows()
        plain = self.train_lbfgs(
            lambda scores, y, _: nn.functional.cross_entropy(scores, y), steps=5
        )
        criterion = CrossEntropyLoss(y, s, "demographic_parity")
        lr = 1 if search else 0.2
        model = self.train_lbfgs(criterion, steps=20, lr=lr, line_search_fn=search)
        assert self.largest_level(plain, x, y, s) > 0.05
        assert self.largest_level(model, x, y, s) < 0.01
        assert (model(x).argmax(1) == y).double().mean() > 0.7

    def test_a_step_with_very_many_evaluations_is_reported(self):
        _, y, s = self.rows()
        criterion = CrossEntropyLoss(y, s, "demographic_parity")
        with pytest.warns(FairnessWarning, match="100 times in one step"):
            self.train_lbfgs(criterion, steps=1, lr=0.01, max_iter=200)

    def test_a_closure_that_is_called_once_is_an_ordinary_step(self):
        x, y, s = self.rows()
        criteria = [CrossEntropyLoss(y, s, "demographic_parity") for _ in range(2)]
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        for _ in range(5):
            optimizer.step(lambda: criteria[0](x[:, :2].requires_grad_(), y, s))
            criteria[1](x[:, :2], y, s)
        assert torch.equal(criteria[0].multipliers, criteria[1].multipliers)

    @pytest.mark.parametrize("compiled", [True, False])
    def test_few_steps_with_very_many_rows_are_enough(self, compiled):
        x, y, s = (rows.repeat(8, *[1] * (rows.ndim - 1)) for rows in self.rows())
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        criterion = CrossEntropyLoss(y, s, "demographic_parity")
        criterion.state.is_compiled &= compiled
        for _ in range(300):
            optimizer.zero_grad()
            criterion(model(x), y, s).backward()
            optimizer.step()
        assert self.largest_level(model, x, y, s) < 0.025
