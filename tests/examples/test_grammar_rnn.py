"""examples/grammar_rnn.py: the language, the batches, that it is learned, what is written, the picture."""

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("needs Keras: pip install -e '.[keras]'", allow_module_level=True)

import autograph as ag
from examples import grammar_rnn as grammar

pytestmark = pytest.mark.usefixtures("tensorflow")


def test_sentences_are_of_the_language_and_others_are_not():
    writer = grammar.Writer(np.random.default_rng(0))
    sentences = [writer.sentence() for _ in range(500)]
    assert all(map(grammar.is_sentence, sentences))
    assert any("that" in sentence for sentence in sentences)
    for text in (
        "the dog sleep.\n", "the dogs sleeps.\n", "dog sleeps.\n", "the dog.\n", "the dog sleeps\n", "the dog sleeps.",
        "", "the dog that see the cat sleeps.\n", "the dogs that the cat see sleep.\n", "the dog that sees.\n",
        "the dog that sees the cats sleep.\n", "the old small dog sleeps.\n",
    ):  # fmt: skip
        assert not grammar.is_sentence(text), text
    assert grammar.is_sentence("the dogs that the old cat that sees the birds hears sleep.\n")


def test_the_least_loss_is_the_surprise_of_a_character():
    random = np.random.default_rng(1)
    sentence, writer = "", grammar.Writer(random)
    while sentence != "the dogs sleep.\n":
        writer = grammar.Writer(random)
        sentence = writer.sentence()
    # several, no adjective, this noun of four, no clause, this verb of three
    assert np.exp(-writer.surprise) == pytest.approx(0.5 * 0.7 / 4 * 0.65 / 3)
    first, second = (grammar.make_language(seed, 2000).least_loss for seed in (0, 1))
    assert first == pytest.approx(second, rel=0.02)


def test_batches_are_of_sentences_of_similar_length():
    language = grammar.make_language(0, 300)
    batches = grammar.batches(language.learned)
    seen = []
    for inputs, targets in batches:
        assert inputs.shape == targets.shape and inputs.shape[0] <= grammar.BATCH
        for before, after in zip(inputs.numpy(), targets.numpy()):
            length = np.count_nonzero(after)
            assert before[0] == grammar.END == after[length - 1]
            assert (before[1:length] == after[: length - 1]).all()
            seen.append("".join(grammar.ALPHABET[number] for number in after[:length]))
    assert sorted(seen) == sorted(language.learned)
    assert len(batches) == sum(1 for _ in batches)


def test_it_learns_and_writes(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    model, history, language = grammar.train(epochs=2, samples=5, sentences=1500)
    assert language.least_loss < history["val_loss"][-1] < 0.7 * history["loss"][0]
    assert "epoch 2: loss" in capsys.readouterr().out
    speaker = grammar.Speaker(model)
    written = speaker.sentences(3)
    assert all(text.endswith("\n") or len(text) == grammar.LONGEST for text in written)
    assert grammar.Speaker.write.__get__(speaker).experimental_get_tracing_count() == 1
    grammar.draw(tmp_path / "grammar.png", model, history, language)
    assert (tmp_path / "grammar.png").read_bytes().startswith(b"\x89PNG")


def test_writing_is_what_the_model_computes():
    ag.random.set_seed(3)
    model = grammar.make_model(1)
    model.build((None, None))
    cold = "".join(grammar.Speaker(model).sentences(1, 1e-4))
    written = [grammar.ALPHABET.index(character) for character in cold]
    logits = np.asarray(model(ag.constant([[grammar.END, *written[:-1]]])))[0]
    # At this temperature noise decides only between characters that are nearly as likely.
    assert (logits[np.arange(len(written)), written] > logits.max(1) - 5e-3).all()
    assert grammar.END not in written[:-1]
