"""HTTP routes: each parses, calls its verb and answers."""
