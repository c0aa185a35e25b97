"""skorch: the training of a plain loop, splits, searches, copies and files."""

import pickle

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from torch.utils.data import Subset

pytest.importorskip("skorch", reason="the extra 'skorch' is needed")
from skorch.callbacks import EpochScoring
from skorch.dataset import Dataset, ValidSplit
from skorch.helper import predefined_split

from fairgrad import On
from fairgrad.sklearn import make_fairness_scorer
from fairgrad.skorch import FairNeuralNetBinaryClassifier, FairNeuralNetClassifier
from fairgrad.torch import CrossEntropyLoss, FairLoss

BATCH, RATE, LEARNING_RATE = 32, 0.5, 0.1


class Linear(torch.nn.Module):
    """Keeps what it was called with; `wrap` makes its output of the logits."""

    def __init__(self, n_outputs=2, wrap=None):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, n_outputs)
        self.wrap = wrap
        self.seen = set()

    def forward(self, X, **others):
        self.seen |= {X.shape[1], *others}
        logits = self.layer(X)
        return logits if self.wrap is None else self.wrap(logits)


def make_net(kind=FairNeuralNetClassifier, **settings):
    defaults = {
        "module": Linear,
        "criterion": torch.nn.CrossEntropyLoss,
        "criterion__fairness_measure": "equalized_odds",
        "criterion__fairness_rate": RATE,
        "train_split": None,
        "batch_size": BATCH,
        "max_epochs": 3,
        "lr": LEARNING_RATE,
        "verbose": 0,
    }
    return kind(**{**defaults, **settings})


@pytest.fixture
def data(people):
    return people.x.numpy(), people.y.numpy(), people.s.numpy()


def train_by_hand(X, y, s, epochs=3, criterion=None):
    model = Linear()
    if criterion is None:
        criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=RATE)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    X, y, s = (torch.as_tensor(part) for part in (X, y, criterion.groups.encode(s)))
    for _ in range(epochs):
        for rows in torch.arange(len(y)).split(BATCH):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows], s[rows]).backward()
            optimizer.step()
    return model, criterion


def assert_same(net, model, criterion):
    torch.testing.assert_close(net.criterion_.multipliers, criterion.multipliers)
    torch.testing.assert_close(net.module_.layer.weight, model.layer.weight)
    assert criterion.multipliers.abs().max() > 0.1


@pytest.mark.parametrize("criterion", [torch.nn.CrossEntropyLoss, CrossEntropyLoss])
def test_training_is_that_of_a_plain_loop(data, criterion):
    X, y, s = data
    net = make_net(criterion=criterion).fit(X, y, sensitive_features=s)
    assert_same(net, *train_by_hand(X, y, s))
    assert net.module_.seen == {3}  # columns of X and nothing else


def test_sensitive_values_follow_the_rows_of_a_validation_split(data):
    X, y, s = data
    split = ValidSplit(0.3, stratified=True, random_state=3)
    net = make_net(train_split=split).fit(X, y, sensitive_features=s)
    rows, others = split(Dataset(X, y), y)
    kept = rows.indices
    assert_same(net, *train_by_hand(X[kept], y[kept], s[kept]))
    # the validation loss is the plain one, of the rows held out
    held_out = torch.tensor(X[others.indices]), torch.tensor(y[others.indices])
    with torch.no_grad():
        plain = torch.nn.functional.cross_entropy(net.module_.layer(held_out[0]), held_out[1])
    assert net.history[-1, "valid_loss"] == pytest.approx(float(plain), abs=1e-5)


def test_a_predefined_validation_set_needs_no_sensitive_values(data):
    X, y, s = data
    split = predefined_split(Dataset(X[150:], y[150:]))
    net = make_net(train_split=split).fit(X[:150], y[:150], sensitive_features=s[:150])
    assert_same(net, *train_by_hand(X[:150], y[:150], s[:150]))
    assert "valid_acc" in net.history[-1]


@pytest.mark.parametrize("y_given", [True, False])
def test_a_dataset_in_place_of_arrays(data, y_given):
    X, y, s = data
    net = make_net().fit(Dataset(X, y), y if y_given else None, sensitive_features=s)
    assert_same(net, *train_by_hand(X, y, s))
    assert net.classes_.tolist() == [0, 1]


