"""What functions of single elements give, by NumPy and SciPy, and the operands that they are tried on.

`OPERANDS` has shapes that broadcast, empty and zero-dimensional ones, views that aren't contiguous, and each pair of
the values of a dtype that are easily got wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import special

from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.table import OPS, OpDef

# Families of which each row works on elements, beside those with a scalar text.
FAMILIES = ("special", "complex_numbers", "incomplete_gamma", "special_derivatives")
MORE = ("conj", "nextafter")
# Rows of these families that don't, or that aren't looked at here, with the reason.
ELSEWHERE = {
    "igamma_derivative": "a derivative of igamma by a series, for gradients: test_not_a_number.py and test_table.py",
    **{
        name: "of integer orders only: test_table.py"
        for name in (
            "bessel_jn",
            "bessel_in",
            "bessel_ine",
            "bessel_ie_derivative",
            "bessel_ke_derivative",
            "spence_derivative",
        )
    },
    "polygamma": "of integer orders only: test_table.py has its values",
    "string_add": "of strings: test_table.py",
    **{row.name: "of int64 only: tests/operators/test_python_integers.py" for row in OPS.values() if row.unchecked},
}


def rows() -> Iterator[OpDef]:
    for row in OPS.values():
        inside = row.is_elementwise or row.name in MORE or row.infer.__module__.rpartition(".")[2] in FAMILIES
        if inside or getattr(row.kernel, "__module__", "").rpartition(".")[2] in FAMILIES:
            if row.name not in ELSEWHERE:
                yield row


def arity(row: OpDef) -> int:
    return max(len(sample.shapes) for sample in row.samples or ())


def sigmoid(x: Any) -> Any:
    # By its two halves, neither of which overflows.
    with np.errstate(all="ignore"):
        return np.where(x.real >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def quotient(x: Any, y: Any) -> Any:
    """Rounded towards zero."""
    if x.dtype.kind in "iu":
        wide = [
            int(abs(int(a)) // abs(int(b))) * (1 if (int(a) < 0) == (int(b) < 0) else -1)
            for a, b in zip(x.flat, y.flat)
        ]
        bits = 8 * x.dtype.itemsize
        return np.array([w % (1 << bits) for w in wide], np.uint64).astype(x.dtype).reshape(x.shape)
    return np.trunc(x / y)


def power(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    bits = 8 * x.dtype.itemsize
    found = [pow(int(a), int(b), 1 << bits) for a, b in zip(x.flat, y.flat)]
    return np.array(found, np.uint64).astype(x.dtype).reshape(x.shape)


def with_limits(function: Any, below: float, above: float) -> Any:
    """A function of SciPy's with its limits at the infinities, where that has NaN."""
    return lambda x: np.where(np.isinf(x), np.where(x < 0, below, above), function(x))


# Of these, NaN outside of the domain.
LIMITS = {
    "bessel_i0": (np.inf, np.inf), "bessel_i1": (-np.inf, np.inf), "bessel_j0": (0, 0), "bessel_j1": (0, 0),
    "bessel_y0": (np.nan, 0), "bessel_y1": (np.nan, 0), "spence": (np.nan, -np.inf),
}  # fmt: skip
SAME_IN_NUMPY = (
    "add", "subtract", "multiply", "divide", "negative", "abs", "sign", "square", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "floor", "ceil",
    "rint", "trunc", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "reciprocal",
    "real", "imag", "angle", "conj", "nextafter", "hypot",
)  # fmt: skip
SAME_IN_SCIPY = {
    "erf": "erf", "erfc": "erfc", "lgamma": "gammaln", "digamma": "psi", "erfinv": "erfinv", "erfcinv": "erfcinv",
    "ndtri": "ndtri", "bessel_i0": "i0", "bessel_i0e": "i0e", "bessel_i1": "i1", "bessel_i1e": "i1e",
    "bessel_k0": "k0", "bessel_k0e": "k0e", "bessel_k1": "k1", "bessel_k1e": "k1e", "bessel_j0": "j0",
    "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "dawsn": "dawsn", "expint": "expi", "spence": "spence",
    "igamma": "gammainc", "igammac": "gammaincc", "zeta": "zeta", "betainc": "betainc", }  # fmt: skip
