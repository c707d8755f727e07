# SPDX-License-Identifier: Apache-2.0
"""`interop.jax.batches`: the batches of a dataset as global arrays, put on the devices ahead of time."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import gcd
from operator import is_
from typing import Any, cast

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from distinput.columns.state import State
from distinput.distribute.collectives.peers import OpenPeers
from distinput.distribute.core.options import InputOptions
from distinput.distribute.core.replicas import Consumer, Peers, Replicas
from distinput.distribute.core.values import DistributedValues, PerReplica, replica_leaves
from distinput.distribute.devices import open_devices
from distinput.distribute.engines import open_collectives
from distinput.distribute.input.dealing import END, StepPadding
from distinput.distribute.input.delivery import StepsAhead
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedIterator
from distinput.distribute.input.distribution import check_dataset, pieces_of_batches
from distinput.distribute.input.located import Ranges
from distinput.distribute.input.sources import DealtElements, Steps, StepSource
from distinput.distribute.tpu.mesh import DeviceValues, as_device_array
from distinput.names.lazy import dataclass
from distinput.plan.batch_sizes import Assignment
from distinput.sharding.own_rows import full_batch_rows
from distinput.values.buffers import ALIGNMENT, FEWEST_BYTES, aligned, empty
from distinput.values.leaves import Array, dtype_name
from distinput.values.nest import Structure, component
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import Spec, TensorSpec

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

    @cached_property
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
        self._some_ragged = any(self._ragged)
        self._whole = all(sharding.is_fully_addressable for sharding in shardings)
        self.on_host = all(device.platform == "cpu" for sharding in shardings for device in sharding.device_set)
        """True if the devices use the memory of the host."""
        self._full: Any = None  # the mask of a full batch, on the devices
        self._full_masks: Sequence[Array] = ()  # that it was made of
        self._shares_full = True

    def __call__(self, step: Any) -> Any:
        """A step on the devices.

        Args:
          step: the nest of this process's pieces, or a pair of it and their masks; `PerReplica` leaves, or plain ones for
            whole batches.
        """
        step, mask = step if self._masked else (step, None)
        leaves = [_parts(leaf) for leaf in self._structure.flatten(step)]
        if self._some_ragged:
            return self._with_ragged(leaves, mask)
        hosts = [
            [as_device_array(part, name, self._who) for part in parts]
            for parts, name in zip(leaves, self._names, strict=True)
        ]
        shardings = self._shardings
        if not self._masked:
            return self._structure.build(self._put(hosts, shardings))
        masks = _parts(mask)
        # The masks of as many rows are one object, so those of full batches are recognized without a look at each row.
        if self._full_masks and self._shares_full and all(map(is_, masks, self._full_masks)):
            return self._structure.build(self._put(hosts, shardings)), self._full
        *put, on_devices = self._put([*hosts, masks], [*shardings, self.mask_sharding])
        if self._shares_full and all(part.all() for part in masks):
            self._full, self._full_masks = on_devices, masks
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
        return step[0], self._put([self._full_masks], [self.mask_sharding])[0]

    def _put(self, hosts: Sequence[Sequence[Array]], shardings: Sequence[Any]) -> list[Any]:
        if self._whole and self.on_host:
            # `device_put` does the same, and takes half as long again.
            joined = [_aligned(_joined(parts)) for parts in hosts]
            return [
                jax.make_array_from_callback(array.shape, sharding, array.__getitem__)
                for array, sharding in zip(joined, shardings, strict=True)
            ]
        if self.on_host:
            hosts = [[_aligned(part) for part in parts] for parts in hosts]
        if self._whole:
            if len(hosts) == 1:
                return [jax.device_put(_joined(hosts[0]), shardings[0])]
            return list(jax.device_put([_joined(parts) for parts in hosts], list(shardings)))
        pieces = self._pieces
        return put_pieces(self._who, hosts, shardings, pieces.size, pieces.starts, pieces.rows)


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


_WHO = "interop.jax.batches"
_QUICK_SECONDS = 0.0005
"""A batch that devices on the host use where it is takes less time to put than to hand over from a thread."""
_TAILS = ("drop", "error", "pad")


def batches(
    dataset: Any, sharding: Any, *, tail: str = "pad", ahead: int = 2, batch_size: int | None = None
) -> "GlobalBatches":
    """The batches of a dataset as global `jax.Array`s, for jitted functions over a mesh of devices.

    Each process reads only the rows that its devices hold, if rows can be reached by position; otherwise it reads the
    batches and keeps those rows. Which rows these are follows from the sharding: rows may be divided along one axis of the
    mesh or several, and replicated along others. A batch has the same rows in the same order on every mesh. All processes
    must call this, with equal datasets; they take the same number of steps.

    A thread puts batches on the devices ahead of the one in use, unless CPU devices can use them where they are. All batches
    have the same shape, so a jitted function is compiled once.

    Shapes: those of the dataset's batches, with all rows of a full batch. With tail "pad" a step is a pair `(batch, mask)`:
    a last batch of n rows is followed by rows of zeros, and `mask` `[rows]` is true for the first n.

    A ragged component becomes a pair `(values, row_splits)` that every device holds as a whole: row i is
    `values[row_splits[i]:row_splits[i + 1]]`. Values are filled up with zeros to a power of two, so that few programs are
    compiled. Rows of several ragged dimensions are `((values, inner row_splits), row_splits)`. Only for the devices of one
    process.

    Args:
      dataset: a dataset of batches of numbers.
      sharding: a `jax.sharding.NamedSharding` for all components, whose first dimension is that of the rows; or a nest of
        them with the structure of the elements.
      tail: what becomes of a last batch with fewer rows: "pad" fills it up, "drop" leaves it out, "error" raises.
      ahead: how many batches to put on the devices before they are needed; 0 puts each one when it is asked for. Several
        processes that cannot count the rows in advance agree on each step, and put it when it is asked for.
      batch_size: the rows of a full batch, if a function over whole batches hides it.

    Raises:
      TypeError: no dataset, or no sharding.
      ValueError: the batch size is unknown, or cannot be divided as the sharding says; a component is text; the devices
        belong to several processes, but not to all.
      FailedPreconditionError: processes built different datasets.

    >>> import distinput as di
    >>> import jax
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> sharding = NamedSharding(jax.make_mesh((1,), ("data",)), PartitionSpec("data"))
    >>> for batch, mask in di.interop.jax.batches(di.data.Dataset.range(6).batch(4), sharding):
    ...     print(batch, mask)
    [0 1 2 3] [ True  True  True  True]
    [4 5 0 0] [ True  True False False]
    """
    check_dataset(dataset, f"{_WHO}: needs")
    if tail not in _TAILS:
        raise ValueError(f"{_WHO}: tail must be one of {', '.join(_TAILS)}, got {tail!r}")
    ahead = _number("ahead", ahead, 0, "an integer of at least 0")
    spec = Spec.of(dataset.element_spec)
    _check_leaves(spec)
    rows = _batch_size(dataset, batch_size)
    shardings = tuple(_shardings(_WHO, sharding, spec.structure, "elements"))
    asked = dataset.node, rows, shardings, tail, ahead
    source, delivery = _planned_before(dataset, asked) or _planned(dataset, spec, *asked[1:])
    if isinstance(source, DealtElements):  # where nothing is planned together with other processes
        dataset._planned = asked, source.datasets[0].node, source, delivery
    return GlobalBatches(source, delivery)


def _planned(
    dataset: Any, spec: Spec, rows: int, shardings: tuple[Any, ...], tail: str, ahead: int
) -> "tuple[StepSource, GlobalDelivery]":
    pieces = _pieces(spec, shardings, rows)
    for structure in _dataclasses(spec.structure):
        _register(structure)
    peers = _peers() if spans_processes(shardings, jax.process_count(), _WHO) else None
    # The pieces stand for replicas: what one replica gets elsewhere is one of the parts that are put here.
    replicas = Replicas(_host(), peers, pieces.count, pieces.assignment.first, pieces.assignment.pieces)
    consumer = Consumer(replicas, object(), _WHO)
    options = InputOptions(balanced_split=True, tail=tail, experimental_per_replica_buffer_size=max(1, ahead))
    source = pieces_of_batches(consumer, dataset, options, pieces.assignment, rows)
    padding = StepPadding(source.spec, pieces.size) if tail == "pad" else None
    placement = Placement(_WHO, spec, shardings, pieces, masked=padding is not None)
    return source, GlobalDelivery(consumer, placement, padding, ahead, spec, shardings, rows)


def _planned_before(dataset: Any, asked: Any) -> "tuple[StepSource, GlobalDelivery] | None":
    """The batches as they were planned last; None if others were asked for, or a state has brought them other seeds."""
    if dataset._planned is None:
        return None
    before, tree, source, delivery = dataset._planned
    if before != asked or source.datasets[0].node is not tree:
        return None
    return replace(source, datasets=[source.datasets[0]._again()]), delivery


@dataclass(frozen=True)
class GlobalDelivery:
    """Delivers steps as global arrays.

    Args:
      consumer: its replicas stand for the pieces that this process reads.
      placement: puts pieces on the devices.
      padding: fills pieces up to one size; None if all are full.
      ahead: how many steps wait on the devices.
      spec: of the dataset's batches.
      shardings: one for each component.
      rows: of a full batch.
    """

    consumer: Consumer
    placement: Placement
    padding: StepPadding | None
    ahead: int
    spec: Spec
    shardings: tuple[Any, ...]
    rows: int

    def steps(self, source: StepSource, steps: Steps) -> StepsAhead:
        """An iteration whose steps are as they are delivered, some of them made ahead."""
        # Agreements between processes must come in the order of the program, so no thread may make them.
        quick = _QUICK_SECONDS if self.placement.on_host else 0.0  # other devices copy while the program goes on
        return StepsAhead(steps, self.finished, 0 if source.agrees else self.ahead, quick)

    def finished(self, step: Any) -> Any:
        """The step as it is delivered."""
        return self.placement(step if self.padding is None else self.padding(step))

    def element_spec(self, source: StepSource) -> Any:
        """What a step looks like: `jax.ShapeDtypeStruct` leaves, `TensorSpec` ones where inner dimensions are unknown."""
        leaves = [
            _global_spec(leaf, sharding, self.rows)
            for leaf, sharding in zip(self.spec.tensors(_WHO), self.shardings, strict=True)
        ]
        nest = self.spec.structure.build(leaves)
        if self.padding is None:
            return nest
        return nest, jax.ShapeDtypeStruct((self.rows,), bool, sharding=self.placement.mask_sharding)


class GlobalBatches(DistributedDataset):
    """The batches of a dataset as global arrays; `batches` makes it.

    It can be iterated any number of times; each time is an epoch. A state of an iterator is a position in the global
    batches: any mesh and any number of processes can continue from it.

    Args:
      source: where the steps come from.
      delivery: puts them on the devices.
    """

    _delivery: Any

    def __init__(self, source: StepSource, delivery: GlobalDelivery) -> None:
        super().__init__(source, cast("Any", delivery))  # it delivers in the same way

    def __iter__(self) -> "GlobalIterator":
        return GlobalIterator(self._source, self._delivery, self._source.begin())

    def __len__(self) -> int:
        """The number of steps.

        Raises:
          TypeError: it is infinite, or known only at the end.
        """
        steps = self.num_steps
        if steps < 0 and self._source.terms.tail == "pad":
            steps = self.cardinality
        if steps < 0:
            raise TypeError(f"{_WHO}: the number of batches is {'infinite' if steps == -1 else 'not known in advance'}")
        return steps

    def restore(self, state: State, may_differ: str | Collection[str] = (), *, skip: Ranges = ()) -> "GlobalIterator":
        """An iterator that continues from a state that `GlobalIterator.state` returned.

        Args:
          state: the saved state.
          may_differ: as for `Dataset.restore`.
          skip: as for `DistributedDataset.restore`.

        Raises:
          StateError: the state belongs to another dataset or version, or was modified.
        """
        return GlobalIterator.restored(self._source, self._delivery, state, may_differ, skip)


class GlobalIterator(DistributedIterator):
    """Returns one global batch at a time; `GlobalBatches` makes it.

    `state`, or `state_dict`, is the position after the last batch that was returned, however many wait on the devices.
    """

    _delivery: Any

    def _step(self, keeps_partial: bool) -> Any:
        step = super()._step(keeps_partial)
        return step if step is END else self._delivery.placement.alive(step)


def _check_leaves(spec: Spec) -> None:
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if not isinstance(leaf, TensorSpec) or leaf.dtype.kind not in "biufcV":
            kind = dtype_name(leaf.dtype) if isinstance(leaf, TensorSpec) else ""
            what = "text" if kind == "string" else kind or "a dataset"
            cure = "as_uint8 or map" if kind == "string" else "map, such as value.astype('int64')" if kind else "map"
            raise ValueError(
                f"{_WHO}: {component(path)} is {what}, which no JAX array can hold; leave it out, or turn it into numbers with "
                f"{cure}"
            )
        if leaf.shape is None:
            raise ValueError(
                f"{_WHO}: {component(path)} must have a known number of dimensions; give its shape with ensure_shape, or in "
                "the output_signature of the function that makes it"
            )


def _number(name: str, given: Any, least: int, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"{_WHO}: {name} must be {what}, got {given!r}")
    return int(given)


def _batch_size(dataset: Any, given: int | None) -> int:
    """The rows of a full batch."""
    given = None if given is None else _number("batch_size", given, 1, "a positive integer")
    return full_batch_rows(_WHO, dataset.node, given)


def _shardings(who: str, given: Any, structure: Structure, of: str) -> Sequence[Any]:
    """One sharding for each leaf of elements, or of a step."""
    if isinstance(given, jax.sharding.Sharding):
        return [given] * structure.num_leaves
    try:
        found = structure.flatten(given)
    except TypeError:
        found = [given]
    if not found or not all(isinstance(each, jax.sharding.Sharding) for each in found):
        raise TypeError(
            f"{who}: sharding must be a jax.sharding.NamedSharding, or a nest of them with the structure of the {of}, "
            f"{structure}, got {given!r}"
        )
    return found


def _pieces(spec: Spec, shardings: Sequence[Any], rows: int) -> RowPieces:
    ranges: set[tuple[int, int]] = set()
    for leaf, path, sharding in zip(spec.tensors(_WHO), spec.structure.paths, shardings, strict=True):
        if leaf.ragged_rank:
            if not sharding.is_fully_addressable:
                raise ValueError(
                    f"{_WHO}: {component(path)} is ragged, and rows of different lengths cannot be divided among processes; "
                    "make it an array in the dataset, with map and RaggedTensor.to_padded(shape=...), or use padded_batch"
                )
            ranges.add((0, rows))  # it lies whole on every device
            continue
        shape = (rows, *leaf.shape[1:]) if leaf.shape else (rows,)
        ranges |= set(device_rows(sharding, shape, f"{_WHO}: {component(path)}").values())
    if not ranges:
        raise ValueError(f"{_WHO}: the sharding has no device of this process; each process needs at least one")
    return pieces_of(ranges, rows)


def _global_spec(leaf: TensorSpec, sharding: Any, rows: int) -> Any:
    if leaf.ragged_rank:
        values: Any = TensorSpec((None, *(leaf.shape or ())[1 + leaf.ragged_rank :]), leaf.dtype)
        for _ in range(leaf.ragged_rank - 1):
            values = (values, TensorSpec([None], "int32"))
        return values, jax.ShapeDtypeStruct((rows + 1,), np.int32, sharding=replicated(sharding))
    inner = tuple(leaf.shape or ())[1:]
    dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
    if None in inner:
        return TensorSpec((rows, *inner), np.dtype(dtype))
    return jax.ShapeDtypeStruct((rows, *inner), dtype, sharding=sharding)


@lru_cache(maxsize=1)
def _host() -> Any:
    """Devices of one host, of which nothing is asked: steps are put elsewhere."""
    return open_devices("threads", ["CPU:0"])


@lru_cache(maxsize=1)
def _peers() -> Peers:
    """All processes of the job; every one of them comes here with its first batches over several processes."""
    group = open_collectives("jax", name="batches")
    return OpenPeers(group, group.dup("control"), 1)


def _dataclasses(structure: Structure) -> list[Structure]:
    below = [found for child in structure.children for found in _dataclasses(child)]
    return [structure, *below] if structure.kind == "dataclass" else below


def _register(structure: Structure) -> None:
    """Let JAX look into a dataclass that elements are made of, if nobody has done so."""
    sample = structure.build([0] * structure.num_leaves)
    if jax.tree_util.all_leaves([sample]):
        jax.tree_util.register_dataclass(structure.cls, list(structure.keys), [])


# ----------------------------------------------------------------------------
# `interop.jax.to_global`: the parts of replicas as global arrays.
# ----------------------------------------------------------------------------


_WHOLE = "interop.jax.to_global"


def to_global(step: Any, sharding: Any) -> Any:
    """A step of a distributed dataset, or what `Strategy.run` returned, as global `jax.Array`s.

    The parts of the replicas become the rows of one array, in replica order. A part that is on the right device stays there.
    Nothing is exchanged between processes: each one gives the rows that its devices hold.

    Shapes: parts `[n, ...]` of R replicas become `[R * n, ...]`, scalars `[R]`. A leaf that is not a distributed value holds
    the rows of this process; a scalar is copied to all devices.

    Args:
      step: a nest of `PerReplica` leaves, or of plain arrays.
      sharding: a `jax.sharding.NamedSharding` for all leaves, or a nest of them with the structure of `step`.

    Raises:
      TypeError: no sharding.
      ValueError: the parts have different shapes, or cannot be divided as the sharding says.

    >>> import distinput as di
    >>> import jax
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> sharding = NamedSharding(jax.make_mesh((1,), ("data",)), PartitionSpec("data"))
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(8).batch(4)):
    ...     print(di.interop.jax.to_global(step, sharding))
    [0 1 2 3]
    [4 5 6 7]
    """
    structure, leaves = replica_leaves(step)
    shardings = _shardings(_WHOLE, sharding, structure, "step")
    return structure.build(
        [
            _leaf(leaf, each, component(path))
            for leaf, each, path in zip(leaves, shardings, structure.paths, strict=True)
        ]
    )


def _leaf(leaf: Any, sharding: Any, name: str) -> Any:
    if isinstance(leaf, DeviceValues) and not leaf.scalar and leaf.rows is None:
        whole = leaf.whole
        if whole.sharding.is_equivalent_to(sharding, whole.ndim):
            return whole
    parts = list(leaf.values) if isinstance(leaf, DistributedValues) else [leaf]
    parts = [part if isinstance(part, jax.Array) else as_device_array(part, name, _WHOLE) for part in parts]
    if len({part.shape for part in parts}) > 1:
        raise ValueError(
            f"{_WHOLE}: the parts of {name} must have the same shape, got "
            f"{', '.join(str(list(part.shape)) for part in parts)}; "
            "distribute the dataset with InputOptions(tail='pad') or tail='drop'"
        )
    if not parts[0].shape:
        if not isinstance(leaf, DistributedValues):
            host = np.asarray(parts[0])
            return jax.make_array_from_callback((), replicated(sharding), lambda _: host)
        parts = [part.reshape(1) for part in parts]
    size = parts[0].shape[0]
    rows, starts = _places(sharding, len(parts), size, parts[0].ndim, name)
    return put_pieces(f"{_WHOLE}: {name}", [parts], [sharding], size, starts, rows)[0]


def _places(sharding: Any, count: int, size: int, dimensions: int, name: str) -> tuple[int, Sequence[int]]:
    """The rows of the global array, and the first row of each of this process's `count` parts of `size` rows."""
    if sharding.is_fully_addressable:
        return count * size, [part * size for part in range(count)]
    # Where the rows of this process are: as shares of the whole, told by an array that every sharding can divide.
    nominal = len(sharding.device_set)
    held = device_rows(sharding, (nominal, *[None] * (dimensions - 1)), f"{_WHOLE}: {name}")
    pieces = pieces_of(held.values(), nominal)
    own, each = pieces.count, count // pieces.count
    if count % own or sum(stop - first for first, stop in set(held.values())) < own * pieces.size:
        raise ValueError(
            f"{_WHOLE}: {name} has {count} parts on this process, whose devices hold {own} separate parts of the rows; make "
            "the mesh of the devices in replica order"
        )
    rows = each * size  # of a piece
    starts = [start // pieces.size * rows for start in pieces.starts]
    return rows * pieces.assignment.pieces, [start + part * size for start in starts for part in range(each)]
