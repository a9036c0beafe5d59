"""Strings: the rows behind `ag.strings`, hashes, how tensors are printed, text with values that only a run knows."""
