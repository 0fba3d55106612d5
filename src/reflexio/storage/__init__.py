"""The database: one schema and one set of statements, behind the protocols of `reflexio.ports.storage`.

`tables/` holds the statements, `fulltext/` and `vectors/` the two kinds of search, `sqlite.py` what only SQLite needs.
Ranking, thresholds and merging are decided in the features, not here.
"""
