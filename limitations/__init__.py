"""The database of what is known not to work, per primitive."""

from limitations.limitation import Limitation, Looser, all_limitations, limitations_of

__all__ = ["Limitation", "Looser", "all_limitations", "limitations_of"]
