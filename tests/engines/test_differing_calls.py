# SPDX-License-Identifier: Apache-2.0
"""On every engine: workers that make different calls all get the same error, which names both, and no wrong number."""

import pytest

from tests.engines.processes import run


@pytest.mark.parametrize("engine", ["torch", "mpi", "jax"])
def test_workers_that_call_differently(engine: str) -> None:
    ways = ["one more", "operation", "swapped"]
    zero, one = run(engine, [1, 1], "differ", ways).results
    for way in ways:
        assert zero[way]["error"] == one[way]["error"] == "Mismatch", (way, zero, one)
        assert zero[way]["text"].split("they called")[1] == one[way]["text"].split("they called")[1]
        assert zero[way]["text"].count("programs.py:") >= 2
    assert "rank 0: reduce SUM, axis=None" in zero["operation"]["text"]
    assert "rank 1: reduce MEAN, axis=None" in zero["operation"]["text"]
    assert "given float64[2]" in zero["swapped"]["text"]


@pytest.mark.parametrize("engine", ["torch", "jax"])  # MPI ends the job where a call is left under way
def test_workers_that_wait_for_one_another_in_different_calls(engine: str) -> None:
    for found in run(engine, [1, 1], "differ", ["crossed"], timeout=120.0).results:
        assert found["crossed"]["error"] == "Mismatch", found
        assert "reduce SUM, axis=None, after step 1 of the input (call" in found["crossed"]["text"]
        assert "next step of input 1, at programs.py:" in found["crossed"]["text"]
        assert found["crossed"]["after"] < 60.0  # not when the time of the group is over
