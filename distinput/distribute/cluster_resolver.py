# SPDX-License-Identifier: Apache-2.0
"""Which tasks a cluster has and which one this process is: the names of `tf.distribute.cluster_resolver`.

In addition to TensorFlow's names: resolvers for torchrun, MPI, JAX and threads of this process; `Cluster` and `resolve`,
which find out from arguments and the environment which process this is and how many there are; and the rules for the role of
a task.
"""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.cluster.cluster_spec import ClusterSpec as ClusterSpec
    from distinput.cluster.dask import DaskClusterResolver as DaskClusterResolver
    from distinput.cluster.kubernetes import KubernetesClusterResolver as KubernetesClusterResolver
    from distinput.cluster.kubernetes import KubernetesExecutableLocation as KubernetesExecutableLocation
    from distinput.cluster.launchers import GCEClusterResolver as GCEClusterResolver
    from distinput.cluster.launchers import JaxClusterResolver as JaxClusterResolver
    from distinput.cluster.launchers import LocalClusterResolver as LocalClusterResolver
    from distinput.cluster.launchers import OpenMPIClusterResolver as OpenMPIClusterResolver
    from distinput.cluster.launchers import PMIClusterResolver as PMIClusterResolver
    from distinput.cluster.launchers import PMIxClusterResolver as PMIxClusterResolver
    from distinput.cluster.launchers import SimpleClusterResolver as SimpleClusterResolver
    from distinput.cluster.launchers import TorchrunClusterResolver as TorchrunClusterResolver
    from distinput.cluster.resolve import RESOLVERS as RESOLVERS
    from distinput.cluster.resolve import resolve as resolve
    from distinput.cluster.resolver import ClusterResolver as ClusterResolver
    from distinput.cluster.resolver import UnionResolver as UnionResolver
    from distinput.cluster.slurm import SlurmClusterResolver as SlurmClusterResolver
    from distinput.cluster.tf_config import TFConfigClusterResolver as TFConfigClusterResolver
    from distinput.cluster.topology import Cluster as Cluster
    from distinput.cluster.topology import collective_leader as collective_leader
    from distinput.cluster.topology import id_in_cluster as id_in_cluster
    from distinput.cluster.topology import is_chief as is_chief
    from distinput.cluster.topology import worker_count as worker_count
    from distinput.cluster.tpu import TPUClusterResolver as TPUClusterResolver
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
