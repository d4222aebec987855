"""Loads weights into a running vLLM worker as RL frameworks do, and reads back which weights the worker now has.

Loaded into every worker by `worker_extension_cls`, like rlaudit_fp32_head; every method is called through
`collective_rpc` and answers in JSON text, which every release can send between its processes.

Weights are known by the recorder's fingerprints. A tied head may compute with a packed copy that differs from its
parameter (CPU builds: vllm/model_executor/layers/utils.py, 0.18.1:222), so the logits of a probe are compared as well.

Python 3.9 syntax; imports only what a vLLM environment holds.
"""

import inspect
import json
import math
import os
import sys

from rlaudit_weight_transport import Checkpoint, Group, join, nccl_variables, place, store_at, tensors_of

RECORDER = os.path.join(os.path.abspath(__file__).rsplit(os.sep, 4)[0], "recording", "shipped")
PROBE_ROWS = 4
# Logits are a version's if their distance is at most this share of that version's distance from any other.
CLEARLY_NEARER = 0.25


class WeightUpdate:
    """Methods that `collective_rpc` reaches in each worker."""

    def rlaudit_place(self):
        """Return the GPU that this worker computes on; see rlaudit_weight_transport."""
        return json.dumps(place(self._rlaudit_device()))

    def rlaudit_join(self, backend, port, size, seconds, nccl):
        """Join the sender's process group; return after all ends have. nccl: the sender's variables."""
        with nccl_variables(nccl):
            store = store_at(port, seconds)
            join(Group(backend, store, 1 + self.rank, size, self._rlaudit_device(), seconds))

    def rlaudit_load_weights(self, source):
        """Call `model.load_weights` as worker extensions of RL frameworks do.

        A checkpoint from disk is one call, and each parameter from another process is one (PipelineRL's
        receive_weight_update).
        """
        tensors = tensors_of(source, self._rlaudit_device())
        model = self.model_runner.model
        for pairs in [tensors] if source["from"] == "disk" else ([pair] for pair in tensors):
            model.load_weights(pairs)

    def rlaudit_reload_takes(self):
        """Return the names of the parameters of the engine's own `reload_weights`; none if it has no such method."""
        reload_weights = getattr(self.model_runner, "reload_weights", None)
        return json.dumps(list(inspect.signature(reload_weights).parameters) if reload_weights else [])

    def rlaudit_reload_from_iterator(self, source):
        """Call the engine's own `reload_weights` with tensors instead of a path."""
        self.model_runner.reload_weights(weights_iterator=tensors_of(source, self._rlaudit_device()))

    def _rlaudit_device(self):
        # V0's CPU worker has no `device`.
        return getattr(self, "device", None) or self.vllm_config.device_config.device

    def rlaudit_read_back(self, paths):
        """Return the checkpoints, of `paths`, with which tensors and head agree; see read_back."""
        import torch

        with torch.inference_mode():
            return json.dumps(read_back(self.model_runner.model, self.vllm_config, paths))


def read_back(model, vllm_config, paths):
    """Return {"tensors": {name: place in `paths`}, "unread": [name], "logits": place}.

    tensors: of the checkpoints, by their names; the place is that of the version with whose fingerprint what is held of
    a tensor agrees, None if with none. unread: what cannot be compared (rlaudit_weights.py), such as a copy that a
    kernel has packed. logits: the same of the logits that the model computes from given hidden states. There are no
    tensors if the weights are split over several workers.
    """
    read = {"tensors": {}, "unread": [], "logits": None}
    if vllm_config.parallel_config.world_size != 1:
        return read
    # Not on PYTHONPATH: a process that starts with it there is one to be recorded.
    sys.path.append(RECORDER)
    try:
        from rlaudit_weights import fingerprints
    finally:
        sys.path.remove(RECORDER)
    checkpoints = [Checkpoint(path) for path in paths]
    for version, tensors in enumerate(checkpoints):
        for name, (sent, held) in fingerprints(model, tensors.items()).items():
            if not any(map(math.isnan, (*sent, *held))):
                read["tensors"][name] = version if sent == held else read["tensors"].get(name)
    read["unread"] = [name for name in checkpoints[-1] if name not in read["tensors"]]
    head = [tensors.get("lm_head.weight", tensors.get("model.embed_tokens.weight")) for tensors in checkpoints]
    if all(tensor is not None for tensor in head) and hasattr(model, "compute_logits"):
        read["logits"] = nearest_logits(model, head, vllm_config.model_config.dtype)
    return read


def nearest_logits(model, heads, dtype):
    """Return the place of the head that gave the model's logits for a probe; None if none did."""
    import torch

    device = next((parameter.device for parameter in model.parameters() if not parameter.is_meta), "cpu")
    probe = probe_for(heads[0].shape[1], dtype, device)
    try:
        try:
            logits = model.compute_logits(probe)
        except TypeError:
            logits = model.compute_logits(probe, None)  # 0.8.5 takes sampling metadata
    except Exception:
        return None
    if not isinstance(logits, torch.Tensor):
        return None
    return nearest(logits, [probe.float().cpu() @ head.float().t() for head in heads])


def probe_for(width, dtype, device):
    """Return the same random rows at every call."""
    import torch

    rows = torch.randn((PROBE_ROWS, width), generator=torch.Generator().manual_seed(width))
    return rows.to(device=device, dtype=dtype)


def nearest(answer, expected):
    """Return the place of the expected answer that `answer` is clearly nearest to, or None."""
    answer = answer.detach().float().cpu()
    expected = [candidate[:, : answer.shape[1]] for candidate in expected]
    if any(candidate.shape != answer[:, : candidate.shape[1]].shape for candidate in expected):
        return None
    distances = [float((answer[:, : candidate.shape[1]] - candidate).norm()) for candidate in expected]
    best = min(range(len(expected)), key=lambda place: distances[place])
    others = [float((expected[best] - candidate).norm()) for place, candidate in enumerate(expected) if place != best]
    others = [distance for distance in others if distance > 0]
    limit = CLEARLY_NEARER * min(others) if others else 1e-2 * float(expected[best].norm())
    return best if distances[best] < limit else None
