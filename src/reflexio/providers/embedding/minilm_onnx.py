"""The forward pass of all-MiniLM-L6-v2 in onnxruntime: the vectors of `minilm` in half of its processor time.

The weights are those in the package, and the graph is made when it is loaded. The interpreter lock is free during the
whole pass, so a query does not wait for a busy thread at each product.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reflexio.providers.embedding.minilm import Arrays, Floats, pad, unpacked_weight
from reflexio.providers.embedding.onnx_graph import WORDS, minilm_graph

ERRORS_ONLY = 3


class OnnxMiniLM:
    """Batches of token ids in, unit vectors out. Raises ImportError where onnxruntime is not installed."""

    runtime = "onnxruntime"

    def __init__(self, arrays: Arrays) -> None:
        import onnxruntime  # type: ignore[import-untyped,unused-ignore]

        onnxruntime.set_default_logger_severity(ERRORS_ONLY)
        weights = _weights(arrays)
        options = _options(onnxruntime)
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(weight) for weight in weights.values()]
        options.add_external_initializers(list(weights), values)
        graph = minilm_graph({name: weight.shape for name, weight in weights.items()})
        # The session copies what it was handed, in the order in which it reads it.
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(path) as arrays:
            model = cls(dict(arrays))
        _return_free_memory()
        return model

    def vectors(self, batch: Sequence[Sequence[int]]) -> Floats:
        """One row for each list of ids, as `MiniLM.vectors`."""
        ids, present, mask = pad(batch)
        # Words are looked up in the graph: numpy would give the interpreter lock away at each of its steps.
        shares = present.astype(np.float32)[:, None]
        inputs = {"ids": ids, "places": np.arange(ids.shape[1]), "mask": mask, "present": shares}
        (vectors,) = self._session.run(None, inputs)
        rows: Floats = vectors[:, 0]
        return rows


def _weights(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """All but the word table in single precision; the scales of the table are weights too."""
    names = [name for name in arrays if name == f"{WORDS}.scale" or not name.endswith(".scale")]
    return {name: unpacked_weight(arrays, name) if name.endswith(".weight") else arrays[name] for name in names}


def _options(onnxruntime: Any) -> Any:
    options = onnxruntime.SessionOptions()
    # Two threads for one query are hardly faster than one, and those that wait by spinning slow everything else.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # What a long text needed would otherwise be kept for ever.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = ERRORS_ONLY
    return options


def _return_free_memory() -> None:
    """Gives the memory that loading needed back to the system, 40 MB; glibc would keep it."""
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
