"""Turning what was published into learnings: window, extract, consolidate, keep."""
