"""Durable execution of the workflows that wiring registers, and an in-process twin."""
