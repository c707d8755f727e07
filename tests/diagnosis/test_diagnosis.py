# SPDX-License-Identifier: Apache-2.0
"""What is wrong comes first; advice is given where it helps, and nowhere else."""

import json
from collections.abc import Sequence

import pytest

from distinput import diagnosis
from distinput.diagnosis import Diagnosis, Machine, Package, diagnose, packages

GOOD = Machine("Linux x86_64", "3.12.1", 8, None, 4 << 30, 65536)
NUMPY, OLD, MISSING = (Package("numpy", "", "2.0", found) for found in ("2.1", "1.26", None))
TORCH = Package("torch", "torch", "2.6", "2.7")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> object:
    def diagnosed(packages: Sequence[Package], kernels: dict[str, bool], machine: Machine = GOOD) -> Diagnosis:
        monkeypatch.delenv("DISTINPUT_KERNELS", raising=False)
        monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
        monkeypatch.setattr(diagnosis, "packages", lambda: packages)
        monkeypatch.setattr(diagnosis, "cached_kernels", lambda: kernels)
        monkeypatch.setattr(diagnosis, "this_machine", lambda: machine)
        return diagnose()

    return diagnosed


def test_a_machine_that_has_all_gets_no_advice(found) -> None:  # type: ignore[no-untyped-def]
    assert found([NUMPY, TORCH], {"a": True}).advice == []


@pytest.mark.parametrize(
    "packages, kernels, machine, wrong, says",
    [
        ([MISSING, TORCH], {}, GOOD, True, "numpy is not installed, and distinput needs it: pip install"),
        ([OLD, TORCH], {}, GOOD, True, "numpy 1.26 is older than 2.0"),
        ([NUMPY], {}, GOOD, False, "no engine for several processes"),
        (
            [NUMPY, TORCH, Package("pillow", "images", "10", None)],
            {},
            GOOD,
            False,
            "^images cannot be decoded: .*distinput.images",
        ),
        ([NUMPY, TORCH, Package("obstore", "obstore", "0.6", None)], {}, GOOD, False, "s3://.*distinput.obstore"),
        ([NUMPY, TORCH], {"a": True, "b": False}, GOOD, False, "1 of 2 kernels .*distinput kernels build"),
        ([TORCH], {}, Machine("", "", 8, 1.5, None, None), False, "may keep 1.5 of its 8 cores busy"),
        ([TORCH], {}, Machine("", "", 8, None, None, 256), False, "may open only 256 files"),
    ],
)
def test_what_could_be_better_is_said(found, packages, kernels, machine, wrong, says) -> None:  # type: ignore[no-untyped-def]
    told = found(packages, kernels, machine)
    (advice,) = told.advice
    assert advice.wrong is wrong is not told.well
    assert __import__("re").search(says, advice.text)


def test_each_extra_says_what_it_is_for() -> None:
    assert {package.extra for package in packages() if package.extra} == set(diagnosis.PURPOSES)


def test_what_is_wrong_comes_first(found) -> None:  # type: ignore[no-untyped-def]
    told = found([NUMPY, Package("torch", "torch", "2.6", "1.0")], {"a": False})
    assert [one.wrong for one in told.advice] == [True, False, False]
    assert json.loads(json.dumps(told.to_dict()))["well"] is False


@pytest.mark.parametrize("name, value", [("DISTINPUT_KERNELS", "reference"), ("NUMBA_DISABLE_JIT", "1")])
def test_a_setting_that_makes_everything_slow_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISTINPUT_KERNELS", raising=False)
    monkeypatch.setenv(name, value)
    assert any(one.text.startswith(name) for one in diagnose().advice)


def test_the_kernels_are_all_there_are() -> None:
    assert {"scan_records", "pack_rows"} & set(diagnose().kernels)
