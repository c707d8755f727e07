# SPDX-License-Identifier: Apache-2.0
"""What do folders of MosaicML Streaming and LitData cost here, beside the readers that they were written for?"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "texts of 256 letters and a number in batches of 256, from a folder of MDS and one of LitData; in order and shuffled"
NOTES = """
Each library reads its own folder by its own dataset and loader, in one process. The benchmark writes the folders by the
rules of their layouts, so that distinput needs no other library. Shuffles differ in their orders and deliver the same
samples.
"""
BATCH, WIDTH, SHARDS = 256, 256, 4
STREAMING, LITDATA = ("streaming", "torch"), ("litdata", "torch")


def prepare(folder: Path, scale: float) -> None:
    """The same samples in both layouts."""
    texts = np.random.default_rng(SEED).integers(97, 123, (_samples(scale), WIDTH), np.uint8)
    samples = [(text.tobytes(), struct.pack("<q", number)) for number, text in enumerate(texts)]
    parts = [samples[shard::SHARDS] for shard in range(SHARDS)]
    _write_mds(folder / "mds", parts)
    write_litdata(folder / "litdata", parts, {"x": "str", "y": "int"})


def _samples(scale: float) -> int:
    return scaled(40_000, scale, 600)


def _shard(samples: Sequence[Sequence[bytes]], header: bytes, sizes: Callable[[Sequence[bytes]], bytes]) -> bytes:
    """How many samples, where each begins and the last one ends, a header, and the samples."""
    items = [sizes(sample) + b"".join(sample) for sample in samples]
    ends = np.cumsum([4 * (len(items) + 2) + len(header), *map(len, items)]).tolist()
    return struct.pack(f"<{len(ends) + 1}I", len(items), *ends) + header + b"".join(items)


def _write_mds(folder: Path, parts: Sequence[Sequence[Sequence[bytes]]]) -> None:
    """Source: the layout of `MDSWriter`, version 2; the number has a fixed size, so that only that of the bytes is stored."""
    folder.mkdir()
    shards = []
    for number, part in enumerate(parts):
        content = _shard(part, b'{"format": "mds"}', lambda sample: struct.pack("<I", len(sample[0])))
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(content)
        shards.append(
            {
                "column_encodings": ["str", "int"],
                "column_names": ["x", "y"],
                "column_sizes": [None, 8],
                "compression": None,
                "format": "mds",
                "hashes": [],
                "raw_data": {"basename": name, "bytes": len(content), "hashes": {}},
                "samples": len(part),
                "size_limit": 1 << 26,
                "version": 2,
                "zip_data": None,
            }
        )
    (folder / "index.json").write_text(json.dumps({"shards": shards, "version": 2}))


def write_litdata(
    folder: Path, parts: Sequence[Sequence[Sequence[bytes]]], columns: Mapping[str, str] | None = None
) -> None:
    """Chunks of samples of some parts: dicts of these columns and their formats, or single byte strings without columns.

    Source: the layout of `litdata.optimize`; the tree of a dict is that of PyTorch's `treespec_dumps`.
    """
    folder.mkdir()
    chunks = []
    for number, part in enumerate(parts):
        content = _shard(part, b"", lambda sample: struct.pack(f"<{len(sample)}I", *map(len, sample)))
        name = f"chunk-0-{number}.bin"
        (folder / name).write_bytes(content)
        chunks.append({"chunk_bytes": len(content), "chunk_size": len(part), "dim": None, "filename": name})
    leaf: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
    tree = leaf
    if columns is not None:
        tree = {"type": "builtins.dict", "context": json.dumps(list(columns)), "children_spec": [leaf] * len(columns)}
    formats = ["bytes"] if columns is None else list(columns.values())
    config: dict[str, Any] = {"compression": None, "data_format": formats, "data_spec": json.dumps([1, tree])}
    config |= {"chunk_bytes": 1 << 26, "chunk_size": None, "encryption": None, "item_loader": "PyTreeLoader"}
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": config}))


def cases(folder: Path, scale: float) -> list[Case]:
    """Both folders, in order and shuffled."""
    return [
        case
        for shuffled in (False, True)
        for case in (
            _case("MDS", folder, scale, shuffled, "MosaicML Streaming", _streaming, STREAMING),
            _case("LitData", folder, scale, shuffled, "litdata", _litdata, LITDATA),
        )
    ]


def _case(
    kind: str,
    folder: Path,
    scale: float,
    shuffled: bool,
    theirs: str,
    peer: Callable[[Path, bool], Work],
    needs: tuple[str, ...],
) -> Case:
    return Case(
        f"{kind}, {'shuffled' if shuffled else 'in order'}",
        {"sample": _samples(scale)},
        [
            Contender("distinput", "ours", lambda: _ours(folder, kind, shuffled)),
            Contender(theirs, "peer", lambda: peer(folder, shuffled), needs, 5.0),
        ],
    )


def _plain(batch: Any) -> Any:
    joined = b"".join([each.encode() if isinstance(each, str) else each for each in batch["x"]])
    return np.frombuffer(joined, np.uint8).reshape(-1, WIDTH), np.asarray(batch["y"])


def _ours(folder: Path, kind: str, shuffled: bool) -> Work:
    import distinput as di

    samples = (
        di.data.MdsDataset(str(folder / "mds")) if kind == "MDS" else di.data.LitDataDataset(str(folder / "litdata"))
    )
    batches = (samples.global_shuffle(seed=1) if shuffled else samples).batch(BATCH)
    return delivering(lambda: batches, plain=_plain, checksum=in_any_order)


def _streaming(folder: Path, shuffled: bool) -> Work:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    from torch.utils.data import DataLoader

    clean_stale_shared_memory()
    samples = StreamingDataset(local=str(folder / "mds"), batch_size=BATCH, shuffle=shuffled)
    loader: Any = DataLoader(samples, BATCH)
    return delivering(lambda: loader, plain=_plain, checksum=in_any_order)


def _litdata(folder: Path, shuffled: bool) -> Work:
    from litdata import StreamingDataLoader, StreamingDataset

    samples = StreamingDataset(str(folder / "litdata"), shuffle=shuffled)

    def batches() -> Iterator[Any]:
        return iter(StreamingDataLoader(samples, batch_size=BATCH))

    return delivering(batches, plain=_plain, checksum=in_any_order)
