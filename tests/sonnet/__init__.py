"""Sonnet's own tests on this project: `python -m tests.sonnet`."""
