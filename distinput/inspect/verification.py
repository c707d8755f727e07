# SPDX-License-Identifier: Apache-2.0
"""Whether files are what they should be: as their manifest says, readable to the end, and complete for all workers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, Self

import numpy as np
import pyarrow as pa

from distinput.arrow.arrow import fields_of_map, is_held
from distinput.arrow.validity import zero_of
from distinput.data.dataset import Dataset
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.files.folder import MANIFEST, names_in
from distinput.files.manifest import load_manifest
from distinput.files.source import size_of, version_of
from distinput.formats.parquet import Parquet
from distinput.formats.parquet_file import check_alone
from distinput.formats.table_batches import is_table, schema_of_table, table_batches
from distinput.inspect.files import Files, open_files
from distinput.inspect.records import Record, records_of
from distinput.names.lazy import dataclass
from distinput.names.words import shown
from distinput.sharding.policies import auto_shard
from distinput.url_secrets import without_secrets
from distinput.values.nest import structure_of
from distinput.writers.manifest import checksum_of

# ----------------------------------------------------------------------------
# Whether two sets of files, of any formats, hold the same records in the same order.
# ----------------------------------------------------------------------------


def first_difference(files: Files, others: Files) -> tuple[str | None, str] | None:
    """The first record that differs: its file, and what is wrong; None if there is none.

    Values are compared, not their types: an array of one value is that value, and what is missing is None, NaN, an empty list
    or a key that is not there, since formats write it in different ways.

    Args:
      files: the files.
      others: what their records should be.
    """
    for number, (one, other) in enumerate(zip_longest(_all(files), _all(others))):
        if one is None:
            return None, f"ends after {number} records, and the other files have more: {other.file}, record {other.row}"
        if other is None:
            return one.file, f"record {one.row} is one more than the other files have, which end after {number}"
        if not same(one.value, other.value):
            part = _part(one.value, other.value)
            return one.file, f"record {one.row} is not record {other.row} of {other.file}: {part}"
    return None


def _all(files: Files) -> Iterator[Record]:
    for path in files.paths:
        yield from records_of(files, path)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same.

    >>> same({"x": [7], "y": None}, {"x": 7}), same(b"a", "a"), same([1, 2], [2, 1])
    (True, True, False)
    """
    one, other = _plain(one), _plain(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(key), other.get(key)) for key in {**one, **other})
    if isinstance(one, dict) != isinstance(other, dict):  # a record without parts is written as the column "value"
        held, bare = (one, other) if isinstance(one, dict) else (other, one)
        return list(held) == ["value"] and same(held["value"], bare)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, list) or isinstance(other, list):
        items, bare = (one, other) if isinstance(one, list) else (other, one)
        return same(items[0], bare) if len(items) == 1 else not items and _missing(bare)
    if {type(one), type(other)} == {Decimal, bytes}:  # most formats hold the text of the digits
        one, other = [f"{each:f}".encode() if isinstance(each, Decimal) else each for each in (one, other)]
    return bool(one == other) or (_missing(one) and _missing(other))


def _missing(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, float) and value != value)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_list"):
        return value.to_list()
    if hasattr(value, "tolist"):
        return value.tolist()
    if type(value) is date:
        return datetime.combine(value, time())
    return value.encode() if isinstance(value, str) else value


