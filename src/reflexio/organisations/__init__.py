"""What belongs to an organisation as a whole: its configuration, its API keys, its usage and storage statistics.

Its learnings and conversations live in the features above.
"""
