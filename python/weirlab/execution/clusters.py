"""Files that start Dask's own scheduler and workers on a cluster, and a study on them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from weirlab import _core
from weirlab.errors import InputError

_PORT = 8786

_SLURM = """\
#!/bin/bash
# Starts a Dask scheduler, {workers} workers of one CPU each, and a study on them.
#     sbatch --time=4:00:00 {file}
# A job that ends too early loses nothing: submit it again.
#SBATCH --job-name={name}
#SBATCH --ntasks={workers}
#SBATCH --cpus-per-task=1
#SBATCH --signal=B:INT@60
set -eu
export POLARS_MAX_THREADS=1  # many workers, small tables
scheduler=tcp://$(hostname):${{WEIRLAB_PORT:-{port}}}

# Both are started again if they end; workers wait for their scheduler.
again() {{ while true; do "$@" || true; sleep 2; done; }}
again dask scheduler --host "$(hostname)" --port "${{scheduler##*:}}" --no-dashboard &
helpers=$!
export -f again
srun bash -c 'again dask worker "$0" --nworkers 1 --nthreads 1 --no-dashboard' "$scheduler" &
helpers="$helpers $!"

{command} --on "$scheduler" &
study=$!
trap 'kill -INT $study' INT TERM
code=0
wait $study || code=$?
while kill -0 $study 2>/dev/null; do wait $study || code=$?; done
for helper in $helpers; do pkill -P $helper || true; kill $helper || true; done
exit $code
"""

_KUBERNETES = """\
# A Dask scheduler, {workers} workers and a study on them. The image: Weirlab {version}, extra cluster.
#     kubectl apply -f {file}
#     kubectl logs -f job/{name}
#     kubectl delete -f {file}
# The secret weirlab-store holds what opens the store (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).
apiVersion: v1
kind: Service
metadata: {{name: {name}-scheduler}}
spec:
  selector: {{app: {name}-scheduler}}
  ports: [{{name: scheduler, port: {port}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}-scheduler}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}-scheduler}}}}
  template:
    metadata: {{labels: {{app: {name}-scheduler}}}}
    spec:
      containers:
        - name: scheduler
          image: weirlab:{version}
          command: [dask, scheduler, --port, "{port}", --no-dashboard]
          resources: {{requests: {{cpu: "1", memory: 2Gi}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}-workers}}
spec:
  replicas: {workers}
  selector: {{matchLabels: {{app: {name}-workers}}}}
  template:
    metadata: {{labels: {{app: {name}-workers}}}}
    spec:
      containers:
        - name: worker
          image: weirlab:{version}
          command: [dask, worker, "tcp://{name}-scheduler:{port}", --nthreads, "1", --no-dashboard]
          env: [{{name: POLARS_MAX_THREADS, value: "1"}}]
          envFrom: [{{secretRef: {{name: weirlab-store, optional: true}}}}]
          resources: {{requests: {{cpu: "1", memory: 1Gi}}, limits: {{memory: 2Gi}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  backoffLimit: 4
  template:
    spec:
      restartPolicy: OnFailure
      containers:
        - name: study
          image: weirlab:{version}
          command: {command}
          envFrom: [{{secretRef: {{name: weirlab-store, optional: true}}}}]
          resources: {{requests: {{cpu: "1", memory: 1Gi}}}}
"""

KINDS = {"slurm": "sbatch", "kubernetes": "yaml"}
"""Clusters for which files are written, and how these files end."""


def cluster_file(on: str, words: Sequence[str], name: str, file: str) -> str:
    """The content of a file that starts a cluster, and on it the command of some words.

    Args:
        on: `slurm:N` or `kubernetes:N`, with the number of workers.
        words: The command line without `--on`.
        name: What the work is called there.
        file: What the file will be called.

    Raises InputError for any other text.
    """
    kind, _, many = on.partition(":")
    if kind not in KINDS or not many.isdecimal() or int(many) < 1:
        raise InputError(f"--on {on}: write the number of workers, such as {kind}:64")
    facts = {
        "workers": int(many),
        "name": _label(name),
        "file": file,
        "port": _PORT,
        "version": _core.version(),
    }
    if kind == "slurm":
        return _SLURM.format(command=shlex.join(words), **facts)
    scheduler = f"tcp://{_label(name)}-scheduler:{_PORT}"
    listed = ", ".join(_quoted(word) for word in [*words, "--on", scheduler])
    return _KUBERNETES.format(command=f"[{listed}]", **facts)


def _label(name: str) -> str:
    """A name as both take it: small letters, digits and hyphens, not too long."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-")
    return (f"weirlab-{kept}")[:50].rstrip("-")


def _quoted(word: str) -> str:
    """A word as YAML and JSON have it."""
    import json

    return json.dumps(word)
