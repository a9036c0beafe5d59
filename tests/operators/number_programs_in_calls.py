"""More of `number_programs.py`: numbers in calls, in lists and objects, and as arguments of ops."""

import math

import numpy as np

import autograph as ag
from tests.operators.number_programs import VECTOR, case

scaled = ag.function(lambda k, x: x * k)
successor = ag.function(lambda k: k + 1)


class Counter:
    def __init__(self):
        self.k = 0
        self.L = [0, 0.5]


@case(3.0, 4)
def call1(x, n):
    k = 0
    q = 0.5
    for i in range(n):
        k += 1
        q += 0.1
    return successor(k), successor(q)


@case(3.0, 4)
def call2(x, n):
    k = 0
    q = 0.5
    for i in range(n):
        k += 1
        q += 0.1
    return scaled(k, x), scaled(q, x)


@case(3.0, 4)
def arrays(x, n):
    k = 0
    q = 0.5
    for i in range(n):
        k += 1
        q += 0.25
    ta = ag.TensorArray(x.dtype, size=k)
    for i in range(k):
        ta = ta.write(i, x * i)
    ta2 = ag.TensorArray(ag.float64, size=2).write(0, q).write(1, k - 1)
    return ta.stack(), ta2.stack(), ta.read(k - 1), ta.size()


@case(3.0, 3)
def shapes(x, n):
    k = 0
    q = 0.5
    v = ag.stack([x, x + 1, x + 2, x + 3])
    for i in range(n):
        k += 1
        q += 0.25
    return (
        ag.gather(v, k),
        ag.one_hot(k, 5),
        v[k],
        v[k - 2 : k],
        ag.slice(v, [k - 1], [2]),
        ag.linspace(0.0, 1.0, k),
        ag.pad(v, [[k, 1]]),
        ag.eye(k),
        ag.repeat(v, k),
        ag.roll(v, k, 0),
        ag.where(x > 1, k, 7),
        ag.where(v > 4, v, q),
        ag.clip_by_value(v, 0, k),
        ag.pow(x, k),
        ag.pow(v, q),
        ag.reduce_sum([k, k]),
        ag.reduce_mean([q, 1.0]),
        ag.ones((k, 2)),
        ag.zeros([k], ag.float64),
        ag.fill([2, k], x),
        ag.fill([2], k),
        ag.range(1, k),
        ag.range(q),
        ag.expand_dims(k, 0),
        ag.concat([v, [q]], 0),
        ag.stack([q, k]),
        ag.tile([k], [2]),
        ag.maximum(v, k),
        ag.minimum(k, v),
        ag.math.squared_difference(v, k),
        ag.math.atan2(x, q),
        ag.identity(q),
        ag.sqrt(q),
        ag.abs(-k),
        ag.sign(-q),
        ag.equal(k, 3),
        ag.less(q, x),
        ag.logical_not(k > 2),
        ag.math.floormod(k, 2),
        ag.math.floordiv(k, 2),
        ag.math.divide(k, 2),
        ag.math.divide_no_nan(q, 2.0),
        ag.math.add_n([q, q]),
        ag.shape(ag.zeros([k, k])),
        ag.reshape(ag.range(6), (2, k)),
        ag.transpose(ag.ones([2, k])),
        ag.sequence_mask(k, 5),
        ag.cumsum([k, k, 2]),
        ag.reverse([k, 1], [0]),
        ag.unstack([k, q]),
        ag.broadcast_to(k, [2]),
        ag.broadcast_to(x, [k]),
        ag.zeros_like(q),
        ag.ones_like(k),
        ag.rank(q),
        ag.size([k, k]),
    )


@case(3.0, 3)
def condw(x, n):
    k = 0
    q = 0.5
    for i in range(n):
        k += 1
        q += 0.25
    a = ag.cond(x > 1, lambda: k, lambda: 2)
    b = ag.cond(x > 1, lambda: x, lambda: q)
    c, d = ag.while_loop(lambda i, y: i < k, lambda i, y: (i + 1, y * q), [0, x])
    return a, b, c, d, b - d


@case(3.0, 3)
def mapped(x, n):
    k = 0
    q = 0.5
    v = ag.stack([x, x + 1])
    for i in range(n):
        k += 1
        q += 0.25
    return (
        ag.map_fn(lambda t: t * k + q, v),
        ag.vectorized_map(lambda t: t * k, v),
        ag.scan(lambda a, t: a * q + t, v),
        ag.foldl(lambda a, t: a + t * k, v),
    )


@case(3.0, 3)
def pyf(x, n):
    k = 0
    q = 0.5
    for i in range(n):
        k += 1
        q += 0.25
    return ag.numpy_function(lambda a, b: np.float64(a + b), [k, x], ag.float64), ag.py_function(
        lambda a: a * 2, [k], ag.int32
    )


