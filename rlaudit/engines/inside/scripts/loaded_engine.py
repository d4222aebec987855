"""Asks an engine's workers what they loaded and what they ran. Loaded by the scripts that start engines.

`extension/rlaudit_loaded_engine.py` answers inside each worker. If it cannot, the answer is the reason: looking never
ends an engine. Python 3.9 syntax, standard library only.
"""

import json
import os
import sys

EXTENSION = "rlaudit_loaded_engine.LoadedEngine"


def offer_extensions():
    """Make our worker extensions importable in this process and in those that the engine starts.

    A container or a scheduler may have changed the environment with which this process was started.
    """
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "extension")
    if folder not in sys.path:
        sys.path.append(folder)
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in entries:
        os.environ["PYTHONPATH"] = os.pathsep.join([entry for entry in entries if entry] + [folder])


def attach(engine_args, known_arguments):
    """Add our extension to the engine's arguments; return the reason if that is impossible."""
    extension = engine_args.get("worker_extension_cls")
    if extension:
        return "the recipe's own worker_extension_cls (%s) stands where ours would" % extension
    if "worker_extension_cls" not in known_arguments:
        return "this vLLM has no worker_extension_cls"
    engine_args["worker_extension_cls"] = EXTENSION
    return None


def watch(collective_rpc):
    """Let every worker count what its batches run; return the error if that fails."""
    try:
        collective_rpc("rlaudit_watch")
    except Exception as error:
        return described(error)
    return None


def loaded(collective_rpc, unseen):
    """Return the merged answers of the workers. unseen: the reason why they cannot be asked, or None."""
    if unseen is None:
        try:
            return merged([json.loads(answer) for answer in collective_rpc("rlaudit_loaded")])
        except Exception as error:
            unseen = described(error)
    return {"features": {}, "because": {}, "failed": {"worker": unseen}, "ran": None}


def merged(answers):
    """Return one answer for all workers. A feature in which they differ has all values, in the order of workers."""
    combined = {"features": {}, "because": {}, "failed": {}, "ran": None}
    for answer in answers:
        combined["because"] = {**answer["because"], **combined["because"]}
        combined["failed"] = {**answer["failed"], **combined["failed"]}
    for name in answers[0]["features"]:
        values = [answer["features"][name] for answer in answers if answer["features"][name] is not None]
        combined["features"][name] = " / ".join(dict.fromkeys(values)) or None
    counted = [answer["ran"] for answer in answers if answer["ran"] is not None]
    # With pipeline stages only the workers of the last one sample.
    combined["ran"] = max(counted, key=lambda ran: ran["batches"]) if counted else None
    return combined


def described(error):
    """Return the type and message of an exception."""
    return "%s: %s" % (type(error).__name__, error)
