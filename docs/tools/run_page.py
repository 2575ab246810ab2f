"""Runs the Python blocks of a page, one after the other, as a reader would.

A `text` block right after a `python` block is what that block prints; `...` in it stands for anything, and numbers with
a decimal point need only be close, because training depends on the machine in the last digits. A picture that a
page shows from a folder `images` beside it is one that its blocks write under the same name. The tests run all pages;
this command runs some of them, writes what they print into them, and replaces their pictures:

    python docs/tools/run_page.py docs/tutorials/*.md

Needs the package with all its extras, as `make wheel` and the environment of the tests have them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n\n^```text\n(?P<printed>.*?)^```$)?", re.DOTALL | re.MULTILINE)
DECIMAL = re.compile(r"-?\d+\.\d+")
PICTURE = re.compile(r"\]\(images/([\w.-]+)\)")


def run(page: Path, folder: Path) -> list[tuple[str | None, str]]:
    """Runs the blocks of a page in a folder. Returns for each what the page says that it prints, and what it printed."""
    results: list[tuple[str | None, str]] = []
    names: dict[str, object] = {"__name__": "__main__"}
    here = Path.cwd()
    os.chdir(folder)
    try:
        for number, block in enumerate(BLOCK.finditer(page.read_text())):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block["code"], f"{page}, block {number}", "exec"), names)
            results.append((block["printed"], printed.getvalue()))
    finally:
        os.chdir(here)
    return results


def matches(said: str, printed: str) -> bool:
    """Whether a block printed what the page says: decimals to 0.1 and a tenth of their size, everything else exactly."""
    pattern = re.escape(DECIMAL.sub("<decimal>", said)).replace(re.escape("..."), ".*")
    if re.fullmatch(pattern, DECIMAL.sub("<decimal>", printed), re.DOTALL) is None:
        return False
    if "..." in said:
        return True
    pairs = zip(DECIMAL.findall(said), DECIMAL.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= 0.1 + 0.1 * abs(float(a)) for a, b in pairs)


def pictures(page: Path) -> list[str]:
    """The names of the pictures that a page shows and that its blocks have to write."""
    return PICTURE.findall(page.read_text()) if BLOCK.search(page.read_text()) else []


def _update(page: Path) -> None:
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        results = run(page.resolve(), Path(folder))
        for name in pictures(page):
            target = page.parent / "images" / name
            if name.endswith(".gif"):
                # An animation, whose frames are kept as they are.
                shutil.copyfile(Path(folder, name), target)
            else:
                # 128 colours are enough for plots, and make the files a third as large.
                Image.open(Path(folder, name)).convert("RGB").quantize(128).save(target, optimize=True)
            print(f"{target}: {target.stat().st_size} bytes")
    printed = iter(results)

    def replace(block: re.Match[str]) -> str:
        said, now = next(printed)
        return block[0] if said is None or matches(said, now) else block[0].replace(f"```text\n{said}", f"```text\n{now}")

    page.write_text(BLOCK.sub(replace, page.read_text()))


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for argument in sys.argv[1:]:
        _update(Path(argument))
