"""Lowerings of random numbers, which are made from words of Philox blocks (`kernel_library/philox.py`).

%u = random_uniform() float32[]    →    first = streams[0]
                                        streams[0] = first + 256
                                        u = np.float32(lib.random_words(first, streams[1], streams[2], False) & …) * …

A stream's state is three uint64: the number of its next block, lower half first, and its key. Ops of
`ops/random/stateless.py` get it as a value; those of `ops/random/stateful.py` have streams of their own, which a kernel
borrows for a call (`ops.random.Borrowed`). The numbers equal the interpreter's, except that the last bits of normal
numbers of float64 may differ, since their logarithms, sines and cosines are ours. (Why those of float32 don't:
`ops.random.philox.native`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import TOKEN, Array, Buffer, Dims, Scalar, Vector, product
from runtime.codegen.lower.state import REFUSALS, Lowering, emitter
from runtime.codegen.symbolic.ranges import Atom
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import FLOAT32, FLOAT64, INT64, UINT32, UINT64
from runtime.ops.random.philox import BLOCKS, SMALLEST, STATELESS_KEY
from runtime.ops.random.stateful import Borrowed
from runtime.types import TokenType

Words = Callable[[int], ir.Expr]  # gives the words of a number by their position

_FLOATS = (
    "random_uniform", "random_normal", "random_truncated_normal",
    "philox_uniform", "philox_normal", "philox_truncated_normal",
)  # fmt: skip
_OTHERS = (
    "random_integers", "random_state", "random_permutation", "philox_integers", "philox_full_integers", "philox_state",
    "philox_permutation", "philox_categorical",
)  # fmt: skip
_TURN = ir.Const(6.283185307179586, FLOAT64)


def _refusal(node: Node) -> str | None:
    output = node.outputs[0]
    if node.op.name in _FLOATS and output.dtype.name not in ("float32", "float64"):
        return f"random numbers of {output.dtype.name}"
    if output.type.rank is None:  # type: ignore[union-attr]
        return "random numbers of unknown rank"
    return "a random stream that belongs to no function" if node.op.effect and "site" not in node.attrs else None


REFUSALS.update(dict.fromkeys([*_FLOATS, *_OTHERS], _refusal))


# --- streams -------------------------------------------------------------------------------------------------------


def _uint64(value: int) -> ir.Const:
    return ir.Const(value, UINT64)


def _wide(expr: ir.Expr) -> ir.Expr:
    return ir.Convert(UINT64, expr)


def _state(low: Lowering, value: Value) -> list[ir.Var]:
    """The three words of a state, each as uint64."""
    ref = low.ref(value)
    items = ref.items if isinstance(ref, Vector) else [ir.load(low.array(value).buffer.variable, i) for i in range(3)]
    return [low.assign(_wide(item), "word") for item in items]


def _drawn(low: Lowering, node: Node, used: ir.Expr) -> list[ir.Var]:
    """The state of a function's own stream, which then advances by `used` blocks."""
    borrowed = next((value for _, value in low.constants if isinstance(value, Borrowed)), None)
    if borrowed is None:
        borrowed = Borrowed()
        low.constants.append(("streams", borrowed))
    streams = ir.array_variable("streams", UINT64)
    at = 3 * borrowed.add(node)
    words = [low.assign(ir.load(streams, at + i), "word") for i in range(3)]
    low.add(ir.store(streams, at, words[0] + _wide(used)))
    low.add(ir.store(streams, at + 1, words[1] + _wide(ir.load(streams, at).compare("<", words[0]))))
    return words


def _dims(low: Lowering, node: Node, holes: Sequence[Value]) -> Dims:
    rest = iter(holes)
    found: list[Atom] = []
    for size in node.attrs["shape"]:
        if size is not None:
            found.append(low.static_dim(size))
            continue
        dim = low.size_of(next(rest))
        if not low.is_size(dim):
            message = "Dimension {0} must be >= 0" + (" [Op:RandomUniform]" if node.op.effect else "")
            low.fail_when(dim.compare("<", 0), "InvalidArgumentError", message, node, (dim,))
        found.append(dim)
    return tuple(found)


# --- what words become -------------------------------------------------------------------------------------------


def _word_count(dtype: DType) -> int:
    """The number of words in a number of this dtype."""
    return 2 if dtype.np.itemsize == 8 else 1


