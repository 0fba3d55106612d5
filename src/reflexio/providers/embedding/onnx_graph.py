"""The graph of all-MiniLM-L6-v2 as an ONNX model, written byte by byte: it needs no file and no `onnx` package.

The graph names the weights and leaves their values to the session that loads it. It does what `minilm` does, operation
by operation, from token ids to unit vectors.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reflexio.providers.embedding.minilm import HEADS, LAYERS, WIDTH

IR_VERSION, OPSET = 10, 20
"""The first operator set with the Gaussian error linear unit."""
FLOAT, INT8, INT64 = 1, 3, 7
WORDS = "words"
"""The word table: it alone stays packed, because a batch reads only the rows of its own words."""
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE, _INTS_ATTRIBUTE = 1, 2, 7
_EXTERNAL = 1
EPSILON = 1e-12

Shape = Sequence[int | str]
Attribute = float | int | Sequence[int]


def minilm_graph(weights: Mapping[str, tuple[int, ...]]) -> bytes:
    """The model, for weights of these shapes."""
    inputs: dict[str, tuple[int, Shape]] = {
        "ids": (INT64, ("texts", "tokens")),
        "places": (INT64, ("tokens",)),
        "mask": (FLOAT, ("texts", 1, 1, "tokens")),
        "present": (FLOAT, ("texts", 1, "tokens")),
    }
    graph = b"".join(
        [
            *(_field(1, node.encoded()) for node in _nodes()),
            _field(2, "all-MiniLM-L6-v2"),
            *(_field(5, _external(name, shape)) for name, shape in weights.items()),
            *(_field(5, constant) for constant in _constants()),
            *(_field(11, _tensor_type(name, *kind)) for name, kind in inputs.items()),
            _field(12, _tensor_type("vectors", FLOAT, ("texts", 1, WIDTH))),
        ]
    )
    return _field(1, IR_VERSION) + _field(8, _field(2, OPSET)) + _field(7, graph)


@dataclass(frozen=True)
class Node:
    """One operation: its inputs and outputs are names of values."""

    operation: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Attribute]

    def encoded(self) -> bytes:
        names = [_field(1, name) for name in self.inputs] + [_field(2, name) for name in self.outputs]
        attributes = [_field(5, _attribute(name, value)) for name, value in self.attributes.items()]
        return b"".join([*names, _field(4, self.operation), *attributes])


def _node(operation: str, inputs: str, outputs: str, **attributes: Attribute) -> Node:
    return Node(operation, inputs.split(), outputs.split(), attributes)


def _constants() -> Iterator[bytes]:
    yield _tensor("shape.flat", (-1, WIDTH))
    yield _tensor("shape.heads", (HEADS, WIDTH // HEADS))
    yield _tensor("shape.width", (WIDTH,))
    yield _tensor("sizes.attention", (WIDTH, WIDTH, WIDTH))
    yield _field(2, FLOAT) + _field(8, "scale") + _field(9, struct.pack("<f", (WIDTH / HEADS) ** -0.5))


def _nodes() -> Iterator[Node]:
    yield _node("Shape", "ids", "shape")
    yield _node("Concat", "shape shape.heads", "shape.by_head", axis=0)
    yield _node("Concat", "shape shape.width", "shape.by_text", axis=0)
    yield from _embedding()
    yield _node("Reshape", "embedded shape.flat", "flat")
    yield _norm("flat", "norm", "start")
    hidden = "start"
    for number in range(LAYERS):
        yield from _layer(str(number), hidden)
        hidden = f"{number}.hidden"
    yield _node("Reshape", f"{hidden} shape.by_text", "hidden")
    yield _node("MatMul", "present hidden", "sum")
    yield _node("LpNormalization", "sum", "vectors", axis=-1, p=2)


def _embedding() -> Iterator[Node]:
    yield _node("Gather", f"{WORDS} ids", "words.packed", axis=0)
    yield _node("Cast", "words.packed", "words.whole", to=FLOAT)
    yield _node("Gather", "words.scale ids", "words.scales", axis=0)
    yield _node("Mul", "words.whole words.scales", "words.unpacked")
    yield _node("Gather", "positions places", "positions.here", axis=0)
    yield _node("Add", "words.unpacked positions.here", "embedded")


def _layer(number: str, hidden: str) -> Iterator[Node]:
    yield from _attention(number, hidden)
    yield _dense(f"{number}.attended", f"{number}.gather", f"{number}.gathered")
    yield _node("Add", f"{hidden} {number}.gathered", f"{number}.middle.sum")
    yield _norm(f"{number}.middle.sum", f"{number}.gather.norm", f"{number}.middle")
    yield _dense(f"{number}.middle", f"{number}.widen", f"{number}.wide")
    yield _node("Gelu", f"{number}.wide", f"{number}.active")
    yield _dense(f"{number}.active", f"{number}.narrow", f"{number}.narrowed")
    yield _node("Add", f"{number}.middle {number}.narrowed", f"{number}.sum")
    yield _norm(f"{number}.sum", f"{number}.narrow.norm", f"{number}.hidden")


def _attention(number: str, hidden: str) -> Iterator[Node]:
    yield _dense(hidden, f"{number}.attend", f"{number}.all")
    yield _node("Split", f"{number}.all sizes.attention", f"{number}.query {number}.key {number}.value", axis=-1)
    for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3))):
        yield _node("Reshape", f"{number}.{part} shape.by_head", f"{number}.{part}.by_head")
        yield _node("Transpose", f"{number}.{part}.by_head", f"{number}.{part}.ordered", perm=order)
    yield _node("MatMul", f"{number}.query.ordered {number}.key.ordered", f"{number}.products")
    yield _node("Mul", f"{number}.products scale", f"{number}.scaled")
    yield _node("Add", f"{number}.scaled mask", f"{number}.scores")
    yield _node("Softmax", f"{number}.scores", f"{number}.shares", axis=-1)
    yield _node("MatMul", f"{number}.shares {number}.value.ordered", f"{number}.by_head")
    yield _node("Transpose", f"{number}.by_head", f"{number}.by_token", perm=(0, 2, 1, 3))
    yield _node("Reshape", f"{number}.by_token shape.flat", f"{number}.attended")


def _dense(source: str, name: str, target: str) -> Node:
    return _node("Gemm", f"{source} {name}.weight {name}.bias", target, transB=1)


def _norm(source: str, name: str, target: str) -> Node:
    return _node("LayerNormalization", f"{source} {name}.gain {name}.bias", target, axis=-1, epsilon=EPSILON)


# The encoding of Protocol Buffers, as far as a graph needs it. Field numbers are those of onnx.proto.


def _field(number: int, value: bytes | str | int | float) -> bytes:
    match value:
        case float():
            return _varint(number << 3 | 5) + struct.pack("<f", value)
        case int():
            return _varint(number << 3) + _varint(value & (1 << 64) - 1)
        case _:
            content = value.encode() if isinstance(value, str) else value
            return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _attribute(name: str, value: Attribute) -> bytes:
    match value:
        case float():
            return _field(1, name) + _field(2, value) + _field(20, _FLOAT_ATTRIBUTE)
        case int():
            return _field(1, name) + _field(3, value) + _field(20, _INT_ATTRIBUTE)
        case _:
            return _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, _INTS_ATTRIBUTE)


def _tensor(name: str, numbers: Sequence[int]) -> bytes:
    return (
        _field(1, len(numbers))
        + _field(2, INT64)
        + _field(8, name)
        + _field(9, struct.pack(f"<{len(numbers)}q", *numbers))
    )


def _external(name: str, shape: Sequence[int]) -> bytes:
    """A weight whose values the session gets from elsewhere; the location is never opened."""
    sizes = b"".join(_field(1, size) for size in shape)
    location = _field(1, "location") + _field(2, "weights.npz")
    kind = INT8 if name == WORDS else FLOAT
    return sizes + _field(2, kind) + _field(8, name) + _field(13, location) + _field(14, _EXTERNAL)


def _tensor_type(name: str, kind: int, shape: Shape) -> bytes:
    sizes = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))
