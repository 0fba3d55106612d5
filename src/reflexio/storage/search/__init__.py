"""The import path that migration 0001 uses. It is frozen; search itself lives in `fulltext/` and `vectors/`."""
