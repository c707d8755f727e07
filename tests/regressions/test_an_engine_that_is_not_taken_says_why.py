# SPDX-License-Identifier: Apache-2.0
"""Where no engine can be used, the error says of each what is there and why it is not taken."""

import importlib.util
import sys
from collections.abc import Mapping
from importlib import metadata

import pytest

import distinput as di
from distinput.distribute.engines import find_engine, open_collectives
from distinput.distribute.engines.torch import _torch

EMPTY: Mapping[str, str] = {}


def installed(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Only these packages are installed."""
    real = importlib.util.find_spec
    known = ("torch", "mpi4py", "jax")
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: (name if name in versions else None) if name in known else real(name, *rest),
    )
    monkeypatch.setattr(metadata, "version", versions.__getitem__)
    for package in known:
        monkeypatch.delitem(sys.modules, package, raising=False)


def test_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)
    with pytest.raises(di.errors.EngineMissing) as caught:
        find_engine(EMPTY)
    for engine, package in (("mpi", "mpi4py"), ("torch", "torch"), ("jax", "jax")):
        assert f"{engine!r}: {package} is not installed (`pip install 'distinput[{engine}]'`)" in str(caught.value)


def test_what_is_installed_and_why_it_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, torch="2.1.0+cpu", mpi4py="4.1.2", jax="0.10.2")
    with pytest.raises(ImportError) as caught:
        find_engine(EMPTY)
    assert "torch 2.1.0+cpu is installed, 2.6 or newer is needed" in str(caught.value)
    assert "mpi4py is installed, but mpiexec did not start this process" in str(caught.value)
    assert "jax is installed, but has no coordinator: call jax.distributed.initialize first" in str(caught.value)
    assert find_engine({"PMI_SIZE": "2"}) == "mpi"
    installed(monkeypatch, torch="2.10.0", mpi4py="4.1.2")
    assert find_engine(EMPTY) == "torch"


def test_an_old_package_is_named_where_the_engine_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch.distributed")
    monkeypatch.setattr(metadata, "version", lambda _: "2.1.0")
    with pytest.raises(di.errors.EngineMissing, match=r"engine 'torch': torch 2\.1\.0 is installed, 2\.6 or newer"):
        _torch()


def test_mpi_without_mpiexec(monkeypatch: pytest.MonkeyPatch) -> None:
    class World:
        size, rank = 1, 0

    class Module:
        COMM_WORLD = World

    monkeypatch.setattr("distinput.distribute.engines.mpi._mpi", lambda: Module)
    with pytest.raises(di.errors.EngineMissing, match="mpiexec did not start this process, which should be one of 2"):
        open_collectives("mpi", rank=0, size=2)


def test_the_errors_between_workers_are_in_errors() -> None:
    for name in (
        "Aborted CollectiveError CollectiveTimeout EngineMissing Mismatch PeerLost Poisoned".split()  # noqa: SIM905
    ):
        assert name in di.errors.__all__
        assert issubclass(getattr(di.errors, name), di.errors.DistinputError)
