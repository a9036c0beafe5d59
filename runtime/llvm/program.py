"""The LLVM module of a kernel: its functions, and the library functions that they call."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.aliases import possible_sources
from runtime.kernel_ir.analysis.effects import Effects
from runtime.kernel_ir.analysis.loops import has_loops
from runtime.kernel_ir.functions import ROWS, Cost
from runtime.kernel_ir.parse_python import parse_constants, parse_functions
from runtime.kernel_ir.types import Array, Scalar, Tuple, Type, Unsupported, results, signature
from runtime.llvm import arithmetic, calls, memory, statements, target, threads, wrapper
from runtime.llvm.function_builder import UNOPTIMISED, FunctionBuilder
from runtime.llvm.infer import Inference
from runtime.llvm.optimize import jump_threading, recurrences
from runtime.llvm.writer import HINTS, OUT_OF_MEMORY, ArrayValue, Value, Writer, part_types, parts


class Interface(Protocol):
    """The function by which other code calls a kernel: that of `wrapper.py`, for Python, or another one."""

    @property
    def MEMORY(self) -> str:
        """The functions `@allocate`, `@take` and `@drop`, which manage the memory of arrays."""

    @property
    def SUPPORT(self) -> str:
        """Declarations and functions that the function's text needs."""

    @property
    def INTERRUPTED(self) -> str:
        """The function `@interrupted`, by which loops poll for Ctrl-C."""

    def text(self, symbol: str, callee: Any, parameters: Sequence[Scalar | Array], releases: bool) -> str:
        """The function `symbol`, which calls the kernel."""


@dataclass(eq=False)
class Callee:
    """A function of the program, for given types of its parameters. seldom: it says that it is not to be inlined."""

    function: ir.Function
    symbol: str
    parameters: tuple[Type, ...]
    seldom: bool = False
    result: Type | None = None
    allocates: bool = False
    called: frozenset[str] = frozenset()
    vectors: bool = True  # whether LLVM may find loops to make vectors of

    @property
    def outlined(self) -> bool:
        """Whether it isn't inlined. Functions that allocate and fill arrays are called seldom, and LLVM would take long
        if each call were a copy of them."""
        return self.seldom or (self.allocates and self.function.name != "kernel" and has_loops(self.function.body))

    @property
    def direct(self) -> bool:
        """Whether it returns its result; else it returns a status, and the results through pointers."""
        return not self.allocates and (self.result is None or isinstance(self.result, Scalar))


class Library:
    """The functions that kernels may call: plain Python, and formulas over floats.

    functions   name → definition
    constants   numbers of the module, by name
    formulas    gives name → something with `symbol(size)`, `module(size)` (a text, and the functions that it needs) and
                `attributes(size)`, see `codegen/math/vector_functions.py`; called when a kernel wants one
    """

    def __init__(self, text: str, formulas: Callable[[], Mapping[str, Any]]) -> None:
        rest, definitions, self.seldom = _definitions(text)
        self.functions: Mapping[str, ir.Function] = _Parsed(definitions)
        self.constants = parse_constants(rest)
        self.formulas = formulas


def _definitions(text: str) -> tuple[str, dict[str, str], frozenset[str]]:
    """The text of a module outside its functions, the text of each function, and the functions that are not to be
    inlined."""
    definitions: dict[str, str] = {}
    seldom: set[str] = set()
    kept: list[str] = []
    name: str | None = None
    is_seldom = False
    for line in text.splitlines(keepends=True):
        if line.startswith("def "):
            name = line[4 : line.index("(")]
            definitions[name] = line
            if is_seldom:
                seldom.add(name)
            is_seldom = False
        elif line.startswith("@"):
            is_seldom = 'inline="never"' in line
        elif name is not None and (line[:1].isspace() or line.startswith(")")):
            definitions[name] += line
        else:
            name = None
            kept.append(line)
    return "".join(kept), definitions, frozenset(seldom)


