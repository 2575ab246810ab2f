"""Spline mixtures in four variables with so many knots that tensor operations give up: the core answers instead."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import SplineLayer

NAMES = pal.reals("a", "b", "c", "d")
a, b, c, d = NAMES
BOX = pal.all_of(name.between(0, 10) for name in NAMES)
BUDGET = BOX & (a + b + c + d <= 20) & ~(a.between(2, 4) & b.between(3, 6))
EVENT = (a + b <= 7) & (d >= 3)


@pytest.fixture(scope="module", name="with_form")
def layer_with_a_form():
    """A layer that tensor operations can still do, for comparison."""
    return SplineLayer(BUDGET, knots=3, components=3, head="values")


@pytest.fixture(name="layer")
def layer_without_a_form(with_form):
    """The same layer as if its form were too large."""
    layer = copy.deepcopy(with_form)
    del layer._buffers["form"]
    assert layer.normaliser.form is None and with_form.normaliser.form is not None
    return layer


def params(layer, rows=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(4)
    return torch.randn(rows, layer.num_params, generator=generator, dtype=dtype).requires_grad_()


def check_differences(value, at, gradient, count=8, h=1e-5):
    flat = at.detach().reshape(-1)
    for k in np.linspace(0, len(flat) - 1, count).astype(int):
        ends = []
        for step in (h, -h):
            moved = flat.clone()
            moved[k] += step
            ends.append(float(value(moved.reshape(at.shape)).detach()))
        assert float(gradient.reshape(-1)[k]) == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-6, rel=1e-4)


def test_probabilities_and_means_are_those_of_the_core_with_derivatives(layer):
    at = params(layer)
    p, rows = layer(at), at.detach().numpy()
    family = layer.family
    assert torch.allclose(p.probability(EVENT), torch.from_numpy(family.probability(EVENT, rows)), atol=1e-12)
    assert torch.allclose(p.mean, torch.from_numpy(family.mean(rows)), atol=1e-11)
    value = lambda at: layer(at).probability(EVENT).sum() + 0.1 * layer(at).mean.sum()
    (gradient,) = torch.autograd.grad(value(at), at)
    check_differences(value, at, gradient)


def test_derivatives_are_those_of_tensor_operations(layer, with_form):
    at = params(layer)
    weights = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)

    def value(layer):
        p = layer(at)
        given = p.condition(EVENT)
        numbers = [p.probability(EVENT), p.mean.sum(-1), p.covariance.sum((-1, -2)), given.mean[:, 2]]
        return [(number * weights).sum() for number in [*numbers, given.probability(c <= 5), p.expectation(a * d)]]

    for mine, exact in zip(value(layer), value(with_form)):
        assert torch.allclose(mine, exact, atol=1e-9)
        (one,), (two,) = (torch.autograd.grad(number, at, retain_graph=True) for number in (mine, exact))
        assert torch.allclose(one, two, atol=1e-9)


def test_fourteen_knots():
    layer = SplineLayer(BUDGET, knots=14, components=2)
    assert layer.normaliser.form is None, "the form is too large for tensor operations"
    outputs = torch.zeros(2, layer.num_params, dtype=torch.float64, requires_grad=True)
    p = layer(outputs)
    probability = p.probability(EVENT)
    want = layer.family.probability(EVENT, p.params.detach().numpy())
    assert torch.allclose(probability, torch.from_numpy(want), atol=1e-12)
    (gradient,) = torch.autograd.grad(probability.sum(), outputs)
    assert gradient.isfinite().all() and gradient.norm() > 0.01


def test_covariances_and_expectations(layer):
    p, rows = layer(params(layer, 1)), params(layer, 1).detach().numpy()
    assert torch.allclose(p.covariance, torch.from_numpy(layer.family.covariance(rows)), atol=1e-9)
    assert (p.variance > 0).all()
    want = layer.family.expectation(a * b + 2 * d - 1, rows)
    assert torch.allclose(p.expectation(a * b + 2 * d - 1), torch.from_numpy(want), atol=1e-9)


def test_conditions(layer):
    at = params(layer)
    given = layer(at).condition(EVENT)
    densities = layer.family.condition(EVENT, at.detach().numpy())
    torch.manual_seed(0)
    points = given.sample((5,))
    assert points.shape == (5, 3, 4) and given.support.check(points).all()
    for row, density in enumerate(densities):
        want = torch.from_numpy(density.log_prob(points[:, row].numpy()))
        assert torch.allclose(given.log_prob(points)[:, row], want, atol=1e-9)
    assert given.log_prob(torch.full((4,), 1.0)).isneginf().all()
    assert torch.allclose(given.probability(c <= 5)[0], torch.tensor(densities[0].probability(c <= 5)).double())
    assert torch.allclose(given.mean[1], torch.from_numpy(densities[1].mean()), atol=1e-9)
    value = lambda at: layer(at).condition(EVENT).log_prob(points[0]).sum()
    (gradient,) = torch.autograd.grad(value(at), at)
    check_differences(value, at, gradient)


def test_many_points_of_each_row(layer):
    at = params(layer)
    points = torch.from_numpy(pal.Region(BUDGET).sample(6, seed=2)).reshape(2, 3, 4)
    logs = layer(at).log_prob(points)
    want = layer.family.log_prob(at.detach().numpy(), points.numpy())
    assert torch.allclose(logs, torch.from_numpy(want), atol=1e-9) and logs.requires_grad


def test_single_precision_and_copies(layer):
    at = params(layer, dtype=torch.float32)
    p = layer(at)
    p.probability(EVENT).sum().backward()
    assert at.grad.isfinite().all() and p.probability(EVENT).dtype == torch.float32
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(again(at).probability(EVENT), p.probability(EVENT))


def test_what_tensor_operations_alone_can_do_is_refused(layer):
    p = layer(params(layer, 1))
    assert not p.has_rsample
    with pytest.raises(NotImplementedError, match="too large; fewer knots need less"):
        p.rsample()


def test_conditioned_samples_follow_the_marginals():
    # Few samples of each of many equal densities go row by row; they follow the same law as many of one.
    x, y = pal.reals("x", "y")
    room = x.between(0, 4) & y.between(0, 3) & (x + y <= 6) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2))
    from pal.torch import HistogramLayer, SumOfSquaresLayer

    for layer in (
        SplineLayer(room, knots=8, components=3, head="values"),
        SumOfSquaresLayer(room, degree=3, components=2),
        HistogramLayer(room, bins=6, components=2),
    ):
        one = torch.randn(layer.num_params, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        torch.manual_seed(2)
        given = layer(one.expand(3000, -1)).condition((2 * x >= 1) & (x + 2 * y <= 7))
        points = given.sample().numpy()
        density = given[0].densities()[0]
        for name, column in (("x", points[:, 0]), ("y", points[:, 1])):
            levels = np.sort(density.marginal(name).cdf(column))
            assert np.abs(levels - (np.arange(3000) + 0.5) / 3000).max() < 1.95 / 3000**0.5
