"""Members of enums that a tensor chooses behave as in Python."""

from __future__ import annotations

import enum
import functools

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError, StagingTypeError
from autograph.operators.staged_loop import Loop
from tests.operators.harness import Table, check_same_as_python, run_staged

f32 = np.float32
TABLE = Table()
case = TABLE.case
SIGNALS = [
    (np.array([0.0, 2.0, 3.0, 0.0, 0.0, 2.0, 2.0], f32),),
    (np.array([0.0, 0.5], f32),),
    (np.array([5.0], f32),),
]
NUMBERS = [(f32(-1.0),), (f32(0.5),), (f32(2.0),)]


class Phase(enum.Enum):
    IDLE = 0
    BUSY = 1
    DONE = 2

    @property
    def cost(self):
        return self.value * 10 + 1

    def after(self, v):
        if v > 1.0:
            return Phase.BUSY
        return Phase.DONE if self is Phase.BUSY else Phase.IDLE

    @classmethod
    def first(cls):
        return cls.IDLE

    @staticmethod
    def twice(x):
        return x * 2

    def __str__(self):
        return self.name.lower()


class Level(enum.IntEnum):
    LOW = 1
    MIDDLE = 5
    HIGH = 10


class Right(enum.Flag):
    NONE = 0
    READ = 1
    WRITE = 2
    RUN = 4


class Planet(enum.Enum):
    EARTH = (6.0, 3)
    MARS = (0.6, 7)

    def __init__(self, mass, radius):
        self.mass = mass
        self.radius = radius


class Ordered(enum.Enum):
    A = 1
    B = 2

    def __lt__(self, other):
        if self.__class__ is other.__class__:
            return self.value < other.value
        return NotImplemented


class Many(enum.Enum):
    def _generate_next_value_(name, start, count, last_values):
        return count * count

    M0, M1, M2, M3, M4, M5, M6, M7, M8, M9, M10, M11 = (enum.auto() for _ in range(12))


COST = {Phase.IDLE: 1, Phase.BUSY: 10, Phase.DONE: 100}
NEXT = {
    (Phase.IDLE, True): Phase.BUSY,
    (Phase.IDLE, False): Phase.IDLE,
    (Phase.BUSY, True): Phase.BUSY,
    (Phase.BUSY, False): Phase.DONE,
    (Phase.DONE, True): Phase.BUSY,
    (Phase.DONE, False): Phase.DONE,
}
CYCLE = list(Many)
NEXT_OF_MANY = dict(zip(CYCLE, [*CYCLE[1:], CYCLE[0]]))


def chosen(x):
    phase = Phase.IDLE
    if x > 0.0:
        phase = Phase.BUSY
    if x > 1.0:
        phase = Phase.DONE
    return phase


@case(*SIGNALS)
def identity(t):
    phase, n = Phase.IDLE, 0
    for v in t:
        if phase is Phase.IDLE:
            n += 1
        elif phase is not Phase.DONE:
            n += 10
        phase = phase.after(v)
    return n


@case(*SIGNALS)
def equality(t):
    phase, n = Phase.IDLE, 0
    for v in t:
        n += 1 if phase == Phase.BUSY else 0
        if Phase.DONE != phase:
            n += 100
        phase = Phase.BUSY if v > 1.0 else Phase.DONE
    return n


@case(*SIGNALS)
def matched(t):
    phase, n = Phase.IDLE, 0
    for v in t:
        match phase:
            case Phase.IDLE:
                n += 1
                if v > 1.0:
                    phase = Phase.BUSY
            case Phase.BUSY | Phase.DONE if v > 2.5:
                n += 10
                phase = Phase.DONE
            case Phase():
                n += 100
                phase = Phase.IDLE
    return n


@case(*NUMBERS)
def attributes(x):
    phase = chosen(x)
    return phase.value, phase.cost, 1 if phase.name == "BUSY" else 0, phase.value * x, phase._value_


@case(*NUMBERS)
def methods(x):
    phase = chosen(x)
    after = phase.after(x)
    return after.value, phase.twice(x), phase.first().value


@case(*NUMBERS)
def membership(x):
    phase = chosen(x)
    n = 1 if phase in (Phase.IDLE, Phase.DONE) else 0
    n += 10 if phase in {Phase.BUSY: 0} else 0
    n += 100 if phase not in [Phase.BUSY] else 0
    n += 1000 if Phase.BUSY in [Phase.IDLE, phase] else 0
    return n + (10000 if phase in Phase else 0)


