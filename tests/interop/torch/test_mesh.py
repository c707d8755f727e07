# SPDX-License-Identifier: Apache-2.0
"""Ranks of a mesh: together they get every row and every column once, replicas get the same, and any mesh goes on."""

import json
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.interop.torch import IterableView, Loader, MeshPlace
from distinput.testing.ports import free_ports
from tests.engines.processes import start, wait_for

Dataset = di.data.Dataset
LENGTH = 12
ROWS = Dataset.range(22).shuffle(22, seed=1)
BATCHES: Any = ROWS.map(lambda x: {"tokens": x * 100 + np.arange(LENGTH), "id": x}).batch(8)


@dataclass(frozen=True)
class Mesh:
    """A mesh as one of its ranks sees it."""

    mesh_dim_names: tuple[str, ...]
    shape: tuple[int, ...]
    coordinate: tuple[int, ...] | None

    def get_coordinate(self) -> tuple[int, ...] | None:
        return self.coordinate


def ranks(names: tuple[str, ...], shape: tuple[int, ...], **options: Any) -> dict[tuple[int, ...], Loader]:
    """The loaders of all ranks of a mesh."""
    return {at: Loader(BATCHES, mesh=Mesh(names, shape, at), **options) for at in product(*map(range, shape))}


def joined(steps: dict[tuple[int, ...], Any], shape: tuple[int, ...], length: int = LENGTH) -> tuple[Any, Any]:
    """One step of all ranks of dp x tp x cp as the whole: every cell must be there once, replicas must be equal."""
    ids, tokens = [], []
    for dp in range(shape[0]):
        parts = [steps[dp, 0, cp] for cp in range(shape[2])]
        for tp, (cp, part) in product(range(shape[1]), enumerate(parts)):
            same = steps[dp, tp, cp]
            assert all(same[key].tolist() == part[key].tolist() for key in part)
        assert all(part["id"].tolist() == parts[0]["id"].tolist() for part in parts)
        places = np.concatenate([part["at"].numpy() for part in parts], 1)
        whole = np.full((len(places), length), -1)
        np.put_along_axis(whole, places, np.concatenate([part["tokens"].numpy() for part in parts], 1), 1)
        assert (np.sort(places, 1) == np.arange(length)).all()
        tokens.append(whole)
        ids += parts[0]["id"].tolist()
    return ids, np.concatenate(tokens).tolist()


OPTIONS = {"data": "dp", "replicate": ("tp",), "context": "cp", "positions": "at", "tail": "partial"}


@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 3), (4, 2, 1), (3, 2, 2), (1, 3, 2)])
def test_all_ranks_together_have_the_whole_and_any_mesh_goes_on(shape: tuple[int, int, int], layout: str) -> None:
    other = (2, 1, 2)
    for taken in range(3):
        loaders = ranks(("dp", "tp", "cp"), shape, layout=layout, **OPTIONS)
        steps = {at: iter(loader) for at, loader in loaders.items()}
        whole = list(BATCHES.iter_pass(0))
        for batch in whole[:taken]:
            step = {at: next(each) for at, each in steps.items()}
            assert joined(step, shape) == (batch["id"].tolist(), batch["tokens"].tolist())
        states = [json.loads(json.dumps(loader.state_dict())) for loader in loaders.values()]
        again = ranks(("dp", "tp", "cp"), other, **OPTIONS)
        for number, loader in enumerate(again.values()):
            loader.load_state_dict(states[number % len(states)])  # any of them is good for all
        rest = zip(*again.values(), strict=True)
        found = [joined(dict(zip(again, step, strict=True)), other) for step in rest]
        assert found == [(batch["id"].tolist(), batch["tokens"].tolist()) for batch in whole[taken:]]


def test_rows_are_divided_along_several_dimensions_the_first_outermost() -> None:
    names, shape = ("pp", "replica", "shard"), (2, 2, 2)
    for at in product(range(2), repeat=3):
        mesh = Mesh(names, shape, at)
        assert MeshPlace.of(mesh, ("replica", "shard"), "pp") == MeshPlace(at[1] * 2 + at[2], 4)
        assert MeshPlace.of(mesh, ("shard", "replica"), "pp") == MeshPlace(at[2] * 2 + at[1], 4)
        assert MeshPlace.of(mesh, "shard", "pp", "replica") == MeshPlace(at[2], 2, at[1], 2)


def test_zigzag_gives_a_rank_an_early_and_a_late_piece() -> None:
    for part, expected in enumerate(([0, 1, 10, 11], [2, 3, 8, 9], [4, 5, 6, 7])):
        view = IterableView(BATCHES, place=MeshPlace(part=part, parts=3, layout="zigzag", positions="at"))
        assert next(iter(view))["at"][0].tolist() == expected
        assert view.element_spec["tokens"].shape == (None, 4)
        assert view.element_spec["at"].shape == (None, 4)


