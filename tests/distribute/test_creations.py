# SPDX-License-Identifier: Apache-2.0
"""Objects that replica 0 makes for all replicas of a run."""

import threading

from distinput.distribute.core.rendezvous import Creations


def test_the_second_request_gets_the_second_object() -> None:
    creations = Creations(lambda: True)
    creations.add(["k"], "a")
    creations.add(["k"], "b")
    assert [creations.find(1, ["k"]), creations.find(1, ["k"]), creations.find(2, ["k"])] == ["a", "b", "a"]


def test_the_most_precise_key_counts() -> None:
    creations = Creations(lambda: True)
    creations.add(["line 1", "name"], "a")
    creations.add(["line 2", "name"], "b")
    assert creations.find(1, ["line 2", "name"]) == "b"
    assert creations.find(2, ["another line", "name"]) == "a"


def test_nothing_is_found_once_replica_0_has_stopped() -> None:
    assert Creations(lambda: True).find(1, ["k"]) is None


def test_a_replica_that_is_early_waits() -> None:
    creations = Creations(lambda: False)
    found = []
    waiting = threading.Thread(target=lambda: found.append(creations.find(1, ["k"])))
    waiting.start()
    assert waiting.is_alive()
    creations.add(["k"], "a")
    waiting.join(60)
    assert found == ["a"]


def test_a_replica_that_waits_sees_that_replica_0_stops() -> None:
    stopped = threading.Event()
    creations = Creations(stopped.is_set)
    found = []
    waiting = threading.Thread(target=lambda: found.append(creations.find(1, ["k"])))
    waiting.start()
    stopped.set()
    creations.wake()
    waiting.join(60)
    assert found == [None]
