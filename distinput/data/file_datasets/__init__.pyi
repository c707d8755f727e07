# SPDX-License-Identifier: Apache-2.0
# Written by docs/make_stub.py from the formats; do not change it by hand.

from collections.abc import Mapping, Sequence
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import Constructor
from distinput.plan.options import SkipErrors

DATASETS: dict[str, Constructor]

class ArrayRecordDataset(Dataset[bytes]):
    """The records of ArrayRecord files, as bytes; the extra `arrayrecord` installs the package that reads them.

    Records are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. Files are local.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package `array_record` is not installed.
      DataLossError: a file is damaged or cut short.
      UnimplementedError: a file is not local.

    Source: the format of the library array_record, which Grain reads.
    """

    def __init__(
        self,
        filenames: Any,
        *,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class ArrowDataset(Dataset[dict[str, Any]]):
    """The rows of Arrow IPC files ("Feather version 2") or streams, as dicts from column name to value.

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages; columns that are not read cost nothing. Compressed files, and those that are
    not local, are read a record batch at a time. A stream has no list of its batches: those of a local stream are found without
    reading the values, those of a remote one only as it is read. The types are those of Parquet files. Files must not be
    written in place while they are read; replace them by renaming, as `io.write_arrow` does.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      columns: names of the columns wanted; all when None.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      nulls: what becomes of nulls for which NumPy has no value: it has NaN and NaT. None: where the first file holds some,
        there stand a value and a mark, see `Nullable`; a null at another place, in a later file, is an error. "error": each is
        one. "valid": `x_valid` beside `x` tells them. A dict has what to put in their place, by column; a null list becomes an
        empty one.
      trusted: skip the check made once for each record batch, before its values are used: that its offsets, views and
        indices stay within it. A damaged file may then end the process, or yield values that it does not contain.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; random access reads whole record batches.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      schema: the columns of all files: a dict of types by column, a pyarrow Schema, or "union", that of all files together.
        What a file lacks is null there, as `nulls` has it, and numbers become wider ones. None: that of the first.
      valid: where nulls are told, in all files: a list of columns, whose values and marks are a `Nullable`, or a dict from
        columns to the names of their marks. "s.a" is field a of a struct, and "x[]" are the items of lists.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: an option has an invalid value.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.io.write_arrow("a.arrow", {"x": np.arange(3), "y": [b"a", b"", b"ccc"]})
    >>> di.data.ArrowDataset("a.arrow").to_list()
    [{'x': 0, 'y': b'a'}, {'x': 1, 'y': b''}, {'x': 2, 'y': b'ccc'}]
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        num_parallel_reads: int | None = None,
        nulls: Any = None,
        trusted: bool = False,
        *,
        memory_map: bool = True,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        schema: Any = None,
        valid: Mapping[str, str] | Sequence[str] | None = None,
        partitioning: Any = 'hive',
        text: str = 'bytes',
        nested: str = 'columns',
        decimals: str = 'text',
    ) -> None: ...

class AudioDataset(Dataset[dict[str, Any]]):
    """Windows of audio: dicts with the samples, the sample rate, the time of the first sample, and the path of the file.

    `samples` is float32 [samples, channels] between -1 and 1, `rate` int64, `start` float64 in seconds, `path` bytes. With
    `tail="pad"` there is also `mask`, bool [samples], false for those that only fill up a window. The samples are those that
    decoding the whole file from its beginning gives, wherever reading begins. Nothing is resampled.

    Windows are counted, and any of them is reached by its number, as those of videos. FLAC and WAV are read at once from any
    place on. Others, such as MP3, are decoded once to count samples. Since their decoders remember what they heard, windows
    that do not come in turn are decoded from the beginning of the file.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      seconds: in a window; it has the nearest number of samples.
      stride: seconds from the beginning of a window to that of the next; None: as many as a window has.
      tail: of the samples behind the last whole window: "drop" leaves them out; "pad" makes a window of them, and of a file
        that is shorter than a window, which zeros fill up.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package `av` is not installed.
      InvalidArgumentError: an option has an invalid value; or a file has no audio.
      DataLossError: a file is damaged or cut short; the message says at what time.

    >>> import distinput as di
    >>> di.data.AudioDataset(["a.flac", "b.wav"], seconds=0.5).element_spec["samples"]
    TensorSpec(shape=(None, None), dtype=float32)
    """

    def __init__(
        self,
        filenames: Any,
        seconds: float = 1.0,
        stride: float | None = None,
        tail: str = 'drop',
        *,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = 'hive',
    ) -> None: ...

class FixedLengthRecordDataset(Dataset[bytes]):
    """Records of `record_bytes` bytes each.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      record_bytes: bytes in a record, at least 1; those of the decompressed file.
      header_bytes: bytes to leave out at the beginning of each file.
      footer_bytes: bytes to leave out at the end of each file.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      InvalidArgumentError: a number is too small, or the compression is unknown; at iteration, a file is not a whole number of
        records.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.bin").write_bytes(b"HEADaabb")
    >>> list(di.data.FixedLengthRecordDataset("a.bin", 2, header_bytes=4))
    [b'aa', b'bb']

    Source: the meaning is that of `tf.data.FixedLengthRecordDataset`.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class JsonLinesDataset(Dataset[dict[str, Any]]):
    r"""The objects in files of JSON Lines, one a line, as dicts from key to value.

    The types of keys are stated by `schema`, or inferred from the first megabyte of the first file; then they hold for all
    files, and a value that does not fit is an error with file, line and key. An inferred type changes no number: integers are
    int64 or uint64, or float64 if each of them is one. Text becomes its UTF-8 bytes, an array a row of varying length, an
    object a dict. A key that is missing is a null. Lines of white space are passed over.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      schema: types by key, of which a dict may leave some out, or a pyarrow Schema. A `TensorSpec` with a shape is an array of
        this shape.
      columns: the keys to read; others are passed over. All when None, and a key that the schema does not have is an error.
      compression_type: "" for none, "GZIP" or another codec; None and "AUTO" go by the suffix of each name.
      nulls: a dict with what to put in the place of missing values, by key; "error": one is an error. None: where the first
        megabyte has some, other than numbers that become float64, values are dicts of `value` and `valid`.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      index: true to count records and reach them by their numbers: the cardinality is known, `skip`, a shard and a restart go
        to their place, `global_shuffle` works, and policies DATA and BALANCED read nothing of other workers. An index is built
        when it is first needed, by reading the file once, and kept beside the file, under a hidden name; a path is a folder to
        keep it in. `distinput.io.write_index` builds it ahead.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      valid: a list of what may be null, such as "x", "s.a" for field a of an object, or "x[]" for values of arrays.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Raises:
      InvalidArgumentError: an option has an invalid value; at iteration, an object does not fit.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.jsonl").write_text('{"id": 1, "tags": ["x", "y"]}\n{"id": 2, "tags": []}\n')
    >>> di.data.JsonLinesDataset("a.jsonl").to_list()
    [{'id': 1, 'tags': [b'x', b'y']}, {'id': 2, 'tags': []}]

    Source: jsonlines.org; RFC 8259.
    """

    def __init__(
        self,
        filenames: Any,
        schema: Any = None,
        columns: Sequence[str] | None = None,
        compression_type: str | None = None,
        nulls: Any = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = 'hive',
        valid: Any = None,
        text: str = 'bytes',
        nested: str = 'columns',
        decimals: str = 'text',
    ) -> None: ...

class LitDataDataset(Dataset[Any]):
    """The items of folders that LitData's `optimize` wrote, as the dicts, tuples or single values that they were.

    Items are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and restarts
    go straight to their place. Compressed chunks, and those that keep their rows as an Arrow table, are in memory as a whole
    while they are read.

    Numbers are scalars, arrays of NumPy and PyTorch arrays, `pil` arrays of uint8 [height, width, channels]. Text, files and
    encoded images are bytes, as they are. Lists of a known length are tuples. Nothing is unpickled.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      block_size: of chunks of tokens: elements are so many tokens, as `TokensLoader(block_size)` gives them, and what is left
        of a chunk is dropped. None: an element is what one call of the writer's function gave.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      nulls: of chunks that keep their rows as an Arrow table: a dict with what to put in the place of nulls, by column;
        "error": each for which NumPy has no value is one.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a folder has no `index.json`, or a chunk that it names is not there.
      DataLossError: the index or a chunk is damaged, or they do not agree.
      UnimplementedError: chunks are encrypted, or of Parquet; a value is pickled, or of an encoding that is not known.
      InvalidArgumentError: the index does not name the file; `block_size` is given for items that are no tokens.

    Source: the layout is that of `BinaryWriter` in LitData.
    """

    def __init__(
        self,
        filenames: Any,
        block_size: int | None = None,
        num_parallel_reads: int | None = None,
        nulls: Any = 'error',
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class MdsDataset(Dataset[dict[str, Any]]):
    """The samples of folders in MDS, the format of MosaicML Streaming, as dicts in the order of the columns in `index.json`.

    Samples are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. Compressed shards are in memory as a whole while they are read.

    Numbers are scalars, `ndarray` arrays, `pil` arrays of uint8 [height, width, channels]. `str`, `json`, `jpeg`, `png` and
    decimal texts (`str_int`) are bytes, as they are. Nothing is unpickled.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a folder has no `index.json`, or a shard that it names is not there.
      DataLossError: the index or a shard is damaged, or they do not agree.
      UnimplementedError: a column of `pkl`, an encoding, compression or version that is not known.
      InvalidArgumentError: the index does not name the file.

    Source: the layout is that of `MDSWriter` in MosaicML Streaming, version 2.
    """

    def __init__(
        self,
        filenames: Any,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class MegatronDataset(Dataset[Any]):
    """The sequences of Megatron's indexed datasets: of each `.bin`, whose index `.idx` stands beside it, arrays [length].

    Sequences are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. The index of a file is in memory while it is read, 12 bytes a sequence.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      documents: records are whole documents, each the tokens of all its sequences.
      multimodal: records are pairs of a sequence and its mode, an int8, which the index of such files has.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file, or its index, is not there.
      DataLossError: an index is damaged, or the tokens it names are not there.
      InvalidArgumentError: an index is named instead of its tokens; both options are given, or an index has no modes.
      UnimplementedError: an index of another kind; or the sequences of a document do not lie one after the other.

    >>> import distinput as di
    >>> di.io.write_megatron("corpus.bin", [[[5, 6, 7], [8]], [[9]]], documents=True)
    3
    >>> di.data.MegatronDataset("corpus.bin").to_list()
    [[5, 6, 7], [8], [9]]
    >>> di.data.MegatronDataset("corpus.bin", documents=True).to_list()
    [[5, 6, 7, 8], [9]]

    Source: the layout is that of `IndexedDataset` in Megatron-LM, version 1.
    """

    def __init__(
        self,
        filenames: Any,
        documents: bool = False,
        multimodal: bool = False,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class NpyDataset(Dataset[Any]):
    """The rows, along the first axis, of arrays in `.npy` files: [n, ...] is n records [...].

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages. `Dataset.zip` puts the rows of several arrays together. Files must not be
    written in place while they are read; replace them by renaming. Numbers of any byte order, booleans and times are read, in
    native byte order.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; random access costs a read for each run of rows.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file is not there.
      UnimplementedError: an array of text, of objects, of several fields, or stored column by column.

    >>> import distinput as di
    >>> import numpy as np
    >>> np.save("images.npy", np.arange(6).reshape(3, 2))
    >>> np.save("labels.npy", np.array([7, 8, 9]))
    >>> pairs = di.data.Dataset.zip(di.data.NpyDataset("images.npy"), di.data.NpyDataset("labels.npy"))
    >>> pairs.to_list()
    [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]

    Source: the format is that of `numpy.lib.format`, versions 1 to 3.
    """

    def __init__(
        self,
        filenames: Any,
        num_parallel_reads: int | None = None,
        *,
        memory_map: bool = True,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class NpzDataset(Dataset[dict[str, Any]]):
    """The rows, along the first axis, of the arrays in `.npz` archives, as dicts by the names of the arrays.

    All arrays must have equally many rows. Local archives that `numpy.savez` wrote are mapped into memory: any rows in any
    order cost no more than they do in memory. What `savez_compressed` wrote, and what is not local, is in memory as a whole.
    Nothing is unpickled.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      columns: names of the arrays wanted; all when None.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; arrays are read as a whole.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: arrays have different numbers of rows, or take more memory than 4 GiB.
      UnimplementedError: an array of text or of objects.

    >>> import distinput as di
    >>> import numpy as np
    >>> np.savez("train.npz", x=np.arange(6).reshape(3, 2), y=np.array([7, 8, 9]))
    >>> di.data.NpzDataset("train.npz").to_list()
    [{'x': [0, 1], 'y': 7}, {'x': [2, 3], 'y': 8}, {'x': [4, 5], 'y': 9}]

    Source: the format of `numpy.savez`.
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        *,
        memory_map: bool = True,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = 'hive',
    ) -> None: ...

class ParquetDataset(Dataset[dict[str, Any]]):
    """The rows of Parquet files, as dicts from column name to value.

    Only the named columns are read. Rows can be counted and reached by position from the files' footers. Numbers, booleans and
    times become arrays; strings and binary values become bytes, lists rows of varying length, lists of lists ragged tensors,
    fixed-size lists an additional axis, and structs dicts; dictionary-encoded values are decoded.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      columns: names of the columns wanted; all when None.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      nulls: what becomes of nulls for which NumPy has no value: it has NaN and NaT. None: where the first file holds some,
        there stand a value and a mark, see `Nullable`; a null at another place, in a later file, is an error. "error": each is
        one. "valid": `x_valid` beside `x` tells them. A dict has what to put in their place, by column; a null list becomes an
        empty one.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      schema: the columns of all files: a dict of types by column, a pyarrow Schema, or "union", that of all files together.
        What a file lacks is null there, as `nulls` has it, and numbers become wider ones. None: that of the first.
      valid: where nulls are told, in all files: a list of columns, whose values and marks are a `Nullable`, or a dict from
        columns to the names of their marks. "s.a" is field a of a struct, and "x[]" are the items of lists.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: an option has an invalid value.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.io.write_parquet("a.parquet", {"x": np.arange(3), "y": np.ones(3)})
    >>> di.data.ParquetDataset("a.parquet", columns=["x"]).to_list()
    [{'x': 0}, {'x': 1}, {'x': 2}]
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        num_parallel_reads: int | None = None,
        nulls: Any = None,
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        schema: Any = None,
        valid: Mapping[str, str] | Sequence[str] | None = None,
        partitioning: Any = 'hive',
        text: str = 'bytes',
        nested: str = 'columns',
        decimals: str = 'text',
    ) -> None: ...

class TFRecordDataset(Dataset[bytes]):
    """The records of TFRecord files, as bytes; both checksums of each are checked.

    An index that `distinput.io.write_tfrecord_index`, or a script `tfrecord2idx`, has written beside a file is used.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      index: true to count records and reach them by their numbers: the cardinality is known, `skip`, a shard and a restart go
        to their place, `global_shuffle` works, and policies DATA and BALANCED read nothing of other workers. An index is built
        when it is first needed, by reading the file once, and kept beside the file, under a hidden name; a path is a folder to
        keep it in. `distinput.io.write_index` builds it ahead.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: at iteration, a file is not there.
      OSError: with an index, it cannot be written.
      InvalidArgumentError: an index and a compression, or an unknown compression.
      DataLossError: at iteration, a checksum differs or a file ends inside a record.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     writer.write(b"one")
    >>> list(di.data.TFRecordDataset("a.tfrecord"))
    [b'one']

    Source: the meaning is that of `tf.data.TFRecordDataset`.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None: ...

class TextLineDataset(Dataset[bytes]):
    r"""The lines of text files, as bytes without their line ends.

    A trailing "\r" is stripped too; a last line without newline counts, unless it is empty; an empty line is an empty string;
    an empty file gives nothing.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      index: true to count records and reach them by their numbers: the cardinality is known, `skip`, a shard and a restart go
        to their place, `global_shuffle` works, and policies DATA and BALANCED read nothing of other workers. An index is built
        when it is first needed, by reading the file once, and kept beside the file, under a hidden name; a path is a folder to
        keep it in. `distinput.io.write_index` builds it ahead.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      text: "bytes"; or "str": `as_text` behind the reader.

    Raises:
      NotFoundError: at iteration, a file is not there.
      InvalidArgumentError: the compression is unknown.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\r\nthree")
    >>> list(di.data.TextLineDataset("a.txt"))
    [b'one', b'two', b'three']

    Source: the meaning is that of `tf.data.TextLineDataset`.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        text: str = 'bytes',
    ) -> None: ...

class VideoDataset(Dataset[dict[str, Any]]):
    """Windows of videos: dicts with the pixels of consecutive frames, their times, and the path of the file.

    `frames` is uint8 [frames, height, width, 3] in RGB, `times` float64 [frames] in seconds as the file says them, `path`
    bytes. With `tail="pad"` there is also `mask`, bool [frames], false for frames that only fill up a window. The frames are
    those that decoding the whole file from its beginning gives, wherever reading begins. They are turned as players turn them.

    Windows are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. To count them, a file is read once. It is not decoded if its container tells the times
    of frames, as MP4, MOV, Matroska, WebM and MPEG-TS do. Others, such as AVI, are decoded from their beginning.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      frames: in a window.
      stride: frames from the beginning of a window to that of the next; None: as many as a window reaches over.
      step: frames from each frame of a window to the next one.
      tail: of the frames behind the last whole window: "drop" leaves them out; "pad" makes a window of them, and of a file
        that is shorter than a window, in which the last frame is repeated.
      resize: (height, width) to which frames are scaled; None: as they are. Files may then differ.
      device: where torchcodec decodes, such as "cuda" or "cpu"; elements are in the memory of the host. None: PyAV decodes.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package that decodes is not installed.
      InvalidArgumentError: an option has an invalid value; or a file has no video.
      DataLossError: a file is damaged or cut short; the message says at what time.
      UnimplementedError: the size of frames changes within a window.

    >>> import distinput as di
    >>> videos = di.data.VideoDataset(["a.mp4", "b.mp4"], frames=8, step=2, resize=(112, 112))
    >>> videos.element_spec["frames"]
    TensorSpec(shape=(8, 112, 112, 3), dtype=uint8)
    """

    def __init__(
        self,
        filenames: Any,
        frames: int = 16,
        stride: int | None = None,
        step: int = 1,
        tail: str = 'drop',
        resize: tuple[int, int] | None = None,
        *,
        device: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = 'hive',
    ) -> None: ...
