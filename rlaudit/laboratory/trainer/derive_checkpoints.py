"""Derives checkpoints from a model: a next version of its weights, mixtures of both, and adapters.

A worker script (see engines/cells/worker.py) for the trainer's interpreter: torch, safetensors, no rlaudit. Python 3.9
syntax.

job
  model          folder of a checkpoint, or a hub id with `revision`
  output         folder that gets one folder per entry of `make`
  make           [{"name", ...}], in this order, each with one of
                   "scale": s, "seed": k                  the next version: W + s * rms(W) * N(0, 1) in every tensor;
                                                          the noise depends on seed, new name and tensor name only
                   "new": folder, "old_parts": [name, ...]
                                                          the tensors of that version, these ones from the model
                   "adapter": rank, "scale": s, "seed": k a LoRA of the model's linear layers, in the folder `adapter`,
                                                          of size s * rms(W) in each; and the model with it merged

A version stores every tensor in its dtype. A mixture whose head and embedding differ while the model ties them is
written as an untied model. An adapter and what it is merged into are in float32, so that both compute the same; with a
scale of 0 nothing is merged.
result: model, the folder of the checkpoint
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
WEIGHTS = "model.safetensors"
ADAPTER = "adapter"
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def run(job, channel):
    """Write every checkpoint of the job."""
    channel.phase("load")
    source, output = folder_of(job["model"], job.get("revision")), Path(job["output"])
    output.mkdir(parents=True, exist_ok=True)
    channel.phase("write")
    for place, order in enumerate(job["make"]):
        make = write_adapter if "adapter" in order else write_mixture if "new" in order else write_version
        make(source, output / order["name"], order)
        channel.emit("progress", done=place + 1, total=len(job["make"]))
    return {"model": str(source)}


def folder_of(model, revision):
    """Return the folder that holds the model's safetensors, fetched from the hub if it is not a folder."""
    if os.path.isdir(model):
        return Path(model)
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(model, revision=revision, allow_patterns=["*.json", "*.safetensors", "*.jinja"]))


def read_tensors(folder):
    """Return every tensor of a checkpoint by name; raises ValueError for a folder without safetensors."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError("%s holds no safetensors" % folder)
    tensors = {}
    for file in files:
        with safe_open(file, framework="pt") as stored:
            for name in stored.keys():
                tensors[name] = stored.get_tensor(name)
    return tensors


def write_version(before, target, order):
    """Write the weights one update further: a small step in every tensor."""
    tensors = read_tensors(before)
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            exact = tensor.float()
            step = torch.randn(exact.shape, generator=generator(order["seed"], order["name"], name))
            step *= order["scale"] * rms(exact)
            tensors[name] = step.add_(exact).to(tensor.dtype)
    write(before, target, tensors, tied(before, tensors))


def rms(tensor):
    """Return the size of a tensor's elements."""
    return float(tensor.square().mean().sqrt())


def generator(seed, version, name):
    """Return a generator seeded by the tensor's name, too: the order of tensors in a file does not matter."""
    digest = hashlib.sha256(("%d:%s:%s" % (seed, version, name)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def write_mixture(source, target, order):
    """Write the new tensors but for the named ones, which are old; `lm_head.weight` is a tied model's head, too."""
    folder = Path(order["new"])
    new, old = read_tensors(folder), read_tensors(source)
    was_tied = tied(folder, new)
    if was_tied:
        for tensors in (new, old):
            tensors[HEAD] = tensors[EMBEDDING].clone()
    old_parts = set(order["old_parts"]) & set(new)
    new.update({name: old[name] for name in old_parts})
    still_tied = was_tied and ((HEAD in old_parts) == (EMBEDDING in old_parts))
    if still_tied:
        del new[HEAD]
    write(folder, target, new, still_tied)


def write_adapter(source, target, order):
    """Write a LoRA as PEFT stores it, B * A with A and B normal, and the model with it merged: W + B * A."""
    tensors, rank = read_tensors(source), order["adapter"]
    # Layers that vLLM gives adapters in every model, by the names of Llama, Qwen and Mistral.
    adapted = [name for name in tensors if name.split(".")[-2] in PROJECTIONS and ".experts." not in name]
    if not adapted:
        raise ValueError("no layer of %s is called %s" % (source, ", ".join(PROJECTIONS)))
    adapter = {}
    for name in adapted:
        exact = tensors[name].float()
        random = generator(order["seed"], order["name"], name)
        down = torch.randn((rank, exact.shape[1]), generator=random)
        up = torch.randn((exact.shape[0], rank), generator=random)
        up *= order["scale"] * rms(exact) / rank**0.5
        module = "base_model.model." + name[: -len(".weight")]
        adapter[module + ".lora_A.weight"], adapter[module + ".lora_B.weight"] = down, up
        tensors[name] = exact + up @ down
    shutil.rmtree(target, ignore_errors=True)
    if order["scale"]:
        write(source, target, tensors, tied(source, tensors))
    (target / ADAPTER).mkdir(parents=True)
    save_file(adapter, str(target / ADAPTER / "adapter_model.safetensors"), metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(source),
        "r": rank,
        "lora_alpha": rank,
        "bias": "none",
        "target_modules": sorted({name.split(".")[-2] for name in adapted}),
    }
    (target / ADAPTER / "adapter_config.json").write_text(json.dumps(config, indent=1))


def tied(folder, tensors):
    """Return whether the head of this model is its embedding."""
    config = json.loads((folder / "config.json").read_text())
    return bool(config.get("tie_word_embeddings", True)) and HEAD not in tensors


def write(source, target, tensors, is_tied):
    """Write a folder with these tensors and everything else of `source`."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.suffix in (".json", ".jinja", ".model", ".txt") and "index" not in file.name:
            shutil.copy2(file, target / file.name)
    config = json.loads((source / "config.json").read_text())
    config["tie_word_embeddings"] = is_tied
    (target / "config.json").write_text(json.dumps(config, indent=1))
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, str(target / WEIGHTS), metadata={"format": "pt"})
