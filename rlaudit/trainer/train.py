"""A training loop over somebody else's rollouts: policy gradients against the logprobs that an engine returned.

Started as a plain file in the trainer's interpreter (torch, transformers, safetensors; Python 3.9 syntax) by the
process that holds the engine (engines/vllm/scripts/rollouts_for_training.py). They take turns over a pipe, a JSON line
each way; what is printed goes to stderr, which is the cell's log.

    engine > trainer   {the job}, then an answer to each request
    trainer > engine   {"do": "sample", "requests": [{"prompt", "seed"}]}  > {"samples": [...], "version", "seconds"}
                       {"do": "update", "path", "version"}                 > {"seconds"}
                       {"do": "log", "row": {...}}                         no answer
                       {"do": "end", "result": {...}}                      no answer

job
  model, dtype, head_dtype, temperature, divides    of the trainer's forward pass; divides: its logits, by temperature
  objective, clip, correction, correction_limit     files of objectives/ and corrections/ by name; correction or None
  learning_rate, steps, prompts_per_step, samples, seed of the samples, prompt_seed of the prompts' order
  prompt_token_ids, answers, in_text                in_text: whether prompts were texts, so that there is a tokenizer
  reward                                            {"name", "source"}: a file of rewards/ or the user's own
  update_every                                      the engine gets new weights after every so many steps
  weights                                           folder through which they are handed over

Master weights are float32. A forward pass in bfloat16 uses them rounded, as an engine of that dtype holds them.
"""

import importlib.util
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import ModuleType

import torch
from safetensors.torch import save_file
from torch.func import functional_call

GRADIENT_NORM = 1.0
# k3 in nats; float32 on both sides leaves 1e-12 (measured on 2026-11-22, 0.8.5 and 0.18.1 on a CPU).
ROUNDING = 1e-8
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HEAD = "lm_head.weight"


