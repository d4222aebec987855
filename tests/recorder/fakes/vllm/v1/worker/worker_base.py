"""Where every executor makes its workers: the module since 0.12.0."""

from vllm.plugins import load_general_plugins
from vllm.worker_classes import Worker


class WorkerWrapperBase:
    def __init__(self, config):
        load_general_plugins()
        self.worker = Worker()
        self.worker.vllm_config = config

    def init_device(self):
        return None
