"""`runtime.dataclass` makes the classes that `dataclasses` makes: each program here runs with both."""

import copy
import dataclasses
import inspect
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from runtime.dataclass import dataclass as ours

MAKERS = {"ours": ours, "theirs": dataclasses.dataclass}
Maker = Callable[..., Any]


def outcome(run: Callable[[], Any]) -> Any:
    """What a call returns, or the error that it raises."""
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


def plain(dataclass: Maker, **options: bool) -> Any:
    @dataclass(**options)
    class Plain:
        """Fields of each kind."""

        kind: ClassVar[str] = "plain"
        other: "ClassVar[int]" = 3
        first: int
        second: str = "two"
        third: list[int] = field(default_factory=list)
        fourth: Any = field(default=None, compare=False)
        fifth: int = field(default=5, repr=False, hash=False)

        def total(self) -> int:
            return self.first + self.fifth

    return Plain


OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"eq": False},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False},
    {"eq": False, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
]


def report(cls: Any) -> list[Any]:
    """All that can be seen of a class of five fields and its objects."""
    one, same, other = cls(1, third=[1]), cls(1, "two", [1], 4, 5), cls(1, "two", [1], 4, 6)
    found = [
        [repr(each) for each in (one, same, other)],
        [one == same, one == other, one != other, one == (1,), one.__eq__((1,))],
        [dataclasses.asdict(one), dataclasses.astuple(other), dataclasses.is_dataclass(cls)],
        [(each.name, each.type, each.default, each.compare, each.repr, each.hash) for each in dataclasses.fields(cls)],
        repr(dataclasses.replace(one, first=7, fifth=8)),
        outcome(lambda: repr(dataclasses.replace(one, sixth=1))),
        cls.__match_args__,
        [cls.kind, cls.other, cls.second, cls.fifth] if "__slots__" not in vars(cls) else cls.__slots__,
        hasattr(cls, "third") and "__slots__" not in vars(cls),
        [str(inspect.signature(cls)), cls.__doc__, cls.__name__, cls.__qualname__, cls.__init__.__qualname__],
        outcome(cls),
        [outcome(lambda: cls(1, 2, 3, 4, 5, 6)), outcome(lambda: cls(1, x=2)), outcome(lambda: cls(1, first=2))],
        outcome(lambda: setattr(one, "first", 2)),
        type(outcome(lambda: setattr(one, "unknown", 2))),  # (theirs says something odd of frozen slots)
        outcome(lambda: delattr(one, "second")),
        [outcome(lambda: one.first), one.total(), hasattr(one, "__dict__")],
        cls(1).third is not cls(1).third,
    ]  # fmt: skip
    hashable = cls(1, third=())  # type: ignore[arg-type]
    found.append(outcome(lambda: hash(hashable) == hash(cls(1, "two", (), 9, 10))))
    found.append(outcome(lambda: hash(hashable) == hash(cls(2, "two", (), 9, 10))))
    for copied in (copy.copy(same), copy.deepcopy(same)):
        found.append([repr(copied), copied is same, copied.third is same.third])
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_and_objects_are_alike(options: dict[str, bool]) -> None:
    assert report(plain(ours, **options)) == report(plain(dataclasses.dataclass, **options))


def test_the_report_sees_differences() -> None:
    reports = [report(plain(dataclasses.dataclass, **options)) for options in OPTIONS]
    assert all(one != other for i, one in enumerate(reports) for other in reports[:i])


def with_own_methods(dataclass: Maker) -> Any:
    @dataclass(frozen=True)
    class Own:
        a: int
        b: int = 2

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.a + self.b)

        def __repr__(self) -> str:
            return f"<{self.a}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.a == other.a

        def __hash__(self) -> int:
            return 11

    return Own


def with_equality_only(dataclass: Maker) -> Any:
    @dataclass(frozen=True)
    class Equal:
        a: int
        b: int

        def __eq__(self, other: object) -> bool:
            return self.a == getattr(other, "a", None)

    return Equal


def with_own_init(dataclass: Maker) -> Any:
    @dataclass
    class Own:
        a: int
        b: int = 2

        def __init__(self, both: int) -> None:
            self.a = self.b = both

    return Own


@pytest.mark.parametrize("make", [with_own_methods, with_equality_only])
def test_methods_of_the_class_stay(make: Callable[[Maker], Any]) -> None:
    def seen(cls: Any) -> list[Any]:
        one, other = cls(1, 2), cls(1, 3)
        return [one == other, hash(one) == hash(other), repr(one), one.b, hash(one) == 11]

    assert seen(make(ours)) == seen(make(dataclasses.dataclass))


def test_an_init_of_the_class_stays() -> None:
    assert [repr(with_own_init(make)(4)) for make in MAKERS.values()] == ["with_own_init.<locals>.Own(a=4, b=4)"] * 2


def family(dataclass: Maker, frozen: bool, slots: bool) -> tuple[Any, Any, Any]:
    @dataclass(frozen=frozen, slots=slots)
    class Base:
        a: int
        b: int = 2

    @dataclass(frozen=frozen, slots=slots)
    class Derived(Base):
        c: int = 3
        b: int = 20

    class Plain(Derived):
        pass

    return Base, Derived, Plain


