# SPDX-License-Identifier: Apache-2.0
"""Batches from files of records in one call: read, shuffled, repeated, batched and parsed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.tf_record import TFRecordDataset
from distinput.errors import InvalidArgumentError
from distinput.formats.features import Feature
from distinput.plan.check import AUTOTUNE, at_least, callable_argument
from distinput.plan.options import Options

__all__ = ["make_batched_features_dataset", "make_tf_record_dataset"]

_SHUFFLED = 10_000
"""Records among which the next is drawn."""

_READ_AT_ONCE = 24
"""Files that are read at a time, as many as in TensorFlow, since their number decides the order."""


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Feature],
    reader: Callable[..., Dataset[Any]] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = _SHUFFLED,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset[Any]:
    """Batches of parsed Examples: dicts, or tuples of a dict and a label.

    Args:
      file_pattern: as for `Dataset.list_files`.
      batch_size: records in a batch.
      features: the features to parse by name, as for `parse_example`.
      reader: (file name, *reader_args) -> dataset of records; `TFRecordDataset` when None.
      label_key: the feature that becomes the second item of a tuple.
      reader_args: further arguments of `reader`.
      num_epochs: passes over the data; None: without an end. Then all batches are full.
      shuffle: draw files and records in random order.
      shuffle_buffer_size: records among which the next is drawn.
      shuffle_seed: any integer; None draws one.
      prefetch_buffer_size: batches made ahead; None chooses.
      reader_num_threads: files read at a time, whose records take turns; 1 when None.
      parser_num_threads: accepted as TensorFlow's: all records of a block are parsed by one call of compiled code.
      sloppy_ordering: True: whichever file has a record ready comes next.
      drop_final_batch: leave out a last batch that is not full.

    Raises:
      InvalidArgumentError: `label_key` is no feature.
      NoMatchError: no file matches.
      TypeError: `reader` is not callable.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     for i in range(3):
    ...         writer.write(di.io.encode_example({"x": i, "y": float(i)}))
    >>> features = {"x": di.io.FixedLenFeature([], "int64"), "y": di.io.FixedLenFeature([], "float32")}
    >>> di.data.experimental.make_batched_features_dataset(
    ...     "*.tfrecord", 2, features, label_key="y", num_epochs=1, shuffle=False
    ... ).to_list()
    [({'x': [0, 1]}, [0.0, 1.0]), ({'x': [2]}, [2.0])]

    Source: `tf.data.experimental.make_batched_features_dataset`.
    """
    if label_key is not None and label_key not in features:
        raise InvalidArgumentError(
            f"make_batched_features_dataset: label_key must be one of the features, {', '.join(sorted(features))}; got "
            f"{label_key!r}"
        )
    threads = 1 if reader_num_threads is None else reader_num_threads
    if threads != AUTOTUNE:
        at_least("make_batched_features_dataset", "reader_num_threads", threads, 1)
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    records = _read(files, reader, tuple(reader_args or ()), threads)
    if sloppy_ordering:
        options = Options()
        options.deterministic = False
        records = records.with_options(options)
    records = _shuffled_and_repeated(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    parsed: Dataset[Any] = batches.parse_example(features, parser_num_threads)
    if label_key is not None:
        spec = _labelled(label_key, parsed.element_spec)
        parsed = parsed.map(partial(_labelled, label_key), output_signature=spec)
    return parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _labelled(label_key: str, found: dict[str, Any]) -> Any:
    """The features without one of them, and that one."""
    return {key: value for key, value in found.items() if key != label_key}, found[label_key]


def make_tf_record_dataset(
    file_pattern: Any,
    batch_size: int,
    parser_fn: Callable[..., Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int | None = None,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    num_parallel_parser_calls: int | None = None,
    drop_final_batch: bool = False,
) -> Dataset[Any]:
    """Batches of the records of TFRecord files, parsed by a function.

    Args:
      file_pattern: as for `Dataset.list_files`.
      batch_size: records in a batch.
      parser_fn: record -> element; records stay bytes when None.
      num_epochs: passes over the data; None: without an end. Then all batches are full.
      shuffle: draw files and records in random order.
      shuffle_buffer_size: records among which the next is drawn; 10,000 when None.
      shuffle_seed: any integer; None draws one.
      prefetch_buffer_size: batches made ahead; None chooses, 0: none.
      num_parallel_reads: files read at a time, whose records take turns; 24 when None.
      num_parallel_parser_calls: as `num_parallel_calls` of `map`; one after the other when None.
      drop_final_batch: leave out a last batch that is not full.

    Raises:
      NoMatchError: no file matches.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     for i in range(3):
    ...         writer.write(b"%d" % i)
    >>> di.data.experimental.make_tf_record_dataset("*.tfrecord", 2, int, num_epochs=1, shuffle=False).to_list()
    [[0, 1], [2]]

    Source: `make_tf_record_dataset` of tensorflow/python/data/experimental/ops/readers.py.
    """
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    reads = _READ_AT_ONCE if num_parallel_reads is None else num_parallel_reads
    records: Dataset[Any] = TFRecordDataset(files, num_parallel_reads=reads)
    buffer_size = _SHUFFLED if shuffle_buffer_size is None else shuffle_buffer_size
    records = _shuffled_and_repeated(records, num_epochs, shuffle, buffer_size, shuffle_seed)
    if parser_fn is not None:
        records = records.map(parser_fn, num_parallel_parser_calls)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    if prefetch_buffer_size == 0:
        return batches
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _read(
    files: Dataset[Any], reader: Callable[..., Dataset[Any]] | None, arguments: tuple[Any, ...], threads: int
) -> Dataset[Any]:
    """The records of files, by one reader after the other or by several in turns."""
    if reader is None and threads == 1:
        return TFRecordDataset(files, *arguments)
    read: Callable[..., Dataset[Any]] = TFRecordDataset if reader is None else reader
    callable_argument("make_batched_features_dataset", "reader", read)
    if threads == 1:
        return files.flat_map(lambda name: read(name, *arguments))
    cycle = None if threads == AUTOTUNE else threads
    return files.interleave(lambda name: read(name, *arguments), cycle, num_parallel_calls=threads)


def _shuffled_and_repeated(
    records: Dataset[Any], num_epochs: int | None, shuffle: bool, buffer_size: int, seed: int | None
) -> Dataset[Any]:
    if shuffle:
        records = records.shuffle(buffer_size, seed)
    return records if num_epochs == 1 else records.repeat(num_epochs)
