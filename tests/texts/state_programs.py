"""Programs whose strings are state of staged branches and loops."""

from __future__ import annotations


def counts_by_mode(t):
    counts = {"idle": 0, "run": 0}
    mode = "idle"
    for v in t:
        counts[mode] += 1
        if v > 1.0:
            mode = "run"
        else:
            mode = "idle"
    return counts


def none_at_first(t):
    mode = None
    for v in t:
        if v > 1:
            mode = "go"
    if mode is None:
        return "none"
    return mode


def none_in_a_branch(t):
    mode = None
    if t[0] > 0:
        mode = "go"
    n = 0
    if mode is not None and mode.startswith("g"):
        n = 1
    return n, mode == "go", mode in ("go", "x")


def collected(t):
    names = []
    for v in t:
        if v > 0:
            names.append("p")
        else:
            names.append("neg")
    return ",".join(names), len(names), [n.upper() for n in names]


def grown_and_collected(t):
    mode = "a"
    out = []
    for v in t:
        mode = "b" if v > 0 else mode + "c"
        out.append(mode)
    return out, mode


class Machine:
    def __init__(self):
        self.state = "idle"
        self.log = ""

    def step(self, v):
        if self.state == "idle":
            if v > 0:
                self.state = "run"
        elif self.state == "run":
            if v < 0:
                self.state = "done"
        self.log += self.state[0]


def in_an_object(t):
    machine = Machine()
    for v in t:
        machine.step(v)
    return machine.state, machine.log, f"{machine.state}:{machine.log}"


def in_nested_loops(t):
    s = ""
    for i in range(3):
        for v in t:
            if v > 0:
                s += str(i)
            else:
                s += f"[{i:02d}]"
    return s, len(s)


def numbers_in_texts(t):
    x = 1.0
    if t[0] > 0:
        x = 2.0
    s = f"{x:.2f}|{x}|{x!r}|{x!s:>6}"
    n = 3
    for _ in t:
        n += 1
    return s, f"{n}", f"{n:>4}|{n:x}", "%d %s %r" % (n, n, n), str(n) + "!", "{:,}".format(n * 1000)


def texts_kept_in_a_loop(t):
    messages = []
    label = "x"
    for v in t:
        if v > 0:
            label = f"{label}y"
        messages.append(f"<{label}>")
    return messages


def exchanged(t):
    a, b = "a", "b"
    for v in t:
        if v > 0:
            a, b = b, a
    return a + b


def in_containers(t):
    held = {"m": "a", "l": ["x"]}
    for v in t:
        if v > 0:
            held["m"] = "b"
            held["l"][0] += "z"
    return held["m"] + held["l"][0], held


def _sign(v):
    if v > 0:
        return "pos"
    return "neg"


def from_helpers(t):
    return _sign(t[0]) + "/" + _sign(t[1]), {"k": _sign(t[0])}, [_sign(t[1])] * 2


def _label(v):
    return f"<{_sign(v)}>"


def texts_from_helpers(t):
    held = {"k": _label(t[0])}
    return _label(t[0]) + _label(t[1]), held["k"].upper(), [_label(t[0])][0]


def while_it_is_short(t):
    s = "abc"
    while t[0] > 0 and len(s) < 6:
        s = s + s[0]
    return s


def names_of_attributes(t):
    key = "b"
    if t[0] > 0:
        key = "a"

    class Held:
        a = 1
        b = 2

    return getattr(Held, key), key.encode() == b"a"


def looked_up(t):
    s = ""
    for v in t:
        s = s + ("a" if v > 0 else "b")
    a, b = s[0], s[1]
    return {"a": 1, "b": 2}[a] + {"a": 10, "b": 20}.get(b, 0), a == b, s.split("a")


def reversed_and_joined(t):
    word = "x"
    for v in t:
        if v > 0:
            word = "".join(reversed(word)) + "q"
    return word, "-".join(c + "." for c in word if c != "x")


def ordered(t):
    s = "x"
    for v in t:
        if v > 0:
            s += "é"
    return (s, "y") < ("xé", "z"), s == "xé" or s == "x", s if s else "none", s.isalpha() and "é" in s


def several_choices(t):
    x, y = "a", "c"
    if t[0] > 0:
        x = "b"
    if t[1] > 0:
        y = "d"
    return f"{x}{y}", x + y, x < y, x.join([y, y]), (x + y).find(y), x in y, f"{x:>{3}}{y!r}"


def recursive(t):
    def spelled(n):
        if n > 1:
            return spelled(n - 1) + "x"
        return "y"

    return spelled(3), len(spelled(2))


def left_early(t):
    s = ""
    for v in t:
        if v > 2:
            break
        s += "a"
    else:
        s += "!"
    return s


def decided_by_words(t):
    word = "stop"
    if t[0] > 0:
        word = "go"
    total = 0
    for v in t:
        if word == "go" and v > 0:
            total += 1
            word = "stop"
        elif word.startswith("st"):
            word = word.replace("stop", "go")
    return total, word


def caught(t):
    word = "12"
    if t[0] > 0:
        word = "x"
    try:
        if not word.isdigit():
            raise ValueError(f"no number: {word}")
        n = int("7")
    except ValueError:
        n = -1
    return n, word


def lengths_of_texts(t):
    longest = ""
    for v in t:
        word = "ab"
        if v > 0:
            word = "éßñ"
        if len(word) > len(longest):
            longest = word
    return longest, len(longest), longest[::-1]


PROGRAMS = [
    each
    for name, each in list(globals().items())
    if callable(each) and not name.startswith("_") and name != "Machine" and each.__module__ == __name__
]
