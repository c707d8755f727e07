# SPDX-License-Identifier: Apache-2.0
"""An error of Python itself in our own readers is our defect: it comes out as itself, and is never taken for bad data."""

import importlib
import io
import types
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.decoders.json import decode_json
from distinput.distribute.rpc.client import decoded, encoded
from distinput.files.manifest import load_manifest, save_manifest
from distinput.formats.arrow_file import arrow_file
from distinput.ops.scan import decode_value, encode_value
from distinput.train.checkpoint_file import CheckpointFile, write_checkpoint
from distinput.train.manager import CheckpointIndex
from distinput.values.spec import Spec
from distinput.values.spec_json import leaves_of_json, spec_json, spec_of_json
from distinput.writers.manifest import Journal, WrittenFile, read_written

ERRORS = (IndexError, KeyError, TypeError, AttributeError, ValueError)

Make = Callable[[Path], di.data.Dataset]


def _parquet(path: Path, **options: Any) -> di.data.Dataset:
    rows = {
        "x": range(20),
        "l": [[i] for i in range(20)],
        "t": [str(i) for i in range(20)],
        "f": [[i, i] for i in range(20)],
    }
    pq.write_table(pa.table({**rows, "f": pa.array(rows["f"], pa.list_(pa.int64(), 2))}), path, row_group_size=5)
    return di.data.ParquetDataset(str(path), **options)


def _arrow(path: Path, **options: Any) -> di.data.Dataset:
    _parquet(path)
    table = pq.read_table(path)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 5)
    return di.data.ArrowDataset(str(path), **options)


def _npz(path: Path, **options: Any) -> di.data.Dataset:
    path = path.with_suffix(".npz")
    np.savez_compressed(path, x=np.arange(20))
    return di.data.NpzDataset(str(path), **options)


def _npy(path: Path, **options: Any) -> di.data.Dataset:
    path = path.with_suffix(".npy")
    np.save(path, np.arange(20))
    return di.data.NpyDataset(str(path), **options)


def _tfrecord(path: Path, compression: str = "", **options: Any) -> di.data.Dataset:
    with di.io.TFRecordWriter(str(path), compression) as writer:
        for i in range(20):
            writer.write(b"%d" % i)
    return di.data.TFRecordDataset(str(path), compression, **options)


READERS: dict[str, tuple[Callable[..., di.data.Dataset], list[str]]] = {
    "arrow": (
        _arrow,
        [
            "distinput.arrow.arrow:_lists",
            "distinput.arrow.arrow:_numbers",
            "distinput.arrow.arrow:_strings",
            "distinput.arrow.arrow:_check_offsets",
            "distinput.arrow.arrow:_check",
            "distinput.formats.arrow_file:ArrowFile._checked",
            "distinput.formats.arrow_file:ArrowFile.select",
            "distinput.formats.arrow_file:checked_batch",
            "distinput.formats.arrow_ipc:rows_block",
            "distinput.formats.arrow_file:_number",
            "distinput.formats.tables:block_of",
        ],
    ),
    "npy": (_npy, ["distinput.formats.npy:_array_of", "distinput.formats.npy:_block", "distinput.formats.npy:_parsed"]),
    "npz": (
        _npz,
        [
            "distinput.formats.npy:_array",
            "distinput.formats.npy:_arrays",
            "distinput.formats.npy:_members",
            "distinput.formats.npy:_parsed_archive",
        ],
    ),
    "parquet": (
        _parquet,
        [
            "distinput.arrow.arrow:_fixed_lists",
            "distinput.arrow.arrow:_of_each",
            "distinput.arrow.arrow:_lists",
            "distinput.arrow.arrow:_numbers",
            "distinput.arrow.arrow:_strings",
            "distinput.arrow.arrow:_check_offsets",
            "distinput.formats.parquet:Parquet._block",
            "distinput.formats.parquet:checked_batch",
            "distinput.formats.parquet:groups_of",
            "distinput.formats.parquet:rows_block",
            "distinput.formats.parquet_file:RowGroupBatches.decode",
            "distinput.formats.tables:block_of",
        ],
    ),
    "tfrecord": (
        _tfrecord,
        ["distinput.formats.tfrecord:TFRecords.find", "distinput.formats.span_format:SpanFormat._within"],
    ),
    "tfrecord of GZIP": (
        partial(_tfrecord, compression="GZIP"),
        ["distinput.formats.tfrecord:TFRecords.find", "distinput.formats.span_format:SpanFormat._found"],
    ),
}
PLACES = [(name, place) for name, (_, places) in READERS.items() for place in places]


def _image(form: str) -> bytes:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    file = io.BytesIO()
    image.new("RGBA" if form == "png" else "RGB", (3, 2)).save(file, form)
    return file.getvalue()


def _checkpoint(folder: Path) -> None:
    write_checkpoint(str(folder / "c"), {"values": {}}, {"x": np.arange(3)})
    with CheckpointFile(str(folder / "c")) as file:
        file.array("x")


