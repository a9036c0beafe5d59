"""Kernels in SPMD form: all threads of a device run one program.

    def kernel(x):                                  def kernel(x):
        n = x.shape[0]                                  n = x.shape[0]
        a = np.empty(n, np.float32)                     a = np.empty(n, np.float32)
        for i in range(n):                              i = gpu.thread()
            a[i] = x[i] * 2.0              →            while i < n:
        s = 0.0                                             a[i] = x[i] * 2.0
        for i in range(n):                                  i = i + gpu.threads()
            s = lib.add(s, a[i])                        …
        return s                                        s = lib.add(all_s, total_add_float32(s))
                                                        return s

All threads run the statements outside shared loops with the same values, and so take the same branches. Statements that
write to memory are handled as follows:

- a loop whose trips are independent (`independence.py`) is shared: thread t takes the trips t, t + threads, …
- in a loop over rows that are added up or written, a warp takes a row, and its lanes share the loops in it; all threads
  share each row if rows are few and long, and one thread takes a row if rows are short; several threads, side by side,
  take a column that is added up;
- in a loop with a running total, each thread takes a part of the trips, starting with the total of the parts before it;
- in a loop that stores at offsets known only to its trips, each thread runs all trips and does the stores to its own
  part of the array;
- any other loop without shared ones in it, or a single store, is left to the first thread;
- library functions that write arrays are rewritten in the same way;
- arrays that the host can allocate are parameters (`given_arrays.py`).

There is a barrier between two statements if one writes memory that the other reads or writes, unless one thread runs
both. A check that fails in a shared loop leaves the loop; of all failed trips, the first is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.device.counted_loops import whole_ranges
from runtime.codegen.device.divergent_failures import DivergentFailures, is_failure
from runtime.codegen.device.given_arrays import given_arrays
from runtime.codegen.device.independence import (
    Scan,
    Shared,
    Total,
    analysed,
)  # fmt: skip
from runtime.codegen.device.kernel import Kernel, NotOnDevice, Strided, fresh_name, names_of
from runtime.codegen.device.known_sizes import KnownSizes
from runtime.codegen.device.library import joining_function
from runtime.codegen.device.owned_stores import owned
from runtime.codegen.device.partial_results import WORDS, joined, neutral
from runtime.codegen.device.pending_accesses import Pending
from runtime.codegen.device.shared_rows import MOST_COLUMNS, by_columns, by_warps, loads_along_columns, trips
from runtime.kernel_ir import ir, simplify
from runtime.kernel_ir.analysis.accesses import accesses, read_by, written_by
from runtime.kernel_ir.analysis.effects import Effects
from runtime.kernel_ir.analysis.subscripts import unit_stride_store
from runtime.kernel_ir.analysis.uses import called
from runtime.kernel_ir.types import INT64, Array, Scalar, Type
from runtime.llvm.device_calls import BUILTINS
from runtime.llvm.device_layout import MOST_BROADCAST, MOST_DETAILS
from runtime.llvm.infer import Inference
from runtime.llvm.program import Program
from runtime.llvm.specialize import specialized


def run(kernel: Kernel) -> None:
    """Raises NotOnDevice."""
    if any(function.kind != "kernel" for function in kernel.functions):
        raise NotOnDevice("functions that call themselves")
    if kernel.details > MOST_DETAILS:
        raise NotOnDevice(f"an error with {kernel.details} numbers in its message")
    _Rewriter(kernel).run()


def _polling_collectively(item: ir.Expr) -> ir.Expr | None:
    """The poll for Ctrl-C by all threads together, which gives all the same answer."""
    return ir.call("gpu.interrupted") if item == ir.call("lib.interrupted") else None


def _is_spmd(function: ir.Function) -> bool:
    """Whether a library function is in SPMD form."""
    return any(name.startswith("gpu.") for name in called(ir.walk(function.body)))


class _Rewriter:
    """Rewrites a kernel and the library functions that it calls, each for given types of its parameters."""

    def __init__(self, kernel: Kernel) -> None:
        self.target, self.library = kernel, kernel.library
        self.program = Program(kernel.functions, kernel.library, builtins=BUILTINS, writes=False)
        self.effects = Effects(kernel.library.functions)
        self.done: dict[tuple[str, tuple[Any, ...]], str] = {}
        self.made: list[ir.Function] = []

    def run(self) -> None:
        """Rewrites the kernel and appends it to the target's functions, after those that it calls."""
        kernel = self.target
        function = self.program.functions["kernel"]
        kernel.given = given_arrays(function, kernel.parameters)
        types = Inference(self.program, function, kernel.parameters)
        body = _Body(self, function, types, KnownSizes(function.body, kernel.sizes)).statements()
        parameters = (*function.parameters, *(each.name for each in kernel.given.parameters.values()))
        kernel.parameters += map(Array, kernel.given.elements)
        kernel.functions = [*self.made, ir.Function("kernel", parameters, body, "kernel")]

    def joining(self, kind: str, join: str, type_: Scalar) -> str:
        """The name of a function that joins what several threads have (`library.JOINING`)."""
        key = (f"{kind} {join}", (type_,))
        if key not in self.done:
            name = self.done[key] = f"{kind}_{WORDS[join]}_{type_.name}"
            generic = joining_function(kind, name, lambda left, right: joined(join, left, right, type_))
            parameters = [type_, *[type_ if each == "nothing" else INT64 for each in generic.parameters[1:]]]
            self.made.append(specialized(generic, name, Inference(self.program, generic, parameters)))
        return self.done[key]

    def in_spmd_form(self, name: str, parameters: Sequence[Type | None], numbers: Sequence[int | None] = ()) -> str:
        """The name of a library function in SPMD form. numbers: its arguments, as far as they are known."""
        generic = self.library.functions[name.removeprefix("lib.")]
        given = {each: number for each, number in zip(generic.parameters, numbers) if number is not None}
        known = KnownSizes(generic.body, given)
        tests = known.tests(generic.body)
        key = (name, (*parameters, *tests))
        if key not in self.done:
            self.done[key] = f"all_{name.removeprefix('lib.')}_{len(self.done)}"
            if set(tests) - {None}:
                generic = ir.Function(generic.name, generic.parameters, known.taken(generic.body), generic.kind)
            types = Inference(self.program, generic, parameters)  # type: ignore[arg-type]
            function = specialized(generic, self.done[key], types, self._callee)
            if not _is_spmd(generic):
                function.body = _Body(self, function, types, KnownSizes([], {})).statements()
            self.made.append(function)
        return self.done[key]

    def _callee(self, call: ir.Call) -> str:
        """The function that a function in SPMD form calls: one in SPMD form, too, if the library has it."""
        generic = self.library.functions.get(call.function)
        if generic is None or not _is_spmd(generic):
            return call.function
        return self.in_spmd_form(call.function, [each.type for each in call.arguments])


