"""The command `python -m pal.datasets`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import Error
from . import constrained_sdd


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m pal.datasets", description="Converts published data sets.")
    commands = parser.add_subparsers(required=True)
    about = "drone scenes with obstacles and trajectories, from the original pickles"
    sdd = commands.add_parser("constrained-sdd", help=about)
    sdd.add_argument("path", type=Path, help="the folder with the pickles")
    sdd.add_argument("--scene", required=True, help="the number of the scene, such as 12")
    sdd.add_argument("-o", "--output", type=Path, required=True, help="the folder to write to; created if need be")
    given = parser.parse_args(arguments)
    try:
        written = constrained_sdd.convert(given.path, given.scene, given.output)
    except (OSError, Error, ValueError) as error:
        print(f"pal.datasets: {error}", file=sys.stderr)
        return 2
    for file in written:
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
