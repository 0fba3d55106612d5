"""Chat models by name: any that pydantic-ai speaks to, and a scripted twin."""
