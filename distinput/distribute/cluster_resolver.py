# SPDX-License-Identifier: Apache-2.0
"""Which tasks a cluster has and which one this process is: the names of `tf.distribute.cluster_resolver`.

Beside TensorFlow's: resolvers for torchrun, MPI and JAX; `Cluster` and `resolve`, which tell from given arguments and
the environment together which process of how many this one is; and the rules of a task's role.
"""

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.jax import JaxClusterResolver
from distinput.cluster.kubernetes import KubernetesClusterResolver
from distinput.cluster.mpi import OpenMPIClusterResolver, PMIClusterResolver, PMIxClusterResolver
from distinput.cluster.resolve import RESOLVERS, resolve
from distinput.cluster.resolver import ClusterResolver
from distinput.cluster.roles import collective_leader, id_in_cluster, is_chief, worker_count
from distinput.cluster.simple import SimpleClusterResolver
from distinput.cluster.slurm import SlurmClusterResolver
from distinput.cluster.tf_config import TFConfigClusterResolver
from distinput.cluster.topology import Cluster
from distinput.cluster.torchrun import TorchrunClusterResolver
from distinput.cluster.union import UnionResolver

__all__ = [
    "RESOLVERS",
    "Cluster",
    "ClusterResolver",
    "ClusterSpec",
    "JaxClusterResolver",
    "KubernetesClusterResolver",
    "OpenMPIClusterResolver",
    "PMIClusterResolver",
    "PMIxClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TorchrunClusterResolver",
    "UnionResolver",
    "collective_leader",
    "id_in_cluster",
    "is_chief",
    "resolve",
    "worker_count",
]
