"""The Python blocks of the documentation: run in order, a page one namespace, as in a session.

A ```python block that is followed by a ```text block prints exactly that. `<!-- not run: reason -->` before a block
leaves it out. `python -m tests.docs` writes what the blocks print into the pages.
"""

import contextlib
import io
import linecache
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import autograph as ag

ROOT = Path(__file__).resolve().parent.parent
# Their blocks raise, or stand in entries of their own: tests/test_error_docs.py runs them.
RUN_ELSEWHERE = {"docs/errors.md"}
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if str(path.relative_to(ROOT)) not in RUN_ELSEWHERE
}
BLOCK = re.compile(
    r"(<!-- not run: [^>]{10,} -->\n)?```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


@dataclass
class Block:
    code: str
    expected: str | None
    line: int
    is_run: bool
    end: int  # position in the page, behind the block and its output
    printed: str = ""


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    return [Block(m[2], m[3], text.count("\n", 0, m.start(2)) + 1, m[1] is None, m.end()) for m in BLOCK.finditer(text)]


def run(name: str, text: str) -> list[Block]:
    """Runs the blocks of a page and notes what they print. Devices that it makes end with it."""
    ag.random.set_seed(None)  # whatever was run before
    namespace: dict = {"__name__": "docs"}
    found = blocks(text)
    try:
        for block in found:
            if not block.is_run:
                continue
            # Conversion reads source through linecache; a name of its own for each block keeps their lines apart.
            filename = f"<{name}:{block.line}>"
            linecache.cache[filename] = (len(block.code), None, block.code.splitlines(keepends=True), filename)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.code, filename, "exec"), namespace)
            block.printed = printed.getvalue()
    finally:
        ag.config.emulate_gpus(0)
        (cpu,) = ag.config.list_physical_devices("CPU")
        ag.config.set_logical_device_configuration(cpu, [])
    return found


def rewrite(name: str, text: str) -> str:
    """The page with the outputs that its blocks have now."""
    for block in reversed(run(name, text)):
        if block.expected is not None:
            end = block.end - len("```\n")
            text = text[: end - len(block.expected)] + block.printed.rstrip() + "\n" + text[end:]
    return text


def main(names: list[str]) -> None:
    for name, path in PAGES.items():
        if not names or name in names:
            text = path.read_text(encoding="utf-8")
            path.write_text(rewrite(name, text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
