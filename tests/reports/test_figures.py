# SPDX-License-Identifier: Apache-2.0
"""What is written of a step is what the statistics say."""

import distinput as di
from distinput.data.stats import Stats
from distinput.reports.sections import COLUMNS, figures_of, pace_of, rows_of

STATS = Stats(
    {
        "0:range": {"blocks": 1, "rows": 1000, "seconds": 1.0, "busy": 1.0, "waiting": 0.0, "bytes": 8000},
        "1:map": {"blocks": 2, "rows": 1000, "seconds": 4.0, "busy": 0.5, "waiting": 3.5, "worked": 6.0, "workers": 2,
                  "chose": "2 threads", "dropped": 3, "last_error": "E"},
    },
    "1:map", "The sentence.", 0.25,
)  # fmt: skip


def test_bars_are_parts_of_the_pass() -> None:
    figures = figures_of(STATS)
    assert [(key, each.share, each.slowest) for key, each in figures.items()] == [
        ("0:range", 0.25, False),
        ("1:map", 0.75, True),
    ]
    assert figures["0:range"].lines == ("1 s busy", "1,000 elements in 1 block, 7.81 KiB")
    assert figures["1:map"].lines == (
        "500 ms busy, 6 s in 2 workers",
        "waits 3.5 s",
        "1,000 elements in 2 blocks",
        "3 left out",
    )


def test_a_row_has_all_columns() -> None:
    assert [len(row) for row in rows_of(STATS)] == [len(COLUMNS)] * 2
    assert rows_of(STATS)[0] == ("0:range", "1", "1,000", "7.81 KiB", "1 s", "", "", "1,000", "")
    assert rows_of(STATS)[1][5:] == ("6 s (2)", "3.5 s", "333", "2 threads, 3 left out")


def test_workers_share_their_work() -> None:
    assert [pace_of(told) for told in STATS.values()] == [1.0, 3.0]


def test_no_pass() -> None:
    assert figures_of(di.data.Dataset.range(3).stats()) == {}
