"""The contract of all layers: every family on every region, in both precisions and in several batch shapes."""

import copy
import io
import math
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import ConstrainedDistribution, HistogramLayer, Layer, SplineLayer, SumOfSquaresLayer

x, y, z = pal.reals("x", "y", "z")
REGIONS = {
    "interval": x.between(-1, 2) & ~((x > 0) & (x < "1/3")),
    "triangle": (x >= 0) & (y >= 0) & (x + y <= 1),
    "room": x.between(0, 4) & y.between(10, 13) & ~((x > 1) & (x < 2) & (y > 11) & (y < 12)),
    "space": x.between(0, 1) & y.between(0, 1) & z.between(0, 2) & (x + y + z <= 2),
}


def thirds(region):
    """Ends of two bins per axis, at a third of the box."""
    return [[low, low + (high - low) / 3, high] for low, high in pal.Region(region).bounding_box]


FAMILIES = {
    "spline": lambda region: SplineLayer(region, knots=4, components=3, head="values"),
    "placed": lambda region: SplineLayer(region, knots=thirds(region), components=2, head="values"),
    "sum-of-squares": lambda region: SumOfSquaresLayer(region, degree=3, components=2),
    "histogram": lambda region: HistogramLayer(region, bins=4, components=3),
    "unequal bins": lambda region: HistogramLayer(region, bins=thirds(region), components=2),
    "monomial": lambda region: SumOfSquaresLayer(region, degree=2, components=2, basis="monomial"),
}
LAYERS = {f"{family}-{region}": (family, region) for family in FAMILIES for region in REGIONS}
made = {}


def layer_of(name):
    if name not in made:
        family, region = LAYERS[name]
        made[name] = FAMILIES[family](REGIONS[region])
    return made[name]


@pytest.fixture(params=LAYERS, name="layer")
def each_layer(request):
    return layer_of(request.param)


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def points_in(layer, count, seed=0):
    return torch.from_numpy(pal.Region(layer.constraint).sample(count, seed))


@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_log_prob_is_that_of_the_core_in_every_shape(layer, batch, dtype):
    params = normal(*batch, layer.num_params, dtype=dtype)
    p = layer(params)
    n = len(layer.family.variables)
    assert isinstance(p, torch.distributions.Distribution)
    assert p.batch_shape == batch and p.event_shape == (n,)
    samples = points_in(layer, 7).to(dtype)
    value = samples.reshape(7, *[1] * len(batch), n).expand(7, *batch, n)
    got = p.log_prob(value)
    assert got.shape == (7, *batch) and got.dtype == dtype
    want = layer.family.log_prob(params.double().numpy(), value.double().numpy())
    # Rounded to float32 some points are outside, for both.
    assert (torch.from_numpy(np.isfinite(want)) == got.isfinite()).all()
    finite = np.isfinite(want)
    error = np.abs(got.double().numpy()[finite] - want[finite]) / np.maximum(1, np.abs(want[finite]))
    assert error.size == 0 or error.max() < (1e-12 if dtype == torch.float64 else 2e-3)
    outside = torch.full((n,), 99.0, dtype=dtype)
    assert (p.log_prob(outside) == -torch.inf).all() and p.log_prob(outside).shape == batch
    assert (p.log_prob(torch.full((n,), torch.nan, dtype=dtype)) == -torch.inf).all()
    drawn = p.sample((5,))
    assert drawn.shape == (5, *batch, n) and drawn.dtype == dtype and p.support.check(drawn).all()
    assert p.mean.shape == p.variance.shape == p.mode.shape == (*batch, n)
    larger = p.expand((4, *batch))
    assert larger.batch_shape == (4, *batch) and larger.log_prob(value[:4]).shape == (4, *batch)
    if 0 not in batch:
        # Products of matrices of other shapes are rounded in other ways.
        rtol = 1e-12 if dtype == torch.float64 else 1e-4
        assert torch.allclose(larger.log_prob(value[0]), p.log_prob(value[0]).expand(4, *batch), rtol=rtol)


