"""Datasets: sequences of elements that are made as a loop asks for them."""
