"""Loading modules in less time: what only some processes need is left for later."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel


@contextmanager
def loading() -> Iterator[None]:
    """What is loaded in here stays: to look for garbage in it, now and later, would cost a fifth of the time.

    Models are built when they are first used. Ours say so themselves; FastAPI has forty for its document alone.
    """
    gc.disable()
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        BaseModel.model_config.pop("defer_build", None)
        gc.freeze()
        gc.enable()
