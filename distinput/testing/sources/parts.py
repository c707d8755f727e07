# SPDX-License-Identifier: Apache-2.0
"""Files as workers read them: through a manifest, or a part of them each."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, read_manifest, rebatch_for_worker, write_manifest
from distinput.data.file_datasets.fixed_length_record import FixedLengthRecordDataset
from distinput.data.file_datasets.tf_record import TFRecordDataset
from distinput.ops.files import FileNames
from distinput.ops.fragment_reader import FragmentNumbers, FragmentReader
from distinput.ops.reader import Reader
from distinput.ops.worker_rows import OwnPieces, OwnRows, RowReader, ShuffledRows
from distinput.plan.options import AutoShardPolicy, Options
from distinput.testing.pipeline import DrawFrom, Ingredient
from distinput.testing.sources.records import digits, fixed, record_of, tfrecords
from distinput.testing.sources.written import FILES, by_file, draw_files, read_order

__all__ = ["PARTS"]


def _build_manifest(_: None, a: dict[str, Any]) -> Dataset:
    names = tfrecords(a)
    path = str(Path(names[0]).parent / "manifest.json")
    if not Path(path).exists():
        write_manifest(path, names)
    return TFRecordDataset(read_manifest(path), a["compression"], num_parallel_reads=a["reads"])


def _with_policy(dataset: Dataset, policy: AutoShardPolicy) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def _draw_part(draw: DrawFrom, _: Any) -> dict[str, Any]:
    workers = draw(st.integers(2, 3))
    return {
        "rows": draw(FILES),
        "workers": workers,
        "worker": draw(st.integers(0, workers - 1)),
        "mixed": draw(st.booleans()),
        "format": draw(st.sampled_from(["fixed", "indexed", "tfrecord"])),
    }


def _names(paths: list[str], a: dict[str, Any]) -> Any:
    return Dataset.from_tensor_slices(paths).global_shuffle(seed=3) if a["mixed"] else paths


def _fixed_or_records(a: dict[str, Any]) -> Dataset:
    if a["format"] in ("indexed", "tfrecord"):
        indexed = a["format"] == "indexed"
        paths = tfrecords({"rows": a["rows"], "compression": "", "index": indexed})
        return TFRecordDataset(_names(paths, a), index=indexed)
    return FixedLengthRecordDataset(
        _names(fixed({"rows": a["rows"], "header": 0, "footer": 0, "compression": ""}), a), 3
    )


def _build_part(_: None, a: dict[str, Any]) -> Dataset:
    whole = _with_policy(_fixed_or_records(a), AutoShardPolicy.BALANCED)
    return auto_shard_dataset(whole, a["workers"], a["worker"], a["workers"])


def _build_own(_: None, a: dict[str, Any]) -> Dataset:
    whole = _fixed_or_records({**a, "format": "fixed"}).shuffle(4, seed=5, reshuffle_each_iteration=False).batch(2)
    cut = rebatch_for_worker(_with_policy(whole, AutoShardPolicy.DATA), a["workers"], 1, a["worker"])
    return auto_shard_dataset(cut, a["workers"], a["worker"], a["workers"])


def _some_of(a: dict[str, Any], seen: list[Any]) -> list[Any]:
    """What one worker reads is no element twice; that all workers together read all is a law of its own."""
    record = digits if a["format"] == "fixed" else record_of
    all_rows = {record(i) for i in range(sum(a["rows"]))}
    if len(set(seen)) != len(seen) or not all_rows.issuperset(seen):
        raise AssertionError(f"part of files: {seen!r} is not a part of {all_rows!r}")
    return seen


PARTS: tuple[Ingredient, ...] = (
    Ingredient(
        "manifest",
        (FileNames, Reader),
        _build_manifest,
        lambda _, a: read_order(by_file(a, record_of), a["reads"]),
        draw_files,
    ),
    Ingredient(
        "part",
        (FragmentNumbers, FragmentReader),
        _build_part,
        lambda _, a, seen: _some_of(a, seen),
        _draw_part,
        observed=True,
        settled=lambda a: not a["mixed"],
    ),
    Ingredient(
        "own",
        (OwnPieces, OwnRows, RowReader, ShuffledRows),
        _build_own,
        lambda _, a, seen: [*_some_of({**a, "format": "fixed"}, [row for piece in seen for row in piece]), seen][-1],
        _draw_part,
        observed=True,
        settled=lambda a: not a["mixed"],
    ),
)
"""Files as workers read them."""
