"""Summaries: what programs write for TensorBoard while they run (`ag.summary`)."""