@case(3.0, 3)
def objlist(x, n):
    o = Counter()
    for i in range(n):
        o.k += 2
        o.L[0] += i
        o.L[1] *= 0.5
    return o.k * x, o.L[0] * x, o.L[1] * x, o.L, o.k


@case(3.0, 3)
def listops(x, n):
    L = [5, 3]
    M = [0.5]
    for i in range(n):
        L.append(i)
        L.insert(0, i * 2)
        M += [M[-1] + 0.1]
        if x > 2:
            M[0] = 1.0
    a = L.pop()
    L.reverse()
    b = L.index(5)
    c = L.count(2)
    d = 3 in L
    L.sort()
    s = 0.0
    for m in M:
        s += m
    for j, m in enumerate(L):
        s += j * m
    return (
        a * x,
        b * x,
        c,
        d,
        L,
        s * x,
        M,
        sum(M) * x,
        max(L) * x,
        min(M),
        sorted(M)[0],
        M[-1] / 3,
        x * len(L[1:]),
        L[0] + M[0],
    )


@case(3.0, 3)
def listbranch(x, n):
    L = [1.5]
    if x > 1:
        L.append(2.25)
    M = [1]
    if x > 2:
        M.append(x)
    return [L[0] * x, L[-1], len(L) * x], [M[-1]]


@case(3.0, 3)
def tuples(x, n):
    L = [(0, 1.0)]
    for i in range(n):
        L.append((i, 0.5 * i))
    a, b = L[-1]
    s = 0
    for k, v in L:
        s += k * v
    return a * x, b * x, s * x


@case(3.0, 3)
def tryx(x, n):
    k = 0
    try:
        for i in range(n):
            k += 1
            if x > 10 and k > 1:
                raise ValueError("no")
    except ValueError:
        k = -1
    return k * x, k


@case(3.0, 3)
def early(x, n):
    for i in range(n):
        if x * i > 5:
            return i
    return -1


@case(3.0, 3)
def early2(x, n):
    k = 0.25
    while True:
        k *= 2
        if k > x:
            return k * x, k


@case(3.0, 3)
def revs(x, n):
    s = 0.0
    for i in reversed(range(n)):
        s = s * 0.5 + i
    for i in range(n, 0, -1):
        s = s * 0.5 - i
    for i in range(1, 2 * n, 2):
        s += i * 0.1
    for a, b in zip(range(n), range(n, 2 * n)):
        s += a * b
    for j, i in enumerate(range(n), 1):
        s += j / (i + 1)
    return s * x, s


@case(3.0, 3)
def walrus(x, n):
    k = 0
    t = 0
    while (y := x * k) < 10:
        k += 1
        t += y
    return t, k, y


@case(3.0, 3)
def nan(x, n):
    best = math.inf
    arg = -1
    neg = -math.inf
    for i in range(n):
        d = abs(i - 1.2)
        if d < best:
            best = d
            arg = i
        neg = max(neg, i * 1.0)
    return best * x, arg * x, best, arg, neg


@case(3.0, 3)
def schedule(x, n):
    lr = 0.1
    m = 0.0
    w = x
    for step in range(n):
        g = 2 * w
        m = 0.9 * m + g
        w = w - lr * m
        if step % 2 == 1:
            lr *= 0.5
        lr = lr / (1 + 0.01 * step)
    return w, lr


@case(VECTOR)
def dynlen(v):
    n = len(v)
    s = 0.0
    for i in range(n):
        s += v[i] / n
    for i in range(v.shape[0]):
        s += v[i] * (i / n)
    return s, n


@case(3.0, 5)
def ranges(x, n):
    t = 0
    y = x
    for i in range(n):
        t += i * i
        y = y + i / 2 + i // 2 + i % 3 - (-i) + i**2 + abs(i - 2) + min(i, 2) + max(i, 3.5)
        y += round(i / 3) + divmod(i, 2)[1]
    return y, t


@case(40)
def powers(n):
    k = 1
    i = 0
    while i < n:
        k = k * 2
        i += 1
    return ag.cast(k, ag.int64), ag.constant(1.0) * k


@case(3.0, 4)
def types(x, n):
    k = 0
    q = 0.5
    for i in range(n):
        k += 1
        q += 1
    numbers = isinstance(k, int), isinstance(k, float), isinstance(q, float), isinstance(q, (int, str))
    return *numbers, isinstance(k, ag.Tensor), isinstance(x, ag.Tensor), ag.is_tensor(k)


@case(3.0, 4)
def texts(x, n):
    k = 0
    q = 0.1
    for i in range(n):
        k += 1
        q += 0.1
        print(k, q, f"{k} {q} {q:.3f} {k:04d}", "%d %g" % (k, q))
    return x
