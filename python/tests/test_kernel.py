"""Kernel layers: support, gradients, queries, regions per row."""

import copy
import pickle

import numpy as np
import pal
import pytest
import torch
from pal.torch import KernelLayer

x, y = pal.reals("x", "y")
ROOM = x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & (y >= 2)) & ~((x + y >= 11) & (x - y <= 5))


@pytest.fixture(scope="module")
def layer():
    return KernelLayer(ROOM, components=3)


def outputs(layer, *shape, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, layer.num_params, dtype=torch.float64, generator=generator)


def test_log_densities_integrate_to_one(layer):
    steps = 400
    points = (np.stack(np.meshgrid(np.arange(steps), np.arange(steps)), -1).reshape(-1, 2) + 0.5) / steps * [9, 6]
    p = layer(outputs(layer, 1)[0])
    total = p.log_prob(torch.from_numpy(points)).exp().mean() * 54
    assert abs(total - 1) < 5e-3
    outside = ~pal.Region(ROOM).contains(points)
    assert outside.any() and p.log_prob(torch.from_numpy(points[outside])).isneginf().all()


def test_gradients_are_those_of_finite_differences(layer):
    params = outputs(layer, 2).requires_grad_()
    points = layer(params).sample().requires_grad_()
    assert torch.autograd.gradcheck(lambda o, v: layer(o).log_prob(v), (params, points), atol=1e-6, rtol=1e-4)
    assert torch.autograd.gradcheck(lambda o: layer(o).probability(x <= 3), (params,), atol=1e-7)
    inner = x.between(0, 3)
    at = torch.tensor([2.0, 2.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda o: layer(o).condition(inner).log_prob(at), (params,), atol=1e-6)
    assert torch.autograd.gradcheck(lambda o: layer(o).entropy(1e-7), (params[:1],), atol=1e-4, eps=1e-4)


def test_float32_parameters_train(layer):
    torch.manual_seed(0)
    network = torch.nn.Linear(2, layer.num_params)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    inputs = torch.randn(256, 2)
    # The target is the upper right or the left part of the room, as the first input says.
    target = torch.where(inputs[:, :1] > 0, torch.tensor([[7.0, 2.0]]), torch.tensor([[2.0, 4.0]])) + 0.1 * inputs
    first = None
    for _ in range(150):
        loss = -layer(network(inputs)).log_prob(target).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        first = loss.item() if first is None else first
    assert loss.item() < first - 2 and loss.dtype == torch.float32


def test_queries_agree_with_samples(layer):
    p = layer(outputs(layer, 2, seed=3))
    samples = p.sample((20_000,), generator=torch.Generator().manual_seed(1))
    assert samples.dtype == torch.float64 and p.support.check(samples).all()
    again = p.sample((20_000,), generator=torch.Generator().manual_seed(1))
    assert torch.equal(samples, again)
    error = samples.std(0) / 20_000**0.5
    assert ((samples.mean(0) - p.mean).abs() < 5 * error).all()
    covariance = torch.stack([torch.cov(samples[:, row].T) for row in range(2)])
    assert torch.allclose(covariance, p.covariance_matrix, rtol=0.1, atol=0.05)
    event = (x <= 3) | (y >= 4)
    found = ((samples[..., 0] <= 3) | (samples[..., 1] >= 4)).double().mean(0)
    assert torch.allclose(found, p.probability(event), atol=0.02)
    logs = p.log_prob(samples)
    assert ((-logs.mean(0) - p.entropy(1e-5)).abs() < 5 * logs.std(0) / 20_000**0.5).all()
    for axis, name in enumerate("xy"):
        marginal = p.marginal(name)
        assert torch.allclose(marginal.mean, p.mean[:, axis], atol=1e-8)
        below = (samples[..., axis] <= 2.5).double().mean(0)
        assert torch.allclose(marginal.cdf(torch.tensor(2.5)), below, atol=0.02)
    assert torch.allclose(p.expectation(x * y), (samples[..., 0] * samples[..., 1]).mean(0), rtol=0.03)
    for mode, row in zip(p.modes(), range(2)):
        assert mode.stop == "certified" and mode.log_upper >= float(logs[:, row].max())
    assert p.mode.shape == (2, 2)


def test_batches_are_indexed_and_expanded(layer):
    params = outputs(layer, 2, 3)
    p = layer(params)
    points = p.sample((4,))
    assert points.shape == (4, 2, 3, 2)
    assert torch.allclose(p[1].log_prob(points[:, 1]), p.log_prob(points)[:, 1])
    wide = layer(params[0, 0]).expand((5,))
    assert wide.sample((2,)).shape == (2, 5, 2)
    assert torch.allclose(p.log_prob({"y": points[..., 1], "x": points[..., 0]}), p.log_prob(points))


def test_every_row_has_its_own_region(layer):
    square = pal.Region(x.between(-2, 2) & y.between(-2, 2))
    local = KernelLayer(square, components=3)
    windows = pal.Region(ROOM).windows(
        np.array([[2.0, 2.0], [4.5, 1.5], [8.0, 3.0]]), 2.0, headings=np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]])
    )
    params = outputs(local, 3)
    p = local(params, windows)
    samples = p.sample((200,))
    assert p.support.check(samples).all()
    for row in range(3):
        alone = KernelLayer(windows[row], components=3)
        assert abs(local.compile_regions(windows).volume[row] / alone.region.volume - 1) < 1e-12
        assert windows[[row] * 200].contains(samples[:, row].numpy()).all()
    compiled = local.compile_regions(windows)
    assert torch.equal(local(params, compiled).log_prob(samples), p.log_prob(samples))
    swapped = compiled[[2, 0, 1]]
    assert torch.allclose(local(params[[2, 0, 1]], swapped).log_prob(samples[:, [2, 0, 1]]), p.log_prob(samples)[:, [2, 0, 1]])
    inside = p.condition(x <= 0)
    assert (inside.sample((50,))[..., 0] <= 0).all()
    total = p.probability(x <= 0) + p.probability(x > 0)
    assert torch.allclose(total, torch.ones(3, dtype=torch.float64))
    points = p.sample().detach()
    params.requires_grad_()
    assert torch.autograd.gradcheck(lambda o: local(o, windows).log_prob(points), (params,), atol=1e-6)


