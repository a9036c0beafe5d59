"""The checks of inline caches as machine code: that the thread neither traces nor records, that the arguments match a
pattern, and that the guards of the trace hold.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.engine.fastcall.plan_encoding import (
    ARRAY,
    ATTRIBUTE,
    BUILDER,
    CONTEXT,
    DICT,
    EAGERLY,
    IN_CELL,
    IN_DICTIONARY,
    LIST,
    NUMERICS,
    RECORDERS,
    SCALAR,
    STATE,
    TENSOR,
    TENSOR_ARRAY,
    TENSOR_DTYPE,
    TUPLE,
)
from runtime.engine.fastcall.plan_reading import called, pointer, release, retain, word
from runtime.llvm.function_builder import FunctionBuilder, definitions
from runtime.llvm.python_objects import (
    ALIGNED,
    C_CONTIGUOUS,
    ArrayReader,
    cell_content,
    list_item,
    list_length,
    slot,
    tuple_item,
    tuple_length,
    type_of,
)

# --- the thread ------------------------------------------------------------------------------------------------------


def _undisturbed(f: FunctionBuilder) -> str:
    """Whether this thread neither traces nor records nor checks numbers, and functions aren't run eagerly."""
    f.leave_if(f.binary("icmp ne", f.load("i64", f"@{EAGERLY}"), 0), "i1 false")
    state = f.call("ptr", "@PyObject_GetAttr", f"ptr @{CONTEXT}", f"ptr @{STATE}")
    with f.if_then(f.is_null(state)):
        f.run("@PyErr_Clear")
        f.end("ret i1 false")
    traces_not, checks_not = (_is_unset(f, state, name) for name in (BUILDER, NUMERICS))
    recorders = _item(f, state, f"@{RECORDERS}")
    records_not = f.either(
        f.is_null(recorders), "i1", lambda: "true", lambda: f.binary("icmp eq", tuple_length(f, recorders), 0)
    )
    release(f, state)
    return f.all_of(traces_not, checks_not, records_not)


def _item(f: FunctionBuilder, dictionary: str, key: str) -> str:
    """An item of a dictionary, or null."""
    return f.call("ptr", "@PyDict_GetItemWithError", f"ptr {dictionary}", f"ptr {key}")


def _is_unset(f: FunctionBuilder, state: str, name: str) -> str:
    value = _item(f, state, f"@{name}")
    return f.any_of(f.is_null(value), f.is_same(value, "@_Py_NoneStruct"))


# --- arguments -------------------------------------------------------------------------------------------------------


def _let_go(f: FunctionBuilder) -> None:
    """Gives up the references to the values from `%values` to `%end`."""
    with f.forever(("ptr", "%values")) as loop:
        (place,) = loop.values
        f.jump_if(f.is_same(place, "%end"), loop.end)
        release(f, f.load("ptr", place))
        loop.following = [f.at(place, 1, "ptr")]


def _suits(f: FunctionBuilder) -> str:
    """Whether `%value`, the value of a tensor, is the scalar or array that the description at `%cursor` asks for."""
    type_ = type_of(f, "%value")
    f.leave_if(f.binary("icmp eq", "%kind", SCALAR), f"i1 {f.is_same(type_, '%of')}")
    wanted = word(f, "%cursor")
    f.leave_unless(f.is_same(type_, "@numpy_array_type"), "i1 false")
    array = ArrayReader(f, "%value")
    has_rank = f.binary("icmp eq", f.convert("sext", "i32", array.rank(), "i64"), wanted)
    has_dtype = f.is_same(array.dtype(), "%of")
    layout = C_CONTIGUOUS | ALIGNED
    has_layout = f.binary("icmp eq", f.binary("and", array.flags(), layout, "i32"), layout, "i32")
    f.leave_unless(f.all_of(has_rank, has_dtype, has_layout), "i1 false")
    sizes = array.sizes()
    with f.loop(0, wanted) as axis:
        size, wanted_size = f.field("i64", sizes, axis.index, "i64"), word(f, "%cursor")
        is_any = f.binary("icmp slt", wanted_size, 0)
        f.leave_unless(f.any_of(is_any, f.binary("icmp eq", size, wanted_size)), "i1 false")
    return "true"


