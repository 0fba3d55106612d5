"""One schema and one set of statements for every database."""
