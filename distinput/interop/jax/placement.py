# SPDX-License-Identifier: Apache-2.0
"""Puts the pieces of a batch that this process has read on its devices, as parts of global arrays."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from distinput.distribute.core.values import PerReplica
from distinput.distribute.tpu.mesh import as_device_array
from distinput.plan.batch_sizes import Assignment
from distinput.values.buffers import ALIGNMENT, FEWEST_BYTES, aligned, empty
from distinput.values.nest import component
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import Spec, TensorSpec

__all__ = [
    "Placement",
    "RowPieces",
    "device_rows",
    "flat_arrays",
    "pieces_of",
    "put_pieces",
    "replicated",
    "row_sharding",
    "spans_processes",
]


# ----------------------------------------------------------------------------
# Which rows of a global batch the devices of this process hold, according to shardings, and the pieces that contain them.
# ----------------------------------------------------------------------------


RowSpan = tuple[int, int]


def device_rows(sharding: Any, shape: Sequence[int | None], who: str) -> dict[Any, RowSpan]:
    """The rows that each device of this process holds of an array: first and stop.

    Args:
      sharding: a `jax.sharding.Sharding`.
      shape: of the global array, `[rows, ...]`; None for inner dimensions that are not known.
      who: whose array it is, for messages.

    Raises:
      ValueError: the rows cannot be divided as the sharding says.
    """
    rows = shape[0]
    assert rows is not None, "the caller knows the batch size"
    # An inner dimension that is not known says nothing about rows; any size that all axes divide will do.
    known = (rows, *[len(sharding.device_set) if size is None else size for size in shape[1:]])
    try:
        places = sharding.addressable_devices_indices_map(known)
    except (IndexError, ValueError) as error:
        raise ValueError(
            f"{who}, of shape {list(shape)}, cannot be divided as its sharding says ({error}); choose a batch size that the "
            "number of shards divides, and give a nest of shardings if components need different ones"
        ) from error
    return {device: place[0].indices(rows)[:2] if place else (0, rows) for device, place in places.items()}


def spans_processes(shardings: Iterable[Any], count: int, who: str) -> bool:
    """True if arrays lie on the devices of all `count` processes, False if on those of this process alone.

    Raises:
      ValueError: some lie on the devices of several processes, but not of all.
    """
    apart = [sharding for sharding in shardings if not sharding.is_fully_addressable]
    for sharding in apart:
        there = {device.process_index for device in sharding.device_set}
        if len(there) < count:
            raise ValueError(
                f"{who}: the devices of a sharding must be those of one process or of all {count}, got those of processes "
                f"{sorted(there)}; make a mesh of jax.devices() or of jax.local_devices()"
            )
    return bool(apart)


@dataclass(frozen=True)
class RowPieces:
    """The pieces of each global batch that this process reads.

    Args:
      rows: the rows of a global batch.
      assignment: the number of pieces, all of one size, and which of them are this process's.
    """

    rows: int
    assignment: Assignment

    @property
    def size(self) -> int:
        """The rows of a piece."""
        return self.rows // self.assignment.pieces

    @property
    def count(self) -> int:
        """How many pieces this process reads of each batch."""
        each = self.assignment.each
        assert each is not None, "of every batch"
        return each

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each of them."""
        return tuple([int(number) * self.size for number in self.assignment.numbers(0, self.count)])


def pieces_of(ranges: Iterable[RowSpan], rows: int) -> RowPieces:
    """Divide a batch into the fewest equal pieces, some of which make up exactly these ranges of rows.

    The pieces of a process must be consecutive, or at equal distances throughout the batch; otherwise all pieces between the
    first and the last needed one are read.

    Args:
      ranges: first and stop, in any order; they may overlap.
      rows: the rows of a batch.

    >>> pieces_of([(4, 6), (6, 8)], 8).starts
    (4,)
    >>> pieces_of([(0, 2), (4, 6)], 8).starts
    (0, 4)
    """
    merged = _merged(ranges)
    size = gcd(rows, *[bound for pair in merged for bound in pair])
    pieces = rows // size
    own = [number for first, stop in merged for number in range(first // size, stop // size)]
    return RowPieces(rows, _assignment(own, pieces))


def _merged(ranges: Iterable[RowSpan]) -> list[RowSpan]:
    found: list[RowSpan] = []
    for first, stop in sorted(set(ranges)):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((first, stop))
    return found


def _assignment(own: Collection[int], pieces: int) -> Assignment:
    numbers = list(own)
    first, last = numbers[0], numbers[-1]
    distances = {b - a for a, b in pairwise(numbers)}
    if len(distances) == 1 and distances != {1}:
        (period,) = distances
        if pieces % period == 0 and len(numbers) == pieces // period:
            return Assignment(pieces, first, period=period, fixed=True)
    return Assignment(pieces, first, period=pieces, own=last - first + 1, fixed=True)


Array = np.ndarray[Any, np.dtype[Any]]


def row_sharding(sharding: Any) -> Any:
    """The sharding of one value for each row, for rows that are divided as `sharding` says.

    >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
    >>> row_sharding(NamedSharding(mesh, PartitionSpec("data", "model"))).spec
    P('data',)
    """
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[:1]), memory_kind=sharding.memory_kind)
    return sharding


