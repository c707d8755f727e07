# SPDX-License-Identifier: Apache-2.0
"""Consumers of one job: each element goes to one of them, whoever asks when, and whoever goes on from a state."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.cluster.input_service import _Dask, _Ray
from distinput.data.experimental import service
from distinput.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError, UnimplementedError
from distinput.ops import first_come

COUNT = 60


def square(x: Any) -> Any:
    return x * x


def is_even(x: Any) -> Any:
    return x % 2 == 0


def fails_at_seven(x: Any) -> Any:
    if x == 7:
        raise ValueError("seven")
    return x


PIPELINES: dict[str, Any] = {
    "range": lambda: di.data.Dataset.range(COUNT),
    "map": lambda: di.data.Dataset.range(COUNT).map(square),
    "shuffle": lambda: di.data.Dataset.range(COUNT).shuffle(20),  # each program draws a seed of its own
    "repeat": lambda: di.data.Dataset.range(COUNT // 3).shuffle(COUNT).repeat(3),
    "random": lambda: di.data.Dataset.range(3).flat_map(lambda _: di.data.Dataset.range(COUNT // 3).shuffle(COUNT)),
    "filter": lambda: di.data.Dataset.range(2 * COUNT).filter(is_even),
    "small blocks": lambda: di.data.Dataset.range(COUNT).batch(3).unbatch(),
    "interleave": lambda: di.data.Dataset.range(6).interleave(
        lambda x: di.data.Dataset.range(10).map(lambda y: 10 * x + y)
    ),
}


def consumer(name: str, where: Any, job: str = "job", mode: str = "distributed_epoch") -> di.data.Dataset[Any]:
    return PIPELINES[name]().apply(service.distribute(mode, where, job_name=job))


STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["next", "next", "save", "kill"])), max_size=120)


@pytest.mark.parametrize("name", PIPELINES)
@settings(deadline=None)
@given(steps=STEPS, growth=st.sampled_from([1, 4]), seconds=st.sampled_from([0.0, 0.25]))
def test_each_element_comes_to_one_consumer_also_if_they_go_on_from_their_states(
    name: str, steps: list[tuple[int, str]], growth: int, seconds: float
) -> None:
    """A killed consumer goes on from its last state: what it got after that comes again, to it alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_come, "_GROWTH", growth)
        patch.setattr(first_come, "_LEAST_SECONDS", seconds)
        executor = ThreadPoolExecutor(1)
        iterators = [iter(consumer(name, executor)) for _ in range(3)]
        saved: list[Any] = [None] * 3
        kept: list[list[int]] = [[], [], []]
        since: list[list[int]] = [[], [], []]
        again: list[list[int]] = [[], [], []]  # what must come first after a restart
        for index, step in [*steps, *[(index, "end") for index in range(3)]]:
            if step == "kill" and saved[index] is not None:
                iterators[index].close()
                iterators[index] = iter(consumer(name, executor).restore(json.loads(saved[index])))
                again[index], since[index] = since[index] + again[index], []
            elif step == "save" and (kept[index] or since[index]):
                saved[index] = json.dumps(iterators[index].state())
                kept[index] += since[index]
                since[index] = []
            elif step in ("next", "end"):
                for element in iterators[index]:
                    since[index].append(int(element))
                    if again[index]:
                        assert again[index].pop(0) == since[index][-1]
                    if step == "next":
                        break
        assert not any(again)
        found = [element for lists in (kept, since) for own in lists for element in own]
        assert sorted(found) == sorted(map(int, PIPELINES[name]()))


def test_who_is_slower_gets_less() -> None:
    executor = ThreadPoolExecutor(1)
    quick, slow = iter(consumer("range", executor)), iter(consumer("range", executor))
    next(slow)
    assert len(list(quick)) == COUNT - 1
    assert list(slow) == []


def test_a_failure_comes_to_all_and_is_not_counted() -> None:
    executor = ThreadPoolExecutor(1)
    numbers = di.data.Dataset.range(20).map(fails_at_seven)
    first, second = [numbers.apply(service.distribute("distributed_epoch", executor, job_name="job")) for _ in range(2)]
    one, other = iter(first.ignore_errors()), iter(second.ignore_errors())
    assert sorted([int(next(one)), int(next(other)), *map(int, one), *map(int, other)]) == [*range(7), *range(8, 20)]
    with pytest.raises(ValueError, match="seven"):
        first.to_list()


