"""Ragged tensors: rows of different lengths, kept as one tensor of values and the places where rows begin and end."""