def test_moments_probabilities_and_queries_are_those_of_the_core(layer):
    params = normal(3, layer.num_params, seed=1)
    p, family, rows = layer(params), layer.family, params.numpy()
    close = lambda a, b, tolerance=1e-11: np.abs(a.numpy() - b).max() < tolerance
    n = len(family.variables)
    assert close(p.mean, family.mean(rows)) and close(p.covariance, family.covariance(rows), 1e-10)
    assert close(p.variance, np.diagonal(family.covariance(rows), axis1=1, axis2=2), 1e-10)
    gamma = x <= "1/2"
    assert close(p.probability(gamma), family.probability(gamma, rows))
    assert close(p.probability(gamma) + p.probability(~gamma), 1.0)
    tolerance = 1e-6 if n < 3 else 1e-3
    want = np.array([e.value for e in family.entropy(rows, tolerance)])
    assert close(torch.tensor([e.value for e in p.entropies(tolerance)], dtype=torch.float64), want)
    assert n == 3 or close(p.entropy().detach(), want, 2e-6)
    assert close(p.mode, np.array([m.point for m in family.mode(rows)]))
    at = torch.full((3, n), 0.4, dtype=torch.float64)
    assert close(p.cdf(at), np.array([d.cdf(dict.fromkeys(family.variables, 0.4)) for d in family.densities(rows)]))
    marginal = p.marginal("x")
    level = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    assert close(marginal.cdf(marginal.icdf(level)), level.numpy())
    assert close(marginal.mean, family.mean(rows)[:, 0]) and marginal.density(at[:, 0]).shape == (3,)
    part = p.condition(gamma)
    inside = points_in(layer, 50)[:, None]
    want = np.stack([d.log_prob(inside[:, 0].numpy()) for d in family.condition(gamma, rows)], -1)
    got = part.log_prob(inside).numpy()
    finite = np.isfinite(want)
    assert (finite == np.isfinite(got)).all() and np.abs(got[finite] - want[finite]).max() < 1e-10
    assert (part.sample((20,))[..., 0] <= 0.5).all() and close(part.probability(gamma), 1.0)
    assert close(part.mean, np.stack([d.mean() for d in family.condition(gamma, rows)]), 1e-10)
    with pytest.raises(pal.QueryError, match="probability 0"):
        p.condition(x >= 50)


def test_a_normaliser_is_a_value_that_a_layer_takes(layer):
    """With the normaliser of a part, the densities are those of a family compiled on that part, on the same grid."""
    gamma = x <= "1/2"
    params = normal(3, layer.num_params, seed=1)
    part = layer(params, normaliser=layer.normaliser_within(gamma))
    inside = points_in(layer, 60)[:, None]
    logs = part.log_prob(inside)
    assert (logs.isfinite() == (inside[..., 0] <= 0.5)).all() and logs.isfinite().any()
    # As a conditional density of the core, with weights that make up for what conditioning does to those of a mixture.
    rows = layer.conditional_params(params, part.normaliser).numpy()
    densities = layer.family.condition(gamma, rows)
    want = torch.from_numpy(np.stack([density.log_prob(inside[:, 0].numpy()) for density in densities], -1))
    assert torch.allclose(logs, want, rtol=0, atol=1e-10)
    # On the other hand, conditioning is that same normaliser, but for these weights.
    if isinstance(layer, SumOfSquaresLayer):
        assert torch.allclose(layer(params).condition(gamma).log_prob(inside), logs, rtol=0, atol=1e-10)
    else:
        count = len(layer.family.edges[0]) - 1
        box = pal.Region(layer.constraint).bounding_box
        edges = [[low + (high - low) * k / count for k in range(count + 1)] for low, high in box]
        edges = thirds(layer.constraint) if count == 2 else edges
        other = Layer.of(type(layer.family)(layer.constraint & gamma, edges, layer.family.num_components))
        assert torch.allclose(other(params).log_prob(inside), logs, rtol=0, atol=1e-10)
    # Queries of the core, and further conditions, are about the same densities.
    assert (part.sample((20,))[..., 0] <= 0.5).all() and torch.allclose(part.probability(gamma), torch.ones(3).double())
    means = torch.from_numpy(np.stack([density.mean() for density in part.densities()]))
    assert torch.allclose(part.mean, means, rtol=0, atol=1e-10)
    narrow = part.condition(x <= "1/4")
    shift = part.probability(x <= "1/4").log()
    left = inside[inside[:, 0, 0] <= 0.25]
    assert torch.allclose(narrow.log_prob(left), part.log_prob(left) - shift, rtol=0, atol=1e-10)
    assert torch.equal(layer(params, normaliser=layer.normaliser).log_prob(inside), layer(params).log_prob(inside))
    log_prob = lambda params: layer(params, part.normaliser).log_prob(left[:2])
    assert torch.autograd.gradcheck(log_prob, params.requires_grad_(), fast_mode=True)


