"""Estimators with truth values and labels: tables of pandas, dicts and arrays in and out, known densities, and errors
that name the row and the column."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import pal
from pal.datasets import orders, transport
from pal.datasets.orders import violations
from pal.sklearn import ConstrainedDensity, ConstrainedRegressor

(x,) = pal.reals("x")
MODE, WET = pal.Category("mode", ["walk", "bike"]), pal.boolean("wet")
# On foot up to 2, when it is wet up to 1.
RULES = pal.Constraint(
    x.between(0, 4) & pal.implies(MODE == "walk", x <= 2) & pal.implies(WET, x <= 1), variables=["x"]
)
SMALL = {"family": "histogram", "bins": 4, "components": 1, "random_state": 0}


def rows(count=600, seed=1):
    """Uniform values in the intervals that the rules allow, with known probabilities of truth values and labels."""
    random = np.random.default_rng(seed)
    walk, wet = random.random(count) < 0.25, random.random(count) < 0.4
    high = np.where(wet, 1, np.where(walk, 2, 4))
    return {"x": high * random.random(count), "mode": np.where(walk, "walk", "bike"), "wet": wet}


TABLE = rows()
ARRAY = np.stack([TABLE["x"], TABLE["mode"] == "walk", TABLE["mode"] == "bike", TABLE["wet"]], -1).astype(float)


def test_names_and_arrays_are_the_same_rows():
    by_name = ConstrainedDensity(RULES, **SMALL).fit(TABLE)
    plain = ConstrainedDensity(pal.Region(RULES), **SMALL).fit(ARRAY)
    assert isinstance(by_name.density_, pal.MixedDensity) and by_name.n_features_in_ == 4
    assert by_name.log_likelihood_ == plain.log_likelihood_ == pytest.approx(by_name.score(TABLE), abs=1e-12)
    assert (by_name.score_samples(ARRAY) == plain.score_samples(TABLE)).all()
    one, two = by_name.sample(50, random_state=3), plain.sample(50, random_state=3)
    assert list(one) == ["x", "mode", "wet"] and one["wet"].dtype == bool and one["mode"].dtype.kind == "U"
    assert (one["x"] == two[:, 0]).all() and (one["wet"] == (two[:, 3] == 1)).all()
    assert by_name.score_samples({"x": [3.0], "mode": ["walk"], "wet": [False]})[0] == -np.inf


def test_the_fit_of_one_bin_is_a_table_of_frequencies():
    """Where positions do not matter, the largest likelihood has the frequencies of the data: a saturated model."""
    random = np.random.default_rng(2)
    wet = random.random(500) < 0.3
    free = pal.Constraint(x.between(0, 2) & (WET | ~WET), variables=["x"], booleans=["wet"])
    model = ConstrainedDensity(free, family="histogram", bins=1, components=1, tol=1e-14, random_state=0)
    model.fit({"x": 2 * random.random(500), "wet": wet})
    p = wet.mean()
    assert model.density_.probability(WET) == pytest.approx(p, abs=1e-4)
    assert model.log_likelihood_ == pytest.approx(p * np.log(p) + (1 - p) * np.log(1 - p) - np.log(2), abs=1e-6)


def test_likelihoods_become_as_large_as_that_of_the_truth():
    def truth(table):
        high = np.where(table["wet"], 1, np.where(table["mode"] == "walk", 2, 4))
        return np.log(np.where(table["mode"] == "walk", 0.25, 0.75) * np.where(table["wet"], 0.4, 0.6) / high)

    model = ConstrainedDensity(RULES, family="histogram", bins=4, components=8, random_state=0).fit(rows(4000, 5))
    test = rows(4000, 6)
    assert truth(test).mean() - 0.02 < model.score(test) < truth(test).mean() + 0.02
    table = model.density_.table("mode", "wet")
    for label, p in (("walk", 0.25), ("bike", 0.75)):
        assert table[label, True] == pytest.approx(0.4 * p, abs=0.03)


def test_tables_of_pandas_come_back_as_they_were():
    pandas = pytest.importorskip("pandas")
    ordered = pandas.CategoricalDtype(["bike", "walk", "boat"], ordered=True)
    frame = pandas.DataFrame({"wet": TABLE["wet"], "note": "a", "mode": TABLE["mode"], "x": TABLE["x"]})
    for types in ({"mode": ordered}, {"wet": "boolean"}, {"wet": "int8", "mode": object}, {"x": "float32", "mode": "string"}):
        given = frame.astype(types)
        if "x" in types:
            given = given[holds(given)]
        model = ConstrainedDensity(RULES, **SMALL).fit(given)
        samples = model.sample(200, random_state=1)
        assert list(samples.columns) == ["wet", "mode", "x"]
        # Numbers are never rounded: that could carry them out of the constraint.
        expected = {**{name: given[name].dtype for name in ("wet", "mode")}, "x": np.float64}
        assert dict(samples.dtypes) == expected
        assert np.isfinite(model.score_samples(samples)).all()
        again = pickle.loads(pickle.dumps(model))
        assert again.sample(200, random_state=1).equals(samples)
    one_hot = pandas.DataFrame(ARRAY, columns=["x", "mode=walk", "mode=bike", "wet"])
    model = ConstrainedDensity(RULES, **SMALL).fit(one_hot)
    assert model.log_likelihood_ == ConstrainedDensity(RULES, **SMALL).fit(ARRAY).log_likelihood_
    samples = model.sample(20, random_state=1)
    assert list(samples.columns) == list(one_hot.columns) and (samples.dtypes == np.float64).all()
    assert (samples["mode=walk"] + samples["mode=bike"] == 1).all()
    # A table without Boolean variables too.
    plain = ConstrainedDensity(x.between(0, 4), **SMALL).fit(frame[["x"]])
    assert list(plain.sample(3, random_state=1).columns) == ["x"]


def holds(frame):
    """Which rows satisfy the rules after rounding, in plain arithmetic."""
    values = frame["x"].to_numpy(float)
    return (values <= 4) & ((frame["mode"] != "walk") | (values <= 2)) & (~frame["wet"] | (values <= 1))


BROKEN = [
    ({"mode": ["walk", "boat"]}, "row 1 of X: `mode` is 'boat', which is none of its values walk, bike"),
    ({"mode": ["walk", None]}, "row 1 of X: `mode` has no value"),
    ({"wet": [True, "yes"]}, "row 1 of X: `wet` is 'yes' in place of True, False, 0 or 1"),
    ({"wet": [0, 0.5]}, "row 1 of X: `wet` is 0.5 in place of True, False, 0 or 1"),
    ({"x": [0.5, np.nan]}, "row 1 of X: `x` has no value"),
    ({"x": [np.inf, 1.0]}, "row 0 of X: `x` is inf in place of a finite number"),
    ({"x": [0.5, "far"]}, "row 1 of X: `x` is 'far' in place of a number"),
    ({"x": [0.5, 3.0]}, r"row 1 of X, \(x = 3.0, mode = walk, wet = False\), violates the constraint; remove them, or widen"),
    ({"x": [0.5, 1.0, 1.0]}, "the columns of X have 2 to 3 rows"),
]


@pytest.mark.parametrize("change, message", BROKEN)
def test_mistakes_name_the_row_and_the_column(change, message):
    table = {"x": [0.5, 1.5], "mode": ["walk", "walk"], "wet": [True, False], **change}
    with pytest.raises(ValueError, match=message):
        ConstrainedDensity(RULES, **SMALL).fit(table)


def test_further_mistakes():
    model = ConstrainedDensity(RULES, **SMALL)
    with pytest.raises(ValueError, match="rows of X have no column `mode`; their columns are x, wet"):
        model.fit({"x": [1.0, 2.0], "wet": [True, False]})
    with pytest.raises(ValueError, match="row 1 of X: `mode` has 2 values in place of exactly one"):
        model.fit([[0.5, 1, 0, 0], [0.5, 1, 1, 0]])
    with pytest.raises(ValueError, match="row 0 of X: `wet` is 2.0 in place of"):
        model.fit([[0.5, 1, 0, 2], [0.5, 1, 0, 0]])
    with pytest.raises(ValueError, match="have 3 columns, but there are 4 variables, in this order: x, mode=walk"):
        model.fit(np.zeros((5, 3)))
    fitted = model.fit(TABLE)
    with pytest.raises(ValueError, match="row 0 of X: `x` has no value"):
        fitted.score_samples({"x": [None], "mode": ["walk"], "wet": [True]})


def test_pipelines_clones_and_searches_take_mixed_tables():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    model = make_pipeline(FunctionTransformer(), ConstrainedDensity(RULES, **SMALL))
    scores = cross_val_score(model, frame, cv=3)
    assert np.isfinite(scores).all() and not hasattr(clone(model)[-1], "density_")


def test_orders_of_a_shop_are_never_against_the_rules():
    rules, table = orders(rows=1000, seed=3)
    assert not violations(table).any()
    model = ConstrainedDensity(rules, knots=6, components=4, max_iter=30, random_state=0).fit(table)
    samples = model.sample(100_000, random_state=1)
    assert not violations(samples).any() and len(samples["price"]) == 100_000
    assert abs((samples["carrier"] == "post").mean() - (table["carrier"] == "post").mean()) < 0.05


@pytest.fixture(scope="module")
def predictor():
    pytest.importorskip("torch")
    random = np.random.default_rng(4)
    inputs = random.uniform(-1, 1, size=(1500, 1))
    walk = random.random(1500) < 1 / (1 + np.exp(-3 * inputs[:, 0]))
    outputs = {"x": np.where(walk, 2, 4) * random.random(1500), "mode": np.where(walk, "walk", "bike"), "wet": walk & False}
    settings = {"bins": 4, "components": 4, "hidden_layer_sizes": (32,), "max_iter": 30, "learning_rate": 1e-2}
    model = ConstrainedRegressor(RULES, family="histogram", random_state=0, **settings)
    return model.fit(inputs, outputs), inputs, outputs


def test_the_regressor_learns_a_known_table(predictor):
    model, inputs, outputs = predictor
    at = np.array([[-0.8], [0.0], [0.8]])
    found = [table["walk",] for table in model.predict_tables(at, "mode")]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-3 * at[:, 0])), atol=0.08)
    truth = np.where(outputs["mode"] == "walk", 1 / 2, 1 / 4)
    chance = 1 / (1 + np.exp(np.where(outputs["mode"] == "walk", -3, 3) * inputs[:, 0]))
    assert model.score(inputs, outputs) == pytest.approx(np.log(truth * chance).mean(), abs=0.05)


def test_the_regressor_answers_in_the_form_of_its_outputs(predictor):
    model, inputs, outputs = predictor
    some = inputs[:6]
    modes = model.predict(some)
    densities = model.predict_density(some)
    assert list(modes) == ["x", "mode", "wet"] and not modes["wet"].any()
    assert (model.log_prob(some, modes) > model.log_prob(some, {name: column[:6] for name, column in outputs.items()}) - 1e-9).all()
    means = model.predict(some, kind="mean")
    assert list(means) == ["x", "mode=walk", "mode=bike", "wet"]
    np.testing.assert_allclose(means["mode=walk"], [density.probability(MODE == "walk") for density in densities])
    samples = model.sample(some, 50, random_state=1)
    assert samples.shape == (6, 50, 4) and (samples == model.sample(some, 50, random_state=1)).all()
    named = model.family_.named(samples)
    assert (named["x"][named["mode"] == "walk"] <= 2).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.log_prob(inputs, outputs) == model.log_prob(inputs, outputs)).all()


def test_the_regressor_with_pandas_and_its_mistakes(predictor):
    pandas = pytest.importorskip("pandas")
    model, inputs, outputs = predictor
    frame = pandas.DataFrame(outputs).astype({"mode": "category"})
    short = clone(model).set_params(max_iter=1)
    fitted = short.fit(inputs, frame)
    predicted = fitted.predict(inputs[:3])
    assert dict(predicted.dtypes) == dict(frame.dtypes)
    assert list(fitted.predict(inputs[:3], kind="mean").columns) == ["x", "mode=walk", "mode=bike", "wet"]
    with pytest.raises(ValueError, match=r"row 2 of y, \(x = 3.5, mode = walk, wet = False\), violates"):
        short.fit(inputs[:3], {"x": [1, 1, 3.5], "mode": ["walk"] * 3, "wet": [False] * 3})
    with pytest.raises(ValueError, match="row 1 of y: `x` has no value"):
        short.fit(inputs[:3], {"x": [1, np.nan, 1], "mode": ["walk"] * 3, "wet": [False] * 3})
    with pytest.raises(ValueError, match='"kernel" has no Boolean variables'):
        clone(short).set_params(family="kernel", bins=None).fit(inputs, frame)
    with pytest.raises(ValueError, match="the constraint has none"):
        ConstrainedRegressor(x.between(0, 4), knots=4, components=1, max_iter=1).fit(inputs, outputs["x"]).predict_tables(inputs)


def test_the_loop_of_pal_torch_trains_mixed_layers():
    torch = pytest.importorskip("torch")
    constraint, inputs, targets = transport(travellers=30, seed=1)
    layer = pal.torch.MixedLayer(pal.HistogramMixture(constraint, bins=4, components=2))
    torch.manual_seed(0)
    network = torch.nn.Linear(4, layer.num_params)
    training = pal.torch.fit(network, layer, inputs / 50 - 1, targets, epochs=3, seed=1)
    assert training.scores[-1] > training.scores[0]
    wrong = targets.copy()
    wrong[3, :2] = 20, 20
    with pytest.raises(ValueError, match="1 of .* targets are outside the constraint, the first in row 3"):
        pal.torch.fit(network, layer, inputs, wrong)


def test_neither_pandas_nor_anything_else_is_imported_by_the_base_package():
    code = "import sys, pal; print([name for name in ('pandas', 'sklearn', 'torch', 'matplotlib') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    # Estimators work where there is no pandas.
    code = """
import sys
sys.modules["pandas"] = None
from pal.datasets import orders
from pal.sklearn import ConstrainedDensity
rules, table = orders(50)
print(len(ConstrainedDensity(rules, knots=3, components=1, max_iter=2).fit(table).sample(2)["price"]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


def test_tables_of_shares_are_fitted_on_their_flat():
    pandas = pytest.importorskip("pandas")
    a, b, c = pal.reals("a", "b", "c")
    shares = pal.Region((a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= "0.1"))
    frame = pandas.DataFrame(shares.sample(300, seed=1), columns=["a", "b", "c"])[["c", "a", "b"]]
    model = ConstrainedDensity(shares, knots=4, components=1, random_state=0).fit(frame)
    made = model.sample(1000, random_state=1)
    assert list(made.columns) == ["c", "a", "b"] and shares.contains(made).all()
    # Better than the uniform density, if only by fitting chance.
    assert model.score(frame) > -np.log(shares.surface_measure.value)
    with pytest.raises(ValueError, match="row 1 of X, .* violates the constraint"):
        model.fit({"a": [0.3, 0.3], "b": [0.3, 0.3], "c": [0.4, 0.3]})
