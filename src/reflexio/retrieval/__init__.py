"""Finding learnings and turns for a message: search by words and vectors, fusion, and the context for a prompt.

Also the embedding of rows that have no vector yet. Learnings are written elsewhere, in `learning` and `aggregation`.
"""
