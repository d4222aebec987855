"""Loads weights into a running vLLM worker as RL frameworks do, and reads back which weights the worker now holds.

Loaded into every worker by `worker_extension_cls`, like rlaudit_fp32_head beside it; every method is reached through
`collective_rpc` and answers in JSON text, which every release can send between its processes.

Reading back does not trust parameters alone. CPU builds (vllm/model_executor/layers/utils.py, 0.18.1:222) and quantized
layers keep a packed copy that the parameter no longer shows, and a tied head can keep one of its own: so every layer is
also given a probe, and its answer compared with what each checkpoint would answer.

Python 3.9 syntax; imports only what a vLLM environment holds.
"""

import itertools
import json

from rlaudit_broadcast import Group, find_store, nccl_variables, place
from rlaudit_expert_weights import expert_tensors, versions_held
from rlaudit_weight_sources import Checkpoint, join, tensors_of

BACKEND = "rlaudit"
PROBE_ROWS = 4
# A layer's answer counts as a version's when it is this much nearer to it than that version is to any other.
CLEARLY_NEARER = 0.25


class WeightUpdate:
    """Methods that `collective_rpc` reaches in each worker."""

    def rlaudit_place(self):
        """Return the GPU that this worker computes on; see rlaudit_broadcast."""
        return json.dumps(place(self._rlaudit_device()))

    def rlaudit_join(self, backend, port, size, seconds, nccl):
        """Become a member of the sender's process group; returns when all are. nccl: the variables of the sender's."""
        with nccl_variables(nccl):
            store = find_store(port, seconds)
            join(Group(backend, store, 1 + self.rank, size, self._rlaudit_device(), seconds))

    def rlaudit_load_weights(self, source):
        """`model.load_weights`, as worker extensions of RL frameworks call it: with a whole checkpoint from disk, and
        with each parameter as it comes from another process (PipelineRL's receive_weight_update)."""
        tensors = tensors_of(source, self._rlaudit_device())
        model = self.model_runner.model
        for pairs in [tensors] if source["from"] == "disk" else ([pair] for pair in tensors):
            model.load_weights(pairs)

    def rlaudit_reload_from_iterator(self, source):
        """Call the engine's own `reload_weights`, given tensors instead of a path."""
        self.model_runner.reload_weights(weights_iterator=tensors_of(source, self._rlaudit_device()))

    def _rlaudit_device(self):
        # V0's worker of the CPU has none of its own.
        return getattr(self, "device", None) or self.vllm_config.device_config.device

    def rlaudit_read_back(self, paths):
        """Return which of the checkpoints `paths` each parameter and each layer's answer agrees with; see read_back."""
        import torch

        with torch.inference_mode():
            return json.dumps(read_back(self.model_runner.model, self.vllm_config, paths))


def read_back(model, vllm_config, paths):
    """Return {"parameters": {name: {"tensors", "bytes", "probe", "parts"}}, "logits"}; no parameters if the weights are
    split over several workers.

    tensors: the checkpoint's names of what the parameter holds. bytes, probe: the place in `paths` that the parameter's
    bytes, the layer's answer, agree with; None if they agree with none or cannot be read (a meta device, a kernel's
    packed copy, quantised experts). parts: if the whole agrees with none, the place for each of its tensors. logits:
    the same for the logits that the model computes from given hidden states: they see the head that is really used.
    """
    if vllm_config.parallel_config.world_size != 1:
        return {"parameters": {}, "logits": None}
    checkpoints = [Checkpoint(path) for path in paths]
    packed = dict(getattr(model, "packed_modules_mapping", None) or {})
    modules = dict(model.named_modules())
    dtype = vllm_config.model_config.dtype
    found = {}
    for name, parameter in model.named_parameters():
        experts = expert_tensors(name, checkpoints[0])
        if experts is None:
            module = modules.get(name.rpartition(".")[0])
            found[name] = read_parameter(name, parameter, module, checkpoints, packed, dtype)
        else:
            found[name] = read_experts(parameter, experts, checkpoints)
    head = [tensors.get("lm_head.weight", tensors.get("model.embed_tokens.weight")) for tensors in checkpoints]
    logits = None
    if all(tensor is not None for tensor in head) and hasattr(model, "compute_logits"):
        logits = nearest_logits(model, head, dtype)
    return {"parameters": found, "logits": logits}


def read_parameter(name, parameter, module, checkpoints, packed, dtype):
    """Return what one parameter, and the layer that it belongs to, are found to hold."""
    names = sources(name, checkpoints[0], packed)
    holds = {"tensors": names, "bytes": None, "probe": None, "parts": None}
    wanted = [joined(names, tensors) for tensors in checkpoints]
    if parameter.is_meta or any(tensor is None for tensor in wanted):
        return holds
    if parameter.numel():
        holds["bytes"] = same_bytes(parameter, wanted)
    given = None
    if name.endswith(".weight") and wanted[0].dim() == 2:
        given = answer_of(module, wanted[0].shape[1], dtype, parameter.device)
    if given is not None:
        holds["probe"] = nearest_weight(given, wanted)
    if holds["bytes"] is None and holds["probe"] is None and len(names) > 1 and given is not None:
        rows = [checkpoints[0][one].shape[0] for one in names]
        holds["parts"] = {
            one: nearest_weight(given[:, end - size : end], [tensors[one] for tensors in checkpoints])
            for one, size, end in zip(names, rows, itertools.accumulate(rows))
        }
    return holds


