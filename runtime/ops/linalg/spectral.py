"""Orthogonal factorisations and functions of matrices: QR, SVD, symmetric eigenvalues, exponential, square root."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.reduce import reduce_max, reduce_sum
from runtime.ops.convert import check_kind, convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.compare import equal, where
from runtime.ops.elementwise.complex_numbers import conj, real
from runtime.ops.linalg.matrix_products import adjoint, diag, diag_part, matmul
from runtime.ops.linalg.solvers import need_matrices, triangle, wide
from runtime.ops.rules import dims
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _least(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _zero_if_none(cotangent: Any, output: Any) -> Any:
    return call("zeros_like", output) if cotangent is None else cotangent


# --- QR ------------------------------------------------------------------------------------------------------------


def _infer_qr(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    need_matrices(x.shape, False)
    if x.shape is None:
        return x, x
    *batch, rows, columns = x.shape
    inner = rows if attrs["full_matrices"] else _least(rows, columns)
    return TensorType(x.dtype, (*batch, rows, inner)), TensorType(x.dtype, (*batch, inner, columns))


def _qr_kernel(x: Any, full_matrices: bool) -> tuple:
    return tuple(np.linalg.qr(x, "complete" if full_matrices else "reduced"))


def _grad_qr(op: Any, dq: Any, dr: Any) -> Sequence[Any]:
    """Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020).

    The columns that full_matrices adds to q span what the others leave, in a basis that the factorisation is free to
    choose: their gradient is that of functions of the span.
    """
    q, r = op.outputs
    rows: Any
    columns: Any
    rows, columns = (op.inputs[0]._shape or (None, None))[-2:]
    known = rows is not None and columns is not None
    dq, dr = _zero_if_none(dq, q), _zero_if_none(dr, r)
    if known and (rows == columns or (rows > columns and not op.attrs["full_matrices"])):
        return (_grad_tall_qr(q, r, dq, dr),)
    if not op.attrs["full_matrices"] or (known and rows < columns):
        # Of [x, y] only x is factorised; r is [u, q ** H @ y]. In a tall matrix, y has no columns.
        own = dims(q)[-1]
        x = _grad_tall_qr(q, r[..., :, :own], dq + matmul(op.inputs[0][..., :, own:], dr[..., :, own:],
                          adjoint_b=True), dr[..., :, :own])  # fmt: skip
        return (concat([x, matmul(q, dr[..., :, own:])], -1),)
    if not known:
        raise NotImplementedError("The gradient of qr with full_matrices=True needs a known shape.")
    own, rest = q[..., :, :columns], q[..., :, columns:]
    turned = matmul(rest, matmul(dq[..., :, columns:], own, adjoint_a=True))
    return (_grad_tall_qr(own, r[..., :columns, :], dq[..., :, :columns] - turned, dr[..., :columns, :]),)


def _grad_tall_qr(q: Any, r: Any, dq: Any, dr: Any) -> Any:
    m = matmul(r, dr, adjoint_b=True) - matmul(dq, q, adjoint_a=True)
    lower = triangle(m, True)
    line = diag_part(lower)
    # The diagonal of r is real.
    line = call("cast", real(line), dtype=line.dtype) if line.dtype.is_complex else line
    symmetric = lower + adjoint(lower) - diag(line)
    # (dq + q @ symmetric) @ r ** -H, as the solution of a system
    return adjoint(call("matrix_triangular_solve", r, adjoint(dq + matmul(q, symmetric)), lower=False, adjoint=False))


QR = register(
    OpDef(
        "qr", _infer_qr, wide(_qr_kernel), grad=_grad_qr, multiple=True, kinds="fc", complex_rule=True,
        doc="x = q @ r with orthonormal columns in q and an upper triangle in r.",
        samples=(
            Sample(((3, 2),), {"full_matrices": False}, low=0.2, high=2.0),
            Sample(((2, 2, 2),), {"full_matrices": False}, low=0.2, high=2.0),
            Sample(((3, 2),), {"full_matrices": True}, low=0.2, high=2.0, gradient=()),
            Sample(((2, 3),), {"full_matrices": False}, low=0.2, high=2.0),
        ),
        attrs=("full_matrices",),
    )
)  # fmt: skip


class Qr(NamedTuple):
    """The factors of a matrix."""

    q: Tensor
    r: Tensor


@deferrable
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """input = q @ r, q with orthonormal columns, r upper triangular."""
    x = convert_to_tensor(input)
    check_kind(QR, x.dtype)
    return Qr(*apply(QR, (x,), {"full_matrices": bool(full_matrices)}))


# --- SVD -----------------------------------------------------------------------------------------------------------


def _infer_svd(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    need_matrices(x.shape, False)
    if x.shape is None:
        return (x, x, x)[: 3 if attrs["compute_uv"] else 1]
    *batch, rows, columns = x.shape
    inner = _least(rows, columns)
    s = TensorType(x.dtype.real_dtype, (*batch, inner))
    if not attrs["compute_uv"]:
        return (s,)
    full = attrs["full_matrices"]
    u = TensorType(x.dtype, (*batch, rows, rows if full else inner))
    return s, u, TensorType(x.dtype, (*batch, columns, columns if full else inner))


def _svd_kernel(x: Any, full_matrices: bool, compute_uv: bool) -> tuple:
    if not compute_uv:
        return (np.linalg.svd(x, compute_uv=False),)
    u, s, vt = np.linalg.svd(x, full_matrices)
    return s, u, np.conj(np.swapaxes(vt, -1, -2))


def gaps(values: Any) -> Any:
    """1 / (v[j] - v[i]) for i != j, 0 on the diagonal and between equal values."""
    rank = len(values._shape)
    gap = call("expand_dims", values, axis=(rank - 1,)) - call("expand_dims", values, axis=(rank,))
    none = equal(gap, 0)
    one = convert_to_tensor(1, gap.dtype)
    return where(none, convert_to_tensor(0, gap.dtype), one / where(none, one, gap))


def _grad_svd(op: Any, ds: Any, du: Any = None, dv: Any = None) -> Sequence[Any]:
    """Townsend, "Differentiating the singular value decomposition" (2016), for reduced factors."""
    x = op.inputs[0]
    if not op.attrs["compute_uv"]:
        s, u, v = call("svd", x, full_matrices=False, compute_uv=True)
        ds = call("cast", ds, dtype=x.dtype)
        return (matmul(u * call("expand_dims", ds, axis=(len(s._shape) - 1,)), v, adjoint_b=True),)
    s, u, v = op.outputs
    rank = len(s._shape)
    middle = diag(call("cast", _zero_if_none(ds, s), dtype=x.dtype))
    factor = call("cast", gaps(s * s), dtype=x.dtype)
    s = call("cast", s, dtype=x.dtype)
    row = call("expand_dims", s, axis=(rank - 1,))
    column = call("expand_dims", s, axis=(rank,))
    u, du, outside_u = _inside(u, du, dims(s)[-1])
    v, dv, outside_v = _inside(v, dv, dims(s)[-1])
    extra: Any = 0
    if du is not None:
        skew = matmul(u, du, adjoint_a=True)
        middle = middle + (factor * (skew - adjoint(skew))) * row
        if x.dtype.is_complex:
            # Each pair of singular vectors may turn together; half of that turn is counted on either side.
            middle = middle + diag((diag_part(skew) - conj(diag_part(skew))) * 0.5 / s)
        extra = extra + matmul(outside_u / row, v, adjoint_b=True)
    if dv is not None:
        skew = matmul(v, dv, adjoint_a=True)
        middle = middle + column * (factor * (skew - adjoint(skew)))
        extra = extra + matmul(u / row, outside_v, adjoint_b=True)
    return (matmul(matmul(u, middle), v, adjoint_b=True) + extra,)


def _inside(basis: Any, cotangent: Any, count: Any) -> tuple:
    """The first `count` columns of a basis and of its cotangent, and how the cotangent moves them out of their span.

    Further columns (of full matrices) span what these leave, in a basis that the factorisation is free to choose:
    their gradient is that of functions of the span.
    """
    own, rest = basis[..., :, :count], basis[..., :, count:]
    if cotangent is None:
        return own, None, None
    first, further = cotangent[..., :, :count], cotangent[..., :, count:]
    outside = first - matmul(own, matmul(own, first, adjoint_a=True))
    if isinstance(count, int) and dims(basis)[-1] == count:
        return own, first, outside
    return own, first, outside - matmul(rest, matmul(further, own, adjoint_a=True))


SVD = register(
    OpDef(
        "svd", _infer_svd, wide(_svd_kernel), grad=_grad_svd, multiple=True, kinds="fc", complex_rule=True,
        doc="Singular values in descending order, and the left and right singular vectors as columns.",
        samples=(
            Sample(((3, 2),), {"full_matrices": False, "compute_uv": True}, low=0.2, high=2.0),
            Sample(((2, 2, 3),), {"full_matrices": False, "compute_uv": True}, low=0.2, high=2.0),
            Sample(((3, 2),), {"full_matrices": True, "compute_uv": True}, low=0.2, high=2.0, gradient=()),
            Sample(((2, 3, 2),), {"full_matrices": False, "compute_uv": False}, low=0.2, high=2.0),
        ),
        attrs=("compute_uv", "full_matrices",),
    )
)  # fmt: skip


@deferrable
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """s, u, v with tensor = u @ diag(s) @ v.T (v.H for complex numbers); only s without `compute_uv`."""
    x = convert_to_tensor(tensor)
    check_kind(SVD, x.dtype)
    found = apply(SVD, (x,), {"full_matrices": bool(full_matrices), "compute_uv": bool(compute_uv)})
    return found if compute_uv else found[0]


# --- symmetric eigenvalues -----------------------------------------------------------------------------------------


def _infer_eigh(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    need_matrices(x.shape, True)
    values = TensorType(x.dtype, None if x.shape is None else x.shape[:-1])
    return (values, x) if attrs["compute_v"] else (values,)


def _eigh_kernel(x: Any, compute_v: bool) -> tuple:
    if not compute_v:
        return (np.linalg.eigvalsh(x).astype(x.dtype),)
    values, vectors = np.linalg.eigh(x)
    return values.astype(x.dtype), vectors  # TensorFlow's dtype: that of the matrix, also for complex ones


def _grad_eigh(op: Any, de: Any, dv: Any = None) -> Sequence[Any]:
    if op.attrs["compute_v"]:
        values, vectors = op.outputs
    else:
        values, vectors = call("self_adjoint_eig", op.inputs[0], compute_v=True)
    de = _zero_if_none(de, values)
    # Eigenvalues are real, so that of a complex cotangent only the real part counts.
    middle = diag(call("cast", real(de), dtype=de.dtype) if de.dtype.is_complex else de)
    if dv is not None:
        middle = middle + gaps(values) * matmul(vectors, dv, adjoint_a=True)
    full = matmul(matmul(vectors, middle), vectors, adjoint_b=True)
    # Only the lower triangle of the operand is read, so all of the gradient goes there.
    lower = triangle(full + adjoint(full), True)
    line = diag_part(full)
    return (lower - diag(call("cast", real(line), dtype=line.dtype) if line.dtype.is_complex else line),)


EIGH = register(
    OpDef(
        "self_adjoint_eig", _infer_eigh, wide(_eigh_kernel), grad=_grad_eigh, multiple=True, kinds="fc",
        complex_rule=True,
        doc="Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices (the lower triangle).",
        samples=(
            Sample(((3, 3),), {"compute_v": True}, low=0.2, high=2.0),
            Sample(((2, 2, 2),), {"compute_v": True}, low=0.2, high=2.0),
            Sample(((2, 3, 3),), {"compute_v": False}, low=0.2, high=2.0),
        ),
        attrs=("compute_v",),
    )
)  # fmt: skip


@deferrable
def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices (by their lower triangle)."""
    x = convert_to_tensor(tensor)
    check_kind(EIGH, x.dtype)
    return apply(EIGH, (x,), {"compute_v": True})


