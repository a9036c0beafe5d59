"""LLVM: compiles a module's text to machine code, and loads machine code as a Python callable."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import itertools
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from runtime import cancellation, system
from runtime.kernel_ir.types import SCALARS, Unsupported
from runtime.llvm import processor
from runtime.llvm.ctrl_c import interrupts_deferred
from runtime.llvm.optimize import divide_by_newton

_FASTCALL = 0x80  # METH_FASTCALL: self, an array of arguments, the number of arguments
_KEYWORDS = 0x02  # METH_KEYWORDS: also the names of keyword arguments
# Positions in NumPy's C API table, which never change.
_ARRAY_TYPE, _NUMBER_FROM, _NUMBER_TO, _NEW_FROM_DESCR, _SET_BASE_OBJECT = 2, 60, 62, 94, 282

_DEFINITION = re.compile(r'^define [^@]*@"?(?P<name>[\w.$-]+)"?\((?P<body>.*?)\n}$', re.MULTILINE | re.DOTALL)
_CALLEE = re.compile(r' call [^@\n]*@"?([\w.$-]+)"?\(')
_NO_LAYOUT = 'target datalayout = ""'  # llvmlite's modules say so
_CALL_NUMBER = re.compile(r" // callseq.*$", re.MULTILINE)
_options = threading.RLock()  # LLVM's options are the process's: held while code is made by them


class Passes(NamedTuple):
    """Which of LLVM's passes run.

    kind        'all'; 'twice': functions are simplified once more, before the others, for nests in several loops;
                'nests': those of LLVM's level 1, for kernels that are mostly nests; 'scalar': none that make vectors;
                'few': see `_optimise_quickly`
    unrolling   whether loops with constant trip counts are unrolled. In code without such loops, looking for them
                takes a tenth of LLVM's time
    """

    kind: Literal["all", "twice", "nests", "scalar", "few"] = "all"
    unrolling: bool = True


ALL = Passes()
_KNOWN = (20, 21, 22)  # the versions of LLVM that have our options; any other would end the process


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


@functools.cache
def available() -> bool:
    """Whether this compiler works here: on a 64-bit CPython of a system with POSIX threads, and with an LLVM that is
    new enough."""
    return (
        sys.implementation.name == "cpython"
        and system.has_posix_threads()
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and hasattr(llvm, "create_pass_builder")
        and hasattr(llvm, "create_lljit_compiler")
        and llvm.llvm_version_info[0] >= 20  # it declares intrinsics itself
    )


def widens_structs() -> bool:
    """Whether LLVM can vectorise calls that return several numbers."""
    return bool(llvm.llvm_version_info[0] >= 21)


@functools.cache
def _machine(codegen_level: int = 2) -> Any:
    """This computer's target machine, with a code generator of level 0 to 3. Level 1 takes an eighth less time than
    level 2, but makes a stencil a tenth slower; level 3 makes nothing faster."""
    _initialize()
    # The older linker may put code and data far apart, so its addresses have 64 bits.
    reloc, model = ("pic", "small") if available() else ("default", "jitdefault")
    return llvm.Target.from_triple(processor.triple()).create_target_machine(
        cpu=processor.name(), features=processor.flags(), opt=codegen_level, reloc=reloc, codemodel=model
    )


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if llvm.llvm_version_info[0] in _KNOWN:
        # Rows of fewer than 16 elements are worth vectorising, even with a remainder.
        llvm.set_option("autograph", "-vectorizer-min-trip-count=4")
        # Overlap checks that are hoisted out of an outer loop always fail if that loop runs backwards.
        llvm.set_option("autograph", "-hoist-runtime-checks=false")
        # The search for the best pointers to step through arrays makes no workload of `benchmarks` faster. For GPUs it
        # takes up to half of the code generator's time, and the pointers take registers: 48 instead of 32 for x / 2 + 1
        llvm.set_option("autograph", "-disable-lsr=true")
        _unroll_runtime_loops(False)


def _unroll_runtime_loops(wanted: bool) -> None:
    """Sets whether LLVM unrolls loops with unknown trip counts.

    It makes no workload of `benchmarks` faster, and takes long, since LLVM unrolls as far as it believes AMD's
    processors can cache decoded instructions. On GPUs the loads of several trips are in flight together.
    """
    llvm.set_option("autograph", f"-unroll-runtime={str(wanted).lower()}")


@contextlib.contextmanager
def _unrolled_runtime_loops() -> Iterator[None]:
    """Turns this on in a block."""
    with _options:
        if llvm.llvm_version_info[0] in _KNOWN:
            _unroll_runtime_loops(True)
        try:
            yield
        finally:
            if llvm.llvm_version_info[0] in _KNOWN:
                _unroll_runtime_loops(False)


@functools.cache
def _linker() -> Any:
    # The older linker allocates code and constants separately, and ends the process if they are too far apart for the
    # code's addresses. That happens now and then when a few other large libraries are loaded.
    return kept(llvm.create_lljit_compiler(_machine(), use_jit_link=True))


def kept(obj: Any) -> Any:
    """Never freed, not even when Python exits, since the code of kernels frees arrays that die later."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(obj))
    return obj


