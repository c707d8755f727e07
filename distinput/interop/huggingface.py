# SPDX-License-Identifier: Apache-2.0
"""Hugging Face `datasets`: their tables and streams as datasets of this library, and back."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.adopt import is_hugging_face
from distinput.arrow.tabular import Reading
from distinput.columns.state import Digest
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError, importing
from distinput.files.manifest import FileTable
from distinput.formats.format import Format, Fragment, PlacedBlocks, Position
from distinput.interop.rank_steps import ShardNames, number_in
from distinput.names.lazy import dataclass, library
from distinput.ops.generator import Begun
from distinput.ops.reader import Reader, handed_out
from distinput.ops.tables import rows_of_table
from distinput.plan.node import Node
from distinput.values.spec import Spec

pa = library("pyarrow")

__all__ = ["described", "divides", "from_hf", "same_stream", "to_hf"]


# ----------------------------------------------------------------------------
# What a stream of Hugging Face is: whether its shards can be read apart, and which operations it has behind it.
#
# An operation such as `take` or a batched `map` is one of the whole stream: applied to each shard, it would give other
# rows.
# ----------------------------------------------------------------------------


_SOURCES = ("ExamplesIterable", "ArrowExamplesIterable")
_OF_EACH_ROW = ("FormattedExamplesIterable", "RebatchedArrowExamplesIterable", "SelectColumnsIterable")
_CALLS = ("FilteredExamplesIterable", "MappedExamplesIterable")


def divides(stream: Any) -> bool:
    """True if the stream is its shards one after another, each read alone: all that it does is done to each row.

    What is not known here is taken for an operation of the whole.
    """
    if stream._distributed is not None or stream.epoch:
        return False
    step = stream._ex_iterable
    while type(step).__name__ not in _SOURCES:
        kind = type(step).__name__
        if kind not in _OF_EACH_ROW + _CALLS or getattr(step, "drop_last_batch", False):
            return False
        if kind in _CALLS and (step.batched or step.with_indices):
            return False
        step = step.ex_iterable
    return True


def same_stream(stream: Any, kind: str | None) -> Any:
    """The stream in another format, at the same epoch, which `with_format` forgets."""
    made = stream.with_format(kind)
    made.set_epoch(stream.epoch)
    return made


def described(stream: Any) -> str:
    """A word for the operations of a stream and their numbers; its functions and sources do not count."""
    split = stream._distributed and (stream._distributed.rank, stream._distributed.world_size)
    return Digest(6).add(split, stream.epoch, *_steps(stream._ex_iterable)).word


def _steps(step: Any) -> Iterator[Any]:
    yield type(step).__name__
    for name, value in sorted(vars(step).items()):
        if isinstance(value, np.random.Generator):
            yield name, repr(value.bit_generator.state)
        elif isinstance(value, bool | int | float | str) and not name.startswith("_"):
            yield name, value
    inputs = getattr(step, "ex_iterables", None) or [getattr(step, "ex_iterable", None)]
    for each in inputs:
        if each is not None:
            yield from _steps(each)


_WHO = "from_hf"
_ROWS = 1000
"""Rows requested from a stream at a time."""
_SAMPLE = 100
"""Rows that show the features of a stream which does not say them."""
_PLAIN = (None, "numpy", "arrow", "pandas", "polars")
"""Formats that only say in which container rows are shown."""


def from_hf(
    dataset: Any,
    *,
    nulls: Mapping[str, Any] | str | None = None,
    valid: Mapping[str, str] | Sequence[str] | None = None,
    features: Any = None,
    text: str = "bytes",
    nested: str = "columns",
    decimals: str = "text",
) -> Dataset[dict[str, Any]]:
    """The rows of a Hugging Face `Dataset` or `IterableDataset`, as dicts from column name to value.

    A `Dataset` has random access: its rows are counted, shuffled globally, sharded and restored by position, and its
    memory-mapped files are read where they are. `select`, `filter`, `shuffle` and `sort` of it are respected without a copy
    of the table.

    An `IterableDataset` gives the rows that a loop over it gives. If all its operations are of single rows (`map`, `filter`,
    `select_columns` and the like), its shards are read as files are: policies FILE and BALANCED give each worker some of them,
    and there must be at least as many as workers. A stream with an operation of the whole (`take`, `skip`, `batch`, `shuffle`,
    `with_indices`, batched functions, several streams in one, `split_dataset_by_node`) is one shard. A restart reads the shard
    that it is in from its beginning and drops the rows that were there before. A shuffle by Hugging Face has the same order in
    each pass, that of the epoch which the stream has now; shuffle the result instead.

    Columns are as for `Dataset.from_arrow`, whose rule for nulls holds. Class labels are int64; `Array2D` to `Array5D` are
    arrays of their shape; undecoded images and audio are dicts of "bytes" and "path", in which b"" stands for null.

    Args:
      dataset: a `datasets.Dataset` or `datasets.IterableDataset`. Of `with_format`, the columns are respected; formats of
        tensors and transforms are refused, since elements are NumPy arrays here.
      nulls: what becomes of nulls, as for `Dataset.from_arrow`; an `IterableDataset` is a stream.
      valid: where nulls are told, as for `Dataset.from_arrow`.
      features: the `datasets.Features` of an `IterableDataset` that does not know its own; None: as its first rows show.
      text: "bytes"; or "str": `as_text` behind it.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind it makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind it.

    Raises:
      InvalidArgumentError: something else; a format of tensors; columns that would be decoded (images, audio, video), or
        that no array can hold; nulls that have no replacement.

    >>> import datasets
    >>> import distinput as di
    >>> names = datasets.Dataset.from_dict({"name": ["Ada", "Alan", "Grace"], "age": [36, 41, 85]})
    >>> di.interop.huggingface.from_hf(names.filter(lambda row: row["age"] > 40)).to_list()
    [{'name': b'Alan', 'age': 41}, {'name': b'Grace', 'age': 85}]

    Source: distinput's own.
    """
    made = _reader(dataset, nulls, valid, features)
    return Dataset(handed_out(made, text=text, nested=nested, decimals=decimals))


def _reader(dataset: Any, nulls: Any, valid: Any, features: Any) -> Node:
    if isinstance(dataset, Mapping):
        raise InvalidArgumentError(f"{_WHO}: choose one of the splits {', '.join(map(repr, dataset))}")
    if hasattr(dataset, "num_shards") and not hasattr(dataset, "num_rows"):
        return _of_stream(dataset, nulls, valid, features)
    if not is_hugging_face(type(dataset)):
        raise InvalidArgumentError(
            f"{_WHO}: expected a datasets.Dataset or a datasets.IterableDataset, got {type(dataset).__name__}"
        )
    shown = dataset.format
    _check_format(shown["type"], shown["format_kwargs"])
    table, order = dataset.data.table, None
    if dataset._indices is not None:
        order = np.asarray(dataset._indices.column(0)).astype(np.int64, copy=False)
    table = _plain_table(table.select(list(shown["columns"])), dataset.features)
    return rows_of_table(table, _reading(nulls, valid, dataset.features, table.column_names), order)


def to_hf(dataset: Dataset[Any], text: bool | Collection[str] = False) -> Any:
    """All elements as a Hugging Face `Dataset`, a row each; columns as for `Dataset.to_arrow`.

    Args:
      dataset: of any elements that `to_arrow` takes.
      text: columns whose byte strings are UTF-8 and become strings: True for all, or a list of names; others are binary.

    Raises:
      EngineMissing: the package `datasets` is not installed.
      InvalidArgumentError: as for `Dataset.to_arrow`.

    >>> import distinput as di
    >>> di.interop.huggingface.to_hf(di.data.Dataset.from_tensor_slices({"x": [1, 2], "t": ["a", "b"]}), text=True)[1]
    {'x': 2, 't': 'b'}

    Source: distinput's own.
    """
    with importing("to_hf: `datasets` is not installed; `pip install 'distinput[huggingface]'`"):
        import datasets
    return datasets.Dataset(dataset.to_arrow(text))


def _of_stream(dataset: Any, nulls: Any, valid: Any, features: Any) -> Node:
    formatting = getattr(dataset, "_formatting", None)
    _check_format(getattr(formatting, "format_type", None), {})
    if dataset._starting_state_dict:
        raise InvalidArgumentError(
            f"{_WHO}: a state was loaded into this stream, and its rows would be counted from there; give the stream without "
            "it, and save and restore the dataset made of it: iterator.state(), dataset.restore(state)"
        )
    dataset = same_stream(dataset, None)
    begun = Begun()
    features = features or dataset.features or _shown_features(dataset, begun)
    count, whole = (dataset.num_shards, "") if divides(dataset) else (1, described(dataset))
    shards = _Shards(dataset, features, _reading(nulls, valid, features, list(features)), count, whole, begun)
    shards.spec(None)  # what no array can hold is refused now
    names = [f"shard {index} of {count}" for index in range(count)]
    table = FileTable.of(names, [1] * len(names))  # workers get equally many of them
    return Reader(ShardNames.of(table), shards)


def _batches(dataset: Any, begun: Begun, *, sampling: bool) -> Any:
    """The rows of a stream, many at a time; a generator that begins once goes on behind the sample."""
    return begun.items(lambda: dataset.iter(batch_size=_SAMPLE), dict, sampling=sampling)


def _shown_features(dataset: Any, begun: Begun) -> Any:
    """Features inferred from the first rows."""
    import datasets

    batches: Any = _batches(dataset, begun, sampling=True)
    with closing(batches):
        rows = next(batches, None)
    if not rows:
        raise InvalidArgumentError(f"{_WHO}: the stream is empty and does not say its features; give features=")
    try:
        return datasets.Features.from_arrow_schema(pa.Table.from_pydict(rows).schema)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{_WHO}: the features are not clear from the first rows: {error}; give features="
        ) from error


def _check_format(kind: Any, options: Any) -> None:
    if kind not in _PLAIN or options:
        given = f"format {kind!r}{' with options' if options and kind in _PLAIN else ''}"
        cure = "map the function over the result" if kind == "custom" else "interop.torch and interop.jax make tensors"
        raise InvalidArgumentError(
            f"{_WHO}: elements are NumPy arrays as the table holds them, and {given} asks for something else; give "
            f"dataset.with_format(None); {cure}"
        )


def _reading(nulls: Any, valid: Any, features: Mapping[str, Any], columns: Collection[str]) -> Reading:
    """How the columns are read.

    Raises:
      InvalidArgumentError: one of them would be decoded.
    """
    reading = Reading.of(nulls, valid, _WHO)
    fill = dict(reading.nulls)
    for name in columns:
        for feature in _within(features[name]):
            if not hasattr(feature, "decode_example") or not hasattr(feature, "decode"):
                continue
            if feature.decode:
                kind = type(feature).__name__
                raise InvalidArgumentError(
                    f"{_WHO}: column {name!r} holds a {kind}, which is decoded when a row is read; give "
                    f"dataset.cast_column({name!r}, datasets.{kind}(decode=False)), and decode the bytes in map"
                )
            fill.setdefault(name, b"")
    return replace(reading, nulls=tuple(fill.items()))


def _within(feature: Any) -> Iterator[Any]:
    """A feature and those inside it."""
    yield feature
    inner: Any = ()
    if isinstance(feature, Mapping):
        inner = feature.values()
    elif isinstance(feature, list | tuple):
        inner = feature
    elif hasattr(feature, "feature"):
        inner = (feature.feature,)
    for each in inner:
        yield from _within(each)


def _plain_table(table: Any, features: Mapping[str, Any]) -> Any:
    """The table with arrays of several dimensions as fixed-size lists, which is what their features say."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if isinstance(column.type, pa.ExtensionType) and hasattr(features[name], "shape"):
            kind = _array_type(features[name])
            parts = [_fixed(chunk, features[name], name) for chunk in column.chunks]
            table = table.set_column(place, name, pa.chunked_array(parts, kind))
    return table


