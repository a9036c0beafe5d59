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


def by_words_in_nested_loops(t):
    mode = "a"
    n = 0
    for v in t:
        for k in range(3):
            if mode == "a" and v > 0:
                mode = "b"
                break
            elif mode == "b":
                mode = "c"
            n += len(mode)
        else:
            mode += "!"
    return (mode, n)


def the_one_before(t):
    s = t0 = "x"
    for v in t:
        t0 = s
        s = s.replace("x", "xy") if v > 0 else s[::-1]
    return (s, t0, s is not None)


def an_attribute_of_a_class(t):

    class P:
        name = "p"

    p = P()
    for v in t:
        if v > 0:
            p.name = p.name + "q"
        else:
            p.name = "r"
    return p.name.upper()


def in_dictionaries_of_a_list(t):
    acc = []
    for v in t:
        acc.append({"name": "n" if v > 0 else "m", "v": v})
    return ([a["name"] + "!" for a in acc], acc[0]["name"] == "n")


def in_tuples_of_a_list(t):
    acc = [("a", 1)]
    for v in t:
        if v > 0:
            acc.append(("b" * 2, 2))
    return [x.upper() + str(n) for x, n in acc]


def grown_by_an_f_string(t):
    d = {"x": "a"}
    for v in t:
        d["x"] = f"{d['x']}{len(d['x'])}"
    return d


def characters_in_a_loop(t):
    s = "abc"
    out = ""
    for v in t:
        for c in s:
            if v > 0:
                out += c
            else:
                out = c + out
    return out


def words_of_a_sentence(t):
    s = "hello world"
    if t[0] > 0:
        s = "spam eggs ham"
    words = s.split()
    longest = ""
    for w in words:
        if len(w) > len(longest):
            longest = w
    return (longest, [w[0] for w in words], " ".join((w.title() for w in words)), sorted(words))


def a_choice_of_choices(t):
    a = "x" if t[0] > 0 else "y"
    b = a if t[1] > 0 else "z"
    return (a + b, a == b, {"x": 1, "y": 2, "z": 3}[b], (a, b) == ("x", "x"))


def text_of_a_tensor(t):
    assert t[0] < 100, f"bad {t[0]:.2f}"
    msg = "ok"
    if t[0] > 0:
        msg = f"{t[0] * 2:.1f}"
    return (msg + "!", len(msg))


def set_by_a_helper(t):
    s = "x"

    def add(c):
        nonlocal s
        s += c

    for v in t:
        if v > 0:
            add("p")
        else:
            add("nn")
    return s


def none_before_it_grows(t):
    s = None
    for v in t:
        s = ("" if s is None else s) + ("p" if v > 0 else "n")
    return s


def a_key_in_an_expression(t):
    kinds = {"pos": 0, "neg": 0}
    for v in t:
        kinds["pos" if v > 0 else "neg"] += 1
    return (kinds, ",".join((f"{k}={v}" for k, v in kinds.items())))


def the_first_that_holds(t):
    s = ""
    for v in t:
        s = s or "first"
        if v > 0:
            s = s + "."
    return (s, s and "yes")


def digits(t):
    s = "12"
    if t[0] > 0:
        s = "345"
    n = 0
    for c in s:
        n = n * 10 + int(c)
    return (n, n == int(s), float(s) / 2, sum(map(int, s)))


def a_table_of_functions(t):
    import math

    s = "sin"
    if t[0] > 0:
        s = "cos"
    f = {"sin": math.sin, "cos": math.cos}[s]
    return f(0.0)


def another_name_for_it(t):
    x = "a"
    y = x
    if t[0] > 0:
        x = "b"
    return (x == y, x + y, y)


def in_a_try(t):
    s = "a"
    for v in t:
        try:
            if v > 0:
                raise ValueError(s)
            s += "b"
        except ValueError as e:
            s = s + "c"
    return s


def _binary(n):
    if n < 2:
        return "1" if n > 0 else "0"
    return _binary(n // 2) + ("1" if n % 2 > 0 else "0")


def grown_by_calls(t):

    def rec(s, n):
        if n > 2:
            return s
        return rec(s + "a", n + 1)

    return rec("z", t[0])


def results_of_calls(t):

    def rec(n):
        if n > 2:
            return "end"
        if n > 1:
            return "one"
        return rec(n + 1) + "x"

    r = rec(t[0])
    return (r, r.upper(), len(r))


def exchanged_by_calls(t):

    def rec(n, mode):
        if n > 2:
            return mode
        if mode == "a":
            return rec(n + 1, "b")
        return rec(n + 1, "a")

    return rec(t[0], "a").upper()


def ends_of_calls(t):

    def rec(n):
        if n > 2:
            return "end"
        if n > 1:
            return "one"
        return rec(n + 1)

    r = rec(t[0])
    return (r, r == "one", f"{r:>5}")


def binary_digits(t):
    return _binary(t[0] + 12.0)


def texts_in_calls(t):

    def rec(n, label):
        if n > 2:
            return f"{label}!"
        return rec(n + 1, f"{label}.")

    m = "q" if t[0] > 0 else "rr"
    return (rec(t[0], m), len(rec(t[1], "p")))


PROGRAMS = [
    each
    for name, each in list(globals().items())
    if callable(each) and not name.startswith("_") and name != "Machine" and each.__module__ == __name__
]
