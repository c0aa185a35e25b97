"""Hugging Face's trainer: the training of a plain loop, and what belongs to a trainer."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="the extra 'transformers' is needed")
pytest.importorskip("accelerate", reason="the extra 'transformers' is needed")
import tiny
from transformers import EvalPrediction, Trainer

from fairgrad import On, fairness_levels
from fairgrad.torch import CrossEntropyLoss
from fairgrad.transformers import FairTrainer, fair_metrics


@pytest.fixture
def people():
    return tiny.toy()


def make_trainer(people, folder, *, model=None, criterion=None, args=None, **settings):
    rows = tiny.rows_of(people)
    defaults = {"train_dataset": rows, "eval_dataset": rows, "sensitive_columns": "sex"}
    if "model_init" not in settings:
        defaults["model"] = model or tiny.make_model()
    return FairTrainer(
        args=args or tiny.arguments(folder),
        criterion=criterion or tiny.make_criterion(people),
        **{**defaults, **settings},
    )


def assert_same_weights(model, other):
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


# 40 rows: equal micro-batches; a short last one; a short last step
@pytest.mark.parametrize(("micro_batch", "accumulated"), [(8, 1), (7, 1), (7, 3), (16, 2)])
def test_training_is_that_of_a_plain_loop(people, tmp_path, micro_batch, accumulated):
    args = tiny.arguments(
        tmp_path,
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=accumulated,
    )
    trainer = make_trainer(people, tmp_path, args=args)
    trainer.train()
    model, criterion = tiny.train_by_hand(people, micro_batch, accumulated)
    torch.testing.assert_close(trainer.criterion.multipliers, criterion.multipliers)
    assert criterion.multipliers.abs().max() > 0.1
    assert_same_weights(trainer.model, model)


def test_rows_without_a_label_count_nowhere(people, tmp_path):
    people.y[[0, 1, 2, 9, 30]] = tiny.IGNORED
    args = tiny.arguments(tmp_path, gradient_accumulation_steps=3)
    trainer = make_trainer(people, tmp_path, args=args)
    trainer.train()
    model, criterion = tiny.train_by_hand(people, 8, 3)
    torch.testing.assert_close(trainer.criterion.multipliers, criterion.multipliers)
    assert_same_weights(trainer.model, model)
    kept = people.y != tiny.IGNORED
    right = (model.eval()(people.ids).logits.argmax(1) == people.y)[kept]
    assert trainer.evaluate()["eval_accuracy"] == pytest.approx(float(right.float().mean()))


def test_the_model_sees_neither_sensitive_values_nor_labels(people, tmp_path):
    seen = set()
    model = tiny.make_model()
    model.register_forward_pre_hook(
        lambda _, __, inputs: seen.update(inputs), with_kwargs=True
    )  # BERT itself would pass over what it does not know
    trainer = make_trainer(people, tmp_path, model=model)
    trainer.train()
    trainer.evaluate()
    trainer.predict([{"input_ids": [1, 2, 4, 6], "sex": 0}] * 3)
    assert seen == {"input_ids"}


@pytest.mark.parametrize("keep", [True, False])
def test_the_column_is_there_whether_or_not_unused_ones_are_removed(people, tmp_path, keep):
    args = tiny.arguments(tmp_path, remove_unused_columns=keep, num_train_epochs=1)
    trainer = make_trainer(people, tmp_path, args=args)
    trainer.train()
    assert trainer.criterion.multipliers.abs().max() > 0


def test_evaluation_gives_plain_loss_accuracy_and_unfairness(people, tmp_path):
    trainer = make_trainer(people, tmp_path)
    trainer.train()
    before = trainer.criterion.multipliers
    metrics = trainer.evaluate()
    with torch.no_grad():
        logits = trainer.model.eval()(people.ids).logits
    plain = torch.nn.functional.cross_entropy(logits, people.y)
    predicted = logits.argmax(1)
    expected = fairness_levels(people.y, predicted, people.s, "equalized_odds").unfairness
    assert metrics["eval_accuracy"] == pytest.approx(float((predicted == people.y).float().mean()))
    assert metrics["eval_unfairness"] == pytest.approx(expected)
    assert metrics["eval_loss"] == pytest.approx(float(plain), abs=1e-5)
    assert torch.equal(trainer.criterion.multipliers, before)


def test_the_users_metrics_see_what_they_would_see_without_fairness(people, tmp_path):
    def own(prediction):
        logits, labels = prediction.predictions, prediction.label_ids
        assert logits.shape == (40, 2)
        assert np.array_equal(labels, people.y.numpy())
        return {"positive": float((logits.argmax(1) == 1).mean())}

    metrics = make_trainer(people, tmp_path, compute_metrics=own).evaluate()
    assert {"eval_positive", "eval_accuracy", "eval_unfairness"} <= metrics.keys()


def test_the_most_accurate_checkpoint_within_the_tolerance_is_found(people, tmp_path):
    args = tiny.arguments(
        tmp_path,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="fair_accuracy",
        num_train_epochs=3,
    )
    trainer = make_trainer(people, tmp_path, args=args)
    trainer.train()
    found = [log["eval_fair_accuracy"] for log in trainer.state.log_history if "eval_loss" in log]
    assert trainer.state.best_metric == max(found)


def test_a_constant_is_no_better_than_a_model_within_the_tolerance():
    y, s = np.arange(400) % 2, np.arange(400) // 2 % 2
    metrics = fair_metrics(CrossEntropyLoss(y, s, "equalized_odds"), tolerance=0.1)

    def fair_accuracy(wrong):
        predicted = np.where(wrong, 1 - y, y)
        logits = np.eye(2)[predicted]
        return metrics(EvalPrediction(logits, (y, s)))["fair_accuracy"]

    rows = np.arange(400)
    accurate = fair_accuracy(rows < 40)
    assert accurate == 0.9
    assert fair_accuracy(y == 0) == 0.5
    assert 0 > fair_accuracy((s == 0) & (rows < 200)) > fair_accuracy(s == 0)


def test_what_is_logged_are_the_numbers_of_the_loss(people, tmp_path):
    trainer = make_trainer(people, tmp_path)
    trainer.train()
    last = [log for log in trainer.state.log_history if "loss" in log][-1]
    for k, name in enumerate(trainer.criterion.constraint_names):
        found = last[f"fairness/multiplier/{name}"]
        assert found == pytest.approx(float(trainer.criterion.multipliers[k]))
    assert 0 <= last["fairness/negative_share"] <= 1


def test_a_resumed_run_has_the_multipliers_of_an_uninterrupted_one(people, tmp_path):
    # shuffled rows, dropout and momentum: all that a checkpoint has to bring back
    settings = {
        "train_sampling_strategy": "random",
        "optim": "adamw_torch",
        "learning_rate": 0.01,
        "num_train_epochs": 4,
        "save_strategy": "steps",
        "save_steps": 7,
    }
    whole = make_trainer(
        people,
        tmp_path,
        args=tiny.arguments(tmp_path, **settings),
        model=tiny.make_model(dropout=0.2),
    )
    whole.train()
    resumed = make_trainer(
        people,
        tmp_path,
        args=tiny.arguments(tmp_path, **settings),
        model=tiny.make_model(dropout=0.2),
    )
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-7"))
    assert torch.equal(resumed.criterion.multipliers, whole.criterion.multipliers)
    assert_same_weights(resumed.model, whole.model)


def test_resuming_from_the_last_checkpoint_finds_its_multipliers(people, tmp_path):
    args = tiny.arguments(tmp_path, save_strategy="epoch")
    first = make_trainer(people, tmp_path, args=args)
    first.train()
    again = make_trainer(people, tmp_path, args=args)
    again.train(resume_from_checkpoint=True)  # nothing is left to train
    assert torch.equal(again.criterion.multipliers, first.criterion.multipliers)


def test_a_checkpoint_without_multipliers_is_refused(people, tmp_path):
    args = tiny.arguments(tmp_path, save_strategy="epoch", num_train_epochs=1)
    plain = [{key: row[key] for key in ("input_ids", "labels")} for row in tiny.rows_of(people)]
    Trainer(tiny.make_model(), args, train_dataset=plain).train()
    with pytest.raises(ValueError, match=r"checkpoint-5 has no fairness.safetensors"):
        make_trainer(people, tmp_path).train(resume_from_checkpoint=True)


def test_a_checkpoint_of_other_data_is_refused(people, tmp_path):
    args = tiny.arguments(tmp_path, save_strategy="epoch", num_train_epochs=1)
    make_trainer(people, tmp_path, args=args).train()
    others = tiny.make_criterion(tiny.toy(30))
    with pytest.raises(ValueError, match="these multipliers were trained on another problem"):
        make_trainer(people, tmp_path, criterion=others).train(resume_from_checkpoint=True)


def test_a_model_made_anew_starts_with_new_multipliers(people, tmp_path):
    def model_init():
        return tiny.make_model()

    trainer = make_trainer(people, tmp_path, model_init=model_init)
    trainer.train()
    first = trainer.criterion.multipliers
    trainer.train()
    assert torch.equal(trainer.criterion.multipliers, first)


def test_prediction_needs_no_sensitive_column(people, tmp_path):
    trainer = make_trainer(people, tmp_path)
    labelled = [{key: row[key] for key in ("input_ids", "labels")} for row in tiny.rows_of(people)]
    output = trainer.predict(labelled)
    assert output.predictions.shape == (40, 2)
    assert np.array_equal(output.label_ids, people.y.numpy())
    assert "test_accuracy" in output.metrics
    assert "test_unfairness" not in output.metrics
    unlabelled = trainer.predict([{"input_ids": row["input_ids"]} for row in labelled])
    assert np.array_equal(unlabelled.predictions, output.predictions)
    assert unlabelled.label_ids is None


def test_labels_come_back_alone_from_a_prediction_with_sensitive_values(people, tmp_path):
    output = make_trainer(people, tmp_path).predict(tiny.rows_of(people))
    assert np.array_equal(output.label_ids, people.y.numpy())
    assert "test_unfairness" in output.metrics


class Module(torch.nn.Module):
    """A model that is none of Hugging Face's; `wrap` makes its output of the logits."""

    def __init__(self, wrap):
        super().__init__()
        self.embedding = torch.nn.Embedding(8, 2)
        self.wrap = wrap

    def forward(self, input_ids):
        return self.wrap(self.embedding(input_ids).mean(1))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: logits,
        lambda logits: (logits, "other"),
        lambda logits: {"hidden": logits * 0, "logits": logits},
    ],
)
def test_logits_alone_first_or_named_are_found(people, tmp_path, wrap):
    model = Module(wrap)
    trainer = make_trainer(people, tmp_path, model=model)
    trainer.train()
    metrics = trainer.evaluate()
    right = model.embedding(people.ids).mean(1).argmax(1) == people.y
    assert metrics["eval_accuracy"] == pytest.approx(float(right.float().mean()))
    one = trainer.predict([{"input_ids": [1, 2, 4, 6]}])
    assert one.predictions.shape == (1, 2)


