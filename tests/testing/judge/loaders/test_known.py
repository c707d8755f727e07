# SPDX-License-Identifier: Apache-2.0
"""Known loaders: ours keep all laws; the judge can look at those of others."""

import warnings

import pytest

from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.loaders import LOADERS
from distinput.testing.judge.loaders.known import Known, made

OURS = [known for known in LOADERS if known.name.startswith("distinput")]
OTHERS = [known for known in LOADERS if known not in OURS]
IN_PROCESSES = ("rank killed", "worker killed")


def installed(known: Known) -> None:
    for package in known.missing:
        pytest.importorskip(package, reason=f"{package} is not installed")


@pytest.mark.parametrize("known", OURS, ids=lambda known: known.name)
def test_our_loaders_keep_all_laws(known: Known) -> None:
    installed(known)
    report = known.judge(records=23, ranks=(1, 3, 4), batch=2, workers=(), leave_out=IN_PROCESSES)
    assert report.ok, str(report)
    assert set(report.kept) == set(LAWS) - {*IN_PROCESSES, "workers"}, str(report)
    assert not report.refused


def test_ours_goes_on_in_another_process() -> None:
    report = OURS[0].judge(records=23, ranks=2, batch=2, laws=["rank killed"])
    assert report.kept == ("rank killed",), str(report)


@pytest.mark.parametrize("known", OTHERS, ids=lambda known: known.name)
def test_loaders_of_others_deliver_something_to_judge(known: Known) -> None:
    installed(known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, about themselves
        report = known.judge(["exactly once", "same order"], records=16, ranks=(1, 2), batch=4)
        assert report["exactly once"].verdict.value != "not judged"
        assert report["same order"].verdict.value == "kept", str(report)
    assert set(report.versions) == set(known.packages)


@pytest.mark.parametrize("name", ["json", "json:", "json:nothing", "no_such_module:f"])
def test_a_function_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises((ValueError, ImportError), match=r"MODULE:FUNCTION|has no function|no_such_module"):
        made(name)


def test_what_is_not_installed_is_told() -> None:
    assert Known("none", "none:none", ("json", "no_such_package")).missing == ["no_such_package"]