@deferrable
def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues of symmetric matrices, in ascending order."""
    x = convert_to_tensor(tensor)
    check_kind(EIGH, x.dtype)
    return apply(EIGH, (x,), {"compute_v": False})[0]


# --- functions of matrices -----------------------------------------------------------------------------------------


def _infer_square(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_matrices(inputs[0].shape, True)
    return (inputs[0],)


def _expm_kernel(x: Any) -> Any:
    return importlib.import_module("scipy.linalg").expm(x).astype(x.dtype) if x.size else x


def _grad_expm(op: Any, dy: Any) -> Sequence[Any]:
    """The adjoint Fréchet derivative, read off the exponential of a block matrix.

    Higham, "Functions of Matrices" (2008), section 10.6: the corner of exp([[A, E], [0, A]]) is the derivative along E.
    """
    a = adjoint(op.inputs[0])
    size = dims(a)[-1]
    top = concat([a, dy], -1)
    bottom = concat([call("zeros_like", a), a], -1)
    return (call("matrix_exponential", concat([top, bottom], -2))[..., :size, size:],)


EXPM = register(
    OpDef(
        "matrix_exponential", _infer_square, wide(_expm_kernel, _infer_square), grad=_grad_expm, kinds="fc",
        complex_rule=True, doc="The exponential of square matrices.",
        samples=(Sample(((2, 2),), low=-1.0, high=1.0), Sample(((2, 3, 3),), low=-1.0, high=1.0)),
    )
)  # fmt: skip


@deferrable
def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix exponential of square matrices."""
    x = convert_to_tensor(input)
    check_kind(EXPM, x.dtype)
    return apply(EXPM, (x,))