def test_densities_integrate_to_one(layer):
    # By the mean of the density over uniform points: the law of large numbers is the independent source.
    region = pal.Region(layer.constraint)
    p = layer(normal(2, layer.num_params, seed=2) * 0.3)
    values = p.log_prob(points_in(layer, 40_000)[:, None]).exp() * region.volume
    error = values.std(0) / 200
    assert ((values.mean(0) - 1).abs() < 5 * error + 1e-12).all()


def test_gradcheck_and_double_backward(layer):
    params = (normal(2, layer.num_params, seed=3)).requires_grad_()
    points = points_in(layer, 4)[:, None]
    gamma = x <= "1/2"
    log_prob = lambda params: layer(params).log_prob(points)
    assert torch.autograd.gradcheck(log_prob, params, fast_mode=True)
    small = params[:1, : layer.num_params]
    assert torch.autograd.gradgradcheck(lambda p: layer(p).log_prob(points[:1, :1]), small, fast_mode=True)
    assert torch.autograd.gradcheck(lambda params: layer(params).probability(gamma), params, fast_mode=True)
    assert torch.autograd.gradcheck(lambda params: layer(params).mean, params, fast_mode=True)
    part = torch.from_numpy(pal.Region(layer.constraint & gamma).sample(3, seed=1))[:, None]
    conditional = lambda params: layer(params).condition(gamma).log_prob(part)
    assert torch.autograd.gradcheck(conditional, params, fast_mode=True)


def test_gradients_agree_with_the_core(layer):
    params = normal(layer.num_params, seed=4).requires_grad_()
    points, weights = points_in(layer, 30), normal(30, seed=5)
    (layer(params).log_prob(points) * weights).sum().backward()
    want = layer.family.log_prob_vjp(params.detach().numpy(), points.numpy(), weights.numpy())
    assert np.abs(params.grad.numpy() - want).max() < 1e-9 * max(1, np.abs(want).max())


def test_points_outside_leave_gradients_finite(layer):
    params = normal(3, layer.num_params, seed=4).requires_grad_()
    value = torch.cat([points_in(layer, 2), torch.full((1, len(layer.family.variables)), 99.0, dtype=torch.float64)])
    logs = layer(params).log_prob(value)
    logs[logs.isfinite()].sum().backward()
    assert params.grad.isfinite().all() and (params.grad[2] == 0).all() and (params.grad[:2] != 0).any()


