"""The head against the t distribution of scipy, whose densities its components have where nothing cuts them off, and
against its formula in plain numbers; what networks say before they are trained, and that they train."""

import copy
import math
import pickle

import numpy as np
import pal
import pytest
import torch
from pal.datasets import campus
from pal.torch import Layer, SplineLayer, StudentTHead
from scipy import stats

x, y = pal.reals("x", "y")
ROOM = x.between(0, 8) & y.between(0, 3)


def offset(component, axis, axes):
    """Where a component is placed by outputs of 0, in half lengths of the axis."""
    # The real root of g^(axes + 1) = g + 1 above 1.
    roots = np.roots([1.0] + [0.0] * (axes - 1) + [-1.0, -1.0])
    ratio = max(root.real for root in roots if abs(root.imag) < 1e-12)
    return math.modf(0.5 + (component + 1) * ratio ** -(axis + 1))[0] - 0.5


def distance(knots, location):
    """The distance of the knots around a location."""
    bins = np.diff(knots)
    return np.interp(location, knots, [bins[0], *(bins[1:] + bins[:-1]) / 2, bins[-1]])


def outputs(knots, location, scale, tail, place=(0, 0, 1)):
    """The outputs for a location, a scale and a tail on an axis, of the component, axis and number of axes `place`."""
    middle, half = (knots[0] + knots[-1]) / 2, (knots[-1] - knots[0]) / 2
    fraction = (scale - 0.35 * distance(knots, location)) / (2 * half)
    logit = math.log(fraction / (1 - fraction))
    shift = math.log(math.expm1(1.4))
    first = (location - middle) / half - offset(*place)
    return [first, (logit + math.log(3)) / 2, math.log(math.expm1(tail - 0.6)) - shift]


@pytest.mark.parametrize("tail", [1.5, 2.5, 6.0])
@pytest.mark.parametrize("even", [True, False])
def test_a_component_is_a_truncated_t_distribution(tail, even):
    # Equal distances, or closer in the middle.
    knots = [0.25 * k if even else 10 + (k - 40) * abs(k - 40) / 160 for k in range(81)]
    layer = SplineLayer(x.between(0, 20) & ~x.between(12, 13), knots=[knots], components=1)
    given = [0.3, *outputs(np.array(knots), 9.2, 2.0, tail)]
    degrees = 2 * tail - 1
    t = stats.t(degrees, loc=9.2, scale=2 * (tail / degrees) ** 0.5)
    mass = t.cdf(12) - t.cdf(0) + t.cdf(20) - t.cdf(13)
    points = torch.tensor([[0.1], [3.0], [9.2], [11.9], [13.3], [19.5]], dtype=torch.float64)
    expected = torch.from_numpy(t.logpdf(points[:, 0].numpy())) - torch.tensor(mass).log()
    found = layer(torch.tensor(given, dtype=torch.float64)).log_prob(points)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5 if even else 2e-4)


def test_the_parameters_are_those_of_the_formula():
    """Number by number, on axes with other numbers of knots, one of them uneven."""
    knots = [np.array([0.0, 1.0, 2.0, 4.0, 8.0]), np.array([0.0, 1.0, 2.0, 3.0])]
    family = pal.SplineMixture(ROOM, knots=[list(axis) for axis in knots], components=2)
    rows = np.random.default_rng(1).normal(size=(3, 14))
    found = StudentTHead(family)(torch.from_numpy(rows)).numpy() + family.offset
    for row, params in zip(rows, found):
        expected = []
        for component, (logit, *numbers) in enumerate(row.reshape(2, 7)):
            expected.append(logit)
            for axis, (first, second, third) in enumerate(np.reshape(numbers, (2, 3))):
                p = knots[axis]
                middle, half = (p[0] + p[-1]) / 2, (p[-1] - p[0]) / 2
                m = middle + half * (first + offset(component, axis, 2))
                w = 0.35 * distance(p, m) + 2 * half / (1 + 3 * math.exp(-2 * second))
                a = 0.6 + math.log1p(math.exp(third) * math.expm1(1.4))
                values = (1 + ((p - m) / w) ** 2 / a) ** (-a / 2)
                derivatives = -values * (p - m) / w**2 / (1 + ((p - m) / w) ** 2 / a)
                expected += [*values / values.max(), *derivatives / values.max() * np.diff(p).mean()]
        np.testing.assert_allclose(params, expected, rtol=1e-10, atol=1e-14)


