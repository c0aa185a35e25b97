"""Fine-tuning of whole networks: the loss's own loop, fairer, resumable, with clear refusals."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fairgrad import FairnessWarning, fairness_levels
from fairgrad.finetune import finetune, predict_logits
from fairgrad.torch import CrossEntropyLoss

DP = "demographic_parity"


def tune(network, rows, **options):
    X, y, s = rows
    settings = {"fairness_measure": DP, "learning_rate": 0.01, "max_iter": 2, "random_state": 0}
    return finetune(network, X, y, s, **settings | options)


def trained(rows, n_outputs=2, *, bias=True):
    """A small network that was trained on some rows for accuracy alone."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, n_outputs, bias=bias)
    )
    X, y, _ = (torch.from_numpy(part) for part in rows)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(10):
        for batch in torch.randperm(len(X)).split(64):
            logits = network(X[batch])
            padded = logits if n_outputs > 1 else torch.cat([torch.zeros_like(logits), logits], 1)
            optimizer.zero_grad()
            nn.functional.cross_entropy(padded, y[batch]).backward()
            optimizer.step()
    return network


def judged(module, rows, measure=DP):
    """Accuracy and the largest |F| on some rows."""
    X, y, s = rows
    logits = predict_logits(module, X)
    predicted = (logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(1)).long().numpy()
    return (predicted == y).mean(), np.abs(fairness_levels(y, predicted, s, measure).values).max()


@pytest.mark.parametrize("measure", [DP, "equalized_odds"])
@pytest.mark.parametrize(("n_outputs", "n_labels"), [(1, 2), (2, 2), (3, 3)])
def test_by_default_epsilon_is_kept_on_the_training_rows(make_rows, measure, n_outputs, n_labels):
    rows = make_rows(2000, seed=0, n_labels=n_labels)
    network = trained(rows, n_outputs)
    accuracy, unfair = judged(network, rows, measure)
    tuned = finetune(network, *rows, fairness_measure=measure, random_state=0)
    fair_accuracy, fair = judged(tuned.module, rows, measure)
    assert unfair > 0.05
    assert fair < 0.0551  # epsilon and the least miss that is a warning
    assert fair_accuracy > accuracy - 0.15


def test_a_head_without_bias_and_costs(make_rows):
    rows = make_rows(2000, seed=0)
    network = trained(rows, bias=False)
    tuned = finetune(
        network, *rows, fairness_measure=DP, cost_matrix=[[0, 1], [2, 0]], random_state=0
    )
    assert judged(tuned.module, rows)[1] < 0.056


def test_the_last_epoch_is_judged_with_the_moved_head(make_rows):
    rows = make_rows(2000, seed=0)
    tuned = finetune(trained(rows), *rows, fairness_measure=DP, validation=rows, random_state=0)
    accuracy, worst = judged(tuned.module, rows)
    assert tuned.history[-1]["accuracy"] == accuracy
    assert tuned.history[-1]["unfairness"] <= worst < 0.056


def test_a_missed_epsilon_is_a_warning_with_the_number(make_rows):
    rows = make_rows(2000, seed=0)
    network = trained(rows)
    message = (
        r"^epsilon=0.05 is not kept: on the training rows the worst level of fairness is 0\.\d+ "
        r"beyond its bounds \(max \|F\| 0\.\d+\).*Try fairness_rate=\"auto\""
    )
    with pytest.warns(FairnessWarning, match=message):
        tune(network, rows, fairness_rate=1e-6)
    network[3].requires_grad_(requires_grad=False)  # then the head is not moved
    with pytest.warns(FairnessWarning, match="Try a larger max_iter or a larger epsilon"):
        tune(network, rows, learning_rate=1e-5)


def test_a_head_that_is_not_the_last_step_is_not_moved(make_rows):
    class Halved(nn.Module):
        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, x):
            return self.network(x) / 2

    rows = make_rows(2000, seed=0)
    with pytest.warns(FairnessWarning, match="epsilon=0.05 is not kept"):
        tune(Halved(trained(rows)), rows, learning_rate=1e-5)


@pytest.mark.filterwarnings("error::fairgrad.usefulness.FairnessWarning")
def test_the_plain_loss_is_not_judged(make_rows):
    rows = make_rows(2000, seed=0)
    tune(trained(rows), rows, fairness_rate=0.0)
    finetune(trained(rows), *rows, fairness_measure=None, max_iter=1)


