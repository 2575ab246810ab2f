"""What a new user tries first, and used to stumble over."""

import copy
import os
import pickle
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

import pal
from pal.torch import SplineLayer

x, y = pal.reals("x", "y")
TRIANGLE = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1))
DATA = Path(__file__).parent / "data"


def test_modules_are_there_without_a_further_import():
    code = "import pal, sys; assert 'torch' not in sys.modules; pal.torch.SplineLayer; pal.plot.region; pal.sklearn"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        pal.tensorflow
    assert {"torch", "plot"} <= set(dir(pal))


def test_absolute_values_minima_and_maxima():
    diamond = pal.Region(abs(x) + abs(y) <= 1)
    # Convex: no cut along the axes, and the area of a square with diagonals of 2.
    assert diamond.exact_volume == 2 and len(diamond.cells) == 1
    corner = pal.Region((pal.minimum(x, y) >= 0) & (pal.maximum(x, 2 * y, "1/2") <= 1))
    assert corner.exact_volume == Fraction(1, 2)
    points = np.random.default_rng(1).uniform(-2, 2, (1000, 2))
    a, b = points.T
    formula = 2 * abs(x - y) - pal.minimum(x, 3, y + 1) / 2 > pal.maximum(1, x)
    expected = 2 * np.abs(a - b) - np.minimum(np.minimum(a, 3), b + 1) / 2 > np.maximum(1, a)
    assert (pal.Constraint(formula, ["x", "y"]).contains(points) == expected).all() and 0 < expected.sum() < 1000
    assert repr(pickle.loads(pickle.dumps(abs(x) - pal.minimum(x, y)))) == repr(abs(x) - pal.minimum(x, y))
    assert pal.Region(abs(abs(x) - 1).between(0, 1)).exact_volume == 4
    with pytest.raises(pal.PolynomialError, match="linear pieces"):
        sum([abs(x)] * 20)


def test_matrices_times_variables():
    A, b = np.array([[1, 1], [-1, 0], [0, -1]]), np.array([1, 0, 0])
    for matrix in (A, A.tolist(), torch.from_numpy(A).double()):
        matrix = np.array(matrix) if isinstance(matrix, list) else matrix
        assert pal.Region(matrix @ pal.reals("x", "y") <= b).exact_volume == Fraction(1, 2)
    exact = np.array([[Fraction(1, 3), 0], [0, 1]], dtype=object) @ pal.reals("x", "y")
    assert pal.Region((exact <= 1) & (exact >= [0, 0])).exact_volume == 3
    assert repr(exact - 1) == "[1/3*x - 1, y - 1]" and len(exact) == 2
    with pytest.raises(ValueError, match="a matrix with 2 columns fits.*3 x 3"):
        np.eye(3) @ pal.reals("x", "y")
    with pytest.raises(ValueError, match="3 terms are compared with 2 entries"):
        A @ pal.reals("x", "y") <= [1, 2]


def test_constraints_have_the_connectives_of_formulas():
    z = pal.real("z")
    square = pal.Constraint(x.between(0, 1) & y.between(0, 1), variables=["y", "x"])
    half = pal.Constraint(x + y <= 1)
    assert (square & half).variables == ("y", "x") and pal.Region(square & half).exact_volume == Fraction(1, 2)
    assert (square & (z <= 1)).variables == ("y", "x", "z") == ((z <= 1) & square).variables
    assert pal.Region((square | half) & x.between(0, 2) & y.between(0, 2)).exact_volume == 1
    assert pal.Region(~half & square).exact_volume == Fraction(1, 2)
    assert pal.Region(((x >= 3) | square) & (x <= 2)).exact_volume == 1
    with pytest.raises(TypeError):
        square & "x <= 1"


def test_numbers_of_torch_and_numpy_in_terms():
    for half in (torch.tensor(0.5), torch.tensor(0.5, dtype=torch.bfloat16), np.array(0.5), np.float32(0.5)):
        for formula in (x <= half, half >= x, half * x <= "1/4", x / half <= 1):
            assert repr(formula) == "2*x <= 1"
    assert repr(x <= torch.tensor(3)) == "x <= 3"
    with pytest.raises(TypeError, match="no derivatives with respect to them"):
        x <= torch.tensor(0.5, requires_grad=True)
    with pytest.raises(TypeError):
        x <= torch.tensor([0.5, 0.25])


