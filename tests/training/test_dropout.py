"""Dropout: the share, the scale, and one mask per stream."""

import pytest
import torch

from fairgrad.training.dropout import drop


def sources(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 0.2, 0.5, 0.97, 0.9999])
def test_as_many_are_dropped_as_asked_and_the_others_scaled(share):
    n = 400 * 501
    dropped = drop(torch.ones(1, 400, 501), share, sources(3))
    kept = dropped != 0
    deviation = (share * (1 - share) / n) ** 0.5
    assert kept.float().mean().item() == pytest.approx(1 - share, abs=4 * deviation + 2**-16)
    assert torch.allclose(dropped[kept], torch.tensor(1 / (1 - share)))


def test_neighbours_are_dropped_independently_of_each_other():
    """Four activations share one random integer: its quarters must not go together."""
    kept = (drop(torch.ones(1, 500, 400), 0.3, sources(5)) != 0).float().view(-1, 4)
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 4 / len(kept) ** 0.5


def test_members_of_a_stream_drop_the_same_units_and_streams_others():
    kept = drop(torch.ones(4, 9, 7), 0.5, sources(1, 2)) != 0
    assert (kept[0] == kept[1]).all()
    assert (kept[2] == kept[3]).all()
    assert (kept[0] != kept[2]).any()


def test_every_call_draws_anew_and_the_same_seed_the_same():
    a, own, again = torch.ones(1, 20, 20), sources(1), sources(1)
    first, second = drop(a, 0.5, own), drop(a, 0.5, own)
    assert (first != second).any()
    assert (drop(a, 0.5, again) == first).all()


def test_gradient_goes_through_what_is_kept():
    a = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    dropped = drop(a, 0.4, sources(8))
    (gradient,) = torch.autograd.grad(dropped.sum(), a)
    assert torch.equal(gradient, (dropped != 0).double() / 0.6)
