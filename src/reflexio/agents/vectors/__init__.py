"""Stores of embedded texts: one in memory, one in PostgreSQL, with filters of one meaning."""
