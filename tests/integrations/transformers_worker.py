"""What each of two processes does; started by two_ranks.py from test_transformers.py.

The batches of the two processes, joined, are those of one process. Multipliers and weights must be
those of a plain loop over the joined batches, and an evaluation that of all rows.
"""

import os
import sys
import warnings

import torch
from tiny import arguments, make_criterion, make_model, rows_of, toy, train_by_hand
from torch import distributed

from fairgrad.transformers import FairTrainer

warnings.simplefilter("error")


def main():
    people = toy(40)  # the last step of an epoch has 8 rows where the others have 16
    criterion, model = make_criterion(people), make_model()  # before the processes are joined
    args = arguments(
        sys.argv[1],
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        ddp_backend="gloo",
    )
    rows = rows_of(people)
    trainer = FairTrainer(
        model,
        args,
        train_dataset=rows,
        eval_dataset=rows,
        criterion=criterion,
        sensitive_columns="sex",
    )
    trainer.train()
    by_hand, judge = train_by_hand(people, micro_batch=8, accumulated=2)
    both = [torch.empty_like(criterion.multipliers) for _ in range(2)]
    distributed.all_gather(both, criterion.multipliers)
    assert torch.equal(*both)
    torch.testing.assert_close(criterion.multipliers, judge.multipliers)
    for ours, theirs in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)

    metrics = trainer.evaluate()
    with torch.no_grad():
        right = by_hand.eval()(people.ids).logits.argmax(1) == people.y
    assert abs(metrics["eval_accuracy"] - float(right.float().mean())) < 1e-6
    distributed.destroy_process_group()

    # Now, while the model lives: if it is the last to release the process group, it waits for a
    # thread of the backend that waits for Python's lock. Such threads can also block the exit.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