def test_fields_that_init_does_not_take() -> None:
    def seen(dataclass: Maker) -> list[Any]:
        @dataclass
        class Late:
            a: int
            b: int = field(init=False)
            c: int = field(default=3, init=False)

        one = Late(1)
        found = [str(inspect.signature(Late)), Late.__match_args__, outcome(lambda: Late(1, 2)), outcome(lambda: one.b)]
        one.b = 2
        return [*found, repr(one), outcome(lambda: one == Late(1))]

    assert seen(ours) == seen(dataclasses.dataclass)


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_classes_inherit_fields(frozen: bool, slots: bool) -> None:
    def seen(dataclass: Maker) -> list[Any]:
        base, derived, plain = family(dataclass, frozen, slots)
        one = plain(1)
        found = [repr(base(1)), repr(derived(1)), repr(one), base(1) == derived(1, 2), derived(1) == one]
        found += [outcome(lambda: setattr(one, "a", 2)), one.a]
        if sys.version_info >= (3, 11):  # Python 3.10 repeats the slots of the base
            found.append(getattr(derived, "__slots__", None))
        if not (frozen and slots):  # theirs raises an error there, about `super`
            found.append(outcome(lambda: setattr(one, "new", 2)))
        return [*found, repr(dataclasses.replace(one, c=4)), derived.__match_args__]

    assert seen(ours) == seen(dataclasses.dataclass)


@pytest.mark.parametrize("names", [("ours", "theirs"), ("theirs", "ours")])
def test_one_may_inherit_from_the_other(names: tuple[str, str]) -> None:
    @MAKERS[names[0]](frozen=True)
    class Base:
        a: int
        b: list[int] = field(default_factory=list)

    @MAKERS[names[1]](frozen=True)
    class Derived(Base):
        c: int = 3

    assert repr(Derived(1)).endswith("Derived(a=1, b=[], c=3)")
    assert Derived(1) == Derived(1, [], 3) != Derived(2)


def test_wrong_classes_are_refused() -> None:
    def default_before(dataclass: Maker) -> Any:
        @dataclass
        class Wrong:
            a: int = 1
            b: int  # type: ignore[misc]

        return Wrong

    def mutable(dataclass: Maker) -> Any:
        @dataclass
        class Wrong:
            a: list[int] = []

        return Wrong

    for make in (default_before, mutable):
        kinds = [outcome(lambda make=make, maker=maker: make(maker))[0] for maker in MAKERS.values()]  # type: ignore[misc]
        assert kinds[0] is kinds[1] and issubclass(kinds[0], Exception)
    with pytest.raises(TypeError, match="'a' needs dataclasses.dataclass"):
        ours(type("Wrong", (), {"__annotations__": {"a": int}, "a": field(init=False, default_factory=list)}))
    with pytest.raises(TypeError, match="'a' needs dataclasses.dataclass"):
        ours(type("Wrong", (), {"__annotations__": {"a": int}, "a": field(kw_only=True)}))


@ours(frozen=True, slots=True)
class Frozen:
    a: int
    b: Any = None
    c: Any = None


@ours
class Changing:
    a: int
    b: Any = None


@ours(eq=False, slots=True)
class Slots:
    a: int
    b: Any = None


@pytest.mark.parametrize("cls", [Frozen, Changing, Slots])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(cls: Any, protocol: int) -> None:
    found = pickle.loads(pickle.dumps(cls(1, [cls(2)]), protocol))
    assert repr(found) == repr(cls(1, [cls(2)]))


def test_an_object_that_holds_itself_has_a_text() -> None:
    one = Changing(1)
    one.b = one
    assert repr(one) == "Changing(a=1, b=...)"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is Python 3.13's")
def test_copies_with_changes() -> None:
    assert copy.replace(Frozen(1), a=2) == Frozen(2)  # type: ignore[attr-defined]


def test_patterns_name_fields_by_position() -> None:
    match Frozen(1, 2):
        case Frozen(a, b):
            assert (a, b) == (1, 2)
        case _:
            raise AssertionError


def test_the_project_makes_its_classes_this_way() -> None:
    root = Path(__file__).parent.parent
    files = [file for folder in ("autograph", "runtime") for file in (root / folder).rglob("*.py")]
    theirs = re.compile(r"^(from dataclasses import .*\bdataclass\b|@dataclasses\.dataclass)", re.MULTILINE)
    found = [file.relative_to(root).as_posix() for file in files if theirs.search(file.read_text(encoding="utf-8"))]
    assert found == ["runtime/dataclass.py"]  # which takes apart one of theirs


def test_classes_with_as_many_fields_share_code_but_for_the_names() -> None:
    @ours(frozen=True)
    class Other:
        x: int
        y: int = 2
        z: int = 3

    assert Other(1, z=4) == Other(1, 2, 4)
    assert Other.__init__.__code__.co_code == Frozen.__init__.__code__.co_code
    assert Frozen.__init__.__code__.co_varnames == ("self", "a", "b", "c")
    with pytest.raises(TypeError, match=r"Frozen.__init__\(\) missing 1 required positional argument: 'a'"):
        Frozen()  # type: ignore[call-arg]
