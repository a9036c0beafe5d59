"""The map of the project, kept by reading every import: which room may use which, and no circles between modules.

`ROOMS` is the map. A room is a package or a single module; its entry names all the rooms that it may import. Imports
inside functions and under `if TYPE_CHECKING:` count as well: a circle hidden in a function body is still a circle.
"""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("autograph", "runtime")
# Of the standard library's modules those that the oldest Python doesn't have.
NEW_IN_THE_LIBRARY = {"annotationlib"}
MAX_LINES = 700
# path → why it may be longer. Keep it empty: a longer file has two purposes.
LONG_FILES: dict[str, str] = {}

# What every room may use, and which uses no room.
EVERYWHERE = {
    "runtime.dataclass", "runtime.interpreter", "runtime.bytecode", "runtime.code_memos", "runtime.python_text",
    "runtime.cancellation", "runtime.signatures", "runtime.system",
}  # fmt: skip
BASE = {
    "runtime.dtypes", "runtime.shapes", "runtime.types", "runtime.errors", "runtime.context", "runtime.thread_state",
    "runtime.spec",
}  # fmt: skip
BASE |= {"runtime.nest", "runtime.device", "runtime.composites", "runtime.garbage_collection", "runtime.recursion"}
BASE |= {"runtime.files", "runtime.locks", "runtime.tracebacks", "runtime.pass_log", "runtime.gpu"}
BASE |= {"runtime.profiling", "runtime.progress", "runtime.freed_memory", "runtime.performance"}
OPS = {"runtime.ops"}
OPS |= {f"runtime.ops.{n}" for n in "elementwise arrays linalg random signal strings nn image numpy".split()}
VALUES = {
    *BASE,
    "runtime.tensor",
    *OPS,
    "runtime.variable",
    "runtime.moving_average",
    "runtime.tensor_array",
    "runtime.generator",
}
VALUES |= {"runtime.numpy_random"}
VALUES |= {"runtime.ragged", "runtime.sparse", "runtime.sparse_functions", "runtime.embeddings"}
VALUES |= {"runtime.lookup", "runtime.parsing", "runtime.extension_types"}
VALUES |= {"runtime.type_specs", "runtime.shallow_structures", "runtime.api_dispatch"}
VALUES |= {"runtime.staged_array", "runtime.array_contents"}
VALUES |= {"runtime.staged_list", "runtime.list_methods", "runtime.list_elements", "runtime.array_api"}
RUNTIME = {*VALUES, "runtime.graph", "runtime.autodiff", "runtime.engine", "runtime.engine.fastcall"}
# What the stages of the code generator may all use.
LOWERED = {*BASE, *OPS, "runtime.graph", "runtime.kernel_ir", "runtime.kernel_ir.analysis"}
LOWERED |= {"runtime.codegen.kernel", "runtime.codegen.symbolic", "runtime.codegen.cost_model"}
CONVERSION = {"autograph.errors", "autograph.syntax", "autograph.convert"}
AUTOGRAPH = {*CONVERSION, "autograph.convert.api", "autograph.operators"}


def _codegen(names: str) -> set[str]:
    return {f"runtime.codegen.{name}" for name in names.split()}


def _ops(names: str) -> set[str]:
    return {*BASE, "runtime.tensor", "runtime.ops", *(f"runtime.ops.{name}" for name in names.split())}


ROOMS_OF_OPS: dict[str, set[str]] = {
    "runtime.ops.elementwise": _ops(""),
    "runtime.ops.arrays": _ops("elementwise"),
    **{f"runtime.ops.{name}": _ops("elementwise arrays") for name in ("linalg", "random", "signal", "strings")},
    "runtime.ops.nn": _ops("elementwise arrays linalg random"),
    "runtime.ops.image": _ops("elementwise arrays linalg random strings nn"),
    "runtime.ops.numpy": _ops("elementwise arrays linalg signal"),
}

