"""Recurrent operators: LSTM, GRU and RNN, as loops over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograph.onnx_models.operators.elementwise import hard_sigmoid
from autograph.onnx_models.operators.registry import Call, number, operator
from autograph.operators.functional_control import while_loop
from runtime import dtypes
from runtime.ops import api as ops
from runtime.ops.dispatch import call
from runtime.ops.nn import nn_ops
from runtime.tensor_array import TensorArray

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _activation(node: Call, place: int) -> Callable[[Any], Any]:
    usual = _USUAL[node.op]
    names = [each.decode() if isinstance(each, bytes) else each for each in node.attrs.get("activations") or []]
    name = names[place] if names else usual[place % len(usual)]
    alphas, betas = node.get("activation_alpha") or [], node.get("activation_beta") or []
    alpha = alphas[place] if place < len(alphas) else None
    beta = betas[place] if place < len(betas) else None
    known: dict[str, Callable[[Any], Any]] = {
        "Sigmoid": ops.sigmoid, "Tanh": ops.tanh, "Relu": ops.relu, "Softsign": ops.softsign,
        "Softplus": ops.softplus, "Elu": nn_ops.elu,
        "LeakyRelu": lambda x: nn_ops.leaky_relu(x, 0.01 if alpha is None else alpha),
        "HardSigmoid": lambda x: hard_sigmoid(x, 0.2 if alpha is None else alpha, 0.5 if beta is None else beta),
        "Affine": lambda x: x * number(1.0 if alpha is None else alpha, x) + number(beta or 0.0, x),
    }  # fmt: skip
    if name not in known:
        raise node.refuse(f"the activation {name!r} isn't translated")
    return known[name]


@operator("RNN", "GRU", "LSTM")
def _recurrent(
    node: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None,
    initial_cell: Any = None, peepholes: Any = None,
) -> Any:  # fmt: skip
    if node.get("layout", 0):
        x = ops.transpose(x, [1, 0, 2])
        initial, initial_cell = (None if h is None else ops.transpose(h, [1, 0, 2]) for h in (initial, initial_cell))
    units = node.shape(r)[-1]
    way = node.get("direction", "forward")
    zero = ops.zeros([call("dim", x, axis=1), units], x.dtype)
    results = []
    for number_, backwards in enumerate({"forward": [False], "reverse": [True]}.get(way, [False, True])):
        bias = None if b is None else b[number_]
        state = (zero if initial is None else initial[number_], zero if initial_cell is None else initial_cell[number_])
        peeps = None if peepholes is None else peepholes[number_]
        results.append(_direction(node, number_, x, w[number_], r[number_], bias, lengths, state, peeps, backwards))
    outputs, hidden, cells = (ops.stack(list(each), 1 if k == 0 else 0) for k, each in enumerate(zip(*results)))
    if node.get("layout", 0):
        outputs = ops.transpose(outputs, [2, 0, 1, 3])
        hidden, cells = ops.transpose(hidden, [1, 0, 2]), ops.transpose(cells, [1, 0, 2])
    return (outputs, hidden, cells)[: max(len(node.outputs), 1)]


def _direction(
    node: Call, place: int, x: Any, w: Any, r: Any, b: Any, lengths: Any, state: Any, peepholes: Any, backwards: bool
) -> Any:
    """One direction: all outputs, the last output, the last cell."""
    steps = call("dim", x, axis=0)
    size = _GATES[node.op] * node.shape(r)[-1]
    inputs = ops.tensordot(x, w, [[2], [1]])
    of_state = None
    if b is not None:
        inputs = inputs + b[:size]
        of_state = b[size:]
    limits = None if lengths is None else ops.cast(lengths, dtypes.int32)[:, None]
    first = len(_USUAL[node.op]) * place
    step = _STEPS[node.op]
    functions = [_activation(node, first + k) for k in range(len(_USUAL[node.op]))]

    def body(k: Any, h: Any, c: Any, collected: Any) -> Any:
        at = steps - 1 - k if backwards else k
        new_h, new_c = step(node, functions, inputs[at], h, c, r, of_state, peepholes)
        out = new_h
        if limits is not None:  # rows that have ended, or not begun, keep what they have
            alive = at < limits
            out = ops.where(alive, new_h, ops.zeros_like(new_h))
            new_h, new_c = ops.where(alive, new_h, h), ops.where(alive, new_c, c)
        return k + 1, new_h, new_c, collected.write(at, out)

    collected = TensorArray(x.dtype, size=steps, element_shape=state[0]._shape)
    start = (ops.zeros_like(steps), *state, collected)
    _, h, c, collected = while_loop(lambda k, *_: k < steps, body, start)
    return collected.stack(), h, c


def _clipped(node: Call, x: Any) -> Any:
    limit = node.get("clip")
    return x if limit is None else ops.clip_by_value(x, number(-limit, x), number(limit, x))


def _with_state(x: Any, h: Any, r: Any, b: Any) -> Any:
    total = x + ops.matmul(h, r, transpose_b=True)
    return total if b is None else total + b


def _rnn(node: Call, f: Any, x: Any, h: Any, c: Any, r: Any, b: Any, peepholes: Any) -> tuple[Any, Any]:
    return f[0](_clipped(node, _with_state(x, h, r, b))), c


def _gru(node: Call, f: Any, x: Any, h: Any, c: Any, r: Any, b: Any, peepholes: Any) -> tuple[Any, Any]:
    units = node.shape(r)[-1]
    both = slice(0, 2 * units)
    gates = _with_state(x[:, both], h, r[both], None if b is None else b[both])
    update, reset = ops.split(f[0](_clipped(node, gates)), 2, 1)
    last, bias = r[2 * units :], None if b is None else b[2 * units :]
    if node.get("linear_before_reset", 0):
        of_state = ops.matmul(h, last, transpose_b=True)
        inner = x[:, 2 * units :] + reset * (of_state if bias is None else of_state + bias)
    else:
        inner = _with_state(x[:, 2 * units :], reset * h, last, bias)
    new = f[1](_clipped(node, inner))
    return (number(1, update) - update) * new + update * h, c


def _lstm(node: Call, f: Any, x: Any, h: Any, c: Any, r: Any, b: Any, peepholes: Any) -> tuple[Any, Any]:
    gate, out, forget, cell = ops.split(_with_state(x, h, r, b), 4, 1)
    if peepholes is not None:
        of_gate, of_out, of_forget = ops.split(peepholes, 3, 0)
        gate, forget = gate + of_gate * c, forget + of_forget * c
    gate = f[0](_clipped(node, gate))
    forget = number(1, gate) - gate if node.get("input_forget", 0) else f[0](_clipped(node, forget))
    new = forget * c + gate * f[1](_clipped(node, cell))
    if peepholes is not None:
        out = out + of_out * new
    return f[0](_clipped(node, out)) * f[2](new), new


_STEPS: dict[str, Callable[..., tuple[Any, Any]]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
