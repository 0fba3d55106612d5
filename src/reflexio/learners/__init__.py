"""Implementations of the learner port. Empty until the first one moves in."""
