# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIG, read as TensorFlow reads it, and errors where it is malformed."""

import json
from typing import Any

import pytest

from distinput.distribute.cluster_resolver import (
    TFConfigClusterResolver,
)

TWO = {"worker": ["a:1", "b:2"]}


def tf_config(config: Any) -> dict[str, str]:
    return {"TF_CONFIG": config if isinstance(config, str) else json.dumps(config)}


def test_tf_config_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = TFConfigClusterResolver()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert not resolver.cluster_spec()
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": TWO, "task": {"type": "worker", "index": "1"}}))
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("worker", 1, "b:2")


def test_what_is_set_on_a_tf_config_resolver_wins() -> None:
    environ = tf_config({"cluster": TWO, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"})
    resolver = TFConfigClusterResolver(environ=environ)
    resolver.task_id = 0
    resolver.rpc_layer = "http"
    assert resolver.master() == "http://a:1"
    resolver.task_type = "ps"
    with pytest.raises(ValueError, match="No such job in cluster: 'ps'"):
        resolver.master()


@pytest.mark.parametrize(
    "config, says",
    [
        ("{", "TF_CONFIG: must be JSON, got '{'"),
        ("[1]", r"TF_CONFIG: must be a JSON object such as .*\"index\": 0\}\}, got '\[1\]'"),
        ({"cluster": [1]}, r"TF_CONFIG: cluster must be an object .*, got \[1\]"),
        ({"cluster": {"worker": "a:1"}}, "TF_CONFIG: cluster must be an object .*got str 'a:1'"),
        ({"cluster": TWO, "task": 1}, "TF_CONFIG: task must be an object .*, got 1"),
        ({"cluster": TWO, "task": {"type": "worker", "index": "x"}}, "task.index must be an integer, got 'x'"),
    ],
)
def test_a_wrong_tf_config_is_shown(config: Any, says: str) -> None:
    resolver = TFConfigClusterResolver(environ=tf_config(config))
    with pytest.raises(ValueError, match=says):
        (resolver.cluster_spec(), resolver.task_id)


def test_a_task_beyond_the_cluster_is_found_by_master() -> None:
    resolver = TFConfigClusterResolver(environ=tf_config({"cluster": TWO, "task": {"type": "worker", "index": 7}}))
    assert resolver.task_id == 7
    with pytest.raises(ValueError, match="No task with index 7 in job 'worker'"):
        resolver.master()
