"""The fused pass of the core against tensor operations: both paths of every layer give the same numbers."""

import numpy as np
import pytest
import torch

import pal
from pal.torch import HistogramLayer, SplineLayer, SumOfSquaresLayer, _fused

x, y, z = pal.reals("x", "y", "z")
ROOM = x.between(0, 4) & y.between(0, 3) & ~(x.between(1, 2) & y.between(1, 2)) & (x + 2 * y <= 9)
CUBE = x.between(0, 1) & y.between(0, 1) & z.between(0, 1) & (x + y + z <= 2)
LAYERS = {
    "values": lambda: SplineLayer(ROOM, knots=7, components=3, head="values"),
    "student-t": lambda: SplineLayer(ROOM, knots=7, components=3),
    "uneven knots": lambda: SplineLayer(ROOM, knots=[[0, "0.5", "0.75", 4], [0, 1, 3]], components=2),
    "three variables": lambda: SplineLayer(CUBE, knots=4, components=2),
    "one variable": lambda: SplineLayer(x.between(0, 1) | x.between(2, 3), knots=9, components=4),
    "histograms": lambda: HistogramLayer(ROOM, bins=5, components=3),
    "histograms, three variables": lambda: HistogramLayer(CUBE, bins=3, components=2),
    "squares": lambda: SumOfSquaresLayer(ROOM, degree=3, components=3),
    "squares, Legendre": lambda: SumOfSquaresLayer(CUBE, degree=2, components=2, basis="legendre"),
    "squares, monomials": lambda: SumOfSquaresLayer(ROOM, degree=2, components=2, basis="monomial"),
}


def rows(layer, dtype, count=33):
    torch.manual_seed(3)
    outputs = torch.randn(count, layer.num_params, dtype=dtype).requires_grad_()
    points = torch.from_numpy(pal.Region(layer.constraint).sample(count, seed=5))
    return outputs, points


def reference(layer, outputs, points):
    """Log-densities by tensor operations."""
    return layer.log_prob_paired(outputs if layer.head is None else layer.head(outputs), points)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_gradients_are_those_of_tensor_operations(name, dtype):
    layer = LAYERS[name]()
    outputs, points = rows(layer, dtype)
    points[4] = 100.0
    assert _fused.usable(layer, outputs, points)
    got, want = layer(outputs).log_prob(points), reference(layer, outputs, points)
    assert got.dtype == dtype and got[4] == -torch.inf == want[4]
    inside = want.isfinite()
    tolerance = 1e-10 if dtype == torch.float64 else 2e-3
    torch.testing.assert_close(got[inside], want[inside], rtol=tolerance, atol=tolerance)
    weights = torch.linspace(-1, 1, int(inside.sum()), dtype=dtype)
    gradients = [torch.autograd.grad((v[inside] * weights).sum(), outputs)[0] for v in (got, want)]
    size = gradients[1].abs().max()
    torch.testing.assert_close(gradients[0] / size, gradients[1] / size, rtol=0, atol=tolerance)
    assert (gradients[0][4] == 0).all()
    with torch.no_grad():
        assert torch.equal(layer(outputs).log_prob(points), got)


@pytest.mark.parametrize("name", ["values", "student-t"])
def test_second_derivatives_come_from_tensor_operations(name):
    layer = LAYERS[name]()
    outputs, points = rows(layer, torch.float64, count=3)
    torch.manual_seed(4)
    direction = torch.randn_like(outputs)

    def curvature(log_prob):
        (gradient,) = torch.autograd.grad(log_prob(outputs).sum(), outputs, create_graph=True)
        return torch.autograd.grad((gradient * direction).sum(), outputs)[0]

    got = curvature(lambda o: layer(o).log_prob(points))
    want = curvature(lambda o: reference(layer, o, points))
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", ["values", "student-t"])
def test_transforms_of_torch_func(name):
    layer = LAYERS[name]()
    outputs, points = rows(layer, torch.float64, count=4)
    outputs = outputs.detach()
    log_prob = lambda o: layer(o).log_prob(points).sum()
    want = torch.autograd.functional.jacobian(log_prob, outputs)
    torch.testing.assert_close(torch.func.grad(log_prob)(outputs), want)
    torch.testing.assert_close(torch.func.jacrev(log_prob)(outputs), want)
    direction = torch.ones_like(outputs)
    value, derivative = torch.func.jvp(log_prob, (outputs,), (direction,))
    torch.testing.assert_close((value, derivative), (log_prob(outputs), (want * direction).sum()))
    # One gradient per row, as differentially private training takes them.
    single = lambda o, point: layer(o).log_prob(point)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(single))(outputs, points), want)
    torch.testing.assert_close(torch.func.vmap(single)(outputs, points), layer(outputs).log_prob(points))


