"""Densities over real and Boolean variables and categories, in numpy and in PyTorch."""

import itertools
import pickle

import numpy as np
import pytest

import pal


def street():
    x, y = pal.reals("x", "y")
    mode = pal.Category("mode", ["walk", "bike", "car"])
    wet = pal.boolean("wet")
    road = (x - y).between(-1, 1)
    rules = pal.implies(mode == "walk", ~road) & pal.implies(mode == "car", road) & (~wet | (x <= 3))
    return x, y, mode, wet, x.between(0, 4) & y.between(0, 2) & rules


@pytest.fixture(scope="module")
def family():
    return pal.SplineMixture(street()[-1], knots=4, components=2)


@pytest.fixture(scope="module")
def density(family):
    return family.density(family.random_params(seed=3))


def test_kinds_make_mixed_families_on_mixed_constraints(family):
    *_, phi = street()
    assert isinstance(family, pal.MixedFamily)
    assert family.columns == ("x", "y", "mode=walk", "mode=bike", "mode=car", "wet")
    assert family.categories == {"mode": ("walk", "bike", "car")}
    for made in (pal.HistogramMixture(phi, 3, 2), pal.SumOfSquares(pal.Region(phi), degree=2, components=2)):
        assert isinstance(made, pal.MixedFamily) and made.num_components == 2
    with pytest.raises(ValueError, match="components"):
        pal.SplineMixture(phi, components=-1)
    with pytest.raises(TypeError):
        pal.SplineMixture(phi, corners=3)


def test_probabilities_add_up_and_agree_with_samples(density):
    x, y, mode, wet, _ = street()
    values = [mode == value for value in mode.values]
    assert sum(density.probability(value) for value in values) == pytest.approx(1, abs=1e-12)
    event = ((mode == "walk") | (x <= 1)) & ~wet
    samples = density.sample(20000, seed=1)
    named = density.named(samples)
    seen = ((named["mode"] == "walk") | (named["x"] <= 1)) & ~named["wet"]
    p = density.probability(event)
    assert abs(seen.mean() - p) < 5 * np.sqrt(p * (1 - p) / len(samples))
    assert density.condition(event).probability(event) == pytest.approx(1, abs=1e-12)
    assert np.isfinite(density.log_prob(samples)).all()
    assert np.array_equal(np.unique(samples[:, 2:5].sum(axis=1)), [1])
    np.testing.assert_allclose(density.mean(), samples.mean(axis=0), atol=0.05)


def test_tables_are_ratios_of_densities(density):
    table = density.table("mode", "wet")
    assert len(table) == 6 and sum(table.values()) == pytest.approx(1, abs=1e-12)
    for label, in density.table("mode"):
        joint = sum(table[label, wet] for wet in (False, True))
        assert density.table("mode")[label,] == pytest.approx(joint, abs=1e-12)
    point = density.sample(1, seed=2)[0]
    at = density.table(at=point[:2])
    weights = {}
    for k, wet in itertools.product(range(3), (False, True)):
        row = [*point[:2], *np.eye(3)[k], float(wet)]
        weights[("walk", "bike", "car")[k], wet] = np.exp(density.log_prob(row))
    total = sum(weights.values())
    assert at == pytest.approx({key: weight / total for key, weight in weights.items()}, abs=1e-10)


def test_given_values_of_all_sorts(density):
    x, y, mode, wet, _ = street()
    walking = density.given(mode="walk", wet=False)
    assert walking.columns == ("x", "y")
    assert walking.probability((x - y).between(-1, 1)) == 0
    sliced = density.given(x=3.5)
    assert sliced.probability(wet) == 0
    with pytest.raises(ValueError, match="walk, bike, car"):
        density.given(mode="train")
    with pytest.raises(ValueError, match="True or False"):
        density.given(wet=2)
    with pytest.raises(ValueError, match="no value 'train'"):
        mode == "train"
    low, high = density.marginal("x").support
    assert (low, high) == (0, 4)
    certified = density.mode(gap=1e-3)
    assert certified.stop == "certified"
    assert density.log_prob(certified.point) == pytest.approx(certified.log_density)
    assert density.entropy(tolerance=1e-3).value == pytest.approx(
        -density.log_prob(density.sample(20000, seed=5)).mean(), abs=0.05
    )
    assert density.expectation(x, wet) + density.expectation(x, ~wet) == pytest.approx(density.expectation(x))


