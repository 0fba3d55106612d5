"""Generators and checks that `make` runs."""