ROOMS_OF_CODEGEN: dict[str, set[str]] = {
    "runtime.codegen.cost_model": set(),
    "runtime.codegen.kernel": {*LOWERED, "runtime.llvm"},
    "runtime.codegen.symbolic": LOWERED,
    "runtime.codegen.passes": LOWERED,
    "runtime.codegen.loops": {*LOWERED, "runtime.codegen.passes"},
    "runtime.codegen.lower": {*LOWERED, *_codegen("passes loops op_lowerings")},
    "runtime.codegen.op_lowerings": {*LOWERED, *_codegen("passes loops lower")},
    "runtime.codegen.math": {"runtime.llvm"},
    "runtime.codegen.cache": {*BASE, "runtime.llvm"},
    "runtime.codegen.native_runtime": {"runtime.codegen.cache", "runtime.llvm"},
    "runtime.codegen.kernel_library": {"runtime.codegen.backends.numba_backend", "runtime.llvm"},
    "runtime.codegen.backends": {
        *LOWERED, "runtime.llvm", *_codegen("passes lower math cache native_runtime backends.numba_backend")
    },
    "runtime.codegen.backends.numba_backend": {"runtime.llvm", *_codegen("kernel math cache native_runtime")},
    "runtime.codegen.device": {
        *BASE, "runtime.kernel_ir", "runtime.kernel_ir.analysis", "runtime.llvm", "runtime.llvm.optimize",
        *_codegen("cost_model kernel symbolic math cache native_runtime backends")
    },
    "runtime.codegen.export": {*LOWERED, "runtime.llvm", *_codegen("passes lower native_runtime backends")},
}  # fmt: skip
USED_BY_ENGINE = _codegen("kernel passes lower cache native_runtime backends device")

