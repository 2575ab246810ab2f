"""Operators, exact constants, files and foreign formulas."""

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import pal

x, y = pal.reals("x", "y")
a, b = pal.booleans("a", "b")


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        (3, Fraction(3)),
        (-(10**5000), Fraction(-(10**5000))),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.1"), Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" -1/3 ", Fraction(-1, 3)),
        (0.1, Fraction(0.1)),
        (np.float64(0.1), Fraction(0.1)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.int64(7), Fraction(7)),
        (np.uint8(255), Fraction(255)),
    ],
    # Python refuses to print the long one.
    ids=lambda value: type(value).__name__,
)
def test_constants_are_exact(constant, value):
    assert pal.rational(constant) == value
    assert (x + constant).constant == value
    assert (constant - x if not isinstance(constant, str) else -x + constant).constant == value
    formula = pal.Constraint(x <= constant) if abs(value) < 10**300 else None
    if formula:
        near = float(value)
        assert bool(formula.contains([near])) == (Fraction(near) <= value)


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), "one", "1/0", "", Decimal("NaN"), Decimal("1e999999999"), np.float32("nan")]
)
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(pal.NumberError):
        pal.rational(bad)


@pytest.mark.parametrize("bad", [True, None, 1j, [1], object(), np.array([1.0, 2.0])])
def test_what_is_of_no_use_in_arithmetic_is_a_type_error(bad):
    with pytest.raises(TypeError):
        pal.rational(bad)
    with pytest.raises(TypeError):
        x + bad


def test_terms_are_linear_and_products_are_polynomials():
    term = 2 * x - (y + 3) / 4 + x * Fraction(1, 2)
    assert term.coefficients == {"x": Fraction(5, 2), "y": Fraction(-1, 4)} and term.constant == Fraction(-3, 4)
    product = (x + y) * (x - y) + 1
    assert product == x**2 - y**2 + 1 and product.degree == 2
    assert product.terms() == {(0, 0): 1, (2, 0): 1, (0, 2): -1}
    assert product.value({"x": "1/2", "y": 2}) == Fraction(1, 4) - 4 + 1
    assert pal.Polynomial("x^2 - y^2 + 1") == product and hash(pal.Polynomial("x^2 - y^2 + 1")) == hash(product)
    with pytest.raises(TypeError, match="linear"):
        x * y <= 1
    with pytest.raises(ZeroDivisionError):
        x / 0
    with pytest.raises(TypeError, match="natural"):
        x**-1


def test_every_operator_means_what_it_says():
    grid = np.array([[i / 2, j / 2] for i in range(-4, 5) for j in range(-4, 5)])
    X, Y = grid.T
    cases = [
        (x <= y, X <= Y), (x < y, X < Y), (x >= y, X >= Y), (x > y, X > Y), (x == y, X == Y), (x != y, X != Y),
        (1 <= x + 0 * y, X >= 1), (np.float64(1) < x, X > 1), (x.between(y, 1), (Y <= X) & (X <= 1)),
        ((x <= 0) & (y <= 0), (X <= 0) & (Y <= 0)), ((x <= 0) | (y <= 0), (X <= 0) | (Y <= 0)),
        ((x <= 0) ^ (y <= 0), (X <= 0) ^ (Y <= 0)), (~(x <= 0), X > 0), ((x <= 0) == (y <= 0), (X <= 0) == (Y <= 0)),
        ((x <= 0) != (y <= 0), (X <= 0) != (Y <= 0)), (pal.implies(x <= 0, y <= 0), ~(X <= 0) | (Y <= 0)),
        (pal.ite(x <= 0, y <= 0, y >= 1), np.where(X <= 0, Y <= 0, Y >= 1)),
        (True & (x <= 0), X <= 0), ((x <= 0) | True, X == X),
        (pal.all_of([x <= 1, y <= 1]), (X <= 1) & (Y <= 1)), (pal.any_of([]), X != X),
        (pal.all_of(x <= 1, y <= 1), (X <= 1) & (Y <= 1)), (pal.all_of(x <= 1), X <= 1),
        (pal.any_of(x <= 0, [y <= 0], (v >= 1 for v in (x, y))), (X <= 0) | (Y <= 0) | (X >= 1) | (Y >= 1)),
        (pal.any_of(x <= 0, np.bool_(False), True), X == X),
    ]  # fmt: skip
    for formula, wanted in cases:
        got = pal.Constraint(formula, variables=["x", "y"]).contains(grid)
        assert (got == wanted).all(), formula


def test_truth_of_a_formula_is_not_a_bool():
    with pytest.raises(TypeError, match="&"):
        0 <= x <= 1  # noqa: B015
    with pytest.raises(TypeError):
        (x <= 0) and (y <= 0)
    with pytest.raises(TypeError):
        bool(x)
    with pytest.raises(TypeError):
        {x: 1}
    assert bool(pal.all_of([])) and not bool(pal.any_of([]))
    assert bool(pal.all_of()) and not bool(pal.any_of())
    with pytest.raises(TypeError):
        pal.all_of(x <= 1, 3)


def test_formulas_survive_pickle_and_copies():
    phi = (2 * x < "1/3") & (a ^ (y >= 0.1))
    for again in (pickle.loads(pickle.dumps(phi)), copy.deepcopy(phi), copy.copy(phi)):
        assert repr(again) == repr(phi)
    term = x - y / 3 + 2
    assert repr(pickle.loads(pickle.dumps(term))) == "x - 1/3*y + 2"
    p = x**3 * y - "1/7"
    assert pickle.loads(pickle.dumps(p)) == p
    constraint = pal.Constraint(x <= y, variables=["y", "x"], booleans=["b"])
    again = pickle.loads(pickle.dumps(constraint))
    assert again.variables == ("y", "x") and again.booleans == ("b",)
    assert repr(again.formula) == repr(constraint.formula)


