"""Calls whose form is only known when the program runs: tensors of unknown rank, axes and shapes that are computed.

Most functions turn an axis into an attribute and look at ranks while they are traced. Where one can't, `deferrable` has
the whole call made when the operands have values, by the function itself, run eagerly:

    late(*tensors; call, types)   call: a `Call`, or whatever else gives tensors for tensors; types: of its results
    late_effect(*tensors; call, types, again)     the same, of a call that asserts or draws; again: it may be repeated

The dtypes of the results come from trials: the function is traced on operands of ranks, lengths and values that it
might meet, into a graph that is dropped. What all trials that succeed have in common is what is known of the
results. If none succeeds, the function's own error stands.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from runtime import errors, nest
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor, is_tensor_like, static_value
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS, OpDef, register
from runtime.shapes import covers, widen
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor
from runtime.tracebacks import leaving, mark
from runtime.types import TensorType

F = TypeVar("F", bound=Callable[..., Any])

_RANKS = range(7)
_SCALARS = (-1, 0, 1, 2, 3)
_LENGTHS = range(6)
# Structure and types of results, and the names of the effects on the way.
Result = tuple[Any, list[TensorType], frozenset[str]]
_REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, errors.OpError)


class OperandIndex:
    """Stands for a tensor among the arguments of a call: the node's operand of this index."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Call:
    """A function and its arguments, with holes where tensors go: `call(*tensors)` fills them and calls it."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def __call__(self, *tensors: Any) -> Any:
        def fill(leaf: Any) -> Any:
            return tensors[leaf.index] if type(leaf) is OperandIndex else leaf

        return self.function(*_map(self.args, fill), **_map(self.kwargs, fill))

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


class Applied:
    """An op of the table with its attributes, as a call."""

    def __init__(self, op: OpDef, attrs: dict[str, Any]) -> None:
        self.op = op
        self.attrs = attrs

    def __call__(self, *tensors: Any) -> Any:
        return apply(self.op, tensors, self.attrs)

    def __repr__(self) -> str:
        return self.op.name


def _map(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """`value` with `leaf` of each part of its lists, tuples, dictionaries and slices."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(_map(item, leaf) for item in value)
    if kind is dict:
        return {key: _map(item, leaf) for key, item in value.items()}
    if kind is slice:
        return slice(_map(value.start, leaf), _map(value.stop, leaf), _map(value.step, leaf))
    return leaf(value)


# --- the rows --------------------------------------------------------------------------------------------------------


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    return attrs["types"]


def _kernel(*arrays: Any, call: Callable[..., Any], types: tuple) -> tuple:
    builder, recorders = ctx.builder, ctx.recorders
    ctx.builder, ctx.recorders = None, ()
    try:
        result = call(*[EagerTensor(array) for array in arrays])
    finally:
        ctx.builder, ctx.recorders = builder, recorders
    results = [] if result is None else nest.flatten(result)
    for result, expected in zip(results, types, strict=True):
        if result.dtype is not expected.dtype or not covers(expected.shape, result._shape):
            raise errors.InternalError(f"{call!r} returned {result.type}, expected {expected}")
    return tuple([result._array for result in results])


DEFERRED = register(
    OpDef(
        "late",
        _infer,
        _kernel,
        multiple=True,
        doc="A deferred call: the function is called when the program runs.",
        kinds="biufO",
    )
)
DEFERRED_EFFECT = register(
    OpDef(
        "late_effect", _infer, lambda *arrays, call, types, again: _kernel(*arrays, call=call, types=types),
        multiple=True, effect=True,
        doc="A deferred call of a function with side effects, such as assertions or random numbers.",
    )
)  # fmt: skip


# The functions whose calls may be deferred, by their names in files, and the names by the functions. Both are complete
# once the package is imported: a file must mean the same in each process.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
_NAMES: dict[Callable[..., Any], str] = {}


