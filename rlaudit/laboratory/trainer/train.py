"""A training loop over an engine's rollouts: policy gradients against the logprobs that the engine returned.

Started as a plain file in the trainer's interpreter (torch, transformers, safetensors; Python 3.9 syntax) by the
process that holds the engine (engines/inside/scripts/rollouts_for_training.py). They talk over a pipe, a JSON line at a
time; what is printed goes to stderr, which is the cell's log. Weights are handed over by handover.py.

    engine > trainer   {the job}, then an answer to each request
    trainer > engine   {"do": "begin", "batch", "requests": [{"prompt", "seed"}]}   no answer
                       {"do": "collect", "batch"}         > {"samples": [{"token_ids", "logprobs", "versions"}],
                                                           "seconds"}
                       {"do": "update", "source", "version"}        > {"seconds", "in_flight": requests that it met}
                       {"do": "join", "place", "port"}              > {"backend", "size"}
                       {"do": "log", "row": {...}}, {"do": "end", "result": {...}}    no answer

job
  model, dtype, head_dtype, temperature, divides    of the trainer's forward pass; divides: its logits, by temperature
  objective, clip, correction, correction_limit     files of objectives/ and corrections/ by name; correction or None
  learning_rate, steps, prompts_per_step, samples, seed of the samples, prompt_seed of the prompts' order
  prompt_token_ids, answers, in_text                in_text: whether prompts were texts, so that there is a tokenizer
  reward                                            {"name", "source"}: a file of rewards/ or the user's own
  update_every                                      the engine gets new weights after every so many steps
  lag                                               so many batches are begun before theirs is trained on: 0 is turns
  transport, weights, skip, extension, workers, seconds        see handover.py

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
from torch.func import functional_call

GRADIENT_NORM = 1.0
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def neighbour(name):
    """Load a file shipped with this one as a module, by its path: rlaudit is not installed here."""
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
        # Its own, or the embeddings that it is tied to.
        head = self.model.get_output_embeddings().weight
        self.head = next(name for name, weight in self.weights.items() if weight is head)
        self.divisor = job["temperature"] if job["divides"] else 1.0

    def logits(self, batch):
        """Return raw logits (S, T, V) in float32 that predict each sampled token."""
        prefix = self.model.base_model_prefix + "."
        body = {
            name[len(prefix) :]: weight.to(self.dtype)
            for name, weight in self.weights.items()
            if name.startswith(prefix)
        }
        output = functional_call(self.model.base_model, body, (batch.token_ids_SL,), {"use_cache": False})
        hidden = output.last_hidden_state
        hidden = torch.gather(hidden, 1, batch.places_ST[:, :, None].expand(-1, -1, hidden.shape[2]))
        head = self.weights[self.head].to(self.dtype).to(self.head_dtype)
        return (hidden.to(self.head_dtype) @ head.t()).float()


class Batch:
    """Sampled sequences as tensors: right-padded token ids (S, L), and for their completions (S, T) the places, tokens,
    rollout logprobs, versions of the weights that sampled them, and mask."""

    def __init__(self, prompts, samples):
        sequences = [prompt + sample["token_ids"] for prompt, sample in zip(prompts, samples)]
        lengths = [len(sample["token_ids"]) for sample in samples]
        self.token_ids_SL = padded(sequences)
        self.tokens_ST = padded([sample["token_ids"] for sample in samples])
        self.rollout_ST = padded([sample["logprobs"] for sample in samples], torch.float32)
        self.versions_ST = padded([sample["versions"] for sample in samples])
        self.mask_ST = (torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]).float()
        begins = torch.tensor([len(prompt) - 1 for prompt in prompts])
        self.places_ST = (begins[:, None] + torch.arange(max(lengths))[None, :]).clamp(
            max=self.token_ids_SL.shape[1] - 1
        )

    def of_tokens(self, logprobs_STV):
        """Return the values at the sampled tokens (S, T)."""
        return torch.gather(logprobs_STV, 2, self.tokens_ST[:, :, None])[:, :, 0]


def padded(rows, dtype=torch.int64):
    """Return rows of any lengths as one tensor, right-padded with zeros."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row, dtype=dtype) for row in rows], batch_first=True)


