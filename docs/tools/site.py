"""What MkDocs cannot do by itself: pages from the root of the repository, links out of docs/, Rust examples.

MkDocs calls the functions whose names begin with `on_`; `mkdocs.yml` names this file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
# Pages that live in the root of the repository, and their places on the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security.md",
}
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))")


def on_config(config: Any) -> Any:
    """The address of the repository is in Cargo.toml, and nowhere else."""
    found = re.search(r'^repository = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if found is None:
        raise PluginError("Cargo.toml has no line `repository = \"..\"`")
    config.repo_url = found[1]
    config.repo_name = "source"
    config.edit_uri = None
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of the root."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites links for the site, and hides the lines of Rust examples that rustdoc hides."""
    site = page.file.src_uri
    source = next((name for name, target in PAGES.items() if target == site), f"docs/{site}")
    parts, end = [], 0
    for block in FENCED.finditer(text):
        parts.append(_links(text[end : block.start()], source, site, config.repo_url))
        parts.append(_hidden(block[0]) if block[0].startswith("```rust") else block[0])
        end = block.end()
    return "".join([*parts, _links(text[end:], source, site, config.repo_url)])


def _links(text: str, source: str, site: str, repository: str) -> str:
    """Links of a page at `source` in the repository, for the same page at `site`."""

    def replace(link: re.Match[str]) -> str:
        path, mark, anchor = link[0].partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return link[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (ROOT / target).exists():
            raise PluginError(f"{source}: {link[0]} does not exist")
        if target in PAGES:
            place = PAGES[target]
        elif target == "docs":
            place = "getting-started.md"
        elif target.startswith("docs/") and not target.endswith(".py"):
            place = target.removeprefix("docs/")
        else:
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            return f"{repository}/{kind}/main/{target}{mark}{anchor}"
        return posixpath.relpath(place, posixpath.dirname(site) or ".") + mark + anchor

    return LINK.sub(replace, text)


def _hidden(block: str) -> str:
    return "\n".join(line for line in block.splitlines() if line != "#" and not line.startswith("# "))
