"""The forward pass of all-MiniLM-L6-v2 in plain numpy: six BERT layers, mean pooling, unit length.

Layer weights are unpacked to float32 once. The word table, half of the model, stays int8: a batch reads only
the rows of its own words.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

LAYERS, HEADS, WIDTH = 6, 12, 384
PANEL = 128
MASKED = np.float32(-1e9)

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]  # as scripts/pack_minilm.py names them: int8 weights, float32 the rest


class LayerNorm(NamedTuple):
    """Layer normalisation, in place."""

    gain: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        x -= x.mean(axis=-1, keepdims=True)
        x *= 1 / np.sqrt(np.einsum("ij,ij->i", x, x) / WIDTH + 1e-12)[:, None]
        x *= self.gain
        x += self.bias
        return x


class Dense(NamedTuple):
    """A linear layer. Its weight is cut into panels of `WIDTH` inputs by `PANEL` outputs.

    The product of a query's few tokens and one panel is so small that OpenBLAS does not repack the weights:
    a query takes two thirds of the time of whole products, and batches lose nothing.
    """

    panels: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        y = _multiply_panels(x[:, :WIDTH], self.panels[0])
        for number in range(1, len(self.panels)):
            y += _multiply_panels(x[:, number * WIDTH : (number + 1) * WIDTH], self.panels[number])
        y += self.bias
        return y


class Layer(NamedTuple):
    """One transformer layer: attention over the tokens of each text, then a wide hidden layer."""

    attention_in: Dense
    attention_out: Dense
    attention_norm: LayerNorm
    hidden: Dense
    output: Dense
    output_norm: LayerNorm

    def __call__(self, x: Floats, mask: Floats) -> Floats:
        x = self.attention_norm(x + self.attention_out(self._attention(x, mask)))
        return self.output_norm(x + self.output(_gelu(self.hidden(x))))

    def _attention(self, x: Floats, mask: Floats) -> Floats:
        count, length = mask.shape[0], mask.shape[-1]
        heads = self.attention_in(x).reshape(count, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.transpose(2, 0, 3, 1, 4)
        scores = (query * np.float32((WIDTH / HEADS) ** -0.5)) @ key.swapaxes(-1, -2)
        scores += mask
        attended: Floats = _softmax(scores) @ value
        return attended.swapaxes(1, 2).reshape(count * length, WIDTH)


class MiniLM:
    """Batches of token ids in, unit vectors out."""

    runtime = "numpy"

    def __init__(self, arrays: Arrays) -> None:
        self._words, self._scale = arrays["words"], arrays["words.scale"]
        self._positions = arrays["positions"]
        self._norm = LayerNorm(arrays["norm.gain"], arrays["norm.bias"])
        buffers = _weight_buffers(arrays)
        self._layers = [_layer(arrays, str(number), buffers) for number in range(LAYERS)]

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(path) as arrays:
            return cls(dict(arrays))

    def vectors(self, batch: Sequence[Sequence[int]]) -> Floats:
        """One row for each list of ids. Shorter lists are padded and masked, so pass lists of similar length."""
        ids, present, mask = pad(batch)
        x = self._norm((self._words[ids] * self._scale[ids] + self._positions[: ids.shape[1]]).reshape(-1, WIDTH))
        for layer in self._layers:
            x = layer(x, mask)
        pooled: Floats = np.einsum("ijk,ij->ik", x.reshape(*ids.shape, WIDTH), present.astype(np.float32))
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        return pooled


def pad(batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.bool_], Floats]:
    """The ids of a batch in one array, which of them are present, and what keeps attention from the others."""
    lengths = np.array([len(ids) for ids in batch])
    present = np.arange(lengths.max()) < lengths[:, None]
    ids: NDArray[np.int64] = np.zeros(present.shape, np.int64)
    ids[present] = np.concatenate([np.asarray(row) for row in batch])
    return ids, present, np.where(present, np.float32(0), MASKED)[:, None, None, :]


def unpacked_weight(arrays: Arrays, name: str) -> Floats:
    """A weight in single precision: one row for each output."""
    packed, scale = arrays[name], arrays[f"{name}.scale"]
    weight: Floats = (packed.reshape(*scale.shape, -1) * scale[:, :, None]).reshape(packed.shape)
    return weight


def _weight_buffers(arrays: Arrays) -> dict[str, Floats]:
    """Buffers for the unpacked weights, in one allocation: a query reads all of it, and numpy asks for huge pages only
    for large allocations. A query takes 8 % less time that way."""
    sizes = {name: weight.size for name, weight in arrays.items() if name.endswith(".weight")}
    ends = np.cumsum(list(sizes.values()))
    return dict(zip(sizes, np.split(np.empty(ends[-1], np.float32), ends[:-1]), strict=True))


def _layer(arrays: Arrays, number: str, buffers: Mapping[str, Floats]) -> Layer:
    def dense(name: str) -> Dense:
        key = f"{number}.{name}.weight"
        weight = unpacked_weight(arrays, key)
        panels = weight.reshape(len(weight) // PANEL, PANEL, -1, WIDTH).transpose(2, 0, 3, 1)
        buffer = buffers[key].reshape(panels.shape)
        buffer[...] = panels
        return Dense(buffer, arrays[f"{number}.{name}.bias"])

    def norm(name: str) -> LayerNorm:
        return LayerNorm(arrays[f"{number}.{name}.norm.gain"], arrays[f"{number}.{name}.norm.bias"])

    return Layer(dense("attend"), dense("gather"), norm("gather"), dense("widen"), dense("narrow"), norm("narrow"))


def _multiply_panels(x: Floats, panels: Floats) -> Floats:
    y = np.empty((len(x), len(panels) * PANEL), np.float32)
    np.matmul(x, panels, out=y.reshape(len(x), len(panels), PANEL).swapaxes(0, 1))
    return y


def _softmax(scores: Floats) -> Floats:
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def _gelu(x: Floats) -> Floats:
    """The Gaussian error linear unit, approximated by tanh to within 3e-5 everywhere."""
    square = np.minimum(x * x, np.float32(40))
    inner: Floats = square * np.float32(-3.51519453e-04)
    inner += np.float32(3.70056565e-02)
    inner *= square
    inner += np.float32(7.97507875e-01)
    inner *= x
    np.tanh(inner, out=inner)
    inner += 1
    inner *= x
    inner *= np.float32(0.5)
    return inner
