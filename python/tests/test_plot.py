"""Pictures show what they should: areas, colours, curves and dots are read back from the axes."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.patches import PathPatch

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
    paths = [path for collection in collections for path in collection.get_paths()]
    paths += [patch.get_path() for patch in ax.patches if isinstance(patch, PathPatch)]
    return [polygon for path in paths for polygon in path.to_polygons()]


def colours(ax, points):
    """The colours of the picture at points of the map."""
    ax.figure.canvas.draw()
    picture = np.asarray(ax.figure.canvas.buffer_rgba())
    columns, rows = ax.transData.transform(points).T
    return picture[len(picture) - 1 - np.floor(rows).astype(int), np.floor(columns).astype(int)]


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
    # Two pixels beyond the walls have values too; the picture is cut off at the walls themselves.
    assert not np.ma.getmaskarray(values)[inside].any() and np.ma.getmaskarray(values).sum() > 100
    assert abs(values[inside].sum() * 12 / 64**2 - 1) < 0.02
    assert ax.images[0].get_clip_path() is not None and ax.get_aspect() == 1
    assert ax.patches[0].get_hatch() == "////" and abs(sum(map(area, drawn(ax))) - 11) < 1e-12
    logs = pal.plot.density(density, plt.figure().gca(), resolution=64, log=True, hatch=None)
    assert not logs.patches and np.ma.allclose(np.ma.exp(logs.images[0].get_array()), values)


def test_walls_are_where_they_are_and_cells_leave_no_seams():
    wedge, hole = (x + 2 * y > 4) & (2 * x - y < 4), pal.polygon([(0.4, 0.3), (1.3, 0.5), (0.6, 1.1)])
    tilted = pal.Region(x.between(0, 4) & y.between(0, 3) & ~wedge & ~hole & (3 * x + y <= 13))
    assert len(tilted.cells) > 2
    box = np.random.default_rng(1).uniform([0, 0], [4, 2.8], (4000, 2))
    # Far enough from the walls, in pixels of the picture.
    turns = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.stack([np.cos(turns), np.sin(turns)], -1)
    steps = np.concatenate([[[0, 0]], 0.015 * circle, 0.03 * circle])
    around = tilted.contains(box[:, None] + steps)
    ax = tilted.plot(color="black", alpha=0.5)
    assert len(np.unique(colours(ax, box[around.all(1)]), axis=0)) == 1
    assert (colours(ax, box[~around.any(1)]) == 255).all()
    uniform = pal.SumOfSquares(tilted, degree=0, components=1).density([0, 0])
    picture = pal.plot.density(uniform, plt.figure().gca(), resolution=20, hatch=None)
    # Pixels are ten times as wide as this distance, and the picture of a uniform density has one colour all the same.
    assert len(np.unique(colours(picture, box[around.all(1)]), axis=0)) == 1
    assert (colours(picture, box[~around.any(1)]) == 255).all()


def test_maps_have_equal_scales_unless_they_are_long():
    assert ROOM.plot().get_aspect() == 1 and ROOM.plot(plt.figure().gca(), aspect="auto").get_aspect() == "auto"
    assert pal.Region(x.between(0, 41) & y.between(0, 4)).plot(plt.figure().gca()).get_aspect() == "auto"
    plt.close("all")
    figure = ROOM.plot().figure
    assert figure.get_layout_engine() is not None


def test_notebooks_show_pictures():
    family = pal.SplineMixture(ROOM, knots=4, components=2)
    density = family.density(family.random_params(seed=1))
    for shown in (ROOM, density, density.given(x=0.5), density.condition(x <= 1)):
        assert shown._repr_png_().startswith(b"\x89PNG")
    assert pal.Region((x >= 0) & (y >= 0))._repr_png_() is None
    cube = pal.Region(x.between(0, 1) & y.between(0, 1) & z.between(0, 1))
    assert cube._repr_png_().startswith(b"\x89PNG")
    w = pal.real("w")
    assert pal.Region(cube.constraint & w.between(0, 1))._repr_png_() is None


def test_marginals_integrate_to_one_and_samples_are_dots():
    family = pal.SplineMixture(ROOM, knots=4, components=2)
    density = family.density(family.random_params(seed=1))
    axes = pal.plot.marginals(density)
    for ax, name in zip(axes, "xy"):
        line = ax.lines[0].get_xydata()
        area = np.sum(np.diff(line[:, 0]) * (line[1:, 1] + line[:-1, 1])) / 2
        assert abs(area - 1) < 0.01 and ax.get_xlabel() == name
    points = density.sample(50, seed=1)
    ax = pal.plot.samples(points, plt.figure().gca())
    assert (ax.collections[0].get_offsets() == points).all()
    curve = pal.plot.density(density.given(x=0.5), plt.figure().gca())
    assert curve.get_xlabel() == "y"


def test_what_cannot_be_drawn_is_said():
    w = pal.real("w")
    cube = pal.Region(x.between(0, 1) & y.between(0, 1) & z.between(0, 1))
    with pytest.raises(ValueError, match="up to three variables can be drawn, and there are 4: x, y, z, w"):
        pal.Region(cube.constraint & w.between(0, 1)).plot()
    with pytest.raises(ValueError, match="two variables"):
        pal.plot.cells(cube)
    with pytest.raises(ValueError, match="projection='3d'"):
        cube.plot(plt.figure().gca())
    with pytest.raises(pal.RegionError, match="empty"):
        pal.Region((x < y) & (y < x)).plot()
    with pytest.raises(ValueError, match="one per row"):
        pal.plot.samples([1.0, 2.0])


def surface(ax):
    """The area of the faces that are drawn in space."""
    total = 0.0
    solid = ax.collections[0]
    # matplotlib before 3.10 keeps the corners of all faces in one array.
    faces = solid._faces if hasattr(solid, "_faces") else [solid._vec[:3, one].T for one in solid._segslices]
    for corners in faces:
        fan = np.cross(corners[1:-1] - corners[0], corners[2:] - corners[0])
        total += np.linalg.norm(fan.sum(0)) / 2
    return total


def test_solids_have_their_surface_and_no_walls_inside():
    cube = x.between(0, 2) & y.between(0, 2) & z.between(0, 2)
    assert abs(surface(pal.Region(cube).plot()) - 24) < 1e-9
    # A corner cut off leaves the surface of the cube as it was: three squares go, three come. The solid has several
    # cells, and the walls between them are not drawn.
    notched = pal.Region(cube & ~((x > 1) & (y > 1) & (z > 1)))
    assert len(notched.cells) > 1
    plt.figure()
    assert abs(surface(notched.plot()) - 24) < 1e-9
    # A regular tetrahedron with edges of sqrt(2).
    plt.figure()
    ax = pal.Region((x + y + z <= 2) & (x + y >= z) & (y + z >= x) & (z + x >= y)).plot()
    assert abs(surface(ax) - np.sqrt(3) * 2) < 1e-9 and ax.get_zlabel() == "z"


def test_one_and_three_variables_are_drawn_as_ticks_and_dots():
    cube = pal.Region(x.between(0, 2) & y.between(0, 2) & z.between(0, 2) & (x + y + z <= 4))
    family = pal.SumOfSquares(cube, degree=1, components=1)
    one = family.density(family.random_params(seed=1))
    ax = one.plot()
    points = np.stack(ax.collections[0]._offsets3d, -1)
    assert cube.contains(points).all() and np.allclose(ax.collections[0].get_array(), np.exp(one.log_prob(points)))
    pal.plot.samples(one.sample(20, seed=1), ax)
    assert len(ax.collections) == 2
    ticks = pal.plot.samples([[1.0], [2.0]], plt.figure().gca())
    assert (ticks.collections[0].get_offsets() == [[1, 0], [2, 0]]).all()
