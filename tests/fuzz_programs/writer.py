"""Random programs on tensors that use what Python offers: lists, dictionaries, objects, aliases, `try`, `with`,
`match`, comprehensions, closures, loops and jumps.

A program is `def program(x, y, n)`: x and y are float32 scalars, n is an int32 scalar. Variables are initialised before
anything else, so that all of them can be used everywhere; which of them matter in the end is drawn first, since what
nobody reads may be left alone. Numbers stay of the order of one.
"""

from __future__ import annotations

import random

PRELUDE = """\
import contextlib
import dataclasses

import autograph as ag


class Box:
    def __init__(self, v, items):
        self.v = v
        self.items = items

    def add(self, value):
        self.items.append(value)
        self.v = self.v * 0.5 + value

    def moved(self, value):
        return Box(self.v * 0.5 + value, self.items)


@dataclasses.dataclass
class Pair:
    v: object
    w: object


class Guard:
    def __init__(self, box):
        self.box = box

    def __enter__(self):
        self.box.v = self.box.v * 0.9
        return self.box

    def __exit__(self, *error):
        self.box.v = self.box.v + 0.125


@contextlib.contextmanager
def lent(box):
    box.v = box.v * 0.9
    yield box
    box.v = box.v + 0.125


def change(items, value):
    if value > 0.3:
        items.append(value)
    elif len(items) > 0:
        items[0] = value


def changed(items, value):
    if value > 0.2:
        return items
    return [value, value * 0.5]


def grown(items, value):
    items += [value]
    return items


def total(items):
    result = 0.0
    for item in items:
        result = result * 0.5 + item
    return result


"""

SCALARS = ("a", "b", "c")
LISTS = ("L", "M", "N")
DICTS = ("D", "E")
BOXES = ("o", "p")
PAIRS = ("q", "r")
_MOST_STATEMENTS = 14


