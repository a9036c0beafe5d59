"""`ag.interop.scipy`: functions of ours for SciPy's solvers, with the derivatives that these ask for.

Each value, gradient, Jacobian and Hessian is one call of a compiled function on SciPy's array, which isn't copied.
`low_level` gives a C function for integrals and filters, which SciPy calls without Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy

from autograph.c_library import load
from autograph.function.polymorphic import Function, python_function_of, traced
from autograph.interop.programs import owned
from autograph.operators.calls import converted_argument
from autograph.transforms import grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vmap
from runtime.dtypes import as_dtype, float64
from runtime.ops.convert import convert_to_tensor
from runtime.signatures import signature_of
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, held_by

__all__ = ["Objective", "System", "integrand", "objective", "ode", "system", "window_function"]


class _Compiled:
    """What SciPy calls: compiled functions on NumPy's arrays."""

    def __init__(self, function: Callable[..., Any], position: int) -> None:
        """position: of the argument that derivatives are by."""
        self._function = function
        self._position = position
        self._name = getattr(function, "__name__", type(function).__name__)
        self._traced: dict[str, Function] = {}

    def _call(self, kind: str, run: Callable[..., Any], *args: Any) -> Any:
        """Runs the compiled form of `run`, which is remembered as `kind`."""
        found = self._traced.get(kind)
        if found is None:
            name = f"{self._name}_{kind}"
            found = self._traced.setdefault(kind, Function(run, jit_compile=True, autograph=False, name=name))
        given = [_tensor(each) for each in args]
        result = found(*given)
        taken = [held_by(each) for each in given]
        if isinstance(result, tuple):
            return tuple([owned(held_by(each), taken) for each in result])
        return owned(held_by(result), taken)


def _tensor(value: Any) -> EagerTensor:
    """An argument: numbers and arrays of numbers as float64, others as they are."""
    array = np.asarray(value)
    if array.dtype.kind in "iu" and not isinstance(value, np.ndarray):
        array = array.astype(np.float64)
    return EagerTensor(np.ascontiguousarray(array) if array.ndim else array[()], as_dtype(array.dtype))


