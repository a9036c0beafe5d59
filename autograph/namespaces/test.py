"""`ag.test`: checking gradients against finite differences, and waiting for devices."""

from autograph.namespaces import test_experimental as experimental
from runtime.autodiff.checking import GradientReport, check_gradients, compute_gradient, max_error

__all__ = ["GradientReport", "check_gradients", "compute_gradient", "experimental", "max_error"]
