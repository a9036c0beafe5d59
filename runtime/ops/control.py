"""Ops that act: assertions, printing, calls of Python functions. All are effects, so they keep program order.

assert(cond, *data; message, error, summarize)      raises `error` with the message when cond is false
print(*tensors; template, stream, end, summarize)   template: pieces of text, and indices of tensors
host_call(*tensors; function, types)                calls function with NumPy arrays
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from runtime import dtypes, errors, nest
from runtime.context import ctx, init_scope
from runtime.dataclass import dataclass
from runtime.ops.arrays.reduce import reduce_all
from runtime.ops.convert import convert_to_tensor, is_tensor_like, operands
from runtime.ops.dispatch import apply, call
from runtime.ops.strings.staged_string import Formatted, StagedString, StagedText
from runtime.ops.strings.tensor_format import format_tensor
from runtime.ops.table import OpDef, Sample, register
from runtime.ops.values import returned_array
from runtime.tensor import EagerTensor, Tensor, TensorLike
from runtime.types import TensorType


def _no_outputs(inputs: Sequence[Any], attrs: dict) -> tuple:
    return ()


def _nothing(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


# --- assert --------------------------------------------------------------------------------------------------------


def make_error(name: str, message: str) -> Exception:
    """The exception that a failed assertion raises; `name` is a key of `errors.BY_NAME`."""
    return errors.BY_NAME[name](message) if message else errors.BY_NAME[name]()


def _assert_kernel(condition: Any, *data: Any, message: str, error: str, summarize: int) -> tuple:
    if not (condition.all() if condition.ndim else condition):
        shown = [format_tensor(d, summarize) for d in data]
        parts = [message] if message else []
        if issubclass(errors.BY_NAME[error], errors.OpError) and not message:
            parts = ["assertion failed"]
        text = "".join(parts)
        if shown:
            text += (": " if text and not text.endswith("=") else " ") + ", ".join(shown)
        raise make_error(error, text.lstrip())
    return ()


ASSERT = register(
    OpDef(
        "assert", _no_outputs, _assert_kernel, grad=_nothing, effect=True, multiple=True,
        doc="Raises unless cond holds.",
        samples=(
            Sample(((),), {"message": "no", "error": "AssertionError", "summarize": 3}, fixed={0: np.array(True)}),
        ),
        is_check=True,
    )
)  # fmt: skip


def assert_op(
    condition: Any, message: str = "", error: str = "InvalidArgumentError", data: Sequence[Any] = (), summarize: int = 3
) -> None:
    """Raises `error` (a name in `errors.BY_NAME`) with `message` and `data` when `condition`, a bool, is false."""
    tensors = [convert_to_tensor(d) for d in data]
    attrs = {"message": message, "error": error, "summarize": summarize}
    apply(ASSERT, (convert_to_tensor(condition, dtypes.bool_), *tensors), attrs)


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError showing `data` when `condition` is false."""
    flag = convert_to_tensor(condition, dtypes.bool_)
    message = "Expected 'False' to be true. Summarized data"
    assert_op(flag, message, data=list(data), summarize=3 if summarize is None else summarize)


