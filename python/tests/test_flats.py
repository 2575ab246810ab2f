"""Constraints on which equalities hold: regions, densities, layers, estimators and pictures."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

import pal

torch = pytest.importorskip("torch")

from pal.torch import HistogramLayer, Layer, SplineLayer, SumOfSquaresLayer  # noqa: E402

a, b, c = pal.reals("a", "b", "c")
SIMPLEX = (a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0)
SHARES = SIMPLEX & (a <= "0.7") & ~((a > "0.4") & (b > "0.4"))


def grid(n):
    """Centres of small triangles of equal area that make up the simplex, and that area."""
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    up = np.stack([3 * i + 1, 3 * j + 1], -1)[i + j < n]
    down = np.stack([3 * i + 2, 3 * j + 2], -1)[i + j < n - 1]
    first = np.concatenate([up, down]) / (3 * n)
    return np.column_stack([first, 1 - first.sum(1)]), np.sqrt(3) / 2 / n**2


def test_a_region_knows_its_dimension_and_its_surface():
    region = pal.Region(SIMPLEX)
    assert (region.dimension, region.free, region.volume) == (2, ("a", "b"), 0.0)
    value, volume, factor = region.surface_measure
    assert (volume, factor) == (Fraction(1, 2), Fraction(3)) and value == pytest.approx(3**0.5 / 2)
    assert pal.Region(SIMPLEX, free=["c", "b"]).free == ("b", "c")
    assert pal.Region(a.between(0, 1)).dimension == 1
    assert pal.Region((a <= 0) & (a >= 1)).dimension == -1
    assert pal.Region((a == 1) & (b == 2)).dimension == 0
    assert pal.Region(a.between(0, 2) & b.between(0, 1)).surface_measure == (2.0, 2, 1)
    with pytest.raises(pal.RegionError, match="a = 0"):
        pal.Region(((a == 0) & b.between(0, 1)) | ((b == 0) & a.between(0, 1))).free
    with pytest.raises(pal.RegionError, match="cannot all be free"):
        pal.Region(SIMPLEX, free=["a", "b", "c"])
    again = pickle.loads(pickle.dumps(pal.Region(SIMPLEX, free=["b", "c"])))
    assert again.free == ("b", "c")


def test_integrals_are_by_surface_measure_and_wmi_stays_zero():
    integral = pal.integrate(SIMPLEX, "c^2")
    assert (integral.free, integral.square_factor) == (Fraction(1, 12), 3)
    assert integral.value == pytest.approx(3**0.5 / 12) and integral.error < 1e-15
    assert pal.integrate(SIMPLEX, a * b, exact=False).value == pytest.approx(3**0.5 / 24)
    assert pal.wmi(SIMPLEX, "1").total == 0


def test_membership_allows_the_rounding_of_sums():
    region = pal.Region(SIMPLEX)
    rows = np.random.default_rng(0).dirichlet([0.3, 1, 2], 1000)
    rows = rows / rows.sum(1, keepdims=True)
    assert region.contains(rows).all()
    assert not region.contains(rows + [0, 0, 1e-13]).any()
    assert (region.fill(rows[:, :2])[:, :2] == rows[:, :2]).all()
    points = region.sample(500, seed=1)
    assert points.shape == (500, 3) and region.contains(points).all()
    assert np.abs(points.sum(1) - 1).max() < 5e-16


@pytest.mark.parametrize(
    "family",
    [
        lambda region: pal.SplineMixture(region, knots=5, components=2),
        lambda region: pal.SumOfSquares(region, degree=3, components=2),
        lambda region: pal.HistogramMixture(region, bins=5, components=2),
    ],
)
def test_densities_of_every_kind(family, tmp_path):
    made = family(pal.Region(SHARES))
    assert made.variables == ("a", "b", "c") and made.free == ("a", "b")
    params = made.random_params(2, seed=3)
    points, area = grid(400)
    total = np.exp(made.log_prob(params[:, None], points)).sum(-1) * area
    assert total == pytest.approx([1, 1], abs=2e-2)
    density = made.density(params[0])
    samples = density.sample(4000, seed=2)
    assert pal.Region(SHARES).contains(samples).all()
    assert density.mean() == pytest.approx(samples.mean(0), abs=0.02)
    assert density.covariance() == pytest.approx(np.cov(samples.T), abs=0.01)
    assert density.probability(c <= a) + density.probability(c > a) == pytest.approx(1)
    marginal = density.marginal("c")
    assert marginal.cdf(0.3) == pytest.approx(density.probability(c <= "0.3"), abs=1e-9)
    assert density.mode().point.sum() == pytest.approx(1)
    assert density.transform(np.full((4, 3), 0.5)).shape == (4, 3)
    assert density.given(a=0.25).variables == ("b", "c")
    with pytest.raises(pal.QueryError, match="free"):
        density.given(c=0.25)
    made.save(tmp_path / "flat.safetensors", params=params)
    again, kept = pal.load(tmp_path / "flat.safetensors")
    assert again.free == made.free and (again.log_prob(kept[0], samples) == made.log_prob(params[0], samples)).all()


LAYERS = [
    lambda: SplineLayer(SHARES, knots=6, components=2),
    lambda: SplineLayer(SHARES, knots=6, components=2, head="values"),
    lambda: SumOfSquaresLayer(SHARES, degree=3, components=2),
    lambda: HistogramLayer(SHARES, bins=5, components=2),
]


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layers_are_the_densities_of_the_core(make, dtype):
    torch.manual_seed(0)
    layer = make()
    outputs = torch.randn(3, layer.num_params, dtype=dtype, requires_grad=True)
    p = layer(outputs)
    assert p.event_shape == (3,) and p.batch_shape == (3,)
    samples = p.sample((20,))
    assert samples.shape == (20, 3, 3) and samples.dtype == dtype
    logs = p.log_prob(samples)
    assert torch.isfinite(logs).all() and p.support.check(samples).all()
    exact = [density.log_prob(samples[:, row].double().numpy()) for row, density in enumerate(p.densities())]
    if dtype == torch.float64:
        assert logs.detach().numpy() == pytest.approx(np.stack(exact, 1), abs=1e-6)
    assert torch.isneginf(p.log_prob(torch.tensor([0.25, 0.25, 0.25], dtype=dtype))).all()
    gradient = torch.autograd.grad(p.log_prob(samples[0]).sum(), outputs)[0]
    assert gradient.shape == outputs.shape and gradient.abs().sum() > 0
    mean = np.array([density.mean() for density in p.densities()])
    assert p.mean.detach().numpy() == pytest.approx(mean, abs=1e-4)
    covariance = np.array([density.covariance() for density in p.densities()])
    assert p.covariance_matrix.detach().numpy() == pytest.approx(covariance, abs=1e-4)
    total = p.probability(c <= a) + p.probability(c > a)
    assert total.detach().numpy() == pytest.approx(np.ones(3), abs=1e-5)
    assert p.expectation(c + 2 * a).detach().numpy() == pytest.approx(mean @ [2, 0, 1], abs=1e-4)
    half = p.condition(c <= "0.5")
    assert (half.sample((9,))[..., 2] <= 0.5).all() and torch.isneginf(half.log_prob([0.125, 0.125, 0.75])).all()
    assert p.marginal("c").cdf(torch.tensor(2.0)).tolist() == [1, 1, 1]
    assert p[1].batch_shape == () and p.given(a=0.25)[0].variables == ("b", "c")


def test_gradients_are_those_of_differences():
    torch.manual_seed(1)
    layer = SumOfSquaresLayer(SHARES, degree=2, components=1)
    params = torch.randn(2, layer.num_params, dtype=torch.float64, requires_grad=True)
    points = layer(params).sample().requires_grad_()
    inner = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda q: layer(q).log_prob(inner), params)
    assert torch.autograd.gradcheck(lambda q: layer(q).mean, params)
    assert torch.autograd.gradcheck(lambda q: layer(q).probability(c <= a), params)
    # Derivatives along the flat: coordinates move against each other.
    (along,) = torch.autograd.grad(layer(params).log_prob(points).sum(), points)
    step = torch.tensor([1e-6, 0, -1e-6], dtype=torch.float64)
    moved = layer(params).log_prob(points.detach() + step) - layer(params).log_prob(points.detach() - step)
    assert (along @ step).numpy() * 2 == pytest.approx(moved.detach().numpy(), rel=1e-3, abs=1e-9)


def test_entropies_and_divergences_are_with_respect_to_the_surface():
    layer = SumOfSquaresLayer(SIMPLEX, degree=0, components=1)
    p = layer(torch.zeros(1, 2, dtype=torch.float64))
    assert p.entropy().tolist() == pytest.approx([np.log(3**0.5 / 2)])
    assert torch.distributions.kl_divergence(p, p).tolist() == pytest.approx([0], abs=1e-6)
    half = p.condition(c <= b)
    assert half.kl_divergence(p).tolist() == pytest.approx([np.log(2)], abs=1e-6)


def test_samples_move_with_the_parameters():
    layer = SplineLayer(SIMPLEX, knots=4, components=1, head="values")
    params = torch.zeros(1, layer.num_params, dtype=torch.float64, requires_grad=True)
    p = layer(params)
    assert p.has_rsample
    samples = p.rsample((7,))
    (gradient,) = torch.autograd.grad((samples * torch.tensor([1.0, 2, 3])).sum(), params)
    assert gradient.abs().sum() > 0 and samples.sum(-1).detach().numpy() == pytest.approx(np.ones((7, 1)))


def test_layers_are_copied_saved_and_refused():
    layer = SplineLayer(SHARES, knots=5)
    outputs = torch.randn(2, layer.num_params)
    points = layer(outputs).sample()
    logs = layer(outputs).log_prob(points)
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer), SplineLayer(SHARES, knots=5)):
        other.load_state_dict(layer.state_dict())
        assert torch.equal(other(outputs).log_prob(points), logs)
    elsewhere = SplineLayer(pal.Region(SHARES, free=["b", "c"]), knots=5)
    with pytest.raises(RuntimeError, match="free variables"):
        elsewhere.load_state_dict(layer.state_dict())
    assert Layer.of(pal.SplineMixture(SHARES, knots=5, components=1))(torch.zeros(1, 21)).event_shape == (3,)


def test_estimators_and_pictures():
    from pal.sklearn import ConstrainedDensity

    rows = np.random.default_rng(1).dirichlet([4, 2, 3], 400)
    rows = pal.Region(SIMPLEX).fill(rows[:, :2])
    model = ConstrainedDensity(SIMPLEX, family="sum-of-squares", degree=3, random_state=0).fit(rows)
    assert np.isfinite(model.score_samples(rows)).all()
    assert pal.Region(SIMPLEX).contains(model.sample(100)).all()
    # The uniform density has the log-likelihood -log(area).
    assert model.score(rows) > -np.log(3**0.5 / 2) + 0.3
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = model.density_.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    plt.close("all")
    assert pal.Region(SIMPLEX).plot().get_xlabel() == "a"
    plt.close("all")
