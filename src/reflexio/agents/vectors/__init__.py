"""Stores of embedded texts: the `VectorStore` protocol and its filters (`store.py`), embedders (`embedding.py`), and
two implementations, in memory and in PostgreSQL. What lessons do with them is in `lessons/`.
"""
