"""The order of variables is that of their declaration, and whatever has names is taken by name."""

import copy
import pickle
from collections import UserDict

import numpy as np
import pytest

import pal

INSIDE, SWAPPED = [20.0, 3.0], [3.0, 20.0]


def safe():
    """A formula whose text and names would both put `gap` first."""
    speed, gap = pal.reals("speed", "gap")
    return gap.between(2, 9) & (gap + speed >= 0) & speed.between(0, 30)


class Table:
    """As much of a table as is asked for: columns by name, and an array. Stands in for pandas, polars and the like."""

    def __init__(self, data):
        self._data = data

    @property
    def columns(self):
        return list(self._data)

    def __getitem__(self, name):
        return self._data[name]

    def __array__(self, dtype=None, copy=None):
        return np.stack([np.asarray(column) for column in self._data.values()], -1).astype(dtype or float)

    def __len__(self):
        return len(next(iter(self._data.values())))


TABLE = {"gap": [3.0, 20.0], "age": [1.0, 2.0], "speed": [20.0, 3.0]}


def family():
    return pal.SplineMixture(pal.Region(safe()), knots=3, components=1)


def density():
    return family().density(family().random_params(seed=1))


def test_variables_are_in_order_of_declaration():
    formula = safe()
    assert formula.reals == ["speed", "gap"]
    assert pal.Constraint(formula).variables == ("speed", "gap")
    region = pal.Region(formula)
    assert region.variables == ("speed", "gap")
    assert region.bounding_box == [(0, 30), (2, 9)]
    assert region.contains([INSIDE, SWAPPED]).tolist() == [True, False]
    names = [f"x{k}" for k in range(1, 12)]
    box = pal.all_of(x.between(0, 1) for x in reversed(pal.reals(*names)))
    assert list(pal.Region(box).variables) == names
    b, a = pal.booleans("b", "a")
    assert pal.Constraint(a & b).booleans == ("b", "a")


def test_the_earliest_declaration_counts():
    x, y = pal.reals("x", "y")
    before = (x <= 1) & (y <= 1)
    y, x = pal.reals("y", "x")
    after = (x <= 1) & (y <= 1)
    assert before.reals == ["x", "y"] and after.reals == ["y", "x"]
    assert (before & after).reals == (after & before).reals == ["x", "y"]
    # A condition that declares a variable anew does not swap columns.
    (again,) = pal.reals("y")
    assert pal.Region(after & (again >= 0) & (x >= 0)).variables == ("y", "x")
    # What was made before is as it was.
    assert pal.Region(before).variables == ("x", "y")


def test_dicts_declare_in_their_order():
    term = pal.Term({"speed": 2, "gap": 1}, 1)
    assert (term <= 3).reals == ["speed", "gap"] and list(term.coefficients) == ["speed", "gap"]
    assert str(term) == "gap + 2*speed + 1"


def test_files_and_texts_keep_the_order():
    script = "(declare-const speed Real) (declare-fun gap () Real) (assert (and (<= 2 gap 9) (<= 0 speed 30)))"
    constraint = pal.parse_smtlib(script)
    assert constraint.variables == ("speed", "gap") and constraint.formula.reals == ["speed", "gap"]
    assert constraint.parse("(< gap speed)").reals == ["speed", "gap"]
    assert pal.parse_smtlib(constraint.to_smtlib()).variables == ("speed", "gap")
    square = '{"type": "Polygon", "coordinates": [[[1, 10], [2, 10], [2, 20], [1, 20], [1, 10]]]}'
    assert pal.parse_geojson(square, bounds=[0, 0, 3, 30]).variables == ("x", "y")
    assert pal.polygon([(0, 0), (1, 0), (0, 5)], variables=("y", "x")).reals == ["y", "x"]


def test_another_order_can_be_given():
    order = ["gap", "speed"]
    region = pal.Region(pal.Constraint(safe()), variables=order)
    for made in (pal.Constraint(safe(), variables=order), pal.Region(safe(), variables=order), region):
        assert made.variables == ("gap", "speed")
        assert made.contains([INSIDE, SWAPPED]).tolist() == [False, True]
    swapped = pal.SplineMixture(pal.Region(safe(), variables=order), knots=3, components=1)
    assert swapped.variables == ("gap", "speed")
    constraint = pal.Constraint(safe())
    with pytest.raises(pal.RegionError, match="`gap` is missing"):
        pal.Region(safe(), variables=["speed"])
    with pytest.raises(pal.RegionError, match="`gap` occurs twice"):
        pal.Constraint(safe(), variables=["gap", "speed", "gap"])
    message = "`sped` is not a real variable of the constraint; its variables are, in this order: speed, gap"
    with pytest.raises(pal.RegionError, match=message):
        pal.Region(constraint, variables=["gap", "speed", "sped"])