def train(job, pipe):
    """Take every step of the job, and return where its time went."""
    torch.manual_seed(job["seed"])
    policy = Policy(job)
    hand_over = neighbour("handover").handover(job, pipe)
    optimizer = torch.optim.AdamW(policy.model.parameters(), job["learning_rate"])
    objective = neighbour("objectives/" + job["objective"])
    correction = neighbour("corrections/" + job["correction"]) if job["correction"] else None
    reward = rewarder(job["reward"])
    decode = decoder(job["model"]) if job["in_text"] else lambda token_ids: None
    order = torch.Generator().manual_seed(job["prompt_seed"])
    version, begun, in_flight = 0, [], 0
    spent = dict.fromkeys(("generate", "train", "update"), 0.0)

    def begin_until(count):
        while len(begun) < min(count, job["steps"]):
            begun.append(batch_requests(job, len(begun), order))
            pipe.tell({"do": "begin", "batch": len(begun) - 1, "requests": begun[-1]})

    loop_began = time.monotonic()
    for step in range(job["steps"]):
        started = time.monotonic()
        begin_until(step + max(1, job["lag"]))
        rollout = pipe.ask({"do": "collect", "batch": step})
        # If the batch was begun steps ago, only the wait for it is the engine's share of this step.
        spent["generate"] += min(rollout["seconds"], time.monotonic() - started)
        started = time.monotonic()
        # Sampled during this step; the update after it meets the requests that are still in flight.
        begin_until(step + 1 + job["lag"])
        requests = begun[step]
        prompts = [job["prompt_token_ids"][request["prompt"]] for request in requests]
        rewards_S = torch.tensor(
            [
                reward(sample["token_ids"], decode(sample["token_ids"]), job["answers"][request["prompt"]])
                for request, sample in zip(requests, rollout["samples"])
            ]
        )
        batch = Batch(prompts, rollout["samples"])
        row = gradient_step(policy, optimizer, batch, rewards_S, objective, correction, job)
        row["stats/lag"] = metrics.mean_of_tokens(version - batch.versions_ST, batch.mask_ST)
        row["rlaudit/in_flight"] = in_flight
        version += 1
        spent["train"] += time.monotonic() - started
        pipe.tell({"do": "log", "row": {"step": step + 1, **row}})
        if version % job["update_every"] == 0 and version < job["steps"]:
            started = time.monotonic()
            in_flight = hand_over(policy.weights, version)["in_flight"]
            spent["update"] += time.monotonic() - started
    loop_seconds = time.monotonic() - loop_began
    shutil.rmtree(job["weights"], ignore_errors=True)
    versions = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    return {"seconds": spent, "loop_seconds": loop_seconds, **versions}


def batch_requests(job, number, order):
    """Return the requests of a batch: `samples` of every prompt, each with its own seed."""
    chosen = torch.randint(len(job["prompt_token_ids"]), (job["prompts_per_step"],), generator=order).tolist()
    return [
        {"prompt": prompt, "seed": (job["seed"] * 1_000_003 + number * 1_009 + place) % 2**31}
        for place, prompt in enumerate(prompt for prompt in chosen for _ in range(job["samples"]))
    ]


def gradient_step(policy, optimizer, batch, rewards_S, objective, correction, job):
    """Take one step of the optimizer on a batch, and return its log row."""
    mask_ST = batch.mask_ST
    logits_STV = policy.logits(batch)
    logprobs_STV = (logits_STV / policy.divisor).log_softmax(-1)
    new_ST = batch.of_tokens(logprobs_STV)
    advantages_S = metrics.advantages(rewards_S.view(-1, job["samples"])).view(-1)
    if correction is None:
        log_ratio_ST, weights_ST = new_ST - batch.rollout_ST, mask_ST
    else:
        # The old policy is the trainer's before this step; the rollout's logprobs only decide the weights.
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
    return {**row, "rl/loss": float(loss), "stats/grad_norm": float(norm)}


def rewarder(file):
    """Return the function `reward(token_ids, text, answer)` of a file, {"name", "source"}."""
    module = ModuleType(file["name"])
    exec(compile(file["source"], file["name"] + ".py", "exec"), vars(module))
    return module.reward


def decoder(model):
    """Return a function from token ids to text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    return lambda token_ids: tokenizer.decode(token_ids, skip_special_tokens=True)


class Pipe:
    """The process that started this one, a JSON line at a time."""

    def __init__(self):
        # Libraries print; the pipe is ours alone.
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def tell(self, message):
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()

    def hear(self):
        line = sys.stdin.readline()
        if not line:
            raise SystemExit("the engine's process is gone")
        return json.loads(line)

    def ask(self, message):
        self.tell(message)
        return self.hear()


def main():
    """Serve the process that started this one until the job is done or its pipe ends."""
    pipe = Pipe()
    pipe.tell({"do": "end", "result": train(pipe.hear(), pipe)})


if __name__ == "__main__":
    main()
