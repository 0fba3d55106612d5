"""Durable execution of the registered workflows: the engine, its steps, the lock that keeps other processes out.

The journal of a database lives in `storage`; what the workflows do is decided by the features.
"""