REFERENCES: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in SAME_IN_NUMPY},
    **{name: getattr(special, other) for name, other in SAME_IN_SCIPY.items()},
    **{name: with_limits(getattr(special, SAME_IN_SCIPY[name]), *limits) for name, limits in LIMITS.items()},
    **{name: getattr(np, "arc" + name[1:]) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")},
    **{f"is_{name}": getattr(np, f"is{name}") for name in ("nan", "inf", "finite")},
    "rsqrt": lambda x: 1 / np.sqrt(x), "sech": lambda x: 1 / np.cosh(x),
    "sigmoid": sigmoid, "softplus": lambda x: np.logaddexp(x, 0),
    "relu": lambda x: np.where(x < 0, np.zeros((), x.dtype), x), "cast": lambda x: x, "narrow": lambda x: x,
    "maximum": np.maximum, "minimum": np.minimum,
    "floordiv": lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else x // y,
    # 0 whatever y is, as in TensorFlow.
    "xlogy": lambda x, y: np.where(x == 0, 0, special.xlogy(x, y)),
    "xlog1py": lambda x, y: np.where(x == 0, 0, special.xlog1py(x, y)),
    "floormod": np.mod, "truncatediv": quotient, "pow": power,
    "squared_difference": lambda x, y: (x - y) * (x - y),
    "multiply_no_nan": lambda x, y: np.where(y == 0, np.zeros((), x.dtype), x * y),
    "xdivy": lambda x, y: np.where(x == 0, 0, x / y), "select": lambda c, x, y: np.where(c, x, y),
    "complex": lambda x, y: np.stack([x, y], -1).view(np.complex128)[..., 0], "complex_abs": np.abs,
    "softsign": lambda x: x / (np.abs(x) + 1), "hypot_slope": lambda x, y: x / 2 / np.hypot(x / 2, y / 2),
    "expint_derivative": lambda x: np.where(x == np.inf, x, np.exp(x) / x),
    "fresnel_sin": lambda x: special.fresnel(x)[0], "fresnel_cos": lambda x: special.fresnel(x)[1],
}  # fmt: skip


def reference_in(
    references: Mapping[str, Callable[..., Any]], row: OpDef, parameters: Sequence[str], how: str, file: str
) -> Callable[..., Any]:
    """Of a row; fails if it has none, and says how to write one and where. parameters: those of the function."""
    if row.name not in references:
        line = f'"{row.name}": lambda {", ".join(parameters)}: ...'
        pytest.fail(f"{row} has no reference: add `{line}`, {how}, to REFERENCES in {file}", pytrace=False)
    return references[row.name]


def operand_names(row: OpDef) -> list[str]:
    """Names for the parameters of a reference that take the operands."""
    count = len(row.samples[0].shapes) if row.samples else 1
    return list("xyz")[:count] if count <= 3 else ["*operands"]


def reference(row: OpDef) -> Callable[..., Any]:
    """Of a row; fails if it has none."""
    return reference_in(REFERENCES, row, operand_names(row), "of NumPy or SciPy", "tests/ops/pointwise.py")


def awkward(dtype: DType) -> np.ndarray:
    """The values of a dtype that are easily got wrong, in one row."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.np)
        values = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2 + 1, 0, 1, 2, 3, 7, 100]
        if dtype.kind == "i":
            values += [-1, -2, -3, -7, -100]
        return np.array(values, dtype.np)
    if dtype.kind == "c":
        parts = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0])
        return (parts[:, None] + 1j * parts).reshape(-1).astype(dtype.np)
    limits = dtypes.finfo(dtype)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 2.5, -2.5, 3.5, 30.0, -30.0, 0.999, 1.001]
    values += [float(limits.max), float(limits.min), float(limits.tiny), -float(limits.tiny), float(limits.eps)]
    return np.array(values).astype(dtype.np)


def views(array: np.ndarray) -> dict[str, np.ndarray]:
    """The elements of a matrix, as arrays that don't lie in memory one after the other."""
    wide = np.repeat(array, 2, 1)
    return {
        "transposed": np.ascontiguousarray(array.T).T,
        "strided": wide[:, ::2],
        "reversed": np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1],
        "spread": np.broadcast_to(array[:1], array.shape),
    }


