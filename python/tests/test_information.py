"""Entropies and divergences of batches with derivatives: against the core, differences, closed forms and samples."""

import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import HistogramLayer, SplineLayer, SumOfSquaresLayer

x, y = pal.reals("x", "y")
ROOM = x.between(0, 4) & y.between(0, 3) & (x + y <= 6) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2))
LAYERS = {
    "spline": lambda: SplineLayer(ROOM, knots=5, components=3, head="values"),
    "student-t": lambda: SplineLayer(ROOM, knots=8, components=3),
    "squares": lambda: SumOfSquaresLayer(ROOM, degree=3, components=2),
    "histogram": lambda: HistogramLayer(ROOM, bins=4, components=2),
}


@pytest.fixture(params=LAYERS, name="layer")
def each_layer(request):
    return LAYERS[request.param]()


def outputs(layer, rows=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, layer.num_params, generator=generator, dtype=dtype).requires_grad_()


def differences(value, at, count=12, h=1e-4):
    """Central differences of a sum with respect to some entries of a tensor, and which entries these are."""
    flat = at.detach().reshape(-1)
    some = np.linspace(0, len(flat) - 1, count).astype(int)
    found = []
    for k in some:
        ends = []
        for step in (h, -h):
            moved = flat.clone()
            moved[k] += step
            ends.append(float(value(moved.reshape(at.shape)).sum()))
        found.append((ends[0] - ends[1]) / (2 * h))
    return torch.tensor(found, dtype=torch.float64), torch.from_numpy(some)


def by_core(p, tolerance=1e-10):
    return torch.tensor([entropy.value for entropy in p.entropies(tolerance)], dtype=torch.float64)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-6])
def test_entropies_are_within_the_tolerance_of_those_of_the_core(layer, tolerance):
    p = layer(outputs(layer, 20))
    assert (p.entropy(tolerance) - by_core(p)).abs().max() < tolerance


def test_derivatives_are_differences_of_the_entropies_of_the_core(layer):
    at = outputs(layer)
    (gradient,) = torch.autograd.grad(layer(at).entropy(1e-8).sum(), at)
    want, some = differences(lambda moved: by_core(layer(moved)), at)
    assert torch.allclose(gradient.reshape(-1)[some], want, atol=1e-5, rtol=1e-4)
    (rough,) = torch.autograd.grad(layer(at).entropy(1e-3).sum(), at)
    assert (rough - gradient).norm() < 0.02 * gradient.norm()


def test_single_precision_and_shapes(layer):
    at = outputs(layer, 6, dtype=torch.float32).detach().reshape(2, 3, -1).requires_grad_()
    entropy = layer(at).entropy(tolerance=1e-3)
    entropy.mean().backward()
    assert entropy.shape == (2, 3) and entropy.dtype == torch.float32 and at.grad.dtype == torch.float32
    assert (entropy.double() - layer(at.detach().double()).entropy(1e-6)).abs().max() < 2e-3
    assert layer(at.detach()[:0]).entropy().shape == (0, 3)


def test_given_a_condition(layer):
    at = outputs(layer)
    for make in (
        lambda at: layer(at).condition(x <= 2),
        lambda at: layer(at, normaliser=layer.normaliser_within(x <= 2)),
    ):
        p = make(at)
        (gradient,) = torch.autograd.grad(p.entropy(1e-8).sum(), at)
        assert torch.allclose(p.entropy(1e-7), by_core(p, 1e-9), atol=1e-6)
        want, some = differences(lambda moved: by_core(make(moved)), at)
        assert torch.allclose(gradient.reshape(-1)[some], want, atol=1e-5, rtol=1e-4)


