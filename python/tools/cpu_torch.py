"""Lets the CUDA build of PyTorch run on a CPU without the CUDA libraries.

The only torch that the package index offers for Linux on x86 is built for CUDA and asks for about 2 GB of libraries
that a test on a CPU never calls; yet the dynamic linker wants all of them before `import torch` returns. This script
looks up which symbols the installed torch expects from which of these libraries and compiles libraries of the same
names in which every function aborts. It does nothing where the libraries are installed.

    pip install --no-deps torch && python cpu_torch.py

For test environments only. Needs `cc` and `readelf`, which come with the linker that Rust needs anyway.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

CUDA = re.compile(r"lib(cu\w+|nccl|nvrtc|nvshmem_host|nvJitLink|cudnn\w*)\.so")


def readelf(option: str, library: Path) -> str:
    return subprocess.run(["readelf", "-W", option, library], check=True, capture_output=True, text=True).stdout


def needed(library: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", library))


def search_folder(libraries: Path) -> Path:
    """The folder beside torch in which its libraries look first for those of CUDA."""
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+)\]", readelf("-d", libraries / "libtorch_cuda.so"))
    folders = [path.replace("$ORIGIN", str(libraries)) for path in ":".join(paths).split(":") if "nvidia" in path]
    if not folders:
        sys.exit("this torch does not look for libraries of CUDA beside it")
    return Path(os.path.normpath(folders[0]))


def symbols(library: Path) -> list[tuple[str, str, bool, bool]]:
    """Name, version, whether it is undefined, and whether it is data."""
    found = []
    for line in readelf("--dyn-syms", library).splitlines():
        parts = line.split()
        if len(parts) < 8 or not parts[0].rstrip(":").isdigit():
            continue
        name, _, version = parts[7].partition("@")
        found.append((name, version.lstrip("@"), parts[6] == "UND" and parts[4] == "GLOBAL", parts[3] == "OBJECT"))
    return found


def version_files(library: Path) -> dict[str, str]:
    """Which file each version tag is asked of."""
    files, current = {}, ""
    for line in readelf("-V", library).splitlines():
        if match := re.search(r"File: (\S+)", line):
            current = match.group(1)
        if (match := re.search(r"Name: (\S+)\s+Flags", line)) and current:
            files[match.group(1)] = current
    return files


def compile_stub(name: str, versions: dict[str, dict[str, bool]], folder: Path) -> None:
    source, script = ["#include <stdlib.h>"], []
    for version, names in sorted(versions.items()):
        for symbol, data in sorted(names.items()):
            source.append(f"char {symbol}[4096];" if data else f"void {symbol}(void) {{ abort(); }}")
        if version:
            script.append(f"{version} {{ global: {' '.join(n + ';' for n in sorted(names))} }};")
    with tempfile.TemporaryDirectory() as work:
        c, map_ = Path(work, "stub.c"), Path(work, "stub.map")
        c.write_text("\n".join(source))
        map_.write_text("\n".join(script))
        command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", c, "-o", folder / name, f"-Wl,-soname,{name}"]
        subprocess.run(command + ([f"-Wl,--version-script={map_}"] if script else []), check=True)


def main() -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit("torch is not installed here")
    package = Path(spec.origin).parent
    libraries = sorted((package / "lib").glob("*.so*"))
    folder = search_folder(package / "lib")
    there = {path.name for path in (package.parent / "nvidia").glob("**/*.so*")}
    wanted = {name for library in libraries for name in needed(library) if CUDA.match(name)}
    missing = sorted(wanted - there)
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    defined, undefined = set(), []
    for library in libraries + sorted(folder.glob("*.so*")):
        files = version_files(library)
        for name, version, open_, data in symbols(library):
            if not open_:
                defined.add(name)
            elif version in files and files[version] in missing:
                undefined.append((files[version], version, name, data))
            elif not version and re.match(r"(cu|nccl|nvrtc|nvshmem)", name):
                undefined.append((missing[0], "", name, data))
    stubs: dict[str, dict[str, dict[str, bool]]] = {name: defaultdict(dict) for name in missing}
    for file, version, name, data in undefined:
        if name not in defined:
            stubs[file][version][name] = data
    for name, versions in stubs.items():
        compile_stub(name, versions, folder)
    print(f"{len(stubs)} libraries that a CPU does not need, in {os.path.relpath(folder)}")


if __name__ == "__main__":
    main()