def _array_type(feature: Any) -> Any:
    kind = pa.from_numpy_dtype(np.dtype(feature.dtype))
    for size in reversed(feature.shape):
        kind = pa.large_list(kind) if size is None else pa.list_(kind, size)
    return kind


def _fixed(chunk: Any, feature: Any, name: str) -> Any:
    """Lists of lists that all have the sizes of the feature's shape."""
    values = [chunk.storage]
    for _ in feature.shape:
        values.append(values[-1].flatten())
    if any(each.null_count for each in values):
        raise InvalidArgumentError(f"{_WHO}: column {name!r} has nulls in an array; drop these rows")
    try:
        return chunk.storage.cast(_array_type(feature))
    except pa.ArrowInvalid:
        raise InvalidArgumentError(
            f"{_WHO}: column {name!r} holds arrays that have not the shape {feature.shape}"
        ) from None


@dataclass(frozen=True, eq=False, repr=False)
class _Shards(Format):
    """The shards of an `IterableDataset`, read as if they were files; `path` is "shard 3 of 8".

    Args:
      dataset: without a format.
      features: of its rows.
      reading: how columns are read.
      count: of shards.
      whole: which operations of the whole stream there are; empty: none.
      begun: what was read for the features.
    """

    name: ClassVar[str] = "huggingface"
    dataset: Any = field(repr=False)
    features: Any = field(repr=False)
    reading: Reading = field(repr=False)
    count: int = field(repr=False)
    whole: str = field(repr=False)
    begun: Begun = field(repr=False)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.features.items())
        return f"huggingface({columns}, {self.reading}{self.whole and f', whole={self.whole}'})"

    def spec(self, path: str | None) -> Spec:
        return self.reading.spec(_plain_table(self.features.arrow_schema.empty_table(), self.features).schema)

    def size(self, path: str) -> int:
        return 1

    def fragments(self, path: str) -> list[Fragment]:
        return [Fragment(path, self.start(), None, None, 1)]

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        plain = (_plain_table(table, self.features) for table in self._tables(number_in(path)))
        batches = (batch for table in plain for batch in table.combine_chunks().to_batches())
        return self.reading.blocks(batches, self.spec(None), (position or self.start())["row"], 0, f"{path}:")

    def _tables(self, index: int) -> Iterator[Any]:
        """The rows of a shard as pyarrow Tables with the columns of the features."""
        schema = self.features.arrow_schema
        shard = self.dataset
        if self.count > 1:
            shard = shard.shard(num_shards=self.count, index=index)
        if getattr(getattr(shard, "_ex_iterable", None), "iter_arrow", None) is not None:
            for table in same_stream(shard, "arrow").iter(batch_size=_ROWS):
                yield table.select(schema.names).cast(schema)
            return
        begun = self.count == 1 and self.begun.has_items
        for rows in _batches(shard, self.begun, sampling=False) if begun else shard.iter(batch_size=_ROWS):
            try:
                yield pa.table({name: self._column(rows[name], name) for name in schema.names}, schema=schema)
            except KeyError as error:
                raise InvalidArgumentError(f"{_WHO}: rows have no column {error}, which the features name") from None
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise InvalidArgumentError(f"{_WHO}: rows do not fit the features {self.features}: {error}") from error

    def _column(self, values: Any, name: str) -> Any:
        kind = self.features.arrow_schema.field(name).type
        if isinstance(kind, pa.ExtensionType):
            return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
        encode = self.features[name]
        if hasattr(encode, "str2int"):  # a class label may come as its name
            values = [encode.encode_example(value) for value in values]
        return pa.array(values, kind)
