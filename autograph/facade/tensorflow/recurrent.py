"""`tf.raw_ops`' recurrent operations, which libraries choose by the device: long short-term memory over a sequence."""

from __future__ import annotations

import collections
from typing import Any

import autograph as ag

BlockLSTMV2 = collections.namedtuple("BlockLSTMV2", "i cs f o ci co h")
CudnnRNN = collections.namedtuple("CudnnRNN", "output output_h output_c reserve_space")


def block_lstm(
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    cell_clip: float = 0.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> Any:
    """Gates, states and outputs of each step: i, cs, f, o, ci, co, h, each of shape (steps, batch, size).

    x: (steps, batch, inputs). w: (inputs + size, 4 size), its columns for the gates i, f, ci, o. b: (4 size).
    Raises UnimplementedError for peepholes and clipped cells.
    """
    if use_peephole or cell_clip > 0:
        raise ag.errors.UnimplementedError("BlockLSTMV2 is supported without peepholes and cell clipping only")
    x, w, b = (ag.convert_to_tensor(each) for each in (x, w, b))
    blank = ag.zeros_like(ag.convert_to_tensor(h_prev))

    def step(before: Any, inputs: Any) -> Any:
        parts = ag.matmul(ag.concat([inputs, before[6]], 1), w) + b
        i, f, ci, o = ag.split(parts, 4, axis=1)
        i, f, o, ci = ag.sigmoid(i), ag.sigmoid(f), ag.sigmoid(o), ag.tanh(ci)
        cell = i * ci + f * before[1]
        co = ag.tanh(cell)
        return i, cell, f, o, ci, co, o * co

    start = (blank, ag.convert_to_tensor(cs_prev), blank, blank, blank, blank, ag.convert_to_tensor(h_prev))
    return BlockLSTMV2(*ag.scan(step, x, initializer=start))


def cudnn_rnn(
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    rnn_mode: Any = "lstm",
    input_mode: Any = "linear_input",
    direction: Any = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> Any:
    """Outputs of each step and the last state: output (steps, batch, size), output_h and output_c (1, batch, size).

    params: the transposed weights of inputs and of the state, and two biases, one after the other, each with the gates
    i, f, ci, o. Raises UnimplementedError for another network than one layer of LSTM cells in one direction.
    """
    mode, way = ag.compat.as_text(rnn_mode), ag.compat.as_text(direction)
    input, input_h, input_c = (ag.convert_to_tensor(each) for each in (input, input_h, input_c))
    if mode != "lstm" or way != "unidirectional" or input_h.shape[0] not in (1, None) or dropout:
        raise ag.errors.UnimplementedError("CudnnRNN is supported for one layer of LSTM cells in one direction only")
    inputs, size = input.shape[2], input_h.shape[2]
    if inputs is None or size is None:
        raise ag.errors.UnimplementedError("CudnnRNN needs known numbers of inputs and cells")
    parts = ag.split(params, [4 * size * inputs, 4 * size * size, 4 * size, 4 * size])
    weights = [ag.transpose(ag.reshape(part, [4 * size, rows])) for part, rows in zip(parts, (inputs, size))]
    done = block_lstm(0, input, input_c[0], input_h[0], ag.concat(weights, 0), None, None, None, parts[2] + parts[3])
    return CudnnRNN(done.h, done.h[-1][None], done.cs[-1][None], ag.constant([], input.dtype))
