"""The drone scenes of constrained-sdd: from the original pickles to a map in GeoJSON and a table of positions.

The data set is four pickles, each a dictionary by scene:

| name | content of a scene |
|---|---|
| `all_images` | the picture, as an array of bytes (height, width, channels) |
| `trajectories_dequantized` | by track, an array (T, 2) of positions in pixels of the picture |
| `ineqs` | by class of obstacle, a list of pairs (A, b): an obstacle is where A y <= b |
| `polygons` | by class of obstacle, a list of arrays of corners |

A pickle can run any code when it is opened. These are therefore opened by a reader that makes arrays and plain
containers only.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError
from ..formula import Constraint, all_of, real

NAMES = ("all_images", "trajectories_dequantized", "ineqs", "polygons")

# All that a pickle of arrays in dictionaries, lists and tuples is made of, in old and new versions of numpy.
_ALLOWED = {
    ("numpy", "ndarray"), ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"), ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"), ("numpy._core.numeric", "_frombuffer"),
    ("collections", "defaultdict"), ("collections", "OrderedDict"),
    ("builtins", "dict"), ("builtins", "list"), ("builtins", "tuple"), ("_codecs", "encode"),
}  # fmt: skip


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise FileError(f"it holds a {module}.{name}, which has no place among arrays; this is not the data set")
        return super().find_class(module, name)


def read(folder: str | os.PathLike[str], name: str) -> Mapping[Any, Any]:
    """Reads the pickle of this name, one of `NAMES`."""
    places = [Path(folder, name + ending) for ending in (".pkl", ".pickle", ".p", "")]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise FileError(f"{places[0]} does not exist; give the folder with the pickles {', '.join(NAMES)}")
    try:
        content = _Reader(io.BytesIO(file.read_bytes())).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError) as error:
        raise FileError(f"{file}: not a pickle that can be read: {error}") from None
    except FileError as error:
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
    for kind, obstacles in scene_of(read(folder, "ineqs"), str(scene), "ineqs").items():
        for number, (a, b) in enumerate(obstacles):
            a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float).reshape(-1)
            if a.ndim != 2 or a.shape != (len(b), 2) or not np.isfinite(a).all() or not np.isfinite(b).all():
                shapes = f"A has shape {a.shape} and b {b.shape}"
                raise FileError(f"obstacle {number} of class {kind}: {shapes}; rows of two numbers each were expected")
            sides = [float(p) * x + float(q) * y <= float(r) for (p, q), r in zip(a, b)]
            parts.append(~all_of(sides))
    return Constraint(all_of(parts), variables=["x", "y"])


def convert(folder: str | os.PathLike[str], scene: str | int, output: str | os.PathLike[str]) -> list[Path]:
    """Writes a scene as files that `pal` reads, and returns their names.

    - `sceneN_constraints.geojson`: the obstacles as polygons, with the size of the picture as `bounds`;
    - `sceneN_constraints.smt2`: the same constraint, from the inequalities;
    - `sceneN_trajectories.csv`: columns trajectory_id, frame, x and y, in pixels, as `pal data` and `pal fit` take
      them; and `inside`, 1 where the position satisfies the constraint.
    """
    scene = str(scene)
    free = constraint(folder, scene)
    width, height = _size(folder, scene)
    features = []
    for kind, polygons in scene_of(read(folder, "polygons"), scene, "polygons").items():
        for corners in polygons:
            ring = np.asarray(corners, dtype=float)
            if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3 or not np.isfinite(ring).all():
                wanted = "at least three corners of two numbers were expected"
                raise FileError(f"a polygon of class {kind} has shape {ring.shape}; {wanted}")
            closed = ring.tolist() + ([] if (ring[0] == ring[-1]).all() else [ring[0].tolist()])
            geometry = {"type": "Polygon", "coordinates": [closed]}
            features.append({"type": "Feature", "properties": {"class": str(kind)}, "geometry": geometry})
    tracks = scene_of(read(folder, "trajectories_dequantized"), scene, "trajectories_dequantized")
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    names = ("constraints.geojson", "constraints.smt2", "trajectories.csv")
    files = [output / f"scene{scene}_{name}" for name in names]
    map_ = {"type": "FeatureCollection", "bounds": [0, 0, width, height], "features": features}
    files[0].write_text(json.dumps(map_, indent=1) + "\n")
    files[1].write_text(free.to_smtlib())
    with files[2].open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["trajectory_id", "frame", "x", "y", "inside"])
        for track, positions in tracks.items():
            rows = np.asarray(positions, dtype=float)
            if rows.ndim != 2 or rows.shape[1] != 2:
                raise FileError(f"track {track} has shape {rows.shape}; rows of two numbers were expected")
            for frame, (position, inside) in enumerate(zip(rows.tolist(), free.contains(rows).tolist())):
                writer.writerow([track, frame, *map(repr, position), int(inside)])
    return files


def _size(folder: str | os.PathLike[str], scene: str) -> tuple[int, int]:
    """Width and height of the picture."""
    picture = np.asarray(scene_of(read(folder, "all_images"), scene, "all_images"))
    if picture.ndim not in (2, 3):
        wanted = "(height, width, channels) was expected"
        raise FileError(f"the picture of scene {scene} has shape {picture.shape}; {wanted}")
    return picture.shape[1], picture.shape[0]
