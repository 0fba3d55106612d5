"""HTTP: parse, authorise, call the verb."""
