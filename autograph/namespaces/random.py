"""`ag.random`: random tensors."""

from __future__ import annotations

from autograph.namespaces import random_experimental as experimental
from runtime.generator import (
    Algorithm,
    Generator,
    categorical,
    create_rng_state,
    fold_in,
    gamma,
    get_global_generator,
    poisson,
    set_global_generator,
    split,
    stateless_binomial,
    stateless_categorical,
    stateless_gamma,
    stateless_normal,
    stateless_parameterized_truncated_normal,
    stateless_poisson,
    stateless_shuffle,
    stateless_truncated_normal,
    stateless_uniform,
)
from runtime.ops.random.candidates import (
    all_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from runtime.ops.random.stateful import (
    normal,
    set_seed,
    shuffle,
    truncated_normal,
    uniform,
)  # fmt: skip

__all__ = [
    "Algorithm", "Generator", "all_candidate_sampler", "categorical", "create_rng_state", "experimental", "fold_in",
    "gamma", "get_global_generator", "log_uniform_candidate_sampler", "normal", "poisson", "set_global_generator",
    "set_seed", "shuffle", "split", "stateless_binomial", "stateless_categorical", "stateless_gamma",
    "stateless_normal", "stateless_parameterized_truncated_normal", "stateless_poisson", "stateless_shuffle",
    "stateless_truncated_normal", "stateless_uniform", "truncated_normal", "uniform", "uniform_candidate_sampler",
]  # fmt: skip