def _part(one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            if not same(one.get(key), other.get(key)):
                return f"{key!r} is {shown(_plain(one.get(key)))}, not {shown(_plain(other.get(key)))}"
    return f"it is {shown(_plain(one))}, not {shown(_plain(other))}"


# ----------------------------------------------------------------------------
# A digest of many elements in which their order does not count: what parts have together is the sum of their digests.
# ----------------------------------------------------------------------------


_BITS = 128


@dataclass(frozen=True)
class RowsDigest:
    """How many elements there are, and the sum of their hashes.

    >>> RowsDigest.of([1, 2, 2]) == RowsDigest.of([2]) + RowsDigest.of([2, 1])
    True
    >>> RowsDigest.of([1, 2, 2]) == RowsDigest.of([1, 1, 2])
    False

    Source: the multiset hash of sums, Clarke et al., "Incremental multiset hash functions and their application to memory
    integrity checking" (2003).
    """

    rows: int = 0
    total: int = 0

    @classmethod
    def of(cls, elements: Iterable[Any]) -> Self:
        """The digest of elements."""
        rows = total = 0
        for element in elements:
            total += hash_of(element)
            rows += 1
        return cls(rows, total % (1 << _BITS))

    def __add__(self, other: "RowsDigest") -> "RowsDigest":
        return RowsDigest(self.rows + other.rows, (self.total + other.total) % (1 << _BITS))


def hash_of(element: Any) -> int:
    """The hash of an element: of its structure, and of the dtype, shape and bits of each leaf."""
    structure = structure_of(element)
    made = blake2b(digest_size=_BITS // 8)
    if not structure.is_leaf:
        made.update(repr(structure.keys).encode())
    for leaf in [element] if structure.is_leaf else structure.flatten(element):
        _add(made, leaf)
    return int.from_bytes(made.digest(), "little")


def _add(made: Any, leaf: Any) -> None:
    if isinstance(leaf, bytes):
        made.update(b"b%d:" % len(leaf) + leaf)
        return
    if hasattr(leaf, "nested_row_splits"):  # a ragged tensor
        made.update(repr([each.tolist() for each in leaf.nested_row_splits]).encode())
        leaf = leaf.flat_values
    array = np.asarray(leaf)
    made.update(f"{array.dtype.str}{array.shape}:".encode())
    if array.dtype.hasobject:
        for item in array.reshape(-1).tolist():
            _add(made, item if isinstance(item, bytes) else repr(item).encode())
    else:
        made.update(array.tobytes())


@dataclass(frozen=True)
class Finding:
    """Something that does not hold.

    Attributes:
      file: the path, of a URL without its secrets; None if it is not that of one file.
      check: "manifest", "size", "checksum", "records", "workers" or "against".
      problem: what is wrong.
    """

    file: str | None
    check: str
    problem: str

    def __post_init__(self) -> None:
        if self.file is not None:
            object.__setattr__(self, "file", without_secrets(self.file))
        object.__setattr__(self, "problem", without_secrets(self.problem))


@dataclass(frozen=True)
class Verified:
    """What was checked, and what was found.

    Attributes:
      files: how many.
      records: in all files that could be read.
      checked: what was compared, in words.
      findings: what does not hold; empty if all is well.
    """

    files: int
    records: int
    checked: tuple[str, ...]
    findings: tuple[Finding, ...]


def verify(
    filenames: Any,
    format: str | None = None,
    *,
    manifest: str | None = None,
    workers: Sequence[int] = (2,),
    against: Any = None,
    against_format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Verified:
    """Check files, and say all that is wrong with them.

    * A folder that `Dataset.write` has written: each file has the size, the checksum and the records that its manifest says.
    * Every record can be read, which includes the checksums of TFRecord files and of the pages of Parquet files.
    * The workers of a job together read every record exactly once, as the sharding of `distribute` gives them out.
    * With `manifest`, a list that `save_manifest` has saved: the files are there, and none has changed since.
    * With `against`: the records are those of other files, of any format, one by one.

    Args:
      filenames: a path, pattern or directory, or a list of them.
      format: the name of their format; None: it is recognised.
      manifest: the path of a list of files.
      workers: numbers of workers; each is tried.
      against: paths of other files with the same records.
      against_format: their format; None: it is recognised.
      storage_options: for the file systems that the URLs name.
      **options: of the format.

    Raises:
      NotFoundError: there is no file at all, or no manifest of this name.
      InvalidArgumentError: the format is not recognised.

    >>> import pathlib
    >>> import distinput as di
    >>> written = di.data.Dataset.range(100).write("hundred", "parquet", shards=2)
    >>> verify("hundred").findings
    ()
    >>> file = pathlib.Path(written.paths[1])
    >>> _ = file.write_bytes(file.read_bytes().replace(b"PAR1", b"PAR2", 1))
    >>> print(verify("hundred").findings[0].problem)
    its checksum is ..., and distinput-manifest.json says ...; it was changed after it was written

    Source: for workers, sums of hashes as digests of multisets: Clarke et al., "Incremental multiset hash functions" (2003).
    """
    files = open_files(filenames, format, storage_options=storage_options, **options)
    checked, findings = list[str](), list[Finding]()
    if files.written is not None:
        checked.append(f"sizes, checksums and records of {MANIFEST}")
        findings += _of_written(files)
    if manifest is not None:
        checked.append(f"sizes and versions of {without_secrets(manifest)}")
        findings += _of_manifest(files, manifest)
    checked.append("whether every record can be read")
    rows = [_read(files, path) for path in files.paths]
    findings += [found for _, found in rows if found is not None]
    if files.written is not None:
        findings += [
            Finding(path, "records", f"has {count} records, and {MANIFEST} says {file.rows}")
            for path, file, (count, broken) in zip(files.paths, files.written.files, rows, strict=True)
            if broken is None and count != file.rows
        ]
    if not findings:
        for number in workers:
            checked.append(
                f"whether {number} worker{'s' * (number != 1)} together read{'s' * (number == 1)} every record once"
            )
            findings += _of_workers(files, number)
    if against is not None:
        checked.append("whether the records are those of the other files")
        difference = first_difference(files, open_files(against, against_format, storage_options=storage_options))
        findings += [] if difference is None else [Finding(difference[0], "against", difference[1])]
    return Verified(len(files.paths), sum(count for count, _ in rows), tuple(checked), tuple(findings))


def _of_written(files: Files) -> Iterator[Finding]:
    """Differences to the manifest of a written folder."""
    manifest = files.written
    assert manifest is not None
    for path, file in zip(files.paths, manifest.files, strict=True):
        try:
            size = size_of(path)
            if size != file.bytes:
                yield Finding(path, "size", f"has {size} bytes, and {MANIFEST} says {file.bytes}")
            elif (sum32 := checksum_of(path)) != file.crc32:
                why = f"its checksum is {sum32:#010x}, and {MANIFEST} says {file.crc32:#010x}"
                yield Finding(path, "checksum", f"{why}; it was changed after it was written")
        except OSError as error:
            yield Finding(path, "manifest", f"{MANIFEST} lists it, and it cannot be read: {error}")
    ending = files.paths[0].rpartition(".")[2] if files.paths else ""
    known = {file.name for file in manifest.files}
    for name in names_in(manifest.directory):
        if name not in known and name.endswith(f".{ending}") and not name.startswith((".", "_")):
            yield Finding(
                name, "manifest", f"lies beside the files of {MANIFEST}, which does not list it; it is not read"
            )


def _of_manifest(files: Files, manifest: str) -> Iterator[Finding]:
    """Differences to a list that `save_manifest` has saved."""
    table = load_manifest(manifest)
    numbers = {table.path(number): number for number in range(len(table))}
    for path, number in numbers.items():
        try:
            size, version = size_of(path), version_of(path)
        except OSError as error:
            yield Finding(path, "manifest", f"{manifest} lists it, and it cannot be read: {error}")
            continue
        if size != int(table.sizes[number]):
            yield Finding(path, "size", f"has {size} bytes, and {manifest} says {int(table.sizes[number])}")
        elif table.stamps is not None and version.encode() != bytes(table.stamps.row(number)):
            yield Finding(path, "manifest", f"was changed after {manifest} was saved")
    for path in files.paths:
        if path not in numbers:
            yield Finding(path, "manifest", f"is not in {manifest}")


def _read(files: Files, path: str) -> tuple[int, Finding | None]:
    """How many records of a file can be read, and what stops."""
    rows = 0
    try:
        if isinstance(getattr(files.format, "inner", files.format), Parquet):
            check_alone(path)
        if is_table(files.format):
            for batch in table_batches(files.format, path):
                rows += batch.num_rows
        else:
            for block, _ in files.format.read(path):
                rows += block.size
    except (DistinputError, OSError) as error:
        return rows, Finding(
            path,
            "records",
            f"cannot be read behind its first {rows} records: {error}" if rows else f"cannot be read: {error}",
        )
    return rows, None


def _as_arrays(files: Files) -> dict[str, Any]:
    """Options with which a dataset has all of the files that arrays can hold: nulls are no damage, nor are other types."""
    schema = schema_of_table(files.format, files.paths[0])
    if schema is None:
        return {}
    fields = [field for field in schema if is_held(field.type)]
    nulls = {name: value for field in fields for name, value in _replacements(field.name, field.type)}
    return {"columns": [field.name for field in fields], "nulls": nulls}


def _replacements(name: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """What takes the place of nulls, by column and field of a struct, also of one in lists; `()` is an empty list."""
    inner = kind
    while hasattr(inner, "value_type"):
        inner = inner.value_type
    if isinstance(inner, pa.StructType | pa.MapType):
        if inner is not kind or isinstance(inner, pa.MapType):
            yield name, ()
        for field in fields_of_map(inner) if isinstance(inner, pa.MapType) else inner:
            yield from _replacements(f"{name}.{field.name}", field.type)
    elif (value := zero_of(kind)) is not None:
        yield name, value


def _of_workers(files: Files, number: int) -> Iterator[Finding]:
    """What the workers of a job read more or less than there is."""
    if number < 1:
        raise InvalidArgumentError(f"verify: workers must be at least 1, got {number}")
    try:
        dataset = files.dataset(**_as_arrays(files))
        whole = RowsDigest.of(dataset)
        parts = [RowsDigest.of(Dataset(auto_shard(dataset.node, number, worker))) for worker in range(number)]
    except DistinputError as error:
        yield Finding(None, "workers", f"{number} workers cannot read the records: {error}")
        return
    together = sum(parts, RowsDigest())
    if together.rows != whole.rows:
        read = [part.rows for part in parts]
        yield Finding(None, "workers", f"{number} workers read {together.rows} records of {whole.rows}: {read}")
    elif together != whole:
        yield Finding(
            None, "workers", f"{number} workers read other records than those of the files, as many as there are"
        )
