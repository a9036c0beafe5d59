"""Functions of functions, with JAX's names and behaviour: `grad`, `value_and_grad`, `vjp`, `jvp`, `linearize`,
`jacrev`, `jacfwd`, `hessian`, `hvp`, `vmap`, `custom_vjp`, `custom_jvp`.

They are written with tapes and `map_fn`, so they nest, run eagerly and in traced functions alike, and see through loops
whatever their number of trips. Arguments may be structures: lists, tuples, dictionaries, dataclasses.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from autograph.functional import map_fn
from autograph.operators.calls import converted_argument
from runtime import nest
from runtime.autodiff.custom import custom_gradient
from runtime.autodiff.forward import ForwardAccumulator
from runtime.autodiff.tape import GradientTape
from runtime.ops.arrays.creation import eye, zeros_like
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.reduce import reduce_prod, reduce_sum
from runtime.ops.arrays.shape_ops import reshape, shape, transpose
from runtime.ops.convert import convert_to_tensor
from runtime.tensor import Tensor
from runtime.variable import Variable

Function = Callable[..., Any]


# --- arguments and results -------------------------------------------------------------------------------------------


def _tensors(structure: Any, name: str, role: str = "inputs") -> Any:
    """A structure with tensors as its leaves, which can have a gradient."""

    def tensor(value: Any) -> Any:
        found = value if isinstance(value, Variable) else convert_to_tensor(value)
        if not found.dtype.is_differentiable:
            raise TypeError(
                f"{name} requires real- or complex-valued {role} (a floating-point or complex dtype), but got "
                f"{found.dtype.name}; ag.cast(x, ag.float32) converts"
            )
        return found

    return nest.map_structure(tensor, structure)


def _chosen(arguments: tuple[Any, ...], argnums: int | Sequence[int], name: str) -> tuple[list[Any], list[int]]:
    """The arguments with tensors for those at `argnums`, and these positions."""
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    found = list(arguments)
    for position in positions:
        if not -len(found) <= position < len(found):
            raise ValueError(f"{name} got argnums={argnums}, but the function was called with {len(found)} arguments")
        found[position] = _tensors(found[position], name)
    return found, positions


def _split(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{name} with has_aux=True needs a function that returns a pair (output, auxiliary data)")
    return result[0], result[1]


def _scalar(value: Any, name: str) -> Tensor:
    found = convert_to_tensor(value)
    if not found.dtype.is_floating:
        raise TypeError(f"{name} requires real-valued outputs (a floating-point dtype), but got {found.dtype.name}")
    if found.shape.rank != 0:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {found.shape}. Sum it up "
            "(ag.reduce_sum), or use ag.jacrev"
        )
    return found


def _zeros(gradient: Any, like: Any) -> Any:
    if gradient is None:
        return zeros_like(like)
    return convert_to_tensor(gradient)  # of a variable that only `gather` reads it is `IndexedSlices`


def _gradients(tape: GradientTape, target: Any, sources: Any, cotangents: Any = None) -> Any:
    """In the structure of the sources, zeros where the target doesn't depend on one."""
    flat = nest.flatten(sources)
    found = tape.gradient(target, flat, output_gradients=cotangents)
    return nest.pack_sequence_as(sources, [_zeros(g, x) for g, x in zip(found, flat)])


# --- reverse mode ----------------------------------------------------------------------------------------------------


def value_and_grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives `fun`'s value and its gradient, as a pair.

    fun: returns a scalar of a float dtype. argnums: which positional arguments to differentiate by; the gradient is a
    tuple if this is a sequence. has_aux: `fun` returns a pair `(value, data)`, and so does the value here.

    Raises TypeError for integer arguments, and for results that aren't scalars.

    >>> value_and_grad(lambda x: x ** 3)(constant(2.0))
    (<tf.Tensor: shape=(), dtype=float32, numpy=8.0>, <tf.Tensor: shape=(), dtype=float32, numpy=12.0>)
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        arguments, positions = _chosen(args, argnums, "grad")
        sources = [arguments[position] for position in positions]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(nest.flatten(sources))
            result, aux = _split(converted_argument(fun)(*arguments, **kwargs), has_aux, "grad")
            value = _scalar(result, "grad")
        found = _gradients(tape, value, sources)
        gradient = found[0] if isinstance(argnums, int) else tuple(found)
        return ((value, aux) if has_aux else value), gradient

    return transformed


def grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `fun`, which returns a scalar of a float dtype.

    argnums: which positional arguments to differentiate by; the gradient is a tuple if this is a sequence. has_aux:
    `fun` returns a pair `(value, data)`, and the new function the pair `(gradient, data)`.

    Raises TypeError for integer arguments, and for results that aren't scalars.

    >>> grad(grad(lambda x: x ** 3))(constant(2.0))
    <tf.Tensor: shape=(), dtype=float32, numpy=12.0>
    """
    both = value_and_grad(fun, argnums, has_aux)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return transformed


def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun`, and a function from cotangents of it to those of the arguments, as a tuple.

    has_aux: `fun` returns a pair `(value, data)`; the result is `(value, function, data)`. The function can be called
    any number of times.

    >>> value, pull = vjp(lambda x, y: x * y, constant(2.0), constant(3.0))
    >>> [float(g) for g in pull(constant(1.0))]
    [3.0, 2.0]
    """
    sources = [_tensors(primal, "vjp") for primal in primals]
    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    with tape:
        tape.watch(nest.flatten(sources))
        result, aux = _split(converted_argument(fun)(*sources), has_aux, "vjp")
        value = nest.map_structure(convert_to_tensor, result)

    def pull(cotangents: Any) -> tuple[Any, ...]:
        nest.assert_same_structure(value, cotangents, check_types=False)
        flat = [convert_to_tensor(c, v.dtype) for c, v in zip(nest.flatten(cotangents), nest.flatten(value))]
        return tuple(_gradients(tape, nest.flatten(value), sources, flat))

    return (value, pull, aux) if has_aux else (value, pull)


# --- forward mode ----------------------------------------------------------------------------------------------------


def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its derivative in the direction of `tangents`.

    primals, tangents: tuples or lists of as many values as `fun` takes. has_aux: `fun` returns a pair `(value, data)`;
    the result is `(value, derivative, data)`.

    Raises TypeError if primals and tangents aren't of the same structure, ValueError if their shapes differ.

    >>> value, slope = jvp(lambda x: x * x, (constant(3.0),), (constant(1.0),))
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to ag.jvp must be tuples or lists: one value for each argument")
    sources = [_tensors(primal, "jvp") for primal in primals]
    nest.assert_same_structure(sources, list(tangents), check_types=False)
    with ForwardAccumulator(nest.flatten(sources), nest.flatten(list(tangents))) as accumulator:
        result, aux = _split(converted_argument(fun)(*sources), has_aux, "jvp")
        value = nest.map_structure(convert_to_tensor, result)
    slope = accumulator.jvp(value, unconnected_gradients="zero")
    return (value, slope, aux) if has_aux else (value, slope)