def name_in_files(name: str, function: Callable[..., Any]) -> None:
    """Gives a function whose calls may be deferred a name in files. Raises ValueError for a name that is taken."""
    if FUNCTIONS.setdefault(name, function) is not function:
        raise ValueError(f"two functions are called {name!r} in files")
    _NAMES.setdefault(function, name)


def name_of(function: Callable[..., Any]) -> str | None:
    """A function's name in files; None if it has none."""
    return _NAMES.get(function)


# --- deferring a call ----------------------------------------------------------------------------------------------


def deferrable(function: F) -> F:
    """`function`, which is called when the program runs where it can't be traced for want of a rank, axis or shape.

    Its name in files is its module below `runtime.ops` and its own.
    """
    name_in_files(f"{function.__module__.removeprefix('runtime.ops.')}.{function.__qualname__}", function)
    return with_deferral(function)


def with_deferral(function: F) -> F:
    """The same for a function that has a name in files already, or gets none: programs that defer it can't be saved."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if ctx.builder is None:
            try:
                return function(*args, **kwargs)
            except leaving():
                raise
        try:
            return function(*args, **kwargs)
        except _REFUSALS as error:
            found = _defer(function, args, kwargs)
            if found is None:
                raise
            del error
        return found[0]

    return mark(wrapper)


def _defer(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any] | None:
    """The call's results in a tuple, or None where nothing that is unknown now is to blame."""
    tensors: list[Tensor] = []
    foreign = False

    def place(leaf: Any) -> Any:
        nonlocal foreign
        if hasattr(type(leaf), "__tf_flatten__"):
            foreign = True
        if not is_tensor_like(leaf):
            return leaf
        tensors.append(convert_to_tensor(leaf))
        return OperandIndex(len(tensors) - 1)

    call = Call(function, _map(args, place), _map(kwargs, place))
    if foreign or not any(_open(t) for t in tensors):
        return None
    found = _trials(call, tensors)
    if found is None:
        return None
    structure, types, effects = found
    attrs: dict[str, Any] = {"call": call, "types": tuple(types)}
    if effects:
        outputs = apply(DEFERRED_EFFECT, tensors, {**attrs, "again": all(OPS[name].is_check for name in effects)})
    else:
        outputs = apply(DEFERRED, tensors, attrs)
    return (nest.pack_sequence_as(structure, list(outputs)) if types else None,)


def _open(tensor: Tensor) -> bool:
    """Whether the form of a call may depend on what isn't known of the tensor."""
    if not isinstance(tensor, SymbolicTensor):
        return False
    return tensor._shape is None or None in tensor._shape or _may_decide(tensor)


def _may_decide(tensor: Tensor) -> bool:
    """Whether a tensor may be an axis, a permutation, a shape or a number of rows."""
    if not isinstance(tensor, SymbolicTensor) or static_value(tensor) is not None:
        return False
    return tensor.dtype.kind in "iu" and len(tensor._shape or ()) <= 2


def _trials(call: Call, tensors: Sequence[Tensor]) -> Result | None:
    """What all trials that succeed have in common; None if none does."""
    deciding = [i for i, t in enumerate(tensors) if _may_decide(t)]
    # Shapes whose own number of entries decides.
    lengths = [i for i in deciding if tensors[i]._shape in (None, (None,))]
    found = None
    for decided in ([], [i for i in deciding if tensors[i]._shape == ()], deciding):
        for result in _results(call, tensors, decided):
            structure, types, effects = result
            if found is None:
                found = result
            elif [t.dtype for t in types] != [t.dtype for t in found[1]]:
                return None  # how many results there are, or of what dtypes, depends on values
            else:
                joined = [TensorType(a.dtype, widen(a.shape, b.shape)) for a, b in zip(types, found[1])]
                found = structure, joined, effects | found[2]
        if (found is not None and not lengths) or not deciding:
            return found
    return found


