"""Questions to whole batches of densities: expectations with derivatives, and parts of a batch."""

import numpy as np
import pytest
import torch

import pal
from pal.torch import HistogramLayer, SplineLayer, SumOfSquaresLayer

x, y = pal.reals("x", "y")
# Away from the origin, so that the coordinates of the box are others than those of the user.
ROOM = x.between(3, 7) & y.between(-2, 1) & ~(x.between(4, 5) & y.between(-1, 0)) & (x + y <= 7)
LAYERS = {
    "spline": lambda: SplineLayer(ROOM, knots=6, components=2),
    "values": lambda: SplineLayer(ROOM, knots=5, components=2, head="values"),
    "sum of squares": lambda: SumOfSquaresLayer(ROOM, degree=3, components=2),
    "histogram": lambda: HistogramLayer(ROOM, bins=4, components=2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_expectations_of_polynomials_have_derivatives(name):
    layer = LAYERS[name]()
    torch.manual_seed(1)
    outputs = torch.randn(2, 3, layer.num_params, dtype=torch.float64, requires_grad=True)
    polynomial = 2 * x * x * y - y + 3
    p = layer(outputs)
    value = p.expectation(polynomial)
    assert value.shape == (2, 3)
    exact = layer.family.expectation(polynomial, p.params.detach().numpy())
    np.testing.assert_allclose(value.detach().numpy(), exact, rtol=1e-9)
    (gradient,) = torch.autograd.grad(value.sum(), outputs)
    direction, step = torch.randn_like(outputs), 1e-5
    ends = [layer(outputs.detach() + sign * step * direction).expectation(polynomial).sum() for sign in (1, -1)]
    assert float((gradient * direction).sum()) == pytest.approx(float(ends[0] - ends[1]) / (2 * step), rel=1e-6)
    torch.testing.assert_close(p.expectation(x), p.mean[..., 0])
    torch.testing.assert_close(p.expectation("x*x"), p.variance[..., 0] + p.mean[..., 0] ** 2)
    assert float(p.expectation(7).min().detach()) == pytest.approx(7)


def test_expectations_given_a_condition():
    layer = LAYERS["values"]()
    torch.manual_seed(2)
    p = layer(torch.randn(layer.num_params, dtype=torch.float64)).condition(x >= 5)
    samples = p.sample((20_000,))
    spread = float((samples[:, 0] * samples[:, 1]).std()) / len(samples) ** 0.5
    assert float(p.expectation(x * y)) == pytest.approx(float((samples[:, 0] * samples[:, 1]).mean()), abs=5 * spread)


@pytest.mark.parametrize("name", ["spline", "values"])
def test_parts_of_a_batch(name):
    layer = LAYERS[name]()
    torch.manual_seed(3)
    p = layer(torch.randn(4, 3, layer.num_params, dtype=torch.float64))
    point = torch.tensor([3.5, -1.5], dtype=torch.float64)
    want = p.log_prob(point)
    for index in (0, -1, slice(1, 3), (slice(None), 2), (3, 1), (..., None, 0), torch.tensor([2, 0, 2])):
        part = p[index]
        assert part.batch_shape == want[index].shape
        torch.testing.assert_close(part.log_prob(point), want[index])
    given = p.condition(x <= 6)
    torch.testing.assert_close(given[2].log_prob(point), given.log_prob(point)[2])
    with pytest.raises(IndexError):
        p[4]
    with pytest.raises(IndexError, match="single density"):
        p[0, 0][0]
