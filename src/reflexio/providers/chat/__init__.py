"""Chat models of providers, through pydantic-ai.

`resolve` is cheap to import. The other modules import pydantic-ai: import them late. Prompts live in `learners`.
"""