def test_several_attributes_as_text(data):
    X, y, s = data
    columns = {"sex": np.array(["F", "M"])[s], "age": np.array(["old", "young"] * 96)}
    measure = [On("sex", "equalized_odds"), On("age", "accuracy_parity")]
    net = make_net(criterion__fairness_measure=measure).fit(X, y, sensitive_features=columns)
    criterion = CrossEntropyLoss(y, columns, measure, fairness_rate=RATE)
    assert_same(net, *train_by_hand(X, y, columns, criterion=criterion))


def test_probabilities_with_the_default_criterion(data):
    X, y, s = data
    softmax = {"module__wrap": torch.nn.Softmax(1), "criterion": torch.nn.NLLLoss}
    net = make_net(**softmax).fit(X, y, sensitive_features=s)
    model, criterion = train_by_hand(X, y, s)
    torch.testing.assert_close(net.criterion_.multipliers, criterion.multipliers)
    expected = model.layer(torch.tensor(X)).softmax(1).detach().numpy()
    assert net.predict_proba(X) == pytest.approx(expected, abs=1e-4)


def test_predictions_are_probabilities_and_need_no_sensitive_values(data):
    X, y, s = data
    net = make_net().fit(X, y, sensitive_features=s)
    expected = net.module_.layer(torch.tensor(X)).softmax(1).detach().numpy()
    assert net.predict_proba(X) == pytest.approx(expected, abs=1e-6)
    assert np.array_equal(net.predict(X), expected.argmax(1))


def test_one_logit_for_two_classes(data):
    X, y, s = data
    net = make_net(
        FairNeuralNetBinaryClassifier,
        module__n_outputs=1,
        criterion=torch.nn.BCEWithLogitsLoss,
    ).fit(X, y.astype(np.float32), sensitive_features=s)
    chosen = net.predict_proba(X)[:, 1]
    expected = net.module_.layer(torch.tensor(X)).sigmoid().detach().numpy()[:, 0]
    assert chosen == pytest.approx(expected, abs=1e-6)
    assert net.criterion_.multipliers.abs().max() > 0.1


def test_history_has_the_numbers_of_each_epoch(data, capsys):
    X, y, s = data
    net = make_net(verbose=1).fit(X, y, sensitive_features=s)
    numbers = net.history[:, "fairness"]
    assert len(numbers) == 3
    for k, name in enumerate(net.criterion_.constraint_names):
        found = numbers[-1][f"multiplier/{name}"]
        assert found == pytest.approx(float(net.criterion_.multipliers[k]))
    assert "train_loss" in (table := capsys.readouterr().out)
    assert "multiplier" not in table


def test_scores_on_training_rows(data):
    X, y, s = data
    for caching in (True, False):
        scoring = EpochScoring("accuracy", name="seen", on_train=True, use_caching=caching)
        net = make_net(callbacks=[scoring]).fit(X, y, sensitive_features=s)
        assert 0.5 < net.history[-1, "seen"] <= 1


def test_partial_fit_goes_on(data):
    X, y, s = data
    net = make_net(max_epochs=1)
    for _ in range(3):
        net.partial_fit(X, y, sensitive_features=s)
    assert_same(net, *train_by_hand(X, y, s))
    net.fit(X, y, sensitive_features=s)  # which starts anew
    assert_same(net, *train_by_hand(X, y, s, epochs=1))


def test_saved_parameters_go_on_in_another_net(data, tmp_path):
    X, y, s = data
    files = {f"f_{part}": tmp_path / part for part in ("params", "optimizer", "criterion")}
    make_net(max_epochs=1).fit(X, y, sensitive_features=s).save_params(**files)
    net = make_net(max_epochs=2).initialize()
    net.load_params(**files)
    net.partial_fit(X, y, sensitive_features=s)
    assert_same(net, *train_by_hand(X, y, s))


def test_parameters_of_other_data_are_refused(data, tmp_path):
    X, y, s = data
    make_net().fit(X, y, sensitive_features=s).save_params(f_criterion=tmp_path / "criterion")
    net = make_net().initialize()
    net.load_params(f_criterion=tmp_path / "criterion")
    with pytest.raises(ValueError, match="these multipliers were trained on another problem"):
        net.partial_fit(X[:100], y[:100], sensitive_features=s[:100])