# Computed with 40 digits from the formula; crates/pal-burn/tests/student_t.rs has the same numbers.
PINNED_OUTPUTS = [0.25, 0.5, -1, 0.75, -0.25, 0.5, -2, -0.5, -1.25, 2, -0.5, 0.125, -3, 1]
PINNED_PARAMS = [
    0.25,
    0.138141532702, 0.216834162568, 0.359597895317, 1.0, 0.367124467469,
    0.116980625717, 0.207699365378, 0.381235343779, 0.783649611479, -0.39033039765,
    1.0, 0.994098061459, 0.789683759271, 0.603905316827,
    0.141196173469, -0.150312937165, -0.214474100995, -0.154229249695,
    -0.5,
    1.0, 0.951984002985, 0.89710316152, 0.779567583296, 0.567160615503,
    -0.0867605882336, -0.104085614625, -0.114309048072, -0.117543177707, -0.0915406708681,
    0.034002540219, 0.193483620052, 1.0, 0.125705833117,
    0.0462186048677, 0.424855243711, -0.804610192796, -0.250254948483,
]  # fmt: skip


def test_rust_and_python_have_the_same_head():
    family = pal.SplineMixture(ROOM, knots=[[0, 1, 2, 4, 8], [0, 1, 2, 3]], components=2)
    found = StudentTHead(family)(torch.tensor(PINNED_OUTPUTS, dtype=torch.float64)).numpy() + family.offset
    np.testing.assert_allclose(found, PINNED_PARAMS, rtol=1e-11)


REGIONS = {
    "interval": x.between(-3, 5),
    "corridor": x.between(0, 9) & y.between(0, 9) & ((x <= 4) | (y <= 4)),
    "triangle": (x >= 0) & (y >= 0) & (x + y <= 1),
    "campus": campus(walkers=2, seed=1).constraint,
}


@pytest.mark.parametrize("name", REGIONS)
def test_zeros_are_a_broad_density_with_components_told_apart(name):
    region = pal.Region(REGIONS[name])
    layer = SplineLayer(region, knots=20, components=6)
    zeros = torch.zeros(layer.num_params, dtype=torch.float64, requires_grad=True)
    points = torch.from_numpy(region.sample(2000, seed=1))
    p = layer(zeros)
    logs = p.log_prob(points)
    # The mean under the uniform density of log p is below that of the uniform density itself by their divergence.
    divergence = -math.log(region.volume) - float(logs.detach().mean())
    assert 0 < divergence < 0.3
    components = p.params.reshape(6, -1)
    assert torch.cdist(components, components).fill_diagonal_(1.0).min() > 0.1
    (gradient,) = torch.autograd.grad(logs[:10].mean(), zeros)
    assert gradient.abs().max() > 1e-3


def test_outputs_of_order_one_reach_the_whole_box():
    layer = SplineLayer(x.between(2, 12) & y.between(0, 1), knots=41, components=1)
    for corner in ([2.5, 0.05], [2.5, 0.95], [11.5, 0.05], [11.5, 0.95]):
        # Four points ask for a tail without end; it is left as it is.
        given = torch.zeros(2, 2, dtype=torch.float64).requires_grad_()
        outputs = lambda: torch.cat([torch.zeros(1), torch.cat([given, torch.zeros(2, 1)], -1).flatten()])
        optimiser = torch.optim.LBFGS([given], max_iter=60, line_search_fn="strong_wolfe")
        points = torch.tensor(corner) + torch.tensor([0.2, 0.02]) * torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]])

        def loss():
            optimiser.zero_grad()
            value = -layer(outputs()).log_prob(points.double()).mean()
            value.backward()
            return value

        optimiser.step(loss)
        # A uniform density has a log-density of -log 10.
        assert float(-loss().detach()) > 2 and given.detach().abs().max() < 2


@pytest.mark.parametrize("bins", [[1.0] * 20, [0.05 * 1.25**k for k in range(20)]])
def test_no_component_falls_between_knots(bins):
    knots = np.concatenate([[0.0], np.cumsum(bins)])
    knots[-1] = round(knots[-1], 3)
    layer = SplineLayer(x.between(0, float(knots[-1])), knots=[list(knots)], components=1)
    for location in np.linspace(knots[1], knots[-2], 101):
        narrowest = outputs(knots, location, 0.351 * distance(knots, location), 3.0)
        p = layer(torch.tensor([0.0, *narrowest], dtype=torch.float64))
        near = p.log_prob(torch.tensor([[location]], dtype=torch.float64)).exp()
        # A normal density whose deviation is half of the distance of knots has 0.8 over that distance at its mean.
        assert near * distance(knots, location) > 0.6


