# SPDX-License-Identifier: Apache-2.0
"""The example of property `cluster_resolver`, on the pages of several strategies, with both its workers."""

import json
import os
import subprocess
import sys
from pathlib import Path

from distinput.testing.ports import free_ports
from tests.engines.installed import need

ROOT = Path(__file__).parents[2]

# As the page writes it, but for the addresses, the index of the task, and what the dots stand for.
PROGRAM = """
import json, os, sys
import distinput as tf

os.environ['TF_CONFIG'] = json.dumps({
    'cluster': {
        'worker': json.loads(sys.argv[1]),
        'ps': ["localhost:34567"]
    },
    'task': {'type': 'worker', 'index': int(sys.argv[2])}
})

# This implicitly uses TF_CONFIG for the cluster and current task info.
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()

if strategy.cluster_resolver.task_type == 'worker':
    # Perform something that's only applicable on workers. Since we set this
    # as a worker above, this block will run on this particular instance.
    print("worker", strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync)
elif strategy.cluster_resolver.task_type == 'ps':
    # Perform something that's only applicable on parameter servers. Since we
    # set this as a worker above, this block will not run on this particular
    # instance.
    print("ps")
strategy.close()
"""


def test_the_example_of_the_page() -> None:
    need("torch")
    addresses = json.dumps([f"localhost:{port}" for port in free_ports(2)])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, addresses, str(index)], env=environment, stdout=subprocess.PIPE, text=True
        )
        for index in range(2)
    ]
    said = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert said == ["worker 0 2\n", "worker 1 2\n"]
