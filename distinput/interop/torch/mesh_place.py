# SPDX-License-Identifier: Apache-2.0
"""`MeshPlace`: what a rank of a mesh of devices gets: its rows of every batch, and its part of every sequence."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.leaves import STRING
from distinput.values.nest import component
from distinput.values.spec import Spec, TensorSpec

_WHO = "MeshPlace"
_LAYOUTS = ("contiguous", "zigzag")


@dataclass(frozen=True)
class MeshPlace:
    """The place of this rank in a mesh: which rows it gets of every batch, and which part of every sequence.

    Args:
      rank: its number among those that divide the rows.
      world_size: how many divide the rows.
      part: its number among those that divide sequences.
      parts: how many divide sequences; 1: nobody does.
      layout: of the parts, "contiguous" or "zigzag". Zigzag cuts a sequence into `2 * parts` pieces, and gives part p the
        pieces p and `2 * parts - 1 - p`, so that causal attention is the same work for all.
      sequence: the components that are sequences, keys of elements that are dicts; (): all that have at least two axes. The
        second axis is that of the sequence.
      positions: the name of a component to add to elements that are dicts, int64 `[rows, length / parts]`: the position of
        each column in the whole sequence. None: nothing is added.

    Raises:
      InvalidArgumentError: there is no such rank, part or layout.

    >>> import distinput as di
    >>> from distinput.interop.torch import IterableView, MeshPlace
    >>> ds = di.data.Dataset.range(16).batch(8).batch(2)  # one batch of two sequences
    >>> [step.tolist() for step in IterableView(ds, place=MeshPlace(part=0, parts=2, layout="zigzag"))]
    [[[0, 1, 6, 7], [8, 9, 14, 15]]]
    """

    rank: int = 0
    world_size: int = 1
    part: int = 0
    parts: int = 1
    layout: str = "contiguous"
    sequence: tuple[str, ...] = ()
    positions: str | None = None

    def __post_init__(self) -> None:
        for name, number, count in (("rank", self.rank, self.world_size), ("part", self.part, self.parts)):
            if not 0 <= number < count:
                raise InvalidArgumentError(f"{_WHO}: {name} must be from 0 to {count - 1}, got {number}")
        if self.layout not in _LAYOUTS:
            raise InvalidArgumentError(f"{_WHO}: layout must be one of {', '.join(_LAYOUTS)}, got {self.layout!r}")

    @staticmethod
    def of(
        mesh: Any,
        data: str | Sequence[str] = (),
        replicate: str | Sequence[str] = (),
        context: str | Sequence[str] = (),
        **options: Any,
    ) -> "MeshPlace":
        """The place of this rank in a `DeviceMesh` of PyTorch, or in anything else with its names, shape and coordinate.

        Each dimension of the mesh is named once. Of several names, the first one is the outermost.

        Args:
          mesh: has `mesh_dim_names`, `shape` and `get_coordinate()`.
          data: the dimensions along which the rows of a batch are divided.
          replicate: the dimensions whose ranks all get the same: tensor and pipeline parallelism.
          context: the dimensions along which sequences are divided.
          **options: `layout`, `sequence` and `positions` of `MeshPlace`.

        Raises:
          TypeError: this is not a mesh with names.
          InvalidArgumentError: a dimension is named twice or never, or there is none of a name; this rank is not in the mesh.
        """
        names = getattr(mesh, "mesh_dim_names", None)
        if not names or not hasattr(mesh, "get_coordinate"):
            raise TypeError(
                f"{_WHO}: mesh must be a DeviceMesh whose dimensions have names, got {mesh!r}; make it with "
                "init_device_mesh('cuda', (4, 2), mesh_dim_names=('dp', 'tp'))"
            )
        roles = {"data": _names(data), "replicate": _names(replicate), "context": _names(context)}
        named = [name for role in roles.values() for name in role]
        for role, given in roles.items():
            for name in given:
                if name not in names:
                    raise InvalidArgumentError(
                        f"{_WHO}: {role} names {name!r}, and the dimensions of the mesh are {', '.join(names)}"
                    )
        for name in names:
            if named.count(name) != 1:
                raise InvalidArgumentError(
                    f"{_WHO}: dimension {name!r} of the mesh is named {named.count(name)} times; name each once: in data "
                    "(ranks divide the rows), replicate (ranks get the same) or context (ranks divide sequences)"
                )
        coordinate = mesh.get_coordinate()
        if coordinate is None:
            raise InvalidArgumentError(
                f"{_WHO}: this rank is not in the mesh, so it gets no data; make a loader only on ranks of the mesh"
            )
        shape, at = dict(zip(names, mesh.shape, strict=True)), dict(zip(names, coordinate, strict=True))
        rank, world_size = _number(roles["data"], shape, at)
        part, parts = _number(roles["context"], shape, at)
        return MeshPlace(rank, world_size, part, parts, **{**options, "sequence": _names(options.get("sequence", ()))})

    def cut(self, element_spec: Any, who: str, *, masked: bool = False) -> "SequenceCut | None":
        """What takes this rank's part of the sequences of a batch; None: batches stay whole.

        Args:
          element_spec: of the batches.
          who: for the messages.
          masked: batches are pairs of a batch and the mask of its rows.

        Raises:
          InvalidArgumentError: a component named in `sequence` is not there or is not a sequence; there is no sequence; the
            lengths differ, or cannot be divided; positions cannot be added.
        """
        if self.parts == 1 and self.positions is None:
            return None
        return SequenceCut(self, Spec.of(element_spec), who, masked)


class SequenceCut:
    """Takes the part of a rank of all sequences of a batch.

    Args:
      place: of the rank.
      spec: of the batches.
      who: for the messages.
      masked: batches are pairs of a batch and the mask of its rows.
    """

    def __init__(self, place: MeshPlace, spec: Spec, who: str, masked: bool) -> None:
        self._place, self._structure, self._who, self._masked = place, spec.structure, who, masked
        if place.positions is not None and (spec.structure.kind != "dict" or place.positions in spec.structure.keys):
            raise InvalidArgumentError(
                f"{who}: positions={place.positions!r} adds a component to elements that are dicts without it, and these are "
                f"{spec.structure}; choose another name, or map the elements to dicts"
            )
        self._names = [component(path) for path in spec.structure.paths]
        self._chosen = self._sequences(spec)
        tensors = spec.tensors(who)
        if not self._chosen:
            raise InvalidArgumentError(
                f"{who}: context divides sequences, and no component has one: {spec.structure}; batch rows of one length, as "
                "arrays [rows, length]"
            )
        shapes = [leaf.shape or () for leaf in map(tensors.__getitem__, self._chosen)]
        lengths = {shape[1] for shape in shapes if shape and shape[1] is not None}
        if len(lengths) > 1:
            raise InvalidArgumentError(
                f"{who}: sequences must have one length, and these have {', '.join(map(str, sorted(lengths)))}: "
                f"{', '.join(self._names[n] for n in self._chosen)}; name those that are to be divided: sequence=('tokens',)"
            )
        self.length = self._part(lengths.pop()) if lengths else None
        """Of this rank's part; None: it is not known in advance."""

    def _sequences(self, spec: Spec) -> list[int]:
        """The places of the components that are sequences."""
        named = self._place.sequence
        if not named:
            return [n for n, leaf in enumerate(spec.leaves) if self._is_sequence(leaf, n, asked=False)]
        if spec.structure.kind != "dict" or set(named) - set(spec.structure.keys):
            raise InvalidArgumentError(
                f"{self._who}: sequence names {', '.join(named)}, which must be keys of the elements: {spec.structure}"
            )
        firsts = np.cumsum([0, *[child.num_leaves for child in spec.structure.children]])
        found: list[int] = []
        for place, key in enumerate(spec.structure.keys):
            if key in named:
                found += range(firsts[place], firsts[place + 1])
        return [n for n in found if self._is_sequence(spec.leaves[n], n, asked=True)]

    def _is_sequence(self, leaf: Any, place: int, *, asked: bool) -> bool:
        """Whether a component is a sequence, which can be divided."""
        if isinstance(leaf, TensorSpec) and leaf.ragged_rank:
            raise InvalidArgumentError(
                f"{self._who}: {self._names[place]} is ragged, and ranks divide sequences of one length; use padded_batch, or "
                "name the sequences: sequence=('tokens',)"
            )
        divided = isinstance(leaf, TensorSpec) and leaf.dtype != STRING and (leaf.shape is None or len(leaf.shape) > 1)
        if asked and not divided:
            raise InvalidArgumentError(
                f"{self._who}: {self._names[place]} is not a sequence: it has no second axis of numbers: {leaf}"
            )
        return divided

    def _part(self, length: int) -> int:
        """The length of a part."""
        place = self._place
        pieces = place.parts * (2 if place.layout == "zigzag" else 1)
        if length % pieces:
            raise InvalidArgumentError(
                f"{self._who}: a sequence of {length} cannot be divided into {pieces} equal pieces, for {place.parts} ranks "
                f"({place.layout}); pad rows to a multiple of {pieces}"
            )
        return length // place.parts

    def spec(self, element_spec: Any) -> Any:
        """The spec of the parts of batches."""
        nest, *mask = element_spec if self._masked else (element_spec,)
        leaves = list(Spec.of(nest).leaves)
        for n in self._chosen:
            leaf = leaves[n]
            if isinstance(leaf, TensorSpec) and leaf.shape is not None:
                leaves[n] = TensorSpec((leaf.shape[0], self.length, *leaf.shape[2:]), leaf.dtype)
        made = self._with_positions(self._structure.build(leaves), TensorSpec((None, self.length), "int64"))
        return (made, *mask) if self._masked else made

    def __call__(self, element: Any) -> Any:
        """The part of a batch."""
        nest, *mask = element if self._masked else (element,)
        leaves = list(self._structure.flatten(nest))
        sequences = self._sequences_of(leaves)
        lengths = {leaves[n].shape[1] for n in sequences}
        if len(lengths) > 1:
            raise InvalidArgumentError(
                f"{self._who}: sequences of one batch must have one length, and these have "
                f"{', '.join(map(str, sorted(lengths)))}; pad them alike, or name those to be divided: sequence=('tokens',)"
            )
        length = lengths.pop()
        taken = self._taken(length)
        rows = len(leaves[sequences[0]])
        for n in sequences:
            leaves[n] = _columns(leaves[n], taken)
        positions = None
        if self._place.positions is not None:
            positions = np.repeat(_columns(np.arange(length)[None], taken), rows, axis=0)
        made = self._with_positions(self._structure.build(leaves), positions)
        return (made, *mask) if self._masked else made

    def _sequences_of(self, leaves: Sequence[Any]) -> list[int]:
        """The places of the sequences in a batch, where it is seen how many axes there are if the spec does not say."""
        places = [n for n in self._chosen if self._place.sequence or leaves[n].ndim > 1]
        flat = [self._names[n] for n in places if leaves[n].ndim < 2]
        if flat or not places:
            what = f"{flat[0]} is no" if flat else "no component of this batch is a"
            raise InvalidArgumentError(
                f"{self._who}: {what} sequence; batch rows of one length, as arrays [rows, length]"
            )
        return places

    def _taken(self, length: int) -> list[slice]:
        """The columns of this rank."""
        size, part = self._part(length), self._place.part
        if self._place.layout == "contiguous":
            return [slice(part * size, (part + 1) * size)]
        half = size // 2
        last = length - part * half
        return [slice(part * half, (part + 1) * half), slice(last - half, last)]

    def _with_positions(self, nest: Any, positions: Any) -> Any:
        return nest if self._place.positions is None else {**nest, self._place.positions: positions}


def _columns(array: Any, taken: Sequence[slice]) -> Any:
    """Columns of an array `[rows, length, ...]`, in memory of their own."""
    return np.concatenate([array[:, columns] for columns in taken], axis=1)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _number(names: Sequence[str], shape: dict[str, int], at: dict[str, int]) -> tuple[int, int]:
    """The number of a place along several dimensions, and how many there are."""
    number = 0
    for name in names:
        number = number * shape[name] + at[name]
    return number, prod(shape[name] for name in names)
