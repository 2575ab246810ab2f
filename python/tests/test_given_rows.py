"""Values of some variables that are given, others for every row: against single densities and closed forms."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import GivenDistribution, HistogramLayer, SplineLayer, SumOfSquaresLayer

x, y, z = pal.reals("x", "y", "z")
ROOM = x.between(0, 4) & y.between(0, 3) & (x + y <= 6) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2))
SOLID = x.between(0, 2) & y.between(0, 1) & z.between(-1, 1) & (x + y + z <= 2)
LAYERS = {
    "spline": lambda region: SplineLayer(region, knots=5, components=3, head="values"),
    "student-t": lambda region: SplineLayer(region, knots=6, components=3),
    "squares": lambda region: SumOfSquaresLayer(region, degree=3, components=2),
    "histogram": lambda region: HistogramLayer(region, bins=4, components=2),
}


@pytest.fixture(params=LAYERS, name="make")
def each_kind(request):
    return LAYERS[request.param]


def outputs(layer, rows=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, layer.num_params, generator=generator, dtype=dtype).requires_grad_()


VALUES = torch.tensor([0.25, 1.5, 2.75, 0.25], dtype=torch.float64)


def test_rows_are_single_densities_given_their_values(make):
    layer = make(ROOM)
    p = layer(outputs(layer))
    rows = p.given({"y": VALUES})
    assert isinstance(rows, GivenDistribution) and rows.variables == ("x",) and len(rows.densities()) == 4
    points = torch.linspace(-0.2, 4.2, 45, dtype=torch.float64).reshape(-1, 1, 1)
    logs = rows.log_prob(points)
    assert logs.shape == (45, 4)
    for row, density in enumerate(p.densities()):
        single = density.given(y=float(VALUES[row]))
        want = torch.from_numpy(single.log_prob(points.numpy().reshape(-1, 1)))
        inside = want.isfinite()
        assert torch.equal(logs[:, row].isfinite(), inside) and 5 < inside.sum() < 45
        assert torch.allclose(logs[inside, row], want[inside], atol=1e-10)
        assert torch.allclose(rows.mean[row], torch.from_numpy(single.mean()), atol=1e-10)
        assert torch.allclose(rows.covariance[row], torch.from_numpy(single.covariance()), atol=1e-10)
        marginal = density.marginal("y").density(np.array([float(VALUES[row])]))
        assert float(rows.given_log_prob[row].detach().exp()) == pytest.approx(float(marginal[0]), rel=1e-9)


def test_numbers_and_tensors_agree(make):
    layer = make(ROOM)
    p = layer(outputs(layer))
    listed, rows = p.given({"y": 0.5}), p.given({"y": torch.tensor(0.5)})
    assert isinstance(listed, list)
    point = np.array([[0.7]])
    want = [float(density.log_prob(point)[0]) for density in listed]
    assert torch.allclose(rows.log_prob(torch.from_numpy(point[0])), torch.tensor(want, dtype=torch.float64))


def test_derivatives_with_respect_to_parameters(make):
    layer = make(ROOM)
    at = outputs(layer)
    points = torch.tensor([[0.5], [0.75], [2.5], [3.0]], dtype=torch.float64)

    def value(outputs):
        rows = layer(outputs).given({"y": VALUES})
        return rows.log_prob(points) + rows.mean.sum(-1) + 0.5 * rows.variance.sum(-1) + 0.25 * rows.given_log_prob

    (gradient,) = torch.autograd.grad(value(at).sum(), at)
    flat = at.detach().reshape(-1)
    for k in np.linspace(0, len(flat) - 1, 15).astype(int):
        ends = []
        for step in (1e-5, -1e-5):
            moved = flat.clone()
            moved[k] += step
            ends.append(float(value(moved.reshape(at.shape)).sum()))
        assert float(gradient.reshape(-1)[k]) == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=2e-5, rel=1e-4)


def test_samples_follow_the_distribution_functions_and_stay_inside(make):
    layer = make(ROOM)
    p = layer(outputs(layer))
    rows = p.given({"y": VALUES})
    torch.manual_seed(0)
    samples = rows.sample((2000,))
    assert samples.shape == (2000, 4, 1) and samples.dtype == torch.float64 and rows.support.check(samples).all()
    for row, density in enumerate(rows.densities()):
        levels = np.sort(density.marginal("x").cdf(samples[:, row, 0].numpy()))
        distance = np.abs(levels - (np.arange(2000) + 0.5) / 2000).max()
        assert distance < 1.95 / 2000**0.5
    torch.manual_seed(0)
    assert torch.equal(rows.sample((2000,)), samples)


def test_several_variables_conditions_and_shapes(make):
    layer = make(SOLID)
    at = outputs(layer, 6).detach().reshape(2, 3, -1)
    p = layer(at).condition(x + z <= 1)
    values = {"z": torch.tensor([-0.5, 0.0, 0.25], dtype=torch.float64), "x": 0.5}
    rows = p.given(values)
    assert rows.batch_shape == (2, 3) and rows.variables == ("y",) and rows.values.shape == (2, 3, 2)
    points = torch.tensor([[0.1], [0.9]], dtype=torch.float64).reshape(2, 1, 1, 1)
    logs = rows.log_prob({"y": points.squeeze(-1)})
    for (i, j), density in zip(np.ndindex(2, 3), p.densities()):
        single = density.given(x=0.5, z=float(values["z"][j]))
        want = torch.from_numpy(single.log_prob(points.numpy().reshape(-1, 1)))
        assert torch.allclose(logs[:, i, j], want, atol=1e-9)
        marginal = density._core.marginal_density(["x", "z"], np.array([0.5, float(values["z"][j])]))
        assert float(rows.given_log_prob[i, j].exp()) == pytest.approx(float(marginal[0]), rel=1e-8)
    two = layer(at).given({"y": torch.full((2, 3), 0.5)})
    assert two.variables == ("x", "z") and two.covariance.shape == (2, 3, 2, 2)
    assert two.sample((5,)).shape == (5, 2, 3, 2)


def test_one_density_and_many_values():
    layer = LAYERS["spline"](ROOM)
    rows = layer(outputs(layer, 1)[0]).given({"y": VALUES})
    assert rows.batch_shape == (4,) and rows.log_prob(torch.tensor([0.5])).shape == (4,)
    empty = layer(outputs(layer, 1)[0]).given({"y": VALUES[:0]})
    assert empty.batch_shape == (0,) and empty.sample((3,)).shape == (3, 0, 1) and empty.densities() == []


def test_errors_name_the_row_and_the_variable():
    layer = LAYERS["spline"](ROOM)
    p = layer(outputs(layer))
    with pytest.raises(pal.QueryError, match=r"the density of y = 7 \(row 2\) is 0"):
        p.given({"y": torch.tensor([0.5, 1.0, 7.0, 1.0])})
    with pytest.raises(pal.QueryError, match=r"y \(row 1\)"):
        p.given({"y": torch.tensor([0.5, float("nan"), 1.0, 1.0])})
    with pytest.raises(pal.QueryError, match="no variable `w`"):
        p.given({"w": torch.tensor(0.5)})
    with pytest.raises(pal.QueryError, match="leave at least one free"):
        p.given({"x": torch.tensor(0.5), "y": torch.tensor(0.5)})
    with pytest.raises(NotImplementedError, match="detach `y`"):
        p.given({"y": torch.tensor(0.5, requires_grad=True)})