def test_a_bert_that_returns_tuples_is_trained_alike(people, tmp_path):
    trainer = make_trainer(people, tmp_path, model=tiny.make_model(return_dict=False))
    trainer.train()
    model, _ = tiny.train_by_hand(people)
    assert_same_weights(trainer.model, model)


@pytest.mark.parametrize(
    ("wrap", "error", "message"),
    [
        (lambda logits: {"scores": logits}, TypeError, r"with 'logits'; got .*\['scores'\]"),
        (lambda _: "text", TypeError, "model: expected a tensor of scores"),
        (lambda logits: logits[:, None], ValueError, r"target: expected labels of the shape"),
        (lambda logits: logits[:, 0], ValueError, "input: expected a column per class"),
    ],
)
def test_other_outputs_are_refused(people, tmp_path, wrap, error, message):
    trainer = make_trainer(people, tmp_path, model=Module(wrap))
    with pytest.raises(error, match=message):
        trainer.train()


def test_a_column_of_another_name_is_refused(people, tmp_path):
    misnamed = tiny.rows_of(people, column="gender")
    trainer = make_trainer(people, tmp_path, train_dataset=misnamed, eval_dataset=misnamed)
    before = [parameter.clone() for parameter in trainer.model.parameters()]
    with pytest.raises(ValueError, match=r"the batch has no column 'sex', only \['input_ids'"):
        trainer.train()
    assert all(map(torch.equal, trainer.model.parameters(), before))
    with pytest.raises(ValueError, match="the batch has no column 'sex'"):
        trainer.evaluate()