def _fraction(dtype: DType, words: Words, which: int = 0) -> ir.Expr:
    """A number in [0, 1) from the low bits of one word, or of two for float64."""
    if dtype.name == "float32":
        low_bits = ir.Binary("&", words(which), _uint64(0x7FFFFF))
        return ir.Convert(FLOAT32, low_bits) * ir.Const(2.0**-23, FLOAT32)
    upper, lower = words(2 * which), words(2 * which + 1)
    shifted = ir.Binary("<<", ir.Binary("&", upper, _uint64(0xFFFFF)), _uint64(32))
    return ir.Convert(FLOAT64, ir.Binary("|", shifted, lower)) * ir.Const(2.0**-52, FLOAT64)


def _whole(dtype: DType, words: Words) -> ir.Expr:
    """All bits of a word, or of two words for 64-bit dtypes."""
    if _word_count(dtype) == 1:
        return ir.Convert(UINT32, words(0))
    return ir.Binary("|", words(0), ir.Binary("<<", words(1), _uint64(32)))


def _pair(low: Lowering, dtype: DType, words: Words, alone: bool) -> tuple[ir.Expr, ir.Expr]:
    """Two normal numbers from two uniform ones by the Box-Muller transform, rounded where the interpreter rounds."""
    kind, factor = scalars.machine_type(dtype), scalars.literal(-2.0, dtype)
    least = scalars.literal(SMALLEST, dtype)
    first = low.assign(_fraction(dtype, words), "first")
    first = low.assign(first.compare(">", least).choose(first, least), "first")
    logarithm = ir.call("math.log" if alone else "lib.log", ir.Convert(FLOAT64, first))
    radius = low.assign(ir.call("math.sqrt", factor * ir.Convert(kind, logarithm)), "radius")
    turned = _TURN * ir.Convert(FLOAT64, _fraction(dtype, words, 1))
    angle = low.assign(ir.Convert(FLOAT64, ir.Convert(kind, turned)), "angle")
    sine, cosine = (ir.Convert(kind, ir.call(name, angle)) for name in ("lib.sin", "lib.cos"))
    return sine * radius, cosine * radius


# --- numbers -----------------------------------------------------------------------------------------------------