def test_everything_can_be_pickled_and_copied():
    family = pal.SplineMixture(TRIANGLE, knots=5, components=2)
    params = family.random_params(2, seed=1)
    density = family.density(params[0])
    points = TRIANGLE.sample(50, seed=1)
    made = [
        density, density.condition(x <= y), family.densities(params)[1], family.condition(x <= y, params)[1],
        density.condition(x <= "1/2").condition(y <= "1/3"),
    ]  # fmt: skip
    for one in made:
        for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
            assert (other.log_prob(points) == one.log_prob(points)).all()
    for one in (density.given(y=0.25), family.given({"y": 0.25}, params)[1], family.given(params=params, y=0.25)[0]):
        other = pickle.loads(pickle.dumps(one))
        assert (other.log_prob(points[:, :1]) == one.log_prob(points[:, :1])).all()
    for one in (density.marginal("x"), family.marginal("y", params)[1], density.given(y=0.25).marginal("x")):
        other = pickle.loads(pickle.dumps(one))
        assert (other.polyline() == one.polyline()).all() and copy.deepcopy(one) is one
    split = TRIANGLE.with_knots([["0", "1/2", "1"], ["0", "1"]])
    cell = split.cells[-1]
    assert pickle.loads(pickle.dumps(cell)).exact_vertices == cell.exact_vertices
    assert len(pickle.loads(pickle.dumps(split)).cells) == len(split.cells) > len(TRIANGLE.cells)
    uniform = TRIANGLE._uniform
    assert pickle.loads(pickle.dumps(uniform)).mean().tolist() == uniform.mean().tolist()


def test_one_name_for_one_question():
    layer = SplineLayer(TRIANGLE, knots=5, components=2)
    p = layer(torch.randn(3, layer.num_params))
    by_name, by_dict = p.given(y=0.25), p.given({"y": 0.25})
    assert [d.mean().tolist() for d in by_name] == [d.mean().tolist() for d in by_dict]
    assert p.given(y=torch.full((3,), 0.25)).covariance_matrix.shape == (3, 1, 1)
    assert torch.equal(p.covariance_matrix, p.covariance) and p.covariance_matrix.shape == (3, 2, 2)


def test_knots_for_each_variable():
    box = pal.Region(x.between(0, 7) & y.between(1, 10))
    family = pal.SplineMixture(box, knots=(8, 10), components=1)
    assert [len(axis) for axis in family.edges] == [8, 10]
    assert family.edges[0].tolist() == list(range(8)) and family.edges[1].tolist() == list(range(1, 11))
    same = pal.SplineMixture(box, knots=8, components=1)
    other = pal.SplineMixture(box, knots=[8, 8], components=1)
    params = same.random_params(seed=1)
    assert np.allclose(same.log_prob(params, box.sample(20, 1)), other.log_prob(params, box.sample(20, 1)), atol=1e-12)
    assert [len(axis) - 1 for axis in pal.HistogramMixture(box, bins=(3, 4)).edges] == [3, 4]
    with pytest.raises(ValueError, match="there are 3 entries for 2 variables: x, y"):
        pal.SplineMixture(box, knots=(8, 10, 12))
    with pytest.raises(ValueError, match="not a mixture"):
        pal.SplineMixture(box, knots=(8, [1, 2]))
    with pytest.raises(ValueError, match="at least 2"):
        pal.SplineMixture(box, knots=(8, 1))


def test_points_and_events_of_other_types():
    layer = SplineLayer(TRIANGLE, knots=5, components=2)
    outputs = torch.randn(3, layer.num_params, dtype=torch.float64)
    p, points = layer(outputs), TRIANGLE.sample(3, seed=1)
    expected = p.log_prob(torch.from_numpy(points))
    assert torch.equal(p.log_prob(points), expected) and torch.equal(p.log_prob(points.tolist()), expected)
    assert torch.equal(p.log_prob({"y": points[:, 1], "x": points[:, 0]}), expected)
    with pytest.raises(TypeError, match="must be a tensor"):
        layer(outputs.numpy())
    with pytest.raises(TypeError, match="points must be an array of numbers"):
        p.log_prob(["a", "b"])
    density = p.densities()[0]
    for ask in (p.probability, p.condition, density.probability, density.condition):
        with pytest.raises(TypeError, match=r"must be a formula such as x <= 1, not str.*constraint\.parse"):
            ask("x <= 1")


