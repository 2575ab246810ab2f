"""Checks the links of a built site: every page, picture, style and heading that a page refers to must be there.

    python docs/tools/links.py target/site

MkDocs checks links between pages of Markdown. This checks what came of them, with links of docstrings, menus and themes.
Addresses of other sites are not visited.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the names that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif value and (name == "id" or (name == "name" and tag == "a")):
                self.names.add(value)


def broken(site: Path) -> Iterator[str]:
    """A sentence for each link that leads nowhere."""
    pages = {file: Page(file.read_text()) for file in site.rglob("*.html")}
    for file, page in sorted(pages.items()):
        # The page for missing pages is shown at any address, so its links begin at the root.
        if file.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            place = f"{file.relative_to(site)}: {link}"
            if not target.is_file():
                yield f"{place}: no such file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                yield f"{place}: no such heading"


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    problems = list(broken(root))
    print("\n".join(problems) or f"{len(list(root.rglob('*.html')))} pages, all links lead somewhere")
    sys.exit(bool(problems))
