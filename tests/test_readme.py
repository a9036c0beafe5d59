"""README.md: its Python prints what it says it prints, its links lead somewhere, its commands are the ones CI runs."""

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks() -> list[tuple[str, str, int]]:
    """Language, text and first line of every fenced block."""
    return [(m[1], m[2], README.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(README)]


def test_python_blocks_print_what_the_text_blocks_say():
    """All blocks share one namespace, as in a session; each is followed by the text that it prints."""
    namespace: dict = {"__name__": "readme"}
    checked = 0
    found = blocks()
    for (language, code, line), (next_language, expected, _) in zip(found, found[1:]):
        if language != "python":
            continue
        assert next_language == "text", f"README.md:{line}: the output of this block is missing"
        # Conversion reads source through linecache; a name of its own for each block keeps their lines apart.
        filename = f"<README.md:{line}>"
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, filename, "exec"), namespace)
        assert printed.getvalue().strip() == expected.strip(), f"README.md:{line}"
        checked += 1
    assert checked >= 2


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


def test_two_commands_are_marked_for_ci():
    marked = re.findall(r"^<!-- ci -->\n```bash\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert [command.count("\n") for command in marked] == [1, 1]
    assert "examples/quickstart.py" in marked[0]
    assert "python -m tests" in marked[1]
    assert len([language for language, *_ in blocks() if language == "bash"]) == 2