@interrupts_deferred()
def machine_code(
    text: str, modules: Iterable[str], level: int = 2, passes: Passes = ALL, later: str = "", codegen_level: int = 2
) -> bytes:
    """An object file of a module's text, linked with others, optimised for this machine at `level`, 0 to 3, by
    these passes; later: a module of functions that are inlined after vectorisation; codegen_level: as `_machine`
    takes it. Raises Unsupported if LLVM refuses the text, which is a bug of this folder."""
    with _options:
        return bytes(_machine(codegen_level).emit_object(_optimised(text, modules, level, passes, later)))


@functools.cache
def _gpu(processor: str) -> Any:
    """The target machine for NVIDIA's GPUs. Raises Unsupported if LLVM was built without it."""
    _initialize()  # LLVM's options
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if llvm.llvm_version_info[0] in _KNOWN:
        # Products and sums are rounded separately, as on the processor.
        llvm.set_option("autograph", "-nvptx-fma-level=0")
    try:
        found = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    except RuntimeError as error:
        raise Unsupported(f"LLVM: {error}") from error
    # Level 3 takes a twentieth longer, for the same instructions (ptxas 13.5, all of `benchmarks/gpu.py`).
    return found.create_target_machine(cpu=processor, features="+ptx80", opt=2)


@interrupts_deferred()
def ptx(text: str, modules: Iterable[str], symbol: str, processor: str) -> str:
    """Compiles a module's text, linked with others, to PTX for GPUs of a compute capability. Only `symbol` is visible.
    Raises Unsupported if LLVM refuses the text."""
    machine = _gpu(processor)
    with _unrolled_runtime_loops():
        found = str(machine.emit_assembly(_optimised_for_threads(text, modules, symbol, machine)))
    # LLVM numbers the calls of the whole process in comments, so the text would differ each time.
    return _CALL_NUMBER.sub("", found)


@interrupts_deferred()
def host_code(text: str, modules: Iterable[str], symbol: str) -> bytes:
    """Compiles the same to an object file for this computer."""
    return bytes(_machine().emit_object(_optimised_for_threads(text, modules, symbol, _machine())))


_INLINED = 250  # instructions of a function that is inlined into several callers


def _optimised_for_threads(text: str, modules: Iterable[str], symbol: str, machine: Any) -> Any:
    """A module optimised without vectorisation, for a machine whose threads take the place of vectors.

    Functions are simplified once, after inlining, which takes a third less time than LLVM's own pipeline: that
    simplifies a function also before it is inlined. The innermost loops of `benchmarks/gpu.py` have the same
    instructions both ways (ptxas 13.5, sm_90).
    """
    module = _linked(text, modules, machine)
    for definition in module.functions:
        if not definition.is_declaration and definition.name != symbol:
            definition.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.slp_vectorization = options.loop_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    _inline_and_prune(module, builder)
    promotion = llvm.create_new_module_pass_manager()
    promotion.add_sroa_pass()
    promotion.add_simplify_cfg_pass()
    promotion.run(module, builder)
    _mark_for_inlining(module, symbol)
    _simplify(module, builder)
    unrolling = llvm.create_new_function_pass_manager()
    unrolling.add_loop_unroll_pass()
    unrolling.add_instruction_combine_pass()
    unrolling.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            unrolling.run(function, builder)
    return module


def _mark_for_inlining(module: Any, symbol: str) -> None:
    """Marks the functions that have one caller or few instructions.

    They are counted in the module's text: asking llvmlite for each instruction takes ten times as long.
    """
    sizes: dict[str, int] = {}
    calls: Counter[str] = Counter()
    for found in _DEFINITION.finditer(str(module)):
        sizes[found["name"]] = found["body"].count("\n  ")
        calls.update(_CALLEE.findall(found["body"]))
    for function in module.functions:
        if function.is_declaration or function.name == symbol or b"noinline" in b" ".join(function.attributes):
            continue
        if calls[function.name] == 1 or sizes[function.name] <= _INLINED:
            function.add_function_attribute("alwaysinline")


