"""Programs whose Python numbers become part of a staged program: loops change them, branches choose them.

A case has the arguments of a call: floats are tried as float32 and float64 tensors, ints as int32 tensors.
"""

import math

import numpy as np

import autograph as ag

VECTOR = np.linspace(0.1, 2.0, 7)
CASES = []


def case(*arguments):
    """Adds a case of a program."""

    def add(program):
        CASES.append((program, arguments))
        return program

    return add


@case(100.0)
def grow(x):
    i = 1.0
    while i < x:
        i *= 2
    return x * i, i


@case(3.0)
def brk(x):
    for k in range(10):
        x = x * float(k + 1)
        if x > 50:
            break
    return x * k, k


@case(3.0)
@case(3)
def floatsum(x):
    s = 0.0
    n = 0
    while n < x:
        s += 0.1
        n += 1
    return s, n, s * 3


@case(0.3)
@case(0.9)
def branchret(x):
    if x > 0.5:
        return 1
    return 2


@case(20)
def hash(n):
    h = 5381
    for i in range(n):
        h = (h * 33 + i) % 1000000007
    return h


@case(7.0)
def ops(x):
    k = 0
    while k < x:
        k = k + 1
    a = ag.zeros([k])
    b = ag.fill([k], 1.0)
    c = ag.range(k)
    d = ag.cast(k, ag.float64)
    e = ag.convert_to_tensor(k)
    return (
        ag.reduce_sum(a),
        ag.reduce_sum(b),
        ag.reduce_sum(c),
        d,
        e,
        ag.exp(k * 1.0),
        ag.add(x, k),
        ag.stack([x, k]),
        ag.maximum(k, x),
        ag.stack([k, 2.5]),
        ag.stack([k, 2]),
    )


@case(7.0)
def floatops(x):
    k = 0.5
    while k < x:
        k = k + 1
    return (
        ag.convert_to_tensor(k),
        ag.exp(k),
        ag.add(x, k),
        ag.stack([x, k]),
        ag.maximum(k, x),
        ag.fill([2], k),
        ag.cast(k, ag.int32),
        ag.cast(k, ag.float64),
        int(k),
        round(k),
        float(k),
        k // 0.3,
        k % 0.3,
        -k,
        abs(-k),
        k**2,
        k**0.5,
        2**k,
    )


@case(7.0)
def fm(x):
    k = 1.0
    while k < x:
        k += 0.7
    return (
        math.sqrt(k),
        math.sin(k),
        math.floor(k),
        math.ceil(k),
        math.exp(k) * x,
        math.atan2(k, 2),
        math.trunc(k),
        math.log(k, 2),
        math.hypot(k, 1),
    )


@case(VECTOR, 3)
def index(v, n):
    s = 0.0
    k = 0
    while k < n:
        s = s + v[k] * k + v[k + 1] - v[-k - 1]
        k += 1
    return s, v[:k], v[k], ag.reduce_sum(v[k:])


@case(VECTOR)
def enum(v):
    s = 0
    for i, t in enumerate(v):
        s = s + t * i + i * 0.5
    return s


@case(VECTOR)
def zips(v):
    s = 0
    for i, t in zip(range(ag.shape(v)[0]), v):
        s = s + t * i
    return s


@case(3.0, 4)
def lens(x, n):
    L = []
    for i in range(n):
        L.append(x * i)
    return x * len(L), len(L), len(L) / 3, sum(L) / len(L)


@case(3.0, 4)
def listnum(x, n):
    L = [1]
    for i in range(n):
        L.append(L[-1] * 2 + i)
    return x * L[2], L[-1], len(L)


@case(3.0, 4)
def listfloat(x, n):
    L = [1.0]
    for i in range(n):
        L.append(L[-1] * 0.1)
    return x * L[2], L[-1], len(L)


@case(3.0, 4)
def dicts(x, n):
    d = {"a": 0, "b": 1.0}
    for i in range(n):
        d["a"] += i
        d["b"] *= 0.5
    return x * d["a"], x * d["b"], d


@case(3.0, 4)
def nested(x, n):
    c = 0
    s = 0.0
    for i in range(n):
        for j in range(i):
            if x * j > 3:
                c += 1
            else:
                s += 0.25 * j
        k = 1.5
        while k < x * 2:
            k *= 1.5
        s += k
    return c, s, x * s, x + c


@case(3.0, 4)
def none(x, n):
    best = None
    for i in range(n):
        if x * i > 4:
            best = i
    if best is None:
        return x * 0, -1
    return x * best, best


@case(3.0, 4)
def unset(x, n):
    for i in range(n):
        last = i * 2
    return x * last, last


@case(3.0, 4)
def becomes(x, n):
    k = 1
    for i in range(n):
        k = k / 2
    return x * k, k


@case(3.0, 4)
def strong(x, n):
    k = 1
    for i in range(n):
        k = k * x
    return k


@case(3.0, 4)
def boolint(x, n):
    k = 0
    for i in range(n):
        if x > i:
            k = True
        else:
            k = 2
    return k + 1, x * k


@case(3.0, 0)
@case(3.0, 4)
def andor(x, n):
    k = 0
    for i in range(n):
        k += 1
    a = k or 5
    b = k and 7
    return x * a, a, b, x * b


