# SPDX-License-Identifier: Apache-2.0
"""What the demo says of its checks."""

import numpy as np
import pytest

from distinput.cli.demo.demo import DemoReport, differences


@pytest.mark.parametrize(
    "delivered, says",
    [
        ([2, 1, 3], ""),
        ([1, 2], "1 missing (id 3)"),
        ([], "3 missing (id 1, ...)"),
        ([1, 2, 3, 3], "1 repeated (id 3)"),
        ([1, 2, 3, 9], "1 unexpected (id 9)"),
    ],
)
def test_differences(delivered: list[int], says: str) -> None:
    assert differences(delivered, np.array([1, 2, 3])) == says


def test_a_failed_check_fails_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    report = DemoReport()
    report.check("one", "", "fine")
    assert report.conclude(1.0)
    report.check("two", "it is not", "fine")
    assert not report.conclude(1.0)
    assert "1 of 2 checks FAILED: two." in capsys.readouterr().out
