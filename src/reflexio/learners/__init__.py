"""Implementations of the learner port: `llm` asks a language model, `local` needs none.

When they are called, and what is done with their results, is decided in `reflexio.learning`.
"""
