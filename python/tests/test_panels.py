"""Panels of mixed densities and regions show what they should: titles, areas, colours and curves are read back."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.patches import PathPatch

import pal
import pal.plot

x, y, z = pal.reals("x", "y", "z")
MODE, WET = pal.Category("mode", ["walk", "bike", "car"]), pal.boolean("wet")
ROAD = (x - y).between(-1, 1)
RULES = (
    x.between(0, 4) & y.between(0, 2) & pal.implies(MODE == "walk", ~ROAD) & pal.implies(MODE == "car", ROAD)
    & pal.implies(WET, (MODE == "bike") & (x <= 3))
)  # fmt: skip
FAMILY = pal.SplineMixture(RULES, knots=4, components=2)
DENSITY = FAMILY.density(FAMILY.random_params(seed=2))


@pytest.fixture(autouse=True)
def no_figures():
    plt.close("all")
    yield
    plt.close("all")


def drawn_area(ax):
    """The area of the filled patches of a panel."""
    total = 0.0
    for patch in ax.patches:
        if isinstance(patch, PathPatch):
            for polygon in patch.get_path().to_polygons():
                a, b = np.asarray(polygon).T
                total += abs(np.dot(a, np.roll(b, -1)) - np.dot(b, np.roll(a, -1))) / 2
    return total


def test_every_assignment_with_mass_has_a_panel_that_adds_up_to_its_probability():
    axes = DENSITY.plot(resolution=80)
    table = {key: p for key, p in DENSITY.table("mode", "wet").items() if p > 0}
    assert list(table) == [("walk", False), ("bike", False), ("bike", True), ("car", False)]
    titles = [ax.get_title().replace("\n", " ") for ax in axes]
    words = ["walk, not wet", "bike, not wet", "bike, wet", "car, not wet"]
    assert titles == [f"{word}: {p:.3g}" for word, p in zip(words, table.values())]
    scales = {(image.norm.vmin, image.norm.vmax) for ax in axes for image in ax.images}
    assert len(scales) == 1 and min(scales)[0] == 0
    centres = [low + (high - low) * (np.arange(80) + 0.5) / 80 for low, high in ((0, 4), (0, 2))]
    pixels = np.stack(np.meshgrid(*centres), -1)
    for ax, (label, wet), p in zip(axes, table, table.values()):
        one_hot = [float(label == value) for value in MODE.values]
        rows = np.concatenate([pixels, np.broadcast_to([*one_hot, wet], (80, 80, 4))], -1)
        values = np.exp(DENSITY.log_prob(rows))
        inside = values > 0
        np.testing.assert_allclose(ax.images[0].get_array()[inside], values[inside], rtol=1e-12)
        assert abs(values.sum() * 8 / 80**2 - p) < 0.02 * p + 1e-3
        assert ax.get_aspect() == 1 and ax.patches[0].get_hatch() == "////"


def test_variables_that_are_not_named_are_summed_over():
    axes = pal.plot.panels(DENSITY, "mode", resolution=40)
    assert [ax.get_title() for ax in axes] == [f"{label}: {p:.3g}" for (label,), p in DENSITY.table("mode").items()]
    values = axes[1].images[0].get_array()
    point = [(15 + 0.5) / 40 * 4, (20 + 0.5) / 40 * 2]
    both = [DENSITY.log_prob([*point, 0, 1, 0, wet]) for wet in (0, 1)]
    assert values[20, 15] == pytest.approx(np.exp(both).sum(), rel=1e-12)


def test_regions_have_the_areas_of_their_assignments():
    axes = pal.Region(RULES).plot()
    # |x - y| <= 1 in the box of 4 by 2: 8 without a triangle of 1/2 and a trapezium of (3 + 1) / 2 * 2.
    road = 8 - 0.5 - 4
    expected = {"walk, not wet": 8 - road, "bike, not wet": 8, "bike, wet": 6, "car, not wet": road}
    assert {ax.get_title(): pytest.approx(drawn_area(ax)) for ax in axes} == expected
    assert len({(*ax.get_xlim(), *ax.get_ylim()) for ax in axes}) == 1
    # Where wet is not asked for, either value will do; every category has exactly one value.
    only = pal.plot.panels(pal.Region(RULES), "wet")
    assert [ax.get_title() for ax in only] == ["not wet", "wet"]


def test_one_real_variable_gives_curves_that_integrate_to_the_probabilities():
    sliced = DENSITY.given(y=0.5)
    axes = sliced.plot()
    table = [p for p in sliced.table("mode", "wet").values() if p > 0]
    for ax, p in zip(axes, table, strict=True):
        line = ax.lines[0].get_xydata()
        assert np.trapezoid(line[:, 1], line[:, 0]) == pytest.approx(p, rel=0.02)
    assert len({ax.get_ylim() for ax in axes}) == 1


def test_layers_of_one_row_are_drawn():
    torch = pytest.importorskip("torch")
    layer = pal.torch.MixedLayer(FAMILY)
    assert len(pal.plot.panels(layer(torch.zeros(1, layer.num_params)), "mode", resolution=10)) == 3
    with pytest.raises(ValueError, match="there are 2"):
        pal.plot.panels(layer(torch.zeros(2, layer.num_params)))


def test_notebooks_show_panels_or_a_table():
    assert DENSITY._repr_png_().startswith(b"\x89PNG") and DENSITY._repr_html_() is None
    assert pal.Region(RULES)._repr_png_().startswith(b"\x89PNG")
    solid = pal.HistogramMixture(pal.Constraint(RULES & z.between(0, 1), variables=["x", "y", "z"]), bins=2, components=1)
    density = solid.density(np.zeros(solid.num_params))
    assert density._repr_png_() is None
    shown = density._repr_html_()
    assert "<th>mode</th><th>wet</th><th>probability</th>" in shown and shown.count("<tr>") == 7
    many = pal.booleans(*(f"b{k}" for k in range(5)))
    family = pal.HistogramMixture(pal.Constraint(x.between(0, 1) & pal.any_of(many)), bins=1, components=1)
    density = family.density(np.zeros(family.num_params))
    assert density._repr_png_() is None and density._repr_html_() is None


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="mass on 4 combinations of values of mode, wet, and at most 3 panels"):
        DENSITY.plot(limit=3)
    with pytest.raises(ValueError, match="allows 4 combinations of values of mode, wet"):
        pal.plot.panels(pal.Region(RULES), limit=2)
    with pytest.raises(ValueError, match="no Boolean variable or category `mod`; there are mode, wet; did you mean `mode`"):
        DENSITY.plot("mod")
    with pytest.raises(TypeError, match=r"pal.plot.panels\(density\)"):
        pal.plot.density(DENSITY)
    with pytest.raises(ValueError, match="no Boolean variables"):
        pal.plot.panels(pal.Region(x.between(0, 1)))
    many = pal.booleans(*(f"b{k}" for k in range(13)))
    with pytest.raises(ValueError, match="8192 combinations"):
        pal.plot.panels(pal.Region(x.between(0, 1) & pal.any_of(many)))


def test_flats_of_one_and_two_dimensions_are_drawn_in_free_coordinates():
    triangle = pal.Region((x + y + z == 1) & (x >= 0) & (y >= 0) & (z >= 0))
    ax = triangle.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y") and drawn_area(ax) == pytest.approx(0.5)
    family = pal.SplineMixture(triangle, knots=4, components=2)
    assert pal.plot.density(family.density(family.random_params(seed=1)), plt.figure().gca()).get_aspect() == 1
    segment = pal.Region((x + y == 1) & x.between(0, 1))
    assert segment.plot(plt.figure().gca()).get_xlabel() == "x"
    family = pal.SplineMixture(segment, knots=4, components=2)
    line = pal.plot.density(family.density(family.random_params(seed=1)), plt.figure().gca()).lines[0].get_xydata()
    assert np.trapezoid(line[:, 1], line[:, 0]) == pytest.approx(1, abs=0.01)