def linearize(fun: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of `fun`, and its derivative as a linear function of tangents; `fun` isn't run again for these.

    >>> value, push = linearize(lambda x: x * x, constant(3.0))
    >>> float(push(constant(1.0))), float(push(constant(10.0)))
    (6.0, 60.0)
    """
    value, pull = vjp(fun, *primals)

    def push(*tangents: Any) -> Any:
        nest.assert_same_structure(list(primals), list(tangents), check_types=False)
        # The pull is linear in its cotangents: its derivative by them is the push.
        cotangents = nest.map_structure(zeros_like, value)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(nest.flatten(cotangents))
            pulled = nest.flatten(list(pull(cotangents)))
            total = _inner(pulled, nest.flatten(list(tangents)))
        return _gradients(tape, total, cotangents)

    return value, push


def _inner(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """The inner product of two structures of tensors."""
    total: Any = None
    for a, b in zip(one, other):
        part = reduce_sum(a * convert_to_tensor(b, a.dtype))
        total = part if total is None else total + part
    return total


def hvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of a scalar function with `tangents`, in the structure of `primals` (a tuple).

    It costs a few times what a gradient does; the Hessian itself isn't formed.

    >>> [float(p) for p in hvp(lambda x: x ** 3, (constant(2.0),), (constant(1.0),))]
    [12.0]
    """
    positions = tuple(range(len(primals)))
    gradient = grad(fun, positions)
    _, found = jvp(gradient, primals, tangents)
    return found


# --- Jacobians -------------------------------------------------------------------------------------------------------


def jacrev(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the Jacobian of `fun`, in reverse mode: for few results and many arguments.

    Of results of shape `s` and an argument of shape `t` it has the shape `s + t`; of structures, it is a structure of
    the results' form whose leaves are structures of the argument's form.

    >>> jacrev(lambda x: x * x)(constant([1.0, 2.0])).numpy().tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        arguments, positions = _chosen(args, argnums, "jacrev")
        sources = [arguments[position] for position in positions]
        flat = nest.flatten(sources)
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(flat)
            result, aux = _split(converted_argument(fun)(*arguments, **kwargs), has_aux, "jacrev")
            value = _tensors(result, "jacrev", "outputs")

        def of(target: Any) -> Any:
            found = tape.jacobian(target, flat, unconnected_gradients="zero")
            packed = nest.pack_sequence_as(sources, found)
            return packed[0] if isinstance(argnums, int) else tuple(packed)

        jacobian = nest.map_structure(of, value)
        return (jacobian, aux) if has_aux else jacobian

    return transformed


def jacfwd(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the Jacobian of `fun`, in forward mode: for many results and few arguments.

    Its form is that of `jacrev`.

    >>> jacfwd(lambda x: x * x)(constant([1.0, 2.0])).numpy().tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        arguments, positions = _chosen(args, argnums, "jacfwd")
        sources = [arguments[position] for position in positions]
        kept: list[Any] = []

        def of_chosen(*chosen: Any) -> Any:
            for position, argument in zip(positions, chosen):
                arguments[position] = argument
            result, aux = _split(converted_argument(fun)(*arguments, **kwargs), has_aux, "jacfwd")
            kept[:] = [aux]
            return _tensors(result, "jacfwd", "outputs")

        value, push = linearize(of_chosen, *sources)
        flat, results = nest.flatten(sources), nest.flatten(value)
        columns = [_columns(push, sources, position) for position in range(len(flat))]
        found = []
        for index in range(len(results)):
            packed = nest.pack_sequence_as(sources, [column[index] for column in columns])
            found.append(packed[0] if isinstance(argnums, int) else tuple(packed))
        jacobian = nest.pack_sequence_as(value, found) if nest.is_nested(value) else found[0]
        return (jacobian, kept[0]) if has_aux else jacobian

    return transformed


def _columns(push: Function, sources: list[Any], position: int) -> list[Any]:
    """The derivatives of all results by one leaf of the arguments: for each result its axes, then the leaf's."""
    flat = [x.read_value() if isinstance(x, Variable) else x for x in nest.flatten(sources)]
    leaf = flat[position]
    sizes = shape(leaf)
    count = reduce_prod(sizes)
    basis = reshape(eye(count, dtype=leaf.dtype), concat([[count], sizes], 0))

    def column(direction: Any) -> list[Any]:
        tangents = [zeros_like(x) for x in flat]
        tangents[position] = direction
        return nest.flatten(push(*nest.pack_sequence_as(sources, tangents)))

    return [reshape(_moved(row, 0, -1), concat([shape(row)[1:], sizes], 0)) for row in map_fn(column, basis)]


def hessian(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the second derivatives of `fun`, in the form of `jacrev(jacrev(fun))`.

    >>> hessian(lambda x: reduce_sum(x ** 3))(constant([1.0, 2.0])).numpy().tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacrev(jacrev(fun, argnums, has_aux), argnums, has_aux)


# --- rows ------------------------------------------------------------------------------------------------------------


def _moved(value: Any, source: int, target: int) -> Any:
    """The tensor with one axis moved to another position."""
    rank = len(value.shape)
    if not -rank <= source < rank:
        raise ValueError(f"vmap got axis {source} for a value of rank {rank}")
    order = [axis for axis in range(rank) if axis != source % rank]
    order.insert(target % rank, source % rank)
    return value if order == list(range(rank)) else transpose(value, order)


def _axes(axes: Any, structure: Any, name: str) -> list[int | None]:
    """An axis for each leaf of a structure, from axes for some of its parts."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(nest.flatten(structure))
    if not nest.is_nested(structure) or len(nest.children(axes)) != len(nest.children(structure)):
        raise ValueError(f"{name} {axes} doesn't fit the structure of the values, {structure!r}")
    pairs = zip(nest.children(axes), nest.children(structure))
    return [axis for part, inner in pairs for axis in _axes(part, inner, name)]


def vmap(fun: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """A function that calls `fun` with the rows of its arguments, and stacks the results.

    in_axes: the axis whose rows are taken, of all arguments or a tuple with one for each; None: all rows have the same
    argument. It may be a structure of axes where an argument is one. Keyword arguments have rows along axis 0.
    out_axes: where the new axis of the results is. Loops in `fun` may have another number of trips for each row.

    Raises ValueError if no argument has rows, or if numbers of rows differ.

    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(constant([1.0, 2.0]), constant(10.0)).numpy().tolist()
    [10.0, 20.0]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(given):
            raise ValueError(f"vmap in_axes has {len(in_axes)} entries for {len(given)} positional arguments")
        axes = _axes(list(in_axes) if isinstance(in_axes, tuple) else in_axes, given, "vmap in_axes")
        axes += [0] * len(nest.flatten(kwargs))
        whole = (given, kwargs)
        leaves = [
            convert_to_tensor(leaf) if axis is not None else leaf for leaf, axis in zip(nest.flatten(whole), axes)
        ]
        rows = [_moved(leaf, axis, 0) for leaf, axis in zip(leaves, axes) if axis is not None]
        if not rows:
            raise ValueError("vmap needs an argument with rows: in_axes is None for all")
        counts = {row.shape[0] for row in rows} - {None}
        if len(counts) > 1:
            raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped: {sorted(counts)}")
        results: list[Any] = []

        def of_row(row: Any) -> list[Any]:
            parts = iter(row)
            chosen = [next(parts) if axis is not None else leaf for leaf, axis in zip(leaves, axes)]
            positional, named = nest.pack_sequence_as(whole, chosen)
            result = converted_argument(fun)(*positional, **named)
            results[:] = [nest.map_structure(lambda _: 0, result)]
            return [convert_to_tensor(each) for each in nest.flatten(result)]

        stacked = map_fn(of_row, tuple(rows))
        places = _axes(out_axes, results[0], "vmap out_axes")
        if None in places:
            raise ValueError("vmap out_axes must be axes: which results don't depend on the row isn't known")
        return nest.pack_sequence_as(results[0], [_moved(v, 0, place or 0) for v, place in zip(stacked, places)])

    return transformed


# --- derivatives of one's own ----------------------------------------------------------------------------------------


# How often a rule may call its own function within itself, in calls in calls. A trace follows them when the function is
# called, whichever derivatives are taken later; the innermost has the derivative that its code has. So derivatives up
# to the third order are the rule's.
_LEVELS = 3


class _Ruled:
    """A function with a rule for its derivative, which may call the function."""

    def __init__(self, fun: Function) -> None:
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self._fun = fun
        self._name = getattr(fun, "__name__", type(fun).__name__)
        self._running = threading.local()

    @property
    def _level(self) -> int:
        return getattr(self._running, "level", 0)

    @contextlib.contextmanager
    def _in_rule(self) -> Iterator[None]:
        self._running.level = self._level + 1
        try:
            yield
        finally:
            self._running.level -= 1

    def _with_gradient(self, run: Function, sources: list[Any]) -> Any:
        """Calls what gives a value and the pull of it, from the leaves of the arguments."""
        structure: list[Any] = []

        def of_leaves(*leaves: Any) -> Any:
            value, pull = run(*nest.pack_sequence_as(sources, list(leaves)))
            structure[:] = [value]
            return nest.flatten(value), pull

        flat = custom_gradient(of_leaves)(*nest.flatten(sources))
        return nest.pack_sequence_as(structure[0], flat if isinstance(flat, (list, tuple)) else [flat])


class custom_vjp(_Ruled):
    """A function whose derivative in reverse mode is given, by the method `defvjp`.

    >>> @custom_vjp
    ... def safe_log(x):
    ...     return log(x)
    >>> safe_log.defvjp(lambda x: (log(x), x), lambda x, ct: (ct / maximum(x, 0.5),))
    >>> float(grad(safe_log)(constant(0.0)))
    2.0
    """

    def __init__(self, fun: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        """nondiff_argnums: positional arguments that `fun` isn't differentiated by, of any type."""
        super().__init__(fun)
        self._fixed = tuple(nondiff_argnums)
        self._rules: tuple[Function, Function] | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """fwd: takes what the function does; gives its value, and what `bwd` needs. bwd: takes the arguments at
        `nondiff_argnums`, what `fwd` has left, and the cotangent of the value; gives a tuple of the arguments'
        cotangents, None for zero."""
        self._rules = (fwd, bwd)

    def __call__(self, *args: Any) -> Any:
        if self._rules is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {self._name} using defvjp.")
        if self._level >= _LEVELS:
            return converted_argument(self._fun)(*args)
        fwd, bwd = self._rules
        fixed = [args[position] for position in self._fixed]
        free = [position for position in range(len(args)) if position not in self._fixed]
        sources = [nest.map_structure(convert_to_tensor, args[position]) for position in free]

        def run(*given: Any) -> Any:
            arguments = list(args)
            for position, value in zip(free, given):
                arguments[position] = value
            with self._in_rule():
                result, kept = converted_argument(fwd)(*arguments)
            value = nest.map_structure(convert_to_tensor, result)

            def pull(*cotangents: Any) -> list[Any]:
                found = converted_argument(bwd)(*fixed, kept, nest.pack_sequence_as(value, list(cotangents)))
                if not isinstance(found, (tuple, list)) or len(found) != len(free):
                    raise TypeError(f"Custom VJP bwd rule of {self._name} must give a tuple of {len(free)} cotangents")
                pairs = [_cotangents(part, source) for part, source in zip(found, sources)]
                return [each for part in pairs for each in part]

            return value, pull

        return self._with_gradient(run, sources)


def _cotangents(found: Any, source: Any) -> list[Any]:
    """The cotangents of an argument's leaves, as tensors of their dtypes; zeros if the rule returned None for one, or
    for all."""
    leaves = nest.flatten(source)
    given = [None] * len(leaves) if found is None else nest.flatten(found)
    return [zeros_like(x) if g is None else convert_to_tensor(g, x.dtype) for g, x in zip(given, leaves, strict=True)]


class custom_jvp(_Ruled):
    """A function whose derivative in forward mode is given, by the method `defjvp`; reverse mode follows from it.

    >>> @custom_jvp
    ... def cube(x):
    ...     return x * x * x
    >>> @cube.defjvp
    ... def rule(primals, tangents):
    ...     return cube(primals[0]), 3.0 * primals[0] ** 2 * tangents[0]
    >>> float(grad(cube)(constant(2.0)))
    12.0
    """

    def __init__(self, fun: Function) -> None:
        super().__init__(fun)
        self._rule: Function | None = None

    def defjvp(self, jvp: Function) -> Function:
        """jvp: takes the arguments and their tangents, two tuples; gives the value and its tangent, which is linear in
        the tangents."""
        self._rule = jvp
        return jvp

    def __call__(self, *args: Any) -> Any:
        if self._rule is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {self._name} using defjvp.")
        rule = self._rule
        if self._level >= _LEVELS:
            return converted_argument(self._fun)(*args)

        def run(*primals: Any) -> Any:
            value = nest.map_structure(convert_to_tensor, converted_argument(self._fun)(*primals))

            def pull(*cotangents: Any) -> list[Any]:
                # The rule is linear in the tangents: its derivative by them is the pull.
                tangents = nest.map_structure(zeros_like, primals)
                with GradientTape(watch_accessed_variables=False) as tape, self._in_rule():
                    tape.watch(nest.flatten(tangents))
                    _, pushed = converted_argument(rule)(primals, tangents)
                return nest.flatten(_gradients(tape, nest.flatten(pushed), tangents, list(cotangents)))

            return value, pull

        return self._with_gradient(run, [nest.map_structure(convert_to_tensor, argument) for argument in args])
