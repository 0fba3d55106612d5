"""Rules about English words: stems, the words that carry meaning, and whether two texts contradict each other.

Pure functions of text that import nothing of reflexio. The words are in `words.toml`. What a contradiction leads to is
decided by the callers.
"""