@case(*NUMBERS)
def tables(x):
    phase = chosen(x)
    return COST[phase], COST.get(phase, 0), {Phase.BUSY: 5}.get(phase, -1), NEXT[phase, True].value


@case(*SIGNALS)
def table_of_pairs(t):
    phase, n = Phase.IDLE, 0
    for v in t:
        n += COST[phase]
        phase = NEXT[(phase, True)] if v > 1.0 else NEXT[phase, False]
    return n, phase.value


@case(*SIGNALS)
def counted(t):
    counts = {each: 0 for each in Phase}
    phase = Phase.IDLE
    for v in t:
        counts[phase] += 1
        phase = phase.after(v)
    return [counts[each] for each in Phase]


@case(*SIGNALS)
def until_done(t):
    phase, i = Phase.IDLE, 0
    while phase is not Phase.DONE and i < len(t):
        phase = phase.after(t[i])
        i += 1
    return i


@case(*NUMBERS)
def classes(x):
    phase = chosen(x)
    n = 1 if isinstance(phase, Phase) else 0
    n += 10 if isinstance(phase, Level) else 0
    n += 100 if type(phase) is Phase else 0
    return n + (1000 if hasattr(phase, "cost") else 0) + getattr(phase, "value")


@case(*NUMBERS)
def of_value(x):
    k = 0
    if x > 0.0:
        k = 2
    phase = Phase(k)
    return phase.cost, 1 if phase is Phase.DONE else 0, Phase(phase).value


@case(*SIGNALS)
def round_and_round(t):
    phase, n = Phase.IDLE, 0
    for v in t:
        if v > 1.0:
            phase = Phase((phase.value + 1) % 3)
        n = n * 3 + phase.value
    return n


@case(*SIGNALS)
def numbers(t):
    level, total = Level.LOW, 0
    for v in t:
        total += level
        total = total + (100 if level > Level.LOW else 0) + int(level) * 2
        level = Level.HIGH if v > 2.5 else Level.MIDDLE if v > 1.0 else Level.LOW
    return total, level * 2, 3 - level, level == 5, float(level), t[0] * level


@case(*SIGNALS)
def number_as_index(t):
    level = Level.LOW
    for v in t:
        if v > 1.0:
            level = Level.HIGH
    row = list(range(20))
    return np.arange(20)[level], row[level]


@case(*SIGNALS)
def flags(t):
    rights = Right.NONE
    for v in t:
        if v > 2.5:
            rights |= Right.WRITE
        elif v > 1.0:
            rights = rights | Right.READ
        else:
            rights &= ~Right.RUN
    return rights.value, 1 if rights else 0, 1 if Right.READ in rights else 0, 1 if rights & Right.WRITE else 0


@case(*NUMBERS)
def fields(x):
    planet = Planet.EARTH if x > 0.0 else Planet.MARS
    mass, radius = planet.value
    return planet.mass * x, planet.radius, mass, radius


@case(*NUMBERS)
def compared(x):
    one = Ordered.B if x > 0.0 else Ordered.A
    other = Ordered.B if x > 1.0 else Ordered.A
    return 1 if one < other else 0, 1 if other < one else 0, 1 if one < Ordered.B else 0, 1 if one is other else 0


@case(*SIGNALS)
def absent(t):
    last, n = None, 0
    for v in t:
        if last is not None:
            n += last.value + 1
        if v > 1.0:
            last = Phase.BUSY
        elif v > 0.25:
            last = None
    return n, 1 if last is None else 0


@case(*SIGNALS)
def born_inside(t):
    n = 0
    for v in t:
        phase = Phase.BUSY if v > 1.0 else Phase.DONE
        n += phase.value
    return n, phase.value


@case(*SIGNALS)
def in_structures(t):
    pair = (Phase.IDLE, 0)
    held = {"phase": Phase.IDLE, "seen": [Phase.DONE, Phase.DONE]}
    for v in t:
        if v > 1.0:
            pair = (Phase.BUSY, pair[1] + 1)
            held["seen"][0] = held["phase"]
        held["phase"] = pair[0]
    return pair[0].value, pair[1], held["phase"].value, held["seen"][0].value


class Machine:
    def __init__(self):
        self.phase = Phase.IDLE
        self.log = 0

    def step(self, v):
        self.log = self.log * 3 + self.phase.value
        self.phase = self.phase.after(v)


