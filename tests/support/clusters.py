"""A real Ray cluster of two nodes on this machine, small, without a dashboard."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CPUS = 2
STORE = 80 << 20
"""Bytes of a node's object store."""


def unavailable() -> str:
    return "" if importlib.util.find_spec("ray") else "the package is missing: pip install -r requirements-ray.txt"


class TwoNodes:
    """The head, and a second node that can be killed; both may work."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.address: str = cluster.address
        self._second = self._add()

    @property
    def session(self) -> Path:
        """Where its logs are, and what it was sent."""
        return Path(self._cluster.head_node.get_session_dir_path())

    @property
    def raylets(self) -> list[int]:
        """Processes of which each has all workers of its node for children."""
        nodes = self._cluster.list_all_nodes()
        return [each.process.pid for node in nodes for each in node.all_processes["raylet"]]

    def kill_second(self) -> None:
        """All at once, as when a machine is lost."""
        self._cluster.remove_node(self._second, allow_graceful=False)

    def bring_back_second(self) -> None:
        self._second = self._add()

    def _add(self) -> Any:
        return self._cluster.add_node(num_cpus=CPUS, object_store_memory=STORE)


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's default folder is shared by all clusters and users of this machine.
    os.environ["RAY_TMPDIR"] = folder = tempfile.mkdtemp(prefix="ray-")
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": CPUS, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield TwoNodes(cluster)
    finally:
        # Tests may have connected this process.
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