def test_mistakes_of_beginners_are_told_what_would_work():
    family = pal.SplineMixture(TRIANGLE, knots=4, components=1)
    layer = SplineLayer(TRIANGLE, knots=5, components=2)
    p, inputs, targets = layer(torch.zeros(5, layer.num_params)), np.zeros((5, 3)), TRIANGLE.sample(5, seed=1)
    network = torch.nn.Linear(3, layer.num_params)
    density = family.density(family.random_params(seed=1))
    for ask, error, message in [
        (lambda: pal.reals("x y"), ValueError, r'pal\.reals\("x", "y"\)'),
        (lambda: pal.reals("x, y"), ValueError, r'pal\.reals\("x", "y"\)'),
        (lambda: pal.reals(["x", "y"]), TypeError, r"pal\.reals\(\*names\)"),
        (lambda: x**2 + y**2 <= 1, TypeError, r"x\^2 \+ y\^2 is not; a curve.*pal\.polygon"),
        (lambda: y <= x * y, TypeError, r"x\*y is not; a curve"),
        (lambda: max(x, y), TypeError, r"pal\.maximum\(x, y\) instead of max"),
        (lambda: pal.Region([x <= 1, y <= 1]), TypeError, r"pal\.all_of"),
        (lambda: pal.Region("(<= x 1)"), TypeError, r"pal\.parse_smtlib"),
        (lambda: pal.polygon([(0, 0, 1), (1, 0, 1), (0, 1, 1)]), ValueError, r"corner 0 is \(0, 0, 1\)"),
        (lambda: pal.polygon("abc"), ValueError, "corner 0 is 'a'"),
        (lambda: p.log_prob(torch.zeros(4, 2)), ValueError, "points of shape 4 x 2 do not fit a batch of 5 densities"),
        (lambda: density.given(x="a"), TypeError, "the value of `x` must be a number, not 'a'"),
        (lambda: p.probability(pal.real("z") <= 1), pal.RegionError, "`z`, which is not one of the variables"),
        (lambda: TRIANGLE.contains([["0.1", "0.2"]]), TypeError, "points must be an array of numbers, not of text"),
        (lambda: TRIANGLE.contains({"x": np.array([0.1, "a"], object), "y": 0}), TypeError, "`x` .* 'a' is not a number"),
        (lambda: TRIANGLE.contains({"X": 0, "y": 0}), ValueError, "no column `x`.* did you mean `X`?"),
        (lambda: pal.torch.fit(layer, network, inputs, targets), TypeError, "the second argument is a layer"),
        (lambda: pal.torch.fit(network, layer, inputs * np.nan, targets), ValueError, "in 5 of 5 rows, the first in row 0"),
        (lambda: pal.torch.fit(network, layer, inputs, 2 + targets), ValueError, "The columns are, in this order: x, y"),
    ]:
        with pytest.raises(error, match=message):
            ask()
    with pytest.raises(AttributeError) as failed:
        pal.Regon
    # What the interpreter makes a suggestion from.
    assert failed.value.name == "Regon" and failed.value.obj is pal
    half = torch.tensor([[0.25, 0.25]], dtype=torch.bfloat16, requires_grad=True)
    assert TRIANGLE.contains(half).all()


def test_plots_of_something_else():
    layer = SplineLayer(TRIANGLE, knots=5, components=2)
    p = layer(torch.randn(3, layer.num_params))
    with pytest.raises(ValueError, match="there are 3"):
        pal.plot.density(p)
    with pytest.raises(TypeError, match="not ndarray"):
        pal.plot.density(np.zeros(3))
    with pytest.raises(TypeError, match="a region is drawn"):
        pal.plot.region(x <= 1)
    assert pal.plot.density(layer(torch.zeros(layer.num_params))).get_xlabel() == "x"


