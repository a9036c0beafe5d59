"""`ag.random.experimental`: names of what `ag.random` has, as TensorFlow's programs use them."""

from runtime.generator import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
    stateless_shuffle,
)
from runtime.generator import fold_in as stateless_fold_in
from runtime.generator import split as stateless_split

__all__ = [
    "Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator", "stateless_fold_in",
    "stateless_shuffle", "stateless_split",
]  # fmt: skip
