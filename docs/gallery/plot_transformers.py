"""Train with Hugging Face
=======================

Use ``FairTrainer`` instead of ``Trainer``. It passes the sensitive column to the loss, but not to
the model.
"""

# %%
# The texts are made-up job applications: a pronoun and eight words about the person's work. Good
# words count equally for everybody. But in these records men were hired more often, so a plain
# model learns to use the pronoun.

import logging
import tempfile
import warnings

import altair as alt
import numpy as np
import pandas as pd
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    TrainingArguments,
    set_seed,
)

from fairgrad import fairness_levels
from fairgrad.torch import CrossEntropyLoss
from fairgrad.transformers import FairTrainer

warnings.filterwarnings("ignore", module="transformers|torch")
logging.getLogger("transformers").setLevel(logging.ERROR)

WORDS = ["[PAD]", "[CLS]", "she", "he", "careful", "skilled", "prompt", "late", "careless", "rude"]
rng = np.random.default_rng(0)


def applications(n):
    """Rows of token numbers, with labels and sex (0 is she)."""
    sex = rng.integers(2, size=n)
    words = rng.integers(4, 10, size=(n, 8))
    merit = (words < 7).sum(axis=1) - 4
    hired = (merit + 1.5 * (sex - 0.5) + rng.normal(size=n) > 0).astype(int)
    tokens = np.column_stack([np.ones(n, dtype=int), 2 + sex, words])
    return [
        {"input_ids": row.tolist(), "labels": int(y), "sex": int(s)}
        for row, y, s in zip(tokens, hired, sex, strict=True)
    ]


train, test = applications(3000), applications(1500)
print(" ".join(WORDS[token] for token in train[0]["input_ids"][1:]), "->", train[0]["labels"])

# %%
# ``FairTrainer`` takes two more arguments than ``Trainer``: the loss and the name of the sensitive
# column. With a rate of 0 the loss is the plain loss, for comparison.

y, s = ([row[name] for row in train] for name in ("labels", "sex"))


def fine_tuned(rate):
    """Trains a small network with this rate; returns its predictions on the test rows."""
    set_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(WORDS), intermediate_size=64, **size)
    with tempfile.TemporaryDirectory() as folder:
        trainer = FairTrainer(
            BertForSequenceClassification(config),
            TrainingArguments(
                folder,
                num_train_epochs=5,
                learning_rate=2e-3,
                per_device_train_batch_size=100,
                per_device_eval_batch_size=500,
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
                logging_strategy="no",
                save_strategy="no",
            ),
            train_dataset=train,
            eval_dataset=test,
            criterion=CrossEntropyLoss(
                y,
                s,
                "demographic_parity",
                fairness_rate=rate,
                proportional_rate=25 * rate,
                error_memory=0.9,
            ),
            sensitive_columns="sex",
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return trainer.predict(test).predictions.argmax(axis=1)


y_test, s_test = (np.array([row[name] for row in test]) for name in ("labels", "sex"))
results = []
for name, rate in {"plain": 0.0, "fair": 0.02}.items():
    predicted = fine_tuned(rate)
    for sex, pronoun in enumerate(("she", "he")):
        results.append(
            {
                "model": name,
                "pronoun": pronoun,
                "hired": predicted[s_test == sex].mean(),
                "accuracy": (predicted == y_test).mean(),
                "unfairness": fairness_levels(
                    y_test, predicted, s_test, "demographic_parity"
                ).unfairness,
            }
        )
results = pd.DataFrame(results)

# %%
# With the fair loss, women and men are hired about equally often. The accuracy falls, because the
# labels are the unfair decisions of the past.

alt.Chart(results).mark_bar().encode(
    y=alt.Y("pronoun:N", title=None, sort=["she", "he"]),
    x=alt.X("hired:Q", title="share hired (test rows)"),
    color=alt.Color("pronoun:N", legend=None, sort=["she", "he"]),
    row=alt.Row(
        "model:N",
        title=None,
        sort=["plain", "fair"],
        header=alt.Header(labelAngle=0, labelAlign="left"),
    ),
).properties(
    width=420,
    description="Share of applications hired by pronoun: far apart with the plain loss, about "
    "equal with the fair one.",
)

# %%

results.drop_duplicates("model")[["model", "accuracy", "unfairness"]].round(3)
