# SPDX-License-Identifier: Apache-2.0
"""`fit`, `evaluate` and `predict` of Keras over datasets: what Keras reports is what NumPy computes."""

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from tests.engines.processes import ROOT

DEVICES = "--xla_force_host_platform_device_count=4"
NEEDED = {"jax": ("keras", "jax"), "torch": ("keras", "torch")}


@cache
def loops(backend: str) -> dict[str, Any]:
    """What tests/interop/keras_loops.py finds on a backend; a process has one."""
    if lacks := [name for name in NEEDED[backend] if find_spec(name) is None]:
        pytest.skip(f"{', '.join(lacks)} not installed; `make test` installs it")
    found = subprocess.run(
        [sys.executable, "-m", "tests.interop.keras_loops"],
        env={**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": DEVICES},
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    answers: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    assert answers["backend"] == backend
    return answers


REFUSED = {
    "list": "TypeError: interop.keras.Sequence: needs a dataset, got a list",
    "four": "TypeError: interop.keras.Sequence: elements must be x, (x, y) or (x, y, sample_weight), got tuples of 4",
    "tail": "ValueError: interop.keras.Sequence: tail must be one of drop, error, pad, partial, got 'none'",
    "short": "InvalidArgumentError: tail='error': every batch must have 16 rows, and one has 2",
    "hidden": "InvalidArgumentError: tail='error': every batch must have 16 rows, and one has 2",
    "unknown": "ValueError: interop.keras.Sequence: Keras needs to know how many batches there are",
    "targets": "ValueError: interop.keras.Sequence: tail='pad' needs elements (x, y) or (x, y, sample_weight)",
    "size": "ValueError: interop.keras.Sequence: the batch size is not known",
    "other size": "InvalidArgumentError: interop.keras.Sequence: batch_size is 2, but the batches have 16 rows",
    "no size": "InvalidArgumentError: interop.keras.Sequence: batch_size must be greater than zero, got 0",
    "text": "TypeError: interop.keras.Sequence: Keras takes dense arrays of numbers, and component [1] is TensorSpec(",
    "ragged": "TypeError: interop.keras.Sequence: Keras takes dense arrays of numbers, and the element is RaggedTensorSpec(",
    "scalars": "ValueError: interop.keras.Sequence: elements must be batches, and the element has no batch axis",
    "len": "TypeError: interop.keras.Sequence: the dataset is infinite",
}
pytestmark = pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=pytest.mark.loads(name)) for name in ("jax", "torch")]
)
ROWS = 50


def test_evaluate_over_uneven_data_is_exact(backend: str) -> None:
    found = loops(backend)
    squared, absolute = found["expected"]
    assert found["evaluated partial"] == pytest.approx([squared, absolute, squared], rel=1e-5)


def test_rows_that_were_added_have_no_weight(backend: str) -> None:
    found = loops(backend)
    loss, absolute, weighted = found["evaluated pad"]
    assert weighted == pytest.approx(found["expected"][0], rel=1e-5)
    assert loss == pytest.approx(found["expected"][0] * ROWS / 64, rel=1e-5), "Keras divides by all rows of a batch"
    assert absolute != pytest.approx(found["expected"][1], rel=1e-2), "it gives metrics no weights"
    assert found["shapes"] == [16]
    assert found["weights"][-4:] == [16, 16, 16, 2]


def test_predictions_are_in_the_order_of_the_rows(backend: str) -> None:
    found = loops(backend)
    assert found["predicted"] == [[ROWS, 1], pytest.approx(0, abs=1e-5)]
    assert found["predicted of x alone"] == pytest.approx(0, abs=1e-5)


def test_every_epoch_has_every_row_once_in_another_order(backend: str) -> None:
    found = loops(backend)
    assert found["looked at"], "the batch that Keras builds the model with is part of the first epoch, too"
    assert len(found["epochs"]) == 3
    for epoch in found["epochs"]:
        assert sorted(epoch) == list(range(ROWS))
    assert len({tuple(epoch) for epoch in found["epochs"]}) == 3
    assert found["losses"] == [True, 3]


def test_training_goes_on_with_a_later_epoch(backend: str) -> None:
    found = loops(backend)
    assert found["epoch 2"] == found["epochs"][2]


def test_steps_are_those_of_the_rows_that_are_data(backend: str) -> None:
    assert loops(backend)["trained"] < 1e-5


def test_data_without_an_end_goes_on_from_epoch_to_epoch(backend: str) -> None:
    assert loops(backend)["endless"] == [*range(ROWS), *range(32)]


def test_after_training_was_stopped_the_next_call_has_a_whole_pass(backend: str) -> None:
    assert loops(backend)["after a stop"] == [list(range(ROWS))] * 5


def test_epochs_of_fewer_steps_than_a_pass_go_on_where_the_one_before_ended(backend: str) -> None:
    """Keras ends every second one early, since it does not begin the data anew in an epoch."""
    assert loops(backend)["three of four steps"] == [[*range(ROWS), *range(ROWS)]] * 5


def test_padded_batches_are_divided_among_devices(backend: str) -> None:
    if backend == "jax":
        assert loops(backend)["divided"] == [4, pytest.approx(loops(backend)["expected"][0], rel=1e-5)]


def test_what_is_refused(backend: str) -> None:
    found = loops(backend)["refused"]
    assert found.keys() == REFUSED.keys()
    for name, message in REFUSED.items():
        assert found[name].startswith(message)


def test_short_batches_are_dropped_or_refused(backend: str) -> None:
    found = loops(backend)
    assert found["dropped"] == [list(range(48)), 3]
    assert found["full"] == [list(range(32)), 2]


def test_weights_of_rows_are_multiplied(backend: str) -> None:
    assert loops(backend)["weighted"] == [[0.5] * 16, [0.5] * 4 + [0.0] * 12]


def test_weights_of_several_outputs_are_multiplied(backend: str) -> None:
    assert loops(backend)["weighted outputs"] == [{"a": 8.0, "b": 16.0}, {"a": 2.0, "b": 4.0}]
