"""Finding rows by words and by vectors; all that differs between databases lives here."""
