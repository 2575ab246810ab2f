"""Kernel layers in one and in three variables."""

import copy

import numpy as np
import pal
import pytest
import torch
from pal.torch import KernelLayer

x, y, z = pal.reals("x", "y", "z")
GAP = x.between(0, 1) | x.between(2, 5)
HALL = x.between(0, 4) & y.between(0, 2) & z.between(0, 3) & (x + y + 2 * z <= 9) & ~(x.between(1, 2) & (y >= 1))


def outputs(layer, *shape, seed=0, scale=0.5):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, layer.num_params, dtype=torch.float64, generator=generator)


def test_densities_on_a_line_integrate_to_one():
    layer = KernelLayer(GAP, components=3)
    p = layer(outputs(layer, 4))
    # Two intervals with the rule of Gauss and Legendre on many pieces: the density is a polynomial between breakpoints.
    nodes, weights = np.polynomial.legendre.leggauss(5)
    total = 0
    for low, high in ((0, 1), (2, 5)):
        edges = np.linspace(low, high, 2001)
        half = np.diff(edges) / 2
        at = (edges[:-1] + half)[:, None] + half[:, None] * nodes
        inside = p.log_prob(torch.from_numpy(np.clip(at, low, high)).reshape(-1, 1, 1)).exp().reshape(*at.shape, 4)
        total = total + (inside * torch.from_numpy(half[:, None] * weights).unsqueeze(-1)).sum((0, 1))
    assert torch.allclose(total, torch.ones(4, dtype=torch.float64), atol=1e-8)
    assert p.log_prob(torch.tensor([[1.5]])).isneginf().all()
    assert 1 - 1e-12 < float((p.probability(x <= 1) + p.probability(x >= 2))[0]) < 1 + 1e-12


@pytest.mark.parametrize(("region", "inside"), [(GAP, [2.4]), (HALL, [0.7, 0.4, 1.1])])
def test_gradients_are_those_of_differences(region, inside):
    layer = KernelLayer(region, components=2)
    params = outputs(layer, 2).requires_grad_()
    point = torch.tensor(inside, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda params, point: layer(params).log_prob(point), (params, point), atol=1e-6)
    assert torch.autograd.gradcheck(lambda params: layer(params).probability(x <= 2), (params,), atol=1e-6)


def test_space_has_probabilities_conditions_samples_and_means():
    layer = KernelLayer(HALL, components=2)
    p = layer(outputs(layer, 2, seed=3))
    left, right = p.probability(x <= 1), p.probability(x >= 1)
    assert torch.allclose(left + right, torch.ones(2, dtype=torch.float64), atol=1e-12)
    samples = p.sample((400,), generator=torch.Generator().manual_seed(1))
    assert samples.shape == (400, 2, 3) and bool(p.support.check(samples).all())
    share = (samples[..., 0] <= 1).double().mean(0)
    assert (share - left).abs().max() < 0.1
    deviation = p.variance.sqrt()
    assert ((samples.mean(0) - p.mean).abs() < 4.5 * deviation / 20).all()
    assert p.covariance_matrix.shape == (2, 3, 3)
    given = p.condition(x <= 1)
    at = torch.tensor([0.5, 0.5, 0.5], dtype=torch.float64)
    assert torch.allclose(given.log_prob(at), p.log_prob(at) - left.log(), atol=1e-12)
    assert bool((given.sample((50,))[..., 0] <= 1).all())
    assert torch.allclose(p.expectation(x + y), p.mean[:, 0] + p.mean[:, 1], atol=1e-9)
    assert copy.deepcopy(layer)(p.params).log_prob(at).equal(p.log_prob(at))


@pytest.mark.parametrize("region", [GAP, HALL])
def test_what_is_missing_is_said(region):
    layer = KernelLayer(region, components=2)
    p = layer(torch.zeros(layer.num_params))
    for question in (lambda: p.marginal("x"), lambda: p.mode, lambda: p.entropy()):
        with pytest.raises(pal.Error, match="for two variables"):
            question()


def test_rows_have_regions_of_their_own():
    box = x.between(0, 1) & y.between(0, 1) & z.between(0, 1)
    layer = KernelLayer(box, components=2)
    limits = [1, 2]
    budgets = pal.RegionBatch([pal.Region(box & (x + y + z <= limit)) for limit in limits])
    compiled = layer.compile_regions(budgets)
    assert np.allclose(compiled.volume, [1 / 6, 5 / 6])
    params = outputs(layer, 2)
    p = layer(params, compiled)
    samples = p.sample((100,))
    assert bool((samples.sum(-1) <= torch.tensor(limits)).all()) and bool(p.support.check(samples).all())
    at = torch.tensor([0.2, 0.3, 0.1], dtype=torch.float64)
    whole = layer(params)
    for row, limit in enumerate(limits):
        # Restricted to its own region, up to the uniform part, which is 1 / volume of that region.
        alone = KernelLayer(box & (x + y + z <= limit), components=2)(params[row])
        assert torch.allclose(alone.log_prob(at), p.log_prob(at)[row], atol=1e-12)
    assert (p.log_prob(at) > whole.log_prob(at)).all()
    lines = pal.RegionBatch([pal.Region(x.between(0, 1)), pal.Region(x.between(2, 4))])
    line = KernelLayer(GAP, components=1)
    assert line(torch.zeros(2, line.num_params), lines).sample((20,)).squeeze(-1).max(0).values[0] <= 1
