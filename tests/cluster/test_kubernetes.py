# SPDX-License-Identifier: Apache-2.0
"""The pods of an indexed Job."""

from distinput.distribute.cluster_resolver import (
    KubernetesClusterResolver,
)


def test_a_pods_name_gives_the_addresses() -> None:
    environ = {
        "JOB_COMPLETION_INDEX": "1",
        "HOSTNAME": "my-job-1",
        "DISTINPUT_NUM_WORKERS": "2",
        "DISTINPUT_SUBDOMAIN": "net",
    }
    resolver = KubernetesClusterResolver(tf_server_port=9000, environ=environ)
    assert resolver.cluster_spec().as_dict() == {"worker": ["my-job-0.net:9000", "my-job-1.net:9000"]}
    assert resolver.master() == "grpc://my-job-1.net:9000"
    strange = KubernetesClusterResolver(environ=environ | {"HOSTNAME": "node7"})
    assert strange.cluster_spec().as_dict() == {"worker": ["", ""]}
    named = KubernetesClusterResolver(job_name="other", environ=environ | {"HOSTNAME": "node7"})
    assert named.cluster_spec().task_address("worker", 0) == "other-0.net:8470"
