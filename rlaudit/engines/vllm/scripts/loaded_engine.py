"""Asks an engine's workers what they loaded and what they ran. Loaded by the scripts that start engines.

The questions are answered by `extension/rlaudit_loaded_engine.py` inside each worker. That nothing could be seen is an
answer with a reason, never the end of an engine. Python 3.9 syntax, standard library only.
"""

import json
import os
import sys

EXTENSION = "rlaudit_loaded_engine.LoadedEngine"


def offer_extensions():
    """Make our worker extensions importable here and in every process that the engine starts, even if a container or a
    scheduler changed the environment that we were started with."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "extension")
    if folder not in sys.path:
        sys.path.append(folder)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([entry for entry in known if entry] + [folder])


def attach(engine_args, known_arguments):
    """Name our extension among the engine's arguments; returns why not where that cannot be."""
    named = engine_args.get("worker_extension_cls")
    if named:
        return "the recipe's own worker_extension_cls (%s) stands where ours would" % named
    if "worker_extension_cls" not in known_arguments:
        return "this vLLM has no worker_extension_cls"
    engine_args["worker_extension_cls"] = EXTENSION
    return None


def watch(collective_rpc):
    """Let every worker count what its batches run; returns why not where that failed."""
    try:
        collective_rpc("rlaudit_watch")
    except Exception as error:
        return described(error)
    return None


def loaded(collective_rpc, unseen):
    """Return what the workers say, as one answer. `unseen` is the reason why none is asked, if there is one."""
    if unseen is None:
        try:
            return merged([json.loads(answer) for answer in collective_rpc("rlaudit_loaded")])
        except Exception as error:
            unseen = described(error)
    return {"features": {}, "because": {}, "failed": {"worker": unseen}, "ran": None}


def merged(answers):
    """Return one answer for all workers: a feature that differs between them holds every value, in their order."""
    whole = {"features": {}, "because": {}, "failed": {}, "ran": None}
    for answer in answers:
        whole["because"] = {**answer["because"], **whole["because"]}
        whole["failed"] = {**answer["failed"], **whole["failed"]}
    for name in answers[0]["features"]:
        values = [answer["features"][name] for answer in answers if answer["features"][name] is not None]
        whole["features"][name] = " / ".join(dict.fromkeys(values)) or None
    counted = [answer["ran"] for answer in answers if answer["ran"] is not None]
    # With pipeline stages only the workers of the last one sample.
    whole["ran"] = max(counted, key=lambda ran: ran["batches"]) if counted else None
    return whole


def described(error):
    """Return an exception in a line."""
    return "%s: %s" % (type(error).__name__, error)
