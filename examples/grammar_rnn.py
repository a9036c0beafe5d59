"""A recurrent network that learns to write, character by character, sentences of a language that is made up here.

The language is small enough to know everything about it: which sentences it has, and how surprising a character of them
is on average, which no model's loss can go below. It isn't easy, though: the verb agrees with a noun that may be far
away ("the dogs that the old cat sees sleep."), and the clauses are nested.

A network of gated recurrent units learns it with Keras; `ag.data` puts sentences of similar length into batches. Then
the network writes: one `ag.function` with a Keras cell in a `while` loop that ends when the sentence does.

Run it: `python examples/grammar_rnn.py [FILE.png]`. It prints what the network writes as it learns, and draws how good
that is. It needs Keras and, for the picture, matplotlib (`pip install '.[keras,examples]'`).
"""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import autograph as ag
from autograph import keras

layers = keras.layers

NOUNS = ("dog", "cat", "bird", "child")
VERBS = ("see", "hear", "like")  # something
DEEDS = ("sleep", "run", "sing")
ADJECTIVES = ("old", "small", "red")
ALPHABET = "\0\n .abcdefghijklmnopqrstuvwxyz"
NOTHING, END = 0, ALPHABET.index("\n")  # fills up the rows of a batch; ends a sentence
DEEPEST = 2  # clauses within clauses
SENTENCES = 6000
BUCKETS = (20, 28, 40, 60)  # characters: sentences between two of these numbers go into a batch
BATCH = 32
UNITS = 128
EPOCHS = 9
LONGEST = 120  # characters that are written at most


class Writer:
    """Makes sentences, and counts how improbable its choices were."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random, self.surprise = random, 0.0

    def choice(self, among: tuple[str, ...]) -> str:
        self.surprise += np.log(len(among))
        return among[self.random.integers(len(among))]

    def chance(self, probability: float) -> bool:
        happens = bool(self.random.random() < probability)
        self.surprise -= np.log(probability if happens else 1.0 - probability)
        return happens

    def phrase(self, depth: int) -> tuple[list[str], bool]:
        """A noun with what belongs to it, and whether there are several of it."""
        many = self.chance(0.5)
        words = ["the"] + ([self.choice(ADJECTIVES)] if self.chance(0.3) else [])
        noun = self.choice(NOUNS)
        words.append({"child": "children"}.get(noun, noun + "s") if many else noun)
        if depth < DEEPEST and self.chance(0.35):
            if self.chance(0.5):  # the dog that sees the cats
                seen, _ = self.phrase(depth + 1)
                words += ["that", agreeing(self.choice(VERBS), many), *seen]
            else:  # the dog that the cats see
                seer, several = self.phrase(depth + 1)
                words += ["that", *seer, agreeing(self.choice(VERBS), several)]
        return words, many

    def sentence(self) -> str:
        words, many = self.phrase(0)
        return " ".join([*words, agreeing(self.choice(DEEDS), many)]) + ".\n"


def agreeing(verb: str, many: bool) -> str:
    return verb if many else verb + "s"


def is_sentence(text: str) -> bool:
    """Whether the language has a sentence, read from left to right: its noun, what belongs to it, and a verb for it."""
    words = text.removesuffix("\n").removesuffix(".").split(" ")
    nouns = {**dict.fromkeys(NOUNS, False), **{{"child": "children"}.get(n, n + "s"): True for n in NOUNS}}

    def phrase(place: int, depth: int) -> list[tuple[int, bool]]:
        """The places where a phrase may end that begins here, each with whether it is of several."""
        if words[place : place + 1] != ["the"]:
            return []
        place += 1
        if words[place : place + 1] and words[place] in ADJECTIVES:
            place += 1
        if words[place : place + 1] == [] or words[place] not in nouns:
            return []
        many, place = nouns[words[place]], place + 1
        ends = [(place, many)]
        if depth < DEEPEST and words[place : place + 1] == ["that"]:
            if words[place + 1 : place + 2] and words[place + 1] in {agreeing(verb, many) for verb in VERBS}:
                ends += [(end, many) for end, _ in phrase(place + 2, depth + 1)]
            for end, several in phrase(place + 1, depth + 1):
                if words[end : end + 1] and words[end] in {agreeing(verb, several) for verb in VERBS}:
                    ends.append((end + 1, many))
        return ends

    return text.endswith(".\n") and any(
        words[end:] in [[agreeing(deed, many)] for deed in DEEDS] for end, many in phrase(0, 0)
    )


class Language(NamedTuple):
    """Sentences to learn from and to test with, and the least possible loss: the average surprise of a character, in
    nats."""

    learned: list[str]
    held_out: list[str]
    least_loss: float


def make_language(seed: int = 0, sentences: int = SENTENCES) -> Language:
    writer = Writer(np.random.default_rng(seed))
    made = [writer.sentence() for _ in range(sentences)]
    held_out = sentences // 10
    return Language(made[held_out:], made[:held_out], writer.surprise / sum(map(len, made)))


def batches(sentences: list[str]) -> Any:
    """Batches of sentences of similar length: before each character the one that comes before it, and the character
    itself, both of shape [batch, longest]."""
    numbers = [[END, *map(ALPHABET.index, sentence)] for sentence in sentences]
    rows = ag.data.Dataset.from_tensor_slices(ag.ragged.constant(numbers, dtype=ag.int32))
    pairs = rows.shuffle(len(sentences), seed=1).map(lambda row: (row[:-1], row[1:]))
    sizes = [BATCH] * (len(BUCKETS) + 1)
    made = pairs.bucket_by_sequence_length(lambda row, _: ag.size(row), BUCKETS, sizes)
    count = sum(1 for _ in made)  # which `fit` wants to know, and the dataset can't
    return made.apply(ag.data.experimental.assert_cardinality(count)).prefetch(ag.data.AUTOTUNE)


def make_model(steps: int) -> Any:
    """Logits of the next character, [batch, steps, characters], of characters [batch, steps]. steps: of the training,
    in which the learning rate falls to 0."""
    model = keras.Sequential(
        [
            layers.Embedding(len(ALPHABET), 16),
            layers.GRU(UNITS, return_sequences=True),
            layers.Dense(len(ALPHABET)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=NOTHING)
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(5e-3, steps)), loss)
    return model


class Speaker:
    """Writes sentences with a trained model's layers."""

    def __init__(self, model: Any) -> None:
        self.embedding, recurrent, self.logits = model.layers
        self.cell = recurrent.cell

    @ag.function
    def write(self, temperature):
        """Numbers of the characters of a sentence, [length]."""
        state = ag.zeros([1, UNITS])
        character = ag.constant([END])
        written = ag.zeros([0], ag.int32)
        going = ag.constant(True)
        while going and ag.size(written) < LONGEST:
            output, state = self.cell(self.embedding(character), state)
            character = ag.random.categorical(self.logits(output) / temperature, 1, dtype=ag.int32)[0]
            written = ag.concat([written, character], 0)
            going = character[0] != END
        return written

    def sentences(self, count: int, temperature: float = 1.0) -> list[str]:
        heat = ag.constant(temperature)
        return ["".join(ALPHABET[number] for number in self.write(heat).numpy()) for _ in range(count)]


