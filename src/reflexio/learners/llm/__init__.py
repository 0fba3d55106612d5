"""The learner and the critic that ask a language model: prompts, schemas of the answers, and how they are read.

The connection to a model is in `reflexio.providers.chat`; the texts of the prompts are in `prompts/`.
"""
