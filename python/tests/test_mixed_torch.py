"""Mixed densities in PyTorch: batches against single densities, finite differences, and brute force."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import pal

torch = pytest.importorskip("torch")

x, y = pal.reals("x", "y")
mode = pal.Category("mode", ["walk", "bike", "car"])
wet = pal.boolean("wet")
ROAD = (x - y).between(-1, 1)
RULES = (
    x.between(0, 4)
    & y.between(0, 2)
    & pal.implies(mode == "walk", ~ROAD)
    & pal.implies(mode == "car", ROAD)
    & pal.implies(wet, x <= 3)
)


@pytest.fixture(
    params=[
        lambda: pal.SplineMixture(RULES, knots=4, components=3),
        lambda: pal.HistogramMixture(RULES, bins=3, components=2),
        lambda: pal.SumOfSquares(RULES, degree=2, components=2),
    ],
    ids=["spline", "histogram", "sum of squares"],
)
def layer(request):
    return pal.torch.MixedLayer(request.param())


def rows(layer, count=3, seed=5):
    params = torch.from_numpy(layer.family.random_params(count, seed=seed))
    return params.requires_grad_()


def test_log_densities_are_those_of_densities(layer):
    params = rows(layer)
    p = layer(params)
    assert isinstance(p, torch.distributions.Distribution)
    assert p.batch_shape == (3,) and p.event_shape == (6,) and not p.has_rsample
    points = p.sample((5,))
    assert points.shape == (5, 3, 6) and points.dtype == torch.float64
    logs = p.log_prob(points)
    want = np.stack([d.log_prob(points[:, k].numpy()) for k, d in enumerate(p.densities())], 1)
    np.testing.assert_allclose(logs.detach().numpy(), want, atol=1e-9)
    # One row per density, one point for all densities, and columns by name.
    np.testing.assert_allclose(p.log_prob(points[0]).detach().numpy(), want[0], atol=1e-9)
    each = torch.stack([p[k].log_prob(points[0, 0]) for k in range(3)])
    assert torch.equal(p.log_prob(points[0, 0]), each) and each[0].isfinite()
    named = layer.family.named(points[0].numpy())
    assert torch.equal(p.log_prob(named), p.log_prob(points[0]))
    outside = points[0].clone()
    outside[:, 2:5] = 0
    assert p.log_prob(outside).isneginf().all()
    assert p.support.check(points).all() and not p.support.check(outside).any()
    short = layer(params.float()).log_prob(points[0])
    assert short.dtype == torch.float32
    np.testing.assert_allclose(short.detach().numpy(), want[0], atol=1e-3)


def test_derivatives_are_differences(layer):
    params = rows(layer, 2)
    points = layer(params).sample((3,))
    event = (mode == "car") | (x >= 2)

    def check(function):
        assert torch.autograd.gradcheck(function, params, eps=1e-6, atol=1e-6)

    check(lambda params: layer(params).log_prob(points))
    check(lambda params: layer(params).probability(event))
    check(lambda params: layer(params).condition(event).log_prob(points.new_tensor([1.0, 1.0, 0, 0, 1, 0])))
    check(lambda params: layer(params).condition(event).probability(wet))
    check(lambda params: torch.stack(list(layer(params).table("mode", "wet").values())))
    check(lambda params: layer(params).mean)
    check(lambda params: layer(params).covariance_matrix)
    check(lambda params: layer(params).condition(wet).mean)
    check(lambda params: layer(params).expectation(x * y + 3, wet))


def test_answers_are_those_of_densities(layer):
    p = layer(rows(layer).detach())
    densities = p.densities()
    table = p.table("mode", "wet")
    for key, column in table.items():
        want = [density.table("mode", "wet")[key] for density in densities]
        np.testing.assert_allclose(column.numpy(), want, atol=1e-10)
    np.testing.assert_allclose(torch.stack(list(p.table().values())).sum(0).numpy(), 1, atol=1e-10)
    np.testing.assert_allclose(p.mean.numpy(), [d.mean() for d in densities], atol=1e-10)
    np.testing.assert_allclose(p.covariance.numpy(), [d.covariance() for d in densities], atol=1e-10)
    np.testing.assert_allclose(p.variance.numpy(), [d.covariance().diagonal() for d in densities], atol=1e-10)
    np.testing.assert_allclose(
        p.expectation(x**2, wet | (x <= 1)).numpy(), [d.expectation(x**2, wet | (x <= 1)) for d in densities], atol=1e-10
    )
    given = p.condition((mode != "bike") & (x <= 3))
    want = [d.condition((mode != "bike") & (x <= 3)) for d in densities]
    np.testing.assert_allclose(given.mean.numpy(), [d.mean() for d in want], atol=1e-9)
    np.testing.assert_allclose(given.probability(wet).numpy(), [d.probability(wet) for d in want], atol=1e-9)
    samples = given.sample((50,))
    assert given.support.check(samples).all() and (samples[..., 3] == 0).all() and (samples[..., 0] <= 3).all()
    assert given.log_prob(samples).isfinite().all()
    assert [d.columns for d in p.given(wet=True, x=1.0)] == [("y", "mode=walk", "mode=bike", "mode=car")] * 3
    at = torch.tensor([0.5, 1.5, 2.5], dtype=torch.float64)
    np.testing.assert_allclose(
        p.marginal("x").cdf(at).numpy(), [d.marginal("x").cdf(float(v)) for d, v in zip(densities, at)], atol=1e-12
    )
    with pytest.raises(pal.QueryError, match="probability 0"):
        p.condition(wet & (x >= "7/2"))
    with pytest.raises(pal.QueryError, match="`rain`; there is mode, wet"):
        p.table("rain")


def test_probabilities_are_integrals():
    """The uniform density against a count of points on a fine grid."""
    family = pal.SumOfSquares(RULES, degree=0, components=1)
    p = pal.torch.MixedLayer(family)(torch.zeros(family.num_params, dtype=torch.float64))
    u = (np.arange(400) + 0.5) / 400
    gx, gy = np.meshgrid(4 * u, 2 * u, indexing="ij")
    road, masses = np.abs(gx - gy) <= 1, {}
    for name, where in (("walk", ~road), ("bike", np.ones_like(road)), ("car", road)):
        for is_wet in (False, True):
            masses[name, is_wet] = (where & ((gx <= 3) | (not is_wet))).mean()
    total = sum(masses.values())
    for key, value in p.table("mode", "wet").items():
        assert value.item() == pytest.approx(masses[key] / total, abs=2e-3)
    assert p.log_prob(torch.tensor([1.0, 1.0, 0, 1, 0, 1])).item() == pytest.approx(-math.log(8 * total), abs=5e-3)


def test_shapes_follow_pytorch(layer):
    params = rows(layer, 6).detach().reshape(2, 3, -1)
    p = layer(params)
    assert p[1].batch_shape == (3,) and p[:, 2].batch_shape == (2,) and p[..., 0, 1].batch_shape == ()
    assert p.expand((4, 2, 3)).log_prob(p.sample((4,))).shape == (4, 2, 3)
    assert p.sample().shape == (2, 3, 6) and p.sample((4, 5)).shape == (4, 5, 2, 3, 6)
    assert p.mean.shape == (2, 3, 6) and p.covariance_matrix.shape == (2, 3, 6, 6)
    assert p.table("wet")[True,].shape == (2, 3)
    first, second, third = (p.sample((2,), generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, third)
    torch.manual_seed(0)
    first = p.sample()
    torch.manual_seed(0)
    assert torch.equal(first, p.sample())
    single = p[0, 0]
    assert single.sample((7,)).shape == (7, 6) and single.log_prob(single.sample((7,))).shape == (7,)
    with pytest.raises(IndexError):
        single[0]
    with pytest.raises(ValueError, match="do not fit"):
        p.log_prob(p.sample()[:, :2])
    with pytest.raises(ValueError, match="detach"):
        p.log_prob(p.sample().requires_grad_())
    assert layer(params[:0]).log_prob(p.sample()[:0]).shape == (0, 3)
    bad = params.clone()
    bad[0, 0, 0] = math.nan
    # Said explicitly, because the default of PyTorch is off once anything has been compiled in the same process.
    with pytest.raises(ValueError, match="params"):
        pal.torch.MixedDistribution(layer.family, bad, validate_args=True)


def test_entropies_and_modes():
    layer = pal.torch.MixedLayer(pal.HistogramMixture(RULES, bins=3, components=2))
    params = rows(layer, 2)
    p = layer(params)
    with pytest.raises(NotImplementedError, match="samples"):
        p.entropy()
    with torch.no_grad():
        exact = p.entropy(1e-5)
    np.testing.assert_allclose(exact.numpy(), [d.entropy(1e-5).value for d in p.densities()], atol=1e-9)
    torch.manual_seed(1)
    estimate = p.entropy(samples=20_000)
    np.testing.assert_allclose(estimate.detach().numpy(), exact.numpy(), atol=0.05)
    estimate.sum().backward()
    assert params.grad.isfinite().all() and params.grad.abs().sum() > 0
    points = p.mode
    assert points.shape == (2, 6)
    best = p.log_prob(points)
    assert (p.log_prob(p.sample((500,))) <= best + 1e-9).all()
    assert [m.log_density for m in p.modes()] == pytest.approx(best.tolist(), abs=1e-9)


def test_equalities_and_booleans_together():
    a, b, c = pal.reals("a", "b", "c")
    active = pal.boolean("active")
    shares = (a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0) & (active | (a <= "1/4"))
    family = pal.SumOfSquares(shares, degree=0, components=1)
    assert family.free == ("a", "b") and family.columns == ("a", "b", "c", "active")
    params = torch.zeros(2, family.num_params, dtype=torch.float64, requires_grad=True)
    p = pal.torch.MixedLayer(family)(params)
    area = 23 / 16 * math.sqrt(3) / 2
    samples = p.sample((10,))
    assert torch.allclose(samples[..., :3].sum(-1), torch.ones(10, 2, dtype=torch.float64), atol=1e-15)
    assert torch.allclose(p.log_prob(samples), torch.full((10, 2), -math.log(area), dtype=torch.float64))
    want = torch.tensor([37 / 138, 101 / 276, 101 / 276, 16 / 23], dtype=torch.float64)
    assert torch.allclose(p.mean, want.expand(2, 4)) and torch.allclose(p.probability(active), want[3])
    assert p.covariance[..., :3, :3].sum(-1).abs().max() < 1e-12
    density = family.density(np.zeros(family.num_params))
    assert density.marginal("c").mean == pytest.approx(101 / 276)
    assert density.mode().point[:3].sum() == pytest.approx(1)
    assert torch.autograd.gradcheck(lambda params: pal.torch.MixedLayer(family)(params).mean, params, atol=1e-6)
    with pytest.raises(ValueError, match="float64"):
        p.log_prob(samples.float())
    with pytest.raises(pal.RegionError, match="one part lies in"):
        pal.SplineMixture(x.between(0, 2) & y.between(0, 2) & pal.ite(wet, x + y == 1, x + y == 2))


def test_layers_are_copied_pickled_and_compiled(layer):
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        params = rows(layer)
        points = layer(params).sample()
        assert torch.equal(other(params).log_prob(points), layer(params).log_prob(points))

    layer.load_state_dict(layer.state_dict())
    other = pal.torch.MixedLayer(pal.HistogramMixture(RULES & (x <= 3), bins=3, components=2))
    with pytest.raises(RuntimeError, match="another constraint"):
        other.load_state_dict(layer.state_dict())

    def loss(params, points):
        return -layer(params).log_prob(points).mean()

    compiled = torch.compile(loss, backend="aot_eager")
    params = rows(layer)
    points = layer(params).sample()
    (want,) = torch.autograd.grad(loss(params, points), params)
    value = compiled(params, points)
    (got,) = torch.autograd.grad(value, params)
    assert torch.equal(value, loss(params, points)) and torch.allclose(got, want, rtol=1e-12)


def test_float32_samples_satisfy_the_constraint(layer):
    p = layer(rows(layer).detach().float())
    samples = p.sample((200,))
    assert p.support.check(samples).all()
    assert p.log_prob(samples).isfinite().all()
