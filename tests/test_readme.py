"""README.md: its links lead somewhere, its commands are the ones CI runs. (tests/test_docs.py runs its Python.)"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks() -> list[tuple[str, str, int]]:
    """Language, text and first line of every fenced block."""
    return [(m[1], m[2], README.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(README)]


def commands() -> list[str]:
    """The blocks that are marked as commands of CI."""
    marked = re.findall(r"^<!-- ci -->\n```bash\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [block.removesuffix("\n") for block in marked]


def test_it_renders_on_a_package_index():
    """Where there is no repository around it: no link and no picture is relative."""
    assert re.findall(r"\]\((?!https?:)([^)]+)\)", README) == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:docs|examples)/[\w/.]+|[A-Z]+\.md)`", README))))
def test_files_are_there(path):
    assert (ROOT / path).exists()


def test_two_commands_are_marked_for_ci():
    first, second = commands()
    assert "\n" not in first + second
    assert "examples/quickstart.py" in first
    assert "python -m tests" in second
    assert len([language for language, *_ in blocks() if language == "bash"]) == 2
