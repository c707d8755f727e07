# SPDX-License-Identifier: Apache-2.0
"""Chains of protocols, such as a cache before an archive before a server: passes, patterns, and states."""

import json
import tarfile
import uuid
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.files.paths import list_matching
from distinput.testing.range_server import RangeServer

# fsspec does not close the files of `blockcache::`.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FILES = {
    "csv": di.data.FileDataset,
    "npy": di.data.NpyDataset,
    "parquet": di.data.ParquetDataset,
}
CHAINS = [
    "{cache}::{place}/{name}",
    "zip://{name}::{place}/all.zip",
    "tar://{name}::{place}/all.tar",
    "simplecache::zip://{name}::{place}/all.zip",
    "zip://{name}::simplecache::{place}/all.zip",
]
PLACES = ["file", "memory", *["http"] * (find_spec("aiohttp") is not None)]


def write(folder: Path, number: int) -> None:
    rows = np.arange(100) + 1000 * number
    di.io.write_parquet(str(folder / f"{number}.parquet"), {"x": rows})
    np.save(folder / f"{number}.npy", rows)
    (folder / f"{number}.csv").write_text("x\n" + "".join(f"{row}\n" for row in rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, and archives of them."""
    made = tmp_path_factory.mktemp("chains")
    for number in range(2):
        write(made, number)
    files = sorted(made.iterdir())
    with zipfile.ZipFile(made / "all.zip", "w") as archive:
        for path in files:
            archive.write(path, path.name)
    with tarfile.open(made / "all.tar", "w") as other:
        for path in files:
            other.add(path, path.name)
    return made


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The URL of a folder with these files."""
    if request.param == "file":
        yield f"file://{folder}"
    elif request.param == "memory":
        name = f"chains-{uuid.uuid4().hex}"
        for path in folder.iterdir():
            fsspec.filesystem("memory").pipe(f"/{name}/{path.name}", path.read_bytes())
        yield f"memory://{name}"
        fsspec.filesystem("memory").rm(f"/{name}", recursive=True)
    else:
        with RangeServer(folder) as server:
            yield server.url


def places(place: str, chain: str) -> list[tuple[str, bool]]:
    """The chain before a place, with each cache, and whether what it leads to can be listed."""
    caches = (
        ["simplecache", "filecache", *["blockcache"] * (not place.startswith("memory"))] if "{cache}" in chain else [""]
    )
    listed = not place.startswith("http") or "zip" in chain or "tar" in chain
    return [(chain.replace("{cache}", cache).replace("{place}", place), listed) for cache in caches]


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("kind", FILES)
def test_files_behind_a_chain_are_those_at_its_end(folder: Path, place: str, chain: str, kind: str) -> None:
    reader: Any = FILES[kind]
    local = reader([str(folder / f"{number}.{kind}") for number in range(2)])
    wanted, rest = local.to_list(), local.skip(130).to_list()
    for pattern, listed in places(place, chain):
        names = [pattern.format(name=f"{number}.{kind}") for number in range(2)]
        dataset = reader(names)
        with iter(dataset) as iterator:
            for _ in range(130):
                next(iterator)
            state = json.loads(json.dumps(iterator.state()))
        assert dataset.to_list() == wanted
        assert [*map(plain, reader(names).restore(state))] == rest
        if listed:
            assert reader(list_matching(pattern.format(name=f"*.{kind}"))).to_list() == wanted


def plain(row: Any) -> Any:
    """As `to_list` has it."""
    return {"x": int(row["x"])} if isinstance(row, dict) else row.tolist() if isinstance(row, np.generic) else row


@pytest.mark.parametrize("below", ["memory://a/0.csv", "zip://0.csv::file://{folder}/all.zip"])
def test_a_cache_of_blocks_is_refused_before_files_that_have_none(folder: Path, below: str) -> None:
    path = f"blockcache::{below.format(folder=folder)}"
    with pytest.raises(InvalidArgumentError, match="write simplecache:: in the place of blockcache::") as caught:
        di.data.TextLineDataset(path).to_list()
    assert path in str(caught.value)
