"""Evaluates ONNX graphs with public ops: eagerly, or into the function that is being traced.

A graph becomes a `Plan` once: its nodes with their attributes as Python values and its subgraphs as plans. What only
depends on constants is computed while a function is traced, so that shapes and axes stay known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from autograph.onnx_models.operators import (
    arrays,
    control_flow,
    elementwise,
    nn,
    recurrent,
    reductions,
)
from autograph.onnx_models.operators.registry import OPERATORS, Call, Operator
from runtime import dtypes
from runtime.context import ctx, init_scope
from runtime.errors import OpError, UnimplementedError
from runtime.tensor import EagerTensor, Tensor

# Files of operators: importing them fills the table.
FAMILIES = (arrays, control_flow, elementwise, nn, recurrent, reductions)
_OWN_DOMAINS = ("", "ai.onnx")
# Operators whose definition depends on the operands' types, and is sure not to trip over them.
EXPANDED = frozenset(["Attention", "CenterCropPad", "NegativeLogLikelihoodLoss", "RotaryEmbedding",
                      "SoftmaxCrossEntropyLoss"])  # fmt: skip
_DEEPEST = 64  # functions in functions


class Plan:
    """A graph or function that can be evaluated.

    output: what ONNX says of its outputs. functions: those that the model brings along, by domain and name. versions:
    of the operator sets, by domain.
    """

    def __init__(
        self,
        graph: Any,
        versions: Mapping[str, int],
        functions: Mapping[tuple[str, str], Any],
        given: Mapping[str, Any] | None = None,
        depth: int = 0,
    ) -> None:
        if depth > _DEEPEST:
            raise UnimplementedError("functions of the model call each other too deeply")
        is_function = isinstance(graph, onnx.FunctionProto)
        self.inputs = list(graph.input) if is_function else [each.name for each in graph.input]
        self.output = list(graph.output)
        self.results = list(graph.output) if is_function else [each.name for each in graph.output]
        own = [] if is_function else graph.initializer
        self.constants = {each.name: arrays.tensor(each) for each in own}
        if not is_function and graph.sparse_initializer:
            raise UnimplementedError("sparse weights aren't translated")
        self.versions, self.functions, self.depth = versions, functions, depth
        self.steps = [_Step(node, self, given or {}) for node in graph.node]

    def run(self, values: Sequence[Any], around: Mapping[str, Any]) -> list[Any]:
        """The outputs for values of the inputs; around: what the graph sees of those around it."""
        found: dict[str, Any] = {**around, **self.constants}
        found.update(zip(self.inputs, values))
        for step in self.steps:
            step.run(found)
        # Definitions leave out results that the node doesn't ask for.
        return [found.get(name) for name in self.results]


class _Step:
    """A node of a plan."""

    def __init__(self, node: Any, plan: Plan, given: Mapping[str, Any]) -> None:
        self.node, self.plan = node, plan
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attrs: dict[str, Any] = {}
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in given:
                    self.attrs[attribute.name] = given[attribute.ref_attr_name]
                continue
            value = helper.get_attribute_value(attribute)
            if isinstance(value, onnx.GraphProto):
                value = Plan(value, plan.versions, plan.functions, given, plan.depth)
            self.attrs[attribute.name] = value
        domain = "" if node.domain in _OWN_DOMAINS else node.domain
        self.version = plan.versions.get(domain, 1)
        self.function: Plan | None = None
        self.operator: Operator | None = OPERATORS.get(node.op_type) if domain == "" else None
        local = plan.functions.get((node.domain, node.op_type))
        if local is not None:
            self.operator, self.function = None, self._expanded(local)
        self.may_fold = not any(isinstance(value, Plan) for value in self.attrs.values())

    def _expanded(self, function: Any) -> Plan:
        """The plan of a function that this node calls."""
        versions = {each.domain: each.version for each in function.opset_import} or self.plan.versions
        given = {each.name: helper.get_attribute_value(each) for each in function.attribute_proto}
        return Plan(function, versions, self.plan.functions, {**given, **self.attrs}, self.plan.depth + 1)

    def run(self, found: dict[str, Any]) -> None:
        values = [found[name] if name else None for name in self.inputs]
        if ctx.builder is not None and self.may_fold and all(v is None or type(v) is EagerTensor for v in values):
            with init_scope():
                results = self._results(values, found)
        else:
            results = self._results(values, found)
        for name, result in zip(self.outputs, results):
            if name:
                found[name] = result

    def _results(self, values: list[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        if self.operator is None and self.function is None:
            self.function = self._by_definition(values)
        if self.function is not None:
            return self.function.run(values, {})

        def evaluate(plan: Plan, given: Sequence[Any]) -> list[Any]:
            return plan.run(given, around)

        call = Call(self.node.op_type, self.attrs, self.version, self.outputs, evaluate)
        assert self.operator is not None
        try:
            result = self.operator(call, *values)
        except (OpError, NotImplementedError):
            raise
        except (TypeError, ValueError, IndexError, AttributeError, KeyError) as error:
            raise ValueError(f"{self.node.op_type} of ONNX{self._place()} can't take its operands: {error}") from error
        return result if isinstance(result, tuple) else (result,)

    def _by_definition(self, values: list[Any]) -> Plan:
        """The operator's definition in the ONNX standard, as a graph of other operators. Raises UnimplementedError if
        the standard has none."""
        name = self.node.op_type
        domain = "" if self.node.domain in _OWN_DOMAINS else self.node.domain
        try:
            schema = onnx.defs.get_schema(name, self.version, domain)
        except onnx.defs.SchemaError:
            schema = None
        body: Any = None
        if schema is not None and schema.has_function:
            body = schema.function_body
        elif schema is not None and name in EXPANDED and all(isinstance(v, Tensor) or v is None for v in values):
            types = [_type_of(value).SerializeToString() for value in values]
            text = schema.get_context_dependent_function(self._resolved().SerializeToString(), types)
            body = onnx.FunctionProto.FromString(text) if text else None
        if body is None:
            what = f"{domain}.{name}" if domain else name
            raise UnimplementedError(
                f"the model uses ONNX' operator {what} (version {self.version}){self._place()}, which isn't translated"
            )
        defaults = {
            key: helper.get_attribute_value(attribute.default_value)
            for key, attribute in (schema.attributes.items() if schema is not None else ())
            if attribute.default_value.name
        }
        versions = {each.domain: each.version for each in body.opset_import} or self.plan.versions
        if "" not in versions:
            versions = {**versions, "": self.plan.versions.get("", self.version)}
        return Plan(body, versions, {}, {**defaults, **self.attrs}, self.plan.depth + 1)

    def _resolved(self) -> Any:
        """The node with the attributes that it takes from the function around it written out."""
        node = onnx.NodeProto()
        node.CopyFrom(self.node)
        del node.attribute[:]
        node.attribute.extend(
            helper.make_attribute(name, value) for name, value in self.attrs.items() if not isinstance(value, Plan)
        )
        return node

    def _place(self) -> str:
        return f" (node {self.node.name!r})" if self.node.name else ""


def _type_of(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return onnx.TypeProto()
    names = {"string": "STRING", "float32": "FLOAT", "float64": "DOUBLE"}
    label = names.get(value.dtype.name, value.dtype.name.upper())
    kind = onnx.TensorProto.DataType.Value("BOOL" if value.dtype is dtypes.bool_ else label)
    shape = value._shape
    return helper.make_tensor_type_proto(kind, None if shape is None else list(shape))
