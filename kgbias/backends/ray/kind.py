"""The executor that Ray is."""

from kgbias.parallel.executors import ExecutorKind

RAY = ExecutorKind(
    "kgbias.backends.ray.process:open_ray",
    "ray (a new Ray on this machine) and ray://ADDRESS (a cluster that this machine belongs to: "
    "auto, or HOST:PORT of its head)",
)
