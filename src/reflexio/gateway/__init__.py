"""OpenAI-compatible pass-through: a call to a model gets the context of its user on the way, and is published after it.

`prompt` reads and changes requests, `answer` reads answers, `upstream` calls the model server, `relay` is one call from
its beginning to its end.
"""
