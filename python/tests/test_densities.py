"""Families and densities: laws, agreement with independent integration, files."""

import copy
import os
import pickle

import numpy as np
import pytest

import pal

x, y = pal.reals("x", "y")
ROOM = x.between(0, 4) & y.between(0, 3) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2)) & (x + y <= 6)
REGION = pal.Region(ROOM)
FAMILIES = {
    "spline": pal.SplineMixture(REGION, knots=6, components=3),
    "placed": pal.SplineMixture(REGION, knots=[[0, 1, "5/2", 4], [-1, "1/3", 3]], components=2),
    "sum-of-squares": pal.SumOfSquares(REGION, degree=4, components=2),
    "legendre": pal.SumOfSquares(REGION, degree=3, components=2, basis="legendre"),
    "monomial": pal.SumOfSquares(REGION, degree=3, components=2, basis="monomial"),
    "some": pal.SumOfSquares(REGION, degree=4, components=2, terms=7, seed=5),
    "histogram": pal.HistogramMixture(REGION, bins=5, components=3),
    "unequal bins": pal.HistogramMixture(REGION, bins=[[0, 1, "5/2", 4], [-1, "1/3", 3]], components=2),
}


@pytest.fixture(params=FAMILIES, name="family")
def each_family(request):
    return FAMILIES[request.param]


