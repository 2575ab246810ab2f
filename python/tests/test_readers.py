"""Constraints from the files and objects that users have: WKT, WKB, shapely, geopandas, pictures, PiShield."""

import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import pal

x, y = pal.reals("x", "y")
DATA = Path(__file__).parent / "data"


def area(formula):
    return pal.Region(formula).exact_volume


def test_text_keeps_every_digit_and_binary_every_bit():
    assert area(pal.from_wkt("POLYGON ((0 0, 1 0, 1 0.1, 0 0.1, 0 0))")) == Fraction(1, 10)
    assert area(pal.from_wkt("MULTIPOLYGON (((0 0, 1 0, 0 1)), ((5 5, 7 5, 7 7, 5 7)))", ("u", "v"))) == Fraction(9, 2)
    assert pal.from_wkt("POLYGON ((0 0, 1 0, 0 1))", ("u", "v")).reals == ["u", "v"]
    shapely = pytest.importorskip("shapely")
    town = shapely.Polygon([(0.1, 0.2), (5.3, 0.7), (4.1, 4.9), (0.3, 3.3)], [[(1, 1), (2, 1.5), (1.5, 2)]])
    expected = area(pal.from_shapely(town))
    for content in (shapely.to_wkb(town), shapely.to_wkb(town, hex=True), shapely.to_wkb(town, byte_order=0)):
        assert area(pal.from_wkb(content)) == expected
    solid = shapely.force_3d(town, 7.0)
    assert area(pal.from_wkb(shapely.to_wkb(solid, output_dimension=3, include_srid=True))) == expected
    # The text of a float is its shortest decimal, which is not the float itself.
    assert abs(float(area(pal.from_wkt(shapely.to_wkt(town, rounding_precision=-1))) - expected)) < 1e-14


def test_series_of_geopandas():
    shapely = pytest.importorskip("shapely")

    class Series(list):
        """What is used of a GeoSeries: it is a list, and a GeoDataFrame has one as its geometry."""

    class Frame:
        geometry = Series([shapely.box(0, 0, 1, 1), None, shapely.Polygon(), shapely.box(0.5, 0, 2, 1)])

    assert area(pal.from_geopandas(Frame())) == area(pal.from_geopandas(Frame.geometry)) == 2
    with pytest.raises(TypeError, match="only polygons have an inside; this is a Point"):
        pal.from_geopandas([shapely.Point(0, 0)])


def test_errors_of_maps_name_the_place():
    with pytest.raises(pal.ParseError, match="line 2, column 1: LINESTRING encloses no area") as error:
        pal.from_wkt("POLYGON ((0 0, 1 0, 0 1))\nLINESTRING (0 0, 1 1)")
    assert (error.value.line, error.value.column) == (2, 1)
    with pytest.raises(pal.ParseError, match="byte 1: the bytes end"):
        pal.from_wkb(b"\x01\x03\x00")
    with pytest.raises(pal.ParseError, match="not a PNG file"):
        pal.formula._core.png_mask(b"GIF89a", 0.5)