def test_copies(data):
    X, y, s = data
    net = make_net().fit(X, y, sensitive_features=s)
    copied = pickle.loads(pickle.dumps(net))  # noqa: S301 - our own
    assert np.array_equal(copied.predict_proba(X), net.predict_proba(X))
    assert torch.equal(copied.criterion_.multipliers, net.criterion_.multipliers)
    anew = clone(net).fit(X, y, sensitive_features=s)
    assert_same(anew, *train_by_hand(X, y, s))
    assert anew.get_params()["criterion__fairness_measure"] == "equalized_odds"
    assert not [name for name, value in vars(net).items() if value is X or value is s]


def test_a_grid_search_without_metadata_routing(data):
    X, y, s = data
    grid = {"criterion__fairness_rate": [0.0, RATE], "lr": [LEARNING_RATE]}
    folds = [(np.arange(96), np.arange(96, 192)), (np.arange(96, 192), np.arange(96))]
    search = GridSearchCV(make_net(), grid, scoring="accuracy", cv=folds, error_score="raise")
    search.fit(X, y, sensitive_features=s)
    for k, rate in enumerate(grid["criterion__fairness_rate"]):
        for fold, (train, test) in enumerate(folds):
            criterion = CrossEntropyLoss(y[train], s[train], "equalized_odds", fairness_rate=rate)
            model, _ = train_by_hand(X[train], y[train], s[train], criterion=criterion)
            right = model(torch.tensor(X[test])).argmax(1).numpy() == y[test]
            found = search.cv_results_[f"split{fold}_test_score"][k]
            assert found == pytest.approx(right.mean())


def test_a_grid_search_by_fairness_with_metadata_routing(data):
    X, y, s = data
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_net(
                max_epochs=20, criterion__fairness_measure="demographic_parity"
            ).set_fit_request(sensitive_features=True),
            {"criterion__epsilon": [0.0, 1.0]},  # 1 constrains nothing
            scoring=make_fairness_scorer("demographic_parity"),
            cv=2,
            error_score="raise",
        ).fit(X, y, sensitive_features=s)
    assert search.best_params_ == {"criterion__epsilon": 0.0}
    assert isinstance(search.best_estimator_.criterion_, FairLoss)


def test_sensitive_values_are_required(data):
    X, y, s = data
    with pytest.raises(ValueError, match=r"sensitive_features: required to fit"):
        make_net().fit(X, y)
    with pytest.raises(ValueError, match=r"expected one value per row of X \(192\), got 191"):
        make_net().fit(X, y, sensitive_features=s[1:])


def test_a_measure_is_required(data):
    X, y, s = data
    net = FairNeuralNetClassifier(Linear, criterion=torch.nn.CrossEntropyLoss, verbose=0)
    with pytest.raises(ValueError, match="fairness_measure: required"):
        net.fit(X, y, sensitive_features=s)


def test_a_split_that_hides_the_rows_is_refused(data):
    X, y, s = data

    def sliced(dataset, y):  # noqa: ARG001 - skorch's arguments
        return Dataset(dataset.X[:50], dataset.y[:50]), None

    with pytest.raises(ValueError, match=r"train_split: expected .* torch Subset of it"):
        make_net(train_split=sliced).fit(X, y, sensitive_features=s)


def test_a_subset_of_a_subset_keeps_its_rows(data):
    X, y, s = data

    def twice(dataset, y):  # noqa: ARG001 - skorch's arguments
        return Subset(Subset(dataset, range(20, 180)), range(0, 160, 2)), None

    net = make_net(train_split=twice).fit(X, y, sensitive_features=s)
    rows = np.arange(20, 180, 2)
    assert_same(net, *train_by_hand(X[rows], y[rows], s[rows]))


def test_the_first_of_a_tuple_counts(data):
    X, y, s = data
    wrap = _Wrap("tuple")
    net = make_net(module__wrap=wrap).fit(X, y, sensitive_features=s)
    assert_same(net, *train_by_hand(X, y, s))
    assert net.predict_proba(X).shape == (192, 2)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("dict", TypeError, "module: expected a tensor of scores, .* got dict"),
        ("wide", ValueError, r"target: expected labels of the shape"),
    ],
)
def test_other_outputs_are_refused(data, kind, error, message):
    X, y, s = data
    with pytest.raises(error, match=message):
        make_net(module__wrap=_Wrap(kind)).fit(X, y, sensitive_features=s)


class _Wrap:
    """An output of another form."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, logits):
        forms = {
            "tuple": (logits, logits * 0),
            "dict": {"logits": logits},
            "wide": logits[:, None],
        }
        return forms[self.kind]
