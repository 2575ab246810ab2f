"""The drone scenes of constrained-sdd: from the original pickles to a map in GeoJSON and a table of positions.

The data set is four pickles, each a dictionary by scene:

| name | content of a scene |
|---|---|
| `all_images` | the picture, as an array of bytes (height, width, channels) |
| `trajectories_dequantized` | by track, an array (T, 2) of positions in pixels of the picture |
| `ineqs` | by class of obstacle, a list of pairs (A, b): an obstacle is where A y <= b |
| `polygons` | by class of obstacle, a list of arrays of corners |

A pickle can run any code when it is opened. These are therefore opened by a reader of its own, which makes numeric
arrays and plain containers only.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._arrays import FloatArray
from ..errors import FileError
from ..formula import Constraint, all_of, real
from . import _plain_pickle

NAMES = ("all_images", "trajectories_dequantized", "ineqs", "polygons")

def read(folder: str | os.PathLike[str], name: str) -> Mapping[Any, Any]:
    """Reads the pickle of this name, one of `NAMES`."""
    places = [Path(folder, name + ending) for ending in (".pkl", ".pickle", ".p", "")]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise FileError(f"{places[0]} does not exist; give the folder with the pickles {', '.join(NAMES)}")
    try:
        content = _plain_pickle.load(file.read_bytes())
    except ValueError as error:
        raise FileError(f"{file}: {error}") from None
    if not isinstance(content, Mapping):
        raise FileError(f"{file}: a dictionary by scene was expected, not a {type(content).__name__}")
    return content


def scene_of(content: Mapping[Any, Any], scene: str, name: str) -> Any:
    """The entry of a scene, whose number may be an int or a text."""
    for key, value in content.items():
        if str(key) == str(scene):
            return value
    known = ", ".join(sorted(map(str, content), key=lambda key: (len(key), key)))
    raise FileError(f"{name} has no scene {scene}; there are {known}")


def constraint(folder: str | os.PathLike[str], scene: str | int) -> Constraint:
    """Where one can be in a scene, from its inequalities: inside the picture and in none of the obstacles.

    Floats stand for exactly what they denote.
    """
    width, height = _size(folder, str(scene))
    x, y = real("x"), real("y")
    parts = [x.between(0, width), y.between(0, height)]
    for kind, obstacles in _entries(read(folder, "ineqs"), str(scene), "ineqs"):
        for number, obstacle in enumerate(_listed(obstacles, f"class {kind}")):
            place = f"obstacle {number} of class {kind}"
            pair = _listed(obstacle, place)
            if len(pair) != 2:
                raise FileError(f"{place}: a pair of A and b was expected, not {len(pair)} entries")
            a, b = _numbers(pair[0], place), _numbers(pair[1], place).reshape(-1)
            if a.ndim != 2 or a.shape != (len(b), 2) or not np.isfinite(a).all() or not np.isfinite(b).all():
                shapes = f"A has shape {a.shape} and b {b.shape}"
                raise FileError(f"{place}: {shapes}; rows of two numbers each were expected")
            sides = [float(p) * x + float(q) * y <= float(r) for (p, q), r in zip(a, b)]
            parts.append(~all_of(sides))
    return Constraint(all_of(parts), variables=["x", "y"])


def convert(folder: str | os.PathLike[str], scene: str | int, output: str | os.PathLike[str]) -> list[Path]:
    """Writes a scene as files that `pal` reads, and returns their names.

    - `sceneN_constraints.geojson`: the obstacles as polygons, with the size of the picture as `bounds`;
    - `sceneN_constraints.smt2`: the same constraint, from the inequalities;
    - `sceneN_trajectories.csv`: columns trajectory_id, frame, x and y, in pixels, as `pal data` and `pal fit` take
      them; and `inside`, 1 where the position satisfies the constraint.

    Args:
        folder: where the four pickles are.
        scene: the number of the scene.
        output: the folder to write to.

    Returns:
        the three files.

    >>> import numpy as np, pathlib, pickle, tempfile
    >>> from pal.datasets import convert_constrained_sdd
    >>> scene = {  # a picture of 8 x 6 pixels with one obstacle, and a track of three positions
    ...     "all_images": np.zeros((6, 8, 3), np.uint8),
    ...     "trajectories_dequantized": {0: np.array([[1.0, 1.0], [2.0, 1.5], [3.0, 1.0]])},
    ...     "ineqs": {"building": [(np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]), np.array([6.0, -4, 5, -3]))]},
    ...     "polygons": {"building": [np.array([[4.0, 3], [6, 3], [6, 5], [4, 5]])]},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, content in scene.items():
    ...         _ = pathlib.Path(folder, name + ".pkl").write_bytes(pickle.dumps({12: content}))
    ...     files = convert_constrained_sdd(folder, 12, folder)
    >>> [file.name for file in files]
    ['scene12_constraints.geojson', 'scene12_constraints.smt2', 'scene12_trajectories.csv']
    """
    scene = str(scene)
    free = constraint(folder, scene)
    width, height = _size(folder, scene)
    features = []
    for kind, polygons in _entries(read(folder, "polygons"), scene, "polygons"):
        for corners in _listed(polygons, f"class {kind}"):
            ring = _numbers(corners, f"a polygon of class {kind}")
            if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3 or not np.isfinite(ring).all():
                wanted = "at least three corners of two numbers were expected"
                raise FileError(f"a polygon of class {kind} has shape {ring.shape}; {wanted}")
            closed = ring.tolist() + ([] if (ring[0] == ring[-1]).all() else [ring[0].tolist()])
            geometry = {"type": "Polygon", "coordinates": [closed]}
            features.append({"type": "Feature", "properties": {"class": str(kind)}, "geometry": geometry})
    tracks = _entries(read(folder, "trajectories_dequantized"), scene, "trajectories_dequantized")
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    names = ("constraints.geojson", "constraints.smt2", "trajectories.csv")
    files = [output / f"scene{scene}_{name}" for name in names]
    map_ = {"type": "FeatureCollection", "bounds": [0, 0, width, height], "features": features}
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(["trajectory_id", "frame", "x", "y", "inside"])
    for track, positions in tracks:
        rows = _numbers(positions, f"track {track}")
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise FileError(f"track {track} has shape {rows.shape}; rows of two numbers were expected")
        for frame, (position, inside) in enumerate(zip(rows.tolist(), free.contains(rows).tolist())):
            writer.writerow([track, frame, *map(repr, position), int(inside)])
    texts = (json.dumps(map_, indent=1) + "\n", free.to_smtlib(), table.getvalue())
    for file, text in zip(files, texts):
        _core.write_file(os.fspath(file), text.encode())
    return files


def _entries(content: Mapping[Any, Any], scene: str, name: str) -> list[tuple[Any, Any]]:
    """The entries of a scene, which is a dictionary."""
    entries = scene_of(content, scene, name)
    if not isinstance(entries, Mapping):
        raise FileError(f"{name}: scene {scene}: a dictionary was expected, not a {type(entries).__name__}")
    return list(entries.items())


def _listed(value: Any, place: str) -> list[Any]:
    if not isinstance(value, (list, tuple, np.ndarray)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        raise FileError(f"{place}: a list was expected, not a {type(value).__name__}")
    return list(value)


def _numbers(value: Any, place: str) -> FloatArray:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise FileError(f"{place}: numbers were expected, not a {type(value).__name__}") from None


def _size(folder: str | os.PathLike[str], scene: str) -> tuple[int, int]:
    """Width and height of the picture."""
    picture = scene_of(read(folder, "all_images"), scene, "all_images")
    if not isinstance(picture, np.ndarray):
        raise FileError(f"the picture of scene {scene}: an array was expected, not a {type(picture).__name__}")
    if picture.ndim not in (2, 3):
        wanted = "(height, width, channels) was expected"
        raise FileError(f"the picture of scene {scene} has shape {picture.shape}; {wanted}")
    return picture.shape[1], picture.shape[0]
