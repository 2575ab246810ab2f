"""The estimator with inputs: scikit-learn's own checks, a conditional density that is known, tables, and errors."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("torch")

import torch
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import pal
from pal.sklearn import ConstrainedRegressor

x, y = pal.reals("x", "y")
# The unit square without its upper right quarter.
CORNER = x.between(0, 1) & y.between(0, 1) & ((x <= "1/2") | (y <= "1/2"))
RANDOM = np.random.default_rng(1)
INPUTS = RANDOM.uniform(size=(400, 3))
OUTPUTS = pal.Region(CORNER).sample(400, seed=1)

CHECKED = ConstrainedRegressor(knots=6, components=2, max_iter=3, hidden_layer_sizes=(8,))
SMALL = {"knots": 6, "components": 2, "hidden_layer_sizes": (16,), "random_state": 0}


def name_of(case):
    return str(getattr(case[1], "func", case[1]).__name__)


# None is left out: with a box around the outputs in place of a constraint, all checks of regressors apply. A tag says
# that the score is no coefficient of determination; a check for a good one is then not among them.
@pytest.mark.parametrize("case", list(estimator_checks_generator(CHECKED)), ids=name_of)
def test_scikit_learn_checks(case):
    estimator, check = case
    check(estimator)


def test_a_known_conditional_density_is_learned():
    """A normal density around a straight line, truncated to an interval."""
    random = np.random.default_rng(2)
    inputs = random.uniform(-1, 1, size=(4000, 1))
    truth = lambda a: stats.truncnorm((0 - 2 - a) / 0.5, (4 - 2 - a) / 0.5, loc=2 + a, scale=0.5)
    outputs = truth(inputs[:, 0]).rvs(random_state=random)
    model = ConstrainedRegressor(x.between(0, 4), knots=21, components=4, random_state=0, max_iter=30)
    model.fit(inputs[:3000], outputs[:3000])
    best = truth(inputs[3000:, 0]).logpdf(outputs[3000:]).mean()
    assert best - 0.05 < model.score(inputs[3000:], outputs[3000:]) < best + 0.02
    at = np.array([[-0.8], [0.0], [0.8]])
    assert model.predict(at).shape == (3,)
    np.testing.assert_allclose(model.predict(at), truth(at[:, 0]).mean(), atol=0.1)
    np.testing.assert_allclose(model.predict(at, kind="mode"), 2 + at[:, 0], atol=0.3)
    assert model.validation_scores_[model.best_iter_ - 1] == max(model.validation_scores_)
    # Training ended as early as it may: some epochs after the best one, or with the last.
    assert model.n_iter_ == len(model.validation_scores_) == min(model.best_iter_ + 10, 30)


def test_answers_satisfy_the_constraint_and_agree_with_each_other():
    model = ConstrainedRegressor(CORNER, max_iter=3, **SMALL).fit(INPUTS, OUTPUTS)
    samples = model.sample(INPUTS[:5], 20, random_state=1)
    assert samples.shape == (5, 20, 2) and pal.Constraint(CORNER).contains(samples).all()
    assert (samples == model.sample(INPUTS[:5], 20, random_state=1)).all()
    assert pal.Constraint(CORNER).contains(model.predict(INPUTS[:5], kind="mode")).all()
    logs = model.log_prob(INPUTS, OUTPUTS)
    assert model.score(INPUTS, OUTPUTS) == logs.mean()
    assert model.log_prob(INPUTS[:1], [[0.9, 0.9]])[0] == -np.inf
    means = model.predict(INPUTS)
    # All rows at once: networks are float32, and their rounding depends on how many rows they get.
    for row, density in enumerate(model.predict_density(INPUTS)[:3]):
        assert abs(density.log_prob(OUTPUTS[row]) - logs[row]) < 1e-9
        np.testing.assert_allclose(density.mean(), means[row], rtol=1e-9)
        assert density.probability((x > "1/2") & (y > "1/2")) == 0


def test_the_same_seed_gives_the_same_model():
    state = torch.get_rng_state()
    one, two = (ConstrainedRegressor(CORNER, max_iter=2, **SMALL).fit(INPUTS, OUTPUTS) for _ in range(2))
    assert (one.log_prob(INPUTS, OUTPUTS) == two.log_prob(INPUTS, OUTPUTS)).all()
    assert torch.equal(torch.get_rng_state(), state)
    again = pickle.loads(pickle.dumps(one))
    assert (again.log_prob(INPUTS, OUTPUTS) == one.log_prob(INPUTS, OUTPUTS)).all()
    assert not hasattr(clone(one), "network_")


def test_groups_are_set_aside_together():
    model = ConstrainedRegressor(CORNER, max_iter=1, validation_fraction=0.3, **SMALL)
    groups = np.repeat(np.arange(20), 20)
    aside = model._held_out(400, groups, np.random.RandomState(0))
    assert aside.sum() == 120 and len(np.unique(groups[aside])) == 6
    assert model._held_out(2, None, np.random.RandomState(0)).sum() == 1
    assert model.set_params(validation_fraction=0.0)._held_out(400, None, np.random.RandomState(0)).sum() == 0
    with pytest.raises(ValueError, match=r"groups need one label for each of the 400 rows; their shape is \(3,\)"):
        model.fit(INPUTS, OUTPUTS, groups=[1, 2, 3])


@pytest.mark.parametrize("kind", pal.KINDS)
def test_every_kind_of_family_is_fitted(kind):
    settings = {"knots": 5, "degree": 2, "bins": 3}
    given = {name: value for name, value in settings.items() if name in kind.options}
    model = ConstrainedRegressor(CORNER, family=kind.kind, components=2, max_iter=5, random_state=0, **given)
    model.fit(INPUTS, OUTPUTS)
    # The outputs are uniform: no density is better than -log(3/4), but for chance.
    assert type(model.family_) is kind and abs(model.score(INPUTS, OUTPUTS) + np.log(0.75)) < 0.3


def test_tables_are_taken_by_name():
    class Table(dict):
        """As much of a table of pandas as is asked for."""

        columns = property(lambda self: list(self))
        shape = property(lambda self: (400, len(self)))

        def __array__(self, dtype=None, copy=None):
            return np.stack([self[name] for name in self], -1)

    table = Table(y=OUTPUTS[:, 1], age=np.zeros(400), x=OUTPUTS[:, 0])
    model = ConstrainedRegressor(CORNER, max_iter=1, **SMALL)
    named, plain = clone(model).fit(INPUTS, table), clone(model).fit(INPUTS, OUTPUTS)
    assert named.score(INPUTS, table) == plain.score(INPUTS, OUTPUTS)
    with pytest.raises(ValueError, match="rows of y have no column `y`"):
        model.fit(INPUTS, Table(x=OUTPUTS[:, 0]))


def test_pipelines_and_searches():
    estimator = make_pipeline(StandardScaler(), ConstrainedRegressor(CORNER, max_iter=2, **SMALL))
    search = GridSearchCV(estimator, {"constrainedregressor__components": [1, 3]}, cv=2).fit(INPUTS, OUTPUTS)
    assert np.isfinite(search.best_score_) and search.predict(INPUTS[:3]).shape == (3, 2)


def test_mistakes_are_named():
    model = ConstrainedRegressor(CORNER, **SMALL)
    wrong = OUTPUTS.copy()
    wrong[[7, 9]] = 0.9
    with pytest.raises(ValueError, match=r"row 7 of y, \[0.9, 0.9\], violates the constraint, and so does another row"):
        model.fit(INPUTS, wrong)
    with pytest.raises(ValueError, match="rows of y have 1 column, but there are 2 variables, in this order: x, y"):
        model.fit(INPUTS, OUTPUTS[:, 0])
    for setting, value, message in [
        ("family", "trees", "families"),
        ("degree", 3, None),
        ("max_iter", 0, "max_iter must be at least 1, not 0"),
        ("validation_fraction", 1.0, "validation_fraction is a fraction from 0 to below 1, not 1.0"),
    ]:
        broken = clone(model).set_params(**{setting: value})
        if message is None:
            broken, message = broken.set_params(family="spline"), '"spline" has no degree; it has knots, components'
        with pytest.raises(ValueError, match=message):
            broken.fit(INPUTS, OUTPUTS)
    model.set_params(max_iter=1).fit(INPUTS, OUTPUTS)
    with pytest.raises(ValueError, match="kinds of predictions are"):
        model.predict(INPUTS, kind="median")
    with pytest.raises(ValueError, match="X has 3 rows, but y has 400"):
        model.score(INPUTS[:3], OUTPUTS)