def test_gradients_with_respect_to_points(layer):
    params = normal(layer.num_params, seed=6)
    points = points_in(layer, 5, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(lambda at: layer(params).log_prob(at), points, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda at: layer(params).log_prob(at), points[:2], fast_mode=True)
    # With a parameter vector each, and with respect to both.
    rows = normal(5, layer.num_params, seed=7).requires_grad_()
    log_prob = lambda rows, at: layer(rows).log_prob(at)
    assert torch.equal(log_prob(rows, points), log_prob(rows, points[None]).squeeze(0))
    assert torch.allclose(log_prob(rows, points), log_prob(rows, points.detach()), rtol=1e-13, atol=1e-13)
    assert torch.autograd.gradcheck(log_prob, (rows, points), fast_mode=True)
    assert torch.autograd.gradgradcheck(log_prob, (rows[:2], points[:2]), fast_mode=True)


def test_points_outside_have_no_gradient(layer):
    n = len(layer.family.variables)
    outside = torch.tensor([[99.0] * n, [torch.nan] * n, [-torch.inf] * n])
    points = torch.cat([points_in(layer, 2), outside]).requires_grad_()
    logs = layer(normal(layer.num_params, seed=6)).log_prob(points)
    assert logs[:2].isfinite().all() and (logs[2:] == -torch.inf).all()
    logs[:2].sum().backward()
    assert points.grad[:2].isfinite().all() and (points.grad[2:] == 0).all()


def test_third_derivatives_of_a_polynomial():
    """With one square of degree 2, u . f is a polynomial whose logarithm is differentiated."""
    (t,) = pal.reals("t")
    layer = SumOfSquaresLayer(t.between(-1, 1), degree=2, components=1, basis="legendre")
    # 2 + P_1 / 2 + P_2 / 4 with P_k normalised to mean square 1.
    theta = torch.tensor([0.0, 2.0, 0.5 / 3**0.5, 0.25 / 5**0.5], dtype=torch.float64)
    params = theta - torch.from_numpy(layer.family.offset)
    at = torch.tensor([[0.3], [-0.8]], dtype=torch.float64, requires_grad=True)
    value = layer(params).log_prob(at).sum()
    polynomial = lambda s: 2 + s / 2 + (3 * s * s - 1) / 8
    want = (2 * polynomial(at).log()).sum()
    for _ in range(3):
        (value,), (want,) = (torch.autograd.grad(v, at, create_graph=True) for v in (value.sum(), want.sum()))
        assert torch.allclose(value, want, rtol=1e-12)


def test_copies_pickles_and_states(layer):
    params = normal(2, layer.num_params, seed=7)
    points = points_in(layer, 5)[:, None]
    want = layer(params).log_prob(points)
    for other in (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(params).log_prob(points), want)
    assert pickle.loads(pickle.dumps(layer))._points is layer._points, "equal families share what is asked of the core"
    model = torch.nn.Sequential(torch.nn.Linear(3, layer.num_params), layer)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    again = copy.deepcopy(model)
    again.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(again[0].weight, model[0].weight)
    other = torch.nn.Sequential(torch.nn.Linear(3, layer.num_params), SumOfSquaresLayer(x.between(0, 5), degree=1))
    with pytest.raises(RuntimeError, match="another constraint"):
        other[1].load_state_dict(layer.state_dict())
    old = layer.state_dict()
    del old["_extra_state"]["version"]
    with pytest.raises(RuntimeError, match="another version"):
        layer.load_state_dict(old)
    # A conversion to float32 and back loses nothing.
    assert torch.equal(copy.deepcopy(layer).float().double()(params).log_prob(points), want)
    assert torch.equal(copy.deepcopy(layer).half()(params).log_prob(points), want)


def test_samples_follow_the_density_and_the_seed(layer):
    p = layer(normal(2, layer.num_params, seed=8))
    torch.manual_seed(3)
    first = p.sample((4000,))
    torch.manual_seed(3)
    assert torch.equal(p.sample((4000,)), first) and not torch.equal(p.sample((4000,)), first)
    draw = [p.sample((5,), generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(draw[0], draw[1]) and not torch.equal(draw[0], draw[2])
    error = (p.variance / 4000).sqrt()
    assert ((first.mean(0) - p.mean).abs() < 5 * error).all()
    # The mean of minus the log-density of samples is the entropy.
    logs = -p.log_prob(first)
    entropy = torch.tensor([e.value for e in p.entropies(1e-4)], dtype=torch.float64)
    assert ((logs.mean(0) - entropy).abs() < 5 * logs.std(0) / 4000**0.5 + 1e-4).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_samples_in_short_formats_are_inside(dtype):
    part = x.between(0, 1) & y.between(0, 1) & (x > y) & (3 * x + y < "7/3")
    layer = SplineLayer(part, knots=4, components=2, head="values")
    p = layer(normal(2, layer.num_params, seed=1).to(dtype))
    samples = p.sample((2000,))
    assert samples.dtype == dtype and p.support.check(samples).all()
    assert p.log_prob(samples).isfinite().all()


def test_training_reaches_the_density_behind_the_data():
    torch.manual_seed(0)
    target = layer_of("spline-triangle")
    truth = target(normal(target.num_params, seed=11))
    data = truth.sample((4000,))
    layer = SplineLayer(REGIONS["triangle"], knots=4, components=3, head="values")
    params = normal(layer.num_params, seed=12).requires_grad_()
    optimiser = torch.optim.Adam([params], lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        loss = -layer(params).log_prob(data).mean()
        loss.backward()
        optimiser.step()
    best = -truth.log_prob(data).mean()
    assert loss < best + 0.01 and -layer(params).log_prob(data).mean() > best - 0.1


def test_compiled_layers_give_the_same():
    for name in ("spline-triangle", "sum-of-squares-room", "histogram-room"):
        layer = layer_of(name)
        points = points_in(layer, 6)

        def loss(params):
            return -layer(params).log_prob(points).mean()

        compiled = torch.compile(loss, backend="aot_eager")
        params = normal(6, layer.num_params, seed=9).requires_grad_()
        same = params.detach().clone().requires_grad_()
        torch._dynamo.reset()
        first, second = compiled(params), loss(same)
        first.backward()
        second.backward()
        assert torch.allclose(first, second, atol=1e-12) and torch.allclose(params.grad, same.grad, atol=1e-10)


def test_exported_layers_give_the_same():
    layer = layer_of("spline-triangle")
    at = points_in(layer, 6)

    class LogProb(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, params):
            return self.layer(params).log_prob(at)

    params = normal(6, layer.num_params, seed=9)
    program = torch.export.export(LogProb(layer), (params,), strict=False)
    assert torch.allclose(program.module()(params), layer(params).log_prob(at), atol=1e-12)


def test_layers_of_any_kind_are_made_of_their_family():
    for layer in pal.torch.LAYERS:
        family = layer.family_class(REGIONS["triangle"])
        assert type(Layer.of(family)) is layer and Layer.of(family).num_params == family.num_params


def test_mistakes_are_named():
    layer = layer_of("spline-triangle")
    with pytest.raises(ValueError, match=f"{layer.num_params} numbers"):
        layer(torch.zeros(3))
    with pytest.raises(TypeError, match="int64"):
        layer(torch.zeros(layer.num_params, dtype=torch.int64))
    with pytest.raises(ValueError, match="but there are 2 variables, in this order: x, y"):
        layer(normal(layer.num_params)).log_prob(torch.zeros(3))
    bad = normal(2, layer.num_params)
    bad[1, 0] = torch.inf
    # Compiling anything turns validation off for the whole process, so it is asked for.
    with pytest.raises(ValueError, match="params"):
        ConstrainedDistribution(layer, bad, validate_args=True)
    with pytest.raises(pal.DensityError, match="parameter 0 of row 1"):
        ConstrainedDistribution(layer, bad, validate_args=False).sample()
    # A density of zero everywhere has no samples.
    with pytest.raises(pal.DensityError, match="0 everywhere"):
        layer(-torch.from_numpy(layer.family.offset)).sample()
    assert layer(-torch.from_numpy(layer.family.offset)).log_prob(torch.tensor([0.2, 0.2])).isnan().sum() == 0


def test_layers_of_files(tmp_path):
    layer = layer_of("spline-room")
    params = normal(2, layer.num_params, seed=1)
    layer.family.save(tmp_path / "model.safetensors", params.numpy())
    family, rows = pal.load(tmp_path / "model.safetensors")
    points = points_in(layer, 4)[:, None]
    with pytest.raises(TypeError, match="SumOfSquaresLayer is made of a SumOfSquares, not of a SplineMixture"):
        SumOfSquaresLayer.of(family)
    assert torch.equal(SplineLayer.of(family)(torch.from_numpy(rows)).log_prob(points), layer(params).log_prob(points))


def test_what_is_returned_is_documented():
    p = layer_of("spline-triangle")(normal(layer_of("spline-triangle").num_params))
    assert isinstance(p, ConstrainedDistribution) and "batch_shape=()" in repr(p) and "InRegion" in repr(p.support)


KNOTS = 11
ROOM = x.between(0, 10) & y.between(0, 10) & ~((x > 2) & (x < 8) & (y > 2) & (y < 8))


def peak_in_the_obstacle(layer, tail, peak):
    """Parameters of a layer with 11 knots: a peak at (5, 5) over a tail, and if there are two components, a flat
    one."""
    theta = torch.zeros(layer.family.num_components, 1 + 4 * KNOTS, dtype=torch.float64)
    values = [slice(1, 1 + KNOTS), slice(1 + 2 * KNOTS, 1 + 3 * KNOTS)]
    for axis in values:
        theta[0, axis] = tail
        theta[0, axis.start + 5] = peak
        theta[1:, axis] = 1
    return theta.flatten() - torch.from_numpy(layer.family.offset)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_component_without_mass_takes_no_part(dtype):
    layer = SplineLayer(ROOM, knots=KNOTS, components=2, head="values")
    params = peak_in_the_obstacle(layer, 0.0, 1.0).to(dtype)
    at = torch.tensor([[1.0, 1.0], [9.0, 0.5]])
    # Flat on an area of 64.
    want = torch.full((2,), -math.log(64), dtype=dtype)
    for logs in (layer(params).log_prob(at), layer(params.expand(2, -1)).log_prob(at)):
        assert torch.allclose(logs, want, rtol=1e-12 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_what_is_outside_does_not_drown_what_is_inside(dtype, tolerance):
    """All but a fraction of 1e-16 of the square of this spline is in the obstacle."""
    layer = SplineLayer(ROOM, knots=KNOTS, components=1, head="values")
    for peak in (1e8, 1e5, 1e2):
        params = peak_in_the_obstacle(layer, 1.0, peak).to(dtype)
        at = torch.tensor([[5.0, 1.5], [1.0, 1.0], [9.0, 6.0]], dtype=torch.float64)
        want = torch.from_numpy(layer.family.log_prob(params.double().numpy(), at.numpy())).to(dtype)
        for logs in (layer(params).log_prob(at), layer(params.expand(3, -1)).log_prob(at)):
            assert torch.allclose(logs, want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("start", [10**6, 10**9, 10**12])
def test_far_from_the_origin(start):
    region = x.between(start, start + 4) & y.between(0, 1) & (x - start <= 4 * y)
    layer = SplineLayer(region, knots=6, components=2, head="values")
    params = normal(layer.num_params)
    at = points_in(layer, 20)
    want = torch.from_numpy(layer.family.log_prob(params.numpy(), at.numpy()))
    for logs in (layer(params).log_prob(at), layer(params.expand(20, -1)).log_prob(at)):
        assert torch.allclose(logs, want, rtol=0, atol=1e-11)


def test_an_empty_batch_has_gradients_of_zero(layer):
    network = torch.nn.Linear(2, layer.num_params)
    value = torch.empty(0, len(layer.family.variables))
    layer(network(torch.empty(0, 2))).log_prob(value).sum().backward()
    assert (network.weight.grad == 0).all()


def test_parts_without_volume_have_no_density():
    for region in (x.between(0, 1) | (x == 3), (x.between(0, 1) & y.between(0, 1)) | ((x == 3) & y.between(0, 1))):
        layers = (
            SplineLayer(region, knots=4, components=2, head="values"),
            SumOfSquaresLayer(region, degree=2),
            HistogramLayer(region, bins=3, components=2),
        )
        for layer in layers:
            n = len(layer.family.variables)
            params = normal(layer.num_params)
            at = torch.tensor([[0.5] * n, [3.0] + [0.5] * (n - 1)], dtype=torch.float64)
            for some in (params, params.expand(2, -1)):
                for value in (at, at.clone().requires_grad_()):
                    assert layer(some).log_prob(value).isfinite().tolist() == [True, False]
