"""The pages of the examples, made when the site is built: what each file says of itself, its picture and its source."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def pages() -> dict[str, str]:
    """The text of each page, by its path under `docs`."""
    return {path(file.name): _page(file) for file in sorted((ROOT / "examples").glob("*.py"))}


def path(name: str) -> str:
    """Where the page of an example is."""
    return f"examples/{name.removesuffix('.py')}.md"


def _page(file: Path) -> str:
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    doc = ast.get_docstring(tree) or ""
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    title, _, rest = doc.partition("\n")
    lines = [f"# {file.name}\n", title, rest, ""]
    if (ROOT / "docs" / "pictures" / f"{file.stem}.png").exists():
        lines.append(f"![What it draws](../pictures/{file.stem}.png)\n")
    return "\n".join([*lines, f"```python\n{code}\n```\n"])
