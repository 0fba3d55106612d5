"""Embedders behind one port: a model that ships in the package, and OpenAI-compatible endpoints.

`resolve` is cheap to import and loads only the named embedder. Which texts are embedded, and when, is decided above.
"""
