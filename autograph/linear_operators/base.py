"""`LinearOperator`: a batch of matrices by what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import autograph as ag
from autograph.module import Module
from runtime.shapes import TensorShape
from runtime.type_specs import CompositeTensor, TypeSpec, VariableSpec, type_spec_from_value
from runtime.variable import Variable

# What the defaults make operators with: set where that is.
MAKERS: dict[str, Any] = {}


def makes(role: str) -> Callable[[Any], Any]:
    """A decorator of what the defaults make operators with."""

    def keep(maker: Any) -> Any:
        MAKERS[role] = maker
        return maker

    return keep


HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


class LinearOperatorSpec(TypeSpec):
    """Describes operators of a class by the specs of what they are made of, and the constructor's other arguments."""

    __slots__ = ("_operator", "_specs", "_static")

    def __init__(self, operator: type, specs: Mapping[str, Any], static: Mapping[str, Any]) -> None:
        self._operator, self._specs, self._static = operator, dict(specs), dict(static)

    @property
    def value_type(self) -> Any:
        return self._operator

    def _serialize(self) -> tuple:
        return self._operator, self._specs, self._static

    @property
    def _component_specs(self) -> Any:
        return self._specs

    def _to_components(self, value: Any) -> Any:
        return {name: value._argument(name) for name in self._specs}

    def _from_components(self, components: Any) -> Any:
        return self._operator(**components, **self._static)


def _spec_of(value: Any) -> Any:
    """The spec of an argument made of tensors; None for another one."""
    if isinstance(value, (list, tuple)) and value:
        specs = [_spec_of(each) for each in value]
        return None if None in specs else specs
    if isinstance(value, Variable):
        return VariableSpec.from_value(value)
    return type_spec_from_value(value) if isinstance(value, CompositeTensor) or ag.is_tensor(value) else None


def reference(value: Any, dtype: Any = None) -> Any:
    """A tensor; what stands for one and may have another value later, such as a variable, is kept as it is."""
    stands = isinstance(value, Module) and hasattr(value, "dtype") and hasattr(value, "shape")
    return value if stands or ag.is_tensor(value) else ag.convert_to_tensor(value, dtype)


def last_two_swapped(x: Any, conjugate: bool = True) -> Any:
    """The adjoints (or transposes) of a batch of matrices."""
    return ag.linalg.adjoint(x) if conjugate else ag.linalg.matrix_transpose(x)


def conjugated(x: Any) -> Any:
    """The complex conjugate; a real tensor itself."""
    return ag.math.conj(x) if x.dtype.is_complex else ag.convert_to_tensor(x)


def with_common_batch(*matrices: Any) -> list[Any]:
    """Matrices, or batches of them, broadcast to the same batch."""
    tensors = [ag.convert_to_tensor(each) for each in matrices]
    batches = [each.shape[:-2] for each in tensors]
    if all(batch.is_fully_defined() and batch == batches[0] for batch in batches):
        return tensors
    shape = ag.shape(tensors[0])[:-2]
    for each in tensors[1:]:
        shape = ag.broadcast_dynamic_shape(shape, ag.shape(each)[:-2])
    return [ag.broadcast_to(each, ag.concat([shape, ag.shape(each)[-2:]], 0)) for each in tensors]


