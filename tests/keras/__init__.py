"""Keras' own tests on this project: `python -m tests.keras`."""
