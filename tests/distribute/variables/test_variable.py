# SPDX-License-Identifier: Apache-2.0
"""Single variables: facts, arithmetic, reading and writing."""

from typing import Any

import numpy as np
import pytest

import distinput as di


def test_it_is_its_value() -> None:
    v = di.Variable([1.0, 2.0])
    assert (v + 1).tolist() == [2, 3]
    assert (np.ones(2) * v).tolist() == [1, 2]
    assert np.exp(v).dtype == np.float32
    assert np.sum(v) == 3
    assert list(v) == [1, 2]
    assert (v == [1, 3]).tolist() == [True, False]
    assert (v @ v, len(v), (-v).tolist(), (2**v).tolist()) == (5, 2, [-1, -2], [2, 4])
    assert np.stack([v, v]).shape == (2, 2)


def test_a_scalar_is_a_number() -> None:
    v = di.Variable(3)
    assert (float(v), int(v), bool(v), [0, 1, 2, 3][v], v + 1, 10 // v, divmod(v, 2)) == (3, 3, True, 3, 4, 3, (1, 1))


def test_facts() -> None:
    def clip(x: Any) -> Any:
        return np.clip(x, 0, 1)

    v = di.Variable([1, 2], name="w", trainable=False, constraint=clip)
    assert (v.name, v.shape, v.dtype, v.trainable, v.device) == ("w:0", (2,), np.int32, False, "CPU:0")
    assert (v.synchronization.name, v.aggregation.name, v.constraint) == ("AUTO", "NONE", clip)
    assert (v.get_shape().as_list(), v.initializer, v.is_initialized()) == ([2], None, True)


@pytest.mark.parametrize("name", ["eval", "from_proto", "graph", "op", "to_proto", "SaveSliceInfo"])
def test_what_needs_a_graph_says_so(name: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"has no attribute '{name}': .* \(\"Graph mode\" in docs/tensorflow\.md\)"
    ):
        getattr(di.Variable(1.0), name)


def test_there_is_no_other_attribute() -> None:
    with pytest.raises(AttributeError, match="'ResourceVariable' object has no attribute 'nothing'"):
        di.Variable(1.0).nothing  # noqa: B018 - the attribute raises
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
        di.Variable(1.0).initial_value  # noqa: B018 - the property raises


def test_writes_can_be_chained() -> None:
    assert di.Variable(1.0).assign(2.0).assign_add(3.0).assign_sub(1.0).numpy() == 4
    assert di.Variable(1.0).assign(2.0, read_value=False) is None


def test_operators_do_not_change_it() -> None:
    v = di.Variable(1.0)
    with pytest.raises(
        RuntimeError, match=r"`variable \+= value` with .* Use `variable.assign_add\(value\)` to modify"
    ):
        v += 1
    with pytest.raises(RuntimeError, match=r"Use `variable.assign\(variable \* value\)` to modify"):
        v *= 2
    with pytest.raises(TypeError, match="out must be an array, got a ResourceVariable"):
        np.add(1, 2, out=v)
    assert v.numpy() == 1


def test_a_value_that_was_read_never_changes() -> None:
    given = np.zeros(2)
    v = di.Variable(given)
    before = v.value()
    v.assign_add([1.0, 1.0])
    given += 5
    v.numpy()[:] = 7
    assert (before.tolist(), v.numpy().tolist()) == ([0, 0], [1, 1])
    v.assign(given)
    given += 5
    assert v.numpy().tolist() == [5, 5]
    with pytest.raises(ValueError, match="read-only"):
        v.value()[0] = 1


@pytest.mark.parametrize(
    "value, want",
    [
        (1.0, "shape=() dtype=float32, numpy=1.0"),
        (1, "shape=() dtype=int32, numpy=1"),
        ("ä", "shape=() dtype=string, numpy=b'\\xc3\\xa4'"),
        (True, "shape=() dtype=bool, numpy=True"),
        ([1.0], "shape=(1,) dtype=float32, numpy=array([1.], dtype=float32)"),
    ],
)
def test_it_is_shown_as_tensorflow_shows_it(value: Any, want: str) -> None:
    assert repr(di.Variable(value)) == f"<tf.Variable 'Variable:0' {want}>"


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match=r"'Variable:0': Shape mismatch. The variable shape \(2,\)"):
        di.Variable([1, 2]).assign([1, 2, 3])


def test_a_shape_that_is_not_definite() -> None:
    v = di.Variable([1, 2], shape=[None])
    assert v.assign([1, 2, 3]).numpy().tolist() == [1, 2, 3]
    assert (v.shape, v._store.shape) == ((None,), (3,))
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([[1]])
    v.set_shape([4])
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1, 2, 3, 4, 5])
    for free in (di.Variable(1, validate_shape=False), di.Variable(1, shape=di.TensorShape(None))):
        assert free.assign([[1, 2]]).numpy().tolist() == [[1, 2]]


def test_older_names() -> None:
    v = di.Variable(1.0)
    v.load(2.0)
    assert (v.initialized_value(), v.experimental_ref() == v.ref()) == (2, True)