class Objective(_Compiled):
    """A scalar function with its derivatives, for `scipy.optimize.minimize` and its kin; `objective` makes it.

    Each method takes a vector `x` of n numbers, and the arguments that SciPy passes on (`args=`).
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, 0)

    def _scalar(self, x: Any, *args: Any) -> Any:
        result = convert_to_tensor(converted_argument(self._function)(x, *args))
        if result.shape.rank != 0:
            raise ValueError(
                f"an objective gives one number, but {self._name} gives shape {result.shape} for x of shape {x.shape}. "
                "Sum it up (ag.reduce_sum), or use ag.interop.scipy.system for root and least_squares"
            )
        return result

    def fun(self, x: Any, *args: Any) -> float:
        """The value."""
        return float(self._call("value", self._scalar, x, *args))

    def jac(self, x: Any, *args: Any) -> np.ndarray:
        """The gradient, of shape [n]."""
        return self._call("gradient", grad(self._scalar), x, *args)

    def fun_and_jac(self, x: Any, *args: Any) -> tuple[float, np.ndarray]:
        """Both, in one call: `minimize(o.fun_and_jac, x0, jac=True)`."""
        value, gradient = self._call("value_and_gradient", value_and_grad(self._scalar), x, *args)
        return float(value), gradient

    def hess(self, x: Any, *args: Any) -> np.ndarray:
        """The Hessian, of shape [n, n]."""
        return self._call("hessian", hessian(self._scalar), x, *args)

    def hessp(self, x: Any, p: Any, *args: Any) -> np.ndarray:
        """The product of the Hessian with `p`, of shape [n], for the cost of a few gradients."""

        def product(x: Any, p: Any, *args: Any) -> Any:
            return hvp(lambda x: self._scalar(x, *args), (x,), (p,))

        found = self._call("hessian_product", product, x, p, *args)
        return found[0] if isinstance(found, tuple) else found


class System(_Compiled):
    """A function from vectors to vectors with its Jacobian, for `root`, `least_squares` and `solve_ivp`; `system` and
    `ode` make it.

    Each method takes what the function takes: a vector `x` of n numbers, after the time for `ode`, and the arguments
    that SciPy passes on (`args=`). The function gives a vector of m numbers.
    """

    def __init__(self, function: Callable[..., Any], position: int, sparsity: Any) -> None:
        super().__init__(function, position)
        self._pattern = None if sparsity is None else _Pattern(sparsity)

    def _vector(self, *args: Any) -> Any:
        result = convert_to_tensor(converted_argument(self._function)(*args))
        if result.shape.rank != 1:
            raise ValueError(
                f"a system gives a vector, but {self._name} gives shape {result.shape} for x of shape "
                f"{args[self._position].shape}. Make it one: ag.reshape(y, [-1]), ag.stack([...])"
            )
        return result

    def fun(self, *args: Any) -> np.ndarray:
        """The value, of shape [m]."""
        return self._call("value", self._vector, *args)

    def jac(self, *args: Any) -> Any:
        """The Jacobian, of shape [m, n]: an array, or a `scipy.sparse.csr_array` if the sparsity is known."""
        return self._jacobian(args)[1]

    def fun_and_jac(self, *args: Any) -> tuple[np.ndarray, Any]:
        """Both, in one call: `root(s.fun_and_jac, x0, jac=True)`."""
        return self._jacobian(args)

    def _jacobian(self, args: Sequence[Any]) -> tuple[np.ndarray, Any]:
        pattern, n = self._pattern, np.size(args[self._position])
        if pattern is None:
            return self._call("jacobian", self._dense, *args)
        pattern.check(self._name, n)
        value, products = self._call("sparse_jacobian", self._products, *args)
        return value, pattern.matrix(self._name, products)

    def _by_argument(self, args: Sequence[Any]) -> Callable[[Any], Any]:
        before, after = args[: self._position], args[self._position + 1 :]
        return lambda x: self._vector(*before, x, *after)

    def _dense(self, *args: Any) -> tuple[Any, Any]:
        value, x = self._vector(*args), args[self._position]
        # Rows by reverse mode, columns by forward mode: the fewer.
        derivative = jacrev if (value.shape[0] or 0) < (x.shape[0] or 0) else jacfwd
        return value, derivative(self._by_argument(args))(x)

    def _products(self, *args: Any) -> tuple[Any, Any]:
        x, run = args[self._position], self._by_argument(args)
        assert self._pattern is not None
        seeds = convert_to_tensor(self._pattern.seeds, x.dtype)
        return run(x), vmap(lambda seed: jvp(run, (x,), (seed,))[1])(seeds)


class _Pattern:
    """Where a Jacobian may have other numbers than zero, and its columns in groups that share no row: a product with
    the sum of a group's unit vectors gives all its columns (Curtis, Powell, Reid 1974)."""

    def __init__(self, sparsity: Any) -> None:
        from scipy.sparse import coo_array

        found = coo_array(sparsity)
        if len(found.shape) != 2:
            raise ValueError(f"the sparsity is a matrix with a row for each result, not of shape {found.shape}")
        self.shape = found.shape
        kept = found.data != 0
        self._rows, self._columns = found.row[kept], found.col[kept]
        self._groups = self._colour()
        self.seeds = np.zeros((self._groups.max(initial=0) + 1, self.shape[1]))
        self.seeds[self._groups, np.arange(self.shape[1])] = 1.0

    def _colour(self) -> np.ndarray:
        """The group of each column: the first in which no column has a row in common with it."""
        order = np.argsort(self._columns, kind="stable")
        rows = np.split(self._rows[order], np.cumsum(np.bincount(self._columns, minlength=self.shape[1]))[:-1])
        groups, taken = np.zeros(self.shape[1], np.intp), list[np.ndarray]()
        for column in sorted(range(self.shape[1]), key=lambda column: -len(rows[column])):
            fits = [group for group, used in enumerate(taken) if not used[rows[column]].any()]
            if not fits:
                taken.append(np.zeros(self.shape[0], bool))
            group = fits[0] if fits else len(taken) - 1
            taken[group][rows[column]] = True
            groups[column] = group
        return groups

    def check(self, name: str, n: int) -> None:
        if n != self.shape[1]:
            raise ValueError(f"the sparsity of {name} has {self.shape[1]} columns, but x has {n} numbers")

    def matrix(self, name: str, products: np.ndarray) -> Any:
        """The Jacobian, from its products with the seeds."""
        from scipy.sparse import csr_array

        if products.shape[1] != self.shape[0]:
            raise ValueError(
                f"the sparsity of {name} has {self.shape[0]} rows, but its value has {products.shape[1]} numbers"
            )
        data = products[self._groups[self._columns], self._rows]
        return csr_array((data, (self._rows, self._columns)), shape=self.shape)


