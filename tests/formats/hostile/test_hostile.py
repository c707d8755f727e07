# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with a file, reading it ends in an error that names it, or gives what a strict reader finds in it."""

import subprocess
import sys
from collections.abc import Callable
from random import Random

import pytest

from tests.depth import cases
from tests.formats.hostile.hunt import FINE, ROOT, environment, numbers, outcomes
from tests.formats.hostile.kinds import KINDS, content, count
from tests.formats.hostile.samples import SAMPLES, Sample
from tests.formats.hostile.worker import case, until_error


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_what_is_whole_is_read_as_it_is(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> None:
    if sample.damage(b"", Random(0)) != b"":
        pytest.skip("its files are made up, and none of them need be whole")
    folder = tmp_path_factory.mktemp("whole")
    whole = sample.written(sample.content)
    for more, given in {sample.suffix: whole, **sample.beside}.items():
        (folder / f"file{more}").write_bytes(given)
    found, error = until_error(sample.read(folder / "file", "all"))
    assert error is None
    assert len(found) > 0
    if sample.rows is not None:
        truth, untrue = until_error(sample.rows(whole, sample))
        assert untrue is None
        assert repr(found) == repr(truth)


def test_the_same_numbers_make_the_same_files() -> None:
    for kind in ("random", *KINDS):
        for number in numbers(kind, len(SAMPLES)):
            assert case(kind, number, SAMPLES) == case(kind, number, SAMPLES)


def test_each_part_of_each_sample_has_a_number() -> None:
    for kind, (size, made) in KINDS.items():
        for place, sample in enumerate(SAMPLES):
            for turn in (0, size(sample) - 1):
                start = sum(map(size, SAMPLES[:place]))
                assert content(kind, start + turn, SAMPLES) == (place, made(sample, turn), turn)
        assert count(kind, SAMPLES) == sum(map(size, SAMPLES))


def test_no_kernel_looks_before_or_behind_the_bytes_it_is_given(record_property: Callable[[str, object], None]) -> None:
    tried = cases(150, 20_000)
    record_property("tried", tried)
    command = [sys.executable, "-m", "tests.formats.hostile.guarded", str(tried)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]


WANTED = {"random": (450, 25_000), "cuts": (300, 10**6), "flips": (250, 80_000), "lengths": (250, 80_000)}
"""How many files of each kind are tried, in `make test` and in `make test-deep`: there, of cuts, all."""


@pytest.mark.parametrize("kind", WANTED)
def test_damaged_files(kind: str, record_property: Callable[[str, object], None]) -> None:
    bad, tried, wanted = [], 0, numbers(kind, cases(*WANTED[kind]))
    for number, sample, line in outcomes(kind, wanted):
        tried += 1
        if line.split(" ")[0] not in FINE:
            bad.append((number, sample, line))
    record_property("tried", tried)
    assert not bad
    assert tried == len(wanted)
