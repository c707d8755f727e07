# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with a file, reading it ends in an error that names it, or gives what a strict reader finds in it."""

import subprocess
import sys
from random import Random

import pytest

from tests.depth import cases
from tests.formats.hostile.hunt import FINE, ROOT, environment, outcomes
from tests.formats.hostile.samples import SAMPLES, Sample
from tests.formats.hostile.worker import case, until_error


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_what_is_whole_is_read_as_it_is(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> None:
    if sample.damage(b"", Random(0)) != b"":
        pytest.skip("its files are made up, and none of them need be whole")
    folder = tmp_path_factory.mktemp("whole")
    content = sample.written(sample.content)
    for more, given in {sample.suffix: content, **sample.beside}.items():
        (folder / f"file{more}").write_bytes(given)
    found, error = until_error(sample.read(folder / "file", "all"))
    truth, untrue = until_error(sample.rows(content, sample))
    assert error is untrue is None
    assert repr(found) == repr(truth)
    assert len(found) > 0


def test_the_same_numbers_make_the_same_files() -> None:
    for number in range(len(SAMPLES)):
        assert case(number, SAMPLES)[1] == case(number, SAMPLES)[1]


def test_no_kernel_looks_before_or_behind_the_bytes_it_is_given() -> None:
    command = [sys.executable, "-m", "tests.formats.hostile.guarded", str(cases(300, 20_000))]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def test_damaged_files() -> None:
    bad, tried = [], 0
    for number, sample, line in outcomes(0, len(SAMPLES) * cases(12, 450)):
        tried += 1
        if line.split(" ")[0] not in FINE:
            bad.append((number, sample, line))
    assert not bad
    assert tried == len(SAMPLES) * cases(12, 450)
