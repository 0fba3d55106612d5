"""Search by vectors, in process: the index, and the cache that keeps one index for each organisation and kind of row.

The stored vectors and the backlog of rows without one are in `reflexio.storage.tables.embeddings`.
"""