def test_messages_speak_python():
    assert repr(0.1 * x + 0.3 * y <= 0.7) == "0.1*x + 0.3*y <= 0.7"
    text = repr(pal.polygon([(0.1, 0.2), (0.7, 0.33), (0.5, 0.9)]))
    assert len(text) < 120 and "~0.216667*x - y <= ~-0.178333" in text
    with pytest.raises(pal.UnboundedError, match="add bounds such as x <= 1000$"):
        pal.Region((x >= 0) & (y >= 0)).exact_volume
    many = pal.Region(pal.any_of([x.between(i, i + 0.7) & y.between(0, 1 + i / 7) for i in range(40)]))
    assert len(repr(many)) < 250 and "inequalities" in repr(many)


def test_states_that_do_not_fit_say_where():
    layer = SplineLayer(TRIANGLE, knots=5, components=2)
    other = SplineLayer((x >= 0) & (y >= 0) & (x + y <= 2), knots=5, components=2)
    with pytest.raises(RuntimeError) as error:
        layer.load_state_dict(other.state_dict())
    text = str(error.value)
    assert "another constraint: (assert (<= (+ x y) 2)) instead of (assert (<= (+ x y) 1))" in text
    assert "declare-const" not in text


def test_random_parameters_differ_from_call_to_call():
    family = pal.SplineMixture(TRIANGLE, knots=5, components=2)
    assert (family.random_params() != family.random_params()).any()
    assert (family.random_params(seed=3) == family.random_params(seed=3)).all()


