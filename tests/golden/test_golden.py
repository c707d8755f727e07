# SPDX-License-Identifier: Apache-2.0
"""distinput gives the answers that TensorFlow 2.21 gave, case by case."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden import workers
from tests.golden.families import COVERED, NOT_YET, Case, covered, group, load, quirks, summary_lines

FOLDER = Path(__file__).parent
PUBLIC = FOLDER / "public.jsonl"
CASES = load(PUBLIC)
QUIRKS_PAGE = FOLDER.parents[1] / "docs" / "tensorflow.md"


# SHA-256 of the files that are kept byte for byte as they were received.
RECEIVED = {
    "FORMAT.md": "84a3c98f04616feb44a9cc7749346199cf293861e1b7544b1e43612360486837",
    "adapter.py": "230dea28f86fa5171fc4b18d1a4eced6bce69abfeb48566cb88a8e3a00f41b5e",
    "engine.py": "a06e918f2838a27c5964415d306648eb49e1120d5eb7b5eb4fecca2b96e29e17",
    "fns_np.py": "df27af9d5b897f9d9e726fb1768d5e035771bae8dbf144475215742ef7d99e32",
    "golden_common.py": "de27aed0721a95d08579431cd8fa977d23dedc58d7de66f9ae033ba37e267e0e",
    "public.jsonl": "a036113fd7822c4c942e169c4c45ed10e20435818ae3160cb19afb112e3decd3",
    "run_golden.py": "9341e04f6f1a00f64a2af823b2ad6ad12a6ead5f8ffb2cf21fcd1d1831c6c2bc",
}

CLUSTER = workers.SharedCluster()


@pytest.fixture(scope="module", autouse=True)
def _close_the_cluster() -> Iterator[None]:
    yield
    CLUSTER.close()


def int64(*rows: int) -> dict[str, Any]:
    return {"dtype": "int64", "shape": [len(rows)], "data": list(rows)}


# What distinput answers where TensorFlow's answer is a defect. docs/tensorflow.md says why.
INSTEAD: dict[str, dict[str, Any]] = {
    "coll.gather_errors-012": {
        "result": {"dtype": "float32", "shape": [2, 4], "data": [-0.25, 6.75, 6.0, -2.75, 3.0, 5.5, 3.5, 4.0]}
    },
    "coll.gather_errors-013": {"result": {"dtype": "string", "shape": [2], "data": ["a", "b"]}},
    "dist.user_rebatch-002": {
        "element_spec": {"dtype": "int64", "shape": [None]},
        "cardinality": -2,
        "steps": [[int64(0, 1, 2)], [int64(3, 4, 5)], [int64(6, 7, 8)], [int64(9)]],
        "end": "StopIteration",
    },
    "dist.user_rebatch-010": {
        "element_spec": {"dtype": "int64", "shape": [2]},
        "cardinality": -2,
        "steps": [[int64(0, 1)], [int64(2, 3)], [int64(4, 5)], [int64(6, 7)]],
        "end": "StopIteration",
    },
    "obj.union-006": {
        "results": [
            {"value": "worker"},
            {"value": 0},
            {"value": "grpc"},
            {"value": "e"},
            {"value": {"worker": ["a:1", "b:2", "c:3"], "ps": ["d:4"]}},
            {"value": "grpc://m:0"},
            {"value": "a:1"},
            {"value": {"GPU": 2}},
        ]
    },
}
INSTEAD["dist.user_rebatch-007"] = INSTEAD["dist.user_rebatch-002"]


def central(cardinality: int, *steps: list[list[int]]) -> dict[str, Any]:
    """Vectors of unknown size, and all steps, the incomplete last one included."""
    return {
        "element_spec": {"dtype": "int64", "shape": [None], "per_replica": len(steps[0])},
        "cardinality": cardinality,
        "steps": [[int64(*rows) for rows in step] for step in steps],
        "end": "StopIteration",
    }


INSTEAD |= {
    "cs.dist-007": central(2, [[0, 1], [2, 3]], [[4], []]),
    "cs.dist-019": {"contexts": [[1, 0, 2]], **central(3, [[0, 1], [2, 3]], [[4], []])},
    "cs.dist-021": next(case["expect"] for case in CASES if case["id"] == "cs.dist-021"),  # as MirroredStrategy does
    "cs.dist-023": central(3, [[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], [9]]),
    "cs.dist-030": central(2, [[0, 1], [2], [3]], [[4], [], []]),
    "cs.dist-040": {"contexts": [[1, 0, 3]], **central(4, [[0, 1], [2, 3], [4, 5]], [[6, 7], [], []])},
    "cs.dist-046": central(3, [[0, 1], [2, 3], []], [[4, 5], [6, 7], []], [[8], [9], []]),
}


def answer(case: Case) -> dict[str, Any]:
    """What distinput does with a case, in the words of the golden file."""
    # The runner imports its neighbours by bare name, so its folder must be on the path; it needs distinput, so it is
    # imported here and not above: a broken package then fails each case with its own message.
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    import adapter

    ways = {"mw": workers.answer, "ps": CLUSTER.answer}
    got: dict[str, Any] = ways.get(group(case), adapter.run_case)(case)
    return got


def differences(got: dict[str, Any], want: dict[str, Any], spec_exact: bool = True) -> str:
    """Where `got` is not what `want` asks for; empty when it is."""
    from golden_common import Mismatch, compare_expect

    try:
        compare_expect(got, want, spec_exact=spec_exact)
    except Mismatch as mismatch:
        return str(mismatch)
    return ""


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in covered(CASES)])
def test_case(case: Case) -> None:
    problem = differences(answer(case), case["expect"], case.get("spec_exact", True))
    assert not problem, f"{problem}\n{case['pipeline']} {case['options']} R={case['replicas_per_worker']}"


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in quirks(CASES)])
def test_a_defect_of_tensorflow_is_not_copied(case: Case) -> None:
    if group(case) == "mw":
        assert not differences(answer(case), workers.without_phantom_steps(case))
        return
    if group(case) == "shard":
        answer(CASES[0])  # brings the runner's folder onto the path
        assert not workers.problem_of_shards(case)
        return
    assert case["id"] in INSTEAD, (
        f"say in INSTEAD and in docs/tensorflow.md what distinput does instead: {case['quirk']}"
    )
    assert not differences(answer(case), INSTEAD[case["id"]])


def test_the_page_of_quirks_names_every_one() -> None:
    page = QUIRKS_PAGE.read_text(encoding="utf-8")
    assert [case["id"] for case in quirks(CASES) if f"`{case['id']}`" not in page] == []


def test_every_family_is_covered_or_counted() -> None:
    assert {group(case) for case in CASES} == {*COVERED, *NOT_YET}
    assert not {*COVERED} & {*NOT_YET}


def test_the_report_counts_what_is_not_covered() -> None:
    first, _, last = summary_lines(PUBLIC, passed=1, failed=2)
    assert "3 of" in first
    assert all(f"{name} " in last for name in NOT_YET)


def test_the_files_are_as_they_were_received() -> None:
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in RECEIVED} == RECEIVED


def test_the_runner_works_as_it_was_received() -> None:
    command = [sys.executable, str(FOLDER / "run_golden.py"), str(PUBLIC)]
    command += ["--skip", ",".join(NOT_YET), "--only", "data.range"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "13/13 cases pass" in run.stdout