def test_the_order_is_shown():
    assert repr(pal.Constraint(safe())).startswith("Constraint(speed, gap: ")
    b, a = pal.booleans("b", "a")
    assert repr(pal.Constraint(safe() & (a | b))).startswith("Constraint(speed, gap; b, a: ")
    assert repr(pal.Region(safe())).startswith("Region(speed, gap: ")
    assert repr(family()).startswith("SplineMixture(speed, gap; ")
    assert repr(density()).startswith("Density(speed, gap: ")


@pytest.mark.parametrize("ask", [pal.Constraint(safe()).contains, pal.Region(safe()).contains, density().log_prob])
def test_shapes_that_do_not_fit_name_the_order(ask):
    with pytest.raises(ValueError, match="points have 3 columns, but there are 2 variables, in this order: speed, gap"):
        ask([[1, 2, 3]])
    message = "points are a single number, but there are 2 variables, in this order: speed, gap"
    with pytest.raises(ValueError, match=message):
        ask(1.0)


def test_densities_have_their_columns_in_order():
    made = density()
    assert made.variables == ("speed", "gap")
    assert np.isfinite(made.log_prob(INSIDE)) and np.isneginf(made.log_prob(SWAPPED))
    samples = made.sample(200, seed=1)
    speeds, gaps = samples.T
    assert (speeds <= 30).all() and (speeds > 9).any() and (2 <= gaps).all() and (gaps <= 9).all()
    assert (pal.Region(safe()).sample(100, seed=1)[:, 1] <= 9).all()
    assert made.mean()[0] > 9 or made.marginal("speed").support == (0.0, 30.0)
    assert made.given(gap=3.0).variables == ("speed",)


@pytest.mark.parametrize("wrap", [dict, UserDict, Table])
def test_points_by_name(wrap):
    points = wrap(TABLE)
    in_order = np.array([[20.0, 3.0], [3.0, 20.0]])
    for made in (pal.Constraint(safe()), pal.Region(safe()), pal.Region(safe(), variables=["gap", "speed"])):
        assert made.contains(points).tolist() == [True, False]
    made = density()
    assert (made.log_prob(points) == made.log_prob(in_order)).all()
    params = family().random_params(seed=1)
    assert (family().log_prob(params, points) == made.log_prob(in_order)).all()
    gradients = [family().log_prob_vjp(params, value, [1.0, 0.0]) for value in (points, in_order)]
    assert (gradients[0] == gradients[1]).all()
    assert (made.marginal_density(["gap", "speed"], points) == made.marginal_density(["speed", "gap"], in_order)).all()
    message = "no column `gap`; their columns are age, speed, and the variables are, in this order: speed, gap"
    with pytest.raises(ValueError, match=message):
        made.log_prob(wrap({name: TABLE[name] for name in ("age", "speed")}))


def test_one_point_and_grids_by_name():
    made = density()
    assert made.log_prob({"gap": 3.0, "speed": 20.0}) == made.log_prob(INSIDE)
    grid = {"gap": np.array([[3.0], [4.0]]), "speed": np.array([1.0, 2.0, 3.0])}
    assert made.log_prob(grid).shape == (2, 3) and made.log_prob(grid)[1, 2] == made.log_prob([3.0, 4.0])
    with pytest.raises(ValueError, match="do not have the same shape"):
        made.log_prob({"gap": [1.0, 2.0], "speed": [1.0, 2.0, 3.0]})


def test_arrays_with_fields_are_taken_by_name():
    points = np.array([(3.0, 20.0)], dtype=[("gap", float), ("speed", float)])
    assert pal.Region(safe()).contains(points).tolist() == [True]


def test_tables_with_numbered_columns_have_no_names():
    assert pal.Region(safe()).contains(Table({0: [20.0], 1: [3.0]})).tolist() == [True]


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    region = pal.Region(safe())
    assert region.contains(frame).tolist() == [True, False]
    assert region.contains(frame.iloc[0]).tolist() is True
    assert region.contains(pandas.DataFrame([INSIDE])).tolist() == [True]


def test_what_is_saved_comes_back_in_order(tmp_path):
    other = pal.Constraint(safe(), variables=["gap", "speed"])
    for made in (safe(), pal.Constraint(safe()), pal.Region(safe()), other):
        names = getattr(made, "variables", None) or tuple(made.reals)
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert (getattr(again, "variables", None) or tuple(again.reals)) == names
    speed, gap = pal.reals("speed", "gap")
    term = pickle.loads(pickle.dumps(gap + 2 * speed))
    assert (term <= 1).reals == ["speed", "gap"]
    polynomial = pickle.loads(pickle.dumps(gap**2 * speed))
    assert polynomial.variables == ["speed", "gap"] and polynomial.terms() == {(1, 2): 1}
    for order in (["speed", "gap"], ["gap", "speed"]):
        made = pal.SplineMixture(pal.Region(safe(), variables=order), knots=3, components=1)
        params = made.random_params(seed=1)
        made.save(tmp_path / "model.safetensors", params)
        back, rows = pal.load(tmp_path / "model.safetensors")
        assert list(back.variables) == order == list(pickle.loads(pickle.dumps(made)).variables)
        point = [20.0, 3.0] if order[0] == "speed" else [3.0, 20.0]
        assert back.log_prob(rows[0], point) == made.log_prob(params, point) > -np.inf