class LinearOperator(Module, CompositeTensor):
    """A batch of matrices of shape `[..., M, N]`. Subclasses say how they multiply, solve and so on.

    A subclass defines `_shape`, `_shape_tensor` and `_matmul(x, adjoint=False, adjoint_arg=False)`, and whatever of
    `_solve`, `_determinant`, `_log_abs_determinant`, `_diag_part`, `_trace`, `_to_dense`, `_add_to_tensor` it knows a
    cheaper way for than by the dense matrix.

    The hints (None: not known) say what is true of every matrix; nothing checks them but the methods `assert_...`.
    Raises ValueError for hints that contradict each other.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if is_positive_definite and is_non_singular is False:
            raise ValueError("A positive definite matrix is always non-singular.")
        if is_positive_definite:
            is_non_singular = True
        if (is_non_singular or is_self_adjoint) and is_square is False:
            raise ValueError("A non-singular or self-adjoint operator is always square.")
        if is_non_singular or is_self_adjoint:
            is_square = True
        self._is_square_set_or_implied_by_hints = is_square
        self._dtype = None if dtype is None else ag.as_dtype(dtype)
        self._is_non_singular, self._is_self_adjoint = is_non_singular, is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._parameters = {key: value for key, value in (parameters or {}).items() if not key.startswith("__")}
        self._parameters.pop("self", None)
        super().__init__(name=name or type(self).__name__)

    # --- what it is made of ------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return dict(self._parameters)

    def _argument(self, name: str) -> Any:
        for attribute in (f"_{name}", name):
            if attribute in self.__dict__:
                return self.__dict__[attribute]
        return self._parameters[name]

    @property
    def _type_spec(self) -> Any:
        specs, static = {}, {}
        for name, given in self._parameters.items():
            value = given if name in HINTS or name == "name" or given is None else self._argument(name)
            spec = None if value is None else _spec_of(value)
            if spec is None:
                static[name] = value
            else:
                specs[name] = spec
        return LinearOperatorSpec(type(self), specs, static)

    # The same as `_composite_tensor_fields` of TensorFlow's, which subclasses in libraries define.
    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ()

    @property
    def _composite_tensor_prefer_static_fields(self) -> tuple[str, ...]:
        return ()

    def _convert_variables_to_tensors(self) -> Any:
        return self._type_spec._from_components(
            ag.nest.map_structure(ag.convert_to_tensor, self._type_spec._to_components(self), expand_composites=True)
        )

    def __getitem__(self, slices: Any) -> LinearOperator:
        """The operators of a part of the batch. Raises ValueError where a matrix would be cut."""
        arguments = {name: self._argument(name) for name in self._parameters}
        for name, ndims in self._experimental_parameter_ndims_to_matrix_ndims.items():
            value = arguments.get(name)
            if value is not None:
                arguments[name] = _sliced(value, ndims, slices, self.batch_shape_tensor())
        return type(self)(**arguments)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        """How many of the dimensions of each argument belong to one matrix."""
        raise NotImplementedError(f"{type(self).__name__} can't be sliced")

    # --- facts ---------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The dtype of the matrices."""
        return self._dtype

    @property
    def is_non_singular(self) -> bool | None:
        """Whether every matrix has an inverse."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether every matrix is its own adjoint."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether the real part of `x^H A x` is positive for all x but zero."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether the matrices have as many rows as columns."""
        rows, columns = self.range_dimension, self.domain_dimension
        automatic = None if rows is None or columns is None else rows == columns
        hint = self._is_square_set_or_implied_by_hints
        if hint is not None and automatic is not None and hint != automatic:
            raise ValueError(f"The hint is_square={hint} is wrong: the shape is {self.shape}")
        return automatic if hint is None else hint

    def _shape(self) -> Any:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Any:
        raise NotImplementedError("_shape_tensor is not implemented.")

    @property
    def shape(self) -> TensorShape:
        """The shape `[..., M, N]` of the batch of matrices, as far as it is known."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without the last two dimensions."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The rank of the batch of matrices."""
        return self.shape.rank

    @property
    def domain_dimension(self) -> int | None:
        """N, the number of columns."""
        return None if self.shape.rank is None else self.shape[-1]

    @property
    def range_dimension(self) -> int | None:
        """M, the number of rows."""
        return None if self.shape.rank is None else self.shape[-2]

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """The shape when the program runs, int32."""
        known = self.shape
        return (
            ag.constant([size or 0 for size in known], ag.int32) if known.is_fully_defined() else self._shape_tensor()
        )

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape without the last two dimensions, int32."""
        return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """The rank, int32."""
        return ag.size(self.shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """N, int32."""
        return ag.constant(self.domain_dimension) if self.domain_dimension is not None else self.shape_tensor()[-1]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """M, int32."""
        return ag.constant(self.range_dimension) if self.range_dimension is not None else self.shape_tensor()[-2]

    def _domain_dimension_tensor(self) -> Any:
        return self.domain_dimension_tensor()

    def _range_dimension_tensor(self) -> Any:
        return self.range_dimension_tensor()

    def _batch_shape_tensor(self) -> Any:
        return self.batch_shape_tensor()

    def _check_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{what} is not implemented for non-square matrices: {self.shape}")

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # --- assertions ----------------------------------------------------------------------------------------------

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails where a matrix is singular, as far as its dtype's precision tells."""
        return self._assert_non_singular()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails where a matrix isn't positive definite."""
        return self._assert_positive_definite()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails where a matrix isn't its own adjoint."""
        return self._assert_self_adjoint()

    def _assert_non_singular(self) -> Any:
        limit = 1 / ag.experimental.numpy.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
        return ag.debugging.assert_less(
            self.cond(), ag.cast(limit, self.dtype.real_dtype), message="Singular matrix up to precision epsilon."
        )

    def _assert_positive_definite(self) -> Any:
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is implemented for self-adjoint operators only")
        return ag.debugging.assert_all_finite(
            ag.linalg.cholesky(self.to_dense()), "Matrix was not positive definite"
        )  # fmt: skip

    def _assert_self_adjoint(self) -> Any:
        dense = self.to_dense()
        return ag.debugging.assert_equal(
            dense, ag.linalg.adjoint(dense), message="Matrix was not equal to its adjoint."
        )  # fmt: skip

    # --- products and solutions ----------------------------------------------------------------------------------

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no _matmul")

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with a batch of matrices `[..., N, R]`, or with another operator, which gives an operator.

        adjoint, adjoint_arg: by the adjoint of this operator, of the argument.
        Raises ValueError for operators whose dimensions don't fit.
        """
        if isinstance(x, LinearOperator):
            left, right = (self.adjoint() if adjoint else self), (x.adjoint() if adjoint_arg else x)
            _check_fit(left.domain_dimension, right.range_dimension, left, right)
            return left._linop_matmul(left, right)
        x = self._operand(x)
        _check_fit(
            self.range_dimension if adjoint else self.domain_dimension, x.shape[-1 if adjoint_arg else -2], self, x
        )
        return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def _operand(self, x: Any) -> Any:
        x = ag.convert_to_tensor(x, dtype_hint=self.dtype) if not ag.is_tensor(x) else ag.convert_to_tensor(x)
        if self.dtype is not None and x.dtype != self.dtype:
            raise TypeError(f"Input had dtype {x.dtype.name}, but the operator's is {self.dtype.name}")
        return x

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return ag.squeeze(self.matmul(x[..., None], adjoint=adjoint), axis=-1)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product with a batch of vectors `[..., N]`."""
        x = self._operand(x)
        _check_fit(self.range_dimension if adjoint else self.domain_dimension, x.shape[-1], self, x)
        return self._matvec(x, adjoint=adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        self._check_square("solve")
        rhs = last_two_swapped(rhs) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return ag.linalg.cholesky_solve(*with_common_batch(ag.linalg.cholesky(self.to_dense()), rhs))
        dense, rhs = with_common_batch(self.to_dense(), rhs)
        return ag.linalg.solve(dense, rhs, adjoint=adjoint)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X with A X = rhs, a batch of matrices `[..., M, R]` or an operator.

        Raises NotImplementedError for operators that aren't square or whose hint says that they are singular.
        """
        if self.is_non_singular is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to be singular.")
        self._check_square("solve")
        if isinstance(rhs, LinearOperator):
            left, right = (self.adjoint() if adjoint else self), (rhs.adjoint() if adjoint_arg else rhs)
            _check_fit(left.range_dimension, right.range_dimension, left, right)
            return left._linop_solve(left, right)
        rhs = self._operand(rhs)
        _check_fit(self.range_dimension, rhs.shape[-1 if adjoint_arg else -2], self, rhs)
        return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return ag.squeeze(self.solve(rhs[..., None], adjoint=adjoint), axis=-1)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs, a batch of vectors `[..., M]`."""
        return self._solvevec(self._operand(rhs), adjoint=adjoint)

    # --- numbers and matrices --------------------------------------------------------------------------------------

    def _determinant(self) -> Any:
        if self._can_use_cholesky():
            return ag.exp(self.log_abs_determinant())
        return ag.linalg.det(self.to_dense())

    def determinant(self, name: str = "det") -> Any:
        """The determinants, `[...]`. Raises NotImplementedError for operators that aren't square."""
        self._check_square("determinant")
        return self._determinant()

    def _log_abs_determinant(self) -> Any:
        if self._can_use_cholesky():
            diagonal = ag.linalg.diag_part(ag.linalg.cholesky(self.to_dense()))
            return 2 * ag.reduce_sum(ag.math.log(diagonal), axis=-1)
        return ag.linalg.slogdet(self.to_dense())[1]

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithms of the determinants' absolute values, `[...]`.

        Raises NotImplementedError for operators that aren't square.
        """
        self._check_square("log_abs_determinant")
        return self._log_abs_determinant()

    def _to_dense(self) -> Any:
        columns = self.domain_dimension_tensor()
        return self.matmul(ag.eye(columns, batch_shape=self.batch_shape_tensor(), dtype=self.dtype))

    def to_dense(self, name: str = "to_dense") -> Any:
        """The matrices, `[..., M, N]`."""
        return self._to_dense()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        dense = self.to_dense()
        return dense if dtype is None else ag.convert_to_tensor(dense, dtype)

    def _diag_part(self) -> Any:
        return ag.linalg.diag_part(self.to_dense())

    def diag_part(self, name: str = "diag_part") -> Any:
        """The diagonals, `[..., min(M, N)]`."""
        return self._diag_part()

    def _trace(self) -> Any:
        return ag.reduce_sum(self.diag_part(), axis=-1)

    def trace(self, name: str = "trace") -> Any:
        """The sums of the diagonals, `[...]`."""
        return self._trace()

    def _add_to_tensor(self, x: Any) -> Any:
        return self.to_dense() + x

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """The matrices added to a tensor."""
        return self._add_to_tensor(self._operand(x))

    def _eigvals(self) -> Any:
        return ag.linalg.eigvalsh(self.to_dense())

    def eigvals(self, name: str = "eigvals") -> Any:
        """The eigenvalues, `[..., N]`. Raises NotImplementedError unless the operator is self-adjoint."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def _cond(self) -> Any:
        if self.is_self_adjoint:
            values = ag.abs(self.eigvals())
        else:
            values = ag.linalg.svd(self.to_dense(), compute_uv=False)
        return ag.reduce_max(values, axis=-1) / ag.reduce_min(values, axis=-1)

    def cond(self, name: str = "cond") -> Any:
        """The ratios of the largest to the smallest singular value, `[...]`."""
        return self._cond()

    # --- operators of operators --------------------------------------------------------------------------------------

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The adjoint, as an operator."""
        return self if self.is_self_adjoint is True else self._linop_adjoint()

    @property
    def H(self) -> LinearOperator:
        """The adjoint, as an operator."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The inverse, as an operator. Raises ValueError for operators that are singular or not square."""
        if self.is_square is False:
            raise ValueError(f"Cannot take the inverse: this operator is not square. Operator: {self!r}")
        if self.is_non_singular is False:
            raise ValueError(f"Cannot take the inverse: this operator is not non singular. Operator: {self!r}")
        return self._linop_inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The lower triangular L with L L^H = A, as an operator.

        Raises ValueError unless the operator is known to be positive definite and self-adjoint.
        """
        if not self._can_use_cholesky():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix according to "
                f"its hints. Operator: {self!r}"
            )
        return self._linop_cholesky()

    def _linop_adjoint(self) -> LinearOperator:
        return MAKERS["adjoint"](self, **hints_of(self))

    def _linop_inverse(self) -> LinearOperator:
        return MAKERS["inverse"](self, **hints_of(self))

    def _linop_cholesky(self) -> LinearOperator:
        return MAKERS["triangle"](
            ag.linalg.cholesky(self.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
        )

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        return MAKERS["product"](left_operator, right_operator)

    def _linop_solve(self, left_operator: Any, right_operator: Any) -> LinearOperator:
        return left_operator.inverse().matmul(right_operator)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of shape {self.shape} and dtype {self.dtype}>"


def _check_fit(one: int | None, other: int | None, left: Any, right: Any) -> None:
    if one is not None and other is not None and one != other:
        raise ValueError(f"Dimensions are not compatible: {one} and {other}, of {left!r} and {right!r}")


def _sliced(value: Any, ndims: Any, slices: Any, batch: Any) -> Any:
    if isinstance(value, LinearOperator):
        return value[slices]
    if isinstance(value, (list, tuple)):
        return [_sliced(each, ndims, slices, batch) for each in value]
    keys = slices if isinstance(slices, tuple) else (slices,)
    value = ag.convert_to_tensor(value)
    own = ag.shape(value)
    count = len(own.shape) and own.shape[0]
    whole = ag.broadcast_to(value, ag.concat([batch, own[count - ndims :]], 0))
    rest: Sequence[Any] = (slice(None),) * ndims
    return whole[(*keys, *rest)] if Ellipsis in keys else whole[(*keys, Ellipsis, *rest)]


def hints_of(operator: LinearOperator) -> dict[str, Any]:
    """The hints of an operator, as arguments of a constructor."""
    return {hint: getattr(operator, hint) for hint in HINTS}
