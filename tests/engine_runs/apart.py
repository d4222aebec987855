"""An engine and a trainer in processes of their own. Runs in an interpreter that has vLLM and transformers.

apart.py MODEL FOLDER           starts the other two, one after the other
apart.py MODEL FOLDER engine    samples with a temperature, and leaves ids in FOLDER
apart.py MODEL FOLDER trainer   makes its logprobs of them
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

TEMPERATURE, LENGTH = 0.7, 24


def engine(model, folder):
    """Sample four of each of 16 prompts, of one length: a batch needs no padding."""
    with contextlib.suppress(Exception):
        import vllm._custom_ops as operations

        operations._supports_onednn = False
    from vllm import LLM, SamplingParams

    llm = LLM(model=model, dtype="float32", enforce_eager=True, max_model_len=64, skip_tokenizer_init=True, seed=0)
    asked = SamplingParams(
        n=4, temperature=TEMPERATURE, max_tokens=LENGTH, logprobs=0, detokenize=False, ignore_eos=True, seed=1
    )
    prompts = [{"prompt_token_ids": [1, 5, number + 6]} for number in range(16)]
    outputs = llm.generate(prompts, asked, use_tqdm=False)
    rows = [[list(one.prompt_token_ids), list(sample.token_ids)] for one in outputs for sample in one.outputs]
    (folder / "rows.json").write_text(json.dumps(rows))


def token_logprobs(model, ids_BT, keep):
    """Return the logprobs of the last tokens, as the loss uses them."""
    import torch

    logits_BTV = model(ids_BT).logits[:, -keep - 1 : -1] / TEMPERATURE
    return torch.log_softmax(logits_BTV, -1).gather(-1, ids_BT[:, -keep:, None]).squeeze(-1)


def trainer(model, folder):
    """One step of a trainer that has never heard of vLLM."""
    import apart  # as a module: its function is looked for by this name
    import torch
    from transformers import AutoModelForCausalLM

    policy = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32)
    rows = json.loads((folder / "rows.json").read_text())
    ids_BT = torch.tensor([prompt + completion for prompt, completion in rows])
    for part in ids_BT.split(16):
        (-apart.token_logprobs(policy, part, LENGTH).mean()).backward()


def main():
    model, folder = sys.argv[1], Path(sys.argv[2])
    if len(sys.argv) == 3:
        for part in ("engine", "trainer"):
            subprocess.run([sys.executable, __file__, *sys.argv[1:], part], check=True)
    else:
        {"engine": engine, "trainer": trainer}[sys.argv[3]](model, folder)


if __name__ == "__main__":
    main()
