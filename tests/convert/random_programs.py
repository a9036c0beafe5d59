"""Random programs as source text, drawn by hypothesis: small functions that do everything control flow can do.

A program is `def program(a, b, c)` on small integers. Every loop draws on one supply of fuel, so all programs end, and
numbers are kept small by `%`. Programs may fail: on an unbound variable, a division by zero, an assertion, an error of
their own. With ``numeric`` they stick to what means the same on tensors: numbers, conditions, loops and jumps.
"""

from __future__ import annotations

from hypothesis import strategies as st

PRELUDE = """\
import contextlib

class Stop(Exception):
    pass

@contextlib.contextmanager
def guard(name, swallow):
    print("enter", name)
    try:
        yield name
    except Stop:
        print("stopped", name)
        if not swallow:
            raise
    finally:
        print("leave", name)

def note(x):
    print("note", x)
    return x

"""
FUEL = 40
_VARIABLES = ("a", "b", "c", "x", "y")
_MOST_STATEMENTS = 24


class _Writer:
    def __init__(self, draw, numeric):
        self.draw = draw
        self.numeric = numeric
        self.lines = []
        self.names = 0
        self.left = _MOST_STATEMENTS
        self.functions = []

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def chance(self, percent):
        return self.draw(st.integers(0, 99)) < percent

    def name(self, base):
        self.names += 1
        return f"{base}{self.names}"

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    # --- expressions ---------------------------------------------------------------------------------------------

    def number(self, depth=2):
        if depth == 0 or self.chance(35):
            return self.one_of(*_VARIABLES, *"0123")
        kind = self.one_of("+", "-", "*", "%", "if", *(() if self.numeric else ("//", "walrus", "note", "sum", "call")))
        one = self.number(depth - 1)
        if kind == "if":
            return f"({one} if {self.truth(depth - 1)} else {self.number(depth - 1)})"
        if kind == "walrus":
            return f"({self.one_of(*_VARIABLES)} := {one})"
        if kind == "note":
            return f"note({one})"
        if kind == "sum":
            return f"sum([each + {one} for each in range(3) if {self.truth(0)}])"
        if kind == "call":
            return f"{self.one_of(*self.functions)}({one})" if self.functions else one
        if kind == "%":
            return f"({one} % {self.one_of('2', '3', '7')})"
        other = self.number(depth - 1)
        return f"({one} * {other} % 11)" if kind == "*" else f"({one} {kind} {other})"

    def truth(self, depth=2):
        kind = self.one_of("compare", "compare", *(("and", "or", "not", "chain") if depth else ()))
        if kind == "compare":
            return f"{self.number(min(depth, 1))} {self.one_of('<', '>', '==', '!=', '<=')} {self.number(0)}"
        if kind == "chain":
            return f"{self.number(0)} < {self.number(1)} <= {self.number(0)}"
        if kind == "not":
            return f"(not {self.truth(depth - 1)})"
        return f"({self.truth(depth - 1)} {kind} {self.truth(depth - 1)})"

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, depth, loops, most=4):
        """A block of statements; ``loops`` tells how many loops of the same function are around it."""
        for _ in range(self.draw(st.integers(1, most))):
            if not self.statement(depth, loops):
                return

    def statement(self, depth, loops):
        """One statement; False if nothing after it could be reached."""
        self.left -= 1
        simple = ["assign", "assign", "augment", *(("break", "continue") if loops else ()), "return"]
        nested = ["if", "if", "while", "for"]
        if not self.numeric:
            simple += ["print", "raise", "del", "assert"]
            nested += ["try", "try", "with", "def", "match"]
        kinds = simple if self.left <= 0 or depth > 5 else simple + nested
        return getattr(self, "do_" + self.one_of(*kinds))(depth, loops) is not False

    def do_assign(self, depth, loops):
        # Tensors have a fixed width: whatever the loops do, numbers stay small.
        bound = " % 101" if self.numeric else ""
        self.add(depth, f"{self.one_of(*_VARIABLES)} = {self.number()}{bound}")

    def do_augment(self, depth, loops):
        bound = " % 7" if self.numeric else ""
        self.add(depth, f"{self.one_of(*_VARIABLES)} {self.one_of('+=', '-=')} {self.number(1)}{bound}")

    def do_print(self, depth, loops):
        self.add(depth, f"print({self.number()}, {self.number(0)})")

    def jump(self, depth, text):
        if self.chance(80):
            self.add(depth, f"if {self.truth(1)}:")
            self.add(depth + 1, text)
            return None
        self.add(depth, text)
        return False

    def do_break(self, depth, loops):
        return self.jump(depth, "break")

    def do_continue(self, depth, loops):
        return self.jump(depth, "continue")

    def do_return(self, depth, loops):
        # What is returned on tensors must have one structure, wherever it is returned.
        pair = f", {self.number(0)}" if self.numeric else ""
        return self.jump(depth, f"return {self.number(1)}{pair}")

    def do_raise(self, depth, loops):
        return self.jump(depth, f"raise {self.one_of('Stop', 'KeyError')}({self.number(0)})")

    def do_del(self, depth, loops):
        self.add(depth, f"del {self.one_of('x', 'y')}")

    def do_assert(self, depth, loops):
        self.add(depth, f"assert {self.truth(1)}, {self.number(0)}")

    def do_if(self, depth, loops):
        self.add(depth, f"if {self.truth()}:")
        self.block(depth + 1, loops)
        if self.chance(25):
            self.add(depth, f"elif {self.truth(1)}:")
            self.block(depth + 1, loops)
        if self.chance(50):
            self.add(depth, "else:")
            self.block(depth + 1, loops)

    def do_while(self, depth, loops):
        self.add(depth, f"while fuel > 0 and {self.truth(1)}:")
        self.add(depth + 1, "fuel -= 1")
        self.block(depth + 1, loops + 1)
        self.loop_else(depth, loops)

    def do_for(self, depth, loops):
        target = self.one_of("i", "j", "x")
        self.add(depth, f"for {target} in range({self.one_of('2', '3', f'{self.number(0)} % 4')}):")
        self.add(depth + 1, "fuel -= 1")
        self.add(depth + 1, "if fuel < 0:")
        self.add(depth + 2, "break")
        self.block(depth + 1, loops + 1)
        self.loop_else(depth, loops)

    def loop_else(self, depth, loops):
        if self.chance(30):
            self.add(depth, "else:")
            self.block(depth + 1, loops, most=2)

    def do_try(self, depth, loops):
        self.add(depth, "try:")
        self.block(depth + 1, loops)
        handlers = self.chance(70)
        if handlers:
            self.add(
                depth, self.one_of("except Stop:", "except (Stop, ZeroDivisionError) as error:", "except Exception:")
            )
            self.block(depth + 1, loops, most=2)
            if self.chance(30):
                self.add(depth, "else:")
                self.block(depth + 1, loops, most=2)
        if not handlers or self.chance(50):
            self.add(depth, "finally:")
            self.block(depth + 1, loops, most=2)

    def do_with(self, depth, loops):
        self.add(depth, f"with guard({self.number(0)}, {self.one_of('True', 'False')}) as y:")
        self.block(depth + 1, loops)

    def do_match(self, depth, loops):
        self.add(depth, f"match {self.number(1)} % 3:")
        self.add(depth + 1, "case 0:")
        self.block(depth + 2, loops, most=2)
        self.add(depth + 1, f"case x if {self.truth(0)}:")
        self.block(depth + 2, loops, most=2)

    def do_def(self, depth, loops):
        """A closure, usable from here on; it may change the variables around it. Or a generator, run at once."""
        name = self.name("inner")
        shared = self.one_of(*_VARIABLES)
        self.add(depth, f"def {name}(z):")
        self.add(depth + 1, f"nonlocal {shared}, fuel")
        if self.chance(25):
            self.add(depth + 1, "for each in range(z % 3):")
            self.add(depth + 2, f"{shared} = yield each + {self.number(0)}")
            self.add(depth, f"print(list({name}({self.number(0)})))")
            return
        self.add(depth + 1, f"{shared} = z")
        functions, self.functions = self.functions, []
        self.block(depth + 1, 0, most=3)
        self.functions = functions
        self.add(depth, f"print({name}({self.number(0)}))")
        if depth == 1:  # defined whatever happens before
            self.functions.append(name)


@st.composite
def programs(draw, numeric=False):
    """The source text of a module that defines `program(a, b, c)`."""
    writer = _Writer(draw, numeric)
    writer.add(0, "def program(a, b, c):")
    writer.add(1, f"fuel = {FUEL}")
    writer.add(1, "x = a")
    if numeric or writer.chance(60):
        writer.add(1, "y = b")
    else:
        writer.add(1, "y: int")  # local, but unbound
    writer.block(1, 0, most=6)
    writer.add(1, "return x, a + b + c" if numeric else "return x, y, a, b, c, fuel")
    return ("" if numeric else PRELUDE) + "\n".join(writer.lines) + "\n"


ARGUMENTS = st.tuples(*[st.integers(-2, 4)] * 3)
