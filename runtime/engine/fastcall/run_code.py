"""How inline caches call a kernel and wrap its results as tensors, as machine code."""

from __future__ import annotations

from runtime.engine.fastcall.plan_encoding import (
    ARGUMENT,
    ASSIGNED,
    CALLED_INPUT,
    IN_TUPLE,
    INTEGER,
    NO_STATUS,
    NOTHING,
    OBJECT_INPUT,
    ONE,
    PLAN_FAILED,
    PLAN_INPUTS,
    PLAN_KERNEL,
    PLAN_NO_MEMORY,
    PLAN_OUTPUTS,
    PLAN_PACK,
    PLAN_RESULT_KIND,
    PLAN_STATUS,
    PLAN_TENSORS,
    SEVERAL,
    STATUS,
    TENSOR,
    TENSOR_ARRAY,
    TENSOR_DTYPE,
    ZERO,
)
from runtime.engine.fastcall.plan_reading import called, pointer, release, retain, word
from runtime.llvm.function_builder import FunctionBuilder, defined
from runtime.llvm.python_objects import new_number, set_list_item, set_slot, set_tuple_item, tuple_item


class _Run:
    """Writes the function `@run`, which runs a plan: `%cursor` stands at its inputs, `%values` are the tensors'
    values."""

    def __init__(self, f: FunctionBuilder) -> None:
        self._f = f
        form = self._word("i64", PLAN_RESULT_KIND)
        self._form = f.binary("and", form, 3)
        self._in_tuple = f.binary("icmp ne", f.binary("and", form, IN_TUPLE), 0)
        # An object made for an input, the only tensor, the tuple or list of several, the argument of a call.
        self._made, self._single, self._whole, self._given = (f.stack("ptr") for _ in range(4))
        for place in (self._made, self._single, self._whole):
            f.store("ptr", "null", place)
        self._abandon, self._lost = f.label(), f.label()

    def _word(self, type_: str, number: int) -> str:
        """A word of the plan."""
        return self._f.field(type_, "%plan", number, "i64")

    def _is(self, number: str, kind: int) -> str:
        return self._f.binary("icmp eq", number, kind)

    def _release_if_any(self, place: str) -> None:
        obj = self._f.load("ptr", place)
        with self._f.unless(self._f.is_null(obj)):
            release(self._f, obj)

    def write(self) -> None:
        f = self._f
        count = self._word("i64", PLAN_INPUTS)
        with f.loop(0, count) as loop:
            f.store("ptr", self._input(), f.at("%inputs", loop.index, "ptr"))
        result = f.call("ptr", self._word("ptr", PLAN_KERNEL), "ptr null", "ptr %inputs", f"i64 {count}")
        self._release_if_any(self._made)
        with f.if_then(f.is_null(result)):
            self._no_result()
        self._check_status(result)
        self._make_whole()
        with f.loop(0, self._word("i64", PLAN_OUTPUTS)) as loop:
            self._output(result, loop.index)
        release(f, result)
        self._answer()
        f.begin(self._abandon)
        self._release_if_any(self._single)
        self._release_if_any(self._whole)
        f.block(self._lost)
        release(f, result)
        f.end("ret ptr null")

    # --- inputs ------------------------------------------------------------------------------------------------------

    def _input(self) -> str:
        f = self._f
        tensor, constant, made = (f.label() for _ in range(3))
        f.switch("i64", word(f, "%cursor"), tensor, {OBJECT_INPUT: constant, CALLED_INPUT: made})
        blocks = (
            (tensor, lambda: f.field("ptr", "%values", word(f, "%cursor"), "ptr")),
            (constant, lambda: pointer(f, "%cursor")),
            (made, self._made_input),
        )
        return f.merge(f.label(), "ptr", blocks)

    def _made_input(self) -> str:
        f = self._f
        made = called(f, pointer(f, "%cursor"))
        f.leave_if(f.is_null(made), "ptr null")
        f.store("ptr", made, self._made)
        return made

    # --- failures ----------------------------------------------------------------------------------------------------

    def _no_result(self) -> None:
        """Leaves after an error of the kernel."""
        f = self._f
        no_memory = f.call("i32", "@PyErr_ExceptionMatches", f"ptr {f.load('ptr', '@PyExc_MemoryError')}")
        f.leave_if(f.binary("icmp eq", no_memory, 0, "i32"), "ptr null")
        f.run("@PyErr_Clear")
        f.end(f"ret ptr {called(f, self._word('ptr', PLAN_NO_MEMORY))}")

    def _check_status(self, result: str) -> None:
        """Leaves with what the plan's function for failures returns, if the kernel's status says so."""
        f = self._f
        status = self._word("i64", PLAN_STATUS)
        with f.unless(self._is(status, NO_STATUS)):
            code = f.either(self._is(status, STATUS), "ptr", lambda: tuple_item(f, result, 0), lambda: result)
            with f.unless(f.is_same(code, f"@{ZERO}")):
                count = f.binary("add", "%count", 1)
                given = f.room("ptr", count)
                f.store("ptr", result, given)
                f.copy(f.at(given, 1, "ptr"), "%args", f.binary("mul", "%count", 8))
                handled = called(f, self._word("ptr", PLAN_FAILED), given, count)
                release(f, result)
                f.end(f"ret ptr {handled}")

    # --- outputs -----------------------------------------------------------------------------------------------------

    def _make_whole(self) -> None:
        """Makes the tuple or list that the tensors go to, unless there is only one."""
        f = self._f
        done, in_tuple, in_list = (f.label() for _ in range(3))
        f.switch("i64", self._form, in_list, {ONE: done, NOTHING: done, SEVERAL: in_tuple})
        for label, function in ((in_tuple, "PyTuple_New"), (in_list, "PyList_New")):
            f.begin(label)
            whole = f.call("ptr", f"@{function}", f"i64 {self._word('i64', PLAN_TENSORS)}")
            f.jump_if(f.is_null(whole), self._lost)
            f.store("ptr", whole, self._whole)
            f.jump(done)
        f.begin(done)

    def _put(self, tensor: str, index: str) -> None:
        """Stores a result in the call's answer: as the answer itself, or as an item of its tuple or list."""
        f = self._f
        done, single, in_tuple, in_list = (f.label() for _ in range(4))
        f.switch("i64", self._form, in_list, {ONE: single, NOTHING: single, SEVERAL: in_tuple})
        f.begin(single)
        f.store("ptr", tensor, self._single)
        f.jump(done)
        for label, set_item in ((in_tuple, set_tuple_item), (in_list, set_list_item)):
            f.begin(label)
            set_item(f, f.load("ptr", self._whole), index, tensor)
            f.jump(done)
        f.begin(done)

    def _output(self, result: str, index: str) -> None:
        f = self._f
        head, source, dtype = word(f, "%cursor"), word(f, "%cursor"), pointer(f, "%cursor")
        kind = f.binary("and", head, 3)

        def argument() -> str:
            value = f.field("ptr", "%values", source, "ptr")
            retain(f, value)
            return value

        def own() -> str:
            obj = f.either(self._in_tuple, "ptr", lambda: tuple_item(f, result, source), lambda: result)
            return f.either(self._is(kind, INTEGER), "ptr", lambda: self._number(obj), lambda: kept(obj))

        def kept(obj: str) -> str:
            retain(f, obj)
            return obj

        value = f.either(self._is(kind, ARGUMENT), "ptr", argument, own)

        def assign() -> None:
            f.store("ptr", value, self._given)
            answer = called(f, dtype, self._given, 1)
            release(f, value)
            f.jump_if(f.is_null(answer), self._abandon)
            release(f, answer)

        def wrap() -> None:
            tensor = f.call("ptr", "@tensor", f"ptr {value}", f"ptr {dtype}")
            f.jump_if(f.is_null(tensor), self._abandon)
            self._put(tensor, index)

        f.if_else(f.binary("icmp ne", f.binary("and", head, ASSIGNED), 0), assign, wrap)

    def _number(self, integer: str) -> str:
        """Python's int as an int64 of NumPy's."""
        f = self._f
        value = f.call("i64", "@PyLong_AsLongLong", f"ptr {integer}")
        return new_number(f, "int64", "i64", value, lambda failed: f.jump_if(failed, self._abandon))

    def _answer(self) -> None:
        """Returns what the call returns."""
        f = self._f
        f.leave_if(self._is(self._form, ONE), f"ptr {f.load('ptr', self._single)}")
        whole = f.load("ptr", self._whole)
        f.leave_if(self._is(self._form, SEVERAL), f"ptr {whole}")
        with f.if_then(self._is(self._form, NOTHING)):
            retain(f, "@_Py_NoneStruct")
            f.end("ret ptr @_Py_NoneStruct")
        f.store("ptr", whole, self._given)
        packed = called(f, self._word("ptr", PLAN_PACK), self._given, 1)
        release(f, whole)
        f.end(f"ret ptr {packed}")


def running(array: int | None, dtype: int | None) -> str:
    """The function that runs plans. array, dtype: where tensors have these fields (`layouts.slot`)."""

    def tensor(f: FunctionBuilder) -> str:
        """A tensor with this value, whose reference it takes over."""
        made = f.call("ptr", "@PyType_GenericAlloc", f"ptr @{TENSOR}", "i64 0")
        with f.if_then(f.is_null(made)):
            release(f, "%value")
            f.end("ret ptr null")
        set_slot(f, made, array, TENSOR_ARRAY, "%value")
        retain(f, "%dtype")
        set_slot(f, made, dtype, TENSOR_DTYPE, "%dtype")
        return made

    parameters = "ptr %plan, ptr %cursor, ptr %values, ptr %inputs, ptr %args, i64 %count"
    f = FunctionBuilder(f"define internal ptr @run({parameters})")
    _Run(f).write()
    return "\n".join([defined("internal ptr @tensor(ptr %value, ptr %dtype)", tensor), f.text()])