def _word_of(low: Lowering, state: Sequence[ir.Var], first: int = 0) -> Words:
    """The words of a stream, from word `first` of its next block on."""
    pairs: dict[int, ir.Var] = {}

    def word(index: int) -> ir.Expr:
        pair, half = divmod(first + index, 2)
        if pair not in pairs:
            number, key = state[0], state[2]
            upper: ir.Expr = state[1]
            if pair > 1:
                number = low.assign(number + _uint64(pair // 2), "number")
                upper = upper + _wide(number.compare("<", state[0]))
            pairs[pair] = low.assign(ir.call("lib.random_words", number, upper, key, ir.truth(pair % 2 == 1)), "pair")
        if half:
            return ir.Binary(">>", pairs[pair], _uint64(32))
        return ir.Binary("&", pairs[pair], _uint64(0xFFFFFFFF))

    return word


# The number of words that a call of `lib.fill_words` writes: 16 KiB.
_CHUNK_WORDS = 4096


def _later(words: Words, first: int) -> Words:
    return lambda index: words(first + index)


def _scalarized_count(low: Lowering, dims: Dims) -> int | None:
    """How many numbers there are, if they are few enough to be variables."""
    sizes = [low.static_size(dim) for dim in dims]
    if None in sizes:
        return None
    count = math.prod(size for size in sizes if size is not None)
    return count if 0 < count <= cost_model.RANDOM_IN_VARIABLES else None


def _words_at(words: Buffer, first: ir.Expr) -> Words:
    """The words of a buffer from an offset on."""
    return lambda index: _wide(ir.load(words.variable, first + index if index else first))


def _words(low: Lowering, node: Node, state: Sequence[ir.Var], count: ir.Expr) -> Buffer:
    """A buffer of `count` random words."""
    words = low.new_buffer(count, dtypes.uint32, "words")
    row = low.index_name(0)
    call = ir.Run(ir.call("lib.fill_words", words.variable, row * _CHUNK_WORDS, *state))
    chunks = low.atom((count + (_CHUNK_WORDS - 1)) // _CHUNK_WORDS)
    low.nest(row, chunks, [call], low.is_large([node]), may_join=False)
    return words


def _define(
    low: Lowering, node: Node, state: Sequence[ir.Var], dims: Dims, number: Callable[[Words], ir.Expr]
) -> None:  # fmt: skip
    """Defines the result of an op whose numbers are each made from one random word, or from two for 64-bit dtypes."""
    output = node.outputs[0]
    if not dims:
        low.define(output, Scalar(low.assign(number(_word_of(low, state)), output.name), output.dtype))
        return
    each, scalar_count = _word_count(output.dtype), _scalarized_count(low, dims)
    if scalar_count is not None:
        word = _word_of(low, state)  # shared by all numbers, so that the two of a pair compute it once
        items = tuple(low.assign(number(_later(word, i * each)), output.name) for i in range(scalar_count))
        low.define(output, Vector(output.dtype, items, dims))
        return
    count = low.atom(product(dims))
    words = _words(low, node, state, count if each == 1 else low.atom(2 * count))
    out, index = low.new_buffer(count, output.dtype, output.name), low.index_name(0)
    element = number(_words_at(words, index if each == 1 else 2 * index))
    low.nest(index, count, [ir.store(out.variable, index, element)], low.is_large([node]))
    low.define(output, Array(out, dims))


def _opened(low: Lowering, node: Node, taken: int) -> tuple[list[ir.Var], Dims]:
    """The state from which a node draws, and the dimensions of its result. taken: the number of operands that aren't
    sizes."""
    if not node.op.effect:
        low.fusion.flush_all()
        return _state(low, node.inputs[0]), _dims(low, node, node.inputs[taken:])
    low.fusion.flush_all()
    dims = _dims(low, node, [v for v in node.inputs[taken:] if not isinstance(v.type, TokenType)])
    for value in node.outputs[1:]:
        low.define(value, TOKEN)
    return _drawn(low, node, BLOCKS * product(dims)), dims


@emitter("random_uniform", "philox_uniform")
def _uniform(low: Lowering, node: Node) -> None:
    state, dims = _opened(low, node, 0 if node.op.effect else 1)
    _define(low, node, state, dims, lambda words: _fraction(node.outputs[0].dtype, words))


@emitter("random_normal", "philox_normal")
def _normal(low: Lowering, node: Node) -> None:
    state, dims = _opened(low, node, 0 if node.op.effect else 1)
    output = node.outputs[0]
    dtype = output.dtype
    if not dims:
        first, _ = _pair(low, dtype, _word_of(low, state), True)
        low.define(output, Scalar(low.assign(first, output.name), dtype))
        return
    scalar_count, each = _scalarized_count(low, dims), 2 * _word_count(dtype)
    if scalar_count is not None:
        pairs = [_pair(low, dtype, _word_of(low, state, i * each), True) for i in range((scalar_count + 1) // 2)]
        items = [low.assign(each, output.name) for pair in pairs for each in pair][:scalar_count]
        low.define(output, Vector(dtype, tuple(items), dims))
        return
    count = low.atom(product(dims))
    words = _words(low, node, state, low.atom((count + count % 2) * (each // 2)))
    out, index = low.new_buffer(count, dtype, output.name), low.index_name(0)
    with low.nested() as block:
        first, second = _pair(low, dtype, _words_at(words, each * index), False)
        low.add(ir.store(out.variable, 2 * index, first), ir.store(out.variable, 2 * index + 1, second))
    low.nest(index, low.atom(count // 2), block, low.is_large([node]), may_join=False)
    size = low.static_size(count)
    if size is None or size % 2:
        with low.nested() as block:
            first, _ = _pair(low, dtype, _words_at(words, (count - 1) * (each // 2)), False)
            low.add(ir.store(out.variable, count - 1, first))
        low.branch((count % 2).compare("==", 1), block)
    low.define(output, Array(out, dims))


@emitter("random_integers", "philox_integers")
def _integers(low: Lowering, node: Node) -> None:
    bounds = node.inputs[:2] if node.op.effect else node.inputs[1:3]
    least, most = (low.scalar_name(v) for v in bounds)
    output = node.outputs[0]
    dtype = output.dtype
    state, dims = _opened(low, node, 2 if node.op.effect else 3)
    message = "Need minval < maxval, got {0} >= {1}" + (" [Op:RandomUniformInt]" if node.op.effect else "")
    shown = (ir.Convert(INT64, least), ir.Convert(INT64, most))
    low.fail_when(least.compare(">=", most), "InvalidArgumentError", message, node, shown)
    kind, wide = scalars.machine_type(dtype), UINT64 if dtype.np.itemsize == 8 else UINT32
    start = low.assign(ir.Convert(wide, least), "start")
    size = low.assign(ir.Convert(wide, ir.Convert(wide, most) - start), "size")
    _define(
        low, node, state, dims,
        lambda words: ir.Convert(kind, ir.Convert(wide, _whole(dtype, words) % size) + start),
    )  # fmt: skip


@emitter("philox_full_integers")
def _full_integers(low: Lowering, node: Node) -> None:
    state, dims = _opened(low, node, 1)
    dtype = node.outputs[0].dtype
    kind = scalars.machine_type(dtype)
    _define(low, node, state, dims, lambda words: ir.Convert(kind, _whole(dtype, words)))


@emitter("philox_state")
def _state_of_seeds(low: Lowering, node: Node) -> None:
    ref = low.ref(node.inputs[0])
    if isinstance(ref, Vector):
        items: list[ir.Expr] = list(ref.items)
    else:
        array = low.array(node.inputs[0])
        items = [ir.load(array.buffer.variable, i) for i in range(2)]
        if array.dims != (low.static_dim(2),):
            message = "seed must have shape [2], got [{0}]"
            low.fail_when(array.dims[0].compare("!=", 2), "ValueError", message, node, (array.dims[0],))
    seeds = [low.assign(_wide(item), "seed") for item in items]
    key = _uint64(STATELESS_KEY)
    mixed = [low.assign(ir.call("lib.random_words", *seeds, key, half), "mixed") for half in (ir.FALSE, ir.TRUE)]
    words = (ir.ZERO, ir.Convert(INT64, mixed[1]), ir.Convert(INT64, mixed[0]))
    low.define(node.outputs[0], Vector(dtypes.int64, words, (low.static_dim(3),)))


@emitter("random_truncated_normal", "philox_truncated_normal")
def _truncated(low: Lowering, node: Node) -> None:
    state, dims = _opened(low, node, 0 if node.op.effect else 1)
    output = node.outputs[0]
    wide = output.dtype.name == "float64"
    size = 2 if wide else 4
    count, group = low.atom(product(dims)), low.index_name(0)
    out = low.new_buffer(count, output.dtype, output.name)
    call = ir.Run(ir.call("lib.fill_truncated", out.variable, group, ir.truth(wide), *state))
    low.nest(group, low.atom((count + (size - 1)) // size), [call], low.is_large([node]), may_join=False)
    low.define(output, Array(out, dims) if dims else Scalar(ir.load(out.variable, 0), output.dtype))


@emitter("random_permutation", "philox_permutation")
def _permutation(low: Lowering, node: Node) -> None:
    low.fusion.flush_all()
    count = low.size_of(node.inputs[0 if node.op.effect else 1])
    # All elements but one take a word, and a block has four.
    state = _drawn(low, node, (count + 2) // 4) if node.op.effect else _state(low, node.inputs[0])
    output = node.outputs[0]
    out = low.new_buffer(count, output.dtype, output.name)
    low.add(ir.Run(ir.call("lib.fill_permutation", out.variable, *state)))
    low.define(output, Array(out, (count,)))
    for value in node.outputs[1:]:
        low.define(value, TOKEN)


@emitter("random_state")
def _state_of_stream(low: Lowering, node: Node) -> None:
    low.fusion.flush_all()
    words = _drawn(low, node, BLOCKS * ir.Convert(INT64, low.scalar_name(node.inputs[0])))
    items = tuple(ir.Convert(INT64, word) for word in words)
    low.define(node.outputs[0], Vector(dtypes.int64, items, (low.static_dim(3),)))
    for value in node.outputs[1:]:
        low.define(value, TOKEN)


@emitter("philox_categorical")
def _categorical(low: Lowering, node: Node) -> None:
    low.fusion.flush_all()
    state, logits, output = _state(low, node.inputs[0]), low.array(node.inputs[1]), node.outputs[0]
    count = low.size_of(node.inputs[2])
    rows, classes = (low.atom(dim) for dim in logits.dims)
    shown = "num_classes should be positive, got {0} [Op:Multinomial]"
    wrong = ir.both(classes.compare("==", 0), count.compare(">", 0))
    low.fail_when(wrong, "InvalidArgumentError", shown, node, (classes,))
    if not low.is_size(count):
        shown = "num_samples should be nonnegative, got {0} [Op:Multinomial]"
        low.fail_when(count.compare("<", 0), "InvalidArgumentError", shown, node, (count,))
    out, row = low.new_buffer(low.atom(rows * count), output.dtype, output.name), low.index_name(0)
    sums = low.new_buffer(low.atom(rows * classes), dtypes.float64, "sums")
    given = (
        logits.buffer.variable,
        row * classes,
        classes,
        sums.variable,
        out.variable,
        row * count,
        count,
    )
    low.nest(row, rows, [ir.Run(ir.call("lib.draw_classes", *given, *state))], low.is_large([node]))
    low.define(output, Array(out, (rows, count)))
