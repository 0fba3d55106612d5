"""Durable execution. Empty until the first workflow moves in."""
