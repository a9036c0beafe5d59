"""`ag.distribute.experimental`: how workers talk, and what a strategy tells functions that make values."""

from autograph.distribute.options import CommunicationImplementation, CommunicationOptions
from autograph.distribute.strategy import ValueContext

__all__ = ["CommunicationImplementation", "CommunicationOptions", "ValueContext"]
