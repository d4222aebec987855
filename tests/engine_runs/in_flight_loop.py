"""An AsyncLLM whose weights are replaced with requests in flight, and the trainer in a process of its own.

in_flight_loop.py MODEL FOLDER CLEARED            starts both; MODEL is overwritten by the trainer
in_flight_loop.py MODEL FOLDER CLEARED engine     samples, and reloads the weights in the middle of each round
in_flight_loop.py MODEL FOLDER CLEARED trainer    makes its logprobs of each round, and new weights

Prompts share two whole blocks, so that the prefix cache is used. Updates before number CLEARED keep what older weights
made; from there on the cache is emptied with each of them.
Runs in an interpreter that has vLLM and transformers. Files in FOLDER are the messages between the two.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

TEMPERATURE, LENGTH, ROUNDS, PROMPTS, BLOCK = 0.7, 48, 5, 8, 32
SHARED = list(range(5, 5 + 2 * BLOCK))
UNTIL = 8  # tokens of the first request, before the weights are replaced


async def engine(model, folder, cleared):
    """Sample in rounds; the weights of the next one come while it goes on."""
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    arguments = AsyncEngineArgs(
        model=str(model), dtype="float32", enforce_eager=True, max_model_len=128, skip_tokenizer_init=True, seed=0,
        enable_prefix_caching=True, block_size=BLOCK, logprobs_mode="processed_logprobs",
    )  # fmt: skip
    llm = AsyncLLM.from_engine_args(arguments)
    begun = asyncio.Event()

    async def one(number, prompt):
        asked = SamplingParams(
            n=4, temperature=TEMPERATURE, max_tokens=LENGTH, logprobs=0, detokenize=False, ignore_eos=True,
            seed=number, output_kind=RequestOutputKind.CUMULATIVE,
        )  # fmt: skip
        samples = {}
        async for output in llm.generate({"prompt_token_ids": prompt}, asked, f"request-{number}"):
            samples.update({sample.index: sample for sample in output.outputs})
            if any(len(sample.token_ids) >= UNTIL for sample in samples.values()):
                begun.set()
        return [row(prompt, sample) for sample in samples.values()]

    rows = []
    for step in range(ROUNDS):
        begun.clear()
        if step:
            arrived(folder / f"weights-{step}")
        flying = [
            asyncio.create_task(one(step * PROMPTS + place, [*SHARED, 100 + place, 200 + step]))
            for place in range(PROMPTS)
        ]
        await begun.wait()
        if step:
            clears = step >= cleared
            if hasattr(llm, "pause_generation"):
                await llm.pause_generation(mode="keep", clear_cache=clears)
            await llm.collective_rpc("reload_weights")
            if clears and not hasattr(llm, "pause_generation"):
                await llm.reset_prefix_cache()
            if hasattr(llm, "pause_generation"):
                await llm.resume_generation()
        of_round = [sample for samples in await asyncio.gather(*flying) for sample in samples]
        rows += of_round
        send(folder / f"rollouts-{step}", of_round)
    (folder / "returned.json").write_text(json.dumps(rows))
    llm.shutdown()


def row(prompt, sample):
    """Return a sample as plain data."""
    ids = list(sample.token_ids)
    logprobs = [held[token].logprob for held, token in zip(sample.logprobs, ids)]  # noqa: B905 - an engine's Python
    return {"prompt": prompt, "ids": ids, "logprobs": logprobs, "finish": sample.finish_reason, "left": False}


def token_logprobs(model, ids_BT, keep):
    """Return the logprobs of the last tokens, as the loss uses them."""
    import torch

    logits_BTV = model(ids_BT).logits[:, -keep - 1 : -1] / TEMPERATURE
    return torch.log_softmax(logits_BTV, -1).gather(-1, ids_BT[:, -keep:, None]).squeeze(-1)


def trainer(model, folder):
    """Score each round, and move every weight a little, as far as a step of a large learning rate."""
    import in_flight_loop  # as a module: its function is looked for by this name
    import torch
    from transformers import AutoModelForCausalLM

    policy = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    for tensor in policy.parameters():
        tensor.data = tensor.data.clone()  # not the memory of the file, which is written over
    torch.manual_seed(0)
    for step in range(ROUNDS):
        rows = arrived(folder / f"rollouts-{step}")
        ids_BT = torch.tensor([row["prompt"] + row["ids"] for row in rows])
        (-in_flight_loop.token_logprobs(policy, ids_BT, LENGTH).mean()).backward()
        with torch.no_grad():
            for tensor in policy.parameters():
                tensor.grad = None
                tensor.add_(torch.randn_like(tensor) * 0.2 * tensor.std(correction=0).clamp_min(0.02))
        policy.save_pretrained(model)
        send(folder / f"weights-{step + 1}", step)


def send(path, message):
    """Leave a message that is whole as soon as it is there."""
    path.with_suffix(".part").write_text(json.dumps(message))
    path.with_suffix(".part").rename(path)


def arrived(path):
    """Return a message, once it is there."""
    while not path.exists():
        time.sleep(0.05)
    return json.loads(path.read_text())


def main():
    model, folder, cleared = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) == 4:
        parts = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], part]) for part in ("engine", "trainer")]
        sys.exit(max(part.wait() for part in parts))
    elif sys.argv[4] == "engine":
        asyncio.run(engine(model, folder, cleared))
    else:
        trainer(model, folder)


if __name__ == "__main__":
    main()
