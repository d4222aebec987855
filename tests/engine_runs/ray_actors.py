"""Replicas of an engine and a trainer, each a Ray actor. Runs in an engine's interpreter that has ray.

    ray_actors.py MODEL FOLDER REPLICAS STEPS [pass-on]

In each step every replica samples prompts of its own, and the trainer makes its logprobs of all of them. Its new
weights then go to one replica after the other, while each of them samples; the last ones reach the first replica alone.
RAY_ADDRESS names a cluster that runs already; without it the program starts one. pass-on: its workers get the
program's own variables, as far as the recorder needs them.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import ray

TEMPERATURE, LENGTH, PROMPTS, SAMPLES, BLOCK = 0.7, 16, 8, 4, 32
COMMON = [1, *range(5, 5 + 2 * BLOCK)]  # two whole blocks that the prefix cache keeps

if "vllm" in sys.modules:  # in a worker, before its model is loaded: new weights would not reach packed copies
    with contextlib.suppress(ImportError):
        import vllm._custom_ops

        vllm._custom_ops._supports_onednn = False


class Loader:
    """What vLLM's worker is given: it loads a file."""

    def load_file(self, path):
        from safetensors.torch import load_file

        return len(self.model_runner.model.load_weights(load_file(path).items()))


@ray.remote(num_cpus=0)
class Replica:
    """An engine with processes of its own."""

    def __init__(self, model, number):
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        arguments = AsyncEngineArgs(
            model=model, dtype="float32", enforce_eager=True, max_model_len=128, skip_tokenizer_init=True, seed=0,
            enable_prefix_caching=True, block_size=BLOCK, worker_extension_cls="ray_actors.Loader",
            logprobs_mode="processed_logprobs",
        )  # fmt: skip
        self.engine, self.number, self.asked = AsyncLLM.from_engine_args(arguments), number, 0

    async def generate(self, length=LENGTH):
        """Return prompts with their completions."""
        prompts = [[*COMMON, 100 * self.number + place + 100] for place in range(PROMPTS)]
        outputs = await asyncio.gather(*[self._sample(prompt, length) for prompt in prompts])
        return [(prompt, list(one.token_ids)) for prompt, output in zip(prompts, outputs) for one in output.outputs]  # noqa: B905 - an engine's Python

    async def _sample(self, prompt, length):
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        self.asked += 1
        asked = SamplingParams(
            n=SAMPLES, temperature=TEMPERATURE, max_tokens=length, logprobs=0, detokenize=False, ignore_eos=True,
            seed=self.asked, output_kind=RequestOutputKind.FINAL_ONLY,
        )  # fmt: skip
        outputs = [one async for one in self.engine.generate({"prompt_token_ids": prompt}, asked, str(self.asked))]
        return outputs[-1]

    async def update(self, path):
        """Load weights in the middle of requests, and keep the blocks that the old ones made."""
        flying = asyncio.ensure_future(self.generate(2 * LENGTH))
        await asyncio.sleep(0.5)
        pauses = hasattr(self.engine, "pause_generation")
        if pauses:
            await self.engine.pause_generation(mode="keep", clear_cache=False)
        loaded = await self.engine.collective_rpc("load_file", args=(path,))
        if pauses:
            await self.engine.resume_generation()
        await flying
        return loaded

    def stop(self):
        """End the engine in order."""
        self.engine.shutdown()


@ray.remote(num_cpus=0)
class Trainer:
    """A trainer that has never heard of vLLM."""

    def __init__(self, model):
        import torch
        from transformers import AutoModelForCausalLM

        self.policy = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32)
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.03)

    def train(self, rows, path):
        """Take a step on what was sampled, and write the new weights."""
        import ray_actors  # as a module: its function is looked for by this name
        import torch
        from safetensors.torch import save_file

        ids_BT = torch.tensor([prompt + completion for prompt, completion in rows])
        for part in ids_BT.split(16):
            (-ray_actors.token_logprobs(self.policy, part, LENGTH).mean()).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        save_file({name: tensor.clone() for name, tensor in self.policy.state_dict().items()}, path)


def token_logprobs(model, ids_BT, keep):
    """Return the logprobs of the last tokens, as the loss uses them."""
    import torch

    logits_BTV = model(ids_BT).logits[:, -keep - 1 : -1] / TEMPERATURE
    return torch.log_softmax(logits_BTV, -1).gather(-1, ids_BT[:, -keep:, None]).squeeze(-1)


def main():
    model, folder, count, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    passed_on = ("PYTHONPATH", "RLAUDIT_RECORD") if sys.argv[5:] == ["pass-on"] else ()
    # What a killed run left of a cluster would be waited for.
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address, runtime_env={"env_vars": {name: os.environ[name] for name in passed_on}})
    trainer = Trainer.remote(model)
    replicas = [Replica.remote(model, number) for number in range(count)]
    for step in range(steps):
        rows = [row for replica in replicas for row in ray.get(replica.generate.remote())]
        path = str(folder / f"step-{step}.safetensors")
        ray.get(trainer.train.remote(rows, path))
        last = step == steps - 1
        for replica in replicas[: 1 if last else None]:
            print("loaded", ray.get(replica.update.remote(path)), flush=True)
    for replica in replicas:
        ray.get(replica.generate.remote())
        ray.get(replica.stop.remote())
    ray.shutdown()


if __name__ == "__main__":
    main()
