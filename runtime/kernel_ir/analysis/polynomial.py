"""Sums of products of integer variables: what sizes and indices are while a kernel is lowered.

>>> n, i = Polynomial.of("n"), Polynomial.of("i")
>>> (n + 2) * i - i
Polynomial(i + i * n)
>>> n - 2 == 1 + n - 3
True

Equal polynomials are equal objects for `==` and for dicts: terms are kept in order and none is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.print_python import expression

Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Polynomial:
    """terms: ((variables in order, factor), ...); the constant has no variables."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(item: str | int | ir.Var | ir.Const | Polynomial) -> Polynomial:
        """A variable or a number."""
        if isinstance(item, Polynomial):
            return item
        if isinstance(item, ir.Var):
            item = item.name
        elif isinstance(item, ir.Const):
            item = int(item.value)
        return _made({(): item}) if isinstance(item, int) else Polynomial((((item,), 1),))

    @property
    def number(self) -> int | None:
        """Its value, if it has no variables."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def variable(self) -> str | None:
        """Its variable, if it is one variable and nothing else."""
        if len(self.terms) != 1:
            return None
        names, factor = self.terms[0]
        return names[0] if len(names) == 1 and factor == 1 else None

    @property
    def constant(self) -> int:
        return next((factor for names, factor in self.terms if not names), 0)

    @property
    def variables(self) -> set[str]:
        return {name for names, _ in self.terms for name in names}

    @property
    def degree(self) -> int:
        return max((len(names) for names, _ in self.terms), default=0)

    def factor_of(self, variable: str) -> Polynomial | None:
        """What a variable is multiplied by; None if it occurs as a power."""
        found = {}
        for names, factor in self.terms:
            if names.count(variable) > 1:
                return None
            if variable in names:
                found[tuple(name for name in names if name != variable)] = factor
        return _made(found)

    def replaced(self, variable: str, by: Polynomial) -> Polynomial:
        """The same with a polynomial substituted for a variable."""
        rest: dict[Monomial, int] = {}
        total = ZERO
        for names, factor in self.terms:
            count = names.count(variable)
            if not count:
                rest[names] = factor
                continue
            part = _made({tuple(name for name in names if name != variable): factor})
            for _ in range(count):
                part = part * by
            total = total + part
        return total + _made(rest)

    def __add__(self, other: Polynomial | int) -> Polynomial:
        found = dict(self.terms)
        for names, factor in Polynomial.of(other).terms:
            found[names] = found.get(names, 0) + factor
        return _made(found)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((names, -factor) for names, factor in self.terms))

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -Polynomial.of(other)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        found: dict[Monomial, int] = {}
        for names, factor in self.terms:
            for others, second in Polynomial.of(other).terms:
                both = tuple(sorted(names + others))
                found[both] = found.get(both, 0) + factor * second
        return _made(found)

    @property
    def expr(self) -> ir.Expr:
        """The polynomial as an expression of 64-bit variables, positive terms first."""
        terms = sorted(self.terms, key=lambda term: (term[1] < 0, not term[0]))
        total: ir.Expr | None = None
        for names, factor in terms:
            size = factor if total is None else abs(factor)
            variables: list[ir.Expr] = [ir.size_variable(name) for name in names]
            if size == -1 and names:
                variables[0] = -variables[0]
            elif size != 1 or not names:
                variables.insert(0, ir.as_expr(size))
            part, *others = variables
            for each in others:
                part = part * each
            total = part if total is None else total - part if factor < 0 else total + part
        return ir.ZERO if total is None else total

    def __repr__(self) -> str:
        return f"Polynomial({expression(self.expr)})"


def _made(terms: Mapping[Monomial, int]) -> Polynomial:
    return Polynomial(tuple(sorted((names, factor) for names, factor in terms.items() if factor)))


def product(factors: Iterable[Polynomial]) -> Polynomial:
    """The product of all factors; 1 if there are none."""
    total = Polynomial.of(1)
    for factor in factors:
        total = total * factor
    return total


ZERO = Polynomial(())
