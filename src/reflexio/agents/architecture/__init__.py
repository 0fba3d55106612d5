"""How an agent goes about a task: architectures that the `Agent` runs, one inside the other if wanted."""