@interrupts_deferred()
def library(
    parts: Iterable[tuple[str, Iterable[str], str]], resident: Iterable[tuple[str, int]], exported: Sequence[str]
) -> bytes:
    """An object file of several modules, in which only some functions are visible.

    parts: text, modules and `later` of each kernel, as `machine_code` takes them. resident: text and level of the
    modules that kernels call. Raises Unsupported if LLVM refuses a text.
    """
    whole = _optimised("", (), 0, ALL, "")
    try:
        for text, level in resident:
            whole.link_in(_optimised(text, (), level, ALL, ""))
        for text, modules, later in parts:
            whole.link_in(_optimised(text, modules, 2, ALL, later))
    except RuntimeError as error:
        raise Unsupported(f"LLVM: {error}") from error
    for definition in (*whole.functions, *whole.global_variables):
        if not definition.is_declaration and definition.name not in exported:
            definition.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(whole, llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options()))
    return bytes(_machine().emit_object(whole))


@interrupts_deferred()
def optimised_text(text: str, modules: Iterable[str], passes: Passes = ALL, later: str = "") -> str:
    """The module that `machine_code` compiles, as LLVM IR."""
    return str(_optimised(text, modules, 2, passes, later))


@interrupts_deferred()
def assembly(text: str, modules: Iterable[str], passes: Passes = ALL, later: str = "") -> str:
    """The module that `machine_code` compiles, as assembly for this machine."""
    return str(_machine().emit_assembly(_optimised(text, modules, 2, passes, later)))


def _optimised(text: str, modules: Iterable[str], level: int, passes: Passes, later: str) -> Any:
    machine, modules = _machine(), list(modules)
    has_vectors = passes.kind in ("all", "twice", "nests")
    module = _linked(text, modules if has_vectors or not later else [*modules, later], machine)
    # Level 3 takes a quarter longer and makes no workload of `benchmarks` faster.
    options = llvm.create_pipeline_tuning_options(speed_level=1 if passes.kind == "nests" else level)
    options.slp_vectorization = False
    options.loop_unrolling = passes.unrolling
    builder = llvm.create_pass_builder(machine, options)
    if passes.kind == "few":
        _optimise_quickly(module, builder)
        return module
    if has_vectors:
        if passes.kind == "twice":
            # Not with the same builder: llvmlite's keeps pointers to the stack of its first run, from which later runs
            # read whether to report each function that they leave as it is.
            _simplify(module, llvm.create_pass_builder(machine, options))
        cancellation.point()
        builder.getModulePassManager().run(module, builder)
        if later:
            module.link_in(_parsed(later))
            _inline(module, builder)
    else:
        _simplify(module, builder)
    if divide_by_newton.may_change("".join([text, *modules])):
        module = _with_fewer_divisions(module, builder)
    return module


def _simplify(module: Any, builder: Any) -> None:
    """Inlines what is marked for it, then runs LLVM's passes without vectorisation, loop unrolling and interprocedural
    passes: this saves a third of the time."""
    _inline_and_prune(module, builder)
    simplification = builder.getFunctionPassManager()
    for function in module.functions:
        # Passes leave functions with `optnone` as they are, but would report it on stderr (see `_optimised`).
        if not function.is_declaration and b"optnone" not in b" ".join(function.attributes):
            simplification.run(function, builder)


def _inline_and_prune(module: Any, builder: Any) -> None:
    """Inlines the functions marked for it, and removes those that are never called."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


def _optimise_quickly(module: Any, builder: Any) -> None:
    """Promotes variables to registers and removes common subexpressions; the code generator does the rest. The wrapper
    and functions that aren't inlined, which are most of a small kernel's text, aren't optimised at all. That takes half
    of the time of LLVM's level 1 (28 instead of 60 ms for Mandelbrot), and makes loops over numbers no slower."""
    _inline_and_prune(module, builder)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if function.is_declaration:
            continue
        if function.linkage == llvm.Linkage.external or b"noinline" in b" ".join(function.attributes):
            function.add_function_attribute("noinline")  # `optnone` requires it
            function.add_function_attribute("optnone")
        else:
            passes.run(function, builder)


