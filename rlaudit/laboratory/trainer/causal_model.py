"""A causal language model split at its head: hidden states for whole sequences, logits for chosen tokens.

Part of the scoring script: it runs inside the trainer's interpreter (torch, transformers 4.51 to 5.x, Python
3.9 syntax).

The head may run in another precision than the body, as trainers with an fp32 head do. The model's operations between
head and logits (soft caps, scales) are repeated here if its configuration names them, and checked on the first sequence
against the model's own logits: a model that does more is refused, not scored wrongly.
"""

import importlib.util
import inspect
import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# A cast copy of the head up to this size is kept; a larger one is cast slice by slice for every chunk.
KEPT_HEAD_BYTES = 1 << 30
SLICE_ROWS = 16384
# Relative to the largest logit: summation order differs between one large and many small matrix products.
AGREEMENT = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}


class CausalModel:
    """A loaded model, its body and its head."""

    def __init__(self, model, head_dtype):
        self.model = model
        self.body = find_body(model)
        self.head = model.get_output_embeddings()
        if self.head is None or getattr(self.head, "weight", None) is None:
            raise ValueError(f"{type(model).__name__} has no output embedding that could be applied")
        self.device = self.head.weight.device
        self.input_device = model.get_input_embeddings().weight.device
        self.vocabulary = self.head.weight.shape[0]
        self.body_dtype = self.head.weight.dtype
        self.head_dtype = head_dtype
        self.takes_positions = "position_ids" in inspect.signature(self.body.forward).parameters
        config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        self.soft_cap = getattr(config, "final_logit_softcapping", None)  # Gemma 2 and 3
        self.divisor = getattr(config, "logits_scaling", None)  # Granite
        self.factor = getattr(config, "logit_scale", None)  # Cohere
        self._cast = None
        size = self.head.weight.numel() * head_dtype.itemsize
        if head_dtype != self.body_dtype and size <= KEPT_HEAD_BYTES:
            self._cast = self.head.weight.detach().to(head_dtype)

    def hidden(self, token_ids, lengths):
        """Return final hidden states (B, L, H), on the head's device, of right-padded token_ids (B, L)."""
        token_ids, lengths = token_ids.to(self.input_device), lengths.to(self.input_device)
        places = torch.arange(token_ids.shape[1], device=self.input_device)
        arguments = {"input_ids": token_ids, "use_cache": False}
        if int(lengths.min()) < token_ids.shape[1]:
            arguments["attention_mask"] = (places[None, :] < lengths[:, None]).to(torch.int64)
        if self.takes_positions:
            arguments["position_ids"] = places[None, :].expand_as(token_ids)
        return self.body(**arguments).last_hidden_state.to(self.device)

    def logits(self, hidden, out=None):
        """Return raw logits (N, V) in float32 of hidden states (N, H), computed in the head's precision."""
        return self._finish(self._project(hidden.to(self.head_dtype), self.head_dtype, out), out)

    def _project(self, hidden, dtype, out):
        bias = self.head.bias if getattr(self.head, "bias", None) is not None else None
        weight = self.head.weight if dtype == self.body_dtype else self._cast
        direct = out if out is not None and out.dtype == dtype else None
        if weight is not None:
            logits = torch.matmul(hidden, weight.t(), out=direct)
        else:
            logits = direct
            if logits is None:
                logits = torch.empty((len(hidden), self.vocabulary), dtype=dtype, device=self.device)
            for start in range(0, self.vocabulary, SLICE_ROWS):
                part = self.head.weight[start : start + SLICE_ROWS].to(dtype)
                logits[:, start : start + SLICE_ROWS] = hidden @ part.t()
        return logits if bias is None else logits.add_(bias.to(dtype))

    def _finish(self, logits, out):
        """Repeat what the model does to its logits, in the head's precision, then go to float32."""
        if self.divisor:
            logits.div_(self.divisor)
        if self.factor:
            logits.mul_(self.factor)
        if self.soft_cap:
            logits.div_(self.soft_cap).tanh_().mul_(self.soft_cap)
        if logits.dtype == torch.float32:
            return logits
        return logits.float() if out is None else out.copy_(logits)

    def check_head(self, token_ids):
        """Return how far our logits of token_ids (1, L) are from the model's own. Raises ValueError if they differ.

        L is small: the model returns the whole vocabulary at every position.
        """
        token_ids = token_ids.to(self.input_device)
        theirs = self.model(input_ids=token_ids, use_cache=False).logits[0].float().to(self.device)
        hidden = self.hidden(token_ids, torch.tensor([token_ids.shape[1]]))[0]
        ours = self._finish(self._project(hidden, self.body_dtype, None), None)
        if ours.shape != theirs.shape:
            raise ValueError(f"the model gives logits of shape {theirs.shape}, its head {ours.shape}")
        apart = float((ours - theirs).abs().max())
        allowed = AGREEMENT[self.body_dtype] * max(1.0, float(theirs.abs().max()))
        if not apart <= allowed:
            raise ValueError(
                f"{type(self.model).__name__} does more to its logits than rlaudit repeats: its own and "
                f"head(hidden state) differ by {apart:.3g} (allowed {allowed:.3g}); its configuration names "
                f"soft cap {self.soft_cap}, divisor {self.divisor}, factor {self.factor}"
            )
        return apart

    def resolved(self):
        """Return what was really loaded."""
        embedding = self.model.get_input_embeddings()
        return {
            "dtype": str(self.body_dtype).replace("torch.", ""),
            "head_dtype": str(self.head_dtype).replace("torch.", ""),
            "attention": getattr(self.model.config, "_attn_implementation", None),
            "model_class": type(self.model).__name__,
            "parameters": sum(weight.numel() for weight in self.model.parameters()),
            "tied_head": embedding is not None and embedding.weight is self.head.weight,
            "vocabulary": self.vocabulary,
            "device": str(self.device),
            "devices": sorted({str(weight.device) for weight in self.model.parameters()}),
            "allow_tf32": bool(torch.backends.cuda.matmul.allow_tf32),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "nvidia_tf32_override": os.environ.get("NVIDIA_TF32_OVERRIDE"),
        }


