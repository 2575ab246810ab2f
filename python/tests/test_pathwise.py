"""Pathwise gradients of samples: against the core, against the score function, and refused where there are none."""

import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import HistogramLayer, SplineLayer, SumOfSquaresLayer
from pal.torch._pathwise import Transform

x, y, z, w = pal.reals("x", "y", "z", "w")
CONVEX = {
    "interval": x.between(-1, 2),
    "triangle": (x >= 0) & (y >= 0) & (x + y <= 1),
    "pentagon": x.between(0, 3) & y.between(0, 2) & (x + y <= 4) & (2 * y <= x + 3),
    # Two cells by its formula, one square in fact.
    "halves": x.between(0, 1) & y.between(0, 1) & ((x <= y) | (x >= y)),
    # Far from the origin, and long and thin.
    "far": x.between(1000000, 1000002) & (10 * (y - x) <= 1) & (10 * (y - x) >= -1),
    "cut box": x.between(0, 2) & y.between(0, 1) & z.between(-1, 1) & (x + y + z <= 2) & (x - y + 2 * z >= -2),
    "octahedron": pal.all_of(sx * x + sy * y + sz * z <= 1 for sx in (-1, 1) for sy in (-1, 1) for sz in (-1, 1)),
}
FOUR = (x >= 0) & (y >= 0) & (z >= 0) & (w >= 0) & (x + y + z + w <= 1)