class Writer:
    def __init__(self, seed: int) -> None:
        self.choices = random.Random(seed)
        self.lines: list[str] = []
        self.left = self.choices.choice([2, 4, 7, _MOST_STATEMENTS])
        self.names = 0
        self.integers = ["n"]

    # --- drawing ---------------------------------------------------------------------------------------------------

    def pick(self, *options: str) -> str:
        return self.choices.choice(options)

    def chance(self, percent: int) -> bool:
        return self.choices.randrange(100) < percent

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    # --- the program -----------------------------------------------------------------------------------------------

    def text(self) -> str:
        # Few variables of each kind, so that statements meet.
        choices = self.choices
        self.lists = choices.sample(LISTS, choices.choice([1, 1, 2, 3]))
        self.dicts = choices.sample(DICTS, choices.choice([0, 0, 1, 2]))
        self.boxes = choices.sample(BOXES, choices.choice([0, 0, 1, 2]))
        self.pairs = choices.sample(PAIRS, choices.choice([0, 0, 1, 2]))
        self.nests = ["Q"] if self.chance(15) else []
        everything = [*self.lists, *self.dicts, *self.boxes, *self.pairs, *self.nests]
        # Whether only numbers are returned, which a return in the middle may do as well.
        self.returns_numbers = self.chance(25)
        used = [name for name in everything if self.chance(70)] or everything[:1]
        self.add(0, "def program(x, y, n):")
        self.add(1, "a, b, c = x, y, 0.25")
        for name in everything:
            self.add(1, f"{name} = {self.first(name, everything)}")
        self.block(1, loops=0, most=5)
        if self.returns_numbers:
            self.add(1, f"return {self.number(1)}, {' + '.join(self.summary(name) for name in used)}")
        else:
            self.add(1, f"return {', '.join([self.pick('a', 'b', 'c'), *map(self.shown, used)])}")
        return PRELUDE + "\n".join(self.lines) + "\n"

    def first(self, name: str, everything: list[str]) -> str:
        earlier = [each for each in everything[: everything.index(name)] if each in LISTS]
        if name in LISTS:
            return self.pick(*self.new_lists(), *earlier)
        if name in DICTS:
            return "{'k': " + self.number(0) + ", 'items': " + self.pick("[]", "[0.5]", *earlier) + "}"
        if name in BOXES:
            return f"Box({self.number(0)}, {self.pick('[]', '[0.5]', *earlier)})"
        if name in PAIRS:
            return f"Pair({self.number(0)}, {self.number(0)})"
        return f"[{self.pick('[x]', *earlier)}, {self.pick('[y, x]', *earlier)}]"

    def shown(self, name: str) -> str:
        if name in LISTS:
            return self.pick(name, f"len({name})", f"total({name})", name)
        if name in DICTS:
            return self.pick(name, f"{name}['k']", f"{name}['items']")
        if name in BOXES:
            return self.pick(f"{name}.v", f"{name}.items", f"{name}.v, {name}.items")
        if name in PAIRS:
            return f"{name}.v, {name}.w"
        return name

    def summary(self, name: str) -> str:
        if name in LISTS:
            return self.pick(f"sum({name})", f"total({name})", f"ag.cast(len({name}), ag.float32)")
        if name in DICTS:
            return f"{name}['k'] + sum({name}['items'])"
        if name in BOXES:
            return f"{name}.v + sum({name}.items)"
        if name in PAIRS:
            return f"{name}.v * {name}.w"
        return f"sum({name}[0]) + sum({name}[1])"

    # --- expressions -----------------------------------------------------------------------------------------------

    def new_lists(self) -> list[str]:
        return ["[1.0]", f"[{self.number(0)}]", f"[{self.number(0)}, {self.number(0)}]", "[x, y, 0.5]", "[]"]

    def number(self, depth: int = 2) -> str:
        name = self.pick("x", "y", *SCALARS)
        if depth == 0 or self.chance(30):
            return self.pick(name, name, name, "0.5", "-0.75")
        one, two = self.number(depth - 1), self.number(depth - 1)
        options = [
            f"({one} + {two}) * 0.5", f"{one} * {two}", f"{one} - 0.3", f"ag.sin({one} * 1.0)", f"({one} - {two})",
            f"({one} if {self.truth(0)} else {two})",
        ]  # fmt: skip
        # What a list holds may have to exist: mostly a list of a known first element.
        items = self.pick(*self.lists)
        options += [f"sum({items})", f"total({items})", f"sum([v * {one} for v in {items}])"]
        options += [f"{items}[0]", f"{items}[-1]"] * self.chance(40)
        options += [f"({items}[0] if {items} else {two})"]
        if self.dicts:
            name = self.pick(*self.dicts)
            options += [f"{name}['k']", f"sum({name}['items'])", f"sum([v * 0.5 for v in {name}['items']])"]
        if self.boxes:
            name = self.pick(*self.boxes)
            options += [f"{name}.v", f"total({name}.items)"]
        if self.pairs:
            options += [f"{self.pick(*self.pairs)}.{self.pick('v', 'w')}"]
        return self.choices.choice(options)

    def truth(self, depth: int = 1) -> str:
        limit = self.pick("0.1", "0.3", "0.6", "-0.2")
        options = [f"{self.pick('x', 'y', 'a', 'b')} > {limit}", f"{self.pick(*self.integers)} % 2 == 0", "n > 1"]
        if depth:
            options += [
                f"{self.number(1)} > {limit}", f"len({self.pick(*self.lists)}) > {self.pick('0', '1', '2')}",
                f"{self.truth(0)} and {self.truth(0)}", f"not {self.truth(0)} or {self.truth(0)}",
                f"x > {limit}", f"y < {limit}", f"any([v > {limit} for v in {self.pick(*self.lists)}])",
            ]  # fmt: skip
        return self.choices.choice(options)

    def some_list(self) -> str:
        options = [*self.lists, *self.lists, *[f"{each}.items" for each in self.boxes]]
        options += [f"{each}['items']" for each in self.dicts] + [f"{each}[0]" for each in self.nests]
        return self.choices.choice(options)

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, depth: int, loops: int, most: int = 3) -> None:
        for _ in range(self.choices.randint(1, most)):
            if not self.statement(depth, loops):
                return

    def statement(self, depth: int, loops: int) -> bool:
        """One statement; False if nothing after it could be reached."""
        self.left -= 1
        kinds = ["scalar", *["list"] * 6, *["dict"] * len(self.dicts), *["box"] * len(self.boxes)]
        kinds += ["pair"] * len(self.pairs) + ["nest"] * 2 * len(self.nests)
        if self.left > 0 and depth < 6:
            kinds += [*["if"] * 5, "for", "for", "while", "try", "try", "with", "match", "call", "lazy"]
        if loops:
            kinds += ["jump"]
        if self.returns_numbers:
            kinds += ["give"]
        return getattr(self, "do_" + self.pick(*kinds))(depth, loops) is not False

    def do_scalar(self, depth: int, loops: int) -> None:
        name = self.pick(*SCALARS)
        self.add(depth, self.pick(f"{name} = ag.tanh(1.0 * {self.number()})", f"{name} += 0.25", f"{name} *= 0.5"))

    def do_list(self, depth: int, loops: int) -> None:
        name, other, place = self.pick(*self.lists), self.pick(*self.lists), self.some_list()
        e = self.pick(self.number(0), self.number(1))
        self.add(depth, self.pick(
            f"{place}.append({e})", f"{place}.append({e})", f"{place}.append({e})", f"{place}.pop()",
            f"{name} = {self.pick(*self.new_lists())}", f"{name} = {self.pick(*self.new_lists())}",
            f"{place} = [{e}]", f"{name} = {place}", f"{name} = {other}", f"{name} = list({place})",
            f"{name} = {name} + [{e}]", f"{name} = {name}[-3:] + [{e}]", f"{name} = {other}[1:]",
            f"{name} = [v * 0.5 for v in {place}]", f"{name} = [v for v in {place} if v > 0.1]",
            f"{name} += [{e}]", f"{place}.extend([{e}, x])", f"{name}.extend(list({place}))", f"{place}[0] = {e}",
            f"{place}[-1] = {e}", f"{name}[0] += {e}", f"{place}.insert(0, {e})", f"del {name}[0]",
            f"{place}.reverse()", f"{name} = {name} if {self.truth()} else {place}",
            f"({name} if {self.truth()} else {other}).append({e})", f"{name}, {other} = {other}, {name}",
            f"{name} = changed({place}, {e})", f"{name} = grown({place}, {e})", f"change({place}, {e})",
            f"{name} = sorted({place})", f"{place}.clear()", f"{self.pick(*SCALARS)} = {place}.pop(0)",
        ))  # fmt: skip

    def do_dict(self, depth: int, loops: int) -> None:
        name, other, e = self.pick(*self.dicts), self.pick(*self.dicts), self.number(1)
        items = self.pick(f"[{e}]", *self.lists)
        self.add(depth, self.pick(
            f"{name}['k'] = {e}", f"{name}['k'] += {e}", f"{name}['items'] = {items}", f"{name}['items'].append({e})",
            f"{name} = {{'k': {e}, 'items': {items}}}", f"{name} = dict({other})", f"{name} = {other}",
            f"{name}.update(k={e})", f"{name} = {{**{other}, 'k': {e}}}",
        ))  # fmt: skip

    def do_box(self, depth: int, loops: int) -> None:
        name, other, e = self.pick(*self.boxes), self.pick(*self.boxes), self.number(1)
        items = self.pick(f"[{e}]", *self.lists)
        self.add(depth, self.pick(
            f"{name}.v = {e}", f"{name}.add({e})", f"{name} = {other}.moved({e})", f"{name} = Box({e}, {items})",
            f"{name}.items = {items}", f"{name} = {other}", f"{name}.items.append({e})", f"{name}.v += 0.5",
        ))  # fmt: skip

    def do_pair(self, depth: int, loops: int) -> None:
        name, other, e = self.pick(*self.pairs), self.pick(*self.pairs), self.number(1)
        self.add(depth, self.pick(
            f"{name}.v = {e}", f"{name} = Pair({e}, {other}.w)", f"{name} = {other}", f"{name}.w += 0.5",
            f"{name} = dataclasses.replace({other}, w={e})", f"{name}, {other} = {other}, {name}",
        ))  # fmt: skip

    def do_nest(self, depth: int, loops: int) -> None:
        e = self.number(0)
        self.add(depth, self.pick(
            f"Q[0].append({e})", f"Q[1] = [{e}, y]", "Q = [Q[1], Q[0]]", f"Q[0] = {self.pick(*self.lists)}",
            f"Q[1][0] = {e}", f"Q = [[{e}], Q[1]]", f"{self.pick(*self.lists)} = Q[1]", "Q[0], Q[1] = Q[1], Q[0]",
        ))  # fmt: skip

    def do_call(self, depth: int, loops: int) -> None:
        """A closure that changes a variable around it, called at once or under a condition."""
        self.names += 1
        name, shared = f"inner{self.names}", self.pick(*self.lists)
        self.add(depth, f"def {name}(z):", f"    nonlocal {shared}")
        self.add(depth + 1, self.pick(f"{shared} = [z]", f"{shared}.append(z)", f"{shared} = {shared} + [z]"))
        if self.chance(50):
            self.add(depth, f"if {self.truth()}:", f"    {name}({self.number(0)})")
        else:
            self.add(depth, f"{name}({self.number(0)})")

    def do_lazy(self, depth: int, loops: int) -> None:
        """An iterator that is used some statements after it was made."""
        self.names += 1
        name, place = f"g{self.names}", self.some_list()
        made = self.pick(f"iter({place})", f"(v * {self.number(0)} for v in {place})", f"reversed({place})")
        self.add(depth, f"{name} = {made}")
        self.block(depth, loops, most=2)
        self.add(depth, f"{self.pick(*self.lists)} = list({name})")

    def do_if(self, depth: int, loops: int) -> None:
        self.add(depth, f"if {self.truth()}:")
        self.block(depth + 1, loops)
        if self.chance(20):
            self.add(depth, f"elif {self.truth()}:")
            self.block(depth + 1, loops)
        if self.chance(60):
            self.add(depth, "else:")
            self.block(depth + 1, loops)

    def do_for(self, depth: int, loops: int) -> None:
        self.names += 1
        index = f"i{self.names}"
        over = self.pick("ag.range(n)", "ag.range(n)", "ag.range(3)", "range(2)", self.some_list(), "ag.stack([x, y])")
        if "range" in over:
            self.add(depth, f"for {index} in {over}:")
            self.integers.append(index)
        else:
            self.add(depth, f"for v in {over if over.startswith('ag') else f'list({over})'}:")
            self.add(depth + 1, f"{self.pick(*SCALARS)} = v * 0.5")
        self.block(depth + 1, loops + 1)
        if index in self.integers:
            self.integers.remove(index)

    def do_while(self, depth: int, loops: int) -> None:
        self.names += 1
        name = f"k{self.names}"
        self.add(depth, f"{name} = {self.pick('0', 'ag.constant(0)')}")
        self.add(depth, f"while {name} < n{self.pick('', ' and ' + self.truth(0))}:")
        self.add(depth + 1, f"{name} += 1")
        self.integers.append(name)
        self.block(depth + 1, loops + 1)
        self.integers.remove(name)

    def do_try(self, depth: int, loops: int) -> None:
        self.add(depth, "try:")
        self.block(depth + 1, loops, most=2)
        error = self.pick("ValueError", "KeyError")
        if self.chance(70):
            self.add(depth + 1, f"if {self.truth()}:", f"    raise {error}('no')")
        self.block(depth + 1, loops, most=1)
        handled = self.chance(80)
        if handled:
            self.add(depth, f"except {self.pick(error, error, 'Exception', '(ValueError, TypeError)')}:")
            self.block(depth + 1, loops, most=2)
            if self.chance(25):
                self.add(depth, "else:")
                self.block(depth + 1, loops, most=1)
        if not handled or self.chance(30):
            self.add(depth, "finally:")
            self.block(depth + 1, 0, most=1)

    def do_with(self, depth: int, loops: int) -> None:
        if self.boxes:
            managers = [
                f"{self.pick('Guard', 'lent')}({self.pick(*self.boxes)}) as {self.pick(*self.boxes)}",
                "contextlib.nullcontext()",
            ]
        else:
            managers = ["contextlib.nullcontext()", "contextlib.suppress(ValueError)"]
        manager = self.choices.choice(managers)
        self.add(depth, f"with {manager}:")
        self.block(depth + 1, loops, most=2)
        if "suppress" in manager and self.chance(60):
            self.add(depth + 1, f"if {self.truth()}:", "    raise ValueError('no')")

    def do_match(self, depth: int, loops: int) -> None:
        subject = self.pick(f"{self.pick(*self.integers)} % 3", "n")
        self.add(depth, f"match {subject}:", "    case 0:")
        self.block(depth + 2, loops, most=2)
        if self.chance(50):
            self.add(depth + 1, self.pick("case 1:", "case 1 | 2:", f"case _ if {self.truth(0)}:"))
            self.block(depth + 2, loops, most=2)
        if self.chance(50):
            self.add(depth + 1, "case _:")
            self.block(depth + 2, loops, most=2)

    def do_jump(self, depth: int, loops: int) -> None:
        self.add(depth, f"if {self.truth()}:", f"    {self.pick('break', 'continue')}")

    def do_give(self, depth: int, loops: int) -> None:
        self.add(depth, f"if {self.truth()}:", f"    return {self.number(1)}, {self.number(0)}")


def random_program(seed: int) -> str:
    """The source text of a module that defines `program(x, y, n)`."""
    return Writer(seed).text()
