"""MLflow: a run's folder below `mlruns`, or `runs:/RUN_ID` of the store that `MLFLOW_TRACKING_URI` names.

MLflow itself reads them (the extra `mlflow`; a store in a database needs the whole package): a server with its
credentials, a database and a folder alike. Tried with folders of mlflow-skinny 3.17 and a server of mlflow 3.18.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.errors import NotFinished
from rlaudit.files.install_beside import install_beside

# MLflow's own words for a run of a store.
SCHEME = "runs:/"
# Without it, MLflow 3.17 and later refuse to open a store that is a folder.
FOLDERS = "MLFLOW_ALLOW_FILE_STORE"


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is the description of a run, or names one of a store; an experiment's has no run_id."""
    return str(path).startswith(SCHEME) or (path.name == "meta.yaml" and b"\nrun_id:" in b"\n" + start)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield a row for each value of each metric, in the order of the run. Raises NotFinished if there is no run."""
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise NotFinished(f"{path} needs the package mlflow ({error})", install_beside("mlflow-skinny")) from error
    if str(path).startswith(SCHEME):
        store, run = None, str(path).removeprefix(SCHEME).strip("/")
    else:
        os.environ.setdefault(FOLDERS, "true")
        store, run = path.absolute().parents[2].as_uri(), path.parent.name
    try:
        client: Any = MlflowClient(tracking_uri=store)
        for metric in client.get_run(run).data.metrics:
            for value in client.get_metric_history(run, metric):
                yield Row(f"{metric}, step {value.step}", value.step, {metric: value.value})
    except (MlflowException, OSError) as error:
        raise NotFinished(f"MLflow cannot read the run {run}: {' '.join(str(error).split())[:300]}") from error


READER = RunReader(
    name="mlflow",
    title="MLflow run",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("meta.yaml",),
    rank=20,
)