def _sqrtm_kernel(x: Any) -> Any:
    need_matrices(x.shape, True)
    if not x.size:
        return x
    function = importlib.import_module("scipy.linalg").sqrtm
    flat = [function(m) for m in x.reshape(-1, *x.shape[-2:])]
    if x.dtype.kind != "c":
        flat = [np.real_if_close(m) for m in flat]
    if x.dtype.kind != "c" and any(np.iscomplexobj(m) for m in flat):
        raise errors.InvalidArgumentError("The matrix has no real square root.")
    return np.array(flat).reshape(x.shape).astype(x.dtype)


def _grad_sqrtm(op: Any, dy: Any) -> Sequence[Any]:
    # From dX @ X + X @ dX = dA.
    root = adjoint(op.outputs[0])
    return (call("sylvester", root, root, dy),)


SQRTM = register(
    OpDef(
        "matrix_square_root", _infer_square, wide(_sqrtm_kernel), grad=_grad_sqrtm, kinds="fc", complex_rule=True,
        doc="The square root of square matrices.",
        samples=(Sample(((2, 2),), fixed={0: np.array([[4.0, 1.0], [1.0, 3.0]])}), Sample(((2, 1, 1),), low=0.5)),
    )
)  # fmt: skip


def _sylvester_kernel(a: Any, b: Any, c: Any) -> Any:
    if not c.size:
        return np.zeros_like(c)
    function = importlib.import_module("scipy.linalg").solve_sylvester
    parts = [m.reshape(-1, *m.shape[-2:]) for m in (a, b, c)]
    return np.array([function(*matrices) for matrices in zip(*parts)]).reshape(c.shape).astype(c.dtype)