def test_masks_stay_whole() -> None:
    view = IterableView(BATCHES, place=MeshPlace(1, 2, 1, 2, positions="at"), tail="pad")
    steps = list(view)
    assert [(batch["tokens"].shape, mask.tolist()) for batch, mask in steps][-1] == (
        (4, 6),
        [True, True, True, False],
    )
    assert view.element_spec[0]["tokens"].shape == (None, 6)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"data": "dp"}, r"dimension 'tp' of the mesh is named 0 times.*replicate \(ranks get the same\)"),
        ({"data": ("dp", "tp"), "context": "tp"}, "dimension 'tp' of the mesh is named 2 times"),
        ({"data": "ep", "replicate": ("dp", "tp")}, "data names 'ep', and the dimensions of the mesh are dp, tp"),
        ({"data": "dp", "context": "tp", "layout": "ring"}, "layout must be one of contiguous, zigzag, got 'ring'"),
        ({"data": "dp", "context": "tp", "sequence": "id"}, r"'id'.* is not a sequence"),
        ({"data": "dp", "context": "tp", "sequence": "other"}, "sequence names other, which must be keys"),
        ({"data": "dp", "context": "tp", "positions": "id"}, "choose another name"),
    ],
)
def test_what_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Loader(BATCHES, mesh=Mesh(("dp", "tp"), (2, 2), (0, 0)), **options)


def test_sequences_that_cannot_be_divided_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"a sequence of 12 cannot be divided into 10 .* multiple of 10"):
        IterableView(BATCHES, place=MeshPlace(parts=5, layout="zigzag"))
    ragged = Dataset.range(1, 5).map(lambda x: np.arange(x), output_signature=di.TensorSpec([None], "int64"))
    unknown = IterableView(ragged.padded_batch(4), place=MeshPlace(parts=3))
    with pytest.raises(InvalidArgumentError, match="a sequence of 4 cannot be divided into 3"):
        list(unknown)
    with pytest.raises(InvalidArgumentError, match=r"is ragged.*padded_batch"):
        IterableView(ragged.ragged_batch(4), place=MeshPlace(parts=2))
    with pytest.raises(InvalidArgumentError, match="no component has one"):
        IterableView(ROWS.batch(4), place=MeshPlace(parts=2))
    two = Dataset.range(4).map(lambda x: (np.arange(4), np.arange(6))).batch(2)
    with pytest.raises(InvalidArgumentError, match=r"must have one length, and these have 4, 6"):
        IterableView(two, place=MeshPlace(parts=2))


def test_a_mesh_has_names_and_this_rank() -> None:
    with pytest.raises(TypeError, match="a DeviceMesh whose dimensions have names"):
        Loader(BATCHES, mesh=Mesh((), (2,), (0,)), data="dp")
    with pytest.raises(InvalidArgumentError, match="this rank is not in the mesh"):
        Loader(BATCHES, mesh=Mesh(("dp",), (2,), None), data="dp")
    with pytest.raises(TypeError, match="pass mesh="):
        Loader(BATCHES, data="dp")
    with pytest.raises(TypeError, match="pass either"):
        Loader(BATCHES, 0, 2, mesh=Mesh(("dp",), (2,), (0,)), data="dp")
    with pytest.raises(InvalidArgumentError, match="part must be from 0 to 1, got 2"):
        MeshPlace(part=2, parts=2)


PROGRAM = """
import json, sys, torch
from torch.distributed import destroy_process_group, init_process_group
from torch.distributed.device_mesh import init_device_mesh
import distinput as di
rank, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
init_process_group("gloo", init_method="tcp://127.0.0.1:" + port, rank=rank, world_size=4)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
ds = di.data.Dataset.range(24).batch(4).batch(3)
loader = di.interop.torch.Loader(ds, mesh=mesh, data=("dp",), context="cp", num_workers=1 if rank == 3 else 0)
open(f"{folder}/{rank}.json", "w").write(json.dumps([step.tolist() for step in loader]))
destroy_process_group()
"""


def test_real_ranks(tmp_path: Path) -> None:
    port = str(free_ports(1)[0])
    with (tmp_path / "output.txt").open("wb") as file:
        processes = [
            start([sys.executable, "-c", PROGRAM, str(rank), port, str(tmp_path)], {}, file, "torch")
            for rank in range(4)
        ]
        assert wait_for(processes, 150) == [0] * 4, (tmp_path / "output.txt").read_text()
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(4)]
    assert found == [
        [[[0, 1], [4, 5]], [[12, 13], [16, 17]]],
        [[[2, 3], [6, 7]], [[14, 15], [18, 19]]],
        [[[8, 9]], [[20, 21]]],
        [[[10, 11]], [[22, 23]]],
    ]


def test_axes_that_the_spec_does_not_tell_are_seen_in_each_batch() -> None:
    spec = {"tokens": di.TensorSpec([4], "int64"), "id": di.TensorSpec(None, "int64")}
    one = {"tokens": np.arange(4), "id": np.int64(7)}
    dataset = Dataset.from_generator(lambda: iter([one, one]), output_signature=spec).batch(2)
    (step,) = IterableView(dataset, place=MeshPlace(part=1, parts=2))
    assert (step["tokens"].tolist(), step["id"].tolist()) == ([[2, 3], [2, 3]], [7, 7])
    unknown = di.TensorSpec(None, "int64")
    flat = Dataset.from_generator(lambda: iter([np.int64(7)] * 2), output_signature=unknown).batch(2)
    for given, place, says in (
        (dataset, MeshPlace(part=1, parts=2, sequence=("id",)), r"component \['id'\] is no sequence"),
        (flat, MeshPlace(part=1, parts=2), "no component of this batch is a sequence"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            list(IterableView(given, place=place))
