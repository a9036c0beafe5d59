"""Graphs in files: a documented form of the IR (docs/formats.md), read with everything checked."""
