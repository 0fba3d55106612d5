"""Learning inside one run: an attempt, what was wrong with it, and a lesson for the next one."""
