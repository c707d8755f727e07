# SPDX-License-Identifier: Apache-2.0
"""Writes docs/feeds/compared.md: which records each rank of a job gets from several loaders, all given the same data.

python docs/make_comparison.py            write the page; says which packages are missing
python docs/make_comparison.py --print    print the table

Ranks are played one after the other in this process, since every loader takes its rank as an argument or from the environment;
the workers of a loader are processes of their own.
"""

import argparse
import importlib.util
import io
import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "feeds" / "compared.md"

Steps = list[list[int]]
"""The records of each step of one rank."""

BATCH = 8
SHAPES = ((1, 0), (1, 2), (2, 0), (3, 0), (4, 2))
"""Ranks, and worker processes of each rank's loader."""


@dataclass(frozen=True)
class Data:
    """Records 0, 1, 2, ... in files of these sizes."""

    sizes: tuple[int, ...]
    folder: Path

    @property
    def count(self) -> int:
        """The number of records."""
        return sum(self.sizes)

    @property
    def spans(self) -> list[range]:
        """The records of each file."""
        return [range(end - size, end) for end, size in zip(accumulate(self.sizes), self.sizes, strict=True)]

    @property
    def text(self) -> list[str]:
        """Text files, one record a line, as distinput reads them."""
        return [str(self._path(number, "txt")) for number in range(len(self.sizes))]

    @property
    def tars(self) -> list[str]:
        """Tar files, as WebDataset reads them."""
        return [str(self._path(number, "tar")) for number in range(len(self.sizes))]

    def write(self) -> None:
        """Write all files."""
        for span, text, tar in zip(self.spans, self.text, self.tars, strict=True):
            Path(text).write_text("".join([f"{record}\n" for record in span]), encoding="utf-8")
            with tarfile.open(tar, "w") as archive:
                for record in span:
                    said = json.dumps(record).encode()
                    member = tarfile.TarInfo(f"{record:06}.json")
                    member.size = len(said)
                    archive.addfile(member, io.BytesIO(said))

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"{number:03}.{kind}"


class Numbers:
    """The records as a map-style dataset."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        return index


def ours(data: Data, rank: int, world: int, workers: int) -> Steps:
    """The view of a dataset over the text files."""
    from torch.utils.data import DataLoader

    import distinput as di

    dataset = di.data.TextLineDataset(data.text).map(int).batch(BATCH)
    view = di.interop.torch.IterableView(dataset, rank=rank, world_size=world)
    return [batch.tolist() for batch in DataLoader(view, batch_size=None, num_workers=workers)]


def distributed_sampler(data: Data, rank: int, world: int, workers: int, *, drop_last: bool) -> Steps:
    """PyTorch's sampler for ranks."""
    from torch.utils.data import DataLoader, DistributedSampler

    numbers: Any = Numbers(data.count)
    sampler: Any = DistributedSampler(numbers, world, rank, shuffle=False, drop_last=drop_last)
    return [batch.tolist() for batch in DataLoader(numbers, BATCH, sampler=sampler, num_workers=workers)]


def accelerate(data: Data, rank: int, world: int, workers: int, *, even_batches: bool) -> Steps:
    """What `Accelerator.prepare` makes of a loader."""
    from accelerate.data_loader import prepare_data_loader
    from accelerate.state import PartialState
    from torch.utils.data import DataLoader

    PartialState(cpu=True)
    loader: Any = DataLoader(Numbers(data.count), BATCH, num_workers=workers)  # type: ignore[arg-type]
    prepared = prepare_data_loader(
        loader, num_processes=world, process_index=rank, put_on_device=False, even_batches=even_batches
    )
    return [batch.tolist() for batch in prepared]


def hugging_face(data: Data, rank: int, world: int, workers: int) -> Steps:
    """An iterable dataset with a shard for each file, split by rank."""
    from datasets import IterableDataset
    from datasets.distributed import split_dataset_by_node
    from torch.utils.data import DataLoader

    given = {"spans": data.spans}
    dataset: Any = split_dataset_by_node(IterableDataset.from_generator(_records, gen_kwargs=given), rank, world)
    loader = DataLoader(dataset.with_format("torch"), BATCH, num_workers=workers)
    return [batch["record"].tolist() for batch in loader]


def _records(spans: Sequence[range]) -> Iterator[Mapping[str, int]]:
    for span in spans:
        for record in span:
            yield {"record": record}


def grain(data: Data, rank: int, world: int, workers: int, *, drop_remainder: bool) -> Steps:
    """Grain's loader with a sequential sampler."""
    import grain.python as grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()
    sampler = grain.SequentialSampler(data.count, grain.ShardOptions(rank, world, drop_remainder))
    source = grain.RangeDataSource(0, data.count, 1)
    loader = grain.DataLoader(
        data_source=source, sampler=sampler, operations=[grain.Batch(BATCH)], worker_count=workers
    )
    return [batch.tolist() for batch in loader]