def objective(function: Callable[..., Any]) -> Objective:
    """The methods that `scipy.optimize.minimize` asks for, of a function from a vector to a number.

    function: takes a float64 tensor of shape [n], and what SciPy passes on as `args`, whose numbers become float64
    tensors; gives a scalar. Its loops may depend on data.

    Raises ValueError if it gives anything but a scalar.

    >>> o = objective(lambda x: ag.reduce_sum((x - 1.0) ** 4))
    >>> scipy.optimize.minimize(o.fun_and_jac, [3.0], jac=True, hess=o.hess, method="trust-exact").success
    True
    """
    return Objective(function)


def system(function: Callable[..., Any], sparsity: Any = None) -> System:
    """The methods that `scipy.optimize.root` and `least_squares` ask for, of a function from vectors to vectors.

    function: takes a float64 tensor of shape [n] and what SciPy passes on as `args`; gives one of shape [m].
    sparsity: an [m, n] array or sparse matrix that isn't zero wherever the Jacobian may not be. Then `jac` gives a
    sparse matrix, by as many products as there are groups of columns without a common row.

    Raises ValueError if the function doesn't give a vector, and for a sparsity of another shape.

    >>> s = system(lambda x: x ** 2 - 2.0)
    >>> scipy.optimize.root(s.fun_and_jac, [1.0], jac=True).x
    array([1.41421356])
    """
    return System(function, 0, sparsity)


def integrand(function: Callable[..., Any]) -> scipy.LowLevelCallable:
    """A C function for `scipy.integrate.quad` and `nquad`, which call it without Python.

    function: takes float64 scalars, as many as it has parameters: those that are integrated over, then those that
    `args=` gives; gives one.

    Raises TypeError for another number of results or arguments, UnimplementedError for what has no native code. Where
    our code raises an error in use, SciPy's function does too: a RuntimeError with its message, or a SystemError that
    has that as its cause.

    >>> scipy.integrate.quad(integrand(lambda x, a: ag.exp(-a * x)), 0.0, numpy.inf, args=(2.0,))[0]
    0.5
    """
    from runtime.codegen.export import loaded

    count = len(signature_of(python_function_of(function)).parameters)
    call = _scalar_call(function, [TensorSpec([], float64)] * count, "an integrand")
    address = loaded.integrand(call, count)
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_double))
    return scipy.LowLevelCallable(kind(address), signature="double (int, double *)")


def window_function(function: Callable[..., Any]) -> scipy.LowLevelCallable:
    """A C function for `scipy.ndimage.generic_filter`, which calls it without Python for each window.

    function: takes the window, a float64 tensor of shape [n], and gives a float64 scalar.

    Raises as `integrand` does.
    """
    from runtime.codegen.export import loaded

    address = loaded.window_function(_scalar_call(function, [TensorSpec([None], float64)], "a function of windows"))
    doubles = ctypes.POINTER(ctypes.c_double)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, doubles, ctypes.c_ssize_t, doubles, ctypes.c_void_p)
    return scipy.LowLevelCallable(kind(address), signature="int (double *, npy_intp, double *, void *)")


def _scalar_call(function: Callable[..., Any], specs: Sequence[TensorSpec], role: str) -> Any:
    from runtime.codegen.export.loaded import Call

    concrete = traced(function).get_concrete_function(*specs)
    if concrete.structured_outputs != TensorSpec([], float64):
        raise TypeError(
            f"{role} gives one float64 number, but {concrete.graph.name} gives {concrete.structured_outputs}"
        )
    made = load(concrete)
    return Call(made.address, made.results[0].memory)


def ode(function: Callable[..., Any], sparsity: Any = None) -> System:
    """The methods that `scipy.integrate.solve_ivp` asks for: `solve_ivp(o.fun, span, y0, "Radau", jac=o.jac)`.

    function: takes the time, a float64 scalar, the state, of shape [n], and what SciPy passes on as `args`; gives the
    state's derivative by time, of shape [n]. sparsity: see `system`.

    Raises ValueError if the function doesn't give a vector, and for a sparsity of another shape.
    """
    return System(function, 1, sparsity)
