"""The file of an in-memory vector store: what is in it, and what an error about it says.

The key `told` is part of the file format.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from reflexio.errors import InvalidRequest

FORMAT = 1

Vectors = NDArray[np.float32]


def write_store(path: Path, header: dict[str, Any], vectors: Vectors) -> None:
    """Writes the file atomically, replacing an existing one."""
    text = np.frombuffer(json.dumps({"format": FORMAT, **header}).encode(), np.uint8)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with temporary.open("wb") as file:
            np.savez(file, told=text, vectors=vectors)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InvalidRequest(
            f"The vector store cannot be saved to {str(path)!r}: {_reason(error)}. Give a file in an existing folder "
            "that this process may write to."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def read_store(path: Path) -> tuple[str, list[tuple[str, str, dict[str, Any]]], Vectors]:
    """The embedder's name; ids, texts and metadata; and the vectors."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            header = json.loads(file["told"].tobytes())
            if header["format"] != FORMAT:
                raise InvalidRequest(
                    f"The vector store {str(path)!r} was saved in a format that this version does not know. "
                    "Load it with the version that saved it."
                )
            rows = [(chunk_id, content, metadata) for chunk_id, content, metadata in header["rows"]]
            return header["embedder"], rows, np.asarray(file["vectors"], np.float32)
    except FileNotFoundError as error:
        raise InvalidRequest(
            f"There is no saved vector store at {str(path)!r}; `await store.save(path)` writes one. To begin with "
            "nothing, create an empty InMemoryVectorStore()."
        ) from error
    except OSError as error:
        raise InvalidRequest(
            f"The saved vector store {str(path)!r} cannot be read: {_reason(error)}. Give a file that this process "
            "may read."
        ) from error
    except (TypeError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InvalidRequest(
            f"{str(path)!r} is no saved vector store; give a file that `InMemoryVectorStore.save` wrote. ({error})"
        ) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