def _manifest(folder: Path, ending: str) -> None:
    (folder / "a.txt").write_text("a\n")
    save_manifest(str(folder / f"m{ending}"), [str(folder / "a.txt")])
    load_manifest(str(folder / f"m{ending}"))


def _written(folder: Path) -> None:
    di.data.Dataset.range(3).write(str(folder / "w"), "npy", overwrite=True)


SPEC = spec_json(Spec.of({"x": di.TensorSpec([None], "int64"), "y": (di.TensorSpec([], "f4"),)}), "test")
EXAMPLE = '{"features": {"feature": {"x": {"int64List": {"value": ["1"]}}, "y": {"bytesList": {"value": ["YQ=="]}}}}}'
JOURNAL = Journal(["key"], "0123abcd", (WrittenFile("a", 1, 2, 3),)).to_json()
MESSAGE = encoded({"call": "add"}, (1, {"x": [0.5, 1.0]}))


def _read_folder(folder: Path) -> None:
    _written(folder)
    di.data.NpyDataset(str(folder / "w")).to_list()


def _load(folder: Path) -> None:
    _written(folder)
    read_written(str(folder / "w"))


def _record(folder: Path) -> None:
    CheckpointIndex(str(folder), "c-1", {"c-1": 3.0}, []).write()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CheckpointIndex.read(str(folder))


def _json_lines(folder: Path) -> None:
    path = folder / f"{len(list(folder.iterdir()))}.jsonl"  # a schema that is inferred is kept for its file
    path.write_text('{"x": 1}\n{"x": 2}\n')
    di.data.JsonLinesDataset(str(path)).to_list()


def _kept_elements(folder: Path) -> None:
    dataset = di.data.Dataset.range(3).map(lambda x: np.zeros(int(x)), output_signature=di.TensorSpec(None, "f8"))
    dataset.save(str(folder / "s"))
    di.data.Dataset.load(str(folder / "s")).to_list()


CALLS: dict[str, Callable[[Path], Any]] = {
    "distinput.values.spec_json:_leaf": lambda _: spec_of_json(SPEC),
    "distinput.values.spec_json:_structure": lambda _: spec_of_json(SPEC),
    "distinput.values.spec_json:_leaves_of": lambda _: leaves_of_json(SPEC),
    "distinput.values.spec_json:_form": lambda _: spec_of_json(SPEC, spec_of_json(SPEC)),
    "distinput.values.spec_json:_descr": lambda _: spec_of_json(SPEC),
    "distinput.ops.scan:_decode_leaf": lambda _: decode_value(encode_value((1, b"a")), (1, b"a")),
    "distinput.decoders.image:_array": lambda _: di.io.decode_png(_image("png")),
    "distinput.decoders.image:_pixels": lambda _: di.io.decode_png(_image("png")),
    "distinput.decoders.image:_check_size": lambda _: di.io.decode_jpeg(_image("jpeg")),
    "distinput.decoders.image:_with_alpha": lambda _: di.io.decode_image(_image("bmp")),
    "distinput.decoders.json:_plain": lambda _: decode_json(b'{"x": 1}'),
    "distinput.distribute.rpc.client:_nest": lambda _: decoded(MESSAGE),
    "distinput.distribute.rpc.client:from_bytes": lambda _: decoded(MESSAGE),
    "distinput.files.folder:plain_name": _read_folder,
    "distinput.files.manifest:_checked": lambda folder: _manifest(folder, ".json"),
    "distinput.files.manifest:_table": lambda folder: _manifest(folder, ".json"),
    "distinput.files.manifest:to_column": lambda folder: _manifest(folder, ".parquet"),
    "distinput.formats.example_encoding:_feature": lambda _: di.io.decode_json_example(EXAMPLE),
    "distinput.formats.example_encoding:encode_example": lambda _: di.io.decode_json_example(EXAMPLE),
    "distinput.formats.jsonl:_object": _json_lines,
    "distinput.formats.jsonl:JsonLines.infer": _json_lines,
    "distinput.formats.jsonl:type_of": _json_lines,
    "distinput.formats.elements:_shaped": _kept_elements,
    "distinput.train.checkpoint_file:check_word": _checkpoint,
    "distinput.train.checkpoint_file:content_of": _checkpoint,
    "distinput.train.checkpoint_file:npy_array": _checkpoint,
    "distinput.train.manager:_time": _record,
    "distinput.train.manager:plain_name": _record,
    "distinput.writers.manifest:is_fingerprint": lambda _: Journal.of_json(JOURNAL),
    "distinput.writers.manifest:WrittenFile.of_json": _load,
    "distinput.writers.manifest:WrittenFiles.__init__": _load,
}
"""By a function of ours: what calls it while it looks at what it was given."""


