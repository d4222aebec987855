"""How the trainer hands weights over: as a file that the engine reads, or by broadcast to its workers.

Part of the training script (train.py). A handover takes the weights by name and their version, and returns the engine's
answer once it holds them.

job
  transport   disk or broadcast
  weights     folder of the file
  skip        parts of tensor names that are never handed over (planted)
  extension   folder with the sender (engines/inside/extension/rlaudit_weight_transport.py)
  workers     of the engine
  seconds     longest wait for them
"""

import os
import shutil
import sys

from safetensors.torch import save_file


def handover(job, pipe):
    """Return the function that hands weights over."""
    give = through_a_file(job, pipe) if job["transport"] == "disk" else by_a_sender(job, pipe)

    def hand_over(weights, version):
        handed = {name: tensor for name, tensor in weights.items() if not any(part in name for part in job["skip"])}
        return give(handed, version)

    return hand_over


def through_a_file(job, pipe):
    """Return a function that writes a checkpoint of the model in float32 and has the engine read it."""

    def give(weights, version):
        write_weights(weights, job["model"], job["weights"])
        return pipe.ask({"do": "update", "source": {"from": "disk", "path": job["weights"]}, "version": version})

    return give


def by_a_sender(job, pipe):
    """Connect to the engine's workers, and return a function that sends them tensor by tensor."""
    sys.path.append(job["extension"])
    from rlaudit_weight_transport import Sender, own_device, place

    sender = Sender(own_device(job["workers"]), job["seconds"])
    sender.meet(pipe.ask({"do": "join", "place": place(sender.device), "port": sender.port}))

    def give(weights, version):
        pipe.tell({"do": "update", "source": sender.source(weights.items()), "version": version})
        sender.send(weights.items())
        return pipe.hear()

    return give


def write_weights(weights, model, folder):
    """Write the weights atomically as a checkpoint of the model."""
    os.makedirs(folder, exist_ok=True)
    config = os.path.join(folder, "config.json")
    if not os.path.exists(config):
        shutil.copyfile(os.path.join(model, "config.json"), config)
    part = os.path.join(folder, "model.part")
    save_file({name: weight.detach().contiguous() for name, weight in weights.items()}, part, {"format": "pt"})
    os.replace(part, os.path.join(folder, "model.safetensors"))
