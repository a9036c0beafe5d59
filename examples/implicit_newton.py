"""The gradient of an equation's solution: through every step of Newton's method, or by the implicit function theorem.

A rod with ends held at temperature 0 is heated by a reaction that runs faster the hotter it is. Its temperature u(x)
solves Bratu's equation, here with fuel k(x) that isn't spread evenly:

    u'' + k exp(u) = 0,  u(0) = u(1) = 0        after discretisation        F(u, k) = A u + k exp(u) = 0

Newton's method finds u by a `while` that ends when the residual is small: nobody knows how many steps that takes. How
does the mean temperature depend on the fuel at each point? Three answers:

- the loop: `GradientTape` goes back through all of its steps, nothing else to write;
- the theorem: at a solution, du/dk = -(dF/du)⁻¹ dF/dk, one linear solve more, written as an `ag.custom_gradient`;
- central differences: two solutions for each point.

Run it: `python examples/implicit_newton.py [FILE.png]`. It prints and draws their errors and times against the solver's
tolerance, with matplotlib (`python -m pip install matplotlib`).
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import autograph as ag

POINTS = 40  # inner points of the grid
TOLERANCES = 10.0 ** np.arange(1, -11, -1)
WIDTH = 1e-4  # of the central differences, relative to the fuel


def laplacian() -> np.ndarray:
    """The second derivative on the grid, with u = 0 at both ends: shape [POINTS, POINTS]."""
    neighbours = np.eye(POINTS, k=1) + np.eye(POINTS, k=-1)
    return (neighbours - 2.0 * np.eye(POINTS)) * (POINTS + 1) ** 2


def grid() -> np.ndarray:
    return np.arange(1, POINTS + 1) / (POINTS + 1)


def fuel() -> np.ndarray:
    """More of it on the left: shape [POINTS]."""
    return 3.0 - 2.0 * grid()


A = laplacian()


def residual(u, k):
    return ag.linalg.matvec(A, u) + k * ag.exp(u)


def slope_of_residual(u, k):
    """dF/du, shape [POINTS, POINTS]."""
    return A + ag.linalg.diag(k * ag.exp(u))


def newton(k, tolerance):
    """The solution u, shape [POINTS], and the number of steps."""
    u = ag.zeros_like(k)
    f = residual(u, k)
    steps = 0
    while ag.norm(f) > tolerance:
        u -= ag.linalg.solve(slope_of_residual(u, k), f[:, ag.newaxis])[:, 0]
        f = residual(u, k)
        steps += 1
        if steps == 50:
            break  # above a certain amount of fuel there is no solution: the rod explodes
    return u, steps


@ag.custom_gradient
def newton_with_implicit_gradient(k, tolerance):
    u, _ = newton(k, tolerance)

    def grad(du):
        transposed = ag.transpose(slope_of_residual(u, k))
        adjoint = ag.linalg.solve(transposed, -du[:, ag.newaxis])[:, 0]
        return adjoint * ag.exp(u), None  # dF/dk is diagonal; the solution doesn't depend on the tolerance

    return u, grad


@ag.function(jit_compile=True)
def temperature(k, tolerance):
    """The mean temperature, and the steps that Newton's method took."""
    u, steps = newton(k, tolerance)
    return ag.reduce_mean(u), steps


@ag.function(jit_compile=True)
def gradient_by_loop(k, tolerance):
    with ag.GradientTape() as tape:
        tape.watch(k)
        mean, _ = temperature(k, tolerance)
    return tape.gradient(mean, k)


@ag.function(jit_compile=True)
def gradient_by_theorem(k, tolerance):
    with ag.GradientTape() as tape:
        tape.watch(k)
        mean = ag.reduce_mean(newton_with_implicit_gradient(k, tolerance))
    return tape.gradient(mean, k)


def gradient_by_differences(k, tolerance) -> np.ndarray:
    found = np.empty(POINTS)
    for i in range(POINTS):
        move = np.zeros(POINTS)
        move[i] = WIDTH * k.numpy()[i]
        above, _ = temperature(ag.constant(k.numpy() + move), tolerance)
        below, _ = temperature(ag.constant(k.numpy() - move), tolerance)
        found[i] = (float(above) - float(below)) / (2.0 * move[i])
    return found


METHODS: dict[str, Callable[..., Any]] = {
    "loop": gradient_by_loop,
    "theorem": gradient_by_theorem,
    "differences": gradient_by_differences,
}


