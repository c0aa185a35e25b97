"""Fine-tunes a language model with LoRA so that it treats groups alike: one loss is swapped.

    python examples/lora.py

Only the adapters and the classifier are trained. The model is tiny and built from its
configuration, so nothing is downloaded. With a real one, replace `make_model` by
``AutoModelForSequenceClassification.from_pretrained(...)`` and the token ids by a tokenizer's.
"""

from __future__ import annotations

import argparse

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

from fairgrad import fairness_levels
from fairgrad.torch import CrossEntropyLoss

MEASURE = "demographic_parity"
WORDS = 60
"""Size of the vocabulary: 20 words of the label 1, 20 of the label 0, 10 of each group."""


def make_texts(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids (n, 12), labels and groups: one group's texts have more words of the label 1."""
    generator = torch.Generator().manual_seed(seed)
    s = torch.randint(0, 2, (n,), generator=generator)
    y = (torch.rand(n, generator=generator) < 0.4 + 0.2 * s).long()
    is_positive = torch.rand(n, 9, generator=generator) < (0.25 + 0.35 * y + 0.1 * s)[:, None]
    word = torch.randint(0, 20, (n, 9), generator=generator)
    of_group = torch.randint(40, 50, (n, 3), generator=generator) + 10 * s[:, None]
    return torch.cat([torch.where(is_positive, word, word + 20), of_group], dim=1), y, s


def make_model() -> nn.Module:
    """A tiny encoder with LoRA adapters in its attention."""
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    model = BertForSequenceClassification(config)
    adapters = LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=8, target_modules=["query", "value"])
    return get_peft_model(model, adapters)


def train(data: tuple[Tensor, ...], epochs: int, *, fair: bool) -> nn.Module:
    """A plain loop with Adam; the loss decides whether the model becomes fair."""
    x, y, s = data
    torch.manual_seed(0)
    model = make_model().train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=3e-3)
    criterion = CrossEntropyLoss(y, s, MEASURE) if fair else nn.CrossEntropyLoss()
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), 64):
            rows = order[start : start + 64]
            logits = model(input_ids=x[rows]).logits
            given = (logits, y[rows], s[rows]) if fair else (logits, y[rows])
            optimizer.zero_grad()
            criterion(*given).backward()
            optimizer.step()
    return model.eval()


def main() -> None:
    """Trains with both losses, and prints how accurate and how fair the models are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    data, (x, y, s) = make_texts(options.rows, 0), make_texts(2_000, 1)
    for name in ("plain", "fair"):
        model = train(data, options.epochs, fair=name == "fair")
        with torch.no_grad():
            predicted = model(input_ids=x).logits.argmax(1)
        accuracy = (predicted == y).float().mean()
        unfairness = fairness_levels(y, predicted, s, MEASURE).unfairness
        print(f"{name}: accuracy {accuracy:.3f}, unfairness {unfairness:.3f}")


if __name__ == "__main__":
    main()
