"""A mapped function of many elements at once.

Where its graph only has ops that treat each place by itself, or move places, the graph is run on elements that are
stacked: the same numbers, since each op computes each element as it would alone. Where it has others, but no effects, a
loop over the elements becomes one kernel. Anything else is called element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.data.blocks import Leaves, empty, is_dense
from autograph.data.elements import arguments_of
from autograph.function.polymorphic import function
from autograph.functional import map_fn
from runtime import nest
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.rules import shape_attr
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, Tensor


class Batching:
    """A traced function of elements, applied to many.

    element, result   the specs of what it is given and gives
    works             whether it can be applied to many
    has_effects       whether it does more than compute: it calls Python, reads files, changes variables
    draws             whether it draws random numbers
    pure              whether what it gives for an element depends on nothing but the element
    never_fails       whether no element makes it fail, either
    """

    def __init__(self, traced: Any, element: Any, result: Any) -> None:
        self._traced, self._element, self._result = traced, element, result
        self._specs = arguments_of(element)
        graph = self._concrete().graph
        effects = [node for node in graph.walk() if node.op.effect]
        dense = is_dense(element) and is_dense(result) and not _has_lists(result)
        # Draws take their numbers one after the other, whoever asks for them: a loop draws what single calls would.
        self.has_effects = not all(node.op.is_random for node in effects)
        self.draws = any(node.op.is_random for node in effects)
        self.works = dense and not self.has_effects
        self.pure = self.works and not effects
        self.never_fails = self.pure and can_lift(graph) and not any(map(_may_fail, graph.nodes))
        self._made: tuple[Any, Callable[..., Any]] | None = None

    @property
    def is_of_program(self) -> bool:
        """Whether it uses tensors of a function that is being traced, so that only this one can call it."""
        return bool(self._concrete().symbolic_captures)

    @property
    def is_watched(self) -> bool:
        """Whether it uses variables, or tensors from outside that an open tape watches."""
        concrete = self._concrete()
        captures = [each for each in concrete.captured_inputs if isinstance(each, Tensor)]
        return bool(concrete.variables) or any(r.is_tracking(each) for r in ctx.recorders for each in captures)

    def _concrete(self) -> Any:
        return self._traced.get_concrete_function(*self._specs)

    def __call__(self, leaves: Leaves) -> Leaves:
        """The results for elements, given as their leaves with an axis in front."""
        if not len(leaves[0]):
            return empty(self._result)
        concrete = self._concrete()  # another one, if a Python value that the function reads has changed
        if self._made is None or self._made[0] is not concrete:
            self._made = concrete, self._of_many(concrete)
        kinds = [spec.dtype for spec in nest.flatten(self._specs)]
        results = self._made[1](*[EagerTensor(array, dtype) for array, dtype in zip(leaves, kinds)])
        return [result._array for result in results]

    def _of_many(self, concrete: Any) -> Callable[..., Any]:
        signature = [TensorSpec((None, *spec._shape), spec.dtype) for spec in nest.flatten(self._specs)]
        graph = concrete.graph
        if not concrete.variables and not concrete.symbolic_captures and can_lift(graph):
            captures = concrete.captured_inputs

            def many(*elements: Tensor) -> list[Tensor]:
                return lifted(graph, elements, captures)

        else:
            traced, pack = self._traced, nest.packer(self._element)
            kinds = [TensorSpec(spec._shape, spec.dtype) for spec in nest.flatten(self._result)]

            def many(*elements: Tensor) -> list[Tensor]:
                def one(parts: list[Tensor]) -> list[Any]:
                    return [convert_to_tensor(leaf) for leaf in nest.flatten(traced(*arguments_of(pack(parts))))]

                return map_fn(one, list(elements), fn_output_signature=kinds)

        return function(many, input_signature=signature, autograph=False)


def _may_fail(node: Any) -> bool:
    """Whether an op of a graph that can be lifted may fail for some elements."""
    if node.op.name == "gather":
        return True
    if node.op.divisor is None or node.outputs[0].type.dtype.kind not in "iu":
        return node.op.exponent is not None and node.outputs[0].type.dtype.kind == "i"
    divisor = node.inputs[node.op.divisor].node
    return divisor is None or divisor.op.name != "constant" or not np.all(divisor.attrs["value"].array)


def _has_lists(structure: Any) -> bool:
    return isinstance(structure, list) or (nest.is_nested(structure) and any(map(_has_lists, nest.children(structure))))


# --- the same graph on stacked elements ----------------------------------------------------------------------------

# What takes another axis in front if its attributes move along: how they do.
_Attrs = dict[str, Any]


def _next_axis(name: str) -> Callable[[_Attrs], _Attrs]:
    return lambda attrs: {**attrs, name: attrs[name] + 1}


def _next_axes(attrs: _Attrs) -> _Attrs:
    return {**attrs, "axis": tuple([axis + 1 for axis in attrs["axis"]])}


_MOVED: dict[str, Callable[[_Attrs], _Attrs]] = {
    "identity": dict,
    "stop_gradient": dict,
    "zeros_like": dict,
    "ones_like": dict,
    "expand_dims": _next_axes,
    "squeeze": _next_axes,
    "reverse": _next_axes,
    "reduce_max": _next_axes,
    "reduce_min": _next_axes,
    "reduce_any": _next_axes,
    "reduce_all": _next_axes,
    "concat": _next_axis("axis"),
    "stack": _next_axis("axis"),
    "unstack": _next_axis("axis"),
    "split": _next_axis("axis"),
    "transpose": lambda attrs: {**attrs, "perm": (0, *[axis + 1 for axis in attrs["perm"]])},
    "pad": lambda attrs: {**attrs, "paddings": ((0, 0), *attrs["paddings"])},
    "strided_slice": lambda attrs: {**attrs, "spec": (("slice", None, None, None), *attrs["spec"])},
}
_SHAPED = ("reshape", "broadcast_to")


def can_lift(graph: Any) -> bool:
    """Whether all nodes have a rule below, and ranks are known."""
    return all(_has_rule(node) for node in graph.nodes) and all(value.is_tensor for value in graph.inputs)


def _has_rule(node: Any) -> bool:
    if any(not v.is_tensor or v.type.shape is None or None in v.type.shape for v in (*node.inputs, *node.outputs)):
        return False
    name, attrs = node.op.name, node.attrs
    if name == "constant" or node.op.scalar is not None:
        return True
    if name in _SHAPED:
        return len(node.inputs) == 1
    if name == "gather":  # of a table that is the same for all
        return node.inputs[0].node is not None and node.inputs[0].node.op.name == "constant" and attrs["axis"] == 0
    if name not in _MOVED or (len(node.inputs) > 1 and name not in ("concat", "stack")):
        return False
    axes = attrs.get("axis", attrs.get("perm", ()))
    return axes is not None and all(axis >= 0 for axis in (axes if isinstance(axes, tuple) else (axes,)))


def lifted(graph: Any, elements: Any, captures: Any) -> list[Tensor]:
    """The outputs of a graph for elements stacked along a first axis, which the outputs have too."""
    many: dict[Any, Tensor] = dict(zip(graph.inputs, elements))  # values with that axis
    one: dict[Any, Tensor] = dict(zip(graph.inputs[len(elements) :], captures))
    count = call("dim", elements[0], axis=0)

    def with_rank(value: Any, rank: int) -> Tensor:
        """With axes of size 1 behind the first, where broadcasting puts them in front of each element's own."""
        missing = rank - len(value.type.shape)
        return call("expand_dims", many[value], axis=tuple(range(1, missing + 1))) if missing else many[value]

    def of_all(value: Any) -> Tensor:
        return many[value] if value in many else _repeated(one[value], value.type.shape, count)

    for node in graph.nodes:
        name, attrs = node.op.name, node.attrs
        if name == "constant":
            one[node.outputs[0]] = convert_to_tensor(attrs["value"].array)
            continue
        if not any(value in many for value in node.inputs):
            found = call(name, *[one[value] for value in node.inputs], **attrs)
            one.update(zip(node.outputs, found if isinstance(found, (list, tuple)) else (found,)))
            continue
        if node.op.scalar is not None:
            rank = len(node.outputs[0].type.shape)
            found = call(name, *[with_rank(v, rank) if v in many else one[v] for v in node.inputs], **attrs)
        elif name == "gather":
            found = call(name, one[node.inputs[0]], many[node.inputs[1]], **attrs)
        elif name == "reshape":
            found = _shaped(name, many[node.inputs[0]], node.outputs[0].type.shape, count)
        elif name == "broadcast_to":
            shape = node.outputs[0].type.shape
            found = _shaped(name, with_rank(node.inputs[0], len(shape)), shape, count)
        else:
            found = call(name, *map(of_all, node.inputs), **_MOVED[name](attrs))
        many.update(zip(node.outputs, found if isinstance(found, (list, tuple)) else (found,)))
    return [of_all(value) for value in graph.outputs]


def _shaped(name: str, tensor: Tensor, shape: tuple, count: Any) -> Tensor:
    attr, holes = shape_attr([count, *shape])
    return call(name, tensor, *holes, shape=attr)


def _repeated(tensor: Tensor, shape: tuple, count: Any) -> Tensor:
    return _shaped("broadcast_to", tensor, shape, count)
