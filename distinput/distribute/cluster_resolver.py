# SPDX-License-Identifier: Apache-2.0
"""Which tasks a cluster has and which one this process is: the names of `tf.distribute.cluster_resolver`.

In addition to TensorFlow's names: resolvers for torchrun, MPI, JAX and threads of this process; `Cluster` and `resolve`,
which find out from arguments and the environment which process this is and how many there are; and the rules for the role of
a task.
"""

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.dask import DaskClusterResolver
from distinput.cluster.kubernetes import KubernetesClusterResolver, KubernetesExecutableLocation
from distinput.cluster.launchers import (
    GCEClusterResolver,
    JaxClusterResolver,
    LocalClusterResolver,
    OpenMPIClusterResolver,
    PMIClusterResolver,
    PMIxClusterResolver,
    SimpleClusterResolver,
    TorchrunClusterResolver,
)
from distinput.cluster.resolve import RESOLVERS, resolve
from distinput.cluster.resolver import ClusterResolver, UnionResolver
from distinput.cluster.slurm import SlurmClusterResolver
from distinput.cluster.tf_config import TFConfigClusterResolver
from distinput.cluster.topology import Cluster, collective_leader, id_in_cluster, is_chief, worker_count
from distinput.cluster.tpu import TPUClusterResolver

__all__ = [
    "RESOLVERS",
    "Cluster",
    "ClusterResolver",
    "ClusterSpec",
    "DaskClusterResolver",
    "GCEClusterResolver",
    "JaxClusterResolver",
    "KubernetesClusterResolver",
    "KubernetesExecutableLocation",
    "LocalClusterResolver",
    "OpenMPIClusterResolver",
    "PMIClusterResolver",
    "PMIxClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "TorchrunClusterResolver",
    "UnionResolver",
    "collective_leader",
    "id_in_cluster",
    "is_chief",
    "resolve",
    "worker_count",
]
