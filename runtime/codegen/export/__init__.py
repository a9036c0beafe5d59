"""Kernels as C libraries: an object file with C functions, its header, and a program that calls them."""

from __future__ import annotations