def gauss(simplices, order=14):
    """Nodes and weights of a rule on triangles, by a square folded onto each: it shares nothing with the library."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    s, w = (nodes + 1) / 2, weights / 2
    u, v = np.meshgrid(s, s, indexing="ij")
    ww = np.outer(w, w) * u
    bary = np.stack([1 - u, u * (1 - v), u * v], -1).reshape(-1, 3)
    size = np.abs(np.linalg.det(simplices[:, 1:] - simplices[:, :1]))
    points = np.einsum("qb,sbn->sqn", bary, simplices)
    return points.reshape(-1, 2), (size[:, None] * ww.reshape(1, -1)).reshape(-1)


def rule_of(family):
    cut = REGION.with_knots([axis[1:-1].tolist() for axis in family.edges])
    return gauss(cut.simplices)


def test_densities_integrate_to_one_and_give_their_moments(family):
    points, weights = rule_of(family)
    params = family.random_params(3, seed=2)
    densities = np.exp(family.log_prob(params[:, None], points[None]))
    assert np.abs(densities @ weights - 1).max() < 1e-11
    assert np.abs(densities @ (weights[:, None] * points) - family.mean(params)).max() < 1e-11
    second = np.einsum("bp,p,pi,pj->bij", densities, weights, points, points)
    mean = family.mean(params)
    assert np.abs(second - mean[:, :, None] * mean[:, None, :] - family.covariance(params)).max() < 1e-10
    cube = (densities * points[:, 0] ** 2 * points[:, 1]) @ weights
    assert np.abs(family.expectation([x**2 * y, 1], params) - np.stack([cube, np.ones(3)], -1)).max() < 1e-10
    logs = np.log(densities)
    for row, entropy in enumerate(family.entropy(params)):
        # The rule sees the logarithm of a polynomial with zeros, so it is good to a few digits only.
        assert abs(entropy.value + (densities[row] * logs[row]) @ weights) < 2e-3 and entropy.error < 1e-6


def test_one_density_and_many_agree(family):
    params = family.random_params(3, seed=4)
    points = REGION.sample(50, seed=1)
    table = family.log_prob(params[:, None], points)
    for row, density in enumerate(family.densities(params)):
        assert np.abs(density.log_prob(points) - table[row]).max() < 1e-12
        assert abs(density.probability(x <= y) - family.probability(x <= y, params)[row]) < 1e-12
        assert np.abs(density.mean() - family.mean(params[row])).max() < 1e-12
        assert abs(density.marginal("x").mean - density.mean()[0]) < 1e-11
        assert abs(density.expectation(x * y) - family.expectation(x * y, params[row])) < 1e-11
    assert family.log_prob(params, points[:3]).shape == (3,)
    assert family.log_prob(params[0], points[0]).shape == ()
    assert np.abs(family.log_prob(params, points[:3]) - table[range(3), range(3)]).max() < 1e-12
    assert family.log_prob(params[0], np.empty((0, 2))).shape == (0,)
    assert family.log_prob(params[0], [[1.5, 1.5], [np.nan, 0]]).tolist() == [-np.inf, -np.inf]


def test_gradients_are_those_of_differences(family):
    params = family.random_params(seed=6)
    points, weights = REGION.sample(20, seed=2), np.random.default_rng(0).normal(size=20)
    gradient = family.log_prob_vjp(params, points, weights)
    for k in range(0, family.num_params, 5):
        step = np.zeros(family.num_params)
        step[k] = 1e-5
        difference = family.log_prob(params + step, points) - family.log_prob(params - step, points)
        derivative = difference @ weights / 2e-5
        assert abs(derivative - gradient[k]) < 1e-5 * max(1, abs(derivative))


def test_samples_are_inside_and_follow_the_density(family):
    params = family.random_params(2, seed=3)
    samples = family.sample(params, 20_000, seed=9)
    assert samples.shape == (2, 20_000, 2) and REGION.contains(samples).all()
    assert (samples == family.sample(params, 20_000, seed=9)).all()
    for row, density in enumerate(family.densities(params)):
        for axis, name in enumerate("xy"):
            # The distribution function of the exact marginal makes samples uniform: Kolmogorov's statistic.
            u = np.sort(density.marginal(name).cdf(samples[row, :, axis]))
            distance = np.abs(u - (np.arange(20_000) + 0.5) / 20_000).max()
            assert distance * 20_000**0.5 < 2.0
    uniforms = np.random.default_rng(2).uniform(size=(100, 3))
    assert REGION.contains(density.transform(uniforms)).all()


def test_conditioning_and_marginals(family):
    density = family.density(family.random_params(seed=8))
    gamma = x + y <= 3
    part = density.condition(gamma)
    mass = density.probability(gamma)
    inside = pal.Region(ROOM & gamma).sample(30, seed=5)
    assert np.abs(part.log_prob(inside) - density.log_prob(inside) + np.log(mass)).max() < 1e-11
    assert part.log_prob([3.0, 2.0]) == -np.inf and abs(part.probability(gamma) - 1) < 1e-12
    median = density.marginal("x").quantile(0.5)
    assert abs(density.cdf(x=median) - 0.5) < 1e-12 and abs(density.probability(x <= median) - 0.5) < 1e-12
    line = density.given(x=1.5)
    assert line.variables == ("y",) and line.log_prob([1.5]) == -np.inf
    joint = density.marginal_density(["x"], [[1.5]])[0]
    assert abs(line.log_prob([0.5]) - (density.log_prob([1.5, 0.5]) - np.log(joint))) < 1e-10
    assert abs(joint - density.marginal("x").density(1.5)) < 1e-11
    with pytest.raises(pal.QueryError, match="probability 0"):
        density.condition((x > 1) & (x < 2) & (y > 1) & (y < 2))
    with pytest.raises(pal.QueryError):
        density.marginal("z")
    with pytest.raises(ValueError, match="at least one"):
        density.given()


def test_modes_are_certified(family):
    params = family.random_params(2, seed=1)
    for mode, density in zip(family.mode(params), family.densities(params)):
        assert mode.stop == "certified" and mode.gap <= 1e-6 and REGION.contains(mode.point)
        assert abs(density.log_prob(mode.point) - mode.log_density) < 1e-9
        assert density.log_prob(REGION.sample(20_000, seed=4)).max() <= mode.log_upper
    early = density.mode(gap=0.0, nodes=10)
    assert early.stop in ("node-limit", "precision") and early.log_upper >= mode.log_density - 1e-9


def test_files_are_read_back_and_are_those_of_the_program(family, tmp_path):
    params = family.random_params(2, seed=7)
    family.save(tmp_path / "family.safetensors")
    family.save(tmp_path / "model.safetensors", params)
    alone, none = pal.load(tmp_path / "family.safetensors")
    again, rows = pal.load(tmp_path / "model.safetensors")
    points = REGION.sample(20, seed=0)
    assert none is None and (rows == params).all() and type(again) is type(family)
    for other in (alone, again, pickle.loads(pickle.dumps(family)), copy.deepcopy(family)):
        assert (other.log_prob(params[0], points) == family.log_prob(params[0], points)).all()
        assert other.settings == family.settings and other.variables == family.variables
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    header = int.from_bytes(content[:8], "little")
    assert b"pal-density-4" in content[: header + 8]
    content[-1] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    with pytest.raises(pal.FileError, match="damaged.safetensors.*checksum"):
        pal.load(tmp_path / "damaged.safetensors")
    (tmp_path / "other.safetensors").write_bytes(b"no tensors")
    with pytest.raises(pal.FileError, match="not a safetensors file"):
        pal.load(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError):
        pal.load(tmp_path / "none.safetensors")


def test_parameters_that_do_not_fit_are_refused(family):
    params = family.random_params(seed=1)
    with pytest.raises(ValueError, match=f"{family.num_params} numbers"):
        family.log_prob(params[1:], [0.5, 0.5])
    with pytest.raises(ValueError, match="but there are 2 variables, in this order: x, y"):
        family.log_prob(params, [0.5])
    bad = params.copy()
    bad[3] = np.nan
    with pytest.raises(pal.DensityError, match="parameter 3 of row 0 is NaN"):
        family.log_prob(bad, [0.5, 0.5])
    with pytest.raises(ValueError, match="at least one"):
        family.mean(np.empty((0, family.num_params)))
    with pytest.raises(TypeError, match="complex"):
        family.mean(params * 1j)
    strided = np.zeros(2 * family.num_params)
    strided[::2] = params
    assert family.log_prob(strided[::2], [0.5, 0.5]) == family.log_prob(params, [0.5, 0.5])


def test_defaults_are_those_of_the_core_and_work_for_every_number_of_variables():
    for kind in pal.KINDS:
        for n in range(1, 5):
            cube = pal.Region(pal.all_of(v.between(0, 1) for v in pal.reals(*(f"x{j}" for j in range(n)))))
            family = kind(cube)
            assert kind.max_variables is None or kind.max_variables == 4
            assert family.settings == kind.defaults(n) == kind.settings_class.default(n)
            assert family.settings != kind(cube, components=family.num_components + 1).settings


def test_a_histogram_counts():
    """With one variable and one component, the likelihood is largest where every bin has its fraction of the data."""
    interval = pal.Region(x.between(0, 4) & ~((x > 1) & (x < 2)))
    family = pal.HistogramMixture(interval, bins=4, components=1)
    # The second bin is forbidden: whatever its parameter is, it has no mass.
    params = [0, np.log(2), 77, np.log(3), np.log(5)]
    density = family.density(params)
    assert [density.probability(x.between(k, k + 1)) for k in range(4)] == pytest.approx([0.2, 0, 0.3, 0.5], abs=1e-14)
    assert np.exp(density.log_prob([[0.5], [1.5], [3.5]])) == pytest.approx([0.2, 0, 0.5], abs=1e-14)
    data = np.array([0.5] * 2 + [2.5] * 3 + [3.5] * 5)
    gradient = family.log_prob_vjp(params, data[:, None], np.full(len(data), 1 / len(data)))
    assert np.abs(gradient).max() < 1e-14
    assert density.marginal("x").mean == pytest.approx(0.5 * 0.2 + 2.5 * 0.3 + 3.5 * 0.5, abs=1e-14)


def test_documented_defaults_are_those_of_the_core():
    entropy, mode = pal._core.EntropyOptions.default(), pal._core.ModeOptions.default()
    assert entropy.tolerance == 1e-6 and (mode.gap, mode.nodes, mode.seconds) == (1e-6, 1_000_000, None)
    assert "1e-6" in pal.Density.entropy.__doc__ and "1e-6" in pal.Density.mode.__doc__


def test_families_that_make_no_sense():
    with pytest.raises(pal.DensityError, match="knot per axis"):
        pal.SplineMixture(REGION, knots=1)
    with pytest.raises(pal.DensityError, match="components"):
        pal.SplineMixture(REGION, components=0)
    with pytest.raises(TypeError, match="integer"):
        pal.SplineMixture(REGION, knots=2.5)
    with pytest.raises(pal.DensityError, match="enclose"):
        pal.SplineMixture(REGION, knots=[[0, 1], [0, 3]])
    with pytest.raises(pal.DensityError, match="enclose"):
        pal.HistogramMixture(REGION, bins=[[0, 1], [0, 3]])
    with pytest.raises(pal.DensityError, match="too large"):
        pal.HistogramMixture(REGION, bins=2000)
    with pytest.raises(pal.DensityError, match="4"):
        pal.SplineMixture(pal.all_of(v.between(0, 1) for v in pal.reals("a", "b", "c", "d", "e")))
    with pytest.raises(ValueError, match="bases are"):
        pal.SumOfSquares(REGION, basis="fourier")
    with pytest.raises(pal.UnboundedError):
        pal.SplineMixture(x >= 0)
    with pytest.raises(pal.DensityError, match="no volume"):
        pal.SumOfSquares((x >= 1) & (x <= 0) & y.between(0, 1))
    with pytest.raises(TypeError, match="use SplineMixture, SumOfSquares or HistogramMixture"):
        pal.Family()
    with pytest.raises(TypeError, match="families"):
        pal.Density()


@pytest.mark.skipif(not os.environ.get("PAL_PROGRAM"), reason="PAL_PROGRAM does not name the program")
def test_the_program_reads_models_and_writes_the_same(tmp_path):
    import subprocess

    program = os.environ["PAL_PROGRAM"]
    family = FAMILIES["spline"]
    params = family.random_params(2, seed=7)
    family.save(tmp_path / "model.safetensors", params)
    command = [program, "query", tmp_path / "model.safetensors", "--row", "all", "--event", "(<= x 1)"]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = [float(line.split()[1]) for line in out.stdout.splitlines()[1:]]
    assert np.abs(np.array(shown) - family.probability(x <= 1, params)).max() < 1e-12
    (tmp_path / "room.smt2").write_text(REGION.constraint.to_smtlib())
    settings = ["--family", "spline", "--knots", "6", "--components", "3"]
    command = [program, "compile", tmp_path / "room.smt2", *settings, "-o", tmp_path / "theirs.safetensors", "--quiet"]
    subprocess.run(command, check=True)
    family.save(tmp_path / "ours.safetensors")
    assert (tmp_path / "theirs.safetensors").read_bytes() == (tmp_path / "ours.safetensors").read_bytes()