ROOMS: dict[str, set[str]] = {
    # runtime: dtypes, shapes, types ← tensor ← ops ← graph ← autodiff; graph ← codegen ← engine
    **dict.fromkeys(EVERYWHERE, set()),
    **dict.fromkeys(BASE, BASE),
    "runtime.tensor": BASE,
    # ops: elementwise ← arrays ← linalg, random, signal, strings ← nn, numpy; nn ← image; api and operators bring them
    # together
    "runtime.ops": {*BASE, "runtime.tensor", *OPS},
    **ROOMS_OF_OPS,
    "runtime.variable": {*BASE, "runtime.tensor", *OPS},
    "runtime.generator": {*BASE, "runtime.tensor", *OPS, "runtime.variable"},
    "runtime.moving_average": {*BASE, "runtime.tensor", *OPS, "runtime.variable"},
    "runtime.numpy_random": {*BASE, "runtime.tensor", *OPS, "runtime.generator"},
    "runtime.tensor_array": {*BASE, "runtime.tensor", *OPS},
    "runtime.list_elements": set(),
    "runtime.list_methods": {*BASE, "runtime.tensor", *OPS, "runtime.list_elements"},
    "runtime.array_api": {*BASE, "runtime.tensor", *OPS, "runtime.variable"},
    "runtime.sparse": {*BASE, "runtime.tensor", *OPS},
    "runtime.sparse_functions": {*BASE, "runtime.tensor", *OPS, "runtime.sparse"},
    "runtime.embeddings": {*BASE, "runtime.tensor", *OPS, "runtime.sparse", "runtime.sparse_functions"},
    "runtime.parsing": {*BASE, "runtime.tensor", *OPS, "runtime.sparse", "runtime.ragged"},
    "runtime.lookup": {*BASE, "runtime.tensor", *OPS, "runtime.sparse", "runtime.ragged"},
    "runtime.ragged": {
        *BASE,
        "runtime.tensor",
        *OPS,
        "runtime.sparse",
        "runtime.sparse_functions",
        "runtime.extension_types",
    },
    "runtime.type_specs": {
        *BASE,
        "runtime.tensor",
        *OPS,
        "runtime.variable",
        "runtime.ragged",
        "runtime.sparse",
        "runtime.extension_types",
    },
    "runtime.shallow_structures": {"runtime.nest", "runtime.composites"},
    "runtime.api_dispatch": {*BASE, "runtime.tensor", "runtime.type_specs"},
    "runtime.extension_types": {*BASE, "runtime.tensor", *OPS},
    "runtime.array_contents": {*BASE, "runtime.tensor", *OPS},
    "runtime.staged_array": {*BASE, "runtime.tensor", *OPS, "runtime.array_contents"},
    "runtime.staged_list": {*BASE, "runtime.tensor", *OPS, "runtime.list_elements", "runtime.list_methods"},
    "runtime.graph": {*BASE, "runtime.tensor", *OPS},
    "runtime.autodiff": {*VALUES, "runtime.graph"},
    # What moves bytes between workers knows no tensors; ops get a group as an attribute.
    "runtime.collectives": {"runtime.errors", "runtime.profiling"},
    "runtime.storage": {"runtime.dtypes", "runtime.errors"},
    "runtime.serial": {*BASE, "runtime.tensor", *OPS, "runtime.graph", "runtime.autodiff"},
    # Loaded when a model is exported.
    "runtime.onnx_export": {*BASE, "runtime.tensor", *OPS, "runtime.graph"},
    # What compiles kernels knows nothing of tensors and graphs.
    "runtime.kernel_ir": set(),
    "runtime.kernel_ir.analysis": {"runtime.kernel_ir"},
    "runtime.llvm": {"runtime.kernel_ir", "runtime.kernel_ir.analysis", "runtime.llvm.optimize"},
    "runtime.llvm.optimize": {"runtime.kernel_ir", "runtime.kernel_ir.analysis", "runtime.llvm"},
    # codegen: kernel, symbolic ← passes ← loops ← lower, op_lowerings ← backends; math and native_runtime know no
    # graph.
    "runtime.codegen": set(),
    **ROOMS_OF_CODEGEN,
    "runtime.engine": {*VALUES, "runtime.graph", "runtime.autodiff", *USED_BY_ENGINE},
    "runtime.engine.fastcall": {*BASE, "runtime.tensor", "runtime.llvm", "runtime.engine", *USED_BY_ENGINE},
    # autograph: syntax ← convert; operators ← function. The passes know nothing of tensors (the recursion limit belongs
    # to the process, so there is one place that raises it); only the way in,
    # convert.api, brings them together with the operators that converted code calls.
    "autograph.errors": {"runtime.errors", "runtime.tracebacks"},
    "autograph.syntax": {"runtime.recursion"},
    "autograph.convert": {"autograph.errors", "autograph.syntax"},
    "autograph.standard_library": set(),
    "autograph.operators": {"autograph.errors", "autograph.syntax", "autograph.standard_library", *RUNTIME},
    "autograph.convert.api": {
        *CONVERSION,
        "autograph.convert.kept",
        "autograph.operators",
        "runtime.profiling",
        "runtime.tracebacks",
    },
    "autograph.convert.kept": {"runtime.codegen.cache"},
    "autograph.function": {*AUTOGRAPH, *RUNTIME, "runtime.serial", "autograph.standard_library"},
    # `to-code` starts fast; only `graph` needs the rest of the project, and is imported when it is asked for.
    "autograph.commands": CONVERSION,
    "autograph.commands.graph": {*AUTOGRAPH, *RUNTIME, *USED_BY_ENGINE, "autograph.function", "autograph.commands"},
    "autograph.commands.cache": {"autograph.commands", "runtime.codegen.cache"},
    "autograph.commands.version": {
        "autograph.commands",
        "autograph.commands.cache",
        "runtime.gpu",
        "runtime.llvm",
        *_codegen("passes"),
    },
    "autograph.commands.explain": {
        "autograph.commands",
        "autograph.commands.graph",
        "autograph.function",
        "runtime.ops.arrays",
        "runtime.spec",
    },  # fmt: skip
    "autograph.commands.exporting": {
        "autograph.commands",
        "autograph.commands.graph",
        "autograph.function",
        "runtime.errors",
    },
    "autograph.commands.compile_library": {"autograph.commands.exporting", "autograph.c_library"},
    "autograph.commands.onnx_model": {"autograph.commands.exporting", "autograph.onnx_models"},
    "autograph.commands.run": {"autograph.commands", "autograph.facade"},
    # The facade's entry points import what lies under `tensorflow` when they are called, since that needs all of ours.
    "autograph.facade": {"runtime.progress", "runtime.shapes"},
    "autograph.facade.tensorflow": {
        "autograph.distribute",
        "autograph",
        "autograph.facade",
        "autograph.function",
        *AUTOGRAPH,
        "autograph.saving",
        "autograph.summaries",
        "autograph.onnx_models",
        "autograph.functional",
        "autograph.linear_operators",
        *RUNTIME,
    },
    "autograph.keras": {"autograph.facade"},
    "autograph.commands.saved_model": {
        *BASE,
        "runtime.ops",
        "runtime.variable",
        "runtime.storage",
        "autograph.commands",
        "autograph.function",
        "autograph.saving",
    },
    "autograph.cli": {
        *CONVERSION,
        *(
            f"autograph.commands{n}"
            for n in (
                "",
                ".graph",
                ".cache",
                ".explain",
                ".compile_library",
                ".onnx_model",
                ".saved_model",
                ".run",
                ".serve",
                ".version",
            )  # fmt: skip
        ),
    },
    "autograph.__main__": {"autograph.cli"},
    "autograph.documentation": set(),
    "autograph.display": {"autograph.commands", "autograph.convert.api", "runtime.tensor"},
    "autograph.notebook": {"autograph.display", "autograph.convert.api", "autograph.errors", "autograph.function"},
    "autograph.supported": set(),
    "autograph.own_packages": set(),
    "autograph.publishing": {
        *BASE,
        "autograph.absent",
        "autograph.documentation",
        "autograph.elementwise_names",
        "runtime.api_dispatch",
    },
    "autograph.elementwise_names": set(),
    "autograph.absent": set(),
    "autograph.functional": {*AUTOGRAPH, *RUNTIME},
    "autograph.linear_operators": {
        "autograph",
        "autograph.module",
        "runtime.shapes",
        "runtime.type_specs",
        "runtime.variable",
    },
    "autograph.transforms": {
        *BASE,
        "runtime.tensor",
        *OPS,
        "runtime.variable",
        "runtime.autodiff",
        "autograph.operators",
        "autograph.functional",
    },
    "autograph.ctc": {*BASE, "runtime.tensor", *OPS, "runtime.sparse", "autograph.functional"},
    "autograph.module": {*BASE, "runtime.variable"},
    "autograph.data": {*AUTOGRAPH, *RUNTIME, "runtime.storage", "autograph.function", "autograph.functional"},
    "autograph.saving": {
        *AUTOGRAPH,
        *RUNTIME,
        "runtime.collectives",
        "runtime.storage",
        "runtime.serial",
        "autograph.module",
        "autograph.function",
        "autograph.data",
    },
    "autograph.distribute": {*AUTOGRAPH, *RUNTIME, "autograph.data", "autograph.function", "runtime.collectives"},
    "autograph.summaries": {*AUTOGRAPH, *RUNTIME, "runtime.storage"},
    # Loads the code generator when it is called.
    "autograph.naming": {"autograph.function", "runtime.nest", "runtime.spec"},
    "autograph.interop": {
        *AUTOGRAPH,
        *RUNTIME,
        "autograph.function",
        "autograph.transforms",
        "autograph.module",
        "autograph.c_library",
        "runtime.codegen.export",
    },
    "autograph.testing": {*BASE, "runtime.tensor", *OPS, "runtime.autodiff", "autograph.function", "autograph.naming"},
    # Loads the code generator when it is called.
    "autograph.vectorization": {*BASE, "autograph.function", "autograph.c_library", "runtime.codegen.export"},
    "autograph.onnx_models": {
        *AUTOGRAPH,
        *RUNTIME,
        "runtime.storage",
        "runtime.onnx_export",
        "autograph.function",
        "autograph.module",
        "autograph.naming",
    },
    "autograph.c_library": {
        *AUTOGRAPH,
        *RUNTIME,
        "autograph.function",
        "autograph.naming",
        "runtime.codegen.export",
        "runtime.storage",
        *_codegen("kernel"),
    },  # fmt: skip
    "autograph.namespaces": {
        *AUTOGRAPH,
        *RUNTIME,
        "autograph.function",
        "autograph.ctc",
        "autograph.data",
        "autograph.distribute",
        "autograph.c_library",
        "autograph.onnx_models",
        "autograph.saving",
        "autograph.summaries",
        "autograph.facade",
    },
    # The public namespaces hand names on from everywhere below them.
    "runtime": RUNTIME,
    "autograph": {
        "autograph.supported",
        "autograph.own_packages",
        "autograph.publishing",
        "autograph.absent",
        *AUTOGRAPH,
        *RUNTIME,
        "autograph.function",
        "autograph.functional",
        "autograph.transforms",
        "autograph.module",
        "autograph.data",
        "autograph.interop",
        "autograph.testing",
        "autograph.vectorization",
        "autograph.namespaces",
    },  # fmt: skip
}