def read_experts(parameter, experts, checkpoints):
    """Return what a parameter of fused experts is found to hold; see rlaudit_expert_weights."""
    holds = {"tensors": [name for names in experts for name in names], "bytes": None, "probe": None, "parts": None}
    if parameter.is_meta or not parameter.is_floating_point() or len(parameter) != len(experts):
        return holds
    parts = versions_held(parameter, experts, checkpoints)
    versions = set(parts.values())
    if len(versions) == 1:
        holds["bytes"] = versions.pop()
    else:
        holds["parts"] = parts
    return holds


def sources(name, tensors, packed):
    """Return the checkpoint's names of the tensors that a parameter is made of; empty if none is known."""
    if name in tensors:
        return [name]
    for whole, parts in packed.items():
        if ".%s." % whole in name:
            names = [name.replace(".%s." % whole, ".%s." % part) for part in parts]
            if all(part in tensors for part in names):
                return names
    return []


def joined(names, tensors):
    """Return what a parameter holds when it was loaded from these tensors; None if there is no such thing."""
    import torch

    if not names or not all(name in tensors for name in names):
        return None
    return tensors[names[0]] if len(names) == 1 else torch.cat([tensors[name] for name in names])


def same_bytes(parameter, wanted):
    """Return the first version whose tensor the parameter holds; rows beyond the tensor's are the engine's padding."""
    import torch

    for version, tensor in enumerate(wanted):
        held = parameter[: tensor.shape[0]]
        if held.shape == tensor.shape and torch.equal(held.cpu(), tensor.to(parameter.dtype)):
            return version
    return None


def answer_of(module, width, dtype, device):
    """Return what the layer answers to a probe; None if it will not."""
    import torch

    method = getattr(module, "quant_method", None)
    try:
        given = method.apply(module, probe_for(width, dtype, device), bias=None) if method is not None else None
    except Exception:
        return None
    return given if isinstance(given, torch.Tensor) else None


def nearest_weight(given, wanted):
    """Return the version whose tensor gave this answer; None if it is no version's."""
    probe = probe_for(wanted[0].shape[1], given.dtype, "cpu")
    return nearest(given, [probe.float() @ tensor.float().t() for tensor in wanted])


def nearest_logits(model, heads, dtype):
    """As `answer_of`, for the logits that the model itself makes of hidden states."""
    import torch

    device = next((parameter.device for parameter in model.parameters() if not parameter.is_meta), "cpu")
    probe = probe_for(heads[0].shape[1], dtype, device)
    try:
        try:
            given = model.compute_logits(probe)
        except TypeError:
            given = model.compute_logits(probe, None)  # 0.8.5 hands sampling metadata in
    except Exception:
        return None
    if not isinstance(given, torch.Tensor):
        return None
    return nearest(given, [probe.float().cpu() @ head.float().t() for head in heads])


def probe_for(width, dtype, device):
    """Return the same random rows at every call."""
    import torch

    rows = torch.randn((PROBE_ROWS, width), generator=torch.Generator().manual_seed(width))
    return rows.to(device=device, dtype=dtype)


def nearest(given, answers):
    """Return the place of the answer that `given` is clearly nearest to, or None."""
    given = given.detach().float().cpu()
    answers = [answer[:, : given.shape[1]] for answer in answers]
    if any(answer.shape != given[:, : answer.shape[1]].shape for answer in answers):
        return None
    apart = [float((given[:, : answer.shape[1]] - answer).norm()) for answer in answers]
    best = min(range(len(answers)), key=lambda version: apart[version])
    others = [float((answers[best] - answer).norm()) for place, answer in enumerate(answers) if place != best]
    others = [distance for distance in others if distance > 0]
    limit = CLEARLY_NEARER * min(others) if others else 1e-2 * float(answers[best].norm())
    return best if apart[best] < limit else None


def register_transfer():
    """Give the native weight-transfer API our sources, so that its own course can be run where its NCCL and CUDA IPC
    cannot. Does nothing if the release has no such API."""
    try:
        from vllm.distributed.weight_transfer import base, factory
    except ImportError:
        return
    from dataclasses import dataclass, field

    @dataclass
    class InitInfo(base.WeightTransferInitInfo):
        pass

    @dataclass
    class UpdateInfo(base.WeightTransferUpdateInfo):
        source: dict = field(default_factory=dict)

    class Transfer(base.WeightTransferEngine):
        init_info_cls = InitInfo
        update_info_cls = UpdateInfo

        def init_transfer_engine(self, init_info):
            pass

        def start_weight_update(self):
            from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

            initialize_layerwise_reload(self.model)

        def receive_weights(self, update_info, load_weights=None):
            """Up to 0.20 or so the worker hands its loader in; later the transport holds the model and its device."""
            import torch

            load = load_weights or self.model.load_weights
            device = getattr(self, "device", None) or torch.empty(0).device
            if update_info.source["from"] == "disk":
                load(tensors_of(update_info.source, device))
                return
            for pair in tensors_of(update_info.source, device):
                load([pair])

        def finish_weight_update(self):
            from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

            finalize_layerwise_reload(self.model, self.model_config)

        def shutdown(self):
            pass

        @staticmethod
        def trainer_send_weights(iterator, trainer_args):
            raise NotImplementedError("the sender of this transport is no trainer engine of vLLM's")

    if BACKEND not in factory.WeightTransferEngineFactory._registry:
        factory.WeightTransferEngineFactory.register_engine(BACKEND, Transfer)


register_transfer()
