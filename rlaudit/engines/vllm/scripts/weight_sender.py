"""A process that sends the tensors of checkpoints to an engine's workers, as a trainer does.

Started by weight_transports.py in the engine's interpreter. Messages are JSON lines over its pipes; output goes to
stderr.

    < {"checkpoints": {version: folder}, "workers", "seconds"}
    > {"place", "port"}                                        the device and port of this end
    < {"backend", "size"}                                      the group to join
    > {"ready": true}
    < {"send": version, "skip"}                                see extension/rlaudit_weight_sources.py
    > {"source"}                                               for the workers; then the tensors are sent
    > {"sent": number of tensors}                              or {"error"} in place of either

Python 3.9 syntax; torch and safetensors.
"""

import json
import os
import sys

from rlaudit_broadcast import place
from rlaudit_weight_senders import Broadcasts, own_device
from rlaudit_weight_sources import checkpoint_tensors


def serve(hear, tell):
    """Answer until the pipe ends."""
    job = hear()
    sender = Broadcasts(own_device(job["workers"]), job["seconds"])
    tell({"place": place(sender.device), "port": sender.port})
    sender.meet(hear())
    tell({"ready": True})
    while True:
        request = hear()
        try:

            def pairs(folder=job["checkpoints"][request["send"]], skip=request["skip"]):
                return checkpoint_tensors(folder, skip)

            tell({"source": sender.source(pairs())})
            tell({"sent": sender.send(pairs())})
        except Exception as error:
            tell({"error": "%s: %s" % (type(error).__name__, error)})


def main():
    """Serve the process that started this one."""
    # Libraries may print, so only the messages keep the pipe.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def hear():
        line = sys.stdin.readline()
        if not line:
            raise SystemExit(0)
        return json.loads(line)

    serve(hear, tell)


if __name__ == "__main__":
    main()
