"""The learner that needs no model: rules, and an embedder where meaning decides."""
