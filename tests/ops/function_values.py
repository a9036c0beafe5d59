"""Sparse tensors, connectionist temporal classification, embeddings, fake quantization, binomial numbers.

`cases(T)` makes them from a namespace, `ag` or TensorFlow's. function_values.json holds TensorFlow's results and
gradients; where TensorFlow is installed, `python -m tests.ops.function_values` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.ops.image_values import Case, answer

ANSWERS = Path(__file__).with_suffix(".json")
_R = np.random.default_rng(8)
A = np.array([[0, 1], [1, 0], [1, 3], [3, 2]], np.int64)
B = np.array([[0, 0], [0, 1], [1, 3], [3, 3]], np.int64)
X, Y = np.array([1.0, -2.0, 3.0, -4.0], np.float32), np.array([-1.0, 2.0, -5.0, 6.0], np.float32)
IDS = np.array([3, 0, 3, 1], np.int64)
WORDS = np.array([b"a", b"bb", b"c", b"dog"], object)
LOGITS = _R.normal(size=(6, 3, 4)).round(2).astype(np.float32)
LABELS = np.array([[1, 2, 2], [3, 0, 0], [3, 1, 3]], np.int32)
LENGTHS, FRAMES = [3, 1, 2], [6, 4, 5]
TABLE = _R.normal(size=(5, 3)).round(2).astype(np.float32)
ROWS = np.array([[0, 0], [0, 1], [2, 0], [2, 3], [3, 1]], np.int64)
WEIGHTS = np.array([0.5, 2.0, -1.0, 3.0, 0.7], np.float32)
NUMBERS = np.concatenate([_R.normal(size=14) * 4, [-6.0, 6.0, 0.0, 0.02]]).round(2).astype(np.float32).reshape(-1, 2)


def parts(*values: Any) -> list[Any]:
    """The tensors that sparse ones consist of."""
    found: list[Any] = []
    for value in values:
        found += [value.indices, value.values, value.dense_shape] if hasattr(value, "dense_shape") else [value]
    return found


def of_sparse_tensors(T: Any, case: Callable[..., None]) -> None:
    def sparse(indices: Any, values: Any, shape: Any = (4, 4)) -> Any:
        return T.SparseTensor(indices, values, list(shape))

    s = T.sparse
    for name in ("maximum", "minimum"):
        f = getattr(s, name)
        case(f"sparse.{name}", lambda x, y, f=f: parts(f(sparse(A, x), sparse(B, y))), X, Y, gradient=False)
    for shape in ([2, 8], [16], [-1, 2], [2, 2, 4]):
        case(f"sparse.reshape {shape}", lambda x, n=shape: parts(s.reshape(sparse(A, x), n)), X, gradient=False)
    case("sparse.fill_empty_rows", lambda x: parts(*s.fill_empty_rows(sparse(A, x, (5, 4)), 9.0)), X, gradient=False)
    case("sparse.fill_empty_rows' gradient", lambda x: s.fill_empty_rows(sparse(A, x), 9.0)[0].values, X)
    case("sparse.fill_empty_rows of strings", lambda x: parts(*s.fill_empty_rows(sparse(A, x), "z")), WORDS)
    case("sparse.softmax", lambda x: s.softmax(sparse(A, x)).values, X)
    for count, axis in ((2, 0), (3, 1), (4, -1)):
        case(f"sparse.split {count} {axis}", lambda x, n=count, a=axis: parts(
            *s.split(sp_input=sparse(A, x), num_split=n, axis=a)), X, gradient=False)  # fmt: skip
    case("sparse.to_indicator", lambda x: s.to_indicator(sparse(A, x), 5), IDS)
    case("sparse.reset_shape", lambda x: parts(s.reset_shape(sparse(A, x, (7, 9)))), X, gradient=False)
    case("sparse.reset_shape larger", lambda x: parts(s.reset_shape(sparse(A, x), [7, 9])), X, gradient=False)
    matrix = np.array([[1, 5, 1], [0, 0, 5]], np.int32)
    for axis in (0, -1):
        for options in ({}, {"minlength": 9}, {"maxlength": 4}, {"binary_output": True}):
            case(f"sparse.bincount {axis} {options}", lambda x, a=axis, o=options: parts(
                s.bincount(x, axis=a, **o)), matrix)  # fmt: skip
            case(f"sparse.bincount of sparse {axis} {options}", lambda x, a=axis, o=options: parts(
                s.bincount(sparse(A, x), axis=a, **o)), IDS)  # fmt: skip
        case(f"sparse.bincount weights {axis}", lambda x, w, a=axis: parts(s.bincount(x, w, axis=a)), matrix,
             matrix.astype(np.float32) + 0.5, gradient=False)  # fmt: skip
    dense = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.int64)
    for options in ({}, {"num_buckets": 100}, {"num_buckets": 1000, "hash_key": 77}):
        case(f"sparse.cross_hashed {options}", lambda w, x, o=options: parts(
            s.cross_hashed([x, sparse(A, w)], **o)), WORDS, dense)  # fmt: skip
    case("sparse.cross", lambda w, x: parts(s.cross([x, sparse(A, w)], separator="-")), WORDS, dense)


def of_labellings(T: Any, case: Callable[..., None]) -> None:
    nn = T.nn

    def sparse() -> Any:
        places = np.array([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]], np.int64)
        return T.SparseTensor(places, np.array([1, 2, 0, 0, 1], np.int32), [3, 3])

    case("ctc_loss", lambda x: nn.ctc_loss(LABELS, x, LENGTHS, FRAMES), LOGITS)
    case("ctc_loss batch first", lambda x: nn.ctc_loss(LABELS, x, LENGTHS, FRAMES, False),
         np.ascontiguousarray(LOGITS.transpose(1, 0, 2)))  # fmt: skip
    case("ctc_loss blank last", lambda x: nn.ctc_loss(np.maximum(LABELS - 1, 0), x, LENGTHS, FRAMES, blank_index=-1),
         LOGITS)  # fmt: skip
    case("ctc_loss no labels", lambda x: nn.ctc_loss(LABELS, x, [0, 1, 0], FRAMES), LOGITS)
    case("ctc_loss too long", lambda x: nn.ctc_loss(LABELS, x, LENGTHS, [3, 1, 2]), LOGITS, gradient=False)
    case("ctc_loss half", lambda x: nn.ctc_loss(LABELS, x, LENGTHS, FRAMES), LOGITS.astype(np.float16), gradient=False)
    case("ctc_loss sparse", lambda x: nn.ctc_loss(sparse(), x, None, FRAMES, blank_index=-1), LOGITS)
    case("ctc_loss unique", lambda x: nn.ctc_loss(
        LABELS, x, LENGTHS, FRAMES, unique=nn.ctc_unique_labels(LABELS)), LOGITS)  # fmt: skip
    case("ctc_unique_labels", nn.ctc_unique_labels, LABELS)
    case("collapse_repeated", lambda x: nn.collapse_repeated(x, [3, 2, 1]), LABELS)

    def decoded(paths: Any, scores: Any) -> list[Any]:
        return parts(*paths, scores)

    for options in ({}, {"merge_repeated": False}, {"blank_index": 0}, {"blank_index": -2}):
        case(f"ctc_greedy_decoder {options}", lambda x, o=options: decoded(*nn.ctc_greedy_decoder(x, FRAMES, **o)),
             LOGITS, gradient=False)  # fmt: skip
    for width, paths in ((1, 1), (2, 2), (3, 1), (5, 3), (50, 2)):
        case(f"ctc_beam_search_decoder {width} {paths}", lambda x, w=width, p=paths: decoded(
            *nn.ctc_beam_search_decoder(x, FRAMES, w, p)), LOGITS, gradient=False)  # fmt: skip


def of_embeddings(T: Any, case: Callable[..., None]) -> None:
    nn = T.nn

    def ids(*values: int) -> Any:
        return T.SparseTensor(ROWS, T.constant(np.array(values, np.int64)), [5, 4])

    for how in ("mean", "sum", "sqrtn"):
        case(f"embedding_lookup_sparse {how}", lambda t, h=how: nn.embedding_lookup_sparse(
            t, ids(1, 2, 1, 4, 0), None, combiner=h), TABLE)  # fmt: skip
        case(f"embedding_lookup_sparse weighted {how}", lambda t, w, h=how: nn.embedding_lookup_sparse(
            t, ids(1, 2, 1, 4, 0), T.SparseTensor(ROWS, w, [5, 4]), combiner=h), TABLE, WEIGHTS)  # fmt: skip
        for default in (None, 3):
            case(f"safe_embedding_lookup_sparse {how} {default}", lambda t, w, h=how, d=default: (
                nn.safe_embedding_lookup_sparse(t, ids(1, 2, -1, 4, 0), T.SparseTensor(ROWS, w, [5, 4]), combiner=h,
                                                default_id=d)), TABLE, WEIGHTS)  # fmt: skip
    case("embedding_lookup_sparse max_norm", lambda t: nn.embedding_lookup_sparse(
        t, ids(1, 2, 1, 4, 0), None, max_norm=0.8), TABLE)  # fmt: skip
    places = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]], np.int64)
    case("safe_embedding_lookup_sparse of rank 3", lambda t: nn.safe_embedding_lookup_sparse(
        t, T.SparseTensor(places, T.constant(np.array([1, 2, 3, 4], np.int64)), [2, 2, 3])), TABLE)  # fmt: skip


def of_the_rest(T: Any, case: Callable[..., None]) -> None:
    x, w = _R.uniform(size=(1, 4, 5, 2)).round(2), _R.uniform(size=(3, 2, 3, 2)).round(2)
    for rate, padding, shape in ((1, "SAME", [1, 4, 5, 3]), (2, "SAME", [1, 4, 5, 3]), (2, "VALID", [1, 8, 7, 3])):
        case(f"atrous_conv2d_transpose {rate} {padding}", lambda x, w, r=rate, p=padding, s=shape: (
            T.nn.atrous_conv2d_transpose(x, w, s, r, p)), x.astype("f"), w.astype("f"))  # fmt: skip
    q = T.quantization
    for bits, narrow in ((2, False), (4, True), (8, False), (16, True)):
        case(f"fake_quant args {bits} {narrow}", lambda x, b=bits, n=narrow: q.fake_quant_with_min_max_args(
            x, -3.3, 4.1, b, n), NUMBERS)  # fmt: skip
        for low, high in ((-3.3, 4.1), (1.0, 4.0), (-4.0, -1.0), (0.0, 0.0)):
            ends = np.float32(low), np.float32(high)
            case(f"fake_quant vars {bits} {narrow} {low}", lambda x, a, c, b=bits, n=narrow: (
                q.fake_quant_with_min_max_vars(x, a, c, b, n)), NUMBERS, *map(np.array, ends))  # fmt: skip
        case(f"fake_quant per channel {bits} {narrow}", lambda x, a, c, b=bits, n=narrow: (
            q.fake_quant_with_min_max_vars_per_channel(x, a, c, b, n)), NUMBERS, np.array([-3.0, -1.0], np.float32),
            np.array([3.0, 6.0], np.float32))  # fmt: skip
    case("fake_quant args gradient", lambda x: q.fake_quant_with_min_max_args_gradient(x * 2, x, -3.3, 4.1), NUMBERS,
         gradient=False)  # fmt: skip
    case("fake_quant vars gradient", lambda x: q.fake_quant_with_min_max_vars_gradient(x * 2, x, -3.3, 4.1), NUMBERS,
         gradient=False)  # fmt: skip
    case("fake_quant per channel gradient", lambda x: q.fake_quant_with_min_max_vars_per_channel_gradient(
        x * 2, x, [-3.0, -1.0], [3.0, 6.0]), NUMBERS, gradient=False)  # fmt: skip
    for base in (None, [[1, 0], [2, 3]]):
        case(f"required_space_to_batch_paddings {base}", lambda x, b=base: T.required_space_to_batch_paddings(
            x, [4, 2], b), np.array([10, 11], np.int32))  # fmt: skip
    for options in ({}, {"noise_shape": [4, 1]}):
        case(f"stateless_dropout {options}", lambda x, o=options: T.nn.experimental.stateless_dropout(
            x, 0.4, [1, 2], rng_alg="philox", **o), np.ones((4, 3), np.float32))  # fmt: skip
    for count, odds, shape in ((10.0, 0.3, [20]), (100.0, 0.3, [10]), (1000.0, 0.9, [2, 3]), (5.0, 1.0, [2]),
                               ([[10.0], [50.0]], [0.2, 0.6, 0.1], [2, 2, 3])):  # fmt: skip
        case(f"stateless_binomial {count} {odds}", lambda seed, c=count, p=odds, s=shape: T.random.stateless_binomial(
            s, seed, c, p), np.array([3, 4]))  # fmt: skip

    def generated(seed: Any) -> list[Any]:
        generator = T.random.Generator.from_seed(5)
        first = generator.binomial([6, 2], [10.0, 200.0], [0.2, 0.6])
        return [first, generator.uniform([3]), generator.binomial([3], 100.0, 0.4, T.float32)]

    case("Generator.binomial", generated, np.array(0))


def cases(T: Any) -> dict[str, Case]:
    """name -> (function of tensors, their values, whether TensorFlow has its gradient)."""
    found: dict[str, Case] = {}

    def case(name: str, f: Callable[..., Any], *args: Any, gradient: bool = True) -> None:
        found[name] = (f, args, gradient)

    for part in (of_sparse_tensors, of_labellings, of_embeddings, of_the_rest):
        part(T, case)
    return found


def main() -> None:
    import tensorflow as tf

    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer(tf, *case))}" for name, case in cases(tf).items())
    ANSWERS.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
