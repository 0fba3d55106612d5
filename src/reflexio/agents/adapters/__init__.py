"""Agents of other frameworks as callables for `reflexion()`. Each file needs its framework and nothing else."""