@case(3.0, 4)
def numpys(x, n):
    q = 0.1
    for i in range(n):
        q += 0.1
    return np.sin(q) * x, np.float32(2) * x * q


@case(3.0, 4)
def cmp(x, n):
    k = 0
    a = 0
    while True:
        if k == n:
            break
        if k != 2 and k <= 3 and 1 < k:
            a += 1
        k += 1
    return a, k == 4, k > 3.5, x > k, k < x, k in (1, 4), not k


@case(0.3, 4)
def grad1(x, n):
    k = 1.0
    y = x
    for i in range(n):
        k = k * 0.7
        y = y * k + ag.sin(y) * i
    return y


@case(0.3, 4)
def grad2(x, n):
    y = 1.0
    k = 1
    while k < n:
        y = y * x + k
        k = k + 1 if y > 1.2 else k + 2
    return y


@case(0.3, 4)
def reshape(x, n):
    k = 1
    while k < 3 * x + 1:
        k += 1
    v = ag.ones([6], x.dtype) * x
    return ag.reshape(v, [k, -1]), ag.tile(v, [k]), ag.one_hot(k, 4), ag.concat([v, [k]], 0)


@case(2.0, 4)
def tuplecarry(x, n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a * x, b, (a, b)


@case(2.0, 4)
def objattr(x, n):
    class C:
        pass

    c = C()
    c.n = 0
    c.w = 1.0
    for _ in range(n):
        c.n += 1
        if x > 1:
            c.w = c.w * 0.5
    return c.n * x, c.w * x, c.n, c.w


@case(2.0, 4)
def ladder(x, n):
    if x < 1:
        lr = 0.1
    elif x < 3:
        lr = 0.01
    else:
        lr = 1
    return x - lr * x, lr


@case(4, 6)
def gcd(a, b):
    a = int(a)
    b = int(b)
    while b:
        a, b = b, a % b
    return a


@case(27)
def collatz(n):
    n = int(n)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@case(2.0)
def newton(x):
    g = 1.0
    for _ in range(20):
        g2 = 0.5 * (g + 2.0 / g)
        if abs(g2 - g) < 1e-12 * x:
            break
        g = g2
    return g, g * x


@case(2.0, 7)
def steps(x, n):
    t = 0.0
    y = x
    dt = 1.0 / float(n)
    while t < 1.0 - 1e-9:
        y = y + dt * (-y + t)
        t += dt
    return y, t


@case(VECTOR, 7)
def mean(v, n):
    s = 0.0
    for i in range(n):
        s += v[i]
    return s / float(n), s / int(n)


@case(2.0, 3)
def closure(x, n):
    k = 0

    def step(m):
        nonlocal k
        k += m
        return k * 0.5

    z = x
    for i in range(n):
        z = z + step(i)
    return z, k


@case(2.0, 3)
def listrep(x, n):
    k = 0
    for i in range(n):
        k += 1
    a = [k, k + 1, 2.5]
    return a[0] * x, a[2] * x, ag.convert_to_tensor(a)


@case(2.0, 3)
def comp(x, n):
    L = [i * 2 for i in range(n)]
    return sum(L), x * sum(L), len(L), max(L)


@case(2.0, 3)
def whileelse(x, n):
    i = 0
    while i < n:
        if x * i > 100:
            break
        i += 1
    else:
        i = -1
    return x * i, i


@case(3)
def shift(n):
    k = 1
    for i in range(n):
        k = (k << 2) | i
    return k, k >> 1, k ^ 3, ~k, k & 6


@case(2.0)
def tern(x):
    k = 3 if x > 1 else 4
    s = 1 if x > 5 else 2.5
    return x * k * s, x**k, k**2 * x, 2**k, x // k, k - x, k / x, x % k


# Lists whose elements have numbers and tensors as parts.


@case(0.9)
def queue_of_pairs(x):
    queue, total = [(x, 1)], x * 0
    while queue:
        value, weight = queue.pop(0)
        total += value * weight
        if weight < 4 and x > 0.0:
            queue.append((value * x, weight + 1))
    return total


@case(0.9)
def pairs_made_in_the_loop(x):
    pairs, k = [], 1
    for _ in ag.range(3):
        pairs.append((x, k))
        k += 1
    total = x * 0
    for value, weight in pairs:
        total += value * weight
    return total, pairs[-1][1]


@case(0.9)
def a_float_comes_to_the_ints_of_records(x):
    found = [{"value": x, "count": 1, "half": 0.5}]
    for _ in ag.range(2):
        last = found[-1]
        found.append({"value": last["value"] * last["count"], "count": last["count"] * 2.5, "half": last["half"] + 1})
    found.insert(0, {"value": x, "count": 3, "half": 1})
    found.reverse()
    return [(each["value"], each["count"] * x, each["half"] * x) for each in found[:3]]


@case(0.9)
@case(0.2)
def branches_append_ints_and_floats(x):
    pairs = [(x, 1)]
    if x > 0.5:
        pairs.append((x * 2, 2))
    else:
        pairs.append((x, 2.5))
    return pairs[1][0] * pairs[1][1], x * pairs[0][1]


@case(0.9)
def a_tensor_comes_to_one_of_two_numbers(x):
    pairs = [(1, 2)]
    for _ in ag.range(3):
        pairs.append((pairs[-1][0] + 1, x * pairs[-1][1]))
    return x * pairs[-1][0], pairs[-1][1]
