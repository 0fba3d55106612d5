"""Implementations of the learner port: with a language model, and without any."""
