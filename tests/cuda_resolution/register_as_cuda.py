"""Runs in an engine's interpreter: a release's CUDA build loads the recorder and resolves an engine's configuration.

The recorder comes in by vLLM's own door: its folder is on PYTHONPATH. What is answered in place of a GPU stands in
device_answers.py. Every module with a hook is imported in the end, as a training would by and by.

    job: device; tree, the folder with the wheel's vllm/ and its dist-info; engine_args
    out: {"hooked": targets, "absent": modules that the release does not have}

Python 3.9 syntax, standard library and engine only.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path


def neighbour(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(job_path, out_path):
    job = json.loads(Path(job_path).read_text())
    neighbour("device_answers").start_vllm(job["device"], job["tree"])
    from vllm.engine.arg_utils import EngineArgs

    # The recorder may be there already, by Python's own door (sitecustomize); loading it is the business of this call.
    EngineArgs(**job["engine_args"]).create_engine_config()
    recorder = sys.modules["rlaudit_recorder"]
    absent = []
    for module in sorted({target.partition(":")[0] for targets in recorder.PARTS.values() for target in targets}):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            assert error.name is not None and module.startswith(error.name), error
            absent.append(module)
    Path(out_path).write_text(json.dumps({"hooked": recorder._hooked, "absent": absent}))


if __name__ == "__main__":
    main(*sys.argv[1:])
