# SPDX-License-Identifier: Apache-2.0
from functools import partial
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import distinput as di
from distinput.distribute.tpu.arguments import Constant, RunArguments, Shared, Split, function_key, unshared
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.errors import InvalidArgumentError

MESH = ReplicaMesh.of(jax.devices()[:2])
LIMIT = 3


def of(*args: Any) -> RunArguments:
    return RunArguments.of(args, {}, MESH)


def per_replica(*values: Any) -> Any:
    return di.distribute.PerReplica(values)


def test_kinds_of_arguments() -> None:
    found = of(per_replica(1, 2), np.zeros(3), 5, "text", None, [jax.numpy.ones(2)])
    assert [type(leaf) for leaf in found.leaves] == [Split, Shared, Constant, Constant, Shared]
    assert found.even
    assert found.rows is None


def test_rows_are_those_that_all_arrays_have() -> None:
    x, y = per_replica(np.zeros((3, 2)), np.zeros((1, 2))), per_replica(np.zeros(3), np.zeros(1))
    assert of({"x": x, "y": y}, per_replica(1, 2)).rows == (3, 1)
    assert of(x, per_replica(np.zeros(4), np.zeros(4))).rows is None
    assert not of(x).even


def uses_globals() -> Any:
    return helper(), counter  # type: ignore[name-defined] # noqa: F821 - made by the test


def test_another_function_or_variable_under_the_name_of_a_global_is_another_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for helper, counter in [(of, di.Variable(1.0)), (per_replica, di.Variable(1.0))]:
        monkeypatch.setitem(globals(), "helper", helper)
        found.append(function_key(uses_globals))
        monkeypatch.setitem(globals(), "counter", counter)
        found.append(function_key(uses_globals))
    assert found[-1] == function_key(uses_globals)
    assert len(set(found)) == 4


def test_padding_repeats_a_row_of_data() -> None:
    value = per_replica(np.array([1, 2]), np.zeros(0, np.int64))
    made = of(value).splits[0].on_devices(MESH, 3)
    assert np.asarray(made).tolist() == [1, 2, 2, 1, 1, 1]
    parts = [jax.device_put(x.astype(np.int32), d) for x, d in zip(value.values, jax.devices(), strict=False)]
    assert np.asarray(of(per_replica(*parts)).splits[0].on_devices(MESH, 3)).tolist() == [1, 2, 2, 1, 1, 1]


def test_parts_must_fit_together() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"args\[0\]\[0\] must have the same dtype.*float32\[2, 3\] on replica 0"
    ):
        of(per_replica(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)))
    with pytest.raises(InvalidArgumentError, match="must be numbers to be put on a device, got text"):
        of(per_replica("a", "b"))


def test_keys_tell_values_and_types_apart() -> None:
    keys = [of(x).key(None) for x in (1, 1.0, True, 0.0, -0.0, "1", b"1", None, np.int32(1), float("nan"))]
    assert len(set(keys)) == len(keys)
    assert of(float("nan")).key(None) == of(float("nan")).key(None)
    assert of(np.int32(1)).key(None) == of(np.int32(2)).key(None)
    something = object()
    assert of(something).key(None) == of(something).key(None) != of(object()).key(None)


def test_a_function_is_its_code_and_what_it_closes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        def step(self, x: Any) -> Any:
            return x

    def limited(x: Any) -> Any:
        return x < LIMIT

    model = Model()
    assert function_key(model.step) == function_key(model.step) != function_key(Model().step)
    assert function_key(partial(limited, 1)) == function_key(partial(limited, 1)) != function_key(partial(limited, 2))
    before = function_key(limited)
    monkeypatch.setitem(limited.__globals__, "LIMIT", 4)
    assert function_key(limited) != before


def test_a_function_may_close_over_itself() -> None:
    def made(limit: int) -> Any:
        def down(x: int) -> int:
            return x if x < limit else down(x - 1)

        return down

    down = made(2)
    assert function_key(down) == function_key(down)


def test_an_array_that_may_be_written_to_is_copied() -> None:
    array = np.zeros(3)
    assert unshared(array) is not array
    array.flags.writeable = False
    assert unshared(array) is array


def test_small_floats_of_one_size_are_told_apart() -> None:
    kinds = [np.zeros(2, dtype) for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
    assert len({of(per_replica(x, x)).key(None) for x in kinds}) == 2
    assert len({of(x).key(None) for x in kinds}) == 2