class _Fits:
    """Writes the function `@fits`: whether `%obj` is as the description at the cursor says, which is read to its end
    only then. The values of its tensors are put where `%values` points, with references to them.

    array, dtype: the offsets of these fields in a tensor, in bytes; None if they aren't known.
    """

    def __init__(self, f: FunctionBuilder, array: int | None, dtype: int | None) -> None:
        self._f = f
        self._array, self._dtype = array, dtype
        self._type = ""

    def write(self) -> str:
        f = self._f
        kind = word(f, "%cursor")
        self._type = type_of(f, "%obj")
        same, tensor, attribute, tuple_, list_, dictionary = (f.label() for _ in range(6))
        kinds = {SCALAR: tensor, ARRAY: tensor, TUPLE: tuple_, LIST: list_, DICT: dictionary, ATTRIBUTE: attribute}
        f.switch("i64", kind, same, kinds)
        f.begin(same)
        f.end(f"ret i1 {f.is_same('%obj', pointer(f, '%cursor'))}")
        f.begin(tensor)
        self._tensor(kind)
        f.begin(attribute)
        self._attribute()
        f.begin(tuple_)
        self._sequence(pointer(f, "%cursor"), tuple_length, tuple_item)
        f.begin(list_)
        self._sequence("@PyList_Type", list_length, list_item)
        f.begin(dictionary)
        return self._dictionary()

    def _suits(self, value: str, kind: str, of: str) -> str:
        return self._f.call("i1", "@suits", "ptr %cursor", f"ptr {value}", f"i64 {kind}", f"ptr {of}")

    def _put(self, value: str) -> None:
        f = self._f
        place = f.load("ptr", "%values")
        f.store("ptr", value, place)
        f.store("ptr", f.at(place, 1, "ptr"), "%values")
        f.end("ret i1 true")

    def _tensor(self, kind: str) -> None:
        f = self._f
        of, dtype = pointer(f, "%cursor"), pointer(f, "%cursor")
        f.leave_unless(f.is_same(self._type, f"@{TENSOR}"), "i1 false")
        value = slot(f, "%obj", self._array, TENSOR_ARRAY)
        has_dtype = f.is_same(slot(f, "%obj", self._dtype, TENSOR_DTYPE), dtype)
        f.leave_unless(f.all_of(has_dtype, f.negated(f.is_null(value))), "i1 false")
        f.leave_unless(self._suits(value, kind, of), "i1 false")
        retain(f, value)
        self._put(value)

    def _attribute(self) -> None:
        f = self._f
        holder, name = pointer(f, "%cursor"), pointer(f, "%cursor")
        kind, of = word(f, "%cursor"), pointer(f, "%cursor")
        value = f.call("ptr", "@PyObject_GetAttr", f"ptr {holder}", f"ptr {name}")
        with f.if_then(f.is_null(value)):
            f.run("@PyErr_Clear")
            f.end("ret i1 false")
        with f.unless(self._suits(value, kind, of)):
            release(f, value)
            f.end("ret i1 false")
        self._put(value)

    def _item_fits(self, item: str) -> None:
        f = self._f
        f.leave_unless(f.call("i1", "@fits", "ptr %cursor", f"ptr {item}", "ptr %values"), "i1 false")

    def _sequence(
        self,
        class_: str,
        length_of: Callable[[FunctionBuilder, str], str],
        item_of: Callable[[FunctionBuilder, str, str], str],
    ) -> None:
        f = self._f
        f.leave_unless(f.is_same(self._type, class_), "i1 false")
        length = length_of(f, "%obj")
        f.leave_unless(f.binary("icmp eq", length, word(f, "%cursor")), "i1 false")
        with f.loop(0, length) as loop:
            self._item_fits(item_of(f, "%obj", loop.index))
        f.end("ret i1 true")

    def _dictionary(self) -> str:
        f = self._f
        f.leave_unless(f.is_same(self._type, "@PyDict_Type"), "i1 false")
        length = f.call("i64", "@PyDict_Size", "ptr %obj")
        f.leave_unless(f.binary("icmp eq", length, word(f, "%cursor")), "i1 false")
        with f.loop(0, length):
            found = _item(f, "%obj", pointer(f, "%cursor"))
            f.leave_if(f.is_null(found), "i1 false")
            self._item_fits(found)
        return "true"


