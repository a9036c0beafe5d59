"""`ag.nn`: functions of neural networks."""

from __future__ import annotations

from autograph.ctc import (
    collapse_repeated,
    ctc_beam_search_decoder,
    ctc_greedy_decoder,
    ctc_loss,
    ctc_unique_labels,
)
from autograph.distribute.losses import compute_average_loss, scale_regularization_loss
from autograph.namespaces import nn_experimental as experimental
from runtime.embeddings import embedding_lookup_sparse, safe_embedding_lookup_sparse
from runtime.ops.api import (
    relu,
    sigmoid,
    softplus,
    softsign,
    tanh,
)  # fmt: skip
from runtime.ops.arrays.miscellaneous import (
    depth_to_space,
    space_to_batch,
    space_to_depth,
)
from runtime.ops.arrays.segments import (
    zero_fraction,
)
from runtime.ops.arrays.sorting import (
    in_top_k,
    top_k,
)
from runtime.ops.elementwise.special import (
    log_sigmoid,
)
from runtime.ops.nn.convolution import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    conv_transpose,
    convolution,
    depthwise_conv2d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pool,
    separable_conv2d,
)
from runtime.ops.nn.morphology import atrous_conv2d, atrous_conv2d_transpose, dilation2d, erosion2d
from runtime.ops.nn.nn_ops import (
    batch_normalization,
    bias_add,
    crelu,
    l2_loss,
    l2_normalize,
    local_response_normalization,
    log_poisson_loss,
    log_softmax,
    moments,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    swish,
    weighted_cross_entropy_with_logits,
    weighted_moments,
)  # fmt: skip
from runtime.ops.nn.nn_ops import local_response_normalization as lrn
from runtime.ops.nn.sampled_losses import compute_accidental_hits, nce_loss, sampled_softmax_loss
from runtime.ops.nn.statistics import max_pool_with_argmax, normalize_moments, sufficient_statistics
from runtime.ops.random.candidates import all_candidate_sampler
from runtime.ragged.api import (
    dropout,
    elu,
    embedding_lookup,
    gelu,
    leaky_relu,
    relu6,
    selu,
    silu,
)

__all__ = [
    "all_candidate_sampler", "atrous_conv2d", "atrous_conv2d_transpose", "avg_pool", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_normalization", "bias_add", "collapse_repeated", "compute_accidental_hits",
    "compute_average_loss", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "conv_transpose", "convolution", "crelu", "ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss",
    "ctc_unique_labels", "depth_to_space", "depthwise_conv2d", "dilation2d", "dropout", "elu", "embedding_lookup",
    "embedding_lookup_sparse", "erosion2d", "experimental", "gelu", "in_top_k", "l2_loss", "l2_normalize",
    "leaky_relu", "local_response_normalization", "log_poisson_loss", "log_sigmoid", "log_softmax", "lrn", "max_pool",
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool_with_argmax", "moments", "nce_loss", "normalize_moments",
    "pool", "relu", "relu6", "safe_embedding_lookup_sparse", "sampled_softmax_loss", "scale_regularization_loss",
    "selu", "separable_conv2d", "sigmoid", "sigmoid_cross_entropy_with_logits", "silu", "softmax",
    "softmax_cross_entropy_with_logits", "softplus", "softsign", "space_to_batch", "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics", "swish", "tanh", "top_k",
    "weighted_cross_entropy_with_logits", "weighted_moments", "zero_fraction",
]  # fmt: skip
