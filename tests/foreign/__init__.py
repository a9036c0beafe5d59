"""Test suites of libraries written for TensorFlow, run on this project: what `tests.keras` and `tests.sonnet` share."""