def test_points_by_name_and_errors(family, density):
    samples = family.sample(family.random_params(seed=3), 5, seed=1)
    np.testing.assert_array_equal(family.points(family.named(samples)), samples)
    with pytest.raises(pal.DensityError, match="row 1 .*`wet`"):
        density.log_prob([[1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 1, 0.5]])
    with pytest.raises(ValueError, match="train"):
        family.points({"x": [1.0], "y": [1.0], "mode": np.array(["train"]), "wet": [True]})


def test_tables_of_pandas_hold_labels(family, density):
    pandas = pytest.importorskip("pandas")
    samples = family.sample(family.random_params(seed=3), 5, seed=1)
    frame = pandas.DataFrame(family.named(samples))
    frame["mode"] = frame["mode"].astype("category")
    np.testing.assert_allclose(density.log_prob(frame), density.log_prob(samples))


def test_files_and_pickles(family, tmp_path):
    params = family.random_params(2, seed=1)
    family.save(tmp_path / "mixed.safetensors", params)
    again, read = pal.load(tmp_path / "mixed.safetensors")
    assert isinstance(again, pal.MixedFamily) and np.array_equal(read, params)
    samples = family.sample(params[0], 10, seed=1)
    copy = pickle.loads(pickle.dumps(family))
    for other in (again, copy):
        np.testing.assert_allclose(other.log_prob(params[0], samples), family.log_prob(params[0], samples))


def test_layers_of_pytorch(family):
    torch = pytest.importorskip("torch")
    x, y, mode, wet, _ = street()
    layer = pal.torch.MixedLayer(family)
    params = torch.tensor(family.random_params(3, seed=7), requires_grad=True)
    points = torch.from_numpy(family.sample(params.detach().numpy(), 1, seed=2)[:, 0])

    def log_prob(params):
        return layer(params).log_prob(points)

    def probability(params):
        return layer(params).probability((mode == "car") | (x >= 2))

    assert torch.autograd.gradcheck(log_prob, params, eps=1e-6, atol=1e-5)
    assert torch.autograd.gradcheck(probability, params, eps=1e-6, atol=1e-5)
    distribution = layer(params.float())
    assert distribution.sample((4,)).shape == (4, 3, 6)
    assert len(distribution.tables("mode")) == 3
    with pytest.raises(ValueError, match="one point for each"):
        distribution.log_prob(points[:2])
    with pytest.raises(pal.DensityError, match="MixedLayer"):
        pal.torch.SplineLayer(street()[-1])
    with pytest.raises(TypeError, match="mixed family"):
        pal.torch.MixedLayer(pal.HistogramMixture(x.between(0, 1)))


def test_training_finds_rules_that_the_constraint_does_not_say():
    torch = pytest.importorskip("torch")
    (x,) = pal.reals("x")
    wet = pal.boolean("wet")
    family = pal.HistogramMixture(x.between(0, 4) & (~wet | (x <= 1)), bins=4, components=2)
    layer = pal.torch.MixedLayer(family)
    generator = np.random.default_rng(0)
    is_wet = generator.random(400) < 0.7
    values = np.where(is_wet, generator.random(400), 3 + generator.random(400))
    points = torch.from_numpy(np.stack([values, is_wet], axis=1).astype(float))
    torch.manual_seed(0)
    params = torch.zeros(family.num_params, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([params], lr=0.2)
    for _ in range(80):
        optimiser.zero_grad()
        (-layer(params.expand(400, -1)).log_prob(points).mean()).backward()
        optimiser.step()
    density = layer(params[None]).densities()[0]
    assert density.probability(wet) == pytest.approx(is_wet.mean(), abs=0.03)
    assert density.given(wet=False).probability(x >= 3) > 0.9