@case(*SIGNALS)
def in_an_object(t):
    machine = Machine()
    for v in t:
        machine.step(v)
    return machine.log, machine.phase.value


@case(*SIGNALS)
def many(t):
    at, n = Many.M0, 0
    for v in t:
        while n % 7 < v:
            at = CYCLE[(CYCLE.index(Many.M3) + 5) % 12] if at is Many.M0 else Many.M11
            n += 1
        n += at.value
        if n > 300:
            at = Many.M2
    return n, at.value


@case(*NUMBERS)
def in_nested_functions(x):
    phase = chosen(x)

    def cost():
        return COST[phase]

    return sum(map(lambda each: each.value, [phase, phase])), cost()


HANDLERS = {Phase.IDLE: lambda x: x + 1.0, Phase.BUSY: lambda x: x * 2.0, Phase.DONE: abs}


@case(*SIGNALS)
def handled(t):
    phase, x = Phase.IDLE, 0.0
    for v in t:
        x = HANDLERS[phase](x) + v
        phase = Phase.BUSY if v > 1.0 else Phase.DONE
    return x


@case(*SIGNALS)
def swapped(t):
    a, b = Phase.IDLE, Phase.BUSY
    for v in t:
        if v > 1.0:
            a, b = b, a
    return a.value, b.value


@case(*SIGNALS)
def two_enums(t):
    state = Phase.IDLE
    for v in t:
        state = Level.HIGH if v > 1.0 else Phase.BUSY
    return state.value, 1 if isinstance(state, Level) else 0


@case(*NUMBERS)
def tuples(x):
    phase = chosen(x)
    return 1 if (phase, 1) == (Phase.BUSY, 1) else 0, 1 if [phase] == [Phase.DONE] else 0


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


@pytest.mark.parametrize("jit_compile", [None, True], ids=["", "jit"])
@pytest.mark.parametrize(("function", "arguments"), [row.values for row in TABLE.rows[::3]])
def test_same_in_functions(function, arguments, jit_compile):
    expected = ag.nest.flatten(function(*[each.copy() for each in arguments]))
    compiled = ag.function(function, jit_compile=jit_compile)
    for _ in range(3):
        found = ag.nest.flatten(compiled(*map(ag.constant, arguments)))
        np.testing.assert_allclose([float(each) for each in found], [float(each) for each in expected], rtol=1e-6)


def test_a_function_takes_and_returns_members():
    @ag.function
    def after(phase, v):
        return phase.after(v)

    @ag.function
    def last(t):
        phase = Phase.IDLE
        for v in t:
            phase = after(phase, v)
        return {"phase": phase, "none": None}

    assert after(Phase.IDLE, ag.constant(2.0)) is Phase.BUSY
    assert after(Phase.BUSY, ag.constant(0.0)) is Phase.DONE
    assert last(ag.constant([0.0, 2.0, 0.0])) == {"phase": Phase.DONE, "none": None}


def test_gradients_flow_through_what_a_choice_selects():
    @ag.function
    def total(x):
        planet = Planet.EARTH
        y = x
        for v in ag.constant([1.0, -1.0]):
            planet = Planet.MARS if v * x > 0.0 else Planet.EARTH
            y += planet.mass * x
        return y

    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = total(x)
    np.testing.assert_allclose(tape.gradient(y, x), 1.0 + 0.6 + 6.0, rtol=1e-6)


def test_a_key_that_is_missing_is_an_error_when_the_program_gets_there():
    partial = {Phase.IDLE: 1}

    @ag.function
    def cost(x):
        return partial[chosen(x)]

    assert int(cost(ag.constant(-1.0))) == 1
    with pytest.raises(KeyError, match="BUSY"):
        cost(ag.constant(0.5))


def test_a_value_without_a_member_is_an_error_when_the_program_gets_there():
    @ag.function
    def cost(k):
        return Phase(int(k)).cost

    assert int(cost(ag.constant(2))) == 21
    with pytest.raises(ValueError, match="Phase"):
        cost(ag.constant(7))


def test_an_attribute_of_none_is_an_error_when_the_program_gets_there():
    @ag.function
    def value(x):
        phase = None
        if x > 0.0:
            phase = Phase.BUSY
        return phase.value

    assert int(value(ag.constant(1.0))) == 1
    with pytest.raises(AttributeError, match="value"):
        value(ag.constant(-1.0))


