# SPDX-License-Identifier: Apache-2.0
"""Reads damaged files, one after the other, and says of each what came of it; the process may end over one of them.

    python -m tests.formats.hostile.worker FOLDER FIRST STOP STEP KIND [NAME]

For each number of the range it prints `begin NUMBER NAME`, and then what came of the file with this number of a kind of damage
(`kinds.py`), see `outcome`.
"""

import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distinput.errors import DataLossError, DistinputError
from tests.formats.hostile import kinds
from tests.formats.hostile.peak import peak_bytes
from tests.formats.hostile.samples import SAMPLES, Sample


def case(kind: str, number: int, samples: list[Sample]) -> tuple[Sample, bytes, int]:
    """A sample, what is in its file, and a number that chooses how it is read."""
    place, content, turn = kinds.content(kind, number, samples)
    return samples[place], samples[place].written(content), turn


def outcome(sample: Sample, content: bytes, folder: Path, number: int, turn: int) -> str:
    """What came of a file: `same` and `error` are as they should be.

    With `refused` there is an error where the strict reader has none, which may be; with `text` that reader wants UTF-8 where
    any bytes are allowed; with `unsure` rows came in any order before an error, from where that reader never comes. `bad` says
    what is wrong.
    """
    path = folder / f"{number}.file"
    damaged = path.with_name(path.name + sample.suffix)
    files = {damaged: content, **{path.with_name(path.name + more): given for more, given in sample.beside.items()}}
    for name, given in files.items():
        name.write_bytes(given)
    way = sample.ways[turn % len(sample.ways)]
    try:
        before = peak_bytes(anew=True)
        found, error = until_error(sample.read(path, way))
        more = peak_bytes() - before
        print("read", type(error).__name__, flush=True)
        truth, untrue = ([], None) if sample.rows is None else until_error(sample.rows(content, sample))
    finally:
        for name in files:
            name.unlink()
    if more > sample.most_bytes:
        return f"bad: took {more >> 20} MiB"
    if error is not None and not isinstance(error, DistinputError):
        return f"bad: {type(error).__name__}: {error!s:.200}"
    if error is not None and sample.names_file:
        said = " ".join([str(error), *getattr(error, "__notes__", ())])
        if path.name not in said:
            return f"bad: the file is not named: {type(error).__name__}: {said:.200}"
        if isinstance(error, DataLossError) and not re.search(sample.position, str(error)):
            return f"bad: no place in the file: {type(error).__name__}: {str(error)[-250:]}"
    if sample.rows is None:
        return "error" if error is not None else "same"
    if way == "batch":  # where sequences are filled up to the longest
        for row in (*found, *truth):
            row["r"] = None
    if way == "shuffled" and error is not None and untrue is not None:
        # Parts behind the damaged one may come before it. Mostly they are as they were; where they are not, nobody knows.
        truth += until_error(sample.rows(sample.written(sample.content), sample))[0]
        return "unsure" if _compared(found, error, truth, untrue, way).startswith("bad") else "error"
    if untrue is not None and "UTF8" in str(untrue).upper():
        return "error" if error is not None else "text"
    return _compared(found, error, truth, untrue, way)


def _compared(found: list[Any], error: Exception | None, truth: list[Any], untrue: Exception | None, way: str) -> str:
    if way == "shuffled":
        left = [repr(row) for row in truth]
        for row in map(repr, found):
            if row not in left:
                return f"bad: gave {row:.100}, which is not in the file"
            left.remove(row)
        if error is None and (left or untrue is not None):
            return f"bad: left out {left!s:.100}, {untrue!r:.100}"
        return "same" if error is None else "error" if untrue is not None else f"refused {error!s:.150}"
    if way == "skipped":
        truth = truth[1:]
    if repr(found) != repr(truth[: len(found)]):
        wrong = next(i for i, row in enumerate(found) if repr(row) != repr([*truth, None][min(i, len(truth))]))
        return (
            f"bad: row {wrong} is {found[wrong]!r:.100}, but should be {truth[wrong : wrong + 1]!r:.100} {untrue!r:.80}"
        )
    if error is None and (len(found) < len(truth) or untrue is not None):
        return f"bad: no error, {len(found)} of {len(truth)} rows, {untrue!r:.120}"
    return "same" if error is None else "error" if untrue is not None else f"refused {error!s:.150}"


def until_error(rows: Iterator[Any]) -> tuple[list[Any], Exception | None]:
    found: list[Any] = []
    try:
        for row in rows:
            found.append(row)
            if len(found) > 100_000:
                raise AssertionError("rows without end")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is looked at
        return found, error
    return found, None


def main() -> None:
    folder, first, stop, step, kind, *names = sys.argv[1:]
    samples = [sample for sample in SAMPLES if sample.name.startswith("".join(names))]
    limit = 8 << 30  # of addresses, so that a length that is believed is an error and not the machine's end
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in range(int(first), int(stop), int(step)):
        sample, content, turn = case(kind, number, samples)
        print("begin", number, sample.name, flush=True)
        print(outcome(sample, content, Path(folder), number, turn), flush=True)


if __name__ == "__main__":
    main()