class Progress(keras.callbacks.Callback):
    """Has the network write after each epoch; `history` has the losses, and the shares of sentences that are right."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.samples = samples
        self.history: dict[str, list[float]] = {"loss": [], "val_loss": [], "right": []}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        written = Speaker(self.model).sentences(self.samples)
        right = sum(map(is_sentence, written)) / self.samples
        for name, value in (*(logs or {}).items(), ("right", right)):
            self.history[name].append(float(value))
        print(f"epoch {epoch + 1}: loss {logs['loss']:.3f}, {right:.0%} right, e.g. {written[epoch].strip()!r}")


def train(
    epochs: int = EPOCHS, samples: int = 200, seed: int = 0, sentences: int = SENTENCES
) -> tuple[Any, Any, Language]:
    """The trained model, the history of its training, and the language that it has learned."""
    keras.utils.set_random_seed(seed)
    language = make_language(seed, sentences)
    learned = batches(language.learned)
    model, progress = make_model(epochs * len(learned)), Progress(samples)
    model.fit(
        learned, validation_data=batches(language.held_out), epochs=epochs, verbose=0,
        shuffle=False, callbacks=[progress],
    )  # fmt: skip
    return model, progress.history, language


def draw(path: Path, model: Any, history: Any, language: Language) -> None:
    """The losses beside the least possible one, how many sentences are right, and what comes next in one of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[1, 1.25])
    epochs = np.arange(1, len(history["loss"]) + 1)
    axes = figure.add_subplot(grid[0, 0])
    axes.plot(epochs, history["loss"], "o-", color="tab:blue", ms=3, label="sentences it learns from")
    axes.plot(epochs, history["val_loss"], "o-", color="tab:red", ms=3, label="held out")
    axes.axhline(language.least_loss, color="0.3", lw=1, ls="--", label="the least possible")
    axes.set(xlabel="epoch", ylabel="nats a character", yscale="log")
    axes.set_yticks([0.3, 0.5, 1, 2], ["0.3", "0.5", "1", "2"])
    axes.minorticks_off()
    axes.legend(fontsize=8, frameon=False)
    axes = figure.add_subplot(grid[0, 1])
    axes.bar(epochs, [100 * share for share in history["right"]], color="tab:green", width=0.6)
    axes.set(xlabel="epoch", ylabel="sentences that are right (%)", ylim=(0, 100))

    text = "the birds that the old cat sees sing.\n"
    numbers = np.array([[END, *map(ALPHABET.index, text[:-1])]])
    logits = np.asarray(model(ag.constant(numbers)))[0]
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    shown = [number for number in range(len(ALPHABET)) if chances[:, number].max() > 0.05]
    axes = figure.add_subplot(grid[1, :])
    image = axes.imshow(chances[:, shown].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    names = {" ": "␣", "\n": "↵"}
    axes.set_xticks(range(len(text)), [names.get(character, character) for character in text], fontsize=9)
    axes.set_yticks(range(len(shown)), [names.get(ALPHABET[n], ALPHABET[n]) for n in shown], fontsize=8)
    for place, character in enumerate(text):
        axes.plot(place, shown.index(ALPHABET.index(character)), "o", mfc="none", mec="tab:red", ms=7)
    title = "How likely each next character is, before each character of a sentence (circles: the one that comes)"
    axes.set_title(title, fontsize=10, loc="left")
    figure.colorbar(image, ax=axes, pad=0.01)
    figure.savefig(path, dpi=130)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "grammar_rnn.png")
    start = time.perf_counter()
    model, history, language = train()
    print(f"{time.perf_counter() - start:.1f} s; held out {history['val_loss'][-1]:.3f}, the least possible is "
          f"{language.least_loss:.3f}")  # fmt: skip
    for temperature in (0.5, 1.0, 1.5):
        written = Speaker(model).sentences(200, temperature)
        print(
            f"temperature {temperature}: {sum(map(is_sentence, written)) / 2:.0f} % right, e.g. {written[1].strip()!r}"
        )
    try:
        draw(path, model, history, language)
    except ImportError:
        print("no picture: that needs matplotlib, `python -m pip install matplotlib`")
    else:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