def find_body(model):
    """Return the module below the head, which returns hidden states; raises ValueError if the model has none."""
    body = model.base_model
    if body is model:
        body = getattr(model, "model", model)
    if body is model:
        raise ValueError(f"{type(model).__name__} does not separate its body from its head")
    return body


def load(job):
    """Load the job's model straight onto the device, or devices, that will hold it.

    Raises RuntimeError if torch cannot use the GPU, or the GPUs together cannot hold the model.
    """
    compute_float32_as_such()
    device, dtype = job.get("device") or "cpu", DTYPES[job["dtype"]]
    if device == "cuda":
        require_cuda()
    where = {"revision": job.get("revision"), "trust_remote_code": bool(job.get("trust_remote_code"))}
    config = AutoConfig.from_pretrained(job["model"], **where)
    # transformers 4.56 renamed the argument and the configurations' field; only an empty configuration shows which,
    # because a model's configuration has every field of its config.json.
    dtype_name = "dtype" if hasattr(PretrainedConfig(), "dtype") else "torch_dtype"
    choices = {dtype_name: dtype, "attn_implementation": job.get("attention") or "sdpa"}
    placed = {}
    # With accelerate the host's memory never holds the whole model.
    if device == "cuda" and importlib.util.find_spec("accelerate"):
        needed = weight_bytes(config, dtype, where["trust_remote_code"])
        placed = placement(needed, int(job.get("headroom_bytes") or 0))
    model = AutoModelForCausalLM.from_pretrained(
        job["model"], config=config, use_safetensors=True, **choices, **placed, **where
    )
    elsewhere = {str(place) for place in (getattr(model, "hf_device_map", None) or {}).values()} & {"cpu", "disk"}
    if placed and elsewhere:
        raise RuntimeError("the GPUs together do not hold the model: accelerate put part of it on the %s" % elsewhere)
    if not placed:
        # To the device only: a dtype would also round the rotary frequencies, which trainers and engines keep in
        # float32. SmolLM2-135M in bfloat16 on 1,024 tokens of prose: k3 2e-3 between the two.
        model = model.to(device)
    return CausalModel(model.eval(), DTYPES[job.get("head_dtype") or job["dtype"]])


def compute_float32_as_such():
    """Switch off TF32, which rounds the factors of float32 products to 10 bits. Call it before the first product."""
    # cuBLAS reads it when it starts, and 1 would override torch.
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def require_cuda():
    """Raise RuntimeError with torch's reason if this torch cannot use the GPU."""
    try:
        torch.zeros(1, device="cuda").add_(1).item()
    except (RuntimeError, AssertionError) as refusal:
        built = torch.version.cuda or "no CUDA at all"
        raise RuntimeError("torch %s, built for %s, cannot use the GPU: %s" % (torch.__version__, built, refusal))


def weight_bytes(config, dtype, trust_remote_code):
    """Return the bytes of the model's weights in this dtype, from its configuration alone."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
    return sum(weight.numel() for weight in model.parameters()) * dtype.itemsize


def placement(needed_bytes, headroom_bytes):
    """Return where accelerate puts the weights: on the first GPU if it holds them beside the headroom, else on all."""
    room = {
        place: max(0, torch.cuda.mem_get_info(place)[0] - headroom_bytes) for place in range(torch.cuda.device_count())
    }
    if needed_bytes <= room[0]:
        return {"device_map": {"": 0}}
    if needed_bytes > sum(room.values()):
        raise RuntimeError(
            "the model takes %.1f GiB, the GPUs have %.1f GiB free beside the %.1f GiB each that scoring itself takes"
            % (needed_bytes / 2**30, sum(room.values()) / 2**30, headroom_bytes / 2**30)
        )
    return {"device_map": "balanced", "max_memory": room}
