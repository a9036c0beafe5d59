"""`ag.autodiff`: forward-mode differentiation."""

from runtime.autodiff.forward import ForwardAccumulator

__all__ = ["ForwardAccumulator"]
