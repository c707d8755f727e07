# SPDX-License-Identifier: Apache-2.0
"""Which engine is taken, which cannot be, and how a new one is made known."""

import sys
from pathlib import Path

import pytest

from distinput.distribute.engines import (
    ENGINES,
    Collectives,
    find_engine,
    open_collectives,
    register_engine,
)
from distinput.distribute.engines.local import open_group, open_groups
from distinput.testing.ports import free_ports


def test_a_registered_engine_is_opened_by_its_name() -> None:
    def open_mine(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
        opened.append((rank, size, address, timeout, name))
        return open_group(rank, size, None, timeout=timeout, name=name)

    opened: list[object] = []
    register_engine("mine", open_mine)
    with open_collectives("mine", rank=0, size=1, address="host:1", timeout=3.0, name="group") as group:
        assert group.all_reduce([1, 2]).tolist() == [1, 2]
    assert opened == [(0, 1, "host:1", 3.0, "group")]
    with pytest.raises(ValueError, match="unknown engine 'gloo'; known are jax, local, mine, mpi, torch"):
        open_collectives("gloo")


def test_the_engines_that_are_there_keep_their_names() -> None:
    with pytest.raises(ValueError, match=r"engine 'torch': the name is taken by .*engines\.torch:open_group"):
        register_engine("torch", "elsewhere:open_group")
    assert list(ENGINES) == ["jax", "local", "mpi", "torch"]


def test_what_cannot_be_opened() -> None:
    with pytest.raises(ValueError, match="unknown engine 'gloo'; known are jax, local, mpi, torch"):
        open_collectives("gloo")
    with pytest.raises(ValueError, match="for more processes use 'torch', 'mpi' or 'jax'"):
        open_collectives("local", rank=1, size=2)
    with pytest.raises(ValueError, match="rank must be from 0 to size - 1, got rank 2 of 2"):
        open_collectives("torch", rank=2, size=2, address="localhost:1")
    with pytest.raises(ValueError, match="size must be at least 1"):
        open_groups(0)


def test_the_engine_that_started_the_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert find_engine({"OMPI_COMM_WORLD_SIZE": "2"}) == "mpi"
    assert find_engine({"PMI_SIZE": "2"}) == "mpi"
    assert find_engine({}) == "torch"
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"pip install 'distinput\[torch\]'"):
        find_engine({})


@pytest.mark.parametrize("engine", ["jax", "mpi", "torch"])
def test_a_missing_package_is_named_with_the_cure(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(f"distinput.distribute.engines.{engine}.import_module", absent)
    with pytest.raises(ImportError, match=rf"pip install 'distinput\[{engine}\]'"):
        open_collectives(engine, rank=0, size=2, address="localhost:1")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says who listens where")
def test_rank_0_of_a_local_job_listens_on_loopback_only() -> None:
    distributed = pytest.importorskip("torch.distributed")
    from distinput.distribute.engines.torch import _connect

    (port,) = free_ports(1)
    stores = [_connect(distributed, rank, f"127.0.0.1:{port}", 10, listens=True) for rank in (0, 0, 1)]
    stores[0].set("key", "value")
    assert [store.get("key") for store in stores] == 3 * [b"value"]
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    ]
    assert listening == [f"0100007F:{port:04X}"]
