"""Frozen values, wire and domain. Old names and shapes are translated here and nowhere else."""