def test_what_an_element_looks_like_takes_none() -> None:
    each = consumer("map", ThreadPoolExecutor(1))
    assert each.element_spec == di.TensorSpec([], "int64")
    assert len(each.to_list()) == COUNT


def test_a_job_of_another_pipeline_is_told() -> None:
    executor = ThreadPoolExecutor(1)
    next(iter(consumer("map", executor)))
    with pytest.raises(InvalidArgumentError, match="the job 'job' of this service is one of another pipeline"):
        next(iter(consumer("range", executor)))
    next(iter(consumer("range", executor, "another job")))


def test_a_job_of_neighbouring_maps_that_hold_other_values_is_told() -> None:
    pytest.importorskip("cloudpickle")
    executor = ThreadPoolExecutor(1)

    def scaled(factor: int) -> di.data.Dataset[Any]:
        numbers = di.data.Dataset.range(COUNT).map(lambda x: x * factor).map(square)
        return numbers.apply(service.distribute("distributed_epoch", executor, job_name="job"))

    next(iter(scaled(2)))
    with pytest.raises(InvalidArgumentError, match="the job 'job' of this service is one of another pipeline"):
        next(iter(scaled(3)))


def test_a_job_that_the_service_no_longer_knows_is_told() -> None:
    with iter(consumer("map", ThreadPoolExecutor(1))) as elements:
        next(elements)
        state = elements.state()
    with pytest.raises(FailedPreconditionError, match=r"a job 'job' that this service does not know.*consumer_index"):
        next(iter(consumer("map", ThreadPoolExecutor(1)).restore(state)))


def test_ray_says_what_to_write() -> None:
    with pytest.raises(UnimplementedError, match=r"at Ray.*leave out job_name.*consumer_index.*Dask"):
        object.__new__(_Ray).first("word", 1)


def test_a_strategy_does_not_divide_a_job() -> None:
    policy = consumer("range", ThreadPoolExecutor(1)).options().experimental_distribute.auto_shard_policy
    assert policy is di.data.experimental.AutoShardPolicy.OFF


@pytest.fixture(scope="module")
def cluster() -> Any:
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(0, 0, inputs=2) as cluster:
        cluster.wait()
        yield cluster


@pytest.mark.parametrize("mode, times", [("distributed_epoch", 1), ("parallel_epochs", 2)])
def test_clients_of_a_cluster_share_a_job(cluster: Any, mode: str, times: int) -> None:
    """Each has a connection of its own, as programs have."""
    where = cluster.address
    with iter(consumer("shuffle", where, mode, mode)) as one, iter(consumer("shuffle", where, mode, mode)) as other:
        found = [int(next(each)) for _ in range(8) for each in (one, other)]
        state = json.loads(json.dumps(one.state()))
        rest = [int(next(one)) for _ in range(4)]
        with iter(consumer("shuffle", where, mode, mode).restore(state)) as back:
            assert [int(next(back)) for _ in range(4)] == rest
            found += [*rest, *map(int, other), *map(int, back)]
    assert sorted(found) == sorted([*range(COUNT)] * times)


def test_who_asks_a_cluster_at_the_same_time_is_told_one_answer(cluster: Any) -> None:
    from distributed import Client

    with ThreadPoolExecutor(4) as threads, Client(cluster.address, set_as_default=False) as client:
        services = [_Dask(client, owned=False) for _ in range(4)]
        for word in range(20):
            answers = threads.map(_Dask.first, services, [f"asked-{word}"] * 4, range(4))
            assert len(set(answers)) == 1
        with pytest.raises(LookupError):
            services[0].first("more", 1, known="nobody gave any")


def test_a_scheduler_that_has_forgotten_the_job_ends_it(cluster: Any) -> None:
    from distributed import Client

    with iter(consumer("map", cluster.address, "forgotten")) as elements:
        next(elements)
        with Client(cluster.address, set_as_default=False) as client:
            for name in client.list_datasets():
                client.unpublish_dataset(name)
        with pytest.raises(UnavailableError, match="no longer knows the job 'forgotten'"):
            list(elements)
