# SPDX-License-Identifier: Apache-2.0
"""A program that maps through an executor of somebody else's, and prints what came of it as JSON.

python -m tests.functions.executor_job KIND [FOLDER]
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di

INT64 = di.TensorSpec([], "int64")


def double(x: Any) -> Any:
    return x * 2


def inverse(x: Any) -> Any:
    return np.int64(12 // int(5 - x))


def process(x: Any) -> Any:
    return np.int64(os.getpid())


def die_once(x: Any, mark: str) -> Any:
    """The process that meets element 3 first ends over it."""
    if int(x) == 3 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(1)
    return x * 2


@contextmanager
def dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL") as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        yield executor


@contextmanager
def mpi() -> Iterator[Any]:
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        yield executor


@contextmanager
def interpreters() -> Iterator[Any]:
    from concurrent.futures import InterpreterPoolExecutor

    with InterpreterPoolExecutor(2) as executor:
        yield executor


KINDS = {"dask": dask, "interpreters": interpreters, "mpi": mpi}


def main() -> None:
    kind, *folder = sys.argv[1:]
    numbers, told = di.data.Dataset.range, dict[str, Any]()
    with KINDS[kind]() as executor:
        options = {"executor": executor, "output_signature": INT64}
        told["doubled"] = [int(x) for x in numbers(200).map(double, **options)]
        told["processes"] = len({int(x) for x in numbers(200).map(process, **options)} - {os.getpid()})
        with iter(numbers(30).map(double, **options)) as elements:
            told["before"] = [int(next(elements)) for _ in range(7)]
            told["after"] = [int(x) for x in numbers(30).map(double, **options).restore(elements.state())]
        told["until"] = []
        try:
            for x in numbers(9).map(inverse, **options):
                told["until"].append(int(x))
        except ZeroDivisionError as error:
            told["error"] = "\n".join(error.__notes__)
        if folder:
            dying = partial(die_once, mark=f"{folder[0]}/mark")
            told["lost"] = [int(x) for x in numbers(9).map(dying, **options)]
    print("\n" + json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
