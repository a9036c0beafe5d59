"""`GradientTape`: records ops while it is open and pulls cotangents back through them.

It follows `tf.GradientTape`. On eager code it sees each op; inside a function being traced it sees the nodes of the
graph, and its gradient becomes part of that graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from runtime import nest
from runtime.autodiff import (
    recording_pauses,
    rules,  # noqa: F401 - adjoints of control flow
)
from runtime.autodiff.breaks import Breaks, silent_rules
from runtime.autodiff.buffers import mark_growing
from runtime.autodiff.calls import EagerCall, NodeCall, is_differentiable, key_of
from runtime.autodiff.jacobian import known_dims, rows_of_pullback
from runtime.autodiff.reverse import Cotangents, walk_back, walk_back_eagerly, where_flag, with_slices
from runtime.autodiff.watches import Watches, need_unused
from runtime.autodiff.zeros import zeros_for
from runtime.context import ctx
from runtime.graph.callers import user_span
from runtime.graph.structural import COND
from runtime.ops.arrays.broadcasting import broadcast_to
from runtime.ops.arrays.gather import Slices
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.arrays.shape_ops import reshape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply, call
from runtime.ops.table import OPS
from runtime.shapes import format_shape
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor
from runtime.tracebacks import warn
from runtime.variable import Variable, variable_of


class GradientTape:
    """Records operations for automatic differentiation.

    Args:
        persistent: whether `gradient` may be called more than once.
        watch_accessed_variables: whether the tape watches trainable variables that are read.

    >>> x = constant(3.0)
    >>> with GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self.builder: Any = None
        self._used = False
        self._open = False
        self._number: int | None = None  # of a tape that is paused or watches in staged blocks
        self._pause: recording_pauses.Pause | None = None  # in a graph
        self._clear()

    def _clear(self) -> None:
        self._calls: list[Any] = []
        self._tracked: dict[Hashable, Any] = {}  # key -> the tensor, kept alive so that the key stays its own
        self._reads: dict[int, list[Any]] = {}  # id of a variable -> the tensors it was read as
        self._values: set[Hashable] = set()  # the keys of these tensors
        self._variables: dict[int, Variable] = {}
        self.breaks = Breaks()
        self._silent = silent_rules()
        self._watches: Watches | None = None  # in staged blocks

    # --- opening and closing -------------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._open:
            raise ValueError("Tape is still recording, this can happen if you try to re-enter an already-active tape.")
        if self._used and not self._persistent:
            self.reset()  # a tape that gave its gradient starts afresh
        self.builder = ctx.builder
        self._start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._open:
            self._stop()

    def _start(self) -> None:
        ctx.recorders = (*ctx.recorders, self)
        self._open = True

    def _stop(self) -> None:
        ctx.recorders = tuple([r for r in ctx.recorders if r is not self])
        self._open = False

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pauses the tape for the block. Raises RuntimeError when it isn't recording, UnimplementedError in a traced
        function for a tape that was opened outside of it."""
        if not self._open:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        if ctx.builder is not self.builder:
            self._need_inside("stop_recording()", "use ag.stop_gradient for what shouldn't count")
        if self.builder is None:
            self._stop()
            try:
                yield
            finally:
                self._start()
            return
        if self._number is None:
            self._number = recording_pauses.next_number()
        recorders = ctx.recorders
        self._pause = recording_pauses.Pause(ctx.builder, self.builder, self._number)
        ctx.recorders = (*recorders, self._pause)
        self._open = False
        try:
            yield
        finally:
            ctx.recorders = recorders
            self._open, self._pause = True, None

    def _need_inside(self, what: str, fix: str) -> None:
        """Raises an error where a traced function uses a tape that was opened outside of it: to a tape a call is one
        operation, and what is done while tracing isn't done again by later calls."""
        if self.builder is None or not recording_pauses.is_inside(ctx.builder, self.builder):
            recording_pauses.refuse(
                f"{what} of a tape that was opened outside of the traced function", f"open it inside, or {fix}"
            )

    @staticmethod
    @contextlib.contextmanager
    def paused_all() -> Iterator[None]:
        """Hides the block from all tapes of this thread."""
        recorders, ctx.recorders = ctx.recorders, ()
        try:
            yield
        finally:
            ctx.recorders = recorders

    def reset(self) -> None:
        """Forgets everything recorded so far. Raises UnimplementedError in a staged loop or branch of the tape."""
        if self._open and ctx.builder is not self.builder:
            recording_pauses.refuse(
                "reset() in a staged loop or branch would take effect in some runs only", "call it before"
            )
        self._clear()
        self._used = False

    def copy(self) -> GradientTape:
        """A copy of the tape with the records made so far."""
        tape = GradientTape(self._persistent, self._watch_accessed)
        tape.builder, tape._number = self.builder, self._number
        tape._calls, tape._tracked = [*self._calls], {**self._tracked}
        tape._reads = {key: [*tensors] for key, tensors in self._reads.items()}
        tape._values = {*self._values}
        tape._variables = {**self._variables}
        tape._watches = None if self._watches is None else self._watches.copy()
        return tape

    @property
    def is_persistent(self) -> bool:
        """Whether `gradient` may be called more than once, also while the tape records."""
        return self._persistent

    @property
    def is_recording(self) -> bool:
        return self._open

    # --- recording -----------------------------------------------------------------------------------------------

    def watch(self, tensor: Any) -> None:
        """Watches `tensor` (a tensor, a variable, or a structure of them), so that it has a gradient.

        In a staged loop or branch it takes effect in the runs that come there, from there on; in the others the
        gradient is zeros.

        Raises ValueError for things that aren't tensors, UnimplementedError for what isn't watched already: in a staged
        loop or branch for a tensor that the block has made, and in a traced function that the tape was opened outside
        of. Tensors that aren't floating are ignored, with a warning.
        """
        for one in map(variable_of, nest.flatten(tensor)):
            if isinstance(one, (Variable, Tensor)) and ctx.builder is not self.builder:
                self._watch_in_block(one)
            elif isinstance(one, Variable):
                if self.builder is not None:
                    self._begin_reading(one)
                self._watch_variable(one)
            elif isinstance(one, Tensor):
                if not one.dtype.is_differentiable:
                    warn(
                        f"The dtype of the watched tensor must be floating (e.g. tf.float32), got {one.dtype!r}",
                    )
                    continue
                self._track(one)
            else:
                raise ValueError(f"Passed in object {one!r} of type {type(one).__name__}, not tf.Tensor or tf.Variable")

    def _watch_in_block(self, one: Variable | Tensor) -> None:
        """Watches something in a staged block, from here on in the runs that come here. Raises an error where a node of
        a graph can't say that."""
        inside = self.builder is not None and recording_pauses.is_inside(ctx.builder, self.builder)
        if inside and isinstance(one, SymbolicTensor):
            recording_pauses.need_outer(one, ctx.builder, self.builder)
        thing = one.ref() if isinstance(one, Variable) else self.builder.use(one) if inside else key_of(one)
        if isinstance(one, Variable):
            is_watched = self.is_watching(one) or (self._watch_accessed and one.trainable)
        else:
            is_watched = not one.dtype.is_differentiable or thing in self._tracked
        if is_watched and not (self._watches is not None and self._watches.depends(thing)):
            return
        if not inside or self not in ctx.recorders:
            recording_pauses.refuse(
                "watch() of what isn't watched yet, in a traced function that the tape was opened outside of, would "
                "take effect in some runs only", "watch it before the call, or open the tape inside of the function",
            )  # fmt: skip
        if self._number is None:
            self._number = recording_pauses.next_number()
        if self._watches is not None:
            self._watches.need_told(thing)
        else:
            self._watches = Watches(self._number)
            for call in self._calls:
                self._watches.look_at(call.node, self._tracked)
        builder = ctx.builder
        if isinstance(one, Variable):
            self._watches.mark(builder, builder.read_state(thing), thing, user_span())
        else:
            self._watches.mark(builder, builder.use(one), None, user_span())

    def _before_recording(self, node: Any) -> Mapping[Any, Any] | None:
        """Gives the watches in a block their effect when its node is to be recorded; gives the `masks` of the call."""
        watches = self._watches
        if watches is None:
            return None
        for index, reference in watches.found(node):
            value = node.inputs[index]
            if reference is None:
                if value not in self._tracked:
                    need_unused(value, [call.node for call in self._calls], node)
                self._tracked[value] = self.builder.tensor(value)
                watches.begin(value, value)
                continue
            variable = reference.deref()
            if not self.is_watching(variable):
                # What was read before isn't watched.
                value = node.inputs[index] = self.builder.own_read(reference, node, value)
            self._watch_variable(variable)
            watches.begin(value, reference)
            self.builder._record_read(variable, self.builder.tensor(value))
        return watches.visit(node, self._tracked, self._sees(node)) if watches else None

    def _sees(self, node: Any) -> bool:
        """Whether a node of the tape's graph is to be recorded: while the tape is paused, choices are."""
        return self._pause is None or self._pause.is_transparent(node)

    def _key(self, tensor: Any) -> Hashable:
        return self.builder.use(tensor) if self.builder is not None else id(tensor)

    def _track(self, tensor: Any) -> None:
        key = self._key(tensor)
        if self.builder is not None and key not in self._tracked:
            need_unused(key, [call.node for call in self._calls])
        self._tracked[key] = tensor
        if self._watches is not None:
            self._watches.need_told(key)
            self._watches.settle(key)

    def _begin_reading(self, variable: Variable) -> None:
        """Has what is read from here on count, and nothing that was read before, for a variable of a graph."""
        reference = variable.ref()
        if self._watches is not None:
            self._watches.settle(reference)
        value = self.builder.state.get(reference)
        if not self.is_watching(variable) and any(value in call.node.inputs for call in self._calls):
            self.builder.own_read(reference, None, value)

    def is_tracking(self, tensor: Any) -> bool:
        """Whether a gradient can flow back from `tensor` to something watched."""
        return key_of(tensor) in self._tracked

    def takes_slices(self, tensor: Any) -> bool:
        """Whether an eager tensor is a variable's value, whose gradient may be the rows that are read."""
        return id(tensor) in self._values

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None:
        """Called for each op that runs in the tape's builder."""
        tracked = self._tracked
        if self.builder is None:
            for tensor in inputs:
                if id(tensor) in tracked:
                    break
            else:
                self.breaks.propagate(inputs, outputs)
                return
            span = user_span() if op.grad in self._silent else None
            self._calls.append((op, inputs, attrs, outputs, span))
            for tensor in outputs:
                # None is an order token.
                if tensor is not None:
                    if tensor.dtype.kind in "fc":  # differentiable, without asking the dtype: this runs for each op
                        tracked[id(tensor)] = tensor
                    else:
                        self.breaks.lose(op, inputs, attrs, tensor, tracked)
            return
        if not outputs and op is not COND:
            return
        node = outputs[0].value.node if outputs else self.builder.graph.nodes[-1]
        masks = self._before_recording(node)
        if not self._sees(node) or not any(
            self.builder.use(t) in tracked for t in (inputs if masks is None else node.inputs)
        ):
            return
        self._calls.append(NodeCall(node, self.builder, masks))
        for tensor in outputs:
            if is_differentiable(tensor.type):
                tracked[tensor.value] = tensor

    def extend(self, node: Any, result: Any) -> None:
        """Called when a gradient adds a result to a loop that is recorded already."""
        if is_differentiable(result.type) and any(v in self._tracked for v in node.outputs):
            self._tracked[result] = self.builder.tensor(result)

    def record_read(self, variable: Variable, tensor: Any) -> None:
        """Called when a variable is read in the tape's builder."""
        if not self._open:  # paused
            return
        self.breaks.read(variable, tensor)
        if id(variable) not in self._variables:
            if not (self._watch_accessed and variable.trainable):
                return
            self._watch_variable(variable)
        if tensor.dtype.is_differentiable:
            key = key_of(tensor)
            self._tracked[key] = tensor
            self._values.add(key)
            if self._watches is not None:
                self._watches.read(variable.ref(), tensor.value)
            reads = self._reads.setdefault(id(variable), [])
            # Eagerly each read gives a new tensor.
            if self.builder is None or all(key_of(r) != key for r in reads[-4:]):
                reads.append(tensor)

    def mark(self) -> Callable[[], None]:
        """Returns a function that removes all records from now on, for a trace that is thrown away."""
        count, tracked, variables = len(self._calls), dict(self._tracked), dict(self._variables)
        reads = {key: [*tensors] for key, tensors in self._reads.items()}
        watches = None if self._watches is None else self._watches.copy()

        def rewind() -> None:
            del self._calls[count:]
            self._watches = watches
            self._tracked, self._reads, self._variables = tracked, reads, variables

        return rewind

    def leave(self, tensor: Any) -> None:
        """Called when an eager tensor becomes a NumPy array or a Python number."""
        if id(tensor) in self._tracked or self.breaks.of(tensor) is not None:
            self.breaks.leave(tensor)

    def assigned(self, variable: Variable, value: Any) -> None:
        """Called when an eager value is assigned to a variable, or added to it."""
        if id(value) in self._tracked or self.breaks.of(value) is not None:
            self.breaks.assign(variable, value)

    def _watch_variable(self, variable: Variable) -> None:
        self._variables[id(variable)] = variable

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables watched so far, in the order in which they were created."""
        return tuple(sorted(self._variables.values(), key=lambda variable: variable._id))

    # --- why there is no gradient --------------------------------------------------------------------------------

    def explain(self, target: Any, source: Any) -> str:
        """Explains whether a gradient flows from `target` (a tensor or variable) to `source`, and if not, where the
        path between them breaks: file, line and cause. It also works after `gradient` has returned None.

        >>> print(tape.explain(y, x))
        No gradient: the path from source to target breaks here:
          the cast to int32 has no gradient: only floating-point and complex tensors have
            at model.py:7, in f
              n = ag.cast(x, ag.int32)
        """
        from runtime.autodiff.explain import explain

        return explain(self, target, source)

    @property
    def recorded(self) -> list[Any]:
        """The calls recorded so far."""
        if self.builder is not None:
            return self._calls
        return [EagerCall(self._tracked, record) for record in self._calls]

    @property
    def watches_accessed_variables(self) -> bool:
        """Whether trainable variables are watched when they are read."""
        return self._watch_accessed

    def is_watching(self, variable: Variable) -> bool:
        """Whether the variable is watched."""
        return id(variable) in self._variables

    def reads_of(self, variable: Variable) -> list[Any]:
        """The tensors that a watched variable was read as."""
        return self._reads.get(id(variable), [])

    # --- gradients -----------------------------------------------------------------------------------------------

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = "none"
    ) -> Any:
        """The gradient of `target` (summed over its elements, and over targets if several) for each of `sources`.

        As in TensorFlow, the gradient of a variable that is only read by `gather`, `nn.embedding_lookup` and the like
        is `IndexedSlices`, the rows that were read; `convert_to_tensor` gives the whole gradient.

        Args:
            target: a tensor or variable, or a structure of them.
            sources: a tensor or variable, or a structure of them; the result has the same structure.
            output_gradients: cotangents of the targets, one per target; ones by default.
            unconnected_gradients: 'none' (None for sources that the target doesn't depend on) or 'zero'.

        Raises RuntimeError when a tape that isn't persistent is used a second time; LookupError for an op without a
        gradient between them.
        """
        zero = self._begin_use(unconnected_gradients)
        flat_sources = [variable_of(one) for one in nest.flatten(sources)]
        cotangents = Cotangents({key_of(t) for v in flat_sources if isinstance(v, Variable) for t in self.reads_of(v)})
        seeds = nest.flatten(output_gradients) if output_gradients is not None else None
        targets = [variable_of(one) for one in nest.flatten(target)]
        if seeds is not None and len(seeds) != len(targets):
            raise ValueError(f"{len(targets)} targets but {len(seeds)} output_gradients")
        for index, one in enumerate(targets):
            self._seed(cotangents, one, None if seeds is None else seeds[index])
        self._walk(cotangents, flat_sources)
        found = [self._result(cotangents, source, zero) for source in flat_sources]
        self._end_use(found)
        return nest.pack_sequence_as(sources, found)

    def _begin_use(self, unconnected_gradients: Any) -> bool:
        if self._used and not self._persistent:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians): "
                "ask for all of them at once, `tape.gradient(y, [a, b])`, or make it with GradientTape(persistent=True)"
            )
        zero = _wants_zero(unconnected_gradients)
        if self._open and not self._persistent:
            self._stop()
        self._used = True
        return zero

    def _end_use(self, found: list[Any]) -> None:
        # Somebody may ask why there is none.
        if not self._persistent and all(g is not None for g in found):
            self._calls, self._tracked, self._reads = [], {}, {}

    def _walk(self, cotangents: Cotangents, flat_sources: list[Any]) -> None:
        keys: set[Any] = {k for source in flat_sources for k in self._source_keys(source)}
        before, ctx.walking = ctx.walking, self._number
        try:
            if self.builder is None:
                walk_back_eagerly(self._calls, cotangents, self._tracked, keys)  # type: ignore[arg-type]
            else:
                mark_growing([call.node for call in self._calls if isinstance(call, NodeCall)])
                walk_back(self._calls, cotangents, self.is_tracking, lambda t: key_of(t) in keys)
        finally:
            ctx.walking = before

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobian of a tensor with respect to each source, of shape `target.shape + source.shape`.

        Runs as one staged loop over the target's elements; `parallel_iterations` and `experimental_use_pfor` are
        accepted and make no difference.

        Raises RuntimeError when a tape that isn't persistent is used a second time; ValueError for an unknown rank.
        """
        flat_sources = [variable_of(one) for one in nest.flatten(sources)]
        found = self._rows(target, flat_sources, 0, self._begin_use(unconnected_gradients))
        self._end_use(found)
        shaped = [
            None if rows is None else reshape(rows, [*known_dims(target), *known_dims(source)])
            for rows, source in zip(found, flat_sources)
        ]
        return nest.pack_sequence_as(sources, shaped)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobians of each row of `target` with respect to the same row of `source`, stacked.

        target has shape [b, y...], source [b, x...]; the result [b, y..., x...]. Rows must not depend on other rows.
        As in TensorFlow, the result is zeros if the target doesn't depend on the source, whatever
        `unconnected_gradients` is.

        Raises ValueError when the first dimensions differ or a rank is 0 or unknown.
        """
        shape, source_shape = known_dims(target), known_dims(source)
        fits = bool(shape and source_shape) and target.shape[:1].is_compatible_with(source.shape[:1])
        if not fits:
            raise ValueError(
                f"Need first dimension of target shape ({format_shape(target._shape)}) and source shape "
                f"({format_shape(source._shape)}) to match."
            )
        rows = self._rows(target, [source], 1, self._begin_use(unconnected_gradients))[0]
        self._end_use([rows])
        if rows is None:
            return broadcast_to(convert_to_tensor(0, target.dtype), [*shape, *source_shape[1:]])
        # [y, b, x...] -> [b, y, x...] -> [b, y..., x...]
        rank = len(source_shape) + 1
        swapped = call("transpose", rows, perm=(1, 0, *range(2, rank)))
        return reshape(swapped, [*shape, *source_shape[1:]])

    def _rows(self, target: Any, flat_sources: list[Any], batch: int, zero: bool) -> list[Any]:
        def pull_back(cotangent: Any) -> list[Any]:
            cotangents = Cotangents()
            own = target if self.builder is None else self.builder.tensor(self.builder.use(target))
            cotangents.add(own, cotangent)
            self._walk(cotangents, flat_sources)
            return [self._result(cotangents, source, zero) for source in flat_sources]

        return rows_of_pullback(pull_back, target, flat_sources, batch)

    def _seed(self, cotangents: Cotangents, target: Any, seed: Any) -> None:
        if isinstance(target, Variable):
            if not self._reads.get(id(target)):
                # The variable was passed through unchanged: its gradient with respect to itself is one.
                tensor = target.read_value()
                if not self._reads.get(id(target)):
                    self._reads[id(target)] = [tensor]
            for tensor in self._reads[id(target)][-1:]:
                self._seed(cotangents, tensor, seed)
            return
        if not isinstance(target, Tensor):
            raise TypeError(f"The target of a gradient must be a tensor or variable, not {type(target).__name__}")
        if not target.dtype.is_differentiable:
            warn(
                f"The dtype of the target tensor must be floating (e.g. tf.float32) when calling "
                f"GradientTape.gradient, got {target.dtype!r}",
            )
            return
        if self.builder is not None:
            target = self.builder.tensor(self.builder.use(target))
        if seed is None:
            seed = _one(target.dtype) if target._shape == () else apply(OPS["ones_like"], [target])
        else:
            seed = convert_to_tensor(seed, dtype=target.dtype)
            if not target.shape.is_compatible_with(seed.shape):
                raise ValueError(f"output gradient of shape {seed.shape} for a target of shape {target.shape}")
        cotangents.add(target, seed)

    def _source_keys(self, source: Any) -> list[Hashable]:
        if isinstance(source, Variable):
            return [key_of(t) for t in self._reads.get(id(source), ())]
        if not isinstance(source, Tensor):
            raise ValueError(
                f"Passed in object {source!r} of type {type(source).__name__}, not tf.Tensor or tf.Variable"
            )
        return [self._key(source)]

    def _result(self, cotangents: Cotangents, source: Any, zero: bool) -> Any:
        if isinstance(source, Variable):
            total = gradient_of(self.reads_of(source), cotangents)
        else:
            # What isn't watched has one only as a target.
            own = self.builder.tensor(self.builder.use(source)) if self.builder is not None else source
            total = cotangents.get(own)
            flag = None if self._watches is None else self._watches.flag(self._key(source))
            if flag is not None and total is not None:
                total = where_flag(self.builder.tensor(flag), total)
        if total is None and zero:
            value = convert_to_tensor(source)
            return zeros_for(value) if isinstance(value, SymbolicTensor) else apply(OPS["zeros_like"], [value])
        return total


def gradient_of(reads: Sequence[Any], cotangents: Cotangents) -> Any:
    """The gradient of a variable that was read as some tensors: the rows that were read, if their cotangents are slices
    only; None if there is none."""
    total = None
    slices: list[Slices] = []
    for tensor in reads:
        part, rows = cotangents.parts(tensor)
        if part is not None:
            total = part if total is None else apply(OPS["add"], [total, part])
        slices = [*rows, *slices]  # the last call's first, as within one read
    if not slices:
        return total
    return IndexedSlices.joined(slices, reads[0]) if total is None else with_slices(total, slices, reads[0])


def _one(dtype: Any) -> Any:
    one = dtype.np.type(1)
    return EagerTensor(one, dtype) if ctx.builder is None else ctx.builder.constant(np.asarray(one))


def _wants_zero(unconnected_gradients: Any) -> bool:
    value = getattr(unconnected_gradients, "value", unconnected_gradients)
    if value not in ("none", "zero"):
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}; 'none' or 'zero'.")
    return value == "zero"