@pytest.mark.parametrize("name", ["values", "student-t"])
def test_a_compiled_training_step_is_the_same_step(name):
    layer = LAYERS[name]()
    outputs, points = rows(layer, torch.float32)
    loss = lambda o: -layer(o).log_prob(points).mean()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (want,) = torch.autograd.grad(loss(outputs), outputs)
    (got,) = torch.autograd.grad(compiled(outputs), outputs)
    assert torch.equal(got, want)


def test_the_operator_follows_the_rules_of_pytorch():
    layer = LAYERS["student-t"]()
    outputs, points = rows(layer, torch.float64, count=5)
    arguments = (outputs, points, layer._points.fingerprint, True, True)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.pal.log_prob_rows.default, arguments, test_utils=tests)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_many_points_of_one_density(dtype):
    layer = LAYERS["values"]()
    torch.manual_seed(5)
    params = torch.randn(layer.num_params, dtype=dtype)
    points = torch.from_numpy(np.random.default_rng(1).uniform([-1, -1], [5, 4], size=(4, 50, 2)))
    got = layer(params).log_prob(points)
    want = layer(params.clone().requires_grad_()).log_prob(points).detach()
    assert got.shape == (4, 50) and got.dtype == dtype and torch.equal(got.isneginf(), want.isneginf())
    inside = want.isfinite()
    assert 20 < inside.sum() < 180
    tolerance = 1e-9 if dtype == torch.float64 else 1e-3
    torch.testing.assert_close(got[inside], want[inside], rtol=tolerance, atol=tolerance)
    # Where a spline vanishes, the logarithm of a small number stays.
    flat = torch.zeros(1, layer.num_params, dtype=dtype) - layer.offset.to(dtype)
    flat[0, [1, 15, 20, 34, 39, 53]] += 1
    far = torch.tensor([[3.9, 2.5]], dtype=torch.float64).expand(3, 2)
    assert layer(flat[0]).log_prob(far).isfinite().all()


def test_derivatives_with_respect_to_points_come_from_tensor_operations():
    layer = LAYERS["student-t"]()
    outputs, points = rows(layer, torch.float64)
    assert not _fused.usable(layer, outputs, points.requires_grad_())
    (gradient,) = torch.autograd.grad(layer(outputs).log_prob(points).sum(), points)
    assert np.isfinite(gradient.numpy()).all() and (gradient != 0).any()


def test_outputs_that_are_not_finite_are_named(monkeypatch):
    # torch.compile turns validation off for the rest of the process.
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    layer = LAYERS["student-t"]()
    outputs, points = rows(layer, torch.float32)
    bad = outputs.detach().clone()
    bad[2, 5] = torch.nan
    with pytest.raises(ValueError, match="outputs must be finite; those of 1 rows are not"):
        layer(bad)
    p = pal.torch.ConstrainedDistribution(layer, None, outputs=bad, validate_args=False)
    with pytest.raises(ValueError, match="parameter 5 of row 2 is NaN"):
        p.log_prob(points)


def test_four_variables_with_many_knots_have_log_densities():
    a, b, c, d = pal.reals("a", "b", "c", "d")
    budget = a.between(0, 10) & b.between(0, 10) & c.between(0, 10) & d.between(0, 10) & (a + b + c + d <= 20)
    layer = SplineLayer(budget & ~(a.between(2, 4) & b.between(3, 6)), knots=10, components=2)
    outputs, points = rows(layer, torch.float64, count=20)
    log_prob = layer(outputs).log_prob(points)
    log_prob.sum().backward()
    assert log_prob.isfinite().all() and outputs.grad.isfinite().all()
    # By an estimate of the whole mass: the mean of p over uniform points times the volume.
    region = pal.Region(layer.constraint)
    uniform = torch.from_numpy(region.sample(40_000, seed=1))
    one = torch.zeros(1, layer.num_params, dtype=torch.float64).expand(len(uniform), -1)
    with torch.no_grad():
        density = layer(one).log_prob(uniform).exp() * region.volume
    error = float(density.std()) / len(density) ** 0.5
    assert abs(float(density.mean()) - 1) < 5 * error < 0.1
