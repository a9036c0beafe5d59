"""Extension types: classes of values made of tensors, which users declare."""
