"""Measurements, run by `make bench`. Figures, not tests: nothing here fails because a machine is slow."""