def neighbour(name):
    """A file shipped with this one, as a module; found by path because rlaudit is not installed here."""
    path = Path(__file__).resolve().parent / (name + ".py")
    spec = importlib.util.spec_from_file_location("rlaudit_trainer_" + name.replace("/", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


metrics = neighbour("training_metrics")


class Policy:
    """The model, its float32 weights by name, and how a forward pass rounds them."""

    def __init__(self, job):
        from transformers import AutoModelForCausalLM

        self.model = AutoModelForCausalLM.from_pretrained(job["model"], use_safetensors=True).float().train()
        self.weights = dict(self.model.named_parameters())
        self.dtype, self.head_dtype = DTYPES[job["dtype"]], DTYPES[job["head_dtype"]]
        self.head = (
            HEAD
            if HEAD in self.weights
            else next(
                name for name, weight in self.weights.items() if weight is self.model.get_output_embeddings().weight
            )
        )
        self.divisor = job["temperature"] if job["divides"] else 1.0

    def logits(self, weights, batch):
        """Raw logits (S, T, V) in float32 that predict each sampled token, by these weights."""
        prefix = self.model.base_model_prefix + "."
        body = {
            name[len(prefix) :]: weight.to(self.dtype) for name, weight in weights.items() if name.startswith(prefix)
        }
        found = functional_call(self.model.base_model, body, (batch.token_ids_SL,), {"use_cache": False})
        hidden = found.last_hidden_state
        hidden = torch.gather(hidden, 1, batch.places_ST[:, :, None].expand(-1, -1, hidden.shape[2]))
        head = weights[self.head].to(self.dtype).to(self.head_dtype)
        return (hidden.to(self.head_dtype) @ head.t()).float()


class Batch:
    """Sampled sequences as tensors: token ids (S, L) right-padded, and of their completions the places (S, T), the
    tokens, the rollout's logprobs and the mask."""

    def __init__(self, prompts, samples):
        sequences = [prompt + sample["token_ids"] for prompt, sample in zip(prompts, samples)]
        lengths = [len(sample["token_ids"]) for sample in samples]
        self.token_ids_SL = padded(sequences)
        self.tokens_ST = padded([sample["token_ids"] for sample in samples])
        self.rollout_ST = padded([sample["logprobs"] for sample in samples], torch.float32)
        self.mask_ST = (torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]).float()
        begins = torch.tensor([len(prompt) - 1 for prompt in prompts])
        self.places_ST = (begins[:, None] + torch.arange(max(lengths))[None, :]).clamp(
            max=self.token_ids_SL.shape[1] - 1
        )

    def of_tokens(self, logprobs_STV):
        """The values at the sampled tokens (S, T)."""
        return torch.gather(logprobs_STV, 2, self.tokens_ST[:, :, None])[:, :, 0]


def padded(rows, dtype=torch.int64):
    """Rows of any lengths as one tensor, zeros behind them."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row, dtype=dtype) for row in rows], batch_first=True)


def train(job, ask, tell):
    """Every step of the job. `ask` sends a request to the engine and returns its answer, `tell` sends without one."""
    torch.manual_seed(job["seed"])
    policy = Policy(job)
    optimizer = torch.optim.AdamW(policy.model.parameters(), job["learning_rate"])
    objective = neighbour("objectives/" + job["objective"])
    correction = neighbour("corrections/" + job["correction"]) if job["correction"] else None
    reward = rewarder(job["reward"])
    decode = decoder(job["model"]) if job["in_text"] else lambda token_ids: None
    order = torch.Generator().manual_seed(job["prompt_seed"])
    snapshots, version = {0: snapshot(policy)}, 0
    spent = dict.fromkeys(("generate", "train", "update"), 0.0)
    for step in range(job["steps"]):
        chosen = torch.randint(len(job["prompt_token_ids"]), (job["prompts_per_step"],), generator=order).tolist()
        asked = [
            {"prompt": prompt, "seed": (job["seed"] * 1_000_003 + step * 1_009 + place) % 2**31}
            for place, prompt in enumerate(prompt for prompt in chosen for _ in range(job["samples"]))
        ]
        rollout = ask({"do": "sample", "requests": asked})
        started = time.monotonic()
        prompts = [job["prompt_token_ids"][one["prompt"]] for one in asked]
        rewards_S = torch.tensor(
            [
                reward(sample["token_ids"], decode(sample["token_ids"]), job["answers"][one["prompt"]])
                for one, sample in zip(asked, rollout["samples"])
            ]
        )
        batch = Batch(prompts, rollout["samples"])
        sampled_by = rollout["version"]
        with torch.no_grad():
            then = None if sampled_by == version else policy.logits(snapshots[sampled_by], batch)
        row, now = gradient_step(policy, optimizer, batch, rewards_S, objective, correction, job)
        row.update(backend(policy, now if then is None else then, batch, job["temperature"]))
        if row["rlaudit/backend_k3"] > ROUNDING and sampled_by > 0:
            row.update(older(policy, snapshots, sampled_by, batch))
        row["stats/lag"] = version - sampled_by
        row["rlaudit/cached_tokens"] = sum(sample["cached_tokens"] or 0 for sample in rollout["samples"])
        version += 1
        spent["generate"] += rollout["seconds"]
        spent["train"] += time.monotonic() - started
        tell({"do": "log", "row": {"step": step + 1, **row}})
        snapshots[version] = snapshot(policy)
        if version % job["update_every"] == 0 and version < job["steps"]:
            started = time.monotonic()
            write_weights(policy, job["model"], job["weights"])
            ask({"do": "update", "path": job["weights"], "version": version})
            spent["update"] += time.monotonic() - started
            kept = (0, sampled_by, version)
            snapshots = {one: weights for one, weights in snapshots.items() if one in kept}
    shutil.rmtree(job["weights"], ignore_errors=True)
    return {"seconds": spent, "torch": torch.__version__, "threads": torch.get_num_threads()}


def gradient_step(policy, optimizer, batch, rewards_S, objective, correction, job):
    """One step of the optimizer on a batch; returns what is logged of it, and the logits before it (S, T, V)."""
    mask_ST = batch.mask_ST
    logits_STV = policy.logits(policy.weights, batch)
    logprobs_STV = (logits_STV / policy.divisor).log_softmax(-1)
    new_ST = batch.of_tokens(logprobs_STV)
    advantages_S = metrics.advantages(rewards_S.view(-1, job["samples"])).view(-1)
    if correction is None:
        log_ratio_ST, weights_ST = new_ST - batch.rollout_ST, mask_ST
    else:
        # The old policy is the trainer's own, before this step; the rollout's logprobs only make the weights.
        log_ratio_ST = new_ST - new_ST.detach()
        weights_ST = correction.weights(new_ST.detach() - batch.rollout_ST, mask_ST, job["correction_limit"])
    loss, clipped_ST = objective.loss(log_ratio_ST, advantages_S, mask_ST, job["clip"], weights_ST)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), GRADIENT_NORM)
    optimizer.step()
    with torch.no_grad():
        entropy_ST = -(logprobs_STV.exp() * logprobs_STV).sum(-1)
        row = metrics.step_metrics(new_ST.detach(), batch.rollout_ST, entropy_ST, rewards_S, clipped_ST, mask_ST)
    return {**row, "rl/loss": float(loss), "stats/grad_norm": float(norm)}, logits_STV.detach()


def backend(policy, logits_STV, batch, temperature):
    """The rollout's logprobs against those of the very weights that the log says sampled them: what is left is no lag.

    Under the trainer's own reading, as raw logprobs and at the sampling temperature: which fits tells a meaning from a
    path.
    """
    readings = {"backend": policy.divisor, "raw": 1.0, "processed": temperature}
    found = {}
    with torch.no_grad():
        for name, divisor in readings.items():
            log_ratio_ST = batch.of_tokens((logits_STV / divisor).log_softmax(-1)) - batch.rollout_ST
            found["rlaudit/%s_k3" % name] = metrics.mean(metrics.k3(log_ratio_ST), batch.mask_ST)
            found["rlaudit/%s_log_ratio" % name] = metrics.mean(log_ratio_ST, batch.mask_ST)
    return found


def older(policy, snapshots, sampled_by, batch):
    """The rollout's logprobs against weights that the log does not name: the first, and those of the update before."""
    found = {}
    with torch.no_grad():
        for name, version in (("first", 0), ("previous", max(one for one in snapshots if one < sampled_by))):
            logits_STV = policy.logits(snapshots[version], batch)
            log_ratio_ST = batch.of_tokens((logits_STV / policy.divisor).log_softmax(-1)) - batch.rollout_ST
            found["rlaudit/%s_k3" % name] = metrics.mean(metrics.k3(log_ratio_ST), batch.mask_ST)
    return found


def snapshot(policy):
    """The weights as they are now."""
    return {name: weight.detach().clone() for name, weight in policy.weights.items()}


def write_weights(policy, model, folder):
    """The weights as a checkpoint of the model, in float32; the file is whole whenever it is there."""
    os.makedirs(folder, exist_ok=True)
    config = os.path.join(folder, "config.json")
    if not os.path.exists(config):
        shutil.copyfile(os.path.join(model, "config.json"), config)
    part = os.path.join(folder, "model.part")
    save_file({name: weight.detach().contiguous() for name, weight in policy.weights.items()}, part, {"format": "pt"})
    os.replace(part, os.path.join(folder, "model.safetensors"))


def rewarder(told):
    """The function `reward(token_ids, text, answer)` of a file that came as text."""
    module = ModuleType(told["name"])
    exec(compile(told["source"], told["name"] + ".py", "exec"), vars(module))
    return module.reward


def decoder(model):
    """From token ids to text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    return lambda token_ids: tokenizer.decode(token_ids, skip_special_tokens=True)


def main():
    """Serve the process that started this one until the job is done or its pipe ends."""
    # Libraries print; the pipe is ours alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def hear():
        line = sys.stdin.readline()
        if not line:
            raise SystemExit("the engine's process is gone")
        return json.loads(line)

    def ask(message):
        tell(message)
        return hear()

    tell({"do": "end", "result": train(hear(), ask, tell)})


if __name__ == "__main__":
    main()
