"""A recurrent network as a Python loop over time: forward pass, gradient and optimiser in one native function.

The network sees a random signal and learns to repeat it two steps late, which it can only do by keeping it in its
state.

Run it: `python examples/dynamic_rnn.py`. It checks the untrained forward pass against NumPy, trains, and prints the
loss.
"""

import time

import numpy as np

import autograph as ag

DELAY = 2


class RNNCell:
    """A fully connected tanh cell: state' = tanh(input w_x + state w_h + b), output = state' w_y."""

    def __init__(self, inputs: int, units: int, outputs: int, seed: int = 0):
        random = np.random.default_rng(seed)

        def weights(rows: int, columns: int, name: str) -> ag.Variable:
            values = random.normal(0.0, rows**-0.5, (rows, columns))
            return ag.Variable(values.astype(np.float32), name=name)

        self.units = units
        self.w_x = weights(inputs, units, "w_x")
        self.w_h = weights(units, units, "w_h")
        self.b = ag.Variable(np.zeros(units, np.float32), name="b")
        self.w_y = weights(units, outputs, "w_y")

    @property
    def variables(self) -> list[ag.Variable]:
        return [self.w_x, self.w_h, self.b, self.w_y]

    def zero_state(self, batch, dtype=ag.float32):
        return ag.zeros([batch, self.units], dtype)

    def __call__(self, inputs, state):
        state = ag.tanh(ag.matmul(inputs, self.w_x) + ag.matmul(state, self.w_h) + self.b)
        return ag.matmul(state, self.w_y), state


class DynamicRNN:
    """Runs a cell over the time axis of a batch of sequences of any length."""

    def __init__(self, rnn_cell: RNNCell):
        self.cell = rnn_cell

    def __call__(self, input_data):
        # [batch, time, features] -> [time, batch, features]
        input_data = ag.transpose(input_data, [1, 0, 2])

        outputs = ag.TensorArray(ag.float32, input_data.shape[0])
        state = self.cell.zero_state(input_data.shape[1], dtype=ag.float32)

        for i in ag.range(input_data.shape[0]):
            output, state = self.cell(input_data[i], state)
            outputs = outputs.write(i, output)

        # [time, batch, features] -> [batch, time, features]
        return ag.transpose(outputs.stack(), [1, 0, 2]), state


class Adam:
    """Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1."""

    def __init__(self, variables: list[ag.Variable], rate: float = 0.01):
        self.variables = variables
        self.rate = rate
        self.steps = ag.Variable(0.0, trainable=False, name="steps")
        self.means = [ag.Variable(ag.zeros_like(v), trainable=False) for v in variables]
        self.squares = [ag.Variable(ag.zeros_like(v), trainable=False) for v in variables]

    def apply(self, gradients):
        self.steps.assign_add(1.0)
        rate = self.rate * ag.sqrt(1.0 - 0.999**self.steps) / (1.0 - 0.9**self.steps)
        for variable, mean, square, gradient in zip(self.variables, self.means, self.squares, gradients, strict=True):
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * gradient * gradient)
            variable.assign_sub(rate * mean / (ag.sqrt(square) + 1e-7))


class Trainer:
    """Owns the compiled training step of one network."""

    def __init__(self, network: DynamicRNN):
        self.network = network
        self.optimizer = Adam(network.cell.variables)

    @ag.function(jit_compile=True)
    def step(self, signals, targets):
        with ag.GradientTape() as tape:
            outputs, _ = self.network(signals)
            loss = ag.reduce_mean(ag.square(outputs - targets))
        self.optimizer.apply(tape.gradient(loss, self.network.cell.variables))
        return loss


def batch_of_signals(random: np.random.Generator, batch: int, time_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Signals and the same ones `DELAY` steps later, each of shape [batch, time, 1]."""
    signals = random.uniform(-1.0, 1.0, (batch, time_steps, 1)).astype(np.float32)
    targets = np.zeros_like(signals)
    targets[:, DELAY:] = signals[:, :-DELAY]
    return signals, targets


def numpy_forward(cell: RNNCell, signals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `DynamicRNN` computes, written directly in NumPy."""
    w_x, w_h, b, w_y = (variable.numpy() for variable in cell.variables)
    state = np.zeros((signals.shape[0], cell.units), np.float32)
    outputs = []
    for i in range(signals.shape[1]):
        state = np.tanh(signals[:, i] @ w_x + state @ w_h + b)
        outputs.append(state @ w_y)
    return np.stack(outputs, axis=1), state


def train(steps: int = 200, units: int = 24, batch: int = 32, time_steps: int = 20, seed: int = 0) -> list[float]:
    """The loss before each step."""
    random = np.random.default_rng(seed)
    trainer = Trainer(DynamicRNN(RNNCell(1, units, 1, seed)))
    losses = []
    for _ in range(steps):
        signals, targets = batch_of_signals(random, batch, time_steps)
        losses.append(float(trainer.step(ag.constant(signals), ag.constant(targets))))
    return losses


def forward_difference(units: int = 24, batch: int = 4, time_steps: int = 20) -> float:
    """Largest absolute difference between the compiled forward pass and NumPy's, in outputs and final state."""
    cell = RNNCell(1, units, 1)
    signals, _ = batch_of_signals(np.random.default_rng(1), batch, time_steps)
    outputs, state = ag.function(DynamicRNN(cell).__call__, jit_compile=True)(ag.constant(signals))
    expected_outputs, expected_state = numpy_forward(cell, signals)
    return max(
        float(np.max(np.abs(outputs.numpy() - expected_outputs))), float(np.max(np.abs(state.numpy() - expected_state)))
    )


def main() -> None:
    print(f"forward pass: within {forward_difference():.1e} of NumPy's")
    began = time.perf_counter()
    losses = train()
    seconds = time.perf_counter() - began
    print(f"training:     {len(losses)} steps in {seconds:.1f} s, compiling included")
    for i in range(0, len(losses), 40):
        print(f"              step {i:3}: mean squared error {np.mean(losses[i : i + 5]):.4f}")
    print(f"              at last: {np.mean(losses[-5:]):.4f} (always answering zero would be {1 / 3 * 0.9:.4f})")


if __name__ == "__main__":
    main()
