# SPDX-License-Identifier: Apache-2.0
"""`scan`: call a function that carries a value from element to element."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property, partial
from math import prod
from typing import Any, Self

import numpy as np

from distinput.arrow.adopt import adopt, kept
from distinput.columns.block import Block, Failure, failed
from distinput.columns.rows import Stream
from distinput.columns.state import Mark, State
from distinput.errors import StateError
from distinput.functions.chain import Refills
from distinput.functions.claim import Claim, MadeBlock, behind, between, formed, held, unlike
from distinput.functions.inference import infer
from distinput.names.lazy import dataclass
from distinput.names.words import shown
from distinput.plan.binding import take_functions
from distinput.plan.node import Node
from distinput.run.run import MOST_CALLS, Run, applied
from distinput.values.leaves import as_eager_leaf, as_leaf, dtype_code, dtype_of
from distinput.values.nest import structure_of
from distinput.values.spec import Spec
from distinput.values.spec_json import MalformedJson, items_of, member, of_kind


class Carry:
    """A value that a user function receives and returns; structure and dtypes must not change.

    Args:
      op: the op's name, for messages.
      initial: the first value, any nest.
    """

    def __init__(self, op: str, initial: Any) -> None:
        self.op = op
        initial = adopt(initial)
        self.structure = structure_of(initial)
        leaves = [as_eager_leaf(leaf) for leaf in self.structure.flatten(initial)]
        if any(getattr(leaf, "nest_leaf", False) for leaf in leaves):
            raise TypeError(f"{op}: the carried value must be a nest of arrays, got {initial!r}")
        self.dtypes = [dtype_of(leaf) for leaf in leaves]
        self.initial = kept(self.structure.build(leaves))  # a function may write to the first value, as to later ones

    def checked(self, value: Any) -> Any:
        """`value` as the next carried value.

        Raises:
          TypeError: its structure or a dtype differs from that of the initial value.
        """
        if type(value) is list and not self.structure.is_leaf:
            value = tuple(value)
        value = adopt(value)
        structure = structure_of(value)
        if structure != self.structure:
            raise TypeError(f"{self.op}: the carried value must keep its structure {self.structure}, got {structure}")
        leaves = [as_leaf(leaf) for leaf in structure.flatten(value)]
        for leaf, dtype, path in zip(leaves, self.dtypes, structure.paths, strict=True):
            if dtype_of(leaf) != dtype:
                raise TypeError(
                    f"{self.op}: the carried value{path} must keep its dtype {dtype}, got {dtype_of(leaf)}; give the initial "
                    "value that dtype, for example np.int64(0)"
                )
        return self.structure.build(leaves)


@dataclass(frozen=True, eq=False)
class Scan(Node):
    """Call `scan_func(state, element)` on every element; it returns the next state and an output.

    Shapes: those of the outputs. Order: unchanged. State: the carried value, and where the next element stands.

    Args:
      initial_state: the first value of the state, any nest; a list becomes an array.
      scan_func: (state, element) -> (state, output); a tuple element is one argument. A list in its result becomes an array.

    Raises:
      TypeError: at iteration, the state changes its structure or a dtype.
      StateError: at iteration, a restored value of another shape gives outputs that are unlike the others.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.data.Dataset.range(4).scan(np.int64(0), lambda s, x: (s + x, s + x)).to_list()
    [0, 1, 3, 6]

    Source: `tf.data.Dataset.scan`.
    """

    tolerant = same_count = True
    input: Node
    initial_state: Any
    scan_func: Callable[..., Any]
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        take_functions(self, "scan", "scan_func")
        self.carry  # noqa: B018 - checked now

    def added(self) -> Self:
        first = self.input.first_in_memory
        if first is not None:
            self._check(*first)
        return self

    @cached_property
    def carry(self) -> Carry:
        """The rule of the carried value."""
        return Carry("scan", self.initial_state)

    def _check(self, element: Any) -> None:
        """Refuse a function that does not return (state, output) for the first element, or changes the kind of the state."""
        initial = self.carry.initial
        carried = decode_value(encode_value(initial), initial)  # a copy, which the function may change
        try:
            result = self.scan_func(carried, element)
        except Exception:  # noqa: BLE001 - an error of the function belongs to the iteration
            return
        self._parts(result)

    def _step(self, carried: Any, element: Any) -> tuple[Any, Any]:
        return self._parts(self.scan_func(carried, element))

    def _parts(self, result: Any) -> tuple[Any, Any]:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"scan: scan_func must return (state, output), got {result!r}")
        output = as_leaf(result[1]) if type(result[1]) is list else result[1]
        return self.carry.checked(result[0]), output

    @cached_property
    def spec(self) -> Spec:
        return self.claim.asked("scan", self._inferred)

    def _inferred(self) -> Spec:
        carried = kept(self.carry.initial)

        def output(element: Any) -> Any:
            nonlocal carried  # so that outputs that grow with the state are seen to grow
            carried, made = self._step(carried, element)
            return made

        return infer("scan", output, self.input, self.scan_func)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "carry": encode_value(self.carry.initial)}

    def stream(self, state: State, run: Run) -> Stream:
        self.decide(run)
        carried, doubts = self._taken_up(state["carry"])
        made, note = self._made(state, run, carried, doubts), partial(run.annotate, where=self.where)
        refused = partial(_doubted, doubts)
        return held("scan", made, self.claim, None, lambda: self.spec, note, tolerant=run.tolerant, refused=refused)

    def _taken_up(self, coded: list[Any]) -> tuple[Any, list[str]]:
        """The carried value in a state; and what is odd about it, until the first element is made: it may have grown so."""
        initial = self.carry.initial
        carried = decode_value(coded, initial)
        shapes = [[np.shape(leaf) for leaf in self.carry.structure.flatten(value)] for value in (carried, initial)]
        odd = [
            f"has shape {list(a)}, where the initial one has {list(b)}" for a, b in zip(*shapes, strict=True) if a != b
        ]
        return carried, odd

    def _made(self, state: State, run: Run, carried: Any, doubts: list[str]) -> Iterator[MadeBlock]:
        after: list[Any] = []  # the carried value after each element of the current block

        def step(element: Any) -> Any:
            nonlocal carried
            carried, output = self._step(carried, element)
            after.append(kept(carried))  # the function may write to what it is given next
            return output

        def results(rows: Block) -> Iterator[Any]:
            return map(refills.owned, map(step, rows.elements()))

        def carrying(at: Callable[[int], Mark], first: int, values: list[Any]) -> Callable[[int], Mark]:
            return lambda done: {**at(done), "carry": encode_value(values[first + done])}

        before: Mark = {"input": state["input"], "skip": state["skip"]}
        upstream = self.input.open(state["input"], run)
        begin, refills = kept(carried), Refills("scan", (self.scan_func,), each=False)
        for made, rows, first, mark in applied(
            upstream, state, results, run.at_once(MOST_CALLS), tolerant=run.tolerant
        ):
            refills.check()
            values = [begin, *after]
            if type(rows) is Failure:
                yield rows, carrying(between(before, mark, 0), 0, [carried]), rows
            else:
                at = between(before, mark, len(made))
                for block, place, end in formed(made):
                    if isinstance(block, Block):
                        given = rows.rows(first + place, first + end)
                        yield block, carrying(behind(at, place), place, values), given
                    else:
                        failure = failed(block, tolerant=run.tolerant)
                        yield failure, carrying(behind(at, end), end, values), rows.rows(0, 0)
            before, begin = mark, kept(carried)
            after.clear()
            doubts.clear()


def _doubted(doubts: list[str], *given: Any, signed: bool) -> Exception:
    error = unlike(*given, signed=signed)
    if not doubts:
        return error
    return StateError(
        f"scan: the state is damaged, or of another pipeline: the carried value in it {doubts[0]}, and an element fails "
        f"with it: {error}"
    )


def encode_value(value: Any) -> Any:
    """A nest of arrays, scalars and bytes as JSON."""
    return [_encode_leaf(leaf) for leaf in structure_of(value).flatten(value)]


def decode_value(coded: list[Any], like: Any) -> Any:
    """The nest that `encode_value` was given; `like` is a nest of the same structure.

    Raises:
      StateError: that was not given by it.
    """
    structure = structure_of(like)
    try:
        leaves = [_decode_leaf(leaf) for leaf in items_of(coded, "it", len(structure.paths))]
        for leaf, wanted in zip(leaves, structure.flatten(like), strict=True):
            if _kind(leaf) != _kind(wanted):
                raise MalformedJson(f"a leaf is {_kind(leaf)}, expected {_kind(wanted)}")
    except MalformedJson as error:
        raise StateError(f"scan: the carried value in the state is damaged: {error}") from error
    return structure.build(leaves)


def _kind(leaf: Any) -> str:
    dtype = np.asarray(leaf).dtype
    return "text" if dtype.kind in "OSU" else str(dtype)


def _encode_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return {"bytes": _text(leaf)}
    array = np.asarray(leaf)
    if array.dtype.kind == "O":
        return {"strings": [_text(item) for item in array.reshape(-1).tolist()], "shape": list(array.shape)}
    return {"dtype": dtype_code(array.dtype), "shape": list(array.shape), "data": _text(array.tobytes())}


def _text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _decode_leaf(coded: Any) -> Any:
    if "bytes" in of_kind(coded, "a leaf", dict):
        return _bytes(coded["bytes"])
    shape = member(coded, "shape", list)
    if any(type(size) is not int or not 0 <= size < 1 << 62 for size in shape):
        raise MalformedJson(f"no shape: {shown(shape)}")
    if "strings" in coded:
        items = [_bytes(item) for item in member(coded, "strings", list)]
        if len(items) != prod(shape):
            raise MalformedJson(f"{len(items)} texts for an array {shape}")
        return np.array(items, object).reshape(shape)
    dtype, raw = _dtype(member(coded, "dtype", str)), _bytes(member(coded, "data"))
    if len(raw) != dtype.itemsize * prod(shape):
        raise MalformedJson(f"{len(raw)} bytes for an array {dtype}{shape}")
    data = np.frombuffer(raw, dtype, prod(shape)).reshape(shape).copy() if raw else np.empty(shape, dtype)
    return data if data.ndim else data[()]


def _bytes(coded: Any) -> bytes:
    """Bytes that `_text` was given."""
    try:
        return a2b_base64(of_kind(coded, "a leaf of bytes", str))
    except ValueError as error:  # of binascii
        raise MalformedJson(f"no base64: {error}") from error


def _dtype(code: str) -> np.dtype[Any]:
    try:
        made = np.dtype(code)
    except (TypeError, ValueError, SyntaxError) as error:  # of NumPy
        raise MalformedJson(f"{code!r:.60} is not a dtype") from error
    if made.hasobject:
        raise MalformedJson(f"{code!r:.60} is not a dtype of values")
    return made
