"""Parameters of zero: the uniform density of the region or close to it, where training can begin."""

import math

import numpy as np
import pytest

import pal

x, y, z = pal.reals("x", "y", "z")
REGIONS = {
    "intervals": x.between(-1, 2) & ~((x > 0) & (x < 1)),
    "corner": x.between(0, 3) & y.between(0, 3) & ((x <= 1) | (y <= 1)),
    "band": x.between(0, 1) & y.between(0, 1) & (x - y).between("-1/20", "1/20"),
    "space": x.between(0, 1) & y.between(0, 1) & z.between(0, 2) & ((x + y + z <= 2) | (x <= "1/4")),
}
FAMILIES = {
    "spline": lambda region, components: pal.SplineMixture(region, knots=6, components=components),
    "sum-of-squares": lambda region, components: pal.SumOfSquares(region, degree=3, components=components),
    "legendre": lambda region, components: pal.SumOfSquares(region, 2, components, basis="legendre"),
    "monomial": lambda region, components: pal.SumOfSquares(region, 2, components, basis="monomial"),
    "some monomials": lambda region, components: pal.SumOfSquares(region, 3, components, basis="monomial", terms=3),
    "histogram": lambda region, components: pal.HistogramMixture(region, bins=4, components=components),
}


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("components", [1, 2, 8, 50])
def test_zeros_are_close_to_uniform_in_the_core_and_in_a_layer(name, kind, components):
    torch = pytest.importorskip("torch")
    from pal.torch import Layer

    region = pal.Region(REGIONS[name])
    family = FAMILIES[kind](region, components)
    points, zeros = region.sample(1000, seed=1), np.zeros(family.num_params)
    uniform = -math.log(region.volume)
    core = family.log_prob(zeros, points)
    assert abs(core.mean() - uniform) < 0.3 and core.min() > uniform - 0.3
    if components == 1:
        assert np.abs(core - uniform).max() < 1e-12
    layer = Layer.of(family)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-4)):
        params = torch.zeros(family.num_params, dtype=dtype, requires_grad=True)
        logs = layer(params).log_prob(torch.from_numpy(points))
        assert np.abs(logs.detach().numpy() - core).max() < tolerance
        (gradient,) = torch.autograd.grad(logs[:50].mean(), params)
        want = family.log_prob_vjp(zeros, points[:50], np.full(50, 1 / 50))
        assert np.abs(gradient.numpy() - want).max() < 10 * tolerance * np.abs(want).max()
        parts = gradient.reshape(components, -1)
        assert (parts.abs().amax(-1) > 1e-3 / components).all()
        apart = (parts[:, None] - parts).abs().amax(-1) + torch.eye(components)
        assert (apart > 1e-4 * parts.abs().max()).all()


@pytest.mark.parametrize("kind", ["spline", "sum-of-squares", "histogram"])
def test_a_network_that_begins_with_zeros_learns(kind):
    """Targets on either arm of a corner, depending on the sign of the input and on chance."""
    torch = pytest.importorskip("torch")
    from pal.torch import Layer

    region = pal.Region(REGIONS["corner"])
    layer = Layer.of(FAMILIES[kind](region, 4))
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(400, 1, generator=generator)
    along = 1 + 0.5 * (inputs > 0) + torch.rand(400, 1, generator=generator)
    across = 0.4 + 0.2 * torch.rand(400, 1, generator=generator)
    first = torch.rand(400, 1, generator=generator) < 0.5
    targets = torch.where(first, torch.cat([along, across], -1), torch.cat([across, along], -1)).double()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.ReLU(), torch.nn.Linear(32, layer.num_params))
    torch.nn.init.zeros_(network[-1].weight)
    torch.nn.init.zeros_(network[-1].bias)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(150):
        loss = -layer(network(inputs)).log_prob(targets).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss))
    assert abs(losses[0] - math.log(5)) < 0.3 and losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("kind", ["spline", "sum-of-squares", "legendre"])
def test_parameters_are_differences_to_the_offset(kind):
    """The scale of splines and of polynomials does not matter, once the offset is added."""
    region = pal.Region(REGIONS["corner"])
    family = FAMILIES[kind](region, 3)
    points, theta = region.sample(10, seed=2), np.random.default_rng(1).normal(size=(3, family.num_params // 3))
    theta[:, 0] = 0
    one, three = (family.log_prob((scale * theta).reshape(-1) - family.offset, points) for scale in (1, 3))
    assert np.abs(one - three).max() < 1e-12
