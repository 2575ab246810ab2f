"""Pathwise gradients of samples: against differences, against the score function, and refused where there are none."""

import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import SplineLayer, SumOfSquaresLayer

x, y = pal.reals("x", "y")
CONVEX = {
    "interval": x.between(-1, 2),
    "triangle": (x >= 0) & (y >= 0) & (x + y <= 1),
    "pentagon": x.between(0, 3) & y.between(0, 2) & (x + y <= 4) & (2 * y <= x + 3),
    # Two cells by its formula, one square in fact.
    "halves": x.between(0, 1) & y.between(0, 1) & ((x <= y) | (x >= y)),
}


def layer_and_params(name, seed=0):
    layer = SplineLayer(CONVEX[name], knots=4, mixtures=3)
    params = torch.randn(layer.num_params, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    # Splines without zeros: the variance of both estimates stays small.
    params = 0.3 * params.reshape(3, -1)
    n = len(layer.family.variables)
    params[:, 1:] += torch.tensor([1.0] * 4 + [0.0] * 4, dtype=torch.float64).repeat(n)
    return layer, params.reshape(-1)


@pytest.mark.parametrize("name", CONVEX)
def test_samples_are_those_of_sample_and_stay_inside(name):
    layer, params = layer_and_params(name)
    p = layer(params.requires_grad_())
    assert p.has_rsample
    torch.manual_seed(1)
    fixed = p.sample((50,))
    torch.manual_seed(1)
    moving = p.rsample((50,))
    assert torch.equal(moving.detach(), fixed) and moving.requires_grad
    single = layer(params.detach().float().requires_grad_()).rsample((20,))
    assert single.dtype == torch.float32 and layer(params).support.check(single).all()


@pytest.mark.parametrize("name", CONVEX)
def test_transforms_are_the_distribution_functions_of_the_core(name):
    from pal.torch._pathwise import _Transform

    layer, params = layer_and_params(name, seed=2)
    points = torch.from_numpy(pal.Region(layer.constraint).sample(20, seed=1))
    values = _Transform(layer, params[None])(points[None])
    density = layer.family.density(params.numpy())
    marginal = density.marginal("x")
    assert torch.allclose(values[0][0], torch.from_numpy(marginal.cdf(points[:, 0].numpy())), atol=1e-12)
    for k, point in enumerate(points.tolist()):
        if len(point) == 2:
            want = density.given(x=point[0]).cdf(y=point[1])
            assert abs(values[1][0, k].item() - want) < 1e-11


@pytest.mark.parametrize("name", CONVEX)
def test_the_gradient_is_that_of_an_expectation(name):
    layer, params = layer_and_params(name, seed=3)
    params.requires_grad_()
    p = layer(params)
    n = len(layer.family.variables)

    def f(at):
        return (at[..., 0] ** 2 + (at[..., 0] * at[..., -1] if n == 2 else 0)) + torch.sin(3 * at).sum(-1)

    torch.manual_seed(5)
    count, blocks = 300, 12
    pathwise, score = [], []
    for _ in range(blocks):
        moving = p.rsample((count,))
        (gradient,) = torch.autograd.grad(f(moving).mean(), params, retain_graph=True)
        pathwise.append(gradient)
        fixed = moving.detach()
        values = f(fixed)
        (gradient,) = torch.autograd.grad(((values - values.mean()) * p.log_prob(fixed)).mean(), params)
        score.append(gradient)
    pathwise, score = torch.stack(pathwise), torch.stack(score)
    error = ((pathwise.var(0) + score.var(0)) / blocks).sqrt()
    difference = (pathwise.mean(0) - score.mean(0)).abs()
    assert (difference < 5 * error + 1e-9).all()
    # It is no accident of large errors: the gradient itself stands out of them.
    assert pathwise.mean(0).norm() > 5 * error.norm()


def test_exact_gradient_of_the_mean():
    # The mean of samples moves as the mean of the density does, which is known without samples.
    layer, params = layer_and_params("pentagon", seed=4)
    params.requires_grad_()
    p = layer(params)
    (want,) = torch.autograd.grad(p.mean.sum(), params)
    torch.manual_seed(2)
    parts = torch.stack([torch.autograd.grad(p.rsample((300,)).mean(0).sum(), params)[0] for _ in range(12)])
    error = parts.std(0) / 12**0.5
    assert ((parts.mean(0) - want).abs() < 5 * error + 1e-9).all() and want.norm() > 10 * error.norm()


def test_batches_and_gradients_through_log_prob():
    layer, params = layer_and_params("triangle")
    batch = torch.stack([params, 2 * params, params.flip(0)]).requires_grad_()
    p = layer(batch)
    moving = p.rsample((4,))
    assert moving.shape == (4, 3, 2)
    # Minus the entropy, whose gradient needs both the path and the points.
    (gradient,) = torch.autograd.grad(p.log_prob(moving).mean(), batch)
    assert gradient.isfinite().all() and (gradient != 0).any()


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (lambda: SplineLayer(x.between(0, 1) & ~((x > "1/3") & (x < "1/2")), knots=3, mixtures=1), "not convex"),
        (lambda: SplineLayer(x.between(0, 2) & y.between(0, 2) & ~((x > 1) & (y > 1)), knots=3, mixtures=1), "not convex"),
        (lambda: SumOfSquaresLayer(x.between(0, 1), degree=1), "spline layers only"),
        (lambda: SplineLayer(pal.all_of(v.between(0, 1) for v in pal.reals("x", "y", "z")), knots=2, mixtures=1), "one or two"),
    ],
)
def test_where_no_pathwise_gradient_exists_it_is_refused(layer, reason):
    layer = layer()
    p = layer(torch.randn(layer.num_params, generator=torch.Generator().manual_seed(0)))
    assert not p.has_rsample
    with pytest.raises(NotImplementedError, match=reason):
        p.rsample()
