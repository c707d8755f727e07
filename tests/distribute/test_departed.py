# SPDX-License-Identifier: Apache-2.0
"""A worker that took part in a call and then ended in order is not to blame for it."""

from typing import Any

import pytest

from distinput.distribute.collectives.membership import ProcessIdentity
from distinput.distribute.engines import PeerLost
from distinput.distribute.engines.local import _LocalHandle, open_groups


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others sent arrives only at the third look, and their processes have ended by then."""
    looks: dict[int, int] = {}
    wait = _LocalHandle.wait

    def later(handle: Any, seconds: float) -> bool:
        looks[id(handle)] = looks.get(id(handle), 0) + 1
        return looks[id(handle)] > 2 and wait(handle, seconds)

    monkeypatch.setattr(_LocalHandle, "wait", later)
    monkeypatch.setattr(ProcessIdentity, "state_of", lambda *_: "dead")


@pytest.mark.usefixtures("_slow")
def test_its_share_is_waited_for() -> None:
    here, other = open_groups(2, timeout=60)
    other.agree([1])
    other.close()
    assert here.agree([1]).result() == [2]


@pytest.mark.usefixtures("_slow")
def test_what_it_did_not_take_part_in_fails_at_once() -> None:
    here, other = open_groups(2, timeout=60)
    first, second = here.agree([1]), here.agree([1])
    other.agree([1])
    other.close()
    assert first.result() == [2]
    with pytest.raises(PeerLost, match="rank 1"):
        second.result()
