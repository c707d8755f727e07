# SPDX-License-Identifier: Apache-2.0
"""The kinds of things that are saved, those of PyTorch and JAX among them."""

from typing import Any

import numpy as np
import pytest

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.train import Checkpoint
from distinput.train.checkpoint_file import write_checkpoint
from distinput.train.coding import KINDS, Aside, coded, kind_of


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def get_state(self) -> Any:
        return {"n": self.n, "big": np.full(20_000, self.n)}

    def set_state(self, state: Any) -> None:
        self.n = state["n"]
        assert (state["big"] == self.n).all()


def test_objects_that_get_and_set_their_state(tmp_path: Any) -> None:
    counter = Counter()
    counter.n = 3
    checkpoint = Checkpoint(counter=counter)
    path = checkpoint.save(tmp_path / "ckpt")
    counter.n = 9
    checkpoint.restore(path).assert_consumed()
    assert counter.n == 3


def test_modules_and_optimizers_of_pytorch(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")

    def made() -> Any:
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).to(torch.bfloat16)
        optimizer = torch.optim.Adam(model.parameters())
        generator = torch.Generator()
        return Checkpoint(
            model=model, optimizer=optimizer, generator=generator, loose=[torch.zeros(2, requires_grad=True)]
        )

    def step(checkpoint: Any) -> Any:
        given = torch.randn(4, 2, generator=checkpoint.generator).to(torch.bfloat16)
        loss = checkpoint.model(given).float().square().sum()
        checkpoint.optimizer.zero_grad()
        loss.backward()
        checkpoint.optimizer.step()
        return [parameter.detach().float().numpy().tolist() for parameter in checkpoint.model.parameters()]

    checkpoint = made()
    step(checkpoint)
    with torch.no_grad():
        checkpoint.loose[0] += 5
    path = checkpoint.save(tmp_path / "ckpt")
    expected = step(checkpoint)
    other = made()
    other.restore(path).assert_consumed()
    assert step(other) == expected
    assert other.loose[0].tolist() == [5, 5]
    with pytest.raises(InvalidArgumentError, match=r"'loose/0' is a tensor of dtype float32 and shape \[3\]"):
        Checkpoint(loose=[torch.zeros(3)]).restore(path)


def test_an_optimizer_is_no_root_but_a_module_is(tmp_path: Any) -> None:
    """The attributes of an optimizer do not hold its state under names."""
    torch = pytest.importorskip("torch")
    model = torch.nn.BatchNorm1d(2)
    with pytest.raises(InvalidArgumentError, match="root must be a dict or an object whose parts"):
        Checkpoint(torch.optim.Adam(model.parameters()))
    path = Checkpoint(model).save(tmp_path / "ckpt")
    other = torch.nn.BatchNorm1d(2)
    other.running_mean += 3
    Checkpoint(other).restore(path).assert_consumed()
    assert other.running_mean.tolist() == [0, 0]


def test_tensors_that_are_views_of_others_numbers_are_saved(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    conjugate = torch.tensor([1 + 2j]).conj()
    path = Checkpoint(a=conjugate, b=conjugate.imag).save(tmp_path / "ckpt")
    made: Any = Checkpoint(a=torch.zeros(1, dtype=torch.complex64), b=torch.zeros(1))
    made.restore(path).assert_consumed()
    assert (made.a.tolist(), made.b.tolist()) == ([1 - 2j], [-2])


def test_arrays_of_jax_are_replaced(tmp_path: Any) -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    checkpoint: Any = Checkpoint(w={"a": jnp.ones(3, jnp.bfloat16)}, pair=(jnp.zeros(2), 3))
    path = checkpoint.save(tmp_path / "ckpt")
    checkpoint.w["a"], checkpoint.pair = jnp.zeros(3, jnp.bfloat16), (jnp.ones(2), 4)
    checkpoint.restore(path).assert_consumed()
    assert isinstance(checkpoint.w["a"], jax.Array)
    assert (checkpoint.w["a"].tolist(), checkpoint.w["a"].dtype) == ([1, 1, 1], jnp.bfloat16)
    assert (checkpoint.pair[0].tolist(), checkpoint.pair[1]) == ([0, 0], 3)
    with pytest.raises(TypeError, match=r"'key' is an array of random keys; save jax\.random"):
        Checkpoint(key=jax.random.key(1)).save(tmp_path / "ckpt")


def test_read_only_arrays_are_replaced(tmp_path: Any) -> None:
    array = np.arange(3)
    array.flags.writeable = False
    path = Checkpoint(a=array).save(tmp_path / "ckpt")
    other = np.zeros(3, np.int64)
    other.flags.writeable = False
    checkpoint: Any = Checkpoint(a=other)
    checkpoint.restore(path).assert_consumed()
    assert (checkpoint.a.tolist(), other.tolist()) == ([0, 1, 2], [0, 0, 0])


def test_another_generator_or_container_is_refused(tmp_path: Any) -> None:
    path = Checkpoint(rng=np.random.default_rng(1), names=["a"]).save(tmp_path / "ckpt")
    with pytest.raises(InvalidArgumentError, match="'rng' is a generator of kind MT19937 in the program, and PCG64"):
        Checkpoint(rng=np.random.Generator(np.random.MT19937(1))).restore(path)
    with pytest.raises(InvalidArgumentError, match="'names' is a dict in the program and a list in the checkpoint"):
        Checkpoint(names={}).restore(path)


@pytest.mark.parametrize("state", [{}, {"bit_generator": "PCG64", "state": {"state": "x", "inc": 1}, "has_uint32": 0}])
def test_what_is_no_state_of_a_generator_is_damage(tmp_path: Any, state: Any) -> None:
    saved = coded({"bit_generator": "PCG64", **state}, Aside(), "rng", inline=True)
    header = {"save_counter": 1, "run_calls": 1, "entries": {"rng": {"kind": "generator", "value": saved}}}
    write_checkpoint(str(tmp_path / "ckpt"), header, {})
    with pytest.raises(DataLossError, match="'rng' is no state of a generator"):
        Checkpoint(rng=np.random.default_rng(1)).restore(tmp_path / "ckpt")


def test_names_of_kinds_are_different() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert kind_of(object()) is None