@pytest.mark.parametrize("place", CALLS)
def test_a_fault_behind_a_look_at_something_comes_out_as_itself(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CALLS[place](tmp_path)  # nothing is wrong with it
    for error in ERRORS:
        owner, name = _found(place)

        def broken(*_: Any, error: type[Exception] = error, **__: Any) -> Any:
            raise error("our defect")

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            with pytest.raises(error, match="our defect") as caught:
                CALLS[place](tmp_path)
        assert type(caught.value) is error


def _found(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    found = importlib.import_module(module)
    for owner in owners:
        found = getattr(found, owner)
    return found, name


@pytest.mark.parametrize("reader, place", PLACES, ids=[place for _, place in PLACES])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_fault_of_our_own_comes_out_as_itself(
    reader: str, place: str, on_error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = READERS[reader][0]
    for number, error in enumerate(ERRORS):
        owner, name = _found(place)

        def broken(*_: Any, error: type[Exception] = error, **__: Any) -> Any:
            raise error("our defect")

        with monkeypatch.context() as patch:
            made = make(tmp_path / f"{number}.{reader}", on_error=on_error)
            patch.setattr(owner, name, broken)
            arrow_file.cache_clear()  # a file is opened to see whether it holds nulls, and kept open
            with pytest.raises(error, match="our defect") as caught:
                made.to_list()
        assert type(caught.value) is error


def decoded_json(text: Any) -> Any:
    return len(decode_json(text))


WITHIN: dict[str, tuple[str, Any, Callable[[Any], Any]]] = {
    "decode_raw": ("distinput.formats.raw_bytes:np", b"aaaa", lambda text: di.io.decode_raw(text, "uint8")),
    "decode_json_example": ("distinput.formats.example_encoding:_feature", EXAMPLE, di.io.decode_json_example),
    "parse_single_example": (
        "distinput.formats.example:parse_examples",
        di.io.encode_example({"x": [1]}),
        lambda text: di.io.parse_single_example(text, {"x": di.io.FixedLenFeature([1], "int64")}),
    ),
    "json": ("distinput.decoders.json:_plain", b"{}", decoded_json),
}


@pytest.mark.parametrize("skips", ["on_error", "ignore_errors"])
@pytest.mark.parametrize("reader", WITHIN)
def test_a_defect_of_a_reader_within_a_function_is_not_skipped(
    reader: str, skips: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, given, function = WITHIN[reader]
    owner, name = _found(place)

    def called(text: Any) -> Any:
        function(text)
        return 1

    def passes() -> list[Any]:
        ds = di.data.Dataset.from_tensor_slices([given] * 3)
        if skips == "on_error":
            return ds.map(
                called, on_error=di.data.SkipErrors(None), output_signature=di.TensorSpec([], "int64")
            ).to_list()
        return ds.map(called, output_signature=di.TensorSpec([], "int64")).ignore_errors().to_list()

    assert passes() == [1, 1, 1]
    for error in (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, _Broken(owner.__name__, error))
            with pytest.raises(error, match="our defect") as caught:
                passes()
        assert type(caught.value) is error


class _Broken:
    """What a module calls in the place of something of its own, or of what it imports; it fails as if it were the module's."""

    def __init__(self, module: str, error: type[Exception]) -> None:
        names: dict[str, Any] = {"__name__": module, "error": error}
        exec("def fails(*_, **__):\n    raise error('our defect')", names)
        self._fails = names["fails"]

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._fails()

    def __getattr__(self, name: str) -> Any:
        return self._fails()


@pytest.mark.parametrize("error", [IndexError, KeyError, ZeroDivisionError])
def test_an_error_of_the_function_itself_is_skipped(error: type[Exception]) -> None:
    def fails(x: Any) -> Any:
        di.io.decode_raw(b"aaaa", "uint8")
        if x == 1:
            raise error("the user's")
        return x

    assert di.data.Dataset.range(3).map(fails).ignore_errors().to_list() == [0, 2]
    assert di.data.Dataset.range(3).map(fails, on_error=di.data.SkipErrors(None)).to_list() == [0, 2]
    assert di.data.Dataset.from_tensor_slices(["1", "x"]).map(int).ignore_errors().to_list() == [1]


@pytest.mark.parametrize("error", [AttributeError, IndexError, KeyError, TypeError])
@pytest.mark.parametrize("module", ["mds", "litdata"])
def test_a_defect_while_a_shard_is_unpacked_is_no_damage(
    module: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.import_module(f"distinput.formats.{module}")

    def broken(*_: Any, **__: Any) -> Any:
        raise error("our defect")

    monkeypatch.setattr(found, "inflated", broken)
    monkeypatch.setattr(found, "read_range", lambda *_: b"packed", raising=False)
    shard = types.SimpleNamespace(packed_size=6, size=9, compression="gz")
    calls = {"mds": lambda: found._unpacked("a", shard), "litdata": lambda: found._inflated("a", b"packed", 9)}
    with pytest.raises(error, match="our defect"):
        calls[module]()