def test_divergences_in_closed_form():
    # Histograms are constant on bins: a sum over bins.
    layer = HistogramLayer(x.between(0, 2), bins=2, components=1)
    theta = torch.tensor([[0.0, 0.0, 1.0], [0.0, 2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    other = torch.tensor([[0.0, 0.3, 0.1], [0.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    p, q = theta[:, 1:].log_softmax(-1), other[:, 1:].log_softmax(-1)
    want = (p.exp() * (p - q)).sum(-1)
    got = torch.distributions.kl_divergence(layer(theta), layer(other))
    assert torch.allclose(got, want, atol=1e-9)
    for tensor in (theta, other):
        mine, exact = (torch.autograd.grad(value.sum(), tensor, retain_graph=True)[0] for value in (got, want))
        assert torch.allclose(mine, exact, atol=1e-7)


def test_divergences_between_kinds_are_means_over_samples():
    torch.manual_seed(0)
    layers = [LAYERS[name]() for name in ("spline", "squares", "histogram")]
    for first in layers:
        for second in layers:
            p, q = first(outputs(first, 2, 1)), second(outputs(second, 2, 2))
            exact = p.kl_divergence(q, tolerance=1e-3).detach()
            points = p.sample((20_000,))
            terms = (p.log_prob(points) - q.log_prob(points)).detach()
            error = terms.std(0) / len(terms) ** 0.5
            assert ((exact - terms.mean(0)).abs() < 5 * error + 2e-3).all(), (first, second)


def test_derivatives_of_divergences(layer):
    of_p, of_q = outputs(layer, 3, 1), outputs(layer, 3, 2)
    divergence = lambda p, q: layer(p).kl_divergence(layer(q), tolerance=1e-9)
    gradients = torch.autograd.grad(divergence(of_p, of_q).sum(), (of_p, of_q))
    for gradient, at, value in (
        (gradients[0], of_p, lambda moved: divergence(moved, of_q.detach())),
        (gradients[1], of_q, lambda moved: divergence(of_p.detach(), moved)),
    ):
        want, some = differences(value, at)
        assert torch.allclose(gradient.reshape(-1)[some], want, atol=1e-4, rtol=1e-3)


def test_divergence_is_zero_from_itself_and_broadcasts(layer):
    p = layer(outputs(layer))
    assert p.kl_divergence(p).abs().max() < 1e-6
    one = layer(outputs(layer, 1, 3)[0])
    assert one.kl_divergence(p).shape == (4,) and (p.kl_divergence(one) > 0).all()
    assert torch.allclose(p.kl_divergence(one)[2], p[2].kl_divergence(one), atol=1e-6)


def test_supports_that_differ(layer):
    at = outputs(layer)
    p = layer(at)
    below, above = p.condition(x <= 2), p.condition(x >= 2)
    # Given a part, the divergence is minus the logarithm of its probability.
    got = below.kl_divergence(p, tolerance=1e-8)
    assert torch.allclose(got, -p.probability(x <= 2).log(), atol=1e-6)
    ends = [torch.autograd.grad(value.sum(), at, retain_graph=True)[0] for value in (got, -p.probability(x <= 2).log())]
    assert torch.allclose(*ends, atol=1e-5)
    for infinite in (p.kl_divergence(below), below.kl_divergence(above)):
        assert infinite.isposinf().all()
        (gradient,) = torch.autograd.grad(infinite.sum(), at, retain_graph=True)
        assert gradient.isfinite().all()
    # Both given conditions, of which one implies the other.
    inner = p.condition(x <= 1)
    want = below.probability(x <= 1).log()
    assert torch.allclose(inner.kl_divergence(below, tolerance=1e-8), -want, atol=1e-6)


def test_other_layers_on_a_larger_and_on_a_smaller_constraint():
    small = SplineLayer(x.between(1, 2), knots=4, components=2, head="values")
    large = SplineLayer(x.between(0, 4), knots=6, components=2, head="values")
    p, q = small(outputs(small, 3)), large(outputs(large, 3, 1))
    assert q.kl_divergence(p).isposinf().all()
    grid = torch.linspace(1, 2, 20_001, dtype=torch.float64)[:, None, None].expand(-1, 3, 1)
    log_p, log_q = p.log_prob(grid), q.log_prob(grid)
    want = torch.trapezoid(log_p.exp() * (log_p - log_q), dx=1 / 20_000, dim=0)
    assert torch.allclose(p.kl_divergence(q), want, atol=1e-4)
    other = SplineLayer(y.between(0, 1), knots=4)
    with pytest.raises(pal.QueryError, match="different variables: x and y"):
        p.kl_divergence(other(torch.zeros(3, other.num_params)))


def test_estimates_from_samples_are_unbiased(layer):
    torch.manual_seed(3)
    of_p, of_q = outputs(layer, 2, 1), outputs(layer, 2, 2)
    for exact, estimate, tensors in (
        (layer(of_p).entropy(1e-6), lambda: layer(of_p).entropy(samples=200), (of_p,)),
        (
            layer(of_p).kl_divergence(layer(of_q), 1e-6),
            lambda: layer(of_p).kl_divergence(layer(of_q), samples=200),
            (of_p, of_q),
        ),
    ):
        want = torch.autograd.grad(exact.sum(), tensors)
        values, gradients = [], []
        for _ in range(40):
            value = estimate()
            gradients.append([part.reshape(-1) for part in torch.autograd.grad(value.sum(), tensors)])
            values.append(value.detach())
        found = torch.stack(values)
        assert ((found.mean(0) - exact).abs() < 5 * found.std(0) / 40**0.5).all()
        for k, part in enumerate(want):
            each = torch.stack([gradient[k] for gradient in gradients])
            error = each.std(0) / 40**0.5
            assert ((each.mean(0) - part.reshape(-1)).abs() < 5.5 * error + 1e-6).all()
    with pytest.raises(ValueError, match="at least 2 samples"):
        layer(of_p).entropy(samples=1)


def test_too_many_evaluations_are_refused_and_samples_offered():
    names = pal.reals(*(f"v{k}" for k in range(14)))
    layer = SumOfSquaresLayer(pal.all_of(name.between(0, 2) for name in names), degree=1, components=1)
    at = torch.zeros(2, layer.num_params, dtype=torch.float64, requires_grad=True)
    for refused in (lambda p: p.entropy(), lambda p: p.kl_divergence(p)):
        with pytest.raises(pal.QueryError, match="more than the limit of 5.0e7; estimate it from samples instead"):
            refused(layer(at))
    # Uniform: every sample has the same log-density.
    estimate = layer(at).entropy(samples=20)
    assert torch.allclose(estimate, torch.full((2,), 14 * math.log(2), dtype=torch.float64))
    estimate.sum().backward()
    assert at.grad.abs().max() < 1e-9


def test_rows_that_do_not_reach_the_tolerance_are_named():
    layer = LAYERS["spline"]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(outputs(layer)).entropy(1e-3)
    with pytest.warns(UserWarning, match=r"entropies of 4 of 4 densities \(rows 0, 1, 2, 3\) are not known to 1e-20"):
        entropy = layer(outputs(layer)).entropy(1e-20)
    assert torch.allclose(entropy, by_core(layer(outputs(layer))), atol=1e-8)


def test_the_uniform_density_has_the_largest_entropy():
    layer = SplineLayer(ROOM, knots=5, components=1, head="values")
    p = layer(torch.zeros(1, layer.num_params, dtype=torch.float64))
    assert float(p.entropy(1e-9)) == pytest.approx(math.log(float(pal.Region(ROOM).volume)), abs=1e-9)