def test_polynomials_follow_the_order_of_declaration():
    speed, gap = pal.reals("speed", "gap")
    polynomial = gap**2 * speed
    assert polynomial.variables == ["speed", "gap"] and polynomial.terms() == {(1, 2): 1}
    assert pal.Polynomial("gap^2*speed").variables == ["gap", "speed"]
    # 30^2 / 2 * (9^3 - 2^3) / 3, whatever the order.
    for order in (None, ["gap", "speed"]):
        assert pal.integrate(pal.Region(safe(), variables=order), polynomial) == 108150
        assert pal.integrate(pal.Region(safe(), variables=order), "gap^2*speed") == 108150
    exponents, values, _ = pal.moments(pal.Region(safe()), 1)
    found = {tuple(e): value for e, value in zip(exponents.tolist(), values)}
    assert found[1, 0] == pytest.approx(30**2 / 2 * 7) and found[0, 1] == pytest.approx(30 * (81 - 4) / 2)


def test_wmi_files_have_the_order_of_their_domain():
    domain = '{"reals": {"speed": [0, 30], "gap": [2, 9]}}'
    problem = f'{{"domain": {domain}, "support": "true", "weight": "(* speed speed gap)"}}'
    assert pal.wmi(problem).total == 346500


def test_formulas_of_pysmt_have_the_order_in_which_symbols_were_made():
    shortcuts = pytest.importorskip("pysmt.shortcuts")
    typing = pytest.importorskip("pysmt.typing")
    speed, gap = (shortcuts.Symbol(f"{name}_of_this_test", typing.REAL) for name in ("speed", "gap"))
    formula = shortcuts.And(shortcuts.LE(gap, shortcuts.Real(1)), shortcuts.LE(speed, gap))
    assert pal.from_pysmt(formula).reals == ["speed_of_this_test", "gap_of_this_test"]


def test_torch_layers():
    torch = pytest.importorskip("torch")
    import pal.torch

    layer = pal.torch.SplineLayer(pal.Region(safe()), knots=3, components=1, head="values")
    assert "speed, gap" in repr(layer)
    params = torch.from_numpy(layer.family.random_params(seed=1)).requires_grad_()
    distribution = layer(params)
    assert repr(distribution).startswith("ConstrainedDistribution(speed, gap; ")
    logs = distribution.log_prob(torch.tensor([INSIDE, SWAPPED]))
    assert logs.isfinite().tolist() == [True, False]
    named = {"gap": torch.tensor([3.0, 20.0]), "age": torch.zeros(2), "speed": torch.tensor([20.0, 3.0])}
    assert torch.equal(distribution.log_prob(named), logs)
    assert torch.equal(distribution.cdf(named), distribution.cdf(torch.tensor([INSIDE, SWAPPED])))
    (gradient,) = torch.autograd.grad(distribution.log_prob(named)[0], params)
    assert gradient.isfinite().all() and gradient.abs().sum() > 0
    assert (distribution.sample((100,))[:, 1] <= 9).all()
    with pytest.raises(ValueError, match="points have 3 columns, but there are 2 variables, in this order: speed, gap"):
        distribution.log_prob(torch.zeros(5, 3))
    with pytest.raises(ValueError, match="points have no column `gap`"):
        distribution.log_prob({"speed": torch.zeros(5)})


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from pal.sklearn import ConstrainedDensity

    rows = pal.Region(safe()).sample(50, seed=1)
    model = ConstrainedDensity(safe(), knots=3, components=1, max_iter=5, random_state=0).fit(rows)
    assert model.density_.variables == ("speed", "gap")
    table = Table({"gap": rows[:, 1], "age": rows[:, 0], "speed": rows[:, 0]})
    by_name = ConstrainedDensity(safe(), knots=3, components=1, max_iter=5, random_state=0).fit(table)
    assert (by_name.params_ == model.params_).all()
    assert (by_name.score_samples(table) == model.score_samples(rows)).all()
    assert (model.sample(50, random_state=1)[:, 1] <= 9).all()
    message = "rows of X have 3 columns, but there are 2 variables, in this order: speed, gap"
    with pytest.raises(ValueError, match=message):
        ConstrainedDensity(safe()).fit(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="rows of X have no column `gap`"):
        ConstrainedDensity(safe()).fit(Table({"speed": [1.0, 2.0]}))
