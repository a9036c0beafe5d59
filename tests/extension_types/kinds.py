"""Extension types that the tests share."""

from collections.abc import Mapping
from typing import Optional, Tuple, Union  # noqa: UP035

import autograph as ag


class Masked(ag.experimental.ExtensionType):
    """A tensor with a mask of the same shape."""

    values: ag.Tensor
    mask: ag.Tensor

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)
        assert self.mask.dtype is ag.bool, "mask.dtype must be bool"

    @property
    def dtype(self):
        return self.values.dtype

    def with_values(self, values):
        return Masked(values, self.mask)

    def with_default(self, default):
        return ag.where(self.mask, self.values, default)


class Player(ag.experimental.ExtensionType):
    name: str
    scores: Mapping[str, ag.Tensor]
    path: tuple[ag.Tensor, ...] = ()
    weight: Optional[ag.Tensor] = None  # noqa: UP045 (as users write it)
    limit: Union[int, float] = 3  # noqa: UP007


class Node(ag.experimental.ExtensionType):
    value: ag.Tensor
    children: Tuple["Node", ...] = ()  # noqa: UP006 (Python 3.10 leaves names in `tuple` as they are)


class Scaled(Masked):
    """A subclass with a field more, and a constructor of its own."""

    factor: ag.Tensor

    def __init__(self, values, factor=2.0):
        self.values = values
        self.mask = ag.ones_like(self.values, ag.bool)
        self.factor = factor


class Described(ag.experimental.ExtensionType):
    """One with a `Spec` of its own."""

    values: ag.Tensor
    mask: ag.Tensor

    shape = property(lambda self: self.values.shape)

    class Spec:
        def __init__(self, shape, dtype=ag.float32):
            self.values = ag.TensorSpec(shape, dtype)
            self.mask = ag.TensorSpec(shape, ag.bool)

        def __repr__(self):
            return f"Described.Spec({self.shape})"

        shape = property(lambda self: self.values.shape)


class Fixed(ag.experimental.ExtensionType):
    """One without tensors."""

    n: int


class Mixed(ag.experimental.ExtensionType):
    """One of everything that isn't a plain tensor."""

    ragged: ag.RaggedTensor
    sparse: ag.SparseTensor
    masked: Masked
    shape: ag.TensorShape
    dtype: ag.DType
    flag: bool = False
