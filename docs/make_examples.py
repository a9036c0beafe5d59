"""Writes autograph/examples.txt: what the examples in the docstrings of public names print.

The file holds for each name the statements of its example and their real output; `autograph/documentation.py` puts
them into the docstrings. `python -m docs.make_examples` runs all statements again and writes what they print now;
names in `lines` on standard input (`name: statement ;; statement`) are added or replaced.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import sys
from typing import Any

import autograph as ag
from autograph.documentation import FILE, examples
from docs.api_pages import sections

_BINARY = {"math.igamma": "[1.0], [2.0]", "math.igammac": "[1.0], [2.0]", "math.polygamma": "[1.0], [2.0]"}


def statements_of(example: str) -> list[str]:
    """The statements of an example in doctest's form."""
    found: list[str] = []
    for line in example.splitlines():
        if line.startswith(">>> "):
            found.append(line[4:])
        elif line.startswith("... "):
            found[-1] += "\n" + line[4:]
    return found


def run(statements: list[str], name: str) -> str:
    """The statements with their output, in doctest's form."""
    space: dict[str, Any] = {"ag": ag, "__name__": "example"}
    lines: list[str] = []
    for number, statement in enumerate(statements):
        lines += [(">>> " if i == 0 else "... ") + part for i, part in enumerate(statement.split("\n"))]
        filename = f"<example of {name} {number}>"
        linecache.cache[filename] = (len(statement), None, statement.splitlines(True), filename)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(statement + "\n", filename, "single", dont_inherit=True), space)
        lines += printed.getvalue().rstrip().splitlines()
    return "\n".join(lines)


def example_of_row(name: str, row: Any) -> str:
    """A call of an elementwise op, made from its row: operands of a dtype that it takes, in its samples' range."""
    if name in _BINARY:
        return f"ag.{name}({_BINARY[name]})"
    count = len(row.samples[0].shapes)
    if "f" in row.kinds:
        low, high = max(row.samples[0].low, -1.0), min(row.samples[0].high, 2.0)
        operand = f"[{low + (high - low) / 4:g}, {high - (high - low) / 4:g}]"
        operand = operand if "." in operand else operand.replace(",", ".0,").replace("]", ".0]")
        other = "[0.5, 0.5]"
    else:
        operand, other = ("[True, False]", "[True, True]") if "b" in row.kinds else ("[5, 6]", "[3, 3]")
    return f"ag.{name}({', '.join([operand, other][:count])})"


def main() -> None:
    found = {name: statements_of(text) for name, text in examples().items()}
    if not sys.stdin.isatty():
        for line in sys.stdin.read().splitlines():
            name, _, text = line.partition(": ")
            if text:
                found[name] = [part.strip().replace("\\n", "\n") for part in text.split(";;")]
    public = {name: value for _, names in sections() for name, value in names.items()}
    for name, value in public.items():
        if hasattr(value, "row") and not any(public.get(other) is value for other in found):
            found[name] = [example_of_row(name, value.row)]
    parts: list[str] = []
    for name in sorted(found):
        if name not in public:
            print(f"{name}: no such name")
            continue
        try:
            parts.append(f"== {name}\n{run(found[name], name)}\n")
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
    FILE.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
