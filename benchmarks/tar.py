# SPDX-License-Identifier: Apache-2.0
"""How fast do the samples of tar archives arrive?"""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "samples of an image, a class and JSON in tar archives, as byte spans and as dicts of bytes objects"
NAMES = ("cls", "jpg", "json")
CHUNK = 1 << 20


def prepare(folder: Path, scale: float) -> None:
    """Two archives of samples: an image of 4 to 14 kB, a class and a JSON of 120 bytes."""
    random = np.random.default_rng(SEED)
    count = scaled(20_000, scale, 200)
    noise = random.bytes(1 << 20)
    for shard in range(2):
        with tarfile.open(folder / f"{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for number in range(shard, count, 2):
                start, size = random.integers(0, 1 << 19), random.integers(4_000, 14_000)
                contents = b"%d" % (number % 1000), noise[start : start + size], noise[start : start + 120]
                for name, content in zip(NAMES, contents, strict=True):
                    header = tarfile.TarInfo(f"train/{number:08d}.{name}")
                    header.size = len(content)
                    archive.addfile(header, io.BytesIO(content))


def cases(folder: Path, scale: float) -> list[Case]:
    """What a block holds, and what Python sees."""
    paths = [str(folder / f"{shard}.tar") for shard in range(2)]
    units = {"sample": scaled(20_000, scale, 200), "byte": sum(Path(path).stat().st_size for path in paths)}

    def dataset() -> Any:
        import distinput as di

        return di.data.WebDataset(paths)

    def spans() -> Work:
        samples = dataset()
        return delivering(samples.iter_blocks, plain=lambda block: list(block.elements()))

    def objects() -> Work:
        samples = dataset()
        return delivering(lambda: samples)

    def webdataset() -> Work:
        import webdataset as wds

        samples = wds.WebDataset(paths, shardshuffle=False)
        return delivering(lambda: samples, plain=_members)

    def by_hand() -> Work:
        return delivering(lambda: _read_by_hand(paths), plain=_members)

    peers = [
        Contender("tarfile", "peer", by_hand),
        Contender("webdataset", "peer", webdataset, ("webdataset",), 20.0),
    ]
    return [
        Case(
            "byte spans",
            units,
            [
                Contender("distinput", "ours", spans),
                Contender("read", "limit", lambda: _reading(paths), reach=0.5),
                *peers,
            ],
        ),
        Case(
            "bytes objects",
            units,
            [
                Contender("distinput", "ours", objects),
                Contender("tarfile", "peer", by_hand),
                Contender("webdataset", "peer", webdataset, ("webdataset",), 7.0),
            ],
        ),
    ]


def _members(sample: Any) -> Any:
    """A sample as ours has it."""
    return {"__key__": sample["__key__"].encode(), **{name: sample[name] for name in NAMES}}


def _read_by_hand(paths: list[str]) -> Iterator[Any]:
    for path in paths:
        with tarfile.open(path, "r|") as archive:
            sample: dict[str, Any] = {}
            for member in archive:
                key, _, name = member.name.partition(".")
                if sample and key != sample["__key__"]:
                    yield sample
                    sample = {}
                content = archive.extractfile(member)
                assert content is not None
                sample["__key__"], sample[name] = key, content.read()
                archive.members = []  # type: ignore[attr-defined]  # it would keep all of them
            yield sample


def _reading(paths: list[str]) -> Work:
    """All bytes read into one small buffer."""
    buffer = bytearray(CHUNK)

    def once() -> None:
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    return Work(once)
