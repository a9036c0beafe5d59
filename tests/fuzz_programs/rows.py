"""Random programs with lists of containers: rows that are lists, dictionaries, tuples with lists, objects.

They are put into lists and taken out of them, under one name or several, and changed, inside of loops and branches and
after them. In Python an element is the object that was put in; a staged list has only what is in it.
"""

from __future__ import annotations

import random

from tests.fuzz_programs.writer import PRELUDE

TABLES = ("T", "U")
ROWS = ("r", "s", "t")
_MOST_STATEMENTS = 12
# How a row is made of two numbers, and its places that can be assigned.
KINDS = {
    "list": ("[{}, {}]", "{}[0]", "{}[1]", "{}[-1]"),
    "dictionary": ("{{'a': {}, 'b': {}}}", "{}['a']", "{}['b']"),
    "tuple": ("({}, [{}, 0.5])", "{}[1][0]", "{}[1][1]"),
    "deep": ("[[{}], [{}, 0.25]]", "{}[0][0]", "{}[1][1]"),
    "object": ("Pair({}, {})", "{}.v", "{}.w"),
}


class Writer:
    def __init__(self, seed: int) -> None:
        self.choices = random.Random(f"rows {seed}")
        self.lines: list[str] = []
        self.left = self.choices.choice([3, 5, 8, _MOST_STATEMENTS])
        self.names = 0
        self.integers: list[str] = []
        self.row, *self.places = KINDS[self.pick("list", "list", "list", "dictionary", "tuple", "deep", "object")]

    # --- drawing ---------------------------------------------------------------------------------------------------

    def pick(self, *options: str) -> str:
        return self.choices.choice(options)

    def chance(self, percent: int) -> bool:
        return self.choices.randrange(100) < percent

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    # --- the program -----------------------------------------------------------------------------------------------

    def text(self) -> str:
        self.tables = self.choices.sample(TABLES, self.choice_of(1, 1, 2))
        self.rows = self.choices.sample(ROWS, self.choice_of(1, 2, 2, 3))
        self.add(0, "def program(x, y, n):")
        self.add(1, "a, b = x, y")
        for index, name in enumerate(self.rows):
            self.add(1, f"{name} = {self.pick(self.new_row(), self.new_row(), *self.rows[:index])}")
        for index, name in enumerate(self.tables):
            rows = [self.pick(*self.rows, self.new_row(), self.new_row()) for _ in range(self.choice_of(1, 1, 2, 3))]
            self.add(1, f"{name} = {self.pick('[' + ', '.join(rows) + ']', f'[{rows[0]}]', *self.tables[:index])}")
        # Most tables grow in a loop, which makes them staged.
        if self.chance(60):
            self.add(1, f"for v in {self.pick('ag.stack([x, y])', 'ag.range(n)')}:")
            if "range" in self.lines[-1]:
                self.lines[-1] = self.lines[-1].replace("for v", "for i0")
            self.add(2, f"{self.pick(*self.tables)}.append({self.pick(self.new_row(), self.new_row(), *self.rows)})")
            self.block(2, loops=1, most=2) if self.chance(50) else None
        self.block(1, loops=0, most=5)
        shown = [name for name in (*self.tables, *self.rows) if self.chance(75)] or self.tables[:1]
        self.add(1, f"return {', '.join(['a', *[self.shown(name) for name in shown]])}")
        return PRELUDE + "\n".join(self.lines) + "\n"

    def choice_of(self, *options: int) -> int:
        return self.choices.choice(options)

    def shown(self, name: str) -> str:
        if name in self.tables:
            # Objects are no results.
            items = f"[({', '.join(place.format('each') for place in self.places[:2])}) for each in {name}]"
            return self.pick(items, f"len({name})", self.place(f"{name}[0]"), self.place(f"{name}[-1]"))
        return self.pick(*[place.format(name) for place in self.places])

    def new_row(self) -> str:
        return self.row.format(self.number(0), self.number(0))

    def place(self, row: str) -> str:
        return self.pick(*self.places).format(row)

    def index(self) -> str:
        return self.pick("0", "-1", "-1", *[f"{each} % len({self.pick(*self.tables)})" for each in self.integers[:1]])

    def element(self) -> str:
        return f"{self.pick(*self.tables)}[{self.index()}]"

    # --- expressions -----------------------------------------------------------------------------------------------

    def number(self, depth: int = 1) -> str:
        if depth == 0 or self.chance(40):
            return self.pick("x", "y", "a", "b", "x * 0.5", "y - 0.25", "0.75")
        return self.pick(
            self.place(self.pick(*self.rows)), self.place(self.element()), f"{self.number(0)} + {self.number(0)} * 0.5",
            f"ag.sin({self.place(self.element())} * 1.0)",
        )  # fmt: skip

    def truth(self) -> str:
        options = [f"{self.pick('x', 'y', 'a')} > {self.pick('0.1', '0.6', '-0.2')}", "n > 1"]
        options += [f"{self.number()} > 0.3", f"len({self.pick(*self.tables)}) > {self.pick('1', '2')}"]
        options += [f"{each} % 2 == 0" for each in self.integers]
        return self.choices.choice(options)

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, depth: int, loops: int, most: int = 3) -> None:
        for _ in range(self.choices.randint(1, most)):
            self.left -= 1
            kinds = [*["put"] * 3, *["take"] * 2, *["change"] * 4, "scalar", "call"]
            if self.left > 0 and depth < 5:
                kinds += ["if", "if", "for", "for", "each", "while", "try"]
            if loops:
                kinds += ["jump"]
            getattr(self, "do_" + self.pick(*kinds))(depth, loops)

    def do_put(self, depth: int, loops: int) -> None:
        table, other = self.pick(*self.tables), self.pick(*self.tables)
        row = self.pick(*self.rows, *self.rows, self.new_row(), self.new_row(), self.element())
        self.add(depth, self.pick(
            f"{table}.append({row})", f"{table}.append({row})", f"{table}.append({row})", f"{table}.insert(0, {row})",
            f"{table}[{self.index()}] = {row}", f"{table} = {table} + [{row}]", f"{table} += [{row}]",
            f"{table}.extend([{row}, {self.new_row()}])", f"{table} = [{row}]", f"{table} = {other}",
            f"{table} = list({other})", f"{table} = {other}[1:] + [{row}]", f"{table}.reverse()",
            f"{table} = [each for each in {other}]", f"{table}[0], {table}[-1] = {table}[-1], {table}[0]",
        ))  # fmt: skip

    def do_take(self, depth: int, loops: int) -> None:
        row, other, table = self.pick(*self.rows), self.pick(*self.rows), self.pick(*self.tables)
        self.add(depth, self.pick(
            f"{row} = {self.element()}", f"{row} = {self.element()}", f"{row} = {table}.pop()", f"{row} = {other}",
            f"{row} = {self.new_row()}", f"{row} = {self.new_row()}", f"{row} = {table}.pop(0)",
            f"{row} = {other} if {self.truth()} else {self.element()}", f"{row}, {other} = {other}, {row}",
        ))  # fmt: skip

    def do_change(self, depth: int, loops: int) -> None:
        row = self.pick(*self.rows, *self.rows, self.element(), self.element())
        self.add(depth, f"{self.place(row)} {self.pick('=', '=', '+=')} {self.number()}")

    def do_scalar(self, depth: int, loops: int) -> None:
        self.add(depth, f"{self.pick('a', 'b')} = ag.tanh(1.0 * {self.number()})")

    def do_call(self, depth: int, loops: int) -> None:
        """A function that puts, takes or changes."""
        self.names += 1
        name, place = f"inner{self.names}", self.place("row")
        self.add(depth, f"def {name}(rows, row):")
        self.add(depth + 1, *self.choices.choice([
            [f"{place} = {self.number(0)}"], ["rows.append(row)"], ["rows.append(row)", f"{place} = {self.number(0)}"],
            [f"{self.place('rows[-1]')} = {place} * 0.5"], ["if x > 0.3:", f"    {place} = {self.number(0)}"],
            ["row = rows[0]", f"{place} = {self.number(0)}"],
        ]))  # fmt: skip
        self.add(depth, f"{name}({self.pick(*self.tables)}, {self.pick(*self.rows, self.element())})")

    def do_if(self, depth: int, loops: int) -> None:
        self.add(depth, f"if {self.truth()}:")
        self.block(depth + 1, loops)
        if self.chance(50):
            self.add(depth, "else:")
            self.block(depth + 1, loops)

    def do_for(self, depth: int, loops: int) -> None:
        self.names += 1
        index = f"i{self.names}"
        self.add(depth, f"for {index} in {self.pick('ag.range(n)', 'ag.range(2)', 'range(2)')}:")
        self.integers.append(index)
        self.block(depth + 1, loops + 1)
        self.integers.remove(index)

    def do_each(self, depth: int, loops: int) -> None:
        name = self.pick(*self.rows)
        self.add(depth, f"for {name} in {self.pick(*self.tables)}:")
        self.add(
            depth + 1, f"{self.place(name)} {self.pick('=', '+=')} {self.number()}" if self.chance(60) else "a += 1"
        )
        if self.chance(40):
            self.add(depth + 1, f"a = a * 0.5 + {self.number()}")

    def do_while(self, depth: int, loops: int) -> None:
        self.names += 1
        name = f"k{self.names}"
        self.add(depth, f"{name} = {self.pick('0', 'ag.constant(0)')}", f"while {name} < n:")
        self.add(depth + 1, f"{name} += 1")
        self.block(depth + 1, loops + 1)

    def do_try(self, depth: int, loops: int) -> None:
        self.add(depth, "try:")
        self.block(depth + 1, loops, most=2)
        self.add(depth + 1, f"if {self.truth()}:", "    raise ValueError('no')")
        self.add(depth, "except ValueError:")
        self.block(depth + 1, loops, most=2)

    def do_jump(self, depth: int, loops: int) -> None:
        self.add(depth, f"if {self.truth()}:", f"    {self.pick('break', 'continue')}")


def random_rows_program(seed: int) -> str:
    """The source text of a module that defines `program(x, y, n)`."""
    return Writer(seed).text()
