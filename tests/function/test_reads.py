"""A trace is made anew when something changes that it has read, whichever way it was reached; and only then."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import operator
import types
import weakref
from typing import Any, NamedTuple

import pytest

import autograph as ag


class Thing:
    scale = 7.0

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate
        self.unread = 0

    @property
    def double(self) -> float:
        return self.rate * 2.0

    @functools.cached_property
    def inner(self) -> Thing:
        return Thing(self.rate)

    def __call__(self, x: Any) -> Any:
        return x * self.rate

    def __getitem__(self, key: Any) -> float:
        return self.rate + key

    def __iter__(self) -> Any:
        return iter([self.rate])

    def __len__(self) -> int:
        return int(self.rate)

    def __contains__(self, item: Any) -> bool:
        return bool(self.rate == item)

    def __add__(self, other: Any) -> Any:
        return self.rate + other

    def __lt__(self, other: Any) -> bool:
        return self.rate < other

    def __enter__(self) -> float:
        return self.rate

    def __exit__(self, *error: Any) -> None:
        pass

    def __bool__(self) -> bool:
        return self.rate == 1.0

    def method(self, x: Any) -> Any:
        return x * self.rate

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.scale

    @staticmethod
    def of_static(x: Any) -> Any:
        return x * thing.rate


class Derived(Thing):
    def method(self, x: Any) -> Any:
        return super().method(x) + 1.0

    @property
    def double(self) -> float:
        return super().double + 1.0


class Slotted:
    __slots__ = ("rate",)


class Dynamic:
    def __init__(self) -> None:
        self.held = {"rate": 1.0}

    def __getattr__(self, name: str) -> Any:
        if name == "rate":
            return self.held["rate"]
        raise AttributeError(name)


class Pair(NamedTuple):
    one: Any
    other: Any


@dataclasses.dataclass
class Config:
    rate: float = 1.0
    thing: Any = None


thing = Thing()
derived = Derived()
slotted = Slotted()
dynamic = Dynamic()
config = Config(thing=thing)
things = [thing]
table = {"rate": 1.0, "thing": thing}
rates = [1.0, 2.0]
nested = [[1.0, 2.0], {"rate": [3.0]}]
pair = Pair(thing, rates)
queue = collections.deque([1.0, 2.0])
names = {"rate"}
module = types.ModuleType("settings_of_a_test")
module.rate = 1.0  # type: ignore[attr-defined]
KEY = "rate"
RATE = 1.0


def reset() -> None:
    global RATE, KEY
    for each in (thing, derived, config):
        each.rate = 1.0
    for name in ("extra", "inner"):
        vars(thing).pop(name, None)
    slotted.rate = 1.0
    dynamic.held["rate"] = 1.0
    table.update(rate=1.0, other=5.0)
    rates[:] = [1.0, 2.0]
    nested[1]["rate"][0] = 3.0  # type: ignore[call-overload]
    queue[0] = 1.0
    names.clear()
    names.add("rate")
    module.rate = 1.0  # type: ignore[attr-defined]
    Thing.scale = 7.0
    RATE, KEY = 1.0, "rate"


def rate_of(each: Any) -> Any:
    return each.rate


RATE_OF = operator.attrgetter("rate")


@functools.lru_cache(None)
def the_thing() -> Thing:
    return thing


def identity(each: Any) -> Any:
    return each


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@decorated
def through_a_decorator(x: Any, each: Any, *, by: Any = None) -> Any:
    return x * each.rate * (1.0 if by is None else by.rate)


class Net:
    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.parts = [Part(settings)]

    def run(self, x: Any) -> Any:
        for each in self.parts:
            x = each(x)
        return x * self.settings.thing.rate


class Part:
    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def __call__(self, x: Any) -> Any:
        return x + self.settings.rate


def local_alias(x: Any) -> Any:
    cfg = config
    part = cfg.thing
    return x * part.rate


def in_tuple(x: Any) -> Any:
    _, each = (1.0, thing)
    return x * each.rate


def in_a_loop(x: Any) -> Any:
    for _index, each in enumerate(things):
        x = x * each.rate
    return x


def in_a_zip(x: Any) -> Any:
    for each, _name in zip(things, ["a"]):
        x = each(x)
    return x


def over_items(x: Any) -> Any:
    for name, value in table.items():
        if name == "thing":
            x = x * value.rate
    return x


def over_numbers(x: Any) -> Any:
    for each in rates:
        x = x * each
    return x


def computed_key(x: Any) -> Any:
    for i in range(2):
        x = x * rates[i]
    return x


def inner_function(x: Any) -> Any:
    def scaled(y: Any, each: Any) -> Any:
        return y * each.rate

    return scaled(x, thing)


def in_a_with(x: Any) -> Any:
    with thing as rate:
        return x * rate


def in_a_try(x: Any) -> Any:
    try:
        return x * thing.extra  # type: ignore[attr-defined]
    except AttributeError:
        return x


def in_staged(x: Any) -> Any:
    total = x
    for v in ag.range(2):
        if x > 0.0:
            total += thing.rate * ag.cast(v, ag.float32)
        else:
            total -= table["rate"]  # type: ignore[operator]
    return total


def walrus(x: Any) -> Any:
    return x * each.rate if (each := things[0]) is not None else x


def matched(x: Any) -> Any:
    match config:
        case Config(rate=1.0):
            return x
        case _:
            return x * 5.0


READS = {
    "attribute": lambda x: x * thing.rate,
    "property": lambda x: x * thing.double,
    "inherited property": lambda x: x * derived.double,
    "cached property": lambda x: x * thing.inner.rate,
    "call": lambda x: thing(x),
    "method": lambda x: thing.method(x),
    "super": lambda x: derived.method(x),
    "bound method": lambda x: (lambda f: f(x))(thing.method),
    "class method": lambda x: thing.of_class(x),
    "class attribute": lambda x: x * Thing.scale,
    "class attribute by the instance": lambda x: x * thing.scale,
    "static method": lambda x: Thing.of_static(x),
    "getattr": lambda x: x * getattr(thing, "rate"),
    "getattr by a name": lambda x: x * getattr(thing, KEY),
    "getattr with default": lambda x: x * getattr(thing, "extra", 1.0),
    "hasattr": lambda x: x * (3.0 if hasattr(thing, "extra") else 1.0),
    "vars": lambda x: x * vars(thing)["rate"],
    "__dict__": lambda x: x * thing.__dict__["rate"],
    "__getattr__": lambda x: x * dynamic.rate,
    "slot": lambda x: x * slotted.rate,
    "module": lambda x: x * module.rate,  # type: ignore[attr-defined]
    "item": lambda x: x * table["rate"],  # type: ignore[operator]
    "item at a name": lambda x: x * table[KEY],  # type: ignore[operator]
    "get": lambda x: x * table.get("rate", 0.0),  # type: ignore[operator]
    "get of a missing key": lambda x: x * table.get("missing", 1.0),  # type: ignore[operator]
    "in a dictionary": lambda x: x * (2.0 if "missing" in table else 1.0),
    "in a set": lambda x: x * (2.0 if "missing" in names else 1.0),
    "object in a dictionary": lambda x: x * table["thing"].rate,  # type: ignore[attr-defined]
    "object in a list": lambda x: x * things[0].rate,
    "object at the end of a list": lambda x: x * things[-1].rate,
    "list": lambda x: x * rates[0],
    "slice": lambda x: x * rates[:1][0],
    "nested list": lambda x: x * nested[1]["rate"][0],  # type: ignore[call-overload]
    "named tuple": lambda x: x * pair.one.rate * pair.other[0],
    "deque": lambda x: x * queue[0],
    "len": lambda x: x * len(rates),
    "sum": lambda x: x * sum(rates),
    "max": lambda x: x * max(rates),
    "constant": lambda x: x * ag.reduce_sum(ag.constant(rates)),
    "unpacked": lambda x: x * (lambda a, b: a * b)(*rates),
    "comparison of lists": lambda x: x * (2.0 if rates == [1.0, 2.0] else 1.0),
    "truth of a list": lambda x: x * (2.0 if rates else 1.0),
    "comprehension": lambda x: x * sum([each.rate for each in things]),
    "map": lambda x: x * sum(map(rate_of, things)),
    "sorted": lambda x: x * sorted(things, key=lambda each: each.rate)[0].rate,
    "helper": lambda x: x * rate_of(thing),
    "helper with a keyword": lambda x: x * rate_of(each=thing),
    "result of a helper": lambda x: x * identity(thing).rate,
    "decorator": lambda x: through_a_decorator(x, thing),
    "decorator with a keyword": lambda x: through_a_decorator(x, thing, by=thing),
    "partial": lambda x: x * functools.partial(rate_of, thing)(),
    "conditional": lambda x: x * (thing if x is not None else None).rate,  # type: ignore[union-attr]
    "or": lambda x: x * (None or thing).rate,
    "copy": lambda x: x * copy.copy(thing).rate,
    "replace": lambda x: x * dataclasses.replace(config).rate,
    "asdict": lambda x: x * dataclasses.asdict(Config(config.rate))["rate"],
    "made of it": lambda x: Net(config).run(x),
    "dataclass made of it": lambda x: x * Config(thing=thing).thing.rate,
    "global": lambda x: x * RATE,
    "attrgetter": lambda x: x * operator.attrgetter("thing.rate")(config),
    "attrgetter of the module": lambda x: x * RATE_OF(thing),
    "cached function": lambda x: x * the_thing().rate,
    "f-string": lambda x: x * len(f"{rates}"),
    "special getitem": lambda x: x * thing[1.0],
    "special iter": lambda x: x * sum(thing),  # type: ignore[call-overload]
    "special len": lambda x: x * len(thing),
    "special contains": lambda x: x * (1.0 if 1.0 in thing else 2.0),
    "special add": lambda x: x * (thing + 1.0),
    "special less": lambda x: x * (1.0 if thing < 2.0 else 3.0),
    "special bool": lambda x: x * (1.0 if thing else 3.0),
    **{
        each.__name__.replace("_", " "): each
        for each in (
            local_alias, in_tuple, in_a_loop, in_a_zip, over_items, over_numbers, computed_key, inner_function,
            in_a_with, in_a_try, in_staged, walrus, matched,
        )
    },
}  # fmt: skip


def change() -> None:
    global RATE
    for each in (thing, derived, config):
        each.rate = 4.0
    thing.extra = 8.0  # type: ignore[attr-defined]
    vars(thing).pop("inner", None)
    slotted.rate = 4.0
    dynamic.held["rate"] = 4.0
    table.update(rate=4.0, missing=2.0)
    rates[:] = [4.0, 5.0, 6.0] if len(rates) == 2 else rates
    nested[1]["rate"][0] = 4.0  # type: ignore[call-overload]
    queue[0] = 4.0
    names.add("missing")
    module.rate = 4.0  # type: ignore[attr-defined]
    Thing.scale = 4.0
    RATE = 4.0


def change_back() -> None:
    reset()
    table.pop("missing", None)


@pytest.mark.parametrize("name", READS)
def test_a_change_is_seen(name: str) -> None:
    change_back()
    program = READS[name]
    compiled = ag.function(program)
    x = ag.constant(3.0)
    try:
        for _ in range(3):
            vars(thing).pop("inner", None)
            assert float(compiled(x)) == float(program(x))
        assert compiled.experimental_get_tracing_count() == 1
        if name == "unpacked":
            rates[:] = [4.0, 5.0]
        else:
            change()
        thing.unread += 1
        assert float(compiled(x)) == float(program(x))
        assert compiled.experimental_get_tracing_count() == 2
    finally:
        change_back()


@pytest.mark.parametrize("name", READS)
def test_what_is_not_read_may_change(name: str) -> None:
    change_back()
    compiled = ag.function(READS[name])
    x = ag.constant(3.0)
    for _ in range(3):
        compiled(x)
        thing.unread += 1
        derived.unread += 1
    assert compiled.experimental_get_tracing_count() == 1 or "vars" in name


def test_two_objects_of_one_class_are_told_apart() -> None:
    one, other = Thing(1.0), Thing(2.0)

    @ag.function
    def f(x: Any) -> Any:
        return one.method(x) + other.method(x)

    assert float(f(ag.constant(1.0))) == 3.0
    other.rate = 10.0
    assert float(f(ag.constant(1.0))) == 11.0


def test_self_is_followed() -> None:
    class Model(ag.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [Thing(2.0), Thing(3.0)]
            self.options = {"rate": 1.0}

        @ag.function
        def __call__(self, x: Any) -> Any:
            for part in self.parts:
                x = part(x)
            return x * self.options["rate"]

    model = Model()
    assert float(model(ag.constant(1.0))) == 6.0
    model.parts[1].rate = 5.0
    assert float(model(ag.constant(1.0))) == 10.0
    model.options["rate"] = 2.0
    assert float(model(ag.constant(1.0))) == 20.0
    model.parts.append(Thing(10.0))
    assert float(model(ag.constant(1.0))) == 200.0


def test_a_function_that_is_replaced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    @ag.function
    def f(x: Any) -> Any:
        return x * rate_of(thing)

    assert float(f(ag.constant(3.0))) == 3.0
    monkeypatch.setitem(globals(), "rate_of", lambda each: 10.0)
    assert float(f(ag.constant(3.0))) == 30.0


def test_looking_changes_nothing_and_runs_nothing_of_the_users() -> None:
    seen: list[str] = []

    class Watched:
        def __init__(self) -> None:
            self.items = collections.defaultdict(float)

        @property
        def rate(self) -> float:
            seen.append("property")
            return 2.0

        def __getattr__(self, name: str) -> Any:
            seen.append(name)
            raise AttributeError(name)

    watched = Watched()

    @ag.function
    def f(x: Any) -> Any:
        if getattr(watched, "absent", None) is None and watched.items.get("key") is None:
            return x * watched.rate
        return x * watched.items["key"]

    for _ in range(3):
        assert float(f(ag.constant(1.0))) == 2.0
    assert seen.count("absent") == 1 and seen.count("property") == 1
    assert not watched.items


def test_functions_that_call_themselves_are_gone_over_once() -> None:
    held = Thing(2.0)
    down = lambda n: held.rate if n == 0 else down(n - 1)  # noqa: E731  a lambda is what this is about

    def depth(each: Any, n: int) -> Any:
        return each.rate if n == 0 else depth(each, n - 1)

    @ag.function
    def f(x: Any) -> Any:
        return x * down(3) * depth(held, 3)

    assert float(f(ag.constant(1.0))) == 4.0
    held.rate = 3.0
    assert float(f(ag.constant(1.0))) == 9.0


def test_helpers_deep_in_one_another_are_followed() -> None:
    held = Thing(2.0)
    helpers: list[Any] = [lambda each: each.rate]
    for _ in range(120):
        helpers.append(lambda each, inner=helpers[-1]: inner(each))
    last = helpers[-1]

    @ag.function
    def f(x: Any) -> Any:
        return x * last(held)

    assert float(f(ag.constant(1.0))) == 2.0
    held.rate = 3.0
    assert float(f(ag.constant(1.0))) == 3.0


def test_guards_keep_no_object_alive() -> None:
    class Model:
        def __init__(self) -> None:
            self.things = [Thing(2.0)]

        @ag.function
        def run(self, x: Any) -> Any:
            return x * self.things[0].rate * Net(Config(thing=self.things[0])).run(x)

    model = Model()
    gone = weakref.ref(model), weakref.ref(model.things[0])
    gc.collect()
    gc.disable()
    try:
        model.run(ag.constant(1.0))
        model.things[0] = Thing(3.0)
        assert gone[1]() is None
    finally:
        gc.enable()
    model.run(ag.constant(1.0))
    del model
    gc.collect()
    assert gone[0]() is None


def test_types_count() -> None:
    held = [1]

    @ag.function
    def f(x: Any) -> Any:
        return x if isinstance(held[0], bool) else x * 2 + len(held)

    assert float(f(ag.constant(1.0))) == 3.0
    held[0] = True
    assert float(f(ag.constant(1.0))) == 1.0


# --- what the function changes itself ------------------------------------------------------------------------------

COUNT = 0


def test_a_change_from_outside_is_seen_where_the_function_counts() -> None:
    global COUNT
    COUNT = 0

    @ag.function
    def count(x: Any) -> Any:
        global COUNT
        COUNT += 1
        return x + COUNT

    x = ag.constant(1)
    assert [int(count(x)) for _ in range(3)] == [2, 2, 2]
    COUNT = 100
    assert [int(count(x)) for _ in range(2)] == [102, 102]
    assert COUNT == 101
    COUNT = 1
    assert int(count(x)) == 3


def test_a_counted_attribute() -> None:
    class Counter:
        n = 0

        @ag.function
        def step(self, x: Any) -> Any:
            self.n += 1
            return x + self.n

    counter = Counter()
    assert [int(counter.step(ag.constant(0))) for _ in range(3)] == [1, 1, 1]
    counter.n = 10
    assert int(counter.step(ag.constant(0))) == 11


def test_traces_of_two_signatures_do_not_undo_each_other() -> None:
    global COUNT
    COUNT = 0

    @ag.function
    def count(x: Any) -> Any:
        global COUNT
        COUNT += 1
        return x * COUNT

    whole, real = ag.constant(1), ag.constant(1.0)
    for _ in range(4):
        assert (int(count(whole)), float(count(real))) == (1, 2.0)
    assert count.experimental_get_tracing_count() == 2
    COUNT = 50
    for _ in range(4):
        assert (int(count(whole)), float(count(real))) == (51, 52.0)
    assert count.experimental_get_tracing_count() == 4


def test_what_is_made_on_the_first_call_is_no_change() -> None:
    class Lazy:
        def __init__(self) -> None:
            self.built = False
            self.weight: Any = None
            self.log: list[Any] = []

        @ag.function
        def __call__(self, x: Any) -> Any:
            if not self.built:
                self.weight = ag.Variable(2.0)
                self.built = True
            if self.weight is None:
                raise ValueError
            self.log.append("traced")
            return x * self.weight

    lazy = Lazy()
    for _ in range(4):
        assert float(lazy(ag.constant(3.0))) == 6.0
    assert lazy.__call__.experimental_get_tracing_count() <= 2


def test_what_a_package_of_checks_wraps_is_read_and_its_own_state_is_not(tmp_path: Any) -> None:
    text = """
import functools
state = {"checks": 0}

def check(function):
    @functools.wraps(function)
    def checked(*arguments):
        return function(*arguments) if state["checks"] < 10 else None
    return checked
"""
    file = tmp_path / "decorator.py"
    file.write_text(text, encoding="utf-8")
    package: dict[str, Any] = {"__name__": "check_shapes.decorator"}
    exec(compile(text, str(file), "exec"), package)

    class Model:
        rate = 2.0

        @package["check"]
        def loss(self, x: Any) -> Any:
            return x * self.rate

    model = Model()
    f = ag.function(lambda x: model.loss(x))
    assert float(f(ag.constant(3.0))) == 6.0
    package["state"]["checks"] = 1
    assert float(f(ag.constant(3.0))) == 6.0 and f.experimental_get_tracing_count() == 1
    model.rate = 5.0
    assert float(f(ag.constant(3.0))) == 15.0 and f.experimental_get_tracing_count() == 2
