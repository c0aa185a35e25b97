"""What each process does; torchrun starts two of it."""

import json
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from fairgrad.datasets import load
from fairgrad.torch import CrossEntropyLoss

distributed.init_process_group("gloo")
rank, size = distributed.get_rank(), distributed.get_world_size()
torch.set_num_threads(1)

train, _, _ = load("german").split(seed=10)
x_train, y_train, s_train = map(torch.as_tensor, train)
mine = slice(rank, None, size)  # every second row is this process's shard

torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(x_train.shape[1], 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = CrossEntropyLoss(y_train[mine], s_train[mine], "accuracy_parity", sharded=True)

steps = []
for epoch in range(8):
    order = torch.randperm(len(x_train), generator=torch.Generator().manual_seed(epoch))
    for batch in order.split(100):
        rows = batch[mine]  # each process takes its half of the batch
        optimizer.zero_grad()
        criterion(model(x_train[rows]), y_train[rows], s_train[rows]).backward()
        optimizer.step()
        steps.append(criterion.multipliers.tolist())

Path(sys.argv[1], f"rank{rank}.json").write_text(json.dumps(steps), encoding="utf-8")
del model  # before the group: the last of both to go must be the group, or PyTorch can block
distributed.destroy_process_group()
