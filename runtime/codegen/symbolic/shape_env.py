"""Sizes that are known only at a call: which of them are equal, and how they compare.

    u: float64[?], of n elements                        if n < 2: leave (Unfit)
    u[1:-1] + u[2:]                                     a = np.empty(n - 2)
                                                   →    for i in range(n - 2):
                                                            a[i] = u[1 + i] + u[2 + i]

Sizes are polynomials in the dimensions of the kernel's arguments. Equal sizes have one name, so that they are
recognised as equal. A shape may depend on how sizes compare: a slice may reach beyond the end of a short array, and a
dimension of one element broadcasts. Then the kernel *assumes* what is true of all but the smallest arrays. It checks
its assumptions at its entry, before it has any effect. A call that doesn't satisfy them goes to another kernel, which
is lowered without assumptions at the first such call (`lower/lower_graph.py`).

Indices in loops are polynomials too, of counters between bounds: `i * w + j` lies in an array of `h * w` elements.
"""

from __future__ import annotations

from typing import Any, Protocol

from runtime.codegen.kernel.names import Names
from runtime.codegen.symbolic.ranges import Atom, Range, known_range, limits, polynomial_of
from runtime.dtypes import DType
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial, product

# The largest least length of a dimension that is assumed.
_USUAL = 256
# From here on a number is taken for the limit of a dtype, not for an index.
_HUGE = 2**30
_TERMS, _DEGREE = 12, 2
_FACTORS = 16  # the largest sum of a polynomial's factors: times 2**58 it fits 64 bits
_DEPTH = 8  # of nested loops whose counters are eliminated


class Assumed(Exception):
    """Two dimensions of arguments are probably equal: the kernel is lowered again under this assumption."""

    def __init__(self, variable: str, value: Polynomial) -> None:
        super().__init__(variable)
        self.variable = variable
        self.value = value


class SizeNames(Protocol):
    """What `ShapeEnv` asks of the kernel that is being lowered (`lower/state.py`)."""

    names: Names
    prologue: dict[str, ir.Expr]
    sizes: dict[ir.Expr, Atom]

    def static_dim(self, size: int) -> Atom: ...
    def static_size(self, atom: ir.Expr) -> int | None: ...
    def is_visible(self, atom: Atom) -> bool: ...
    def assign(self, expr: ir.Expr, base: str | None = None) -> ir.Var: ...


