"""From published turns to profiles and user playbooks: window, extract, consolidate, keep.

Also reruns, manual runs, upgrades and edits of learnings. What many users taught is joined in `aggregation`.
"""
