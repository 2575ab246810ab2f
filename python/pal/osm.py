"""Extracts of OpenStreetMap: buildings and barriers as obstacles, in metres.

Positions are degrees on the ground. Within the bounding box of a map, which is small, they become metres by

    x = (longitude - west) * a,        y = (latitude - south) * b,

where a and b are the lengths of a degree of longitude and latitude on the WGS 84 ellipsoid in the middle of the box,
rounded to millimetres. Over a box of 10 km at 60 degrees of latitude, lengths are off by up to 0.14 percent, over one
of 1 km by a tenth of that. The digits of the file, and all that follows from them, are exact.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays
from ._arrays import FloatArray
from .errors import Error, ParseError
from .formula import Constraint, Formula, Number, all_of, polygon, rational, reals

Position = tuple[Fraction, Fraction]

# Barriers that one can step over.
_LOW = ("kerb", "height_restrictor", "no")


class StreetMap(NamedTuple):
    """What [`read_osm`][pal.read_osm] reads.

    `constraint` is the free space over `x` (east) and `y` (north) in metres from the south-western corner; `corner` is
    that corner as longitude and latitude, and `metres_per_degree` are the factors along both. `buildings` and
    `barriers` count the obstacles.

    >>> import pal
    >>> empty = '<osm><bounds minlon="7.5" minlat="47.5" maxlon="7.501" maxlat="47.501"/></osm>'
    >>> street_map = pal.parse_osm(empty)
    >>> street_map.buildings, street_map.barriers, float(street_map.corner[0])
    (0, 0, 7.5)
    >>> street_map.metres([7.501, 47.501]).round(1)
    array([ 75.3, 111.2])
    """

    constraint: Constraint
    corner: Position
    metres_per_degree: Position
    buildings: int
    barriers: int

    def metres(self, positions: ArrayLike) -> FloatArray:
        """Longitudes and latitudes along the last axis as points of the map."""
        degrees = _arrays.float64(positions, "positions")
        _arrays.check_width(degrees.shape, ("longitude", "latitude"), "positions")
        return (degrees - np.array(self.corner, dtype=float)) * np.array(self.metres_per_degree, dtype=float)


def read_osm(
    path: str | os.PathLike[str], bounds: Sequence[Number] | None = None, barrier_width: Number = "1/2"
) -> StreetMap:
    """Reads a file of OpenStreetMap (`.osm`, XML): its buildings and barriers are obstacles.

    Buildings are closed ways and multipolygons with a tag `building`; courtyards are free. Barriers are ways with a tag
    `barrier` (walls, fences, hedges, ..): lines get a width, and gates, which are nodes, do not open them.

    Args:
        path: the file.
        bounds: west, south, east and north of the map in degrees; by default the `bounds` of the file.
        barrier_width: the width of lines in metres.

    Returns:
        the constraint, with what turns degrees into its metres.

    Raises:
        ParseError: the file is not one of OpenStreetMap, or lacks nodes or ways; the message names them.

    >>> import pal, pathlib, tempfile
    >>> empty = '<osm><bounds minlon="7.5" minlat="47.5" maxlon="7.501" maxlat="47.501"/></osm>'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "empty.osm")
    ...     _ = file.write_text(empty)
    ...     street_map = pal.read_osm(file)
    >>> street_map.constraint.variables
    ('x', 'y')
    """
    content = Path(path).read_bytes()
    try:
        return parse_osm(content, bounds, barrier_width)
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from None


def parse_osm(
    content: bytes | str, bounds: Sequence[Number] | None = None, barrier_width: Number = "1/2"
) -> StreetMap:
    """Reads the text of a file of OpenStreetMap; see [`read_osm`][pal.read_osm].

    Args:
        content: the text, or its bytes.
        bounds: west, south, east and north of the map in degrees; by default the `bounds` of the file.
        barrier_width: the width of lines in metres.

    Returns:
        the constraint, with what turns degrees into its metres.

    >>> import pal
    >>> hut = '''<osm>
    ...   <bounds minlon="7.5" minlat="47.5" maxlon="7.501" maxlat="47.501"/>
    ...   <node id="1" lon="7.5002" lat="47.5002"/> <node id="2" lon="7.5004" lat="47.5002"/>
    ...   <node id="3" lon="7.5004" lat="47.5004"/>
    ...   <way id="4">
    ...     <nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="1"/> <tag k="building" v="hut"/>
    ...   </way>
    ... </osm>'''
    >>> street_map = pal.parse_osm(hut)
    >>> street_map.buildings, street_map.constraint.contains(street_map.metres([[7.50035, 47.5003], [7.5008, 47.5008]]))
    (1, array([False,  True]))
    """
    text = content.encode() if isinstance(content, str) else content
    if re.search(rb"<!(DOCTYPE|ENTITY)", text):
        raise ParseError("files of OpenStreetMap define no entities; this one is not read")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ParseError(f"not XML: {error}") from None
    if root.tag != "osm":
        raise ParseError(f"the root of a file of OpenStreetMap is `osm`, not `{root.tag}`")
    west, south, east, north = _bounds(root, bounds)
    width = rational(barrier_width)
    if width <= 0:
        raise ValueError(f"the width of barriers must be positive, not {barrier_width}")
    scale = _metres_per_degree(float(south + north) / 2)
    places = _Places(root, (west, south), scale)
    x, y = reals("x", "y")
    free = [x.between(0, (east - west) * scale[0]), y.between(0, (north - south) * scale[1])]
    buildings = list(places.buildings())
    barriers = list(places.barriers(width))
    formula = all_of([*free, *(~obstacle for obstacle in (*buildings, *barriers))])
    return StreetMap(Constraint(formula, ["x", "y"]), (west, south), scale, len(buildings), len(barriers))


def _bounds(root: ElementTree.Element, given: Sequence[Number] | None) -> tuple[Fraction, ...]:
    if given is None:
        found = root.find("bounds")
        if found is None:
            raise ParseError("the file has no `bounds`; give bounds=[west, south, east, north] in degrees")
        given = [_attribute(found, name) for name in ("minlon", "minlat", "maxlon", "maxlat")]
    ends = tuple(rational(end) for end in given)
    if len(ends) != 4 or not (-180 <= ends[0] < ends[2] <= 180 and -90 < ends[1] < ends[3] < 90):
        raise ParseError(f"bounds are west < east and south < north in degrees, not {', '.join(map(str, given))}")
    return ends


def _metres_per_degree(latitude: float) -> Position:
    """The lengths of a degree of longitude and of latitude on the WGS 84 ellipsoid, in whole millimetres."""
    phi = math.radians(latitude)
    square = 0.00669437999014
    curve = 1 - square * math.sin(phi) ** 2
    across = math.pi / 180 * 6378137 * math.cos(phi) / math.sqrt(curve)
    along = math.pi / 180 * 6378137 * (1 - square) / curve**1.5
    return Fraction(round(across * 1000), 1000), Fraction(round(along * 1000), 1000)


def _attribute(element: ElementTree.Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise ParseError(f"a `{element.tag}` (id {element.get('id', 'none')}) has no `{name}`")
    return value


def _tags(element: ElementTree.Element) -> dict[str, str]:
    return {tag.get("k", ""): tag.get("v", "") for tag in element.findall("tag")}


class _Places:
    """Nodes and ways of a file, in metres."""

    def __init__(self, root: ElementTree.Element, corner: Position, scale: Position) -> None:
        self.root = root
        self.nodes: dict[str, Position] = {}
        for node in root.findall("node"):
            if node.get("lon") is None:
                # A deleted node.
                continue
            degrees = (rational(_attribute(node, "lon")), rational(_attribute(node, "lat")))
            self.nodes[_attribute(node, "id")] = tuple(  # type: ignore[assignment]
                (degree - low) * factor for degree, low, factor in zip(degrees, corner, scale)
            )
        self.ways = {_attribute(way, "id"): way for way in root.findall("way")}

    def references(self, way: ElementTree.Element) -> list[str]:
        return [_attribute(node, "ref") for node in way.findall("nd")]

    def points(self, references: list[str], of: str) -> list[Position]:
        missing = [node for node in references if node not in self.nodes]
        if missing:
            raise ParseError(f"{of} uses node {missing[0]}, which the file does not have; export complete ways")
        return [self.nodes[node] for node in references]

    def buildings(self) -> Iterator[Formula]:
        for relation in self.root.findall("relation"):
            tags = _tags(relation)
            if tags.get("type") == "multipolygon" and tags.get("building", "no") != "no":
                yield self.multipolygon(relation)
        for name, way in self.ways.items():
            tags, nodes = _tags(way), self.references(way)
            if tags.get("building", "no") != "no" and len(nodes) > 3 and nodes[0] == nodes[-1]:
                yield self.area([self.points(nodes, f"way {name}")], [], f"way {name}")

    def multipolygon(self, relation: ElementTree.Element) -> Formula:
        name = f"relation {relation.get('id')}"
        rings: dict[str, list[list[Position]]] = {}
        for role in ("outer", "inner"):
            lines = []
            for member in relation.findall("member"):
                if member.get("type") != "way" or (member.get("role") or "outer") != role:
                    continue
                way = self.ways.get(_attribute(member, "ref"))
                if way is None:
                    missing = f"{name} uses way {member.get('ref')}, which the file does not have"
                    raise ParseError(f"{missing}; export complete ways")
                lines.append(self.references(way))
            rings[role] = [self.points(ring, name) for ring in _rings(lines, name)]
        return self.area(rings["outer"], rings["inner"], name)

    def area(self, outer: list[list[Position]], inner: list[list[Position]], of: str) -> Formula:
        """The union of outer rings without the insides of inner ones."""
        try:
            inside = [polygon(ring) for ring in outer]
            # The walls of a courtyard belong to the building.
            holes = [_interior(ring) for ring in inner]
        except Error as error:
            raise ParseError(f"{of}: {error}") from None
        body = inside[0] if inside else False
        for part in inside[1:]:
            body = body | part
        return all_of([body, *(~hole for hole in holes)])

    def barriers(self, width: Fraction) -> Iterator[Formula]:
        for name, way in self.ways.items():
            tags, nodes = _tags(way), self.references(way)
            if tags.get("barrier", "no") in _LOW or len(nodes) < 2:
                continue
            points = self.points(nodes, f"way {name}")
            if tags.get("area") == "yes" and len(nodes) > 3 and nodes[0] == nodes[-1]:
                yield self.area([points], [], f"way {name}")
                continue
            for start, end in zip(points, points[1:]):
                if start != end:
                    yield _wall(start, end, width / 2)


def _interior(ring: list[Position]) -> Formula:
    """A polygon without its edges: with them, less what lies outside of a box around it or on the edges."""
    low = [min(point[k] for point in ring) - 1 for k in (0, 1)]
    high = [max(point[k] for point in ring) + 1 for k in (0, 1)]
    frame = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]
    x, y = reals("x", "y")
    around = (x > low[0]) & (x < high[0]) & (y > low[1]) & (y < high[1])
    # The frame with a hole is closed: the hole without its edge is what it leaves.
    return around & ~polygon(frame, [ring])


def _wall(start: Position, end: Position, half: Fraction) -> Formula:
    """A rectangle around a segment, as far from it on all sides; the direction is rounded, the segment is covered."""
    along = (float(end[0] - start[0]), float(end[1] - start[1]))
    length = math.hypot(*along)
    ahead = tuple(half * Fraction(round(part / length * 2**20), 2**20) for part in along)
    left = (-ahead[1], ahead[0])
    corners = []
    for (x, y), forward, side in ((start, -1, -1), (end, 1, -1), (end, 1, 1), (start, -1, 1)):
        corners.append((x + forward * ahead[0] + side * left[0], y + forward * ahead[1] + side * left[1]))
    return polygon(corners)


def _rings(lines: list[list[str]], of: str) -> list[list[str]]:
    """Ways joined at their ends until all of them are closed."""
    rings, open_ = [], [list(line) for line in lines if len(line) > 1]
    while open_:
        line = open_.pop()
        while line[0] != line[-1]:
            following = next((other for other in open_ if line[-1] in (other[0], other[-1])), None)
            if following is None:
                raise ParseError(f"{of}: its ways do not close at node {line[-1]}; export complete ways")
            open_.remove(following)
            line += following[1:] if following[0] == line[-1] else following[-2::-1]
        rings.append(line)
    return rings