def _results(call: Call, tensors: Sequence[Tensor], decided: list[int]) -> Iterator[Result]:
    """What the trials give in which the operands `decided` have values."""
    for shapes in _shapes(tensors, decided):
        succeeded = False
        for sizes in _sizes(shapes, decided):
            for values in _values(sizes, decided):
                result = _trial(call, tensors, sizes, values)
                if result is None:
                    continue
                succeeded = True
                structure, types, effects = result
                if values or sizes is not shapes:  # the sizes of results follow from what was tried
                    types = [TensorType(t.dtype, None if t.shape is None else (None,) * len(t.shape)) for t in types]
                yield structure, types, effects
            if succeeded and sizes is shapes:
                break


def _shapes(tensors: Sequence[Tensor], decided: list[int]) -> Iterator[dict[int, Any]]:
    """Shapes to try, by operand: all unknown ranks alike, and one beside another."""
    shapes = {i: t._shape for i, t in enumerate(tensors)}
    unranked = [i for i, shape in shapes.items() if shape is None and i not in decided]
    ranks: list[tuple[int, ...]] = [(r,) * len(unranked) for r in _RANKS] if unranked else [()]
    if len(unranked) == 2:
        ranks += [pair for pair in itertools.product(range(5), repeat=2) if pair[0] != pair[1]]
    vectors = [i for i in decided if shapes[i] in (None, (None,))]
    scalar = [()] if any(shapes[i] is None for i in vectors) else []
    for chosen in ranks:
        for vector in [*scalar, *[(n,) for n in _LENGTHS]] if vectors else [()]:
            trial = dict(shapes)
            trial.update(zip(unranked, [(None,) * r for r in chosen]))
            trial.update((i, vector) for i in vectors if vector or shapes[i] is None)
            yield trial


def _sizes(shapes: dict[int, Any], decided: list[int]) -> Iterator[dict[int, Any]]:
    """The shapes as they are; then, for functions that need to know them, with sizes for the unknown dimensions."""
    yield shapes
    if any(None in shape for i, shape in shapes.items() if i not in decided):
        for size in (1, 2, 3, None):
            filled = {}
            for i, shape in shapes.items():
                known = tuple([d if d is not None else size or axis + 1 for axis, d in enumerate(shape)])
                filled[i] = shape if i in decided else known
            yield filled


def _values(shapes: dict[int, Any], decided: list[int]) -> Iterator[dict[int, Any]]:
    """Values to try for the operands that may decide: one number for all scalars, 0, 1, 2 … or that one for vectors."""
    if not decided:
        yield {}
        return
    for number, counting in itertools.product(_SCALARS, (True, False)):
        values: dict[int, Any] = {}
        for i in decided:
            # A matrix holds padding, or starts and stops: two columns.
            shape = tuple([2 if d is None else d for d in shapes[i]])
            count = int(np.prod(shape, dtype=np.int64))
            values[i] = np.arange(count).reshape(shape) if counting and shape else np.full(shape, number)
        yield values


def _effects(graph: Any) -> frozenset[str]:
    names = {node.op.name for node in graph.nodes if node.op.effect}
    return frozenset(names.union(*[_effects(region) for node in graph.nodes for region in node.regions]))


def _trial(call: Call, tensors: Sequence[Tensor], shapes: dict[int, Any], values: dict[int, Any]) -> Result | None:
    builder = ctx.builder.sketch()
    with builder:
        operands: list[Any] = []
        for i, tensor in enumerate(tensors):
            if i in values:
                if tensor.dtype.kind == "u" and (values[i] < 0).any():
                    return None
                operands.append(builder.constant(np.asarray(values[i], tensor.dtype._np)))
            elif static_value(tensor) is not None:
                operands.append(builder.constant(static_value(tensor)))
            else:
                operands.append(builder.tensor(builder.add_input(TensorType(tensor.dtype, shapes[i]))))
        try:
            result = call(*operands)
        except _REFUSALS:
            return None
    effects = _effects(builder.graph)
    if result is None:  # an assertion, of which nothing may be left to do at run time where all is known
        return None, [], effects | {"assert"}
    leaves = nest.flatten(result)
    if not all(isinstance(leaf, Tensor) for leaf in leaves) or not leaves:
        return None
    return nest.map_structure(lambda leaf: None, result), [leaf.type for leaf in leaves], effects
