"""The learner that asks a language model: prompts, the shapes of its answers, and how they are read."""
