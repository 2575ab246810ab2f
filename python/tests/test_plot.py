"""Pictures show what they should: areas, colours, curves and dots are read back from the axes."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.collections import PolyCollection

import pal
import pal.plot

x, y, z = pal.reals("x", "y", "z")
ROOM = pal.Region(x.between(0, 4) & y.between(0, 3) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2)))


@pytest.fixture(autouse=True)
def figure():
    yield plt.figure()
    plt.close("all")


def area(polygon):
    x, y = np.asarray(polygon).T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def drawn(ax):
    collections = [collection for collection in ax.collections if isinstance(collection, PolyCollection)]
    return [path.vertices[:-1] for collection in collections for path in collection.get_paths()]


def test_regions_and_cells_cover_their_area():
    for ax in (ROOM.plot(), pal.plot.cells(ROOM, plt.figure().gca())):
        assert abs(sum(map(area, drawn(ax))) - 11) < 1e-12
        assert ax.get_xlim()[0] < 0 < 4 < ax.get_xlim()[1] and ax.get_ylabel() == "y"
    line = pal.plot.region(pal.Region(x.between(0, 1) & ~((x > "1/4") & (x < "1/2"))), plt.figure().gca())
    assert len(line.patches) == 2


def test_densities_are_blank_and_hatched_where_forbidden():
    family = pal.SplineMixture(ROOM, knots=4, components=2)
    density = family.density(family.random_params(seed=1))
    ax = pal.plot.density(density, resolution=64)
    values = ax.images[0].get_array()
    xs, ys = (np.arange(64) + 0.5) / 64 * 4, (np.arange(64) + 0.5) / 64 * 3
    inside = ROOM.contains(np.stack(np.meshgrid(xs, ys), -1))
    assert (np.ma.getmaskarray(values) == ~inside).all()
    assert abs(values.sum() * 12 / 64**2 - 1) < 0.02
    assert ax.patches[0].get_hatch() == "////" and abs(sum(map(area, drawn(ax))) - 11) < 1e-12
    logs = pal.plot.density(density, plt.figure().gca(), resolution=64, log=True, hatch=None)
    assert not logs.patches and np.ma.allclose(np.ma.exp(logs.images[0].get_array()), values)


def test_marginals_integrate_to_one_and_samples_are_dots():
    family = pal.SplineMixture(ROOM, knots=4, components=2)
    density = family.density(family.random_params(seed=1))
    axes = pal.plot.marginals(density)
    for ax, name in zip(axes, "xy"):
        line = ax.lines[0].get_xydata()
        assert abs(np.trapezoid(line[:, 1], line[:, 0]) - 1) < 0.01 and ax.get_xlabel() == name
    points = density.sample(50, seed=1)
    ax = pal.plot.samples(points, plt.figure().gca())
    assert (ax.collections[0].get_offsets() == points).all()
    curve = pal.plot.density(density.given(x=0.5), plt.figure().gca())
    assert curve.get_xlabel() == "y"


def test_what_cannot_be_drawn_is_said():
    cube = pal.Region(x.between(0, 1) & y.between(0, 1) & z.between(0, 1))
    with pytest.raises(ValueError, match="two variables"):
        cube.plot()
    with pytest.raises(pal.RegionError, match="empty"):
        pal.Region((x < y) & (y < x)).plot()
    with pytest.raises(ValueError, match="one per row"):
        pal.plot.samples([1.0, 2.0])