SHAPES = {
    "matrices": [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((1, 4), (3, 4)), ((3, 4), (3, 1)), ((1, 1), (3, 4))],
    "empty matrices": [((0, 4), (0, 4)), ((0, 1), (1, 4)), ((3, 0), (1, 1))],
    "matrix and row": [((3, 4), (4,)), ((3, 1), (4,)), ((3, 4), (1,)), ((0, 4), (4,)), ((3, 1), (0,))],
    "rows": [((4,), (4,)), ((4,), (1,)), ((1,), (4,)), ((0,), (0,)), ((0,), (1,))],
    "row and number": [((4,), ()), ((0,), ())],
    "number and matrix": [((), (2, 3)), ((), (2, 0))],
    "numbers": [((), ())],
}
RANKS = {name: (len(pairs[0][0]), len(pairs[0][1])) for name, pairs in SHAPES.items()}
Operands = tuple[np.ndarray, np.ndarray]


def operands(dtype: DType) -> dict[tuple[int, int], list[tuple[str, Operands]]]:
    """By their ranks, pairs of operands with a name for each."""
    random = np.random.default_rng(5)

    def drawn(shape: tuple[int, ...]) -> np.ndarray:
        values = random.uniform(-3, 3, shape)
        if dtype.is_bool:
            return np.asarray(values > 0)
        if dtype.kind == "u":
            values = np.abs(values)
        if dtype.kind == "c":
            values = values + 1j * random.uniform(-3, 3, shape)
        return np.asarray(np.round(values) if dtype.kind in "iu" else values).astype(dtype.np)

    found: dict[tuple[int, int], list[tuple[str, Operands]]] = {}
    for name, pairs in SHAPES.items():
        for left, right in pairs:
            found.setdefault(RANKS[name], []).append((f"{name} {left} {right}", (drawn(left), drawn(right))))
    matrices = found[2, 2]
    for (name, left), right in zip(views(drawn((5, 6))).items(), reversed(views(drawn((5, 6))).values())):
        matrices.append((name, (left, right)))
    edges = awkward(dtype)
    pairs = np.repeat(edges, len(edges)), np.tile(edges, len(edges))
    found[1, 1] += [
        ("awkward", pairs),
        ("strided", (pairs[0][::7], pairs[1][::-7])),
        ("backwards", (edges, edges[::-1])),
    ]
    matrices.append(("awkward", (edges[:, None], edges[None])))
    number = random.integers(len(edges))
    found[1, 0].append(("awkward and number", (edges[::-1], np.asarray(edges[number]))))
    return found


def arguments(row: OpDef, dtype: DType, pair: Operands) -> list[np.ndarray]:
    """The operands of a row for a pair: without what raises or isn't defined."""
    x, y = pair
    if row.name == "select":
        return [np.asarray(np.real(x) > 0) if not dtype.is_bool else x, x, y]
    if arity(row) == 3:
        return [x, y, y]
    if arity(row) == 1:
        return [x]
    if dtype.kind in "iu":
        if row.divisor is not None:
            y = np.where(y == 0, dtype.np.type(1), y)
        if row.exponent is not None:
            y = np.asarray(y & dtype.np.type(7))
        if row.name in ("left_shift", "right_shift"):
            y = np.asarray(y & dtype.np.type(8 * dtype.size - 1))
    return [x, y]


def expected(row: OpDef, arrays: list[np.ndarray], result: DType) -> np.ndarray:
    """What the row should give, computed in float64 or complex128, and in the integers' own arithmetic."""
    wide = {"f": np.float64, "c": np.complex128}
    if row.name in ("nextafter", "floordiv"):  # whose steps, or whose quotients that vanish, are those of the dtype
        wide = {"f": np.float32} if row.name == "floordiv" and arrays[0].dtype in dtypes.NARROW else {}
    wider = [
        a.astype(wide[dtypes.as_dtype(a.dtype).kind]) if dtypes.as_dtype(a.dtype).kind in wide else a for a in arrays
    ]
    with np.errstate(all="ignore"):
        spread = np.broadcast_arrays(*wider)
        return np.asarray(reference(row)(*spread)).astype(result.np)
