"""An extension of griffe, which reads the package for the reference.

- Examples of docstrings become blocks of code: a line that begins with `>>>` would otherwise be a quotation in Markdown.
- What is compiled has its documentation in the Rust source, not in the stub: it is taken from there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

SOURCE = Path(__file__).parents[2] / "crates" / "pal-python" / "src"
# An example: lines from `>>>` up to an empty line or the end.
EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*?(?=^\s*$|\Z)", re.DOTALL | re.MULTILINE)
# Lines of documentation, attributes, and what they belong to.
DOCUMENTED = re.compile(
    r"(?P<text>(?:^ *///.*\n)+)(?:^ *#\[.*\]\n)*^ *(?:pub(?:\(crate\))? )?(?P<kind>struct|fn) (?P<name>\w+)", re.MULTILINE
)
# The methods of a class: in a block of its own, or in a macro that adds the operators.
METHODS = re.compile(
    r"^(?:impl (?P<name>\w+) \{|arithmetic!\((?P<term>\w+), \w+, \{)\n(?P<body>.*?)^\}", re.DOTALL | re.MULTILINE
)


def _compiled() -> dict[str, str]:
    """The documentation of the compiled classes and their methods, by `Class` and `Class.method`."""
    found: dict[str, str] = {}
    for file in sorted(SOURCE.rglob("*.rs")):
        text = file.read_text()
        found |= {item["name"]: _text(item) for item in DOCUMENTED.finditer(text) if item["kind"] == "struct"}
        for block in METHODS.finditer(text):
            name = block["name"] or block["term"]
            found |= {f"{name}.{item['name']}": _text(item) for item in DOCUMENTED.finditer(block["body"])}
    return found


def _text(item: re.Match[str]) -> str:
    return "\n".join(line.strip().removeprefix("///").removeprefix(" ") for line in item["text"].splitlines())


class Package(griffe.Extension):
    """Documentation from the Rust source, and fences around examples."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled = _compiled()

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None and obj.path.startswith("pal._core."):
            text = self.compiled.get(obj.path.removeprefix("pal._core."))
            if text is not None:
                obj.docstring = griffe.Docstring(text, parent=obj)
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    indent = example["indent"]
    text = re.sub(r" *# doctest:.*", "", example[0].rstrip("\n"))
    return f"{indent}```pycon\n{text}\n{indent}```\n"
