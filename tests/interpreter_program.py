"""Values, classes and signatures that need what Python doesn't promise, or are made another way; `test_interpreter.py`
runs it."""

import inspect

import autograph as ag
from runtime.dataclass import dataclass


@dataclass(frozen=True)
class Pair:
    first: int
    second: int = 2


v = ag.Variable([1.0, 2.0])
before = v.read_value()
v.assign_add([1.0, 1.0])
print(before.numpy(), v.numpy(), v.assign_sub([3.0, 3.0]).numpy())
print(Pair(1), Pair(first=1) == Pair(1, 2), hash(Pair(1)) == hash(Pair(1)), list(inspect.signature(Pair).parameters))
print(ag.nn.relu(features=[-1.0, 2.0]).numpy(), inspect.signature(ag.nn.relu))
try:
    ag.nn.relu(x=[1.0])
except TypeError as error:
    print(type(error).__name__)


@ag.function
def rows(x):
    rows = [[x], [x + 1.0]]
    for i in ag.range(2):
        rows.append([rows[i][0] * 2.0])
    return [row[0] for row in rows]


print([each.numpy() for each in rows(ag.constant(1.0))])
