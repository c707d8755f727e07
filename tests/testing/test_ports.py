# SPDX-License-Identifier: Apache-2.0
import itertools
import os

import pytest

from distinput.testing import ports


def test_no_port_is_given_twice() -> None:
    """Also where a job has more workers than the process has ports of its own."""
    given = ports.free_ports(130) + ports.free_ports(130)
    assert len(set(given)) == 260
    assert all(10_000 <= port < 30_000 for port in given)


def test_processes_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for process in (1234, 1235):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        monkeypatch.setattr(ports, "_numbers", itertools.count())
        found.append(set(ports.free_ports(60)))
    assert found[0].isdisjoint(found[1])
