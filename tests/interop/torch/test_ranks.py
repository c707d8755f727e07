# SPDX-License-Identifier: Apache-2.0
"""Who tells a view its rank, and what happens when two say different things."""

import os

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch.distributed

from distinput.errors import InvalidArgumentError
from distinput.interop.torch.readers import Ranks

LAUNCHED = {
    "RANK": "1",
    "WORLD_SIZE": "3",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "3",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "1",
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name in LAUNCHED or name.startswith(("SLURM_", "OMPI_", "PMI", "TF_CONFIG", "TORCHELASTIC", "JAX_")):
            monkeypatch.delenv(name)


def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)


def grouped(monkeypatch: pytest.MonkeyPatch, rank: int, size: int) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: rank)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: size)


def test_a_program_by_itself_is_one_rank() -> None:
    assert Ranks().found() == (0, 1)


def test_the_launcher_is_asked_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks()
    launched(monkeypatch)
    assert ranks.found() == (1, 3)


def test_a_process_group_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped(monkeypatch, 2, 4)
    assert Ranks().found() == (2, 4)
    monkeypatch.setenv("SLURM_PROCID", "0")
    assert Ranks().found() == (2, 4)
    launched(monkeypatch)
    with pytest.raises(
        InvalidArgumentError, match=r"torch.distributed says rank 2 of 4, the environment says RANK=1 and"
    ):
        Ranks().found()
    grouped(monkeypatch, 1, 3)
    assert Ranks().found() == (1, 3)


def test_what_is_given_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped(monkeypatch, 2, 4)
    launched(monkeypatch)
    assert Ranks(0, 2).found() == (0, 2)
    assert Ranks(None, 1).found() == (0, 1)


def test_half_of_it_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped(monkeypatch, 2, 4)
    assert Ranks(rank=3).found() == (3, 4)
    assert Ranks(world_size=4).found() == (2, 4)
    with pytest.raises(
        InvalidArgumentError, match=r"world_size=8 was given, but torch.distributed says 4; pass rank= as well"
    ):
        Ranks(world_size=8).found()
    with pytest.raises(InvalidArgumentError, match="rank must be from 0 to 3, got 4"):
        Ranks(rank=4).found()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_of_nobody_knows_how_many_is_refused(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        InvalidArgumentError, match=f"rank={rank} was given without world_size.*pass world_size= as well"
    ):
        Ranks(rank=rank).found()


@pytest.mark.parametrize(
    "rank, size, says",
    [(2, 2, "rank must be from 0 to 1, got 2"), (-1, None, "rank must be at least 0"), (None, 0, "world_size must be")],
)
def test_no_such_rank(rank: int | None, size: int | None, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Ranks(rank, size)
