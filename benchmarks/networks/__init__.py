"""Parts of neural networks, forward and backward."""
