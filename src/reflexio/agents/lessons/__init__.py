"""Stores of lessons: in this process, in any store of vectors, and on a Reflexio server."""
