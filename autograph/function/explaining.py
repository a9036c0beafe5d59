"""`f.explain(*args)`: how the program for some arguments runs, as text or page (see `runtime.engine.explain`)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.signature import key_of_call
from runtime.engine.explain import Report, Section, explain
from runtime.engine.explain_page import to_page
from runtime.engine.explain_text import to_text
from runtime.engine.machine import machine
from runtime.tensor import EagerTensor

_RUNS = 5
_ENOUGH = 0.5  # seconds of runs after which the best one counts


class Explanation(str):
    """A text that shows itself as it is in an interactive session."""

    def __repr__(self) -> str:
        return str(self)


def explain_call(
    function: Any, args: tuple, kwargs: dict[str, Any], html: str | os.PathLike | None, measure: bool
) -> Explanation:
    """What `Function.explain` gives."""
    concrete: ConcreteFunction = function.get_concrete_function(*args, **kwargs)
    graph_function = concrete.function
    section = explain("the program", graph_function.executable, concrete.graph)
    section.calls = concrete.answered_by() if graph_function.executable.is_native else None
    sections = [section]
    for gradient in graph_function.gradients():
        for title, part in (
            ("forward, with what its gradient needs", gradient.forward),
            ("gradient", gradient.backward),
        ):
            sections.append(explain(title, part.executable, part.graph))
    if measure:
        args, kwargs = function._arguments.bind(args, kwargs)
        _measure(concrete, section, args, kwargs)
    report = Report(concrete.graph.name, f"({', '.join(_arguments(concrete))})", sections)
    limits = machine()
    if html is not None:
        Path(html).write_text(to_page(report, limits), encoding="utf-8")
    return Explanation(to_text(report, limits))


def _arguments(concrete: ConcreteFunction) -> Iterator[str]:
    """`x: float32[3]` for tensors, then `n=3` for Python values that a trace is made for."""
    for spec in concrete.argument_specs:
        yield f"{spec.name}: {spec.dtype.name}{_shape(spec)}"
    signature = concrete.parameters.signature
    if signature is None:
        return
    positional, named = concrete.structured_input_signature
    for name, value in signature.bind_partial(*positional, **named).arguments.items():
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            yield f"{name}={value!r}"


def _shape(spec: Any) -> str:
    if spec._shape is None:
        return "[...]"
    return f"[{', '.join('?' if size is None else str(size) for size in spec._shape)}]"


def _measure(concrete: ConcreteFunction, section: Section, args: tuple, kwargs: dict[str, Any]) -> None:
    """Notes the best time of a few runs whose results are thrown away; variables keep their values."""
    tensors: list[Any] = []
    key_of_call(args, kwargs, tensors)
    if not all(isinstance(t, EagerTensor) for t in tensors) or len(tensors) != len(concrete.argument_specs):
        section.unmeasured = "that takes values, not specs"
        return
    if any(node.op.effect or node.op.calls_python for node in concrete.graph.walk()):
        section.unmeasured = "running it has effects"
        return
    values = [t._array for t in concrete.inputs_for(tensors)]
    run = concrete.function.executable
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        run(values)
        now = time.perf_counter()
        section.seconds = min(section.seconds or now - before, now - before)
        if now - start > _ENOUGH or now - start > _RUNS * section.seconds:
            return
