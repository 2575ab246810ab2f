"""The Python code of the documentation runs, block after block."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/python.md", "docs/regions-per-example.md", "README.md"])
def test_python_blocks_run(page, tmp_path):
    if page.startswith("docs"):
        for library in ("torch", "sklearn", "matplotlib"):
            pytest.importorskip(library)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, f"{page} has no Python code"
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        names = {}
        for number, block in enumerate(blocks):
            exec(compile(block, f"{page}, block {number}", "exec"), names)
    finally:
        os.chdir(here)
