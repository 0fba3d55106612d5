"""Embedders behind one port: one that ships in the package, OpenAI-compatible endpoints, a scripted twin."""