class _Parsed(Mapping[str, ir.Function]):
    """Functions by name, each parsed at its first use: a kernel calls only a few of them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._known: dict[str, ir.Function] = {}

    def __getitem__(self, name: str) -> ir.Function:
        found = self._known.get(name)
        if found is None:
            (found,) = parse_functions(self._texts[name])
            self._known[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


Failure = Callable[[ir.Function, ir.Fail], tuple[ir.Expr, ...]]


def _no_failure(function: ir.Function, item: ir.Fail) -> tuple[ir.Expr, ...]:
    raise Unsupported(f"{function.name}, which may fail but isn't known to return a status")


class Program:
    """Collects functions as they are called, and writes the module.

    functions   those of the kernel, which aren't changed
    failure     gives the values that a function returns for a `Fail` in it
    builtins    the functions that are written as instructions
    spmd        whether many threads run the program together: its loops aren't taken apart, and what it allocates may
                be written by another thread
    writes      whether functions are written; otherwise only their types are inferred
    modules     formulas that are used: symbol → the text of the module to link
    needs       functions that these modules declare and others define
    lanes       of each loop whose trips run side by side, how many do
    vectors     whether LLVM may find loops to make vectors of, or functions to write out where they are called
    nests       how many loops over elements the kernel has
    loops       how many others
    unrolls     whether LLVM may find loops to unroll
    """

    def __init__(
        self,
        functions: Sequence[ir.Function],
        library: Library,
        failure: Failure = _no_failure,
        builtins: Mapping[tuple[str, str], calls.CallRule] = calls.BUILTINS,
        spmd: bool = False,
        writes: bool = True,
    ) -> None:
        own = {function.name: jump_threading.threaded(function) for function in functions}
        self.functions = collections.ChainMap(own, library.functions)  # type: ignore[arg-type]
        self.constants, self._seldom = library.constants, library.seldom
        self.failure = failure
        self.builtins = builtins
        self.spmd = spmd
        self.writes = writes
        self.modules: dict[str, str] = {}
        self.needs: set[str] = set()
        self.lanes: list[int] = []
        self.vectors = True
        self.unrolls = False
        kinds = collections.Counter(type(item) for each in own.values() for item in ir.walk(each.body))
        self.nests, self.loops = kinds[ir.For], kinds[ir.While]
        self._formulas = library.formulas
        self._own = set(own)
        self._callees: dict[tuple[str, tuple[Any, ...]], Callee] = {}
        self._rules: dict[str, calls.CallRule] = {}
        self._declarations: dict[str, None] = {}
        self._texts: list[str] = []
        self._support: dict[str, None] = {}

    def text(self, kernel: str, signature_text: str, symbol: str, interface: Interface = wrapper) -> str:
        """The module in which `symbol` is what the interface makes of the function `kernel`."""
        parameters = signature(signature_text)
        callee = self.function(kernel, parameters)
        releases = _takes_long(callee) or bool(self._own - {kernel})
        self.vectors = callee.vectors or any(
            other is not callee and not other.outlined for other in self._callees.values()
        )
        entry = interface.text(symbol, callee, parameters, releases)
        texts = {"@interrupted": interface.INTERRUPTED, threads.IN_PARTS: threads.SUPPORT, "@drop_all": memory.DROP_ALL}
        support = [interface.MEMORY, interface.SUPPORT, *(texts[name] for name in self._support)]
        return "\n".join([*self._declarations, *support, *self._texts, entry, HINTS])

    # --- functions ---------------------------------------------------------------------------------------------------

    def function(self, name: str, parameters: Sequence[Any]) -> Callee:
        """The function for these types, inferred and written at its first use."""
        if not all(isinstance(type_, (Scalar, Array)) for type_ in parameters):
            raise Unsupported(f"the arguments of {name}")
        key = (name, tuple(parameters))
        callee = self._callees.get(key)
        if callee is None:
            function = self.functions.get(name)
            if function is None:
                raise Unsupported(f"the function {name}")
            callee = self._callees[key] = Callee(
                function, f"f{len(self._callees)}.{name}", tuple(parameters), name in self._seldom
            )
            declared = None if function.returns is None else Tuple(tuple(signature(function.returns)))
            if declared is not None:  # it may call itself before its result is inferred
                callee.result, callee.allocates = declared, True
            types = Inference(self, function, parameters)
            if declared is not None and types.result != declared:
                raise Unsupported(f"{name}, which is declared to return {declared} but returns {types.result}")
            callee.result, callee.allocates = types.result, types.allocates or callee.allocates
            callee.called = frozenset(types.called)
            if self.writes:
                if not self.spmd:  # code for threads has no vectors, and all its loops are looked at
                    self.unrolls = self.unrolls or recurrences.a_trip_count_may_be_constant(function.body)
                    callee.vectors = not recurrences.no_loop_has_vectors(function.body, types.variables)
                self._texts.append(self._written(callee, types))
        return callee

    def call_rule(self, name: str) -> calls.CallRule:
        """How a function is called, by its name in the IR."""
        found = self._rules.get(name)
        if found is None:
            found = self._rules[name] = calls.rule(self, name)
        return found

    def _written(self, callee: Callee, types: Inference) -> str:
        w = Writer(self, types, callee.direct)
        function = callee.function
        is_kernel = function.name == "kernel"
        written = self._may_be_written(function) if self.spmd and is_kernel else ()
        declared: list[str] = []
        count = 0
        for name, type_ in zip(types.parameters, callee.parameters):
            slots = w.slots[name] if isinstance(type_, Array) else [w.slots[name]]
            for position, (part, slot) in enumerate(zip(part_types(type_), slots)):
                # A kernel doesn't write to its arguments, so `noalias` holds even if two of them are one array. If many
                # threads run it, it may write to them, and other threads do between any two barriers.
                alone = " noalias" if is_kernel and position == 1 and name not in written else ""
                declared.append(f"{part}{alone} %p{count}")
                w.store(part, f"%p{count}", slot)
                count += 1
            if isinstance(type_, Array):
                if name in types.assigned:
                    w.run("@take", f"ptr %p{count - 2 - type_.rank}")
                else:
                    w.arrays.remove(name)  # the caller holds a reference
        results = part_types(callee.result)
        if not callee.direct:
            declared += [f"ptr noalias %out{i}" for i in range(len(results))]
        statements.block(w, function.body)
        statements.write_common_results(w)
        w.block("exit")
        memory.drop_variables(w)
        kind = "i32"
        if not callee.direct:
            w.end(f"ret i32 {w.load('i32', '%status')}")
        elif callee.result is None:
            kind = "void"
            w.end("ret void")
        else:
            (kind,) = results
            w.end(f"ret {kind} {w.load(kind, '%result')}")
        outlined = " noinline" if callee.outlined else ""
        together = " convergent" if self.spmd else ""  # threads meet in it
        w.head = f"define internal {kind} @{callee.symbol}({', '.join(declared)}) nounwind{together}{outlined}"
        return w.text()

    def _may_be_written(self, function: ir.Function) -> set[str]:
        """The variables of a function that may name an array which it, or what it calls, writes to."""
        written = accesses(ir.walk(function.body), Effects(self.functions).of).arrays_written
        return possible_sources(function.body, written)

    def call(self, w: Writer, name: str, operands: Sequence[Any]) -> Any:
        """A call of one of the program's functions: its result, or a list of several."""
        callee = self.function(name, [operand.type for operand in operands])
        given = [f"{type_} {text}" for operand in operands for type_, text in parts(operand)]
        if callee.direct:
            if callee.result is None:
                w.run(f"@{callee.symbol}", *given)
                return None
            assert isinstance(callee.result, Scalar)
            return Value(callee.result, w.call(callee.result.ir, f"@{callee.symbol}", *given))
        types = part_types(callee.result)
        slots = [w.stack(type_) for type_ in types]
        status = w.call("i32", f"@{callee.symbol}", *given, *(f"ptr {slot}" for slot in slots))
        if callee.allocates:  # nothing else fails
            w.fail(w.binary("icmp ne", status, 0, "i32"), OUT_OF_MEMORY)
        found = [w.load(type_, slot) for type_, slot in zip(types, slots)]
        made: list[Value | ArrayValue] = []
        for kind in results(callee.result):
            if isinstance(kind, Scalar):
                made.append(Value(kind, found.pop(0)))
            elif isinstance(kind, Array):
                owner, data, *dims = found[: 2 + kind.rank]
                del found[: 2 + kind.rank]
                made.append(ArrayValue(kind, owner, data, tuple(dims), owned=True))
            else:
                raise Unsupported("a tuple in a tuple")
        return made if isinstance(callee.result, Tuple) else made[0] if made else None

    def thread_entry(self, callee: Callee, types: Sequence[str]) -> str:
        """What a thread runs for a part of a loop: takes its record (`threads.SUPPORT`) apart and calls the function,
        whose arguments after the first two are of these types."""
        name = f"@{callee.symbol}.thread"
        record = f"{{ {', '.join(types)} }}"
        f = FunctionBuilder(f"define internal ptr {name}(ptr %part) {UNOPTIMISED}")
        given = [f"i64 {f.field('i64', '%part', offset)}" for offset in (threads.FIRST, threads.END)]
        arguments = f.field("ptr", "%part", threads.ARGUMENTS)
        for position, type_ in enumerate(types):
            given.append(f"{type_} {f.load(type_, f.member(record, arguments, position))}")
        f.run(f"@{callee.symbol}", *given)
        f.end("ret ptr null")
        text = f.text()
        if text not in self._texts:
            self._texts.append(text)
        return name

    # --- what functions need -----------------------------------------------------------------------------------------

    def declare(self, text: str) -> None:
        """Declares a function that is outside the module."""
        self._declarations.setdefault(text)

    def need(self, name: str) -> None:
        """Includes a support function, by its symbol."""
        self._support.setdefault(name)

    def intrinsic(self, w: Writer, name: str, *operands: Value, flags: str = "") -> Value:
        """Calls an LLVM intrinsic over floats. flags: fast-math flags."""
        operands = tuple(arithmetic.broadcast(w, *operands))
        type_ = operands[0].type
        given = (f"{type_.ir} {operand.text}" for operand in operands)
        return Value(type_, w.intrinsic(name, type_.ir, *given, flags=flags))

    def external(self, w: Writer, symbol: str, type_: Scalar, operands: Sequence[Value]) -> Value:
        """Calls a function over floats of the C library; it is declared to have no effects."""
        self.declare(
            f"declare {type_.ir} @{symbol}({', '.join([type_.ir] * len(operands))}) nounwind willreturn memory(none)"
        )
        given = (f"{type_.ir} {operand.text}" for operand in operands)
        return Value(type_, w.call(type_.ir, f"@{symbol}", *given))

    def has_formula(self, name: str) -> bool:
        """Whether a function of the library is a formula over floats."""
        return name not in self.functions and name in self._formulas()

    def joined_arguments(self, types: Inference) -> frozenset[ir.Expr]:
        """The arguments for which a function calls several formulas that can be computed jointly
        (`codegen/math/vector_functions.py`).

        Calls in nests aren't joined where LLVM can't vectorise calls with several results.
        """
        if not types.called.issuperset(calls.JOINED):
            return frozenset()
        asked: dict[ir.Expr, set[str]] = {}
        inside: set[ir.Expr] = set()

        def visit(block: ir.Block, is_nest: bool) -> None:
            for item in block:
                in_nest = is_nest or (isinstance(item, ir.For) and not target.widens_structs())
                for each in ir.expressions(item):
                    if isinstance(each, ir.Call) and each.function in calls.JOINED:
                        asked.setdefault(each.arguments[0], set()).add(each.function)
                        if in_nest:
                            inside.add(each.arguments[0])
                for inner in ir.blocks(item):
                    visit(inner, in_nest)

        visit(types.function.body, False)
        return frozenset(each for each, names in asked.items() if len(names) > 1 and each not in inside)

    def joined_call(self, w: Writer, name: str, operand: Value) -> Value:
        """A function's result from a joint call, which also gives another function's; LLVM merges equal calls."""
        name = name.rpartition(".")[2]
        joint, type_ = self._formulas()[name].joined, operand.type
        symbol = self._linked(joint, type_)
        both = f"{{{', '.join([type_.ir] * len(joint.names))}}}"
        self.declare(f"declare {both} @{symbol}({type_.ir})")
        attributes = joint.attributes(type_.bits, type_.lanes)
        found = w.op(f"call {both} @{symbol}({type_.ir} {operand.text}) {attributes}")
        return Value(type_, w.op(f"extractvalue {both} {found}, {joint.names.index(name)}"))

    def _linked(self, formula: Any, type_: Scalar) -> str:
        """The symbol of a formula for a type; its module will be linked."""
        symbol: str = formula.symbol(type_.bits, type_.lanes)
        if symbol not in self.modules:
            self.modules[symbol], needs = formula.module(type_.bits, type_.lanes)
            self.needs |= needs
        return symbol

    def vector_call(self, w: Writer, name: str, operands: Sequence[Value]) -> Value:
        """Calls a formula of ours, which has vector versions or is inlined."""
        operands = arithmetic.broadcast(w, *operands)
        type_ = operands[0].type
        formula = self._formulas()[name]
        symbol = self._linked(formula, type_)
        self.declare(f"declare {type_.ir} @{symbol}({', '.join([type_.ir] * len(operands))})")
        given = ", ".join(f"{type_.ir} {operand.text}" for operand in operands)
        return Value(type_, w.op(f"call {type_.ir} @{symbol}({given}) {formula.attributes(type_.bits, type_.lanes)}"))


_LOOPING = frozenset([name for name, row in ROWS.items() if row.cost is Cost.LOOP])


def _takes_long(kernel: Callee) -> bool:
    """Whether a kernel may run long enough to release the interpreter lock: it loops, or calls a function that may."""
    return has_loops(kernel.function.body) or not _LOOPING.isdisjoint(kernel.called)
