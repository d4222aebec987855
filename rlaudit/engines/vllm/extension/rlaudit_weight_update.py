"""Loads weights into a running vLLM worker as RL frameworks do, and reads back which weights the worker now has.

Loaded into every worker by `worker_extension_cls`, like rlaudit_fp32_head; every method is called through
`collective_rpc` and answers in JSON text, which every release can send between its processes.

Parameters alone are not enough to read back. CPU builds (vllm/model_executor/layers/utils.py, 0.18.1:222) and quantized
layers compute with a packed copy that may differ from the parameter, and so can a tied head. So every layer also gets a
probe, and its answer is compared with that of each checkpoint.

Python 3.9 syntax; imports only what a vLLM environment holds.
"""

import inspect
import itertools
import json

from rlaudit_broadcast import Group, find_store, nccl_variables, place
from rlaudit_expert_weights import expert_tensors, versions_held
from rlaudit_weight_sources import Checkpoint, join, tensors_of

BACKEND = "rlaudit"
PROBE_ROWS = 4
# A layer's answer is a version's if its distance is at most this share of that version's distance from any other.
CLEARLY_NEARER = 0.25


class WeightUpdate:
    """Methods that `collective_rpc` reaches in each worker."""

    def rlaudit_place(self):
        """Return the GPU that this worker computes on; see rlaudit_broadcast."""
        return json.dumps(place(self._rlaudit_device()))

    def rlaudit_join(self, backend, port, size, seconds, nccl):
        """Join the sender's process group; return after all ends have. nccl: the sender's variables."""
        with nccl_variables(nccl):
            store = find_store(port, seconds)
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
        """Return the checkpoints, of `paths`, with which the parameters and layers agree; see read_back."""
        import torch

        with torch.inference_mode():
            return json.dumps(read_back(self.model_runner.model, self.vllm_config, paths))


def read_back(model, vllm_config, paths):
    """Return {"parameters": {name: {"tensors", "bytes", "probe", "parts"}}, "logits"}.

    tensors: the checkpoint's names of the tensors in the parameter. bytes: the place in `paths` with which the
    parameter's bytes agree. probe: the same of the layer's answer. Both are None if they agree with none or cannot be
    read (a meta device, a kernel's packed copy, quantised experts). parts: if the whole agrees with none, the place for
    each of its tensors. logits: the place for the logits that the model computes from given hidden states, which show
    the head in use. There are no parameters if the weights are split over several workers.
    """
    if vllm_config.parallel_config.world_size != 1:
        return {"parameters": {}, "logits": None}
    checkpoints = [Checkpoint(path) for path in paths]
    packed = dict(getattr(model, "packed_modules_mapping", None) or {})
    modules = dict(model.named_modules())
    dtype = vllm_config.model_config.dtype
    parameters = {}
    for name, parameter in model.named_parameters():
        experts = expert_tensors(name, checkpoints[0])
        if experts is None:
            module = modules.get(name.rpartition(".")[0])
            parameters[name] = read_parameter(name, parameter, module, checkpoints, packed, dtype)
        else:
            parameters[name] = read_experts(parameter, experts, checkpoints)
    head = [tensors.get("lm_head.weight", tensors.get("model.embed_tokens.weight")) for tensors in checkpoints]
    logits = None
    if all(tensor is not None for tensor in head) and hasattr(model, "compute_logits"):
        logits = nearest_logits(model, head, dtype)
    return {"parameters": parameters, "logits": logits}


def read_parameter(name, parameter, module, checkpoints, packed, dtype):
    """Return the places in the checkpoints of one parameter and its layer; see read_back."""
    names = sources(name, checkpoints[0], packed)
    places = {"tensors": names, "bytes": None, "probe": None, "parts": None}
    versions = [joined(names, tensors) for tensors in checkpoints]
    if parameter.is_meta or any(tensor is None for tensor in versions):
        return places
    if parameter.numel():
        places["bytes"] = same_bytes(parameter, versions)
    answer = None
    if name.endswith(".weight") and versions[0].dim() == 2:
        answer = answer_of(module, versions[0].shape[1], dtype, parameter.device)
    if answer is not None:
        places["probe"] = nearest_weight(answer, versions)
    if places["bytes"] is None and places["probe"] is None and len(names) > 1 and answer is not None:
        rows = [checkpoints[0][part].shape[0] for part in names]
        places["parts"] = {
            part: nearest_weight(answer[:, end - size : end], [tensors[part] for tensors in checkpoints])
            for part, size, end in zip(names, rows, itertools.accumulate(rows))
        }
    return places


def read_experts(parameter, experts, checkpoints):
    """Return the places in the checkpoints of a parameter of fused experts; see rlaudit_expert_weights."""
    places = {"tensors": [name for names in experts for name in names], "bytes": None, "probe": None, "parts": None}
    if parameter.is_meta or not parameter.is_floating_point() or len(parameter) != len(experts):
        return places
    parts = versions_held(parameter, experts, checkpoints)
    versions = set(parts.values())
    if len(versions) == 1:
        places["bytes"] = versions.pop()
    else:
        places["parts"] = parts
    return places


def sources(name, tensors, packed):
    """Return the checkpoint's names of the tensors in a parameter; empty if they are unknown."""
    if name in tensors:
        return [name]
    for whole, parts in packed.items():
        if ".%s." % whole in name:
            names = [name.replace(".%s." % whole, ".%s." % part) for part in parts]
            if all(part in tensors for part in names):
                return names
    return []


def joined(names, tensors):
    """Return a parameter as it would be loaded from these tensors; None if one is missing."""
    import torch

    if not names or not all(name in tensors for name in names):
        return None
    return tensors[names[0]] if len(names) == 1 else torch.cat([tensors[name] for name in names])


def same_bytes(parameter, versions):
    """Return the place of the first tensor that equals the parameter; more rows are the engine's padding."""
    import torch

    for version, tensor in enumerate(versions):
        unpadded = parameter[: tensor.shape[0]]
        if unpadded.shape == tensor.shape and torch.equal(unpadded.cpu(), tensor.to(parameter.dtype)):
            return version
    return None


def answer_of(module, width, dtype, device):
    """Return the layer's output for a probe; None if it fails."""
    import torch

    method = getattr(module, "quant_method", None)
    try:
        answer = method.apply(module, probe_for(width, dtype, device), bias=None) if method is not None else None
    except Exception:
        return None
    return answer if isinstance(answer, torch.Tensor) else None


def nearest_weight(answer, versions):
    """Return the place of the tensor that gave this answer; None if none did."""
    probe = probe_for(versions[0].shape[1], answer.dtype, "cpu")
    return nearest(answer, [probe.float() @ tensor.float().t() for tensor in versions])


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


def register_transfer():
    """Register our sources with the native weight-transfer API, if the release has one.

    Its update path can then be run on machines on which its NCCL and CUDA IPC cannot.
    """
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
            """Load the weights. Up to about 0.20 the worker passes its loader; later self has the model and device."""
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