class ComparisonCheck(Protocol):
    """A public function that compares two operands, which broadcast."""

    def __call__(
        self,
        x: TensorLike,
        y: TensorLike,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> None: ...


def _comparison(symbol: str, row: str, name: str) -> ComparisonCheck:
    def check(
        x: TensorLike, y: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        a, b = operands(row, x, y)
        text = f"Condition x {symbol} y did not hold. x, y ="
        assert_op(
            reduce_all(call(row, a, b)), f"{message}\n{text}" if message else text, data=(a, b),
            summarize=3 if summarize is None else summarize,
        )  # fmt: skip

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises InvalidArgumentError unless x {symbol} y holds for all elements; they broadcast."
    return check


assert_equal = _comparison("==", "equal", "assert_equal")
assert_none_equal = _comparison("!=", "not_equal", "assert_none_equal")
assert_less = _comparison("<", "less", "assert_less")
assert_less_equal = _comparison("<=", "less_equal", "assert_less_equal")
assert_greater = _comparison(">", "greater", "assert_greater")
assert_greater_equal = _comparison(">=", "greater_equal", "assert_greater_equal")


# --- raise ---------------------------------------------------------------------------------------------------------


def _raise_kernel(condition: Any, *data: Any, error: ErrorTemplate) -> tuple:
    if not condition:
        raise error.made(data)
    return ()


@dataclass(frozen=True)
class ErrorTemplate:
    """An error that a program will raise: tensors that it holds have their values then.

    kind        its class
    arguments   its `args`, with the places of tensors
    attributes  what else it holds, as pairs
    is_from     whether it was raised with `from`; cause: the error behind it (`from None` has none)
    """

    kind: type[BaseException]
    arguments: tuple
    attributes: tuple[tuple[str, Any], ...] = ()
    is_from: bool = False
    cause: ErrorTemplate | None = None

    @classmethod
    def of(cls, error: BaseException, position: Callable[[Any], int]) -> ErrorTemplate:
        """The template of an error. position: adds a tensor to the node's operands and returns its position."""

        def place(leaf: Any) -> Any:
            if type(leaf) is StagedString:
                leaf = StagedText((leaf.tensor, None))
            if type(leaf) is StagedText:
                return Message(tuple(leaf.template(position)))
            return Datum(position(leaf)) if is_tensor_like(leaf) else leaf

        arguments, attributes = parts_of(error)
        return cls(
            type(error),
            nest.map_structure(place, arguments),
            tuple([(name, nest.map_structure(place, value)) for name, value in attributes.items()]),
            error.__suppress_context__,
            None if error.__cause__ is None else cls.of(error.__cause__, position),
        )

    def made(self, data: Sequence[Any]) -> BaseException:
        """The error, for the values of the operands."""
        arguments, values = nest.map_structure(
            lambda leaf: leaf.of(data) if type(leaf) in (Datum, Message) else leaf,
            [list(self.arguments), [value for _, value in self.attributes]],
        )
        error = _made(self.kind, arguments, {name: value for (name, _), value in zip(self.attributes, values)})
        if self.is_from:
            error.__cause__ = self.cause.made(data) if self.cause is not None else None
        return error


def parts_of(error: BaseException) -> tuple[tuple, dict[str, Any]]:
    """The arguments and the attributes that an error is constructed from."""
    # An OSError keeps the file's name out of its `args`.
    arguments: Any = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args
    return arguments, {name: value for name, value in vars(error).items() if name != "__notes__"}


def _made(kind: type[BaseException], arguments: Sequence[Any], attributes: dict[str, Any]) -> BaseException:
    """An error like one that was made before. What the user's `__init__` takes isn't known, nor does it run twice."""
    if isinstance(kind.__init__, FunctionType):
        # By a class without an `__init__`: of two built-in bases Python refuses `kind.__new__`.
        made = type(kind.__name__, (kind,), {"__slots__": (), "__init__": _made_before})(*arguments)
        made.__class__ = kind
        made.args = tuple(arguments)
    else:
        made = kind(*arguments)
    vars(made).update(attributes)
    return made


def _made_before(self: Any, *arguments: Any) -> None:
    """An `__init__` that has been run before."""


class Datum:
    """Marks where a tensor's value stands in an error's arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def of(self, data: Sequence[Any]) -> Tensor:
        return EagerTensor(data[self.index])


class Message:
    """A text with tensors in it in an error."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple) -> None:
        self.pieces = pieces

    def of(self, data: Sequence[Any]) -> str:
        return "".join(each if isinstance(each, str) else each.text(data) for each in self.pieces)


RAISE = register(
    OpDef(
        "raise", _no_outputs, _raise_kernel, grad=_nothing, effect=True, multiple=True,
        doc="Raises an error of any class unless cond holds.",
        samples=(Sample(((),), {"error": ErrorTemplate(KeyError, ("key",))}, fixed={0: np.array(True)}),),
        is_check=True,
    )
)  # fmt: skip


def raise_op(error: BaseException, span: Any = None, unless: Any = False) -> None:
    """Raises an error like `error` when the program gets there; tensors that it holds have their values then.

    span: where the user raises it, if not where the innermost frame of the user's stands. unless: a boolean tensor;
    nothing is raised where it holds.
    """
    kind, (arguments, attributes) = type(error), parts_of(error)
    no = convert_to_tensor(unless)
    own = errors.BY_NAME.get(kind.__name__) is kind and (not attributes or issubclass(kind, errors.OpError))
    if own and error.__cause__ is None and [type(each) for each in arguments] in ([], [str]):
        # An assertion, which kernels have too. What it raises shows no other error, as after `from None`.
        assert_op(no, arguments[0] if arguments else "", kind.__name__)
    else:
        tensors: list[Tensor] = []

        def position(tensor: Any) -> int:
            tensors.append(convert_to_tensor(tensor))
            return len(tensors) - 1

        template = ErrorTemplate.of(error, position)
        apply(RAISE, (no, *tensors), {"error": template})
    if span is not None and ctx.builder is not None:
        node = ctx.builder.read_token().node
        node.span = span


# --- print ---------------------------------------------------------------------------------------------------------


def _stream(stream: Any) -> Any:
    """The standard streams are looked up when printing, so that redirecting them later works."""
    return getattr(sys, stream) if isinstance(stream, str) else stream


def _print_kernel(*tensors: Any, template: tuple, stream: Any, end: str, summarize: int) -> tuple:
    text = "".join(
        p if isinstance(p, str) else p.text(tensors) if type(p) is Formatted else format_tensor(tensors[p], summarize)
        for p in template
    )
    _stream(stream).write(text + end)
    return ()


PRINT = register(
    OpDef(
        "print", _no_outputs, _print_kernel, grad=_nothing, effect=True, multiple=True, label="PrintV2",
        doc="Writes tensors and text to a stream.",
        samples=(Sample(((2,),), {"template": ("x ", 0), "stream": "stdout", "end": "\n", "summarize": 3}),),
    )
)  # fmt: skip


def _template(value: Any, tensors: list[Tensor], top: bool) -> list[Any]:
    """Pieces of text and tensor positions for a value, nested structures included."""
    if type(value) is StagedText:  # in a structure what it shows is there as Python shows it

        def place(tensor: Any) -> int:
            tensors.append(convert_to_tensor(tensor))
            return len(tensors) - 1

        return value.template(place)
    if is_tensor_like(value):
        tensors.append(convert_to_tensor(value))
        return [len(tensors) - 1]
    if isinstance(value, str) and top:
        return [value]
    if isinstance(value, dict):
        pieces: list[Any] = ["{"]
        for i, (key, item) in enumerate(value.items()):
            pieces += [", " if i else "", f"{key!r}: ", *_template(item, tensors, False)]
        return [*pieces, "}"]
    if isinstance(value, (list, tuple)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        pieces = [opening]
        for i, item in enumerate(value):
            pieces += [", " if i else "", *_template(item, tensors, False)]
        return [*pieces, ",)" if isinstance(value, tuple) and len(value) == 1 else closing]
    return [repr(value)]


def print_(
    *inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n",
    name: str | None = None,
) -> None:  # fmt: skip
    """Prints tensors, structures of them and Python values when the program runs; to standard error by default.

    output_stream: sys.stdout, sys.stderr or another object with `write`. summarize: how many elements to show at each
    end of a dimension; -1 for all.
    """
    tensors: list[Tensor] = []
    pieces: list[Any] = []
    for i, value in enumerate(inputs):
        pieces += [sep] if i else []
        pieces += _template(value, tensors, True)
    stream = {id(sys.stdout): "stdout", id(sys.stderr): "stderr"}.get(id(output_stream), output_stream)
    attrs = {"template": tuple(pieces), "stream": stream or "stderr", "end": end, "summarize": summarize}
    apply(PRINT, tensors, attrs)


# --- calls of Python functions -------------------------------------------------------------------------------------
# `py_function`, which has a gradient, is in runtime/autodiff/python_calls.py.


# What a trace keeps of a function that the program will call.
_guard: Callable[[Callable], Callable] = lambda function: function  # noqa: E731


def install_guard(guard: Callable[[Callable], Callable]) -> None:
    """Sets what looks at the functions that programs call when they run; the operators do so."""
    global _guard
    _guard = guard


def called_later(function: Callable) -> Callable:
    """What a trace keeps of a function that the program will call."""
    return function if ctx.builder is None else _guard(function)


def results_of(function: Callable, arguments: Sequence[Any], count: int) -> list[Any]:
    """What `function(*arguments)` returns, as a list. Raises InvalidArgumentError unless it has `count` values."""
    result = function(*arguments)
    results = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
    if len(results) != count:
        raise errors.InvalidArgumentError(f"{function} returned {len(results)} values, expected {count}")
    return results


def result_types(function: Callable, Tout: Any) -> tuple[bool, tuple[TensorType, ...]]:
    """Whether `Tout` is a list, and the types it names. Raises ValueError if `function` can't be called."""
    if not callable(function):
        raise ValueError(f"Expected `func` to be callable. Received func={function} of type {type(function)}.")
    several = isinstance(Tout, (list, tuple))
    kinds = Tout if several else [] if Tout is None else [Tout]
    return several, tuple([TensorType(dtypes.as_dtype(kind), None) for kind in kinds])


def _infer_host(inputs: Sequence[Any], attrs: dict) -> tuple:
    return attrs["types"]


def _host_kernel(*values: Any, function: Callable, types: tuple) -> tuple:
    with init_scope():
        results = results_of(function, [np.asarray(v) for v in values], len(types))
    outputs = []
    for value, type_ in zip(results, types):
        if isinstance(value, Tensor):
            value = value._array  # type: ignore[attr-defined]
        array = returned_array(value, type_.dtype)
        outputs.append(array if array.ndim or array.dtype == object else array[()])
    return tuple(outputs)


HOST_CALL = register(
    OpDef(
        "host_call", _infer_host, _host_kernel, grad=_nothing, effect=True, multiple=True, calls_python=True,
        label="PyFunc", doc="Calls a Python function with NumPy arrays.",
        samples=(
            Sample(((2,),), {"function": np.negative, "types": (TensorType(dtypes.float64, (2,)),)}, gradient=()),
        ),
        is_quiet=True,
        cuts_gradient="a numpy_function has no gradient, since the tape doesn't record it; a py_function has one",
    )
)  # fmt: skip


def _host_decorated(function: Callable, Tout: Any) -> Callable:
    @functools.wraps(function)
    def called(*inputs: Any) -> Any:
        return numpy_function(function, inputs, Tout)

    return called


def numpy_function(
    func: Callable | None = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None
) -> Any:
    """Calls `func` with NumPy arrays when the program runs; its results become tensors of dtypes `Tout`.

    `@numpy_function(Tout=...)` is a decorator: calls of the function go through `numpy_function`.
    It has no gradient; `py_function` has one. Raises ValueError if `func` can't be called,
    InvalidArgumentError if the number of results differs from `Tout`.
    """
    if func is None:
        return functools.partial(_host_decorated, Tout=Tout)
    several, types = result_types(func, Tout)
    tensors = [convert_to_tensor(v) for v in (() if inp is None else inp)]
    outputs = apply(HOST_CALL, tensors, {"function": called_later(func), "types": types})
    if several:
        return list(outputs)
    return outputs[0] if outputs else None
