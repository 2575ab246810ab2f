"""The estimator: scikit-learn's own checks, pipelines, searches, and a likelihood that is really the largest."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import pal
from pal.sklearn import ConstrainedDensity

x, y = pal.reals("x", "y")
TRIANGLE = (x >= 0) & (y >= 0) & (x + y <= 1)
TRUTH = pal.SplineMixture(TRIANGLE, knots=3, components=1).density([0, 1, 2, 0.5, 0, 0, 0, 2, 1, 0.5, 0, 0, 0])
DATA = TRUTH.sample(800, seed=1)

CHECKED = ConstrainedDensity(family="sum-of-squares", degree=1, components=1, max_iter=5)


def name_of(case):
    return str(getattr(case[1], "func", case[1]).__name__)


@pytest.mark.parametrize("case", list(estimator_checks_generator(CHECKED)), ids=name_of)
def test_scikit_learn_checks(case):
    estimator, check = case
    check(estimator)


def test_the_fit_is_the_largest_likelihood():
    model = ConstrainedDensity(TRIANGLE, knots=3, components=1, random_state=0, max_iter=500, tol=1e-12).fit(DATA)
    assert abs(model.score(DATA) - model.log_likelihood_) < 1e-12
    assert model.log_likelihood_ > TRUTH.log_prob(DATA).mean() - 1e-6
    gradient = model.family_.log_prob_vjp(model.params_, DATA, np.full(len(DATA), 1 / len(DATA)))
    assert np.abs(gradient).max() < 1e-3
    samples = model.sample(500, random_state=1)
    assert pal.Constraint(TRIANGLE).contains(samples).all() and (samples == model.sample(500, random_state=1)).all()
    assert model.score_samples([[0.9, 0.9]])[0] == -np.inf


def test_pipelines_searches_clones_and_pickles():
    estimator = ConstrainedDensity(TRIANGLE, components=1, max_iter=30, random_state=0)
    pipeline = Pipeline([("same", FunctionTransformer()), ("density", estimator)])
    search = GridSearchCV(pipeline, {"density__knots": [2, 4]}, cv=3).fit(DATA)
    assert search.best_params_["density__knots"] in (2, 4) and np.isfinite(search.best_score_)
    model = search.best_estimator_.named_steps["density"]
    again = pickle.loads(pickle.dumps(model))
    assert (again.score_samples(DATA[:5]) == model.score_samples(DATA[:5])).all()
    fresh = clone(model).set_params(knots=3)
    assert fresh.get_params()["knots"] == 3 and not hasattr(fresh, "density_")


@pytest.mark.parametrize("kind", pal.KINDS)
def test_every_kind_of_family_is_fitted(kind):
    settings = {"knots": 3, "degree": 2, "bins": 3}
    given = {name: value for name, value in settings.items() if name in kind.options}
    model = ConstrainedDensity(TRIANGLE, family=kind.kind, components=4, random_state=0, **given).fit(DATA)
    assert type(model.family_) is kind
    # Better than the uniform density, whose log-density is log 2.
    assert model.log_likelihood_ > np.log(2) + 0.01 and model.score_samples([[0.9, 0.9]])[0] == -np.inf


def test_data_that_violate_the_constraint_are_named():
    with pytest.raises(ValueError, match="row 1 of X, .*, violates the constraint"):
        ConstrainedDensity(TRIANGLE).fit([[0.2, 0.2], [0.9, 0.9], [0.1, 0.1]])
    with pytest.raises(ValueError, match="rows of X have 3 columns, but there are 2 variables, in this order: x, y"):
        ConstrainedDensity(TRIANGLE).fit(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="families"):
        ConstrainedDensity(TRIANGLE, family="trees").fit(DATA)
    with pytest.raises(ValueError, match='"spline" has no degree; it has knots, components'):
        ConstrainedDensity(TRIANGLE, family="spline", degree=3).fit(DATA)
