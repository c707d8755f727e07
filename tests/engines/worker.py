# SPDX-License-Identifier: Apache-2.0
"""One worker of a test: finds its place in the environment, runs a program, and leaves what came of it as a file."""

import faulthandler
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main(folder: Path) -> int:
    """Do what `folder/order.json` says.

    Args:
      folder: where the order is, and where the answer goes.

    Returns:
      The exit status: 0 when the program ended well, 1 when it raised.
    """
    import distinput as di
    from tests.engines.programs import PROGRAMS

    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    faulthandler.dump_traceback_later(order["limit"], exit=True)  # also where the one who started it cannot end it
    place = di.distribute.cluster_resolver.resolve()
    devices = [f"CPU:{i}" for i in range(order["replicas"][place.rank])]
    options = di.distribute.experimental.CommunicationOptions(
        timeout_seconds=order["timeout"], implementation=order["implementation"]
    )
    opening = time.monotonic()
    strategy = None
    while strategy is None:
        try:
            strategy = di.distribute.MultiWorkerMirroredStrategy(
                communication_options=options, devices=devices, backend=order["backend"]
            )
        except TimeoutError:  # a busy machine may start the processes far apart
            if time.monotonic() - opening > order["limit"] / 2:
                raise
    with strategy:
        try:
            answer = {"result": PROGRAMS[order["program"]](strategy, place.rank, order["given"])}
        except Exception as error:
            answer = {"error": type(error).__name__, "text": str(error), "at": time.time()}
            raise
        finally:
            write(folder / f"answer-{place.rank}.json", answer)
    return 0


def write(path: Path, value: Any) -> None:
    """All of it or nothing, also when the process is killed meanwhile."""
    made = path.with_suffix(f".{os.getpid()}")
    made.write_text(json.dumps(value), encoding="utf-8")
    made.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