def web_dataset(data: Data, rank: int, world: int, workers: int) -> Steps:
    """Tar files, split by rank and by worker."""
    import webdataset

    with _environment(RANK=str(rank), WORLD_SIZE=str(world)):
        pipeline = webdataset.DataPipeline(
            webdataset.SimpleShardList(data.tars),
            webdataset.split_by_node,
            webdataset.split_by_worker,
            webdataset.tarfile_to_samples(),
            webdataset.decode(),
            webdataset.to_tuple("json"),
            webdataset.batched(BATCH),
        )
        loader = webdataset.WebLoader(pipeline, batch_size=None, num_workers=workers)
        return [[int(record) for record in batch[0]] for batch in loader]


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class Loader:
    """One row of the table.

    Args:
      name: as it is printed.
      needs: the packages without which it is left out.
      steps: the steps of one rank.
    """

    name: str
    needs: tuple[str, ...]
    steps: Callable[[Data, int, int, int], Steps]


LOADERS = (
    Loader("**distinput**, `interop.torch.IterableView`", ("torch",), ours),
    Loader("`DistributedSampler`", ("torch",), partial(distributed_sampler, drop_last=False)),
    Loader("`DistributedSampler(drop_last=True)`", ("torch",), partial(distributed_sampler, drop_last=True)),
    Loader("Accelerate, `prepare`", ("accelerate",), partial(accelerate, even_batches=True)),
    Loader("Accelerate, `even_batches=False`", ("accelerate",), partial(accelerate, even_batches=False)),
    Loader("Hugging Face, `split_dataset_by_node`", ("datasets",), hugging_face),
    Loader("Grain, `ShardOptions`", ("grain",), partial(grain, drop_remainder=False)),
    Loader("Grain, `drop_remainder=True`", ("grain",), partial(grain, drop_remainder=True)),
    Loader("WebDataset, `split_by_node`", ("webdataset",), web_dataset),
)


@dataclass(frozen=True)
class Outcome:
    """What all ranks got together.

    Args:
      lost: records that no rank got.
      repeated: deliveries beyond the first of each record.
      steps: the number of steps of each rank.
    """

    lost: int
    repeated: int
    steps: tuple[int, ...]

    def __str__(self) -> str:
        said = [f"{self.lost} lost"] * (self.lost > 0) + [f"{self.repeated} twice or more"] * (self.repeated > 0)
        if len(set(self.steps)) > 1:
            said.append(f"steps {'/'.join(map(str, self.steps))}")
        return "; ".join(said) or "exact"


def outcome(loader: Loader, data: Data, world: int, workers: int) -> Outcome:
    """Play all ranks of a job."""
    ranks = [loader.steps(data, rank, world, workers) for rank in range(world)]
    seen = [record for steps in ranks for batch in steps for record in batch]
    return Outcome(data.count - len(set(seen)), len(seen) - len(set(seen)), tuple(map(len, ranks)))


def table(data: Data, loaders: Sequence[Loader] = LOADERS, shapes: Sequence[tuple[int, int]] = SHAPES) -> list[str]:
    """The lines of a table: a row for each loader that is installed, a column for each number of ranks and workers."""
    heads = [f"{world} {'rank' if world == 1 else 'ranks'}, {workers} workers" for world, workers in shapes]
    lines = [f"| loader | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for loader in loaders:
        if any(importlib.util.find_spec(name) is None for name in loader.needs):
            continue
        found = [str(outcome(loader, data, world, workers)) for world, workers in shapes]
        lines.append(f"| {loader.name} | {' | '.join(found)} |")
    return lines


HEAD = """<!-- Written by docs/make_comparison.py; do not change it by hand. -->
# The same data through other loaders

Who gets which records of uneven data, when several ranks read them through loaders with worker processes? This page is
written by `python docs/make_comparison.py`, which runs each loader, as its own documentation shows it, on the same records
in batches of {batch}, and counts what all ranks together were given in one epoch.

* *lost*: records that no rank was given.
* *twice or more*: deliveries beyond the first of each record; a metric over the epoch is wrong by so many.
* *steps 12/2*: ranks differ in their number of steps. Collectives in the training loop then wait for a rank that has ended.
* *exact*: every record once, and the same number of steps on every rank.
"""

TAIL = """
Order was left as it is, without shuffling. Versions: {versions}.
"""

FILES = ((41, 7, 23, 2, 30), (41, 7, 25, 30))
"""The sizes of the files: of five files, and of four, which some numbers of ranks divide."""


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(batch=BATCH)]
    for sizes in FILES:
        with tempfile.TemporaryDirectory() as folder:
            data = Data(sizes, Path(folder))
            data.write()
            title = f"## {data.count} records in {len(sizes)} files ({', '.join(map(str, sizes))})"
            parts += ["\n" + title + "\n", *[line + "\n" for line in table(data)]]
    return "".join(parts).replace("\n## ", "\n## ").replace(")\n|", ")\n\n|") + TAIL.format(versions=_versions())


def _versions() -> str:
    from importlib.metadata import version

    names = sorted({name for loader in LOADERS for name in loader.needs if importlib.util.find_spec(name)})
    return ", ".join([f"{name} {version(name).partition('+')[0]}" for name in names])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; see the module."""
    parser = argparse.ArgumentParser(description="compare which records loaders deliver")
    parser.add_argument("--print", action="store_true", help="print the page, write nothing")
    given = parser.parse_args(arguments)
    missing = sorted({name for loader in LOADERS for name in loader.needs if importlib.util.find_spec(name) is None})
    if missing:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
        if not given.print:
            return 1
    text = page()
    if given.print:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
