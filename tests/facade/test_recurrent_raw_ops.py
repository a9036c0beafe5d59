"""`raw_ops.BlockLSTMV2` and `CudnnRNN`, beside the recurrence in NumPy."""

import numpy as np
import pytest

import autograph as ag


@pytest.fixture
def raw_ops(tensorflow):
    return tensorflow.raw_ops


def lstm(x, h, c, w_x, w_h, b):
    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    outputs, cells = [], []
    for inputs in x:
        i, f, g, o = np.split(inputs @ w_x + h @ w_h + b, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
        cells.append(c)
    return np.array(outputs), np.array(cells)


@pytest.mark.parametrize("staged", [False, True])
def test_both_are_the_recurrence(raw_ops, staged):
    random = np.random.default_rng(0)
    x, h, c, w_x, w_h, b = (
        random.normal(size=size).astype("float32") for size in ((5, 2, 3), (2, 4), (2, 4), (3, 16), (4, 16), (16,))
    )
    outputs, cells = lstm(x, h, c, w_x, w_h, b)

    def block(x):
        return raw_ops.BlockLSTMV2(
            seq_len_max=5, x=x, cs_prev=c, h_prev=h, w=np.concatenate([w_x, w_h]), wci=0.0, wcf=0.0, wco=0.0, b=b
        )

    def cudnn(x):
        params = np.concatenate([w_x.T.ravel(), w_h.T.ravel(), b, np.zeros_like(b)])
        return raw_ops.CudnnRNN(input=x, input_h=h[None], input_c=c[None], params=params, rnn_mode="lstm")

    found = (ag.function(block) if staged else block)(ag.constant(x))
    np.testing.assert_allclose(found.h, outputs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.cs, cells, rtol=1e-4, atol=1e-5)
    found = (ag.function(cudnn) if staged else cudnn)(ag.constant(x))
    np.testing.assert_allclose(found.output, outputs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.output_h[0], outputs[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.output_c[0], cells[-1], rtol=1e-4, atol=1e-5)


def test_other_networks_are_refused(raw_ops):
    zeros = ag.zeros([1, 2, 4])
    with pytest.raises(ag.errors.UnimplementedError, match="one layer of LSTM cells"):
        raw_ops.CudnnRNN(input=zeros, input_h=zeros, input_c=zeros, params=[0.0], rnn_mode="gru")
    with pytest.raises(ag.errors.UnimplementedError, match="without peepholes"):
        raw_ops.BlockLSTMV2(
            seq_len_max=1, x=zeros, cs_prev=zeros[0], h_prev=zeros[0], w=zeros[0], wci=0, wcf=0, wco=0, b=zeros[0, 0],
            use_peephole=True,
        )  # fmt: skip