# The memory of a launch's environment, for barriers.
_BROADCAST, _FAILURES = "(values of the first thread)", "(failures)"


class _Body:
    """Rewrites one function to SPMD form."""

    def __init__(self, rewriter: _Rewriter, function: ir.Function, types: Inference, known: KnownSizes) -> None:
        self.rewriter, self.function, self.types, self.known = rewriter, function, types, known
        self.kernel = rewriter.target
        self.loops = analysed(function, types.variables, rewriter.effects)
        whole_ranges(function, self.loops.shared)
        self.arrays = {name for name, type_ in types.variables.items() if isinstance(type_, Array)}
        self.names = names_of(function)
        self.thread, self.threads = self._fresh("thread"), self._fresh("threads")
        # Whether what is written is for the lanes of a warp, or those of a column, and which, instead of all threads.
        self.in_warp = False
        self.column: tuple[ir.Expr, ...] | None = None
        self.pending = Pending()
        self.out: ir.Block = []

    def statements(self) -> ir.Block:
        self.out = [ir.assign(self.thread, ir.call("gpu.thread")), ir.assign(self.threads, ir.call("gpu.threads"))]
        self._block(self.function.body)
        if self.pending and self.function.name != "kernel":
            self._barrier()
        return self.out

    def _fresh(self, base: str) -> ir.Var:
        """A new variable for a size or an index."""
        return ir.size_variable(fresh_name(base, self.names))

    def _variable(self, name: str) -> ir.Var:
        """A variable of the function before it was rewritten."""
        return ir.Var(name, self.types.variables[name])

    # --- barriers ----------------------------------------------------------------------------------------------------

    def _barrier(self) -> None:
        self.out.append(ir.Run(ir.call("gpu.warp_barrier" if self.in_warp else "gpu.barrier")))
        self.pending = Pending()

    def _access(self, reads: set[str], writes: set[str], first: bool = False) -> None:
        """Records that a statement reads and writes memory, in all threads or in the first one; adds a barrier if
        needed."""
        reads, writes = ({self.loops.memory.get(name, name) for name in names} for names in (reads, writes))
        if self.pending.conflicts(reads, writes, first):
            self._barrier()
        if first:
            self.pending.first |= writes
        else:
            self.pending.reads |= reads
            self.pending.writes |= writes

    def _reads(self, item: ir.Statement) -> set[str]:
        """The arrays that a statement, without its blocks, reads."""
        return accesses([item]).arrays_read & self.arrays

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        stores: ir.Block = []
        for item in block:
            if isinstance(item, ir.Store):
                if stores and read_by([item]) & written_by(stores):
                    self._on_first_thread(stores, set())
                    stores = []
                stores.append(item)
                continue
            if stores:
                self._on_first_thread(stores, set())
                stores = []
            self._statement(item)
        if stores:
            self._on_first_thread(stores, set())

    def _statement(self, item: ir.Statement) -> None:
        if isinstance(item, (ir.If, ir.For, ir.While, ir.Alloc)) and self._calls_a_writer(item):
            raise NotOnDevice("a call that writes memory in a condition")
        if isinstance(item, (ir.For, ir.While)):
            self._loop(item)
        elif isinstance(item, ir.If):
            self._if(item)
        elif item in self.kernel.given.parameters:
            assert isinstance(item, ir.Alloc)
            self.out.append(ir.assign(item.name, self.kernel.given.parameters[item]))
        elif isinstance(item, ir.Alloc):
            self._access(self._reads(item), set())
            self.out.append(item)
            self.pending = Pending()  # it begins and ends with a barrier
        elif isinstance(item, (ir.Break, ir.Continue)):
            if self.pending:
                self._barrier()
            self.out.append(item)
        elif isinstance(item, ir.Return):
            item = ir.Return(tuple(ir.mapped(value, self._moved_out) for value in item.values))
            self._access(self._reads(item), set())
            if self.pending and self.function.name != "kernel":
                self._barrier()
            self.out.append(item)
        elif isinstance(item, ir.Fail):
            raise NotOnDevice("a failure that isn't written out")
        else:
            self._simple(item)

    def _simple(self, item: ir.Statement) -> None:
        """Assignments and calls."""
        if isinstance(item, ir.Assign) and not isinstance(item.value, ir.Call):
            item = ir.Assign(item.targets, ir.mapped(item.value, self._moved_out))
        call = item.call if isinstance(item, ir.Run) else item.value if isinstance(item, ir.Assign) else None
        if self._calls_a_writer(item, call):
            raise NotOnDevice("a call that writes memory within an expression")
        if not isinstance(call, ir.Call) or not self._changes_memory(call):
            self._access(self._reads(item), set())
            self.out.append(item)
            return
        if self.pending:
            self._barrier()
        if call.function == "np.empty":
            raise NotOnDevice("np.empty within a function of the library")
        types = [self.types.of(each) for each in call.arguments]
        count = len(self.rewriter.made)
        name = self.rewriter.in_spmd_form(call.function, types, list(map(self.known.number, call.arguments)))
        is_new = len(self.rewriter.made) > count
        self.kernel.shared += is_new and _is_spmd(self.kernel.library.functions[call.function.removeprefix("lib.")])
        new = ir.Call(name, call.arguments, call.type)
        self.out.append(ir.Run(new) if isinstance(item, ir.Run) else ir.Assign(item.targets, new))  # type: ignore[union-attr]

    def _changes_memory(self, call: ir.Call) -> bool:
        """Whether a function makes arrays or writes to some, and isn't in SPMD form yet."""
        is_done = call.function in self.rewriter.done.values()
        return not is_done and self.rewriter.effects.of(call.function).changes_memory

    def _calls_a_writer(self, item: ir.Statement, besides: Any = None) -> bool:
        calls = (each for each in ir.expressions(item) if isinstance(each, ir.Call) and each is not besides)
        return any(map(self._changes_memory, calls))

    def _moved_out(self, item: ir.Expr) -> ir.Expr | None:
        """Moves a call that writes memory to a statement of its own, if its expression is always computed."""
        if isinstance(item, (ir.Select, ir.Logic)):
            return item
        if not isinstance(item, ir.Call) or not self._changes_memory(item):
            return None
        result = ir.Var(fresh_name("found", self.names), self.types.of(item))
        self._simple(ir.assign(result, item))
        return result

    def _if(self, item: ir.If) -> None:
        self._access(self._reads(item), set())
        outer, start = self.out, self.pending
        made: list[ir.Block] = []
        after = Pending()
        for block in (item.body, item.orelse):
            self.out, self.pending = [], start.copy()
            self._block(block)
            made.append(self.out)
            after.join(self.pending)
        self.out, self.pending = outer, after
        self.out.append(ir.If(ir.mapped(item.test, _polling_collectively), *made))

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, item: ir.For | ir.While) -> None:
        if isinstance(item, ir.For) and self._is_worth_sharing(item) and self._has_long_rows(item):
            self._rows_or_scans(item)
        elif isinstance(item, ir.For) and (long := self._loop_of_row(item)) is not None:
            self._rows(item, long)
        elif isinstance(item, ir.For) and self._is_worth_sharing(item):
            self._share(item, self.loops.shared[item])
        elif not self._writes_memory(item):
            self._replicated(item)
        elif isinstance(item, ir.For) and item in self.loops.scans:
            self._scan(item, self.loops.scans[item])
        elif item in self.loops.owned:
            self._by_owners(item)
        elif self._may_run_alone(item):
            why = self.loops.refused.get(item, "its trips follow each other")
            self.kernel.serial[why] = self.kernel.serial.get(why, 0) + 1
            self._on_first_thread([item], self.loops.live[item])
        else:
            self._collectively(item)

    def _is_worth_sharing(self, item: ir.Statement) -> bool:
        """Whether sharing an independent loop pays; a loop that only searches is run by all threads."""
        shared = self.loops.shared.get(item) if isinstance(item, ir.For) else None
        return shared is not None and bool(written_by([item]) or shared.totals)

    def _writes_memory(self, item: ir.For | ir.While) -> bool:
        for each in ir.walk(item.body):
            if isinstance(each, (ir.Store, ir.Alloc)) or set(ir.targets(each)) & self.arrays:
                return True
            if self._calls_a_writer(each) or self._is_worth_sharing(each):
                return True
        return False

    def _has_long_rows(self, item: ir.For) -> bool:
        """Whether the trips of a shared loop have running totals; with few trips, threads would be idle."""
        return any(each in self.loops.scans for each in item.body)

    def _rows_or_scans(self, item: ir.For) -> None:
        """Threads share the rows if there are enough of them, else each row."""
        self._either(trips(item).compare("<", self.threads), self._collectively, self._share_trips, item)

    def _loop_of_row(self, item: ir.For) -> ir.For | None:
        """The inner loop whose trips a warp shares, if `item` is a loop over rows that a warp can take together; else
        None. It is the first loop that sums over its trips, or else the first that writes neighbouring elements."""
        if self.in_warp or self.column or not self._is_worth_sharing(item):
            return None
        info = self.loops.shared[item]
        if info.totals or info.fails:
            return None
        found: ir.For | None = None
        writing: ir.For | None = None
        for each in item.body:
            if isinstance(each, ir.For):
                shared = self.loops.shared.get(each)
                if shared is None or shared.fails or (shared.totals and not _is_straight(each.body)):
                    return None
                if shared.totals and found is None:
                    found = each
                if not (shared.totals or written_by([each])):
                    return None
                if writing is None and (unit_stride_store(each) is not None or not _is_straight(each.body)):
                    writing = each
            elif not _is_straight([each]):
                return None
        # Threads share the trips of both loops where there is nothing else in a row.
        return found or (writing if len(item.body) > 1 else None)

    def _rows(self, item: ir.For, long: ir.For) -> None:
        rows, length = trips(item), trips(long)
        if ir.variables(length).isdisjoint(ir.assigned(item.body) | {item.index}):
            is_long = length.compare(">", rows * cost_model.DEVICE_LONG_ROW)
            is_short = length.compare("<", cost_model.DEVICE_SHORT_ROW)

            def not_long(loop: ir.For) -> None:
                self._either(is_short, self._share_trips, self._warps, loop)

            if self.loops.shared[long].totals and loads_along_columns(item):
                fits = ir.both(rows.compare(">", 0), rows.compare("<=", ir.call("min", self.threads, MOST_COLUMNS)))
                self._either(ir.both(fits, ir.negated(is_short)), self._columns, self._share_trips, item)
            else:
                self._either(is_long, self._collectively, not_long, item)
        else:
            self._warps(item)

    def _share_trips(self, item: ir.For) -> None:
        self._share(item, self.loops.shared[item])

    def _either(self, test: ir.Expr, yes: Callable[[ir.For], None], no: Callable[[ir.For], None], item: ir.For) -> None:
        """Chooses between two forms of a loop, at run time unless sizes decide."""
        known = self.known.truth(test)
        if known is not None:
            (yes if known else no)(item)
            return
        outer, start = self.out, self.pending
        made: list[ir.Block] = []
        after = Pending()
        for form in (yes, no):
            self.out, self.pending = [], start.copy()
            form(item)
            made.append(self.out)
            after.join(self.pending)
        self.out, self.pending = outer, after
        self.out.append(ir.If(test, *made))

    def _warps(self, item: ir.For) -> None:
        """Warps share the rows, and the lanes of a warp share the loops over a row."""
        self._access(read_by([item]) & self.arrays, written_by(item.body))
        rows = by_warps(item, self._fresh)
        self.in_warp = True
        body = self._divided(item, [ir.assign(item.index, rows.row)], rows.lane, rows.lanes)
        self.in_warp = False
        body.append(ir.assign(rows.row, rows.row + rows.warps))
        self.out += [*rows.start, ir.While(rows.row.compare("<", rows.bound), body)]

    def _columns(self, item: ir.For) -> None:
        """Neighbouring threads take neighbouring columns, and several threads share the loops over a column."""
        self._access(read_by([item]) & self.arrays, written_by(item.body))
        columns = by_columns(item, self._fresh)
        self.column = columns.total
        self.out += self._divided(item, columns.start, columns.part, columns.parts)
        self.column = None

    def _divided(self, item: ir.For, start: ir.Block, thread: ir.Var, threads: ir.Var) -> ir.Block:
        """A trip of a loop. The loops in it are divided among `threads` threads."""
        outer = self.out, self.pending, self.thread, self.threads
        self.out, self.pending, self.thread, self.threads = [*start], Pending(), thread, threads
        self._block(item.body)
        if self.pending:
            self._barrier()
        body = self.out
        self.out, self.pending, self.thread, self.threads = outer
        return body

    def _scan(self, item: ir.For, scan: Scan) -> None:
        """Each thread sums the contributions of its part of the trips, then runs these from the total of the parts
        before."""
        self.kernel.shared += 1
        name, join = scan.total.name, scan.total.join
        total = self._variable(name)
        type_ = self.types.scalar(total)
        part, first, last = (self._fresh(base) for base in ("part", "first", "last"))
        own, before = (ir.Var(fresh_name(base, self.names), type_) for base in (f"own_{name}", f"{name}_before"))
        self._access(read_by([item]) & self.arrays, set())
        count = ir.call("max", trips(item), 0)
        self.out += [
            ir.assign(part, (count + self.threads - 1) // self.threads),
            ir.assign(first, ir.call("min", simplify.total(item.start, self.thread * part), item.stop)),
            ir.assign(last, ir.call("min", first + part, item.stop)),
            ir.assign(own, neutral(join, type_)),
            ir.For(
                item.index, first, last, ir.ONE,
                [*ir.copied(scan.before), ir.assign(own, joined(join, own, scan.value, type_))],
            ),
        ]  # fmt: skip
        prefix = ir.Call(self.rewriter.joining("prefix", join, type_), (own, neutral(join, type_)), type_)
        self.out += [
            ir.assign(before, total),
            ir.assign(name, prefix),
            ir.assign(name, joined(join, before, total, type_)),
        ]
        self.pending = Pending()  # it contains barriers
        self._access(read_by([item]) & self.arrays, written_by(item.body))
        self.out.append(ir.For(item.index, first, last, ir.ONE, ir.copied(item.body)))
        if name in self.loops.live[item]:
            self.out.append(ir.assign(name, ir.Call(self.rewriter.joining("total", join, type_), (own,), type_)))
            self.pending = Pending()
            self.out.append(ir.assign(name, joined(join, before, total, type_)))

    def _by_owners(self, item: ir.Statement) -> None:
        """A loop that all threads run; each does only the stores to its part of an array."""
        self.kernel.shared += 1
        self._access(read_by([item]) & self.arrays, written_by([item]))
        body = ir.copied([item])
        ir.map_block(body, _polling_collectively)
        self.out += owned(body, self.loops.live[item], self.thread, self.threads, self._fresh)

    def _may_run_alone(self, item: ir.For | ir.While) -> bool:
        for each in ir.walk(item.body):
            if isinstance(each, ir.Alloc) or set(ir.targets(each)) & self.arrays:
                return False
            if self._calls_a_writer(each) or self._is_worth_sharing(each):
                return False
            if each in self.loops.owned or each in self.loops.scans:
                return False
            if isinstance(each, ir.Return) and not is_failure(each):
                return False
        return len(self._broadcast(item)) <= MOST_BROADCAST

    def _broadcast(self, item: ir.Statement) -> list[str]:
        return sorted((ir.assigned([item]) & self.loops.live.get(item, set())) - self.arrays)

    def _replicated(self, item: ir.For | ir.While) -> None:
        """A loop that only reads; all threads run it."""
        self._access(read_by([item]) & self.arrays, set())
        body = ir.copied([item])
        ir.map_block(body, _polling_collectively)
        self.out += body

    def _collectively(self, item: ir.For | ir.While) -> None:
        """A loop whose trips all threads run together."""
        if self.pending:
            self._barrier()
        self._access(self._reads(item), set())
        outer, at_test = self.out, self.pending.copy()
        self.out = []
        self._block(item.body)
        ends = bool(item.body) and isinstance(item.body[-1], (ir.Break, ir.Continue, ir.Return))
        if self._only_writes_rows(item) and self.pending.names() <= self.arrays:
            at_test.join(self.pending)
        elif self.pending and not ends:
            self._barrier()
        body, self.out, self.pending = self.out, outer, at_test
        self.kernel.waiting += self._meets(body)
        if isinstance(item, ir.While):
            self.out.append(ir.While(item.test, body, item.loop))
        else:
            self.out.append(ir.For(item.index, item.start, item.stop, item.step, body, item.nest))

    def _meets(self, block: ir.Block) -> bool:
        """Whether all threads wait for each other in a block."""
        names = called(ir.walk(block))
        meeting = {each.name for each in self.rewriter.made if "gpu.barrier" in called(ir.walk(each.body))}
        return "gpu.barrier" in names or not names.isdisjoint(meeting)

    def _only_writes_rows(self, item: ir.For | ir.While) -> bool:
        """Whether the trips of a loop are independent, and threads exchange nothing in them: no barrier is needed
        between two trips."""
        inner = [each for each in ir.walk(item.body) if isinstance(each, ir.For)]
        sums = (each in self.loops.scans or self.loops.shared.get(each, Shared()).totals for each in inner)
        return item in self.loops.shared and not any(sums)

    def _on_first_thread(self, items: ir.Block, live: set[str]) -> None:
        """Statements that the first thread runs for all threads."""
        values = self._broadcast(items[0]) if live else []
        fails = any(isinstance(each, ir.Return) for each in ir.walk(items))
        own = ({_BROADCAST} if values else set()) | ({_FAILURES} if fails else set())
        self._access(read_by(items) & self.arrays, written_by(items) | own, True)
        body = ir.copied(items)
        failures = DivergentFailures(body, self.kernel.details, self._fresh, in_loop=False) if fails else None
        if failures is not None:
            self.out += failures.start
            body += [ir.If(failures.failed, [ir.Run(ir.call("gpu.record_failure", 0)), *failures.record()])]
        for position, name in enumerate(values):
            body.append(ir.Run(ir.call("gpu.store_broadcast", position, self._variable(name))))
        self.out.append(ir.If(self.thread.compare("==", 0), body))
        if values or failures is not None:
            self._barrier()
        if failures is not None:
            self._access({_FAILURES}, set())
            self.out.append(ir.If(ir.call("gpu.failed"), [failures.leave()]))
        for position, name in enumerate(values):
            self.out.append(ir.assign(name, ir.call("gpu.load_broadcast", position, self._variable(name))))
        if values:
            self._access({_BROADCAST}, set())

    # --- shared loops ------------------------------------------------------------------------------------------------

    def _share(self, loop: ir.For, info: Shared) -> None:
        self.kernel.shared += 1
        self._access(read_by([loop]) & self.arrays, written_by(loop.body) | ({_FAILURES} if info.fails else set()))
        body = ir.copied(loop.body)
        before: dict[str, ir.Var] = {}
        for total in info.totals:
            own = self._variable(total.name)
            before[total.name] = ir.Var(fresh_name(f"all_{total.name}", self.names), own.type)
            self.out.append(ir.assign(before[total.name], own))
            self.out.append(ir.assign(own, neutral(total.join, self.types.scalar(own))))
        # They have to be equal in all threads again.
        ticks = self._fresh("before") if ir.TICKS in ir.assigned(body) else None
        if ticks is not None:
            self.out.append(ir.assign(ticks, ir.size_variable(ir.TICKS)))
        failures = DivergentFailures(body, self.kernel.details, self._fresh, in_loop=True) if info.fails else None
        if failures is not None:
            self.out += failures.start
        trip = self._fresh("trip")
        inner = self._collapsed(loop)
        start, stop = loop.start, loop.stop
        if inner is not None:
            width = self._fresh("width")
            # Two negative sizes would have a positive product.
            stop = simplify.product(simplify.outermost(ir.call("max", trips(loop), 0)), width)
            self.out.append(ir.assign(width, ir.call("max", inner.stop, 0)))
            row = ir.call("gpu.udiv", trip, width)
            indices: ir.Block = [
                ir.assign(loop.index, simplify.total(loop.start, row)),
                ir.assign(inner.index, ir.call("gpu.urem", trip, width)),
            ]
            (nested,) = body
            assert isinstance(nested, ir.For)
            body, start = nested.body, ir.ZERO
            if loop.start == ir.ZERO:
                flat = ir.size_variable(loop.index) * inner.stop + ir.size_variable(inner.index)
                ir.map_block(body, lambda each: trip if each == flat else None)
        else:
            indices = [ir.assign(loop.index, trip)]
        bound = self._fresh("stop")
        self.out.append(ir.assign(bound, stop))
        self.out.append(ir.assign(trip, simplify.total(start, self.thread)))
        step = ir.assign(trip, trip + self.threads)
        strided = ir.While(trip.compare("<", bound), [*indices, *body, step])
        if failures is None:
            coordinates = None if inner is None else (loop.index, inner.index, width)
            self.kernel.strided[strided] = Strided(start, self.thread, frozenset(before), coordinates)
        self.out.append(strided)
        if ticks is not None:
            self.out.append(ir.assign(ir.TICKS, ticks))
        if failures is not None:
            self._leave_shared(failures, trip)
        for total in info.totals:
            self._add_up(total, before[total.name])

    def _collapsed(self, loop: ir.For) -> ir.For | None:
        """The loop that is this one's whole body, if threads can share the trips of both."""
        if len(loop.body) != 1 or not isinstance(loop.body[0], ir.For):
            return None
        inner = loop.body[0]
        info, own = self.loops.shared.get(inner), self.loops.shared[loop]
        if info is None or info.totals or info.fails or own.totals or own.fails or inner.start != ir.ZERO:
            return None
        return None if loop.index in ir.variables(inner.stop) else inner

    def _leave_shared(self, failures: DivergentFailures, trip: ir.Var) -> None:
        self.out.append(ir.If(failures.failed, [ir.Run(ir.call("gpu.record_failure", trip))]))
        self._barrier()
        self._access({_FAILURES}, set())
        recorded = ir.If(ir.both(failures.failed, ir.call("gpu.first_failure").compare("==", trip)), failures.record())
        self.out.append(ir.If(ir.call("gpu.failed"), [recorded, ir.Run(ir.call("gpu.barrier")), failures.leave()]))

    def _add_up(self, total: Total, before: ir.Var) -> None:
        own = self._variable(total.name)
        type_ = self.types.scalar(own)
        kind = "column_total" if self.column else "warp_total" if self.in_warp else "total"
        joining = self.rewriter.joining(kind, total.join, type_)
        self.out.append(ir.assign(own, ir.Call(joining, (own, *(self.column or ())), type_)))
        self.pending = Pending()  # it contains barriers
        self.out.append(ir.assign(own, joined(total.join, before, own, type_)))


def _is_straight(block: ir.Block) -> bool:
    return all(isinstance(item, (ir.Assign, ir.Store)) for item in block)
