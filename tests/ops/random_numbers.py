"""Draws whose numbers are TensorFlow's: of generators, of stateless functions, and by the rules of `set_seed`.

`draws(T)` makes them from a namespace, `ag` or TensorFlow's. random_numbers.json holds TensorFlow's numbers; where
TensorFlow is installed, `python -m tests.ops.random_numbers` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_suffix(".json")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int32", "uint32", "int64", "uint64")


def of_generators(T: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    g = T.random.Generator.from_seed(7)
    for dtype in FLOATS:
        found[f"uniform {dtype}"] = g.uniform([5], dtype=dtype)
        found[f"normal {dtype}"] = g.normal([5], dtype=dtype)
        found[f"truncated {dtype}"] = g.truncated_normal([50], dtype=dtype)[40:]
    for dtype in INTEGERS:
        found[f"full {dtype}"] = g.uniform_full_int([3], dtype)
    found["between"], found["scaled"] = g.uniform([5], 2, 7.5), g.normal([5], 2, 7.5)
    found["integers"], found["wide"] = g.uniform([5], -3, 9, T.int32), g.uniform([5], -3, 2**50, T.int64)
    found["nothing"], found["one"] = g.normal([0]), g.normal([])
    found["seeds"] = g.make_seeds(3)
    first, second = g.split(2)
    found["first of split"], found["second of split"] = first.normal([3]), second.state.read_value()
    g.skip(3)
    found["state"], found["key"] = g.state.read_value(), g.key
    g.reset_from_seed(-1)
    found["carry"], found["state after carry"] = g.uniform([9])[::4], g.state.read_value()
    g.reset_from_key_counter(5, [7, 8])
    found["key and counter"] = g.uniform([3])
    found["seed of words"] = T.random.Generator.from_seed([1, 2, 3]).state.read_value()
    found["large seed"] = T.random.Generator.from_seed(2**70 + 5).state.read_value()
    return found


def stateless(T: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for dtype in FLOATS:
        found[f"uniform {dtype}"] = T.random.stateless_uniform([3, 3], [3, -4], dtype=dtype)
        found[f"normal {dtype}"] = T.random.stateless_normal([3, 3], [3, -4], dtype=dtype)
        found[f"truncated {dtype}"] = T.random.stateless_truncated_normal([9], [3, -4], dtype=dtype)
    for dtype in INTEGERS:
        found[f"full {dtype}"] = T.random.stateless_uniform([3], [1, 2], None, None, dtype)
    found["integers"] = T.random.stateless_uniform([9], [1, 2], -5, 50, "int32")
    found["split"], found["folded"] = T.random.split([1, 2], 3), T.random.fold_in([1, 2], 3)
    found["split of int64"] = T.random.split(T.constant([1, 2], T.int64), 2)
    found["shuffled rows"] = T.random.experimental.stateless_shuffle(T.reshape(T.range(20), [10, 2]), [3, -4])
    return found


def by_rejection(T: Any) -> dict[str, Any]:
    """Gamma, Poisson and categorical numbers, and gradients of the first."""
    found: dict[str, Any] = {}
    alpha, seed = T.constant([0.5, 1.0, 2.0, 50.0]), [3, -4]
    found["gamma"] = T.random.stateless_gamma([3, 4], seed, alpha)
    found["gamma of two"] = T.random.stateless_gamma([2, 3, 2], seed, [[0.1], [0.2], [3.0]], [1.0, 2.0])
    for dtype in ("float16", "float64"):
        found[f"gamma {dtype}"] = T.random.stateless_gamma([4], seed, 2.0, 0.5, dtype)
    for dtype in ("int32", "int64", "float32"):
        found[f"poisson {dtype}"] = T.random.stateless_poisson([3, 4], seed, [0.5, 1.0, 20.0, 5000.0], dtype)
    logits = T.constant([[-1.6, -0.7, -1.2], [0.0, 0.0, 2.0]])
    for dtype in ("int32", "int64"):
        found[f"classes {dtype}"] = T.random.stateless_categorical(logits, 7, seed, dtype)
    found["a class that can't be"] = T.random.stateless_categorical([[0.0, -np.inf, 1.0]], 5, seed)
    T.random.set_seed(7)

    def draw(seed: Any) -> list[Any]:
        return [
            T.random.gamma([2], alpha, seed=seed), T.random.poisson([2], [0.5, 30.0], seed=seed),
            T.random.categorical(logits, 5, seed=seed), T.random.normal([2], seed=seed),
        ]  # fmt: skip

    staged = T.function(lambda: [*draw(None), *draw(3)])
    for name, numbers in [("free", draw(None)), ("own", draw(3)), ("again", draw(3)), ("f", staged()), ("g", staged())]:
        found.update({f"{name} {i}": number for i, number in enumerate(numbers)})
    with T.GradientTape() as tape:
        tape.watch(alpha)
        drawn = T.random.stateless_gamma([2, 4], seed, alpha, 2.0)
    found["gradient"] = tape.gradient(drawn, alpha)
    return found


def with_seeds(T: Any) -> dict[str, Any]:
    """Eager ops, then functions called twice each."""
    found: dict[str, Any] = {}
    T.random.set_seed(1234)
    found["first"], found["second"] = T.random.uniform([3]), T.random.normal([3])
    found["third"], found["fourth"] = T.random.truncated_normal([3]), T.random.uniform([3], 0, 9, "int32")
    for i in range(2):
        found[f"own seed, uniform {i}"] = T.random.uniform([3], seed=1)
        found[f"own seed, normal {i}"] = T.random.normal([3], seed=1)
    found["shuffle"] = T.random.shuffle(T.range(20))
    found["shuffle with a seed"] = T.random.shuffle(T.reshape(T.range(20), [10, 2]), seed=4)

    def two() -> Any:
        return T.stack([T.random.uniform([1]), T.random.uniform([1])])

    def same_seed() -> Any:
        return T.stack([T.random.uniform([1], seed=1), T.random.uniform([1], seed=1)])

    functions = {"f": T.function(two), "g": T.function(two), "with seeds": T.function(same_seed)}
    for i in range(2):
        found.update({f"{name} {i}": function() for name, function in functions.items()})
    T.random.set_seed(0)
    found["0 and 0"], found["0"] = T.random.uniform([3], seed=0), T.random.uniform([3])
    T.random.set_seed(-5)
    found["negative"], found["negative seeds"] = T.random.uniform([3]), T.random.uniform([2], seed=-3)
    return found


def draws(T: Any) -> dict[str, Any]:
    """name -> nested lists of numbers (Python's, exact)."""
    parts = {"generator": of_generators, "stateless": stateless, "rejection": by_rejection, "seeds": with_seeds}
    return {
        f"{part}: {name}": np.asarray(T.cast(t, T.float64) if t.dtype.is_floating else t).tolist()
        for part, function in parts.items()
        for name, t in function(T).items()
    }


def main() -> None:
    import tensorflow as tf

    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in draws(tf).items())
    ANSWERS.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