# --- locks and guards ------------------------------------------------------------------------------------------------


def _take_locks(f: FunctionBuilder) -> str:
    """Takes `%count` locks; how many it has taken, which are fewer where there is an error."""
    with f.loop(0, "%count") as loop:
        take, _give = pointer(f, "%cursor"), pointer(f, "%cursor")
        answer = called(f, take)
        f.leave_if(f.is_null(answer), f"i64 {loop.index}")
        release(f, answer)
    return loop.index


def _give_locks(f: FunctionBuilder) -> None:
    """Releases `%count` locks, whose first words are at `%words`. An error that is set stays set."""
    f.leave_if(f.binary("icmp sle", "%count", 0), "void")
    error = [f.stack("ptr") for _ in range(3)]
    f.run("@PyErr_Fetch", *(f"ptr {slot}" for slot in error))
    with f.loop(0, "%count") as loop:
        give = f.field("ptr", "%words", f.binary("add", f.binary("mul", loop.index, 2), 1), "ptr")
        answer = called(f, give)
        f.if_else(f.is_null(answer), lambda: f.run("@PyErr_Clear"), lambda: release(f, answer))
    f.run("@PyErr_Restore", *(f"ptr {f.load('ptr', place)}" for place in error))


def _holds(f: FunctionBuilder) -> str:
    """Whether all that a trace has baked in is still there."""
    count = word(f, "%cursor")
    with f.loop(0, count):
        kind, holder = word(f, "%cursor"), pointer(f, "%cursor")
        ask, cell, dictionary = (f.label() for _ in range(3))
        f.switch("i64", kind, ask, {IN_CELL: cell, IN_DICTIONARY: dictionary})

        def asked(holder: str = holder) -> str:
            answer = called(f, holder)
            f.leave_if(f.is_null(answer), "i1 false")
            release(f, answer)
            return f.is_same(answer, "@_Py_TrueStruct")

        def in_cell(holder: str = holder) -> str:
            return f.is_same(cell_content(f, holder), pointer(f, "%cursor"))

        def in_dictionary(holder: str = holder) -> str:
            item = _item(f, holder, pointer(f, "%cursor"))
            return f.is_same(item, pointer(f, "%cursor"))

        blocks = ((ask, asked), (cell, in_cell), (dictionary, in_dictionary))
        f.leave_unless(f.merge(f.label(), "i1", blocks), "i1 false")
    return "true"


def checks(array: int | None, dtype: int | None) -> str:
    """The functions of all checks. array, dtype: where tensors have these fields (`layouts.slot`)."""
    return definitions(
        {
            "internal i1 @undisturbed()": _undisturbed,
            "internal void @let_go(ptr %values, ptr %end)": _let_go,
            "internal i1 @suits(ptr %cursor, ptr %value, i64 %kind, ptr %of) alwaysinline": _suits,
            "internal i1 @fits(ptr %cursor, ptr %obj, ptr %values)": lambda f: _Fits(f, array, dtype).write(),
            "internal i64 @take_locks(ptr %cursor, i64 %count)": _take_locks,
            "internal void @give_locks(ptr %words, i64 %count)": _give_locks,
            "internal i1 @holds(ptr %cursor)": _holds,
        }
    )