def _grad_sylvester(op: Any, dy: Any) -> Sequence[Any]:
    a, b, _ = op.inputs
    dc = call("sylvester", adjoint(a), adjoint(b), dy)
    x = adjoint(op.outputs[0])
    return -matmul(dc, x), -matmul(x, dc), dc


register(
    OpDef(
        "sylvester", lambda inputs, attrs: (inputs[2],), wide(_sylvester_kernel), grad=_grad_sylvester, kinds="fc",
        complex_rule=True, doc="The matrix X that satisfies A @ X + X @ B = C.",
        samples=(Sample(((2, 2), (3, 3), (2, 3)), low=0.5), Sample(((2, 1, 1),) * 3, low=0.5)),
    )
)  # fmt: skip


@deferrable
def sqrtm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal square root of square matrices: X with X @ X = input.

    Raises InvalidArgumentError if it isn't real.
    """
    x = convert_to_tensor(input)
    check_kind(SQRTM, x.dtype)
    return apply(SQRTM, (x,))


@deferrable
def matrix_rank(a: TensorLike, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """How many singular values are above `tol` (default: rounding errors of the largest), int32."""
    s = svd(a, compute_uv=False)
    if tol is None:
        sizes = [call("cast", convert_to_tensor(d), dtype=s.dtype) for d in dims(convert_to_tensor(a))[-2:]]
        eps = float(np.finfo(s.dtype.np).eps)
        tol = reduce_max(s, -1, keepdims=True) * call("maximum", *sizes) * eps
    return reduce_sum(call("cast", s > tol, dtype=dtypes.int32), -1)


@deferrable
def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` on its diagonal."""
    x = convert_to_tensor(diagonal)
    if len(x._shape or ()) == 1:
        return diag(x)
    sizes = _known_sizes(x)
    flat = diag(call("reshape", x, shape=(-1,)))
    return call("reshape", flat, shape=(*sizes, *sizes))


@deferrable
def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of even rank whose two halves have the same shape."""
    x = convert_to_tensor(input)
    sizes = _known_sizes(x)
    half = sizes[: len(sizes) // 2]
    if len(sizes) % 2 or half != sizes[len(half) :]:
        raise errors.InvalidArgumentError(f"Invalid shape for a diagonal: {sizes} [Op:DiagPart]")
    count = int(np.prod(half))
    return call("reshape", diag_part(call("reshape", x, shape=(count, count))), shape=tuple(half))


def _known_sizes(x: Tensor) -> list[int]:
    sizes = [d for d in x.shape.as_list() if d is not None]
    if len(sizes) < len(x.shape):
        raise ValueError(f"A diagonal of a tensor needs a known shape, got {x.shape}")
    return sizes