def test_a_column_of_text_is_refused(people, tmp_path):
    rows = [{**row, "sex": "FM"[row["sex"]]} for row in tiny.rows_of(people)]
    with pytest.raises(ValueError, match=r"the batch has no column 'sex'.* as integers"):
        make_trainer(people, tmp_path, train_dataset=rows).train()


def test_a_batch_without_labels_is_refused(people, tmp_path):
    rows = [{"input_ids": row["input_ids"], "sex": row["sex"]} for row in tiny.rows_of(people)]
    with pytest.raises(ValueError, match="inputs: expected labels as 'labels'"):
        make_trainer(people, tmp_path, train_dataset=rows).train()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor: not supported"),
        ({"batch_eval_metrics": True}, "batch_eval_metrics: not supported"),
        ({"eval_do_concat_batches": False}, "eval_do_concat_batches=False: not supported"),
        ({"label_names": ["start", "end"]}, r"expected one label per example, got \['start'"),
    ],
)
def test_settings_that_have_no_place_are_refused(people, tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        make_trainer(people, tmp_path, args=tiny.arguments(tmp_path, **settings))


def test_losses_that_have_no_place_are_refused(people, tmp_path):
    with pytest.raises(ValueError, match="compute_loss_func: not supported"):
        make_trainer(people, tmp_path, compute_loss_func=torch.nn.CrossEntropyLoss())
    with pytest.raises(TypeError, match=r"expected a loss of fairgrad\.torch, got CrossEntropy"):
        make_trainer(people, tmp_path, criterion=torch.nn.CrossEntropyLoss())
    summed = tiny.make_criterion(people, reduction="sum")
    with pytest.raises(ValueError, match="expected reduction='mean', got 'sum'"):
        make_trainer(people, tmp_path, criterion=summed)


def test_two_sensitive_columns(people, tmp_path):
    age = torch.arange(40) % 3
    rows = [{**row, "age": int(a)} for row, a in zip(tiny.rows_of(people), age, strict=True)]
    measure = [On("sex", "equalized_odds"), On("age", "accuracy_parity")]
    columns = {"sex": people.s, "age": age}
    trainer = make_trainer(
        people,
        tmp_path,
        criterion=CrossEntropyLoss(people.y, columns, measure, fairness_rate=0.5),
        sensitive_columns=("sex", "age"),
        train_dataset=rows,
    )
    trainer.train()
    metrics = trainer.evaluate(rows)
    with torch.no_grad():
        predicted = trainer.model.eval()(people.ids).logits.argmax(1)
    expected = fairness_levels(people.y, predicted, columns, measure).unfairness
    assert metrics["eval_unfairness"] == pytest.approx(expected)
    assert {"age", "sex"} == set(trainer.criterion.groups.attributes)


def test_attributes_of_text_as_the_loss_encodes_them(people, tmp_path):
    columns = {"sex": np.array(["F", "M"])[people.s], "age": np.array(["old", "young"] * 20)}
    criterion = CrossEntropyLoss(people.y, columns, On("sex", "equalized_odds"))
    codes = criterion.groups.encode(columns)
    rows = [{**row, "sex": int(c)} for row, c in zip(tiny.rows_of(people), codes, strict=True)]
    trainer = make_trainer(people, tmp_path, criterion=criterion, train_dataset=rows)
    trainer.train()
    with torch.no_grad():
        predicted = trainer.model.eval()(people.ids).logits.argmax(1)
    expected = fairness_levels(people.y, predicted, columns["sex"], "equalized_odds").unfairness
    assert trainer.evaluate(rows)["eval_unfairness"] == pytest.approx(expected)


def test_training_that_diverges_is_stopped(people, tmp_path):
    with pytest.raises(FloatingPointError, match=r"training has diverged: the loss is nan"):
        make_trainer(people, tmp_path, args=tiny.arguments(tmp_path, learning_rate=1e30)).train()


def test_two_processes_are_as_one(tmp_path):
    worker = Path(__file__).with_name("transformers_worker.py")
    two_ranks = Path(__file__).parents[1] / "two_ranks.py"
    run = subprocess.run(
        [sys.executable, two_ranks, "fairgrad.transformers", worker, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert run.returncode == 0, run.stderr
