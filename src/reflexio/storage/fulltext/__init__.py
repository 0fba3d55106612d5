"""Search by words: how texts become terms, where terms are stored, and the rows that score best by BM25.

Which rows pass a filter is decided by the caller; how words and vectors are combined, by `reflexio.retrieval`.
"""
