"""Finding the right learnings and handing them over ready to inject."""