def spline(region, knots=4, seed=0):
    layer = SplineLayer(region, knots=knots, components=3, head="values")
    theta = torch.randn(layer.num_params, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    # Splines without zeros: the variance of both estimates stays small.
    theta = 0.3 * theta.reshape(3, -1)
    n = len(layer.family.variables)
    theta[:, 1:] += torch.tensor([1.0] * knots + [0.0] * knots, dtype=torch.float64).repeat(n)
    return layer, theta.reshape(-1) - torch.from_numpy(layer.family.offset)


def squares(region, degree=3, basis="orthonormal", seed=0):
    layer = SumOfSquaresLayer(region, degree=degree, components=2, basis=basis)
    theta = torch.randn(layer.num_params, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    theta = 0.1 * theta.reshape(2, -1)
    theta[:, 1] += 1
    return layer, theta.reshape(-1) - torch.from_numpy(layer.family.offset)


def histogram(region, bins=3, seed=0, components=1):
    layer = HistogramLayer(region, bins=bins, components=components)
    normal = torch.randn(layer.num_params, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return layer, 0.5 * normal


CASES = {
    **{f"spline {name}": (spline, region) for name, region in CONVEX.items()},
    **{f"squares {name}": (squares, region) for name, region in CONVEX.items()},
    **{f"histogram {name}": (histogram, region) for name, region in CONVEX.items()},
    "histograms": (lambda region, seed: histogram(region, 5, seed, components=3), CONVEX["interval"]),
    "histogram in four": (lambda region, seed: histogram(region, 2, seed), FOUR),
    "monomials": (lambda region, seed: squares(region, 2, "monomial", seed), CONVEX["pentagon"]),
    "spline in four": (lambda region, seed: spline(region, 2, seed), FOUR),
    "squares in four": (lambda region, seed: squares(region, 2, seed=seed), FOUR),
}


@pytest.fixture(params=CASES, name="case")
def each_case(request):
    make, region = CASES[request.param]
    return lambda seed=0: make(region, seed=seed)


def distribution_functions(density, variables, point):
    """Those of the first variable, of the second given the first, and so on, by the core."""
    values, given = [], {}
    for name, at in zip(variables, point):
        rest = density.given(**given) if given else density
        values.append(float(rest.cdf({name: at}) if len(rest.variables) == 1 else rest.marginal(name).cdf(at)))
        given[name] = at
    return values


def test_transforms_are_the_distribution_functions_of_the_core(case):
    layer, params = case(2)
    points = torch.from_numpy(pal.Region(layer.constraint).sample(12, seed=1))
    values = torch.stack(Transform(layer, layer(params)._paths, params[None], layer.form)(points[None]), -1)[0]
    density = layer.family.density(params.numpy())
    for got, point in zip(values.tolist(), points.tolist()):
        want = distribution_functions(density, layer.family.variables, point)
        assert got == pytest.approx(want, abs=2e-9)


def test_samples_are_those_of_sample_and_stay_inside(case):
    layer, params = case()
    p = layer(params.requires_grad_())
    assert p.has_rsample
    torch.manual_seed(1)
    fixed = p.sample((50,))
    torch.manual_seed(1)
    moving = p.rsample((50,))
    assert torch.equal(moving.detach(), fixed) and moving.requires_grad
    assert p.rsample((0,)).shape == (0, len(layer.family.variables))


def test_single_precision_stays_inside():
    for make in (spline, squares, histogram):
        layer, params = make(CONVEX["pentagon"])
        single = layer(params.float().requires_grad_()).rsample((20,))
        assert single.dtype == torch.float32 and single.requires_grad and layer(params).support.check(single).all()


def samples(layer):
    return {1: 100, 2: 100, 3: 80, 4: 30}[len(layer.family.variables)]


def agree(pathwise, score):
    """Two estimates from several blocks agree within their errors, and stand out of them."""
    pathwise, score = torch.stack(pathwise), torch.stack(score)
    error = ((pathwise.var(0) + score.var(0)) / len(pathwise)).sqrt()
    assert ((pathwise.mean(0) - score.mean(0)).abs() < 5 * error + 1e-9).all()
    assert pathwise.mean(0).norm() > 3 * error.norm()


def test_the_gradient_is_that_of_an_expectation(case):
    layer, params = case(3)
    params.requires_grad_()
    p = layer(params)
    centre = p.mean.detach()
    width = p.variance.detach().sqrt()

    def f(at):
        at = (at - centre) / width
        return at[..., 0] ** 2 + (at[..., 0] * at[..., -1] if len(centre) > 1 else 0) + torch.sin(2 * at).sum(-1)

    torch.manual_seed(5)
    pathwise, score = [], []
    for _ in range(12):
        moving = p.rsample((samples(layer),))
        pathwise.append(torch.autograd.grad(f(moving).mean(), params)[0])
        # The score function needs more samples for the same error.
        fixed = p.sample((3000,))
        values = f(fixed)
        score.append(torch.autograd.grad(((values - values.mean()) * p.log_prob(fixed)).mean(), params)[0])
    agree(pathwise, score)


def test_exact_gradient_of_the_mean(case):
    # The mean of samples moves as the mean of the density does, which is known without samples.
    layer, params = case(4)
    params.requires_grad_()
    p = layer(params)
    (want,) = torch.autograd.grad(p.mean.sum(), params)
    torch.manual_seed(2)
    parts = torch.stack([torch.autograd.grad(p.rsample((samples(layer),)).mean(0).sum(), params)[0] for _ in range(12)])
    error = parts.std(0) / 12**0.5
    assert ((parts.mean(0) - want).abs() < 5 * error + 1e-9).all() and want.norm() > 3 * error.norm()


def test_a_condition_that_leaves_a_convex_part():
    room = x.between(0, 4) & y.between(0, 3) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2))
    for make in (spline, squares, histogram):
        layer, params = make(room, seed=1)
        params.requires_grad_()
        p = layer(params)
        assert not p.has_rsample
        part = p.condition((x >= 2) & (x + y <= 5))
        assert part.has_rsample
        torch.manual_seed(3)
        moving = part.rsample((300,))
        assert part.support.check(moving).all()
        (want,) = torch.autograd.grad(part.mean.sum(), params)
        parts = torch.stack([torch.autograd.grad(part.rsample((200,)).mean(0).sum(), params)[0] for _ in range(12)])
        error = parts.std(0) / 12**0.5
        assert ((parts.mean(0) - want).abs() < 5 * error + 1e-9).all() and want.norm() > 10 * error.norm()
        with pytest.raises(NotImplementedError, match="not convex"):
            p.condition(x >= "1/2").rsample()


@pytest.mark.parametrize("make", [spline, squares, histogram])
def test_batches_and_gradients_through_log_prob(make):
    layer, params = make(CONVEX["triangle"])
    batch = torch.stack([params, 2 * params, params.flip(0)]).requires_grad_()
    p = layer(batch)
    moving = p.rsample((4,))
    assert moving.shape == (4, 3, 2)
    # Minus the entropy, whose gradient needs both the path and the points.
    (gradient,) = torch.autograd.grad(p.log_prob(moving).mean(), batch)
    assert gradient.isfinite().all() and (gradient != 0).any()


# Not for histograms: their log-densities jump where a moving sample enters another bin.
@pytest.mark.parametrize("make", [spline, squares])
def test_the_gradient_of_the_entropy(make):
    """By samples that move, against differences of the entropy that the core computes."""
    layer, params = make(CONVEX["pentagon"], seed=6)
    params.requires_grad_()
    p = layer(params)
    torch.manual_seed(4)
    parts = []
    for _ in range(12):
        moving = p.rsample((400,))
        parts.append(torch.autograd.grad(-p.log_prob(moving).mean(), params)[0])
    parts = torch.stack(parts)
    error = parts.std(0) / 12**0.5
    h = 1e-3
    for k in range(0, layer.num_params, 3):
        step = torch.zeros_like(params)
        step[k] = h
        with torch.no_grad():
            high, low = (layer(at).entropies(1e-9)[0].value for at in (params + step, params - step))
        want = (high - low) / (2 * h)
        assert abs(parts.mean(0)[k].item() - want) < 5 * error[k].item() + 1e-6


@pytest.mark.parametrize(
    ("region", "reason"),
    [
        (x.between(0, 1) & ~((x > "1/3") & (x < "1/2")), "not convex"),
        (x.between(0, 2) & y.between(0, 2) & ~((x > 1) & (y > 1)), "not convex"),
        (x.between(0, 2) & y.between(0, 2) & z.between(0, 1) & ~((x > 1) & (y > 1) & (2 * z > 1)), "not convex"),
    ],
)
def test_where_no_pathwise_gradient_exists_it_is_refused(region, reason):
    for layer in (SplineLayer(region, knots=3, components=1, head="values"), SumOfSquaresLayer(region, degree=1)):
        p = layer(torch.randn(layer.num_params, generator=torch.Generator().manual_seed(0)))
        assert not p.has_rsample
        with pytest.raises(NotImplementedError, match=reason):
            p.rsample()


def test_mixtures_of_histograms_jump():
    # Where x enters another bin, the weights of the components jump, and with them the density of y given x.
    layer, params = histogram(CONVEX["triangle"], components=2)
    with pytest.raises(NotImplementedError, match="jump at the ends of bins"):
        layer(params).rsample()
    assert not layer(params).has_rsample


def test_too_many_slices_are_refused():
    layer = SplineLayer(FOUR, knots=8, components=1, head="values")
    with pytest.raises(NotImplementedError, match=r"a single sample would need .*, more than the limit of 1.07 GB"):
        layer(torch.ones(layer.num_params)).rsample()


def test_convex_sets_and_their_projections():
    convex = lambda formula: pal.Region(formula)._core.convex()
    for name, region in CONVEX.items():
        polytope = convex(region)
        assert polytope is not None, name
        for k, level in enumerate(polytope.projections):
            rows = level.reshape(-1, k + 2).tolist()
            assert len(rows) == len(set(map(tuple, rows)))
    # The projections of the octahedron are a square and an interval.
    assert [len(level) // (k + 2) for k, level in enumerate(convex(CONVEX["octahedron"]).projections)] == [2, 4, 8]
    # A point without volume does not count.
    assert convex(x.between(0, 1) | (x == 3)) is not None
    assert convex(x.between(0, 1) | x.between(2, 3)) is None


def test_breakpoints_of_a_trapezoid():
    # Corners (0, 0), (4, 0), (3, 1) and (1, 1): without knots, the length of a slice changes at 1 and at 3; the knot y
    # = 1/2 meets the slanted sides at 1/2 and at 7/2.
    trapezoid = pal.Region(y.between(0, 1) & (y <= x) & (x + y <= 4))
    polytope = trapezoid._core.convex()
    squares = pal.SumOfSquares(trapezoid, degree=1)
    splines = pal.SplineMixture(trapezoid, knots=[[0, 4], [0, "1/2", 1]], components=1)
    assert [(4 * rows).tolist() for rows in polytope.breakpoints(squares._core)] == [[1, 3]]
    assert [(4 * rows).tolist() for rows in polytope.breakpoints(splines._core)] == [[0.5, 1, 3, 3.5]]


def test_only_what_is_asked_for_is_differentiated():
    layer, params = spline(CONVEX["triangle"])
    assert not layer(params).rsample((3,)).requires_grad
    params.requires_grad_()
    with torch.no_grad():
        assert not layer(params).rsample((3,)).requires_grad
    (first,) = torch.autograd.grad(layer(params).rsample((3,)).square().sum(), params, create_graph=True)
    # Second derivatives are another matter: refused rather than wrong.
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(first.sum(), params, retain_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
    (nothing,) = torch.autograd.grad(layer(params).rsample((0,)).sum(), params)
    assert (nothing == 0).all()