# third-party package → the rooms that may import it; numba in one place means that everything else runs without it
THIRD_PARTY: dict[str, set[str]] = {
    "numpy": {room for room in ROOMS if room not in ("autograph.syntax", "autograph.convert")},
    "gast": {"autograph.syntax", "autograph.convert", "autograph.convert.api", "autograph.function"},
    "astunparse": {"autograph.syntax"},
    "numba": {"runtime.codegen.kernel_library", "runtime.codegen.backends.numba_backend", "autograph.interop"},
    "ml_dtypes": {"runtime.dtypes", "runtime.llvm", "autograph.interop"},
    "llvmlite": {
        "runtime.llvm",
        *_codegen("math cache native_runtime kernel_library backends.numba_backend"),
        "autograph.interop",
    },  # fmt: skip
    "onnx": {"runtime.onnx_export", "autograph.onnx_models"},
    "google": {"autograph.onnx_models"},
    "PIL": {"runtime.ops.image"},
    "IPython": {"autograph.notebook"},
    "safetensors": {"runtime.storage"},
    "scipy": {*OPS, "runtime.onnx_export", "autograph.interop"},
    "tensorboard": {"autograph.summaries"},
    "mpi4py": {"runtime.collectives"},
    "tqdm": {"runtime.progress"},
    "dask": {"autograph.distribute"},
    "absl": {"autograph.facade.tensorflow"},
    "torch": {"autograph.interop"},
    "jax": {"autograph.interop"},
    "pytest": {"autograph.testing"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def room_of(module: str) -> str | None:
    """The innermost room that holds the module; a package's own `__init__` is the room, not what lies under it."""
    if module in ROOMS:
        return module
    parts = module.split(".")
    for length in range(len(parts) - 1, 1, -1):
        if (room := ".".join(parts[:length])) in ROOMS:
            return room
    return None


def imports_of(module: str, text: str, is_package: bool) -> set[tuple[str, int]]:
    """Every (absolute module name, line) that the text imports, `from x import y` as x.y where that is a module."""
    found = set()
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, node.lineno) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - (node.level - 1)] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                found.add((name if name in SOURCES else base, node.lineno))
    return found