@pytest.mark.parametrize("knots", [6, [[0, 1, 2, 4, 8], [0, 1, 2, 3]], [[0, 1, 2, 4, 8], [0, 1, "5/4", 2, 3]]])
def test_gradients_and_shapes(knots):
    layer = SplineLayer(ROOM & ((x <= 1) | (y <= 1)), knots=knots, components=2)
    raw = torch.randn(2, 3, layer.num_params, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    raw = (0.5 * raw).requires_grad_()
    assert layer.num_params == 14 and layer(raw).params.shape == (2, 3, layer.family.num_params)
    at = torch.tensor([0.5, 0.7], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda raw: layer(raw).log_prob(at), raw)
    assert layer(raw.float()).params.dtype == layer(raw.bfloat16()).params.dtype == torch.float32
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer).half().double()):
        assert torch.equal(other(raw).params, layer(raw).params)


def test_extreme_outputs_give_numbers():
    layer = SplineLayer(x.between(0, 4) & y.between(0, 4) & ~((x > 1) & (y > 1)), knots=9, components=2)
    for value in (-1e4, -30.0, 30.0, 1e4):
        for at in range(1, 7):
            raw = torch.zeros(2, 7)
            raw[:, at] = value
            raw = raw.flatten().requires_grad_()
            loss = layer(raw).log_prob(torch.tensor([0.5, 0.5]))
            loss.backward()
            assert loss.isfinite() and raw.grad.isfinite().all(), (value, at)


def test_the_start_is_at_the_points():
    layer = SplineLayer(x.between(0, 10) & y.between(0, 10), knots=21, components=4)
    points = torch.tensor([[2.0, 3.0]]) + 0.2 * torch.randn(100, 2, generator=torch.Generator().manual_seed(1))
    p = layer(layer.head.start(points, torch.Generator().manual_seed(2)))
    # A uniform density has a hundredth everywhere.
    assert p.log_prob(points).mean() > torch.tensor(0.01).log() + 2


@pytest.mark.parametrize("seed", range(3))
def test_an_ordinary_network_trains(seed):
    """Adam at its default rate on PyTorch's initialisation, with nothing but standardised inputs."""
    constraint, inputs, targets = campus(walkers=60, seed=3)
    layer = SplineLayer(pal.Region(constraint), knots=28, components=8)
    torch.manual_seed(seed)
    scaled = torch.tensor((inputs - inputs.mean(0)) / inputs.std(0), dtype=torch.float32)
    hidden = [torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
    network = torch.nn.Sequential(*hidden, torch.nn.Linear(64, layer.num_params))
    optimiser = torch.optim.Adam(network.parameters())
    losses = []
    for _ in range(150):
        rows = torch.randint(len(scaled), (128,))
        loss = -layer(network(scaled[rows])).log_prob(torch.from_numpy(targets)[rows]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    # The uniform density, and a normal density whose deviations are those of the targets.
    uniform = math.log(pal.Region(constraint).volume)
    assert losses[0] < uniform + 0.5 and np.mean(losses[-20:]) < uniform - 1


def test_what_is_asked_for_is_checked():
    with pytest.raises(TypeError, match="SplineMixture, not for SumOfSquares"):
        StudentTHead(pal.SumOfSquares(x.between(0, 1)))
    with pytest.raises(ValueError, match="heads are .student-t. and .values.; not .plain."):
        SplineLayer(x.between(0, 1), head="plain")
    layer = SplineLayer(x.between(0, 1), knots=4, components=2)
    with pytest.raises(ValueError, match=r"outputs need 8 numbers along the last axis; the shape is \(3,\)"):
        layer(torch.zeros(3))
    with pytest.raises(TypeError, match="outputs must be a tensor of floating-point numbers, not torch.int64"):
        layer(torch.zeros(8, dtype=torch.int64))
    plain = Layer.of(layer.family)
    assert plain.head is None and plain.num_params == layer.family.num_params
    with pytest.raises(RuntimeError, match="a layer with another head: student-t instead of values"):
        plain.load_state_dict(layer.state_dict())
    default = SplineLayer(ROOM).family
    assert default.num_components == 8 and [len(edges) for edges in default.edges] == [40, 40]