class ShapeEnv:
    """What is known and assumed of the sizes of one kernel.

    assuming: whether the kernel may check assumptions at its entry. equal: variables that are assumed to equal others.
    """

    def __init__(self, low: SizeNames, assuming: bool, equal: dict[str, Polynomial]) -> None:
        self.low = low
        self.assuming = assuming
        self.equal = equal
        self.entry: dict[str, int] = {}  # dimensions of arguments, in order
        self.least: dict[str, int] = {}  # the least size of each that is assumed
        self.conditions: list[Polynomial] = []  # assumed not to be negative
        self.values: dict[str, Polynomial] = {}  # of other names
        self.names: dict[Polynomial, str] = {}
        self.bounds: dict[str, tuple[Polynomial, Polynomial]] = {}  # of counters, whose loops are being lowered

    def snapshot(self) -> tuple:
        return dict(self.values), dict(self.names), dict(self.bounds)

    def restore(self, saved: tuple) -> None:
        self.values, self.names, self.bounds = map(dict, saved)

    # --- names ---------------------------------------------------------------------------------------------------

    def declare(self, name: str) -> Atom:
        """Declares that a variable is a dimension of an argument; returns its atom."""
        self.entry[name] = len(self.entry)
        self.least[name] = 0
        value = self.equal.get(name)
        if value is None:
            return ir.size_variable(name)
        self.values[name] = value
        return self.atom(value)

    def of(self, atom: Atom) -> Polynomial:
        """The size that a dimension atom stands for."""
        size = self.low.static_size(atom)
        if isinstance(atom, ir.Const) or size is not None:
            return Polynomial.of(atom if size is None else size)
        return self.values.get(atom.name) or Polynomial.of(atom)

    def product(self, atoms: Any) -> Polynomial:
        return product(map(self.of, atoms))

    def atom(self, size: Polynomial, base: str = "n", expr: ir.Expr | None = None) -> Atom:
        """The atom of a size, which isn't negative. expr: an expression for it that names the dimensions, where the
        polynomial would have numbers in their place."""
        low = self.low
        if size.number is not None:
            found: Atom = low.static_dim(size.number)
            return found
        if size.variable is not None:
            return ir.size_variable(size.variable)
        name = self.names.get(size)
        if name is not None and low.is_visible(ir.size_variable(name)):
            return ir.size_variable(name)
        if size.variables <= self.entry.keys():
            name = low.names.fresh(base)
            low.prologue[name] = expr or size.expr
        else:
            name = low.assign(expr or size.expr, base).name
        self.names[size], self.values[name] = name, size
        return ir.size_variable(name)

    # --- what compares how ---------------------------------------------------------------------------------------

    def is_nonnegative(self, size: Polynomial, assume: bool = True) -> bool:
        """Whether a size is proven not to be negative, or assumed not to be. assume: it may be assumed."""
        if size.number is not None:
            return size.number >= 0
        if len(size.terms) > _TERMS or size.degree > _DEGREE + 1:
            return False
        rest = self._without_counters(size)
        if rest is None:
            return False
        return self._is_proven(rest) or (assume and self.assuming and self._assume(rest))

    def _without_counters(self, size: Polynomial) -> Polynomial | None:
        """The minimum over the values of the counters in a size."""
        for _ in range(_DEPTH):
            inner = [name for name in self.bounds if name in size.variables]
            if not inner:
                return size
            name = inner[-1]
            factor = size.factor_of(name)
            if factor is None:
                return None
            first, last = self.bounds[name]
            if self.is_nonnegative(factor, assume=False):
                size = size.replaced(name, first)
            elif self.is_nonnegative(-factor, assume=False):
                size = size.replaced(name, last)
            else:
                return None
        return None

    def _is_proven(self, size: Polynomial) -> bool:
        if self._is_positive_sum(size):
            return True
        return any(self._is_positive_sum(size - condition) for condition in self.conditions)

    def _is_positive_sum(self, size: Polynomial) -> bool:
        for name in size.variables:
            if name in self.least:
                size = size.replaced(name, Polynomial.of(name) + self.least[name])
            elif ir.size_variable(name) not in self.low.sizes.values():
                return False
        return all(factor >= 0 for _, factor in size.terms)

    def _assume(self, size: Polynomial) -> bool:
        if not size.variables <= self.entry.keys() or size.degree > _DEGREE:
            return False
        (name,) = size.variables if len(size.variables) == 1 else (None,)
        factor = size.factor_of(name) if name is not None else None
        if name is not None and factor is not None and (factor.number or 0) > 0:
            needed = -(size.constant // factor.number)  # type: ignore[operator]
            if needed > _USUAL:
                return False
            self.least[name] = max(self.least[name], needed)
            return True
        if size.constant >= _HUGE:
            # Such products must not wrap themselves.
            if size.degree > 1 and sum(abs(factor) for names, factor in size.terms if names) > _FACTORS:
                return False
            for each in sorted(size.variables) if size.degree > 1 else []:
                self._require(Polynomial.of(2**29) - Polynomial.of(each))
            self._require(size)
            return True
        # That one dimension is at least another one is usual, because they are mostly equal.
        factors = sorted(factor for names, factor in size.terms if names)
        if size.degree == 1 and factors == [-1, 1] and size.constant >= -_USUAL:
            self._require(size)
            return True
        return False

    def _require(self, size: Polynomial) -> None:
        if not self._is_proven(size):
            self.conditions.append(size)

    def are_equal(self, a: Atom, b: Atom) -> bool:
        """Whether two dimensions are equal. Raises Assumed to have the kernel lowered again under that assumption."""
        if a == b:
            return True
        x, y = self.of(a), self.of(b)
        difference = x - y
        if difference.number is not None or not self.assuming or not difference.variables <= self.entry.keys():
            return difference.number == 0
        if difference.degree == 1 and sorted(factor for names, factor in difference.terms if names) == [-1, 1]:
            for name in sorted(difference.variables, key=self.entry.__getitem__, reverse=True):
                factor = difference.factor_of(name)
                if factor is not None and factor.number is not None and name not in self.equal:
                    rest = difference - Polynomial.of(name) * factor.number
                    raise Assumed(name, rest * -factor.number)
        return False

    @property
    def guards(self) -> list[ir.Expr]:
        """The conditions under which the kernel must not run."""
        found: list[ir.Expr] = [ir.size_variable(name).compare("!=", value.expr) for name, value in self.equal.items()]
        found += [ir.size_variable(name).compare("<", least) for name, least in self.least.items() if least > 0]
        return found + [size.expr.compare("<", 0) for size in self.conditions]

    # --- integers ------------------------------------------------------------------------------------------------

    def known_size(self, expr: ir.Expr, dtype: DType) -> Range | None:
        """What is known of a scalar that is the copy of a dimension."""
        atom = self.low.sizes.get(expr)
        if atom is None or isinstance(atom, ir.Const) or self.low.static_size(atom) is not None:
            return None
        return Range(0, limits(dtype)[1], None, atom, self.of(atom))

    def refined(self, op: str, refs: list[Any], known: Range | None, dtype: DType) -> Range | None:
        """What is known of the result of an integer op, besides `known`."""
        if len(refs) != 2:
            return known
        a, b = (polynomial_of(known_range(ref)) for ref in refs)
        if a is None or b is None:
            return known
        if op == "floormod":
            return self._remainder(a, b) or known
        if op == "maximum":
            return self._larger(a, b, dtype) or known
        if op == "add":
            polynomial = a + b
        elif op == "subtract":
            polynomial = a - b
        elif op == "multiply":
            if all(f.variables and f.variables <= self.entry.keys() for f in (a, b)):
                # The factors are mostly sizes.
                self.is_nonnegative(a)
                self.is_nonnegative(b)
            polynomial = a * b
        else:
            return known
        if polynomial.number is not None or len(polynomial.terms) > _TERMS or polynomial.degree > _DEGREE:
            return known
        least, greatest = limits(dtype)
        if known is None:
            if not (
                self.is_nonnegative(polynomial - least) and self.is_nonnegative(Polynomial.of(greatest) - polynomial)
            ):
                return None
            known = Range(least, greatest)
        if known.low < 0 and self.is_nonnegative(polynomial, assume=False):
            known = Range(0, known.high, known.below, known.wide)
        return Range(known.low, known.high, known.below, polynomial.expr, polynomial)

    def _larger(self, a: Polynomial, b: Polynomial, dtype: DType) -> Range | None:
        """The range of the maximum of a size and a number that the size is assumed to be at least."""
        size, number = (b, a.number) if a.number is not None else (a, b.number)
        if number is None or size.number is not None or not self.is_nonnegative(size - number):
            return None
        return Range(number, limits(dtype)[1], None, size.expr, size)

    def _remainder(self, a: Polynomial, b: Polynomial) -> Range | None:
        """What is known of `a % b` where `b` is greater than `a`, or than `-a`."""
        number = a.number
        if (
            number is None
            or b.number is not None
            or not self.is_nonnegative(b - number - 1 if number >= 0 else b + number)
        ):
            return None
        polynomial = a if number >= 0 else b + number
        return Range(max(number, 0), number if number >= 0 else _HUGE * 2 - 1, None, polynomial.expr, polynomial)

    def nonzero(self, known: Range | None) -> Range | None:
        """The range of a divisor. A size is assumed not to be 0."""
        polynomial = polynomial_of(known)
        if known is None or known.low != 0 or polynomial is None or not self.is_nonnegative(polynomial - 1):
            return known
        return known._replace(low=1)

    def is_below(self, polynomial: Polynomial | None, size: Atom) -> bool:
        """Whether an integer is known to be less than a dimension."""
        return polynomial is not None and self.is_nonnegative(self.of(size) - 1 - polynomial)

    def enter_loop(self, counter: str, first: Polynomial, last: Polynomial) -> None:
        """Declares the bounds of a counter while the body of its loop is lowered."""
        self.bounds[counter] = (first, last)

    def leave_loop(self, counter: str) -> None:
        self.bounds.pop(counter, None)
