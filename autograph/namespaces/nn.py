"""`ag.nn`: functions of neural networks."""

from __future__ import annotations

from runtime.ops.api import (
    relu,
    sigmoid,
    softplus,
    tanh,
)  # fmt: skip
from runtime.ops.nn import (
    bias_add,
    dropout,
    elu,
    embedding_lookup,
    gelu,
    l2_loss,
    l2_normalize,
    leaky_relu,
    log_softmax,
    moments,
    relu6,
    selu,
    sigmoid_cross_entropy_with_logits,
    silu,
    softmax,
    softmax_cross_entropy_with_logits,
    softsign,
    sparse_softmax_cross_entropy_with_logits,
    swish,
)  # fmt: skip

__all__ = [
    "bias_add", "dropout", "elu", "embedding_lookup", "gelu", "l2_loss", "l2_normalize", "leaky_relu", "log_softmax",
    "moments", "relu6", "selu", "sigmoid_cross_entropy_with_logits", "silu", "softmax",
    "softmax_cross_entropy_with_logits", "softsign", "sparse_softmax_cross_entropy_with_logits", "swish", "relu",
    "sigmoid", "softplus", "tanh",
]  # fmt: skip
