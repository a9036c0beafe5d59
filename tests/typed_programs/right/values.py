"""What Python and NumPy do with tensors and variables."""

import numpy as np

import autograph as ag

x = ag.constant([[1.0, 2.0], [3.0, 4.0]])
v = ag.Variable([1.0, 2.0])

print(len(x), [float(row[0]) for row in x], x[0, 1].numpy(), x[..., ag.newaxis].shape, x[1:][0].numpy())
print(v + 1, 1 + v, v * x, x @ x, x**2, 2**x, x // 2, x % 2, -x, abs(x), divmod(x, 2.0)[0].numpy())
print((x > 1).numpy(), (x == x).numpy(), (x != 1.0).numpy(), ((x > 1) & (x < 3)).numpy(), (~(x > 1)).numpy())
print(np.mean(x), np.sum(x), np.asarray(x).dtype, np.concatenate([x, x]), float(np.max(x)))
print(x.shape.as_list(), x.shape.rank, x.ndim, x.dtype.is_floating, x.dtype.as_numpy_dtype)

v.assign([3.0, 4.0])
v.assign_add(ag.ones([2]))
v.assign_sub(np.ones(2, "float32"))
v[0].assign(1.0)
print(v.numpy().sum(), v.shape, v.dtype, v.trainable, v.name, v.value().numpy(), v.read_value() * 2)

generator = ag.random.Generator.from_seed(1)
print(generator.normal([3]).numpy(), generator.uniform([2], 0.0, 1.0).numpy(), ag.random.normal([2]).numpy())

array = ag.TensorArray(ag.float32, size=2)
array = array.write(0, 1.0).write(1, ag.constant(2.0))
print(array.stack().numpy(), array.read(0).numpy(), len(array), array.size().numpy())

print(x.sum(axis=0).numpy(), x.T.numpy(), x.reshape(-1).numpy(), x.astype("float64").dtype, x[0, 0].item(), x.tolist())
print(v.mean().numpy(), v.take([1, 0]).numpy(), v.size, x.max(), x.flatten().shape, x.nbytes)
print(x.transpose(1, 0).numpy(), x.nonzero()[0].numpy())
print(ag.convert_to_tensor(np.arange(3)).numpy(), ag.constant("text").numpy(), ag.constant([1, 2], dtype="int64"))