def test_a_large_network_is_trained_gently(make_rows):
    """A million weights were probably learnt elsewhere: three epochs, at a small rate."""
    rows = make_rows(2000, seed=0)
    torch.manual_seed(0)
    large = nn.Sequential(nn.Linear(6, 150_000), nn.ReLU(), nn.Linear(150_000, 2))
    settings = {"fairness_rate": 0.0, "random_state": 0}
    found = [
        finetune(large, *(part[:128] for part in rows), **settings, **more)
        for more in ({}, {"learning_rate": 1e-4, "max_iter": 3})
    ]
    assert len(found[0].history) == 3
    for one, other in zip(*(tuned.module.parameters() for tuned in found), strict=True):
        assert torch.equal(one, other)


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(),
        nn.Linear(54, 7),
    )  # fmt: skip


def images(n, seed):
    """8 x 8 images: one corner shows the label, brighter in the second group, another the group."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, (2, n))
    pixels = rng.normal(size=(n, 1, 8, 8)).astype(np.float32)
    pixels[:, :, :4, :4] += (0.6 * y + 0.6 * s)[:, None, None, None]
    pixels[:, :, 4:, 4:] += s[:, None, None, None]
    return pixels, y, s


def test_a_convolutional_network_becomes_fairer():
    network, data = convolutional(), images(3000, seed=0)
    X, y, s = images(3000, seed=1)
    found = {}
    for name, rate in {"plain": 0.0, "fair": "auto"}.items():
        tuned = tune(network, data, epsilon=0.0, max_iter=6, fairness_rate=rate)
        predicted = predict_logits(tuned.module, X).argmax(1).numpy()
        found[name] = (fairness_levels(y, predicted, s, DP).unfairness, (predicted == y).mean())
    assert found["plain"][0] > 0.04
    assert found["fair"][0] < 0.5 * found["plain"][0]
    assert found["fair"][1] > 0.8


def test_it_is_the_losss_own_loop(rows, make_network):
    """The same steps written out: order, loss, learning rate, gradient norm."""
    rate = 0.01  # the automatic rate would move the head at last
    X, y, s = rows
    network = make_network()
    network.body[2].p = 0.0
    tuned = finetune(
        network, X, y, s, fairness_measure=DP, epsilon=0.0, optimizer=torch.optim.SGD,
        fairness_rate=rate, learning_rate=0.1, clip_norm=0.5, max_iter=2, batch_size=100,
        random_state=7,
    )  # fmt: skip
    seed = int(np.random.RandomState(7).randint(np.iinfo(np.int32).max))
    own = copy.deepcopy(network).train()
    criterion = CrossEntropyLoss(y, s, DP, fairness_rate=rate)
    optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
    X, y, s = (torch.from_numpy(part) for part in rows)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24)
    for epoch in range(2):
        order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(1200))
        for batch in order.split(100):
            optimizer.zero_grad()
            criterion(own(X[batch]), y[batch], s[batch]).backward()
            nn.utils.clip_grad_norm_(own.parameters(), 0.5)
            optimizer.step()
            schedule.step()
    for name, value in tuned.module.state_dict().items():
        torch.testing.assert_close(value, own.state_dict()[name], atol=1e-5, rtol=1e-4)


def test_without_a_measure_it_is_the_plain_loss(rows, network):
    X, y, s = rows
    plain = finetune(network, X, y, fairness_measure=None, random_state=0)
    zero = finetune(network, X, y, s, fairness_rate=0.0, random_state=0)
    for name, value in plain.module.state_dict().items():
        torch.testing.assert_close(value, zero.module.state_dict()[name])
    assert set(plain.history[0]) == {"loss"}


def test_the_given_network_is_left_as_it_is(rows, network):
    before = copy.deepcopy(network.state_dict())
    tuned = tune(network, rows)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert network.training
    assert not tuned.module.training
    assert not torch.equal(tuned.module.body[0].weight, network.body[0].weight)


def test_frozen_layers_stay(rows, network):
    network.body.requires_grad_(requires_grad=False)
    tuned = tune(network, rows)
    assert torch.equal(tuned.module.body[0].weight, network.body[0].weight)
    assert not torch.equal(tuned.module.classifier.weight, network.classifier.weight)


def test_a_head_of_another_size_is_replaced(make_network, make_rows):
    X, y, s = make_rows(600, seed=0, n_labels=3)
    names = np.array(["a", "b", "c"])[y]
    tuned = finetune(
        make_network(n_outputs=10), X, names, s, learning_rate=0.03, max_iter=8, random_state=0,
        fairness_rate=0.0,
    )  # fmt: skip
    assert tuned.classes.tolist() == ["a", "b", "c"]
    logits = predict_logits(tuned.module, X)
    assert logits.shape == (600, 3)
    assert (tuned.classes[logits.argmax(1).numpy()] == names).mean() > 0.6


def test_one_output_is_the_logit_of_the_second_class(make_network, rows):
    X, y, _ = rows
    tuned = tune(make_network(n_outputs=1), rows, fairness_rate=0.0, max_iter=5, validation=rows)
    logits = predict_logits(tuned.module, X)
    assert logits.shape == (1200, 1)
    assert ((logits[:, 0] > 0).numpy() == y).mean() == tuned.history[-1]["accuracy"] > 0.75


def test_epochs_are_judged_on_the_validation_rows(rows, network, make_rows):
    validation = make_rows(300, seed=5)
    tuned = tune(network, rows, validation=validation)
    X, y, s = validation
    predicted = predict_logits(tuned.module, X).argmax(1).numpy()
    last = tuned.history[-1]
    assert last["accuracy"] == (predicted == y).mean()
    assert last["unfairness"] == fairness_levels(y, predicted, s, DP).unfairness


def test_divergence_is_an_error(rows, network):
    with pytest.raises(FloatingPointError, match=r"after 0.\d+ epochs: lower learning_rate"):
        tune(network, rows, optimizer=torch.optim.SGD, learning_rate=1e30)


def test_several_sensitive_columns_with_names(rows, network):
    X, y, s = rows
    columns = {"sex": np.array(["F", "M"])[s], "old": np.where(X[:, 2] > 0, 1, -1)}
    tuned = finetune(network, X, y, columns, validation=(X, y, columns), random_state=0)
    assert np.isfinite(tuned.history[-1]["unfairness"])


def test_a_network_that_returns_no_logits_is_refused(rows):
    class Tuple(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(6, 2)

        def forward(self, x):
            return x, self.head(x)

    with pytest.raises(TypeError, match="module: expected it to return .* got tuple"):
        tune(Tuple(), rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": 0}, "max_iter: expected a whole number of at least 1"),
        ({"max_iter": "many"}, "max_iter: expected a whole number"),
        ({"batch_size": 2.5}, "batch_size: expected a whole number"),
        ({"learning_rate": -1.0}, "learning_rate: expected a finite number"),
        ({"learning_rate": "high"}, "learning_rate: expected a finite number"),
        ({"clip_norm": 0.0}, "clip_norm: expected a finite number above 0"),
        ({"head": "fc"}, "head: expected the name of a part"),
        ({"y_desirable": [5]}, r"y_desirable: expected labels among \[0, 1\], got \[5\]"),
        ({"validation": (1, 2)}, "validation: expected"),
        ({"fairness_measure": "parity"}, "fairness_measure"),
    ],
)
def test_what_is_not_allowed_is_refused(rows, network, options, message):
    with pytest.raises(ValueError, match=message):
        tune(network, rows, **options)
    assert network.calls == 0


def test_rows_that_do_not_fit_are_refused(rows, network):
    X, y, s = rows
    with pytest.raises(ValueError, match="y: expected one label per row of X"):
        finetune(network, X, y[:-1], s)
    with pytest.raises(ValueError, match="sensitive_features: expected one value per row"):
        finetune(network, X, y, s[:-1])
    with pytest.raises(ValueError, match="sensitive_features: required"):
        finetune(network, X, y)
    with pytest.raises(ValueError, match="y: got '2', which was never seen"):
        finetune(network, X, y, s, validation=(X, y + 1, s))
    with pytest.raises(
        ValueError, match="sensitive_features: fairness compares at least two groups"
    ):
        finetune(network, X, y, s * 0)
    with pytest.raises(TypeError, match="optimizer: expected a function .* got str"):
        finetune(network, X, y, s, optimizer="adam")
    network.requires_grad_(requires_grad=False)
    with pytest.raises(ValueError, match="module: expected parameters that require a gradient"):
        finetune(network, X, y, s)