def _with_fewer_divisions(module: Any, builder: Any) -> Any:
    """An optimised module with fewer divisions (`optimize/divide_by_newton.py`)."""
    changed = divide_by_newton.with_fewer_divisions(module)
    if changed is None:
        return module
    module = _parsed(changed)
    _inline(module, builder)
    return module


def _inline(module: Any, builder: Any) -> None:
    """Inlines the functions marked for it."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(module, builder)


def _linked(text: str, modules: Iterable[str], machine: Any) -> Any:
    """The verified module of a text, linked with others. Raises Unsupported if LLVM refuses it."""
    try:
        module = _parsed(text, machine)
        for other in modules:
            module.link_in(_parsed(other, machine))
        module.verify()
    except RuntimeError as error:
        raise Unsupported(f"LLVM: {error}") from error
    return module


def _parsed(text: str, machine: Any = None) -> Any:
    cancellation.point()
    machine = machine or _machine()
    layout = str(machine.target_data)
    # Accesses get their alignment while they are parsed: without a layout, that of an int64 would be 4.
    module = llvm.parse_assembly(f'target datalayout = "{layout}"\n{text.replace(_NO_LAYOUT, "", 1)}')
    module.triple = machine.triple
    return module


def entry_point(code: bytes, symbol: str, others: Mapping[str, Callable[[], int]]) -> Callable[..., Any]:
    """The Python function that an object file defines under this name. It is never unloaded.

    others: functions that give the addresses of further symbols; called for those that the code names.
    """
    found = {name: find() for name, find in others.items() if name.encode() in code}
    return _function(code, symbol, found, _FASTCALL)(None)


def methods(code: bytes, symbol: str, others: Mapping[str, int]) -> Callable[[Any], Callable[..., Any]]:
    """A function that makes Python functions of one in an object file, each with an object of its own as `self`, which
    it keeps alive. They also take keyword arguments."""
    return _function(code, symbol, others, _FASTCALL | _KEYWORDS)


def _function(code: bytes, symbol: str, others: Mapping[str, int], flags: int) -> Callable[[Any], Callable[..., Any]]:
    (address,) = link(code, [symbol], {**_addresses(), **others})
    method = ctypes.addressof(kept(_Method(symbol.encode(), address, flags, None)))
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return lambda owner: create(method, owner, None)


@interrupts_deferred()
def link(code: bytes, symbols: Sequence[str], others: Mapping[str, int]) -> list[int]:
    """Loads an object file for good, and returns the addresses of some of its symbols. Raises RuntimeError for anything
    but an object file for this machine."""
    if not available():
        return _link_by_older_linker(code, symbols, others)
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for other, address in others.items():
        builder.import_symbol(other, address)
    for symbol in symbols:
        builder.export_symbol(symbol)
    with _lock:
        # No two libraries may have the same name, even if linking the first of them failed.
        tracker = kept(builder.link(_linker(), f"kernel {next(_numbers)}"))
    return [int(tracker[symbol]) for symbol in symbols]


def _link_by_older_linker(code: bytes, symbols: Sequence[str], others: Mapping[str, int]) -> list[int]:
    """Loads an object file with LLVM's MCJIT, as numba does, and returns the addresses of its symbols: on Windows no
    other linker is known to work."""
    engine = kept(llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine()))
    for other, address in others.items():
        llvm.add_symbol(other, address)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return [int(engine.get_function_address(symbol)) for symbol in symbols]


_lock = threading.Lock()
_numbers = itertools.count()


@functools.cache
def _addresses() -> dict[str, int]:
    """The addresses of NumPy's objects and functions that kernels use."""
    table = _array_api()
    found = {
        "numpy_array_type": table[_ARRAY_TYPE],
        "numpy_new_from_descr": table[_NEW_FROM_DESCR],
        "numpy_number_from": table[_NUMBER_FROM],
        "numpy_number_to": table[_NUMBER_TO],
        "numpy_set_base_object": table[_SET_BASE_OBJECT],
        "numpy_true": id(np.True_),
        "numpy_false": id(np.False_),
    }
    for scalar in SCALARS.values():
        dtype = np.dtype(scalar.name)
        found[f"numpy_{scalar.name}_type"] = id(dtype.type)
        found[f"numpy_{scalar.name}_dtype"] = id(dtype)
    return found


def _array_api() -> Any:
    core: Any = importlib.import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
