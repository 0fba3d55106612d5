"""Learning inside one run. Empty until the loop moves in."""
