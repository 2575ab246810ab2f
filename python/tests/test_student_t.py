"""The head against the t distribution of scipy, whose densities its components have where nothing cuts them off."""

import copy
import pickle

import pal
import pytest
import torch
from pal.torch import SplineLayer, StudentTHead, SumOfSquaresLayer
from scipy import stats


def outputs(location, scale, tail, bins):
    """Outputs of a network for a location, a scale and a tail, all in bins."""
    inverse_softplus = lambda y: torch.log(torch.expm1(torch.tensor(y, dtype=torch.float64)))
    place = torch.tensor(location * 6 / bins, dtype=torch.float64)
    return torch.stack([place, inverse_softplus(scale - 0.35), inverse_softplus(tail - 0.6)])


@pytest.mark.parametrize("tail", [1.5, 2.5, 6.0])
def test_a_component_is_a_truncated_t_distribution(tail):
    (x,) = pal.reals("x")
    layer = SplineLayer(x.between(0, 20) & ~x.between(12, 13), knots=81, components=1)
    params = StudentTHead(layer)(torch.cat([torch.tensor([0.3]).double(), outputs(9.2 * 4, 2 * 4, tail, 80)]))
    degrees = 2 * tail - 1
    t = stats.t(degrees, loc=9.2, scale=2 * (tail / degrees) ** 0.5)
    mass = t.cdf(12) - t.cdf(0) + t.cdf(20) - t.cdf(13)
    points = torch.tensor([[0.1], [3.0], [9.2], [11.9], [13.3], [19.5]], dtype=torch.float64)
    expected = torch.from_numpy(t.logpdf(points[:, 0].numpy())) - torch.tensor(mass).log()
    torch.testing.assert_close(layer(params).log_prob(points), expected, rtol=0, atol=2e-5)


def test_gradients_and_shapes():
    x, y = pal.reals("x", "y")
    layer = SplineLayer(x.between(0, 4) & y.between(0, 2) & ((x <= 1) | (y <= 1)), knots=6, components=2)
    head = StudentTHead(layer)
    raw = torch.randn(2, 3, head.num_params, dtype=torch.float64, requires_grad=True)
    assert head(raw).shape == (2, 3, layer.num_params)
    at = torch.tensor([0.5, 0.7], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda raw: layer(head(raw)).log_prob(at), raw)
    assert head(raw.float()).dtype == torch.float32
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        assert torch.equal(other(raw), head(raw))


def test_axes_with_other_numbers_of_knots():
    x, y = pal.reals("x", "y")
    room = x.between(0, 8) & y.between(0, 3)
    equal = SplineLayer(room, knots=[[0, 2, 4, 6, 8], [0, "3/4", "3/2", "9/4", 3]], components=1)
    other = SplineLayer(room, knots=[[0, 2, 4, 6, 8], [0, 1, 2, 3]], components=1)
    logit = torch.zeros(1, dtype=torch.float64)
    first = outputs(1.5, 1.0, 2.0, 4)
    same = StudentTHead(equal)(torch.cat([logit, first, first])).split([1, 10, 10])
    assert torch.equal(same[1], same[2])
    mixed = StudentTHead(other)(torch.cat([logit, first, outputs(0.5, 1.0, 2.0, 3)])).split([1, 10, 8])
    assert torch.equal(mixed[1], same[1])
    # Shifted by one knot.
    torch.testing.assert_close(mixed[2].reshape(2, 4), same[1].reshape(2, 5)[:, 1:], rtol=1e-12, atol=0)


def test_extreme_outputs_give_numbers():
    x, y = pal.reals("x", "y")
    layer = SplineLayer(x.between(0, 4) & y.between(0, 4) & ~((x > 1) & (y > 1)), knots=9, components=2)
    head = StudentTHead(layer)
    for value in (-1e4, -30.0, 30.0, 1e4):
        for at in range(1, 7):
            raw = torch.zeros(2, 7)
            raw[:, at] = value
            raw = raw.flatten().requires_grad_()
            loss = layer(head(raw)).log_prob(torch.tensor([0.5, 0.5]))
            loss.backward()
            assert loss.isfinite() and raw.grad.isfinite().all(), (value, at)


def test_the_start_is_at_the_points():
    x, y = pal.reals("x", "y")
    layer = SplineLayer(x.between(0, 10) & y.between(0, 10), knots=21, components=4)
    head = StudentTHead(layer)
    points = torch.tensor([[2.0, 3.0]]) + 0.2 * torch.randn(100, 2, generator=torch.Generator().manual_seed(1))
    p = layer(head(head.start(points, torch.Generator().manual_seed(2))))
    # A uniform density has a hundredth everywhere.
    assert p.log_prob(points).mean() > torch.tensor(0.01).log() + 2


def test_other_layers_are_refused():
    (x,) = pal.reals("x")
    with pytest.raises(TypeError, match="SplineLayer, not for SumOfSquaresLayer"):
        StudentTHead(SumOfSquaresLayer(x.between(0, 1)))
