"""A tiny BERT on invented sentences, with random weights: nothing is downloaded."""

from types import SimpleNamespace

import torch
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

from fairgrad.torch import CrossEntropyLoss

LEARNING_RATE = 0.5
IGNORED = -100


def toy(n=40):
    generator = torch.Generator().manual_seed(1)
    s = torch.randint(0, 2, (n,), generator=generator)
    y = torch.randint(0, 2, (n,), generator=generator)
    word = torch.where(torch.rand(n, generator=generator) < 0.8, y, 1 - y)
    ids = torch.stack([torch.full((n,), 1), 2 + word, 4 + s, torch.full((n,), 6)], 1)
    return SimpleNamespace(ids=ids, y=y, s=s)


def rows_of(people, column="sex"):
    return [
        {"input_ids": ids, "labels": label, column: sensitive}
        for ids, label, sensitive in zip(
            people.ids.tolist(), people.y.tolist(), people.s.tolist(), strict=True
        )
    ]


def make_model(*, dropout=0.0, **settings):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=8,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
        initializer_range=0.5,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **settings,
    )
    return BertForSequenceClassification(config)


def make_criterion(people, **settings):
    kept = people.y != IGNORED
    return CrossEntropyLoss(
        people.y[kept], people.s[kept], "equalized_odds", **{"fairness_rate": 0.5, **settings}
    )


def arguments(folder, **settings):
    defaults = {
        "num_train_epochs": 2,
        "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 16,
        "train_sampling_strategy": "sequential",
        "optim": "sgd",
        "learning_rate": LEARNING_RATE,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
        "save_strategy": "no",
        "logging_steps": 1,
    }
    return TrainingArguments(str(folder), **{**defaults, **settings})


def train_by_hand(people, micro_batch=8, accumulated=1, epochs=2):
    """The same training without Trainer: each micro-batch steps the multipliers.

    The gradient is that of the mean over the labelled rows of `accumulated` micro-batches.
    """
    model, criterion = make_model().train(), make_criterion(people, process_group=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for _ in range(epochs):
        for rows in torch.arange(len(people.y)).split(micro_batch * accumulated):
            optimizer.zero_grad()
            for part in rows.split(micro_batch):
                loss = criterion(model(people.ids[part]).logits, people.y[part], people.s[part])
                items = (people.y[part] != IGNORED).sum(), (people.y[rows] != IGNORED).sum()
                (loss * items[0] / items[1]).backward()
            optimizer.step()
    return model, criterion