IMPORTS = {
    module: imports_of(module, path.read_text(encoding="utf-8"), path.name == "__init__.py")
    for module, path in SOURCES.items()
}


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of the graph, its first module repeated at the end, or nothing."""
    done: set[str] = set()

    def walk(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for other in sorted(graph.get(module, ())):
            if circle := walk(other, [*trail, module]):
                return circle
        done.add(module)
        return []

    for module in sorted(graph):
        if circle := walk(module, []):
            return circle
    return []


def where(module: str, line: int) -> str:
    return f"{SOURCES[module].relative_to(ROOT)}:{line}"


@pytest.mark.parametrize("package", PACKAGES)
def test_there_is_something_to_read(package):
    assert sum(module.startswith(package + ".") for module in SOURCES) > 10


def test_every_module_has_a_place_on_the_map():
    lost = [module for module in SOURCES if room_of(module) is None]
    assert not lost, f"not in ROOMS of {Path(__file__).name}: {lost}"


def test_imports_follow_the_directions():
    wrong = []
    for module, imports in IMPORTS.items():
        room = room_of(module)
        for name, line in imports:
            if room is None or name.split(".")[0] not in PACKAGES or name in EVERYWHERE:
                continue
            target = room_of(name)
            if target != room and target not in ROOMS[room]:
                wrong.append(f"{where(module, line)}: {room} must not import {name}")
    assert not wrong, "\n".join(wrong)


def test_runtime_never_imports_autograph():
    wrong = [
        f"{where(module, line)}: {name}"
        for module, imports in IMPORTS.items()
        for name, line in imports
        if module.split(".")[0] == "runtime" and name.split(".")[0] == "autograph"
    ]
    assert not wrong, "\n".join(wrong)


def test_third_party_packages_stay_in_their_rooms():
    wrong = []
    for module, imports in IMPORTS.items():
        for name, line in imports:
            top = name.split(".")[0]
            if top in PACKAGES or top in sys.stdlib_module_names or top in NEW_IN_THE_LIBRARY:
                continue
            if room_of(module) not in THIRD_PARTY.get(top, set()):
                wrong.append(f"{where(module, line)}: {room_of(module)} must not import {name}")
    assert not wrong, "\n".join(wrong)


def test_no_import_circles():
    graph = {module: {name for name, _ in imports if name in SOURCES} for module, imports in IMPORTS.items()}
    circle = find_circle(graph)
    assert not circle, " → ".join(circle)


def test_files_are_short():
    folders = (*PACKAGES, "tests", "examples", "benchmarks")
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "golden" not in path.parts
    }
    long = {path: length for path, length in lengths.items() if length > MAX_LINES and path not in LONG_FILES}
    assert not long, f"over {MAX_LINES} lines: {long}"
    stale = [path for path in LONG_FILES if lengths.get(path, 0) <= MAX_LINES]
    assert not stale, f"no longer long, take off LONG_FILES: {stale}"
    assert all(len(reason) > 20 for reason in LONG_FILES.values()), "each exception needs its reason"


class TestTheReaderItself:
    """A check that can't fail protects nothing: each rule is shown to see what it forbids."""

    def test_sees_imports_in_functions_and_relative_ones(self):
        text = "def f():\n    from . import parse\n    import numba.core\nfrom ..convert.pipeline import x\n"
        found = imports_of("autograph.syntax.names", text, is_package=False)
        assert ("autograph.syntax.parse", 2) in found
        assert ("numba.core", 3) in found
        assert ("autograph.convert.pipeline", 4) in found

    def test_sees_a_circle(self):
        assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
        assert find_circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []

    def test_rooms_of_packages_and_modules(self):
        assert room_of("runtime.ops.elementwise.arithmetic") == "runtime.ops.elementwise"
        assert room_of("runtime.ops.table") == "runtime.ops"
        assert room_of("runtime.tensor") == "runtime.tensor"
        assert room_of("autograph") == "autograph"
        assert room_of("autograph.nowhere") is None