def png(pixels):
    """A PNG file of grey pixels, by the standard."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def test_pictures_are_covered(tmp_path):
    grid = np.stack(np.meshgrid(np.arange(30) + 0.5, np.arange(20) + 0.5), -1)
    free = (np.hypot(grid[..., 0] - 9, grid[..., 1] - 9) > 6.2) & (abs(grid[..., 0] - 0.7 * grid[..., 1] - 18) > 1.1)
    (tmp_path / "map.png").write_bytes(png(np.where(free, 230, 20)))
    mask = pal.read_mask(tmp_path / "map.png")
    assert (mask == ~free).all() and mask.shape == (20, 30)
    assert area(pal.from_mask(mask, tolerance=0)) == mask.sum()
    rows, columns = np.nonzero(mask)
    offsets = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    # Row 0 is at the top.
    pixels = (np.stack([columns, 19 - rows], -1)[:, None] + offsets).reshape(-1, 2)
    for tolerance in (0.75, 2.0):
        covered = pal.Constraint(pal.from_mask(mask, tolerance), ["x", "y"])
        assert covered.contains(pixels).all()
        assert covered.formula.num_atoms < 0.6 * pal.from_mask(mask, 0).num_atoms
    everywhere = pal.Region(x.between(0, 30) & y.between(0, 20)).sample(3000, seed=1)
    near = pal.Constraint(pal.from_mask(mask, 0.75), ["x", "y"]).contains(everywhere)
    middles = np.stack([columns, 19 - rows], -1) + 0.5
    gaps = np.maximum(np.abs(everywhere[near][:, None] - middles) - 0.5, 0)
    assert np.hypot(*gaps.transpose(2, 0, 1)).min(1).max() <= 0.75 + 1e-12
    with pytest.raises(TypeError, match="a table of truth values"):
        pal.from_mask(mask.astype(float))
    with pytest.raises(pal.ParseError, match="tolerance"):
        pal.from_mask(mask, -1.0)


def test_requirements_of_pishield(tmp_path):
    (tmp_path / "constraints.txt").write_text(
        "ordering y_2 y_0 y_1\ny_0 >= 0\n-y_0 >= -1\ny_1 - y_0 >= 0\n-y_1 >= -2\ny_2 >= 0 \n-y_2 >= -1\n"
        "y_2 - 0.5 > 0 or neg y_1 >= 1\n"
    )
    constraint = pal.read_pishield(tmp_path / "constraints.txt")
    assert constraint.variables == ("y_0", "y_1", "y_2")
    points = np.random.default_rng(1).uniform([-0.5, -0.5, -0.5], [1.5, 2.5, 1.5], (2000, 3))
    a, b, c = points.T
    expected = (a >= 0) & (a <= 1) & (b >= a) & (b <= 2) & (c >= 0) & (c <= 1) & ((c > 0.5) | (b < 1))
    assert (constraint.contains(points) == expected).all() and 100 < expected.sum() < 1900
    # y_1 below 1: half a square; above: a strip of width 1 and height 1, of which y_2 leaves a half.
    assert pal.Region(constraint).exact_volume == Fraction(1, 2) + Fraction(1, 2)
    with pytest.raises(pal.ParseError, match="line 2: `z` is not a variable") as error:
        pal.parse_pishield("ordering y_0\ny_0 + z >= 1")
    assert error.value.line == 2


def test_extracts_of_openstreetmap():
    town = pal.read_osm(DATA / "campus.osm")
    assert (town.buildings, town.barriers) == (2, 2)
    # Lengths of a degree by the series of cosines that tables of geodesy have for this ellipsoid.
    a, b = map(float, town.metres_per_degree)
    phi = np.radians(55.9449)
    assert abs(a - (111412.84 * np.cos(phi) - 93.5 * np.cos(3 * phi) + 0.118 * np.cos(5 * phi))) < 0.1
    assert abs(b - (111132.92 - 559.82 * np.cos(2 * phi) + 1.175 * np.cos(4 * phi))) < 0.1
    box = pal.Region(town.constraint).bounding_box
    assert [float(high) for _, high in box] == pytest.approx([0.0032 * a, 0.0018 * b])
    free = lambda lon, lat: bool(town.constraint.contains(town.metres([lon, lat])))
    assert not free(-3.1892, 55.9445) and not free(-3.1884, 55.9453)         # inside of the buildings
    assert free(-3.1879, 55.9453)                                            # in the courtyard
    assert free(-3.1890, 55.9449)
    wall = town.metres([[-3.1899, 55.9451], [-3.1893, 55.9455], [-3.1888, 55.9451]])
    along = np.concatenate([np.linspace(p, q, 100) for p, q in zip(wall, wall[1:])])
    assert not town.constraint.contains(along).any()
    # Half the width and a little more to the left of the wall.
    direction = (wall[1] - wall[0]) / np.hypot(*(wall[1] - wall[0]))
    beside = (wall[0] + wall[1]) / 2 + 0.26 * np.array([-direction[1], direction[0]])
    assert town.constraint.contains(beside)
    bare = pal.parse_osm((DATA / "campus.osm").read_text().replace('k="barrier" v="wall"', 'k="note" v="wall"'))
    buildings = 0.0008 * 0.0005 + 0.0012 * 0.0006 - 0.0004 * 0.0002
    assert pal.Region(bare.constraint).volume == pytest.approx(a * b * (0.0032 * 0.0018 - buildings), rel=1e-9)
    part = pal.read_osm(DATA / "campus.osm", bounds=["-3.1896", "55.9442", "-3.1892", "55.9450"])
    assert pal.Region(part.constraint).volume == pytest.approx(a * b * 0.0004 * 0.0003, rel=1e-4)


def test_errors_of_openstreetmap_name_the_way(tmp_path):
    text = (DATA / "campus.osm").read_text()
    for change, message in [
        (("<node id=\"3\" lat=\"55.9447\" lon=\"-3.1888\"/>", ""), "way 100 uses node 3"),
        (("ref=\"102\" role", "ref=\"999\" role"), "relation 200 uses way 999"),
        (("<nd ref=\"5\"/><nd ref=\"8\"/><nd ref=\"7\"/>", "<nd ref=\"8\"/><nd ref=\"7\"/>"), "relation 200: its ways do not close"),
        (("<bounds", "<unknown"), "the file has no `bounds`"),
        (("lat=\"55.9442\" lon=\"-3.1896\"", "lat=\"55.9449\" lon=\"-3.1890\""), "way 100"),
        (("</osm>", ""), "not XML"),
        (("<osm", "<!DOCTYPE osm><osm"), "no entities"),
    ]:
        assert change[0] in text
        (tmp_path / "map.osm").write_text(text.replace(*change))
        with pytest.raises(pal.ParseError, match=message) as error:
            pal.read_osm(tmp_path / "map.osm")
        assert "map.osm" in str(error.value)
