"""Training: the one loop that fits gaps and plain models, and what it is made of."""

from intervalnn.training.loop import Learner, fit

__all__ = ["Learner", "fit"]
