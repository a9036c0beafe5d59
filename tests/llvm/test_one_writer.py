"""All machine code is written by `runtime/llvm/function_builder.py`: no other file has instructions in its strings, or
names an intrinsic that another place names."""

import ast
import collections
import re
from collections.abc import Iterator
from pathlib import Path

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
BUILDER = RUNTIME / "llvm" / "function_builder.py"
FORMULAS = RUNTIME / "codegen" / "math"  # built with llvmlite, which declares intrinsics itself
# A line of a function in LLVM IR.
INSTRUCTION = re.compile(
    r"^\s*(%[\w.]+ = [a-z]+ |br (i1|label) |ret (void$|\w+ )|store \w+ |call void @|define .*\{$)", re.MULTILINE
)


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings of a module except docstrings, with their lines; what is formatted into them is `%x`."""
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            docstrings.add(body[0].value)
    inner = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "%x" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in docstrings and node not in inner:
                yield node.lineno, node.value


def written_out(text: str) -> list[str]:
    """The lines of instructions in a text that a function may consist of: one of several lines, or an indented one."""
    is_part = "\n" in text or text.startswith("  ")
    return [line.strip() for line in text.split("\n") if INSTRUCTION.search(line)] if is_part else []


def intrinsics(tree: ast.AST) -> Iterator[str]:
    """The intrinsics that a module names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "intrinsic":
            named = (each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant))
            yield from (name for name in named if isinstance(name, str))
    for _, text in strings(tree):
        yield from re.findall(r"@llvm\.([\w.]+)\(?", text) if "@llvm.compiler.used" not in text else ()


def test_instructions_are_recognised() -> None:
    text = "define void @f(i64 %x) {\n  %y = add i64 %x, 1\n  br label %out\nout:\n  ret void\n}\n"
    assert len(written_out(text)) == 4
    assert written_out("  store i64 0, ptr %x")
    assert not written_out("declare ptr @malloc(i64)\n@kept = internal global i64 0\n")


def test_only_the_builder_writes_instructions() -> None:
    found = {
        f"{path.relative_to(RUNTIME)}:{line}": lines
        for path in sorted(RUNTIME.rglob("*.py"))
        if path != BUILDER
        for line, text in strings(ast.parse(path.read_text(encoding="utf-8")))
        if (lines := written_out(text))
    }
    assert not found, "write these with runtime.llvm.function_builder"


def test_each_intrinsic_is_named_once() -> None:
    places = collections.defaultdict(list)
    for path in sorted(RUNTIME.rglob("*.py")):
        if FORMULAS not in path.parents:
            for name in intrinsics(ast.parse(path.read_text(encoding="utf-8"))):
                places[name].append(str(path.relative_to(RUNTIME)))
    assert {"smax", "memcpy", "fmuladd"} <= set(places)
    assert not {name: files for name, files in places.items() if len(files) > 1}