@pytest.mark.parametrize("head", ["student-t", "values"])
def test_autocast_leaves_log_densities_in_float32(head):
    layer = SplineLayer(TRIANGLE, knots=5, components=2, head=head)
    points = torch.from_numpy(TRIANGLE.sample(4, seed=1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = torch.nn.Linear(3, layer.num_params)(torch.randn(4, 3))
        assert outputs.dtype == torch.bfloat16
        p = layer(outputs)
        for logs in (p.log_prob(points), p.log_prob(points[:1].expand(7, 1, 2)), p.condition(x <= y).log_prob(points)):
            assert logs.dtype == torch.float32
        assert p.probability(x <= y).dtype == p.entropy(tolerance=1e-2).dtype == torch.float32
    # The densities are those of the outputs, not rounded again.
    exact = layer(outputs.detach().double()).log_prob(points)
    assert torch.allclose(layer(outputs.detach()).log_prob(points).double(), exact, atol=2e-2)


def test_points_outside_are_counted_and_can_be_moved_inside():
    layer = SplineLayer(TRIANGLE, knots=5, components=2)
    targets = torch.tensor([[0.25, 0.25], [0.5, 0.5 + 1e-9], [-1e-9, 0.5]], dtype=torch.float64)
    outputs = torch.randn(3, layer.num_params, requires_grad=True)
    with pytest.warns(UserWarning, match=r"2 of 3 points are outside.*region\.project"):
        assert layer(outputs).log_prob(targets).mean() == -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(outputs).log_prob(targets)
        SplineLayer(TRIANGLE, knots=5)(torch.zeros(56)).log_prob(targets)
    moved = TRIANGLE.project(targets)
    assert TRIANGLE.contains(moved).all() and np.abs(moved - targets.numpy()).max() < 2e-9
    assert (moved[0] == targets[0].numpy()).all()
    assert layer(outputs).log_prob(moved).isfinite().all()
    by_name = TRIANGLE.project({"y": [0.5], "x": [2.0]})
    assert np.allclose(by_name, [[1, 0]], atol=1e-12) and TRIANGLE.contains(by_name).all()
    with pytest.raises(pal.RegionError, match="row 1"):
        TRIANGLE.project([[0, 0], [np.nan, 0]])
    with pytest.raises(pal.UnboundedError):
        pal.Region(x + y >= 0).project([[-1, -1]])


def test_marginals_have_no_false_lines_down_to_zero():
    # Thirds and tenths make ends of pieces that differ by one rounding.
    third = pal.Region(x.between("1/10", "7/10") & y.between(0, 1) & ~((x >= "1/3") & (y >= "1/3") & (x <= "2/3")))
    family = pal.SplineMixture(third, knots=11, components=2)
    for seed in range(5):
        curve = family.density(family.random_params(seed=seed)).marginal("x").polyline(3)
        assert (curve[1:-1, 1] > 0).all() and curve[0, 1] == curve[-1, 1] == 0
    apart = pal.Region(x.between(0, 1) | x.between(2, 3))
    gap = pal.SplineMixture(apart, knots=5, components=1).density(np.zeros(11)).marginal("x").polyline(3)
    assert (gap[(gap[:, 0] >= 1) & (gap[:, 0] <= 2)][:, 1] == 0).sum() == 2


def test_networks_of_the_program():
    """The files and numbers are those of `pal train --inputs speed,height --hidden 8 --knots 8 --components 2` (and
    with `--hidden 8,4 --knots 5 --head plain --precision f64`; and with `--baseline mdn`), of `pal predict` and of
    `pal logprob`."""
    inputs = [
        [1.5354648741007701, 5.525802234170062],
        [2.851391088977806, 3.4340021655392388],
        [0.4324788381589012, 6.3360948531442896],
        [2.8459483414117317, 8.569396548614048],
        [0.9354943560314564, 4.380624888964917],
    ]
    points = [
        [0.21305349846800492, 0.3066790677200255],
        [0.41322399346705324, 0.4638341168767767],
        [0.05885699656198269, 0.48178312390236183],
        [0.4410966521928664, 0.42097425063164984],
        [0.13622520752460784, 0.5777466572213655],
    ]
    cases = {
        "network": ([0.7430892431300976, -0.9446385371667031, 1.524662135899501, 1.1048209651977399,
                     1.5184913140200036], 1e-5),
        "network_float64": ([1.804469704387013, 0.11116436868144476, 1.357119715068248, -1.1660528941859318,
                             1.248636346449282], 1e-10),
    }  # fmt: skip
    for name, (expected, tolerance) in cases.items():
        network = pal.torch.load_network(DATA / f"{name}.safetensors")
        assert network.inputs == ("speed", "height") and network.outputs == ("x", "y")
        logs = network(inputs).log_prob(points)
        assert np.abs(logs.detach().double().numpy() - expected).max() < tolerance
        columns = {"height": np.array(inputs)[:, 1], "speed": np.array(inputs)[:, 0]}
        assert torch.equal(network(columns).log_prob(points), logs)
        # It can be trained further, and keeps its scales in float64.
        (-network(torch.tensor(inputs)).log_prob(points).mean()).backward()
        assert all(weight.grad is not None for weight in network.network.parameters())
        assert network.double().mean.dtype == torch.float64
    with pytest.raises(pal.FileError, match=r"pal\.torch\.load_network reads it"):
        pal.load(DATA / "network.safetensors")
    with pytest.raises(pal.FileError, match=r"a baseline \(mixture\)"):
        pal.torch.load_network(DATA / "baseline.safetensors")


@pytest.mark.skipif(not os.environ.get("PAL_PROGRAM"), reason="PAL_PROGRAM does not name the program")
@pytest.mark.parametrize(("options", "tolerance"), [([], 1e-5), (["--precision", "f64", "--head", "plain"], 1e-10)])
def test_a_network_that_the_program_has_just_trained(tmp_path, options, tolerance):
    random = np.random.default_rng(1)
    speed = random.uniform(1, 3, 120)
    points = TRIANGLE.project(np.stack([speed / 6, 0.5 - speed / 8], -1) + random.normal(scale=0.05, size=(120, 2)))
    table = "\n".join(["speed,x,y", *(",".join(map(repr, map(float, row))) for row in np.c_[speed, points])])
    (tmp_path / "walks.csv").write_text(table)
    (tmp_path / "walks.smt2").write_text(TRIANGLE.constraint.to_smtlib())
    pal_ = lambda *words: subprocess.run(
        [os.environ["PAL_PROGRAM"], *words], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    settings = ["--hidden", "6", "--knots", "6", "--components", "2", "--epochs", "3", "--violation-samples", "100"]
    data = ["--constraint", "walks.smt2", "--data", "walks.csv", "--inputs", "speed"]
    pal_("train", *data, *settings, *options, "-o", "net.safetensors")
    pal_("eval", "net.safetensors", "--data", "walks.csv", "-o", "logs.csv")
    names, *rows = (tmp_path / "logs.csv").read_text().split()
    expected = [float(row.split(",")[-1]) for row in rows]
    network = pal.torch.load_network(tmp_path / "net.safetensors")
    logs = network({"speed": speed}).log_prob(points)
    assert np.abs(logs.detach().double().numpy() - expected).max() < tolerance


def test_damaged_networks_are_refused(tmp_path):
    content = bytearray((DATA / "network.safetensors").read_bytes())
    content[-9] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    with pytest.raises(pal.FileError, match="damaged.safetensors.*checksum"):
        pal.torch.load_network(tmp_path / "damaged.safetensors")
    TRIANGLE_FAMILY = pal.SplineMixture(TRIANGLE, knots=4, components=1)
    TRIANGLE_FAMILY.save(tmp_path / "family.safetensors")
    with pytest.raises(pal.FileError, match="not a trained network"):
        pal.torch.load_network(tmp_path / "family.safetensors")


def test_fit_trains_and_says_what_it_did(caplog):
    layer = SplineLayer(TRIANGLE, knots=10, components=2)
    random = np.random.default_rng(1)
    inputs = random.normal(size=(400, 1))
    share = 1 / (1 + np.exp(-inputs))
    targets = TRIANGLE.project(np.hstack([0.6 * share, 0.3 * (1 - share)]) + random.normal(scale=0.02, size=(400, 2)))

    def network():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.ReLU(), torch.nn.Linear(16, layer.num_params))

    first, second = network(), network()
    with caplog.at_level("INFO", "pal"):
        one = pal.torch.fit(first, layer, inputs, targets, epochs=30, learning_rate=0.01, seed=3)
    assert len(caplog.messages) == len(one.scores)
    assert caplog.messages[0] == f"epoch 1 of at most 30: mean log-density {one.scores[0]:.4f}"
    two = pal.torch.fit(second, layer, inputs, targets, epochs=30, learning_rate=0.01, seed=3)
    assert one == two and len(one.scores) <= 30
    # The uniform density of a triangle of area 1/2 has the log-density log 2.
    assert one.scores[one.best_epoch - 1] == max(one.scores) > np.log(2) + 1
    third = network()
    every = pal.torch.fit(third, layer, inputs, targets, epochs=1, held_out=0)
    logs = layer(third(torch.from_numpy(inputs).float())).log_prob(targets)
    assert abs(float(logs.detach().double().mean()) - every.scores[0]) < 1e-5 and not every.stopped
    outside = targets.copy()
    outside[[7, 9]] = 2
    with pytest.raises(ValueError, match=r"2 of 400 targets are outside.*row 7.*region\.project"):
        pal.torch.fit(network(), layer, inputs, outside)
    with pytest.raises(ValueError, match="400 rows of inputs, but 399 targets"):
        pal.torch.fit(network(), layer, inputs, targets[1:])
    with pytest.raises(ValueError, match="held_out"):
        pal.torch.fit(network(), layer, inputs, targets, held_out=1.5)


def test_estimators_with_many_data_have_finer_splines():
    from pal.sklearn import ConstrainedDensity

    line = pal.Region(x.between(0, 1))
    few, many = line.sample(9119, seed=1), line.sample(9120, seed=1)
    for data, knots, components in ((few, 14, 8), (many, 28, 16)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            settings = ConstrainedDensity(line, max_iter=1, random_state=0).fit(data).family_.settings
            given = ConstrainedDensity(line, max_iter=1, random_state=0, knots=5).fit(data).family_.settings
        # 16 components with a logit and 28 values and derivatives each have 912 parameters.
        assert (settings.knots, settings.components) == (knots, components)
        assert (given.knots, given.components) == (5, 8)


def test_estimators_warn_where_they_were_stopped():
    from sklearn.exceptions import ConvergenceWarning

    from pal.sklearn import ConstrainedDensity, ConstrainedRegressor

    data = TRIANGLE.sample(200, seed=1)
    with pytest.warns(ConvergenceWarning, match="still growing after 2 steps"):
        ConstrainedDensity(TRIANGLE, knots=5, components=2, max_iter=2, random_state=0).fit(data)
    with pytest.warns(ConvergenceWarning, match="after 1 epochs"):
        ConstrainedRegressor(TRIANGLE, knots=5, components=2, max_iter=1, random_state=0).fit(data, data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ConstrainedDensity(TRIANGLE, knots=3, components=1, random_state=0).fit(data)
    with pytest.raises(ValueError, match=r"row 0 of X.*and so does another row.*region\.project"):
        ConstrainedDensity(TRIANGLE).fit(data * 0 + np.where(np.arange(200)[:, None] < 2, 3.0, 0.1))
