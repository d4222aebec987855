"""GRPO with TRL's own server in one process and its trainer in another, on a CPU. Nothing of rlaudit is in it.

    trl_server.py CHECKPOINT PORT TEMPERATURE

This file is also a plug-in of vLLM, which the server's processes load. What a CPU lacks is replaced, and nothing else:
NCCL by gloo in vLLM's communicator, in both; in the trainer the two functions of torch.cuda that name its device; in
the engine oneDNN's packed weights, which take no new ones.
"""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

STEPS, PROMPTS, SAMPLES, PROMPT_LENGTH, LENGTH = 4, 4, 4, 64, 24


def register():
    """Replace what the CPU build lacks, in each of the server's processes."""
    import vllm._custom_ops

    vllm._custom_ops._supports_onednn = False
    put_gloo_in_place_of_nccl()


def put_gloo_in_place_of_nccl():
    """Let the communicator between trainer and engine use gloo."""
    import torch.distributed as dist
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator

    def begin(self, group, device):
        self.group, self.device = group, device
        self.gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", group.store), group.rank, group.world_size)

    def broadcast(self, tensor, src):
        source = dist.BroadcastOptions()
        source.rootRank = src
        self.gloo.broadcast([tensor], source).wait()

    PyNcclCommunicator.__init__, PyNcclCommunicator.broadcast = begin, broadcast


def reward(completions, **_):
    return [sum(sign.isalpha() for sign in text) / max(1, len(text)) for text in completions]


def train(model, port, temperature):
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    put_gloo_in_place_of_nccl()
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda device: SimpleNamespace(uuid="none")
    arguments = GRPOConfig(
        output_dir="out",
        use_vllm=True,
        vllm_mode="server",
        vllm_server_base_url=f"http://127.0.0.1:{port}",
        vllm_server_timeout=300,
        per_device_train_batch_size=PROMPTS * SAMPLES,
        num_generations=SAMPLES,
        # 512 by default. It is sent with each request, and a smaller context of the engine refuses it.
        max_prompt_length=PROMPT_LENGTH,
        max_completion_length=LENGTH,
        max_steps=STEPS,
        learning_rate=1e-5,
        temperature=temperature,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        seed=0,
    )
    questions = [f"What is {a} + {b}? Answer with a number." for a in range(8) for b in range(8)]
    rows = Dataset.from_list([{"prompt": question} for question in questions])
    GRPOTrainer(model=model, reward_funcs=reward, args=arguments, train_dataset=rows).train()


def main():
    model, port, temperature = sys.argv[1:]
    words = ["-m", "trl.scripts.vllm_serve", "--model", model, "--host", "127.0.0.1", "--port", port]
    words += ["--dtype", "float32", "--enforce_eager", "True", "--max_model_len", str(PROMPT_LENGTH + LENGTH)]
    server = subprocess.Popen([sys.executable, *words], start_new_session=True)
    try:
        train(model, port, float(temperature))
    finally:
        os.killpg(server.pid, signal.SIGINT)  # as Ctrl-C in its terminal
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            raise


if __name__ == "__main__":
    main()