def replicated(sharding: Any) -> Any:
    """The sharding of an array that every device of `sharding` holds as a whole."""
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec(), memory_kind=sharding.memory_kind)
    return sharding


def flat_arrays(ragged: RaggedTensor) -> list[Array]:
    """The values of a ragged tensor and its row splits, the innermost first, in few different sizes.

    Values, and inner row splits, are filled up to a power of two, as another size is another program. Rows that fill them up
    are empty, and no row has the values that do.

    >>> flat_arrays(RaggedTensor.from_list([[3, 1], [], [4, 1, 5]]))
    [array([3, 1, 4, 1, 5, 0, 0, 0], dtype=int32), array([0, 2, 2, 5])]
    """
    outer, *inner = ragged.nested_row_splits
    values = ragged.flat_values
    made = [_filled(values, _power(len(values)), 0)]
    made += [_filled(splits, _power(len(splits) - 1) + 1, splits[-1]) for splits in reversed(inner)]
    return [*made, outer]


def _power(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def _filled(array: Array, size: int, fill: Any) -> Array:
    if len(array) == size:
        return array
    made = empty((size, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    made[len(array) :] = fill
    return made


def _nested(arrays: Sequence[Any]) -> Any:
    """Values and row splits in the order of `flat_arrays` as pairs: `((values, inner splits), outer splits)`."""
    made = arrays[0]
    for splits in arrays[1:]:
        made = (made, splits)
    return made


class Placement:
    """Makes global arrays of the pieces of a batch.

    Args:
      who: whose batches they are, for messages.
      spec: of the batches.
      shardings: one for each leaf.
      pieces: the pieces that this process has read of each batch.
      masked: True if a step is a pair of the batch and the mask of its rows.
    """

    def __init__(self, who: str, spec: Spec, shardings: Sequence[Any], pieces: RowPieces, *, masked: bool) -> None:
        self._who, self._structure, self._pieces, self._masked = who, spec.structure, pieces, masked
        self._names = [component(path) for path in spec.structure.paths]
        self._shardings = list(shardings)
        self.mask_sharding = row_sharding(shardings[0])
        self._ragged = [isinstance(leaf, TensorSpec) and bool(leaf.ragged_rank) for leaf in spec.leaves]
        self._whole = all(sharding.is_fully_addressable for sharding in shardings)
        self.on_host = all(device.platform == "cpu" for sharding in shardings for device in sharding.device_set)
        """True if the devices use the memory of the host."""
        self._full: Any = None  # the mask of a full batch, on the devices
        self._shares_full = True
        self._starts = pieces.starts

    def __call__(self, step: Any) -> Any:
        """A step on the devices.

        Args:
          step: the nest of this process's pieces, or a pair of it and their masks; `PerReplica` leaves, or plain ones for
            whole batches.
        """
        step, mask = step if self._masked else (step, None)
        leaves = [_parts(leaf) for leaf in self._structure.flatten(step)]
        if any(self._ragged):
            return self._with_ragged(leaves, mask)
        hosts = [
            [as_device_array(part, name, self._who) for part in parts]
            for parts, name in zip(leaves, self._names, strict=True)
        ]
        shardings = self._shardings
        if not self._masked:
            return self._structure.build(self._put(hosts, shardings))
        masks = _parts(mask)
        full = all(part.all() for part in masks)
        if full and self._full is not None and self._shares_full:
            return self._structure.build(self._put(hosts, shardings)), self._full
        *put, on_devices = self._put([*hosts, masks], [*shardings, self.mask_sharding])
        if full and self._shares_full:
            self._full = on_devices
        return self._structure.build(put), on_devices

    def _with_ragged(self, leaves: Sequence[Sequence[Any]], mask: Any) -> Any:
        """The same for a batch with ragged tensors, which become pairs of values and row splits, whole on every device."""
        hosts: list[Sequence[Array]] = []
        shardings: list[Any] = []
        counts = []
        for parts, sharding, ragged, name in zip(leaves, self._shardings, self._ragged, self._names, strict=True):
            arrays = flat_arrays(parts[0]) if ragged else [parts[0]]
            hosts += [[as_device_array(array, name, self._who)] for array in arrays]
            shardings += [replicated(sharding) if ragged else sharding] * len(arrays)
            counts.append(len(arrays))
        if self._masked:
            hosts.append(_parts(mask))
            shardings.append(self.mask_sharding)
        put = iter(self._put(hosts, shardings))
        made = [
            _nested([next(put) for _ in range(count)]) if ragged else next(put)
            for count, ragged in zip(counts, self._ragged, strict=True)
        ]
        batch = self._structure.build(made)
        return (batch, next(put)) if self._masked else batch

    def alive(self, step: Any) -> Any:
        """The step, with a new mask if its own was donated: full batches share one, which a program may have donated."""
        if not self._masked or step[1] is not self._full or not self._full.is_deleted():
            return step
        self._shares_full = False  # the program donates its masks, so each step gets one of its own from now on
        masks = [np.ones(self._pieces.size, bool) for _ in self._starts]
        return step[0], self._put([masks], [self.mask_sharding])[0]

    def _put(self, hosts: Sequence[Sequence[Array]], shardings: Sequence[Any]) -> list[Any]:
        if self.on_host:
            hosts = [[_aligned(part) for part in parts] for parts in hosts]
        if self._whole and self.on_host:
            # `device_put` does the same, and takes half as long again.
            joined = map(_joined, hosts)
            return [
                jax.make_array_from_callback(array.shape, sharding, array.__getitem__, dtype=array.dtype)
                for array, sharding in zip(joined, shardings, strict=True)
            ]
        if self._whole:
            if len(hosts) == 1:
                return [jax.device_put(_joined(hosts[0]), shardings[0])]
            return list(jax.device_put([_joined(parts) for parts in hosts], list(shardings)))
        pieces = self._pieces
        return put_pieces(self._who, hosts, shardings, pieces.size, self._starts, pieces.rows)


def put_pieces(
    who: str, leaves: Sequence[Sequence[Any]], shardings: Sequence[Any], size: int, starts: Sequence[int], rows: int
) -> list[Any]:
    """Global arrays `[rows, ...]`, from the pieces of them that this process has; all parts are put at once.

    Args:
      who: whose arrays they are, for messages.
      leaves: for each array the pieces, all of one shape, NumPy or JAX arrays.
      shardings: one for each array.
      size: the rows of a piece.
      starts: the first row of each piece in the global array.
      rows: of the global arrays.
    """
    shapes = [(rows, *parts[0].shape[1:]) for parts in leaves]
    devices: list[Any] = []
    views: list[Any] = []
    counts = []
    for parts, sharding, shape in zip(leaves, shardings, shapes, strict=True):
        held = device_rows(sharding, shape, who)
        inner = sharding.addressable_devices_indices_map(shape)
        for device, (first, stop) in held.items():
            view = _rows(parts, size, starts, first, stop)
            if any(place != slice(None) for place in inner[device][1:]):
                view = view[(slice(None), *inner[device][1:])]
            devices.append(device)
            views.append(view)
        counts.append(len(held))
    put = iter(jax.device_put(views, devices))
    return [
        jax.make_array_from_single_device_arrays(shape, sharding, [next(put) for _ in range(count)])
        for shape, sharding, count in zip(shapes, shardings, counts, strict=True)
    ]


def _rows(parts: Sequence[Any], size: int, starts: Sequence[int], first: int, stop: int) -> Any:
    """Rows of the global array, all of which are in the pieces; a piece itself where they are all of its rows."""
    for part, start in zip(parts, starts, strict=True):
        if start <= first and stop <= start + size:
            return part if stop - first == size else part[first - start : stop - start]
    needed = [i for i, start in enumerate(starts) if start < stop and first < start + size]
    over = starts[needed[0]]
    return np.concatenate([np.asarray(parts[i]) for i in needed])[first - over : stop - over]


def _parts(leaf: Any) -> Sequence[Any]:
    return leaf.values if isinstance(leaf, PerReplica) else (leaf,)


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _aligned(array: Array) -> Array:
    """The array, in memory that devices on the host can use as it is.

    JAX copies other arrays to fresh memory each time, which takes longer than copying them to a buffer that was used before.
    """
    size = array.nbytes
    if size >= FEWEST_BYTES:
        return aligned(array)
    if not size or not array.__array_interface__["data"][0] % ALIGNMENT:
        return array
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    made: Array = memory[start : start + size].view(array.dtype).reshape(array.shape)
    np.copyto(made, array)
    return made