class Measured(NamedTuple):
    """Per tolerance: steps of Newton's method, and of each method the relative error and the seconds it took."""

    steps: list[int]
    errors: dict[str, list[float]]
    seconds: dict[str, list[float]]
    primal: list[float]


def exact_gradient(k: np.ndarray) -> np.ndarray:
    """The gradient of the mean temperature by NumPy, to rounding: Newton's method until it stands still, one solve."""
    u = np.zeros(POINTS)
    for _ in range(20):
        u -= np.linalg.solve(A + np.diag(k * np.exp(u)), A @ u + k * np.exp(u))
    weights = np.full(POINTS, 1.0 / POINTS)
    return np.linalg.solve((A + np.diag(k * np.exp(u))).T, -weights) * np.exp(u)


def best_time(repeats: int, work: Callable[..., Any], *arguments: Any) -> float:
    """Seconds of the fastest of `repeats` calls."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work(*arguments)
        times.append(time.perf_counter() - began)
    return min(times)


def measure(tolerances: np.ndarray = TOLERANCES, repeats: int = 20) -> Measured:
    k = ag.constant(fuel())
    exact = exact_gradient(fuel())
    found = Measured([], {name: [] for name in METHODS}, {name: [] for name in METHODS}, [])
    for tolerance in (ag.constant(value) for value in tolerances):
        found.steps.append(int(temperature(k, tolerance)[1]))
        found.primal.append(best_time(repeats, temperature, k, tolerance))
        for name, method in METHODS.items():
            error = np.linalg.norm(np.asarray(method(k, tolerance)) - exact) / np.linalg.norm(exact)
            found.errors[name].append(float(error))
            again = repeats if name != "differences" else 3
            found.seconds[name].append(best_time(again, method, k, tolerance))
    return found


def draw(path: Path, found: Measured, tolerances: np.ndarray) -> None:
    """The solution with its gradient; errors and times against the tolerance."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    k = ag.constant(fuel())
    u, _ = newton(k, ag.constant(1e-10, ag.float64))
    left.plot(grid(), u, color="tab:red", label="temperature")
    left.plot(grid(), fuel() / 10.0, color="0.6", ls="--", label="fuel / 10")
    sensitivity = POINTS * gradient_by_loop(k, ag.constant(1e-10, ag.float64)).numpy()
    left.plot(grid(), sensitivity, color="tab:blue", label="gain of mean temperature\nper fuel at x")
    left.set_xlabel("place x along the rod")
    left.set_ylabel("dimensionless")
    left.set_ylim(bottom=0.0)
    left.legend(fontsize=8)
    left.set_title("Solution and its gradient", fontsize=10, loc="left")

    looks = {"loop": ("tab:blue", "o-"), "theorem": ("tab:orange", "s-"), "differences": ("0.5", "^-")}
    names = {"loop": "through the loop", "theorem": "implicit function theorem", "differences": "central differences"}
    for name, (colour, style) in looks.items():
        look = {"color": colour, "ms": 4, "lw": 1.2, "label": names[name]}
        middle.loglog(tolerances, found.errors[name], style, **look)
        right.loglog(tolerances, 1e3 * np.array(found.seconds[name]), style, **look)
    right.loglog(tolerances, 1e3 * np.array(found.primal), ":", color="black", label="solution alone")
    middle.set_ylabel("relative error of the gradient")
    right.set_ylabel("time (ms)")
    for axes, title in ((middle, "Error"), (right, f"Time, {POINTS} points")):
        axes.set_xlabel("tolerance on the residual's norm")
        axes.invert_xaxis()
        axes.grid(alpha=0.3)
        axes.set_title(title, fontsize=10, loc="left")
    middle.legend(fontsize=8)
    right.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "implicit_newton.png")
    found = measure()
    print("            Newton      relative error of the gradient            time (ms)")
    print("tolerance    steps      loop   theorem  differences      loop   theorem  differences   solution")
    for i, tolerance in enumerate(TOLERANCES):
        errors = "  ".join(f"{found.errors[name][i]:8.1e}" for name in METHODS)
        times = "  ".join(f"{1e3 * found.seconds[name][i]:8.3f}" for name in METHODS)
        print(f"{tolerance:9.0e} {found.steps[i]:8d}  {errors}    {times}     {1e3 * found.primal[i]:8.3f}")
    try:
        draw(path, found, TOLERANCES)
    except ImportError:
        print("no picture: that needs matplotlib, `python -m pip install matplotlib`")
    else:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
