"""What is true of an op stands in its row of the op table, and in no list of names elsewhere.

A list goes stale silently when an op is renamed or a new one belongs into it. Tables that say what to *do* with an op
(a lowering, a rewriting rule) are what they look like: their values are functions.
"""

import ast
import re
from pathlib import Path

import pytest

import autograph  # noqa: F401 (registers all rows)
from runtime.ops.table import OPS

ROOT = Path(__file__).resolve().parent.parent.parent
# What graphs are made of: code that gives them their meaning has to name them.
STRUCTURE = {"constant", "cond", "while", "letrec", "call", "assign", "commit"}
# Lowerings by name, and exported names.
LOWERINGS = ("runtime/codegen/op_lowerings", "runtime/onnx_export", "autograph/onnx_models", "autograph/namespaces")
NAMESPACES = ("runtime/ops/api.py", "runtime/ops/numpy", "runtime/array_api")
# file and what its list is assigned to, or the function that it stands in → why it may be there
EXCEPTIONS = {
    ("runtime/codegen/device/c_functions.py", "_ANGLES"): "functions of the C library",
    ("runtime/codegen/kernel/scalars.py", "_QUICK_ALONE"): "functions of kernels",
    ("runtime/kernel_ir/functions.py", "C_FUNCTIONS"): "functions of the C library",
    ("runtime/kernel_ir/functions.py", "FORMULAS"): "functions of kernels (`math.sin`)",
    ("runtime/kernel_ir/functions.py", "ROWS"): "functions of kernels",
    ("runtime/llvm/calls.py", "BUILTINS"): "functions of kernels",
    ("runtime/codegen/symbolic/carry_ranges.py", "_EXCHANGED"): "the algebra of comparisons",
    ("runtime/codegen/symbolic/carry_ranges.py", "_NEGATED"): "the algebra of comparisons",
    ("runtime/graph/trip_counts.py", "_TOWARDS"): "the algebra of comparisons",
    ("runtime/graph/passes/rules/algebra.py", "RULES"): "a rule that several ops share",
    ("runtime/graph/passes/rewrites/complex_parts.py", "_RULES"): "ops that a rule adds",
    ("runtime/codegen/loops/reductions.py", "EXTREMES"): "how two reductions are lowered",
    ("runtime/codegen/loops/scalarize.py", "_FILLED"): "how two ops are lowered",
    ("runtime/graph/passes/rules/joins.py", "_VIEWS"): "the pattern that the pass rewrites, and makes",
    ("runtime/graph/passes/control_flow/late_operands.py", "_ORDERLESS"): "the pattern that the pass rewrites",
    ("runtime/graph/passes/rules/updates.py", "_NEW"): "the pattern that the rule rewrites, and makes",
    ("runtime/graph/passes/rules/updates.py", "_READS"): "the pattern that the rule rewrites, and makes",
    ("runtime/autodiff/residuals.py", "SIZES"): "ops that the pass computes anew",
    ("autograph/data/batching.py", "_SHAPED"): "two rules that stand in one function",
}


def _is_op(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in OPS


def _names(node: ast.AST) -> list[str]:
    """The names of ops that a literal lists; of a dictionary that says something of them."""
    if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
        names = [each.value for each in node.elts if _is_op(each)]
        return names if len(names) * 2 > len(node.elts) else []
    if isinstance(node, ast.Dict):
        facts = all(not isinstance(value, (ast.Name, ast.Attribute, ast.Lambda, ast.Call)) for value in node.values)
        names = [key.value for key in node.keys if key is not None and _is_op(key)]
        return names if facts and len(names) * 2 > len(node.keys) else []
    return []


def lists(text: str) -> list[tuple[str, list[str]]]:
    """The lists of ops in a module, with what each is assigned to or the function that it stands in.

    Two names in an expression are a pattern that is matched there; two that have a name of their own are a list.
    """
    found = []

    def visit(node: ast.AST, place: str, is_named: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            place, is_named = node.name, False
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and not is_named and place == "":
                place, is_named = target.id, True
        names = _names(node)
        if len(names) >= (2 if is_named else 3) and not set(names) <= STRUCTURE and place != "__all__":
            found.append((place, names))
        for child in ast.iter_child_nodes(node):
            visit(child, place, is_named)

    visit(ast.parse(text), "", False)
    return found


def _all_lists() -> list[tuple[str, str, list[str]]]:
    files = [path for room in ("autograph", "runtime") for path in sorted((ROOT / room).rglob("*.py"))]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    kept = {
        name: text
        for name, text in texts.items()
        if not name.startswith((*LOWERINGS, *NAMESPACES)) and len(OPS.keys() & set(re.findall(r'"(\w+)"', text))) > 1
    }
    return [(name, place, names) for name, text in kept.items() for place, names in lists(text)]


def test_facts_stand_in_rows():
    found = _all_lists()
    new = [
        f"{name}: {place or 'module'} lists {', '.join(names)}"
        for name, place, names in found
        if (name, place) not in EXCEPTIONS
    ]
    assert not new, "make these a field of `OpDef`, stated in the rows:\n" + "\n".join(new)
    gone = EXCEPTIONS.keys() - {(name, place) for name, place, _ in found}
    assert not gone, f"exceptions for lists that are gone: {sorted(gone)}"


@pytest.mark.parametrize(
    "text",
    [
        '_VIEWS = frozenset({"reshape", "squeeze"})',
        'if node.op.name in ("reshape", "squeeze", "transpose"):\n    pass',
        'COSTS = {"exp": 10, "log": 10}',
        'def f(node):\n    known = ["exp", "log", "sin"]',
    ],
)
def test_lists_are_found(text):
    assert lists(text)


@pytest.mark.parametrize(
    "text",
    [
        'RULES = {"add": _add, "subtract": _subtract}',
        'if made.op.name in ("add", "subtract"):\n    pass',
        'LOOPS = ("while", "letrec")',
        '__all__ = ["exp", "log", "sin"]',
    ],
)
def test_rules_and_patterns_are_none(text):
    assert not lists(text)


def test_facts_agree():
    for op in OPS.values():
        assert not op.fails_first or op.is_update, op
        assert not op.is_reshape or op.keeps_order, op
        assert not op.keeps_order or (op.is_view and op.is_move), op
        assert not op.is_view or op.is_move or op.name == "strided_slice", op
        assert op.numbers_after is None or op.is_move, op
        assert not (op.is_check or op.is_random) or op.effect, op
        assert not op.is_light or (op.is_elementwise and op.cheap), op
        assert not op.attrs or not op.is_elementwise, op
