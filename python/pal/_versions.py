"""The version of the package, and a report of everything that its results depend on."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import TextIO

__version__ = metadata.version("pal-layer")

# The libraries that the package works with, by the names of their distributions.
_LIBRARIES = ("numpy", "torch", "scikit-learn", "scipy", "matplotlib", "tqdm", "pandas", "shapely", "pysmt")


def show_versions(file: TextIO | None = None) -> None:
    """Prints the versions of this package, of Python, of the system and of the libraries that the package works with.

    For reports of problems, and to be kept with results.

    Args:
        file: where to print; standard output if not given.

    >>> import pal
    >>> pal.show_versions()  # doctest: +ELLIPSIS
    pal           ...
    Python        ...
    """
    rows = [
        ("pal", __version__),
        ("Python", platform.python_version()),
        ("system", platform.platform()),
        ("processors", str(os.cpu_count())),
        ("threads", os.environ.get("RAYON_NUM_THREADS", "one for each processor")),
    ]
    rows += [(name, _installed(name)) for name in _LIBRARIES]
    for name, value in rows:
        print(f"{name:13} {value}", file=file or sys.stdout)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