def test_layers_are_copied_saved_and_compared(layer, tmp_path):
    params = outputs(layer, 2)
    points = layer(params).sample()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(params).log_prob(points), layer(params).log_prob(points))
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(RuntimeError, match="another settings"):
        KernelLayer(ROOM, components=4).load_state_dict(layer.state_dict())


def test_errors_say_what_is_wrong(layer):
    with pytest.raises(ValueError, match="numbers along the last axis"):
        layer(torch.zeros(3))
    with pytest.raises(TypeError, match="floating-point"):
        layer(torch.zeros(layer.num_params, dtype=torch.int64))
    with pytest.raises(ValueError, match="positive integer"):
        KernelLayer(ROOM, components=0)
    with pytest.raises(pal.Error, match="one to three variables"):
        KernelLayer(pal.all_of([variable.between(0, 1) for variable in pal.reals("a", "b", "c", "d")]))
    with pytest.raises(ValueError, match="NaN|finite|nan"):
        layer(torch.full((layer.num_params,), float("nan"))).log_prob(torch.zeros(2))
    p = layer(torch.zeros(layer.num_params))
    with pytest.raises(pal.Error, match="probability 0"):
        p.condition(x >= 100).sample()
    with pytest.raises(pal.Error, match="no variable"):
        p.marginal("q")
    with pytest.raises(ValueError, match="regions"):
        layer(torch.zeros(2, layer.num_params), pal.RegionBatch([pal.Region(ROOM)]))


def test_the_estimator_has_kernels():
    pytest.importorskip("sklearn")
    from pal.sklearn import ConstrainedRegressor

    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(300, 1))
    targets = np.hstack([1 + 2 * inputs, 3 + inputs]) + 0.05 * rng.normal(size=(300, 2))
    model = ConstrainedRegressor(ROOM, family="kernel", components=4, max_iter=30, random_state=0).fit(inputs, targets)
    assert model.score(inputs, targets) > -3
    samples = model.sample(inputs[:3], 20, random_state=1)
    assert samples.shape == (3, 20, 2) and pal.Region(ROOM).contains(samples).all()
    assert np.array_equal(samples, model.sample(inputs[:3], 20, random_state=1))
    assert model.predict(inputs[:3], kind="mode").shape == (3, 2)
    assert model.predict_density(inputs[:2])[1].batch_shape == ()
    with pytest.raises(ValueError, match="has no knots"):
        ConstrainedRegressor(ROOM, family="kernel", knots=4).fit(inputs, targets)


def test_kernels_are_the_default_of_the_estimator_for_two_outputs():
    pytest.importorskip("sklearn")
    from pal.sklearn import ConstrainedRegressor

    inputs = np.random.default_rng(0).uniform(size=(60, 1))
    targets = np.hstack([1 + 2 * inputs, 3 + inputs])
    model = ConstrainedRegressor(ROOM, max_iter=2, random_state=0).fit(inputs, targets)
    assert isinstance(model.layer_, KernelLayer) and model.family_ is None
    assert model.predict_density(inputs[:2])[1].batch_shape == ()
    with_knots = ConstrainedRegressor(ROOM, knots=5, components=2, max_iter=2, random_state=0).fit(inputs, targets)
    assert isinstance(with_knots.family_, pal.SplineMixture)


