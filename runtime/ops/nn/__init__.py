"""Functions of neural networks and of images: convolution, pooling, activations, losses, morphology."""
