"""Models and embedders of others, behind our ports."""