def test_points_of_every_kind():
    square = pal.Constraint((x > 0) & (x < 1) & (y > 0) & (y < 1))
    grid = np.random.default_rng(0).uniform(-1, 2, (6, 4))
    want = ((grid > 0) & (grid < 1))
    assert (square.contains(grid[:, :2]) == want[:, :2].all(1)).all()
    assert (square.contains(grid[::2, ::2]) == want[::2, ::2].all(1)).all()
    assert (square.contains(np.asfortranarray(grid[:, 1:3])) == want[:, 1:3].all(1)).all()
    assert square.contains(grid.reshape(3, 4, 2)).shape == (3, 4)
    assert square.contains(np.float32([[0.5, 0.5]])).tolist() == [True]
    assert square.contains([[0, 1]]).tolist() == [False]
    assert square.contains(np.empty((0, 2))).shape == (0,)
    assert square.contains([[np.nan, 0.5], [np.inf, 0.5], [0.5, 0.5]]).tolist() == [False, False, True]
    readonly = grid[:, :2].copy()
    readonly.flags.writeable = False
    assert (square.contains(readonly) == want[:, :2].all(1)).all()
    for bad in ([0.5], 0.5, [[0.5, 0.5, 0.5]], np.empty((0,))):
        with pytest.raises(ValueError, match="but there are 2 variables, in this order: x, y"):
            square.contains(bad)
    for bad in ([["a", "b"]], [[1j, 0]], [[None, 1.0]]):
        with pytest.raises(TypeError):
            square.contains(bad)
    with pytest.raises(ValueError, match="2\\*\\*53"):
        square.contains(np.array([[2**53 + 1, 0]]))
    assert square.contains(np.array([[2**60, 0]])).tolist() == [False]


def test_text_errors_name_the_place():
    with pytest.raises(pal.ParseError, match="did you mean `width`") as caught:
        pal.parse_smtlib("(declare-const width Real)\n(assert (< widht 1))")
    assert (caught.value.line, caught.value.column) == (2, 12)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, pal.Error)
    with pytest.raises(pal.ParseError, match="column 6"):
        pal.Polynomial("x + 2y")
    with pytest.raises(pal.ParseError) as caught:
        pal.parse_geojson("{\n  no json")
    assert caught.value.line == 2
    with pytest.raises(ValueError, match="walkable"):
        pal.parse_geojson("{}", meaning="lava")


def test_geojson_files_and_smtlib_round_trip(tmp_path):
    text = '{"type": "Polygon", "coordinates": [[[0.1, 0], [1, 0], [1, 1], [0.1, 1], [0.1, 0]]]}'
    (tmp_path / "map.geojson").write_text(text)
    walkable = pal.read_geojson(tmp_path / "map.geojson", meaning="walkable")
    assert pal.Region(walkable).exact_volume == Fraction(9, 10)
    forbidden = pal.read_geojson(tmp_path / "map.geojson", bounds=[0, 0, 2, "3/2"])
    assert pal.Region(forbidden).exact_volume == 3 - Fraction(9, 10)
    (tmp_path / "phi.smt2").write_text(forbidden.to_smtlib())
    assert pal.Region(pal.read_smtlib(tmp_path / "phi.smt2")).exact_volume == 3 - Fraction(9, 10)
    assert repr(forbidden.parse("(<= (* 2 x) 1)")) == "2*x <= 1"


def test_shapely_polygons():
    shapely = pytest.importorskip("shapely")
    outer = [(0, 0), (4, 0), (4, 3), (2, 1), (0, 3)]
    hole = [(0.5, 0.5), (1, 0.5), (1, 1), (0.5, 1)]
    shape = shapely.Polygon(outer, [hole])
    region = pal.Region(pal.from_shapely(shape))
    assert region.exact_volume == Fraction(shape.area)
    points = np.random.default_rng(1).uniform(-0.5, 4.5, (2000, 2))
    assert (region.contains(points) == shapely.covers(shape, shapely.points(points))).all()
    two = shapely.MultiPolygon([shape, shapely.box(10, 10, 11, 12)])
    assert pal.Region(pal.from_shapely(two, variables=("u", "v"))).exact_volume == Fraction(two.area)
    with pytest.raises(TypeError, match="LineString"):
        pal.from_shapely(shapely.LineString([(0, 0), (1, 1)]))


def test_pysmt_formulas():
    shortcuts = pytest.importorskip("pysmt.shortcuts")
    from pysmt.typing import INT, REAL

    u, v = shortcuts.Symbol("u", REAL), shortcuts.Symbol("my v", REAL)
    p = shortcuts.Symbol("p")
    phi = shortcuts.And(
        shortcuts.LE(shortcuts.Real(0), u), shortcuts.LE(u, shortcuts.Real(Fraction(1, 3))),
        shortcuts.GE(v, shortcuts.Real(0)),
        shortcuts.LT(shortcuts.Plus(u, v), shortcuts.Real(1)), shortcuts.Implies(p, shortcuts.GE(v, u)),
    )  # fmt: skip
    converted = pal.from_pysmt(phi)
    assert sorted(converted.reals) == ["my v", "u"] and converted.booleans == ["p"]
    # With p false the area under 1 - u, with p true the part above the diagonal.
    area = Fraction(1, 3) - Fraction(1, 18)
    assert pal.Region(converted).exact_volume == area + area - Fraction(1, 18)
    with pytest.raises(TypeError, match="INT|Int"):
        pal.from_pysmt(shortcuts.LE(shortcuts.Symbol("k", INT), shortcuts.Int(1)))
    with pytest.raises(TypeError, match="pysmt"):
        pal.from_pysmt("u <= 1")
