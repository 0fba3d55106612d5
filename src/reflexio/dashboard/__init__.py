"""Server-rendered pages. Empty until the first page moves in."""
