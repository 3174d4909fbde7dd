"""The pages of the documentation, and what can be read off them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    code: str
    line: int  # of its first line of code, from 1


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    content = page.read_text(encoding="utf-8")
    return [Block(found[1], found[2], content.count("\n", 0, found.start(2)) + 1) for found in _FENCE.finditer(content)]


def links(page: Path) -> list[str]:
    """Return the targets of the links and images of a page, those in code left out."""
    content = _FENCE.sub("", page.read_text(encoding="utf-8"))
    content = re.sub(r"`[^`\n]*`", "", content)
    return [plain or image for plain, image in _LINK.findall(content)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    content = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", content, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
