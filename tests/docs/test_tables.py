# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/distribution.md are what is delivered, row by row."""

import re
from pathlib import Path

import pytest

import distinput as di

PAGE = (Path(__file__).parents[2] / "docs" / "distribution.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+), (\d+), (\d+)(?: then `repeat\((\d+)\)`)? \| ([\d /-]+) \| ([\d /-]+) \|$", re.MULTILINE)
CUTS = ROW.findall(PAGE)
PIECES, STREAM = ("AUTO", "DATA"), ("OFF", "HINT")


def cut(rows: int, batch: int, replicas: int, passes: int, policy: str) -> str:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy[policy]
    dataset = di.data.Dataset.range(rows).batch(batch).repeat(passes).with_options(options)
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    steps = strategy.experimental_distribute_dataset(dataset)
    return " / ".join(" ".join("".join(map(str, part)) or "-" for part in step.values) for step in steps)


def test_the_table_of_cuts_is_found() -> None:
    assert len(CUTS) == 6


@pytest.mark.parametrize("rows, batch, replicas, passes, pieces, stream", CUTS)
@pytest.mark.parametrize("policy", [*PIECES, *STREAM, "FILE"])
def test_a_row_of_the_table_of_cuts(
    rows: str, batch: str, replicas: str, passes: str, pieces: str, stream: str, policy: str
) -> None:
    want = pieces if policy in PIECES else stream
    assert cut(int(rows), int(batch), int(replicas), int(passes or 1), policy) == want


def test_auto_over_files_is_the_row_stream(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(10)))
    lines = di.data.TextLineDataset(str(tmp_path / "a.txt")).batch(6)
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    steps = [[b"".join(part) for part in step.values] for step in strategy.experimental_distribute_dataset(lines)]
    assert steps == [[b"01", b"23", b"4", b"5"], [b"67", b"89", b"", b""]]


CONTEXTS = re.findall(r"^\| (outside|`.*scope\(\)`|in `\w+`) \| (\w+) \| .* \| (\w+) \| (.*) \|$", PAGE, re.MULTILINE)


def test_the_table_of_contexts() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def here() -> tuple[str, str, bool]:
        nobody = di.distribute.get_replica_context() is None
        return str(di.distribute.has_strategy()), str(di.distribute.in_cross_replica_context()), nobody

    def meeting() -> None:
        context = di.distribute.get_replica_context()
        assert context is not None
        context.merge_call(lambda _: found.update({"in `merge_call`": here()}))

    found = {"outside": here(), "in `run`": strategy.run(here)}
    with strategy.scope():
        found["`with strategy.scope()`"] = here()
    strategy.run(meeting)
    assert {where: (has, cross, context == "None") for where, has, cross, context in CONTEXTS} == found
