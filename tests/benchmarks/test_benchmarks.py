# SPDX-License-Identifier: Apache-2.0
"""Every benchmark runs at a tiny size and its contenders deliver the same; no time is looked at."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.harness import missing_packages, timed
from benchmarks.run import BENCHMARKS, main
from tests.benchmarks import played
from tests.depth import DEEP

TINY = 0.001


@pytest.fixture(autouse=True)
def _as_in_a_contender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTINPUT_KERNELS", "compiled")


needs = pytest.mark.needs
MARKS: dict[str, tuple[pytest.MarkDecorator, ...]] = {
    "chats": (needs("jax"),),
    "feeds": (needs("torch", "jax", "keras"),),
    "gpu": (needs("torch", "jax"),),
    "images": (needs("simplejpeg", "PIL"),),
    # Its processes wait at their end for a kernel that is being compiled.
    "import_time": (pytest.mark.slow,),
    "lockstep": (pytest.mark.loads("torch"),),
    "padded_batch": (needs("google_crc32c"),),
    "ragged_batch": (needs("google_crc32c"),),
    "remote": (needs("obstore"),),
    "service": (needs("distributed"),),
    # webdataset leaves archives open.
    "tar": (pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),),
    "tfrecord_example": (needs("google_crc32c"),),
    "tpu_strategy": (needs("jax"),),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in BENCHMARKS])
def test_contenders_deliver_the_same(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    if name == "service":
        request.addfinalizer(module.end)
    module.prepare(tmp_path, TINY)
    cases = module.cases(tmp_path, TINY)
    assert len({case.name for case in cases}) == len(cases) > 0
    for case in cases:
        assert case.ours.needs == ()
        assert len({contender.name for contender in case.contenders}) == len(case.contenders)
        sums = {}
        for contender in case.contenders:
            # Peers that change a whole process when they are loaded run in their own, in real runs.
            if "tensorflow" in contender.needs or missing_packages(contender):
                continue
            if not DEEP and contender.needs and contender.kind == "peer":  # other libraries; some start many processes
                continue
            work = contender.load()
            if work.check is not None:
                sums[contender.name] = work.check()
            if DEEP or contender is case.ours:
                assert timed(work, 0.0).seconds > 0
                assert all(value >= 0 for value in work.facts().values())
        assert len(set(sums.values())) == 1, (case.name, sums)


def test_every_benchmark_is_in_the_table() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    machinery = {
        "__init__",
        "checksum",
        "figures",
        "guard",
        "harness",
        "host",
        "page",
        "plot",
        "run",
        "serve",
        "simulated_jobs",
    }
    assert sorted(BENCHMARKS) == sorted({path.stem for path in folder.glob("*.py")} - machinery)


def test_every_benchmark_is_in_the_readme() -> None:
    text = (Path(__file__).parents[2] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert [name for name in BENCHMARKS if f"`{name}`" not in text] == []


def test_a_run_prints_tables_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["range_batch", "--scale", str(TINY), "--rounds", "2", "--no-peers", "--results", str(tmp_path)]
    assert main([*arguments, "--case", "1024"]) == 0
    printed = capsys.readouterr().out
    assert "slice of an array (limit)" in printed
    assert "tf.data" not in printed
    written = json.loads((tmp_path / "range_batch.json").read_text(encoding="utf-8"))
    (result,) = written["results"]
    assert (written["benchmark"], result["case"], result["rounds"]) == ("range_batch", "batch(1024)", 2)
    assert [len(contender["seconds"]) for contender in result["contenders"]] == [2, 2, 2]
    assert result["summary"][0]["ratio"] > 0
    assert written["machine"]["packages"]["numpy"]


def test_a_case_that_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "BENCHMARKS", ("played",))
    monkeypatch.setitem(sys.modules, "benchmarks.played", played)
    assert main(["--scale", "1", "--rounds", "1", "--results", str(tmp_path)]) == 1
    written = json.loads((tmp_path / "played.json").read_text(encoding="utf-8"))
    assert [result["case"] for result in written["results"]] == ["agree", "peer fails"]
    said = capfd.readouterr()
    assert "failed: played, differ: differ: other delivered other values than ours" in said.err
    assert "failed: played, limit fails: broken: failed at 'load'" in said.err
    assert "no_such_package is not installed" in said.out


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "no benchmark is called nothing; there are range_batch, rebatch," in capsys.readouterr().err
