"""Functions that take what a tensor can be made of, and what they give."""

from collections.abc import Callable

import numpy as np

import autograph as ag


def softplus(x: ag.types.experimental.TensorLike) -> ag.Tensor:
    return ag.math.log1p(ag.exp(x))


def applied(function: Callable[[ag.Tensor], ag.Tensor], values: ag.types.experimental.TensorLike) -> ag.Tensor:
    return function(ag.convert_to_tensor(values))


for value in (1.0, 2, True, [1.0, 2.0], [[1, 2], [3, 4]], (1.0, 2.0), np.float32(3.0), np.ones(3), ag.ones([2])):
    print(softplus(ag.cast(value, ag.float32)).numpy())
print(softplus(ag.Variable(1.0)).numpy(), applied(ag.tanh, [1.0, 2.0]).numpy(), applied(ag.reduce_sum, [1.0]).numpy())

x = ag.constant([3.0, 1.0, 2.0])
print(ag.reduce_sum(x).numpy(), ag.reduce_max(x, axis=0).numpy(), ag.argmax(x).numpy(), ag.sort(x).numpy())
print(
    ag.concat([x, x], 0).numpy(),
    ag.stack([x, x]).numpy(),
    ag.where(x > 1, x, 0.0).numpy(),
    ag.cast(x, ag.int32).numpy(),
)
print(ag.gather(x, [0, 1]).numpy(), ag.reshape(x, [3, 1]).numpy(), ag.transpose([[1, 2]]).numpy(), ag.shape(x).numpy())
print(ag.maximum(x, 2.0).numpy(), ag.minimum(*[x, x]).numpy(), ag.add(1.0, x).numpy(), ag.pow(x, 2).numpy())
print(ag.linalg.inv(ag.eye(2)).numpy(), ag.linalg.norm(x).numpy(), ag.einsum("i,i->", x, x).numpy())
print(ag.math.erf(x).numpy(), ag.nn.softmax(x).numpy(), ag.math.cumsum(x).numpy(), ag.one_hot([0, 1], 2).numpy())
print(ag.signal.rfft(x).numpy(), ag.nn.conv2d(ag.ones([1, 4, 4, 1]), ag.ones([2, 2, 1, 1])).numpy().shape)
print(ag.math.segment_sum(x, [0, 0, 1]).numpy(), ag.clip_by_value(x, 0, 1).numpy(), ag.zeros_like(x).numpy())
ag.debugging.assert_positive(x)
ag.debugging.assert_equal(x, x, message="the same")
parts: list[ag.Tensor] = ag.split(x, 3)
print([part.numpy() for part in parts], [t.numpy() for t in ag.unstack(x)])

ragged = ag.ragged.constant([[1.0], [2.0, 3.0]])
print(ag.exp(ragged).to_list(), ag.concat([ragged, ragged], 0).to_list(), (ragged + 1.0).to_list())
print(ag.cast(ragged, ag.int32).to_list(), ag.expand_dims(ragged, 0).to_list())

print(ag.experimental.numpy.mean(x), ag.array_api.mean(x).numpy(), ag.math.special.bessel_j0(x).numpy())
print(ag.data.Dataset.range(3).map(lambda i: i + 1).batch(2).cardinality().numpy(), ag.strings.length("text").numpy())
print(ag.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), ag.config.threading.get_intra_op_parallelism_threads())


def model() -> object:
    return ag.keras.Sequential([ag.keras.layers.Dense(2)])


print(ag.map_fn(ag.square, x).numpy(), ag.scan(lambda a, b: a + b, x).numpy(), ag.vectorized_map(ag.square, x).numpy())
print(ag.while_loop(lambda i: i < 3, lambda i: i + 1, [0]), ag.cond(ag.constant(True), lambda: 1, lambda: 2))
