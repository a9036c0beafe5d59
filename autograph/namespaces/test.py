"""`ag.test`: checking gradients against finite differences."""

from runtime.autodiff.checking import GradientReport, check_gradients, compute_gradient, max_error

__all__ = ["GradientReport", "check_gradients", "compute_gradient", "max_error"]
