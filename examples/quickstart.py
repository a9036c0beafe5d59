"""Five minutes with autograph: an imperative function becomes native code, and its gradient with it.

Run it: `python examples/quickstart.py`.
"""

import time
from collections.abc import Callable

import autograph as ag


def throw(vx, vy, y):
    """How far a ball flies (metres) with air drag, thrown at (vx, vy) metres per second from a height of y metres."""
    x, dt = 0.0, 0.0005
    while y >= 0.0:
        drag = 0.008
        if y > 20.0:
            drag = 0.006  # thinner air
        speed = (vx * vx + vy * vy) ** 0.5
        vx -= drag * speed * vx * dt
        vy -= (9.81 + drag * speed * vy) * dt
        x += vx * dt
        y += vy * dt
    return x - y * vx / vy  # where the last step crossed the ground


compiled = ag.function(throw, jit_compile=True)


@ag.function(jit_compile=True)
def gradient(vx, vy, y):
    with ag.GradientTape() as tape:
        tape.watch([vx, vy, y])
        distance = throw(vx, vy, y)
    return tape.gradient(distance, [vx, vy, y])


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The fastest of several calls: everything slower was something else using the machine."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    print("The function as autograph rewrites it:\n")
    print(ag.autograph.to_code(throw))

    start = (30.0, 25.0, 2.0)
    vx, vy, y = (ag.constant(value) for value in start)
    print("result:   ", compiled(vx, vy, y))
    print("gradient: ", [round(float(slope), 4) for slope in gradient(vx, vy, y)], "with respect to (vx, vy, y)")

    h = 1e-5
    difference = (throw(30.0 + h, 25.0, 2.0) - throw(30.0 - h, 25.0, 2.0)) / (2 * h)
    print("checked:  ", f"plain Python says {throw(*start):.4f}, and {difference:.4f} by central differences in vx")

    plain = seconds(lambda: throw(*start), 5)
    native = seconds(lambda: compiled(vx, vy, y), 50)
    both = seconds(lambda: gradient(vx, vy, y), 50)
    print("time:     ", f"plain Python {plain * 1e6:,.0f} us, compiled {native * 1e6:,.0f} us", end="")
    print(f" ({plain / native:.0f} times faster), gradient {both * 1e6:,.0f} us")


if __name__ == "__main__":
    main()
