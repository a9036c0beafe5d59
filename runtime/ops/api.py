"""The public ops, under TensorFlow's names. Importing this module registers every row and installs the operators."""

from __future__ import annotations

from runtime.ops import numerics, operators
from runtime.ops.arrays import assignment, miscellaneous, segments, sorting
from runtime.ops.arrays.broadcasting import broadcast_static_shape, broadcast_to
from runtime.ops.arrays.creation import (
    eye,
    fill,
    linspace,
    meshgrid,
    ones,
    ones_like,
    range,
    zeros,
    zeros_like,
)  # fmt: skip
from runtime.ops.arrays.gather import (
    boolean_mask,
    gather,
    one_hot,
    row_update,
)  # fmt: skip
from runtime.ops.arrays.joining import concat, split, stack, unstack
from runtime.ops.arrays.rearrange import pad, reverse, roll, tile
from runtime.ops.arrays.reduce import (
    argmax,
    argmin,
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_std,
    reduce_sum,
    reduce_variance,
)  # fmt: skip
from runtime.ops.arrays.scan import (
    cumprod,
    cumsum,
)  # fmt: skip
from runtime.ops.arrays.scatter import (
    gather_nd,
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_update,
)  # fmt: skip
from runtime.ops.arrays.shape_ops import (
    ensure_shape,
    expand_dims,
    identity,
    rank,
    reshape,
    shape,
    size,
    squeeze,
    stop_gradient,
    transpose,
)  # fmt: skip
from runtime.ops.arrays.slicing import (
    slice_,
    strided_slice,
)  # fmt: skip
from runtime.ops.control import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_none_equal,
    assert_op,
    numpy_function,
    print_,
)  # fmt: skip
from runtime.ops.convert import (
    constant,
    convert_to_tensor,
)  # fmt: skip
from runtime.ops.elementwise import complex_numbers, special
from runtime.ops.elementwise.arithmetic import (
    abs,
    add,
    add_n,
    atan2,
    clip_by_value,
    divide,
    divide_no_nan,
    floordiv,
    floormod,
    maximum,
    minimum,
    multiply,
    negative,
    pow,
    reciprocal,
    sign,
    square,
    squared_difference,
    strings_join,
    subtract,
    truediv,
    truncatediv,
)  # fmt: skip
from runtime.ops.elementwise.compare import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    is_finite,
    is_inf,
    is_nan,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    right_shift,
    where,
)  # fmt: skip
from runtime.ops.elementwise.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cast,
    ceil,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    expm1,
    floor,
    log,
    log1p,
    relu,
    rint,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    softplus,
    softsign,
    sqrt,
    tan,
    tanh,
    trunc,
)  # fmt: skip
from runtime.ops.image import contrast
from runtime.ops.linalg import decompositions, diagonals, einsum, matrices, solvers, spectral
from runtime.ops.linalg.matrices import norm
from runtime.ops.linalg.matrix_products import (
    diag,
    diag_part,
    matmul,
    matrix_transpose,
    matvec,
    tensordot,
    trace,
)  # fmt: skip
from runtime.ops.nn import convolution, nn_ops
from runtime.ops.random import stateful, stateless
from runtime.ops.strings import string_ops, string_split

__all__ = [
    "assignment", "complex_numbers", "contrast", "convolution", "decompositions", "diagonals", "einsum", "matrices",
    "miscellaneous", "nn_ops", "numerics", "operators", "segments", "solvers", "sorting", "special", "spectral",
    "stateful", "stateless", "string_ops", "string_split",
    "Assert", "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin", "asin", "asinh", "assert_equal",
    "assert_greater", "assert_greater_equal", "assert_less", "assert_less_equal", "assert_none_equal", "assert_op",
    "atan", "atan2", "atanh", "bitwise_and", "bitwise_or", "bitwise_xor", "boolean_mask", "broadcast_static_shape",
    "broadcast_to", "cast", "ceil", "clip_by_value", "concat", "constant", "convert_to_tensor", "cos", "cosh",
    "count_nonzero", "cumprod", "cumsum", "diag", "diag_part", "divide", "divide_no_nan", "ensure_shape", "equal",
    "erf", "erfc", "exp", "expand_dims", "expm1", "eye", "fill", "floor", "floordiv", "floormod", "gather", "gather_nd",
    "greater", "greater_equal", "identity", "invert", "is_finite", "is_inf", "is_nan", "left_shift", "less",
    "less_equal", "linspace", "log", "log1p", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "matrix_transpose", "matvec", "maximum", "meshgrid", "minimum", "multiply", "negative", "norm", "not_equal",
    "numpy_function", "one_hot", "ones", "ones_like", "pad", "pow", "print_", "range", "rank",
    "reciprocal", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance", "relu", "reshape", "reverse", "right_shift", "rint",
    "roll", "round", "row_update", "rsqrt", "scatter_nd", "shape", "sigmoid", "sign", "sin", "sinh", "size", "slice_",
    "softplus", "softsign", "split", "sqrt", "square", "squared_difference", "squeeze", "stack", "stop_gradient",
    "strided_slice", "strings_join", "subtract", "tan", "tanh", "tensor_scatter_nd_add", "tensor_scatter_nd_update",
    "tensordot", "tile", "trace", "transpose", "truediv", "trunc", "truncatediv", "unstack", "where", "zeros",
    "zeros_like",
]  # fmt: skip
