"""The op table: what an op is. One row holds everything that the rest of the runtime asks about it.

An op takes tensors (`inputs`) and hashable Python values (`attrs`); it gives one or several tensors.

    name      unique; also the name in printed graphs
    infer     type rule: (input types, attrs) -> output types; raises ValueError/TypeError for inputs it can't take
    kernel    NumPy: kernel(*arrays, **attrs) -> array, or a tuple for several outputs
    scalar    elementwise ops: text of the expression for generated code, such as "({0} + {1})", or a function
              (argument texts, input dtypes, output dtype) -> text. Ops without one have a row in `codegen` or
              stay on the interpreter.
    grad      reverse rule: grad(op_call, *output_cotangents) -> one cotangent (or None) per input. It is written with
              public ops, so that it runs eagerly and traces alike and can be differentiated again.
              `op_call` has .inputs .outputs .attrs. A cotangent that never arrived is None.
    effect    runs for what it does (print, assert, random): never removed, merged, folded or reordered

Constants, control flow and stacks are rows too; `graph/ir.py` says what their regions mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from runtime.dataclass import dataclass

InferRule = Callable[[Sequence[Any], dict], tuple]
ScalarRule = str | Callable[[Sequence[str], Sequence[Any], Any], str]
GradRule = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Sample:
    """How a systematic test calls an op: random operands of these shapes, and the attributes.

    low, high   the range that elements are drawn from, for the operands of the dtype under test
    fixed       operands that don't have the dtype under test: index -> NumPy array
    gradient    operands that the gradient is checked for; None means all of the dtype under test
    """

    shapes: tuple[tuple[int, ...], ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    low: float = -3.0
    high: float = 3.0
    fixed: dict[int, Any] = field(default_factory=dict)
    gradient: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class OpDef:
    name: str
    infer: InferRule
    kernel: Callable[..., Any]
    scalar: ScalarRule | None = None
    grad: GradRule | None = None
    effect: bool = False
    # Several outputs: the kernel gives a tuple.
    multiple: bool = False
    # From a node's attributes, what does the kernel's work on its operands: for loops on the interpreter.
    prepared: Callable[..., Callable[..., Any]] | None = None
    # Whether an adjoint may compute it again instead of saving it: cheap arithmetic, not transcendental functions,
    # products or loops.
    cheap: bool = False
    # The cost of computing one element of the result, in additions; 0 for views and for values known at compile time.
    # Generated code decides by it whether a loop is worth several threads.
    cost: int = 1
    # For products: (shapes of the operands, attributes) -> the number of terms that are summed for each element of the
    # result; None if it isn't known. No shape is None.
    terms: Callable[[Sequence[Any], dict], int | None] | None = None
    # Costs less than a store and a load: generated code computes it again rather than storing it.
    is_light: bool = False
    # Moves elements without computing: each element of the results is an element of an operand, or 0, and shapes and
    # attributes alone decide which.
    is_move: bool = False
    # For moves: the position of the first operand that isn't moved but says how (an index, a shape). None: all operands
    # are moved.
    numbers_after: int | None = None
    # In kernels the result is a view of the first operand's memory.
    is_view: bool = False
    # The result has the elements of the first operand in the same order.
    keeps_order: bool = False
    # The result is the first operand in another shape.
    is_reshape: bool = False
    # Reduces the axes in the attribute `axis`.
    is_reduction: bool = False
    # Changes a few elements of its first operand, whose memory the result may take over.
    is_update: bool = False
    # For updates: if it fails, it fails before it changes anything.
    fails_first: bool = False
    # For updates that compute: the elementwise op that combines the old element with the new one.
    joins: str = ""
    # Of these: whether a node rounds each element at most once even if each step is rounded: it updates no element
    # twice, or chooses between numbers.
    rounds_once: Callable[[Any], bool] | None = None
    # Its result is on the device that the attribute `device` names, even if the operand is a constant.
    is_copy_to_device: bool = False
    # Reads a few elements of its first operand.
    reads_part: bool = False
    # Native code for it doesn't depend on the value of an operand, such as a shape. True of all elementwise ops.
    needs_no_constants: bool = False
    # Can raise for some elements of operands whose shapes are known. Elementwise ops: see `checks_numbers` instead.
    can_fail: bool = True
    # Raises an error of the user's if a condition doesn't hold, and does nothing else.
    is_check: bool = False
    # Its effect is that it takes numbers from the generator of random numbers, and no other.
    is_random: bool = False
    # Non-finite numbers in its results come from its operands, or are no sign of an error. True of all moves.
    is_quiet: bool = False
    # The cotangent of its first operand has as many rows as that of its result, even where these are more.
    keeps_rows: bool = False
    # Does to the real and the imaginary parts of its operands what it does to complex numbers. True of all moves.
    by_parts: bool = False
    # Reads the bits of numbers, which must therefore keep their dtype.
    reads_bits: bool = False
    # Gives the same numbers in another dtype.
    converts: bool = False
    # Compares elements, which may be strings. Everything else that takes strings leaves elements as they are.
    compares: bool = False
    # Why no gradient flows through, for explanations: where the row has no `grad`, or one that gives None.
    cuts_gradient: str = ""
    # What its regions are for; None: they are functions, any number.
    regions: tuple[str, ...] | None = ()
    # Attributes that the signature of `kernel` doesn't name.
    attrs: tuple[str, ...] = ()
    # What it does that files don't decide, so that graphs in files can't contain it.
    not_in_files: str = ""
    # For ops that scatter into zeros: (call, total) -> total + result, without forming the result.
    add_into: Callable[[Any, Any], Any] | None = None
    # Text in the docs: what the op does, in one line.
    doc: str = ""
    # How systematic tests call it: see `Sample` and tests/ops/.
    samples: tuple[Sample, ...] | None = field(default=None, repr=False)
    # TensorFlow's name of the op, for graphs and error messages ("AddV2"); "" means the row's name in camel case.
    label: str = ""
    # Kinds (NumPy's letters: b bool, i int, u unsigned, f float, c complex, O string) that the data operands may have.
    kinds: str = "biufcO"
    # The reverse rule is right for complex numbers as it stands: it is linear with real coefficients, or conjugates by
    # itself. Other rules are written as for real numbers, and autodiff/reverse.py makes them right.
    complex_rule: bool = False
    # For integer dtypes: the operand that must not be zero / not be negative. Generated code checks it first.
    divisor: int | None = None
    exponent: int | None = None
    # An integer that the output's dtype can't hold is an error. Generated code checks it first.
    narrows: bool = False
    # Computes what the row of this name does, without wrapping: a result that int64 can't hold is an error.
    unchecked: str = ""
    # Of these: the kernels' function that says whether a result needs more than 64 bits. "": none does.
    exceeds: str = ""
    # Operands of which the low bits alone give as many low bits of the result.
    by_low_bits: tuple[int, ...] = ()
    # Its kernel runs the user's Python code.
    calls_python: bool = False
    # All replicas of a program run it together, and none alone: it never runs while a program is compiled.
    is_collective: bool = False
    # Of effects whose results follow from the operands: the op that gives them a second time, without an order token.
    again: OpDef | None = None
    # Operands of which only dtype and shape matter, never the elements.
    shape_only: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", "".join(part.capitalize() for part in self.name.split("_")))

    @property
    def is_elementwise(self) -> bool:
        return self.scalar is not None

    def checks_numbers(self, dtype: Any) -> bool:
        """Whether an elementwise op fails for some numbers, where its output has this dtype."""
        return dtype.is_integer and (
            self.narrows or bool(self.unchecked) or self.divisor is not None or self.exponent is not None
        )

    @property
    def arithmetic(self) -> str:
        """The name of the row that computes the same numbers without a check: mostly its own."""
        return self.unchecked or self.name

    @property
    def conjugates(self) -> bool:
        """Whether its gradient rule is written for real numbers although the op takes complex ones."""
        return "c" in self.kinds and "O" not in self.kinds and not self.complex_rule

    @property
    def widens(self) -> bool:
        """Whether it computes with float16 and bfloat16 (in float32) rather than only moving them."""
        if self.is_move or self.reads_bits or self.converts:
            return False
        return "f" in self.kinds and ("O" not in self.kinds or self.compares)

    @property
    def has_user_messages(self) -> bool:
        """Whether its error messages are written by the user (checks, calls of Python), so that nothing is added to
        them."""
        return self.is_check or self.calls_python

    def reads_elements(self, operands: int) -> bool:
        """Whether it reads elements of at least one operand (not only shapes), or has no operands."""
        return operands == 0 or not all(index in self.shape_only for index in range(operands))

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def too_large(dtype: Any) -> str:
    """What an op says of an integer that its output's dtype can't hold."""
    return f"a Python int is too large for {dtype.name}, its dtype as a tensor; use ag.cast(x, ag.int64)"


BEYOND_64_BITS = (
    "a Python int is too large for the 64 bits that it has in a traced function; use a float, or keep it small "
    "(% m, & mask); an ag.int64 tensor wraps"
)

OPS: dict[str, OpDef] = {}


def register(op: OpDef) -> OpDef:
    """Adds a row. Raises ValueError when the name is taken."""
    if op.name in OPS:
        raise ValueError(f"op {op.name!r} is registered twice")
    OPS[op.name] = op
    return op
