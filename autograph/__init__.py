"""`import autograph as ag`: the public names, those of TensorFlow 2's core. Nothing is defined here.

This module shadows several built-in names (`abs`, `bool`, `print`, `range`, `round`, ...), as `tensorflow` does.
"""

# `ag.errors` is the namespace of TensorFlow's errors; importing the module `autograph.errors` first keeps a later
# import of it from taking the name over. The same goes for any name below that a file of this package has too.
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# ruff: noqa: E402
from autograph import supported as _supported

_supported.check()

from autograph import own_packages as _own_packages

_own_packages.check()

# Before all else: importing makes many objects, none of them garbage.
from runtime import garbage_collection as _garbage_collection

_garbage_collection.raise_threshold(1_000_000)

import autograph.errors as _errors_of_conversion  # noqa: F401
from autograph import publishing as _publishing
from autograph.data.optional import OptionalSpec
from autograph.function.polymorphic import Function as _Function
from autograph.function.polymorphic import function
from autograph.functional import control_dependencies, foldl, foldr, group, map_fn, no_op, scan, vectorized_map
from autograph.module import Module
from autograph.namespaces import (
    audio,
    autodiff,
    bitwise,
    compat,
    config,
    debugging,
    dtypes,
    errors,
    experimental,
    image,
    io,
    linalg,
    lookup,
    math,
    nest,
    nn,
    quantization,
    ragged,
    random,
    sets,
    signal,
    sparse,
    strings,
    types,
)
from autograph.namespaces import conversion as autograph
from autograph.operators.functional_control import case, cond, switch_case, while_loop
from autograph.transforms import (
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from autograph.vectorization import vectorize
from runtime import array_api
from runtime.autodiff.custom import custom_gradient
from runtime.autodiff.python_calls import py_function
from runtime.autodiff.tape import GradientTape
from runtime.autodiff.transforms import UnconnectedGradients, grad_pass_through, gradients, recompute_grad
from runtime.context import executing_eagerly, get_current_name_scope, init_scope, name_scope
from runtime.device import (
    VariableAggregation,
    VariableSynchronization,
    device,
)
from runtime.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from runtime.dtypes import bool_ as bool
from runtime.ops.api import (
    Assert,
    acos,
    acosh,
    add_n,
    argmax,
    argmin,
    asin,
    asinh,
    assert_equal,
    assert_greater,
    assert_less,
    atan,
    atan2,
    atanh,
    broadcast_static_shape,
    broadcast_to,
    constant,
    convert_to_tensor,
    cos,
    cosh,
    cumsum,
    ensure_shape,
    equal,
    exp,
    eye,
    floor,
    gather_nd,
    greater,
    greater_equal,
    less,
    less_equal,
    linspace,
    logical_and,
    logical_not,
    logical_or,
    matmul,
    maximum,
    meshgrid,
    minimum,
    multiply,
    negative,
    norm,
    not_equal,
    numpy_function,
    pad,
    pow,
    range,
    reduce_logsumexp,
    reshape,
    roll,
    scatter_nd,
    sigmoid,
    sin,
    sinh,
    split,
    sqrt,
    square,
    squeeze,
    strided_slice,
    subtract,
    tan,
    tanh,
    tensor_scatter_nd_add,
    tensor_scatter_nd_update,
    tensordot,
    transpose,
    truncatediv,
    unstack,
)
from runtime.ops.api import (
    print_ as print,
)
from runtime.ops.api import (
    slice_ as slice,
)
from runtime.ops.arrays.miscellaneous import (
    batch_to_space,
    bitcast,
    broadcast_dynamic_shape,
    dynamic_partition,
    dynamic_stitch,
    identity_n,
    repeat,
    required_space_to_batch_paddings,
    reverse_sequence,
    sequence_mask,
    shape_n,
    space_to_batch,
    unravel_index,
)
from runtime.ops.arrays.miscellaneous import tuple_ as tuple
from runtime.ops.arrays.scatter import (
    IndexedSlices,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
)
from runtime.ops.arrays.segments import (
    histogram_fixed_width,
    histogram_fixed_width_bins,
)
from runtime.ops.arrays.sorting import (
    argsort,
    searchsorted,
    sort,
    unique,
    unique_with_counts,
)
from runtime.ops.assertions import (
    assert_rank,
)
from runtime.ops.elementwise.arithmetic import (
    truncatemod,
)
from runtime.ops.elementwise.complex_numbers import (
    complex,
)
from runtime.ops.facts import (
    get_static_value,
    inside_function,
    is_symbolic_tensor,
    is_tensor,
    register_tensor_conversion_function,
    timestamp,
)
from runtime.ops.linalg.decompositions import (
    eig,
    eigvals,
)
from runtime.ops.linalg.einsum import (
    einsum,
)
from runtime.ops.linalg.matrices import (
    clip_by_global_norm,
)
from runtime.ops.linalg.spectral import (
    sqrtm as matrix_square_root,
)
from runtime.ops.random.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from runtime.ragged.api import (
    RaggedTensor,
    RaggedTensorSpec,
    abs,
    add,
    as_string,
    boolean_mask,
    cast,
    clip_by_norm,
    clip_by_value,
    concat,
    divide,
    expand_dims,
    fill,
    gather,
    identity,
    one_hot,
    ones,
    ones_like,
    rank,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reverse,
    round,
    saturate_cast,
    scalar_mul,
    shape,
    sign,
    size,
    stack,
    stop_gradient,
    tile,
    truediv,
    where,
    zeros,
    zeros_like,
)
from runtime.shapes import TensorShape
from runtime.sparse import SparseTensor, SparseTensorSpec, edit_distance
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor as _EagerTensor
from runtime.tensor import Tensor
from runtime.tensor_array import TensorArray
from runtime.variable import Variable, variable_creator_scope

newaxis = None
# Imported when they are asked for: most programs need few of them, and they would take a fifth of the import.
_LATE = {
    **{
        name: f"autograph.namespaces.{name}"
        for name in ("data", "distribute", "export", "onnx", "profiler", "saved_model", "summary", "test", "train")
    },
    "interop": "autograph.interop",
    "keras": "autograph.keras",
    "testing": "autograph.testing",
}
if _TYPE_CHECKING:
    from autograph import interop as interop
    from autograph import testing as testing
    from autograph.namespaces import data, distribute, export, onnx, profiler, saved_model, summary, test, train

    keras: _Any
__version__ = "0.1.0"

__all__ = [
    "Assert", "DType", "GradientTape", "IndexedSlices", "Module", "OptionalSpec", "RaggedTensor", "RaggedTensorSpec",
    "SparseTensor", "SparseTensorSpec", "Tensor", "TensorArray", "TensorShape", "TensorSpec", "UnconnectedGradients",
    "Variable", "VariableAggregation", "VariableSynchronization", "abs", "acos", "acosh", "add", "add_n", "argmax",
    "argmin", "argsort", "array_api", "as_dtype", "as_string", "asin", "asinh", "assert_equal", "assert_greater",
    "assert_less", "assert_rank", "atan", "atan2", "atanh", "audio", "autodiff", "autograph", "batch_to_space",
    "bfloat16", "bitcast", "bitwise", "bool", "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape",
    "broadcast_to", "case", "cast", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "compat", "complex",
    "complex128", "complex64", "concat", "cond", "config", "constant", "constant_initializer", "control_dependencies",
    "convert_to_tensor", "cos", "cosh", "cumsum", "custom_gradient", "custom_jvp", "custom_vjp", "data", "debugging",
    "device", "distribute", "divide", "double", "dtypes", "dynamic_partition", "dynamic_stitch", "edit_distance", "eig",
    "eigvals", "einsum", "ensure_shape", "equal", "errors", "executing_eagerly", "exp", "expand_dims", "experimental",
    "export", "eye", "fill", "float16", "float32", "float64", "floor", "foldl", "foldr", "function", "gather",
    "gather_nd", "get_current_name_scope", "get_static_value", "grad", "grad_pass_through", "gradients", "greater",
    "greater_equal", "group", "half", "hessian", "histogram_fixed_width", "histogram_fixed_width_bins", "hvp",
    "identity", "identity_n", "image", "init_scope", "inside_function", "int16", "int32", "int64", "int8", "io",
    "is_symbolic_tensor", "is_tensor", "jacfwd", "jacrev", "jvp", "less", "less_equal", "linalg", "linearize",
    "linspace", "logical_and", "logical_not", "logical_or", "lookup", "map_fn", "math", "matmul", "matrix_square_root",
    "maximum", "meshgrid", "minimum", "multiply", "name_scope", "negative", "nest", "newaxis", "nn", "no_op", "norm",
    "not_equal", "numpy_function", "one_hot", "ones", "ones_initializer", "ones_like", "onnx", "pad", "pow", "print",
    "profiler", "py_function", "quantization", "ragged", "random", "random_normal_initializer",
    "random_uniform_initializer", "range", "rank", "recompute_grad", "reduce_all", "reduce_any", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "register_tensor_conversion_function",
    "repeat", "required_space_to_batch_paddings", "reshape", "reverse", "reverse_sequence", "roll", "round",
    "saturate_cast", "saved_model", "scalar_mul", "scan", "scatter_nd", "searchsorted", "sequence_mask", "sets",
    "shape", "shape_n", "sigmoid", "sign", "signal", "sin", "sinh", "size", "slice", "sort", "space_to_batch", "sparse",
    "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "strided_slice", "string", "strings", "subtract",
    "summary", "switch_case", "tan", "tanh", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tensordot", "test", "tile", "timestamp", "train", "transpose",
    "truediv", "truncatediv", "truncatemod", "tuple", "types", "uint16", "uint32", "uint64", "uint8", "unique",
    "unique_with_counts", "unravel_index", "unstack", "value_and_grad", "variable_creator_scope", "vectorize",
    "vectorized_map", "vjp", "vmap", "where", "while_loop", "zeros", "zeros_initializer", "zeros_like",
]  # fmt: skip

_publishing.publish(_sys.modules[__name__], _LATE)
_publishing.show_in_notebooks(_sys.modules[__name__], {_EagerTensor: "image", _Function: "function"})
_garbage_collection.promote_all()
_garbage_collection.restore_threshold()
