"""Turning what was published into learnings. Empty until the learner moves in."""