def test_texts_show_the_member_of_the_run(capfd):
    @ag.function
    def shown(x):
        phase = chosen(x)
        level = Level.HIGH if x > 0.0 else Level.LOW
        if x > -10.0:
            print(phase, f"{phase:>6}|{phase!r}|{level:d}", "%s" % phase)
        if x > 1.0:
            raise ValueError(f"no {phase}")
        return x

    shown(ag.constant(0.5))
    right = f"busy   busy|{Phase.BUSY!r}|10 busy"
    assert capfd.readouterr().out.strip() == right
    with pytest.raises(ValueError, match="no done"):
        shown(ag.constant(2.0))


class Saved(ag.Module):
    @ag.function(input_signature=[ag.TensorSpec([], ag.float32)])
    def cost(self, x):
        phase = chosen(x)
        if x > 1.0:
            raise ValueError(f"no {phase}")
        return phase.value


def test_a_saved_model_holds_choices_and_their_texts(tmp_path):
    ag.saved_model.save(Saved(), str(tmp_path))
    loaded = ag.saved_model.load(str(tmp_path))
    assert int(loaded.cost(ag.constant(0.5))) == 1
    with pytest.raises(ValueError, match="no done"):
        loaded.cost(ag.constant(2.0))


REFUSALS = {
    "key": lambda phase: {phase: 1},
    "element": lambda phase: {phase},
    "set attribute": lambda phase: setattr(phase, "other", 1),
    "delete attribute": lambda phase: delattr(phase, "other"),
    "tensor": lambda phase: ag.exp(phase),
    "NumPy": lambda phase: np.asarray(phase),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_python_must_know_is_refused_at_its_line(name):
    refused = REFUSALS[name]

    @ag.function
    def program(x):
        phase = chosen(x)
        refused(phase)
        return x

    with pytest.raises(StagingTypeError) as caught:
        program(ag.constant(1.0))
    text = str(caught.value)
    assert "<one of " in text and "test_choices.py" in text
    assert "cause: which object it is" in text and "fix: " in text


def test_a_handler_around_the_choice_cannot_catch_its_error():
    @ag.function
    def cost(x):
        phase = chosen(x)
        try:
            return {Phase.IDLE: 1}[phase]
        except KeyError:
            return 0

    with pytest.raises(StagingError, match="a `try` around"):
        cost(ag.constant(1.0))


class Bit(enum.Flag):
    B0, B1, B2, B3, B4, B5, B6, B7, B8 = (1 << i for i in range(9))


def test_too_many_values_are_refused():
    @ag.function
    def program(t):
        bits = Bit.B0
        for v in t:
            for each in Bit:
                if v > 0.0:
                    bits ^= each
                v = v - 1.0
        return bits.value

    with pytest.raises(StagingTypeError, match="more than 256 objects"):
        program(ag.constant([1.0, 2.0]))


def test_members_in_a_list_that_grows_are_refused():
    @ag.function
    def program(t):
        phase, path = Phase.IDLE, []
        for v in t:
            path.append(phase)
            phase = Phase.BUSY if v > 1.0 else Phase.DONE
        return len(path)

    with pytest.raises(StagingTypeError, match="members of an enum") as caught:
        program(ag.constant([1.0, 2.0]))
    assert "test_choices.py" in str(caught.value) and "fix: put the `.value`" in str(caught.value)


def test_a_flag_of_a_staged_number_is_refused():
    @ag.function
    def program(k):
        return Right(int(k)).value

    with pytest.raises(StagingTypeError, match="known only when the program runs"):
        program(ag.constant(3))


def test_a_loop_over_a_large_enum_settles_at_once(monkeypatch):
    traces = []
    attempt = Loop.attempt
    monkeypatch.setattr(Loop, "attempt", lambda self: [traces.append(self), attempt(self)][1])

    def program(t):
        at = Many.M0
        for _ in t:
            at = NEXT_OF_MANY[at]
        return at.value

    assert run_staged(program, np.zeros(30, f32)) == program(np.zeros(30, f32))
    assert len(traces) == 2


def test_partial_and_keyword_arguments_reach_the_method():
    class Scale(enum.Enum):
        ONE = 1.0
        TEN = 10.0

        def of(self, x, *, plus=0.0):
            return x * self.value + plus

    def program(x):
        scale = Scale.TEN if x > 0.0 else Scale.ONE
        return functools.partial(scale.of, x)(plus=1.0), scale.of(x, plus=x)

    for x in (f32(2.0), f32(-2.0)):
        np.testing.assert_allclose(run_staged(program, x), program(x), rtol=1e-6)