def test_kernels_take_what_a_first_user_gives_them():
    x, y = pal.reals("x", "y")
    region = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1))
    layer = KernelLayer(region, components=2)
    p, points = layer(torch.zeros(2, layer.num_params, dtype=torch.float64)), region.sample(2, seed=1)
    expected = p.log_prob(torch.from_numpy(points))
    named = {"y": points[:, 1], "x": points[:, 0]}
    for given in (points, points.tolist(), named):
        assert torch.equal(p.log_prob(given), expected)
    for ask, error, message in [
        (lambda: p.log_prob(["a", "b"]), TypeError, "points must be an array of numbers"),
        (lambda: p.probability("x <= 1"), TypeError, r"the event must be a formula.*constraint\.parse"),
        (lambda: p.condition("x <= 1"), TypeError, r"the condition must be a formula"),
        (lambda: p.condition(x >= 1), pal.QueryError, "the condition has probability 0"),
        (lambda: p.given(y=0.5), pal.QueryError, "those of a SplineLayer have"),
        (lambda: p.kl_divergence(p), pal.QueryError, "densities of a SplineLayer have"),
    ]:
        with pytest.raises(error, match=message):
            ask()
    assert p.probability(x >= 5).tolist() == [0, 0] and torch.equal(p.covariance, p.covariance_matrix)


def test_log_densities_of_kernels_under_autocast_and_outside():
    x, y = pal.reals("x", "y")
    region = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1))
    layer = KernelLayer(region, components=2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = torch.nn.Linear(3, layer.num_params)(torch.randn(4, 3))
        p = layer(outputs)
        points = torch.from_numpy(region.sample(4, seed=1))
        for answer in (p.log_prob(points), p.probability(x <= y), p.entropy(1e-2), p.condition(x <= y).log_prob(points)):
            assert outputs.dtype == torch.bfloat16 and answer.dtype == torch.float32
    p.log_prob(points).sum().backward(retain_graph=True)
    exact = layer(outputs.detach().double()).log_prob(points)
    assert torch.allclose(p.log_prob(points).double(), exact, atol=1e-5)
    with pytest.warns(UserWarning, match=r"1 of 4 points are outside.*region\.project"):
        assert p.log_prob(torch.cat([points[:3], torch.tensor([[2.0, 2.0]])])).isneginf().sum() == 1


def test_one_density_of_kernels_answers_as_its_row_does():
    x, y = pal.reals("x", "y")
    square = x.between(-1, 1) & y.between(-1, 1)
    layer = KernelLayer(square, components=3)
    torch.manual_seed(1)
    params = torch.randn(2, layer.num_params, dtype=torch.float64)
    for p in (layer(params), layer(params, pal.RegionBatch([square & (x <= y), square & (x + y <= 1)]))):
        points = p.sample((20,))
        for row, density in enumerate(p.densities()):
            own = p[row]
            assert np.array_equal(density.log_prob(points[:, row].numpy()), own.log_prob(points[:, row]).numpy())
            assert density.variables == ("x", "y") and density.constraint.contains(density.sample(200, seed=1)).all()
            assert np.array_equal(density.sample(5, seed=3), density.sample(5, seed=3))
            assert density.probability(x <= 0) == float(own.probability(x <= 0))
            assert density.condition(x <= 0).probability(x > 0) == 0
            assert density.expectation(x) == pytest.approx(density.mean()[0]) == pytest.approx(density.marginal("x").mean)
            second = density.expectation(x * y) - density.mean()[0] * density.mean()[1]
            assert density.covariance()[0, 1] == pytest.approx(second, abs=1e-12)
            mode = density.mode(gap=1e-3)
            assert mode.log_upper >= density.log_prob(points[:, row].numpy()).max() and mode.stop == "certified"
            assert density.entropy(1e-3).converged
    with pytest.raises(ValueError, match="a single row, not of 2"):
        pal.torch.KernelDensity(layer(params))


def test_kernels_are_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    x, y = pal.reals("x", "y")
    layer = KernelLayer((x >= 0) & (y >= 0) & (x + y <= 1), components=2)
    p = layer(torch.zeros(2, layer.num_params))
    for drawn in (p[0], p.densities()[1]):
        ax = pal.plot.density(drawn, plt.figure().gca(), resolution=20)
        assert len(ax.images) == 1 and np.ma.count(ax.images[0].get_array()) > 100
    assert p.densities()[0].plot(plt.figure().gca(), resolution=20).images
    plt.close("all")
