# SPDX-License-Identifier: Apache-2.0
"""The instances of a group of Google Compute Engine."""

from typing import Any

import pytest

from distinput.distribute.cluster_resolver import GCEClusterResolver, resolve


class Service:
    """As `googleapiclient` makes it: two pages of instances. Every call returns a request, which `execute` answers."""

    def __init__(self, *pages: dict[str, str]) -> None:
        self.pages = pages
        self.addresses = {name: address for page in pages for name, address in page.items()}
        self.asked: list[dict[str, Any]] = []

    def instanceGroups(self) -> "Service":
        return self

    def instances(self) -> "Service":
        return self

    def listInstances(self, **asked: Any) -> "Request":
        self.asked.append(asked)
        return self.page(0)

    def listInstances_next(self, previous_request: "Request", previous_response: Any) -> "Request | None":
        return self.page(previous_request.number + 1) if previous_request.number + 1 < len(self.pages) else None

    def get(self, project: str, zone: str, instance: str) -> "Request":
        assert (project, zone) == ("p", "z")
        return Request({"networkInterfaces": [{"networkIP": self.addresses[instance]}]})

    def page(self, number: int) -> "Request":
        items = [{"instance": f"https://compute/projects/p/zones/z/instances/{name}"} for name in self.pages[number]]
        return Request({"items": items} if items else {}, number)


class Request:
    def __init__(self, answer: Any, number: int = 0) -> None:
        self.answer, self.number = answer, number

    def execute(self) -> Any:
        return self.answer


def test_the_instances_of_all_pages_are_tasks() -> None:
    service = Service({"b": "10.0.0.3", "a": "10.0.0.2"}, {"c": "10.0.0.1"})
    resolver = GCEClusterResolver("p", "z", "group", 8470, task_id=1, service=service)
    assert resolver.cluster_spec().as_dict() == {"worker": ["10.0.0.1:8470", "10.0.0.2:8470", "10.0.0.3:8470"]}
    assert service.asked == [
        {
            "project": "p",
            "zone": "z",
            "instanceGroup": "group",
            "body": {"instanceState": "RUNNING"},
            "orderBy": "name",
        }
    ]
    assert resolver.master() == "grpc://10.0.0.2:8470"
    assert resolver.master("worker", 0, "http") == "http://10.0.0.1:8470"
    assert resolve(resolver=resolver).rank == 1
    resolver.task_id = 2
    assert resolver.master() == "grpc://10.0.0.3:8470"


def test_an_empty_group_has_no_task() -> None:
    resolver = GCEClusterResolver("p", "z", "group", 8470, "ps", rpc_layer=None, service=Service({}))
    assert resolver.cluster_spec().as_dict() == {"ps": {}}
    assert (resolver.task_type, resolver.task_id, resolver.environment) == ("ps", 0, "")


def test_the_job_stays_as_it_is() -> None:
    resolver = GCEClusterResolver("p", "z", "group", 8470, service=Service({}))
    with pytest.raises(
        RuntimeError, match="You cannot reset the task_type of the GCEClusterResolver after it has been"
    ):
        resolver.task_type = "ps"


def test_a_client_is_needed() -> None:
    with pytest.raises(
        ValueError, match=r"needs service=googleapiclient\.discovery\.build\('compute', 'v1'\), a client"
    ):
        GCEClusterResolver("p", "z", "group", 8470)
