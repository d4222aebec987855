"""What the recorder costs: microseconds a step of its hooks, bytes a token, memory; and on a real engine, seconds.

    python -m evidence.benchmarks.recorder_cost [--rounds 5] [--engine COMMAND --model FOLDER]

Without an engine: 256 sequences (32 prompts of 512 tokens, 8 samples each) of 256 tokens go through a stand-in of
OutputProcessor, without the recorder's hooks and with them, in turn, in one process. A step is
a call of process_outputs with 256 outputs of one token and its logprob. `hooks` is the time inside the call, `all` the
time of the processor that the whole round took more, requests and the thread that writes included; both a step. `share`
is `all` of a decode step of 8 ms, which is a fast one for 256 sequences.
With an engine: COMMAND starts an interpreter that holds a vLLM; 256 sequences of 32 tokens are sampled without hooks,
at 1/16 and at all prompts, in turn.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TESTS = Path(__file__).parents[3] / "tests"
FAKES = TESTS / "recorder" / "fakes"
PROMPTS, SAMPLES, PROMPT_LENGTH, TOKENS = 32, 8, 512, 256
STEP_SECONDS = 8e-3
SHARES = {"1/16": 16, "all": 1}


class OutputProcessor:
    """Does what the hooks look at, and nothing that takes time of its own."""

    def __init__(self) -> None:
        self.request_states: dict[str, Any] = {}

    def add_request(self, request: Any, prompt: Any, parent_req: Any, request_index: int) -> None:
        self.request_states[request.request_id] = request

    def process_outputs(self, engine_core_outputs: Any, engine_core_timestamp: Any, iteration_stats: Any) -> None:
        if engine_core_outputs[0].finish_reason is not None:
            self.request_states.clear()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine")
    parser.add_argument("--model")
    parser.add_argument("--share", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.out and options.share:
        if os.environ["FAKE_VLLM"] == "V0":
            in_v0(SHARES[options.share], options.rounds)
        else:
            in_the_stand_in(Path(options.out), SHARES[options.share], options.rounds)
    elif options.out:
        in_the_engine(options.model, options.rounds)
    elif options.engine:
        in_an_engine(options.engine.split(), options.model, options.rounds)
    else:
        for engine, (share, prompts) in product(("V1", "V0"), SHARES.items()):
            with tempfile.TemporaryDirectory() as folder:
                switched = switched_on(Path(folder), prompts)
                switched["PYTHONPATH"] += os.pathsep + str(FAKES)
                command = [sys.executable, __file__, "--share", share, "--out", folder, "--rounds", str(options.rounds)]
                subprocess.run(command, env={**os.environ, **switched, "FAKE_VLLM": engine}, check=True)


def switched_on(folder: Path, prompts: int) -> dict[str, str]:
    """Write the recorder into a folder and return what switches it on; an engine's interpreter has no rlaudit."""
    sys.path.insert(0, str(TESTS))
    import recorder_folder

    recorder = recorder_folder.write_recorder(folder / "recorder", prompts=prompts)
    return recorder_folder.variables(recorder, folder / "out")


def in_the_stand_in(out: Path, prompts: int, rounds: int) -> None:
    """Print what the hooks cost at this share of prompts."""
    import rlaudit_recorder
    from vllm.engine.arg_utils import EngineArgs

    EngineArgs().create_engine_config()
    for name in ("add_request", "process_outputs"):
        rlaudit_recorder.wrap(OutputProcessor, name, name, *rlaudit_recorder._HANDLERS[name])
    # As late in a run, when neither is left.
    rlaudit_recorder.KEPT_GROUPS = rlaudit_recorder.KEPT_BYTES = 0
    hooked = OutputProcessor.add_request, OutputProcessor.process_outputs
    plain = [method.__wrapped__ for method in hooked]
    inside: dict[str, list[float]] = {"plain": [], "hooks": []}
    whole: dict[str, list[float]] = {"plain": [], "hooks": []}
    process = rlaudit_recorder._process
    rollout(*plain, 0)
    rollout(*hooked, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, way in enumerate(list(whole) * rounds):
        began = time.process_time()
        steps = rollout(*(plain if way == "plain" else hooked), number + 2)
        while process.queued > process.taken:
            time.sleep(0.01)
        whole[way].append((time.process_time() - began) / TOKENS)
        inside[way].append(statistics.median(steps))
    hooks = min(inside["hooks"]) - min(inside["plain"])
    more = min(whole["hooks"]) - min(whole["plain"])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    sys.path.insert(0, str(TESTS))
    import recorder_folder

    written = recorder_folder.read(out / "out")
    size = sum(file.stat().st_size for file in (out / "out").glob("*.jsonl"))
    kept = sum(len(sequence.ids) for sequence in written.sequences())
    print(
        f"prompts 1/{prompts}: hooks {hooks * 1e6:.0f} us, all {more * 1e6:.0f} us a step of 256 sequences, "
        f"share {more / STEP_SECONDS:.2%}, "
        f"runs {[round((one - two) * 1e6) for one, two in zip(whole['hooks'], whole['plain'], strict=True)]}"
    )
    print(
        f"  {size / max(kept, 1):.1f} bytes a kept token, {size / ((2 * rounds + 1) * PROMPTS * SAMPLES * TOKENS):.2f} "
        f"bytes a token; memory +{memory / 1024:.1f} MiB in {rounds} rounds of each"
    )


def in_v0(prompts: int, rounds: int) -> None:
    """Print what the hook of V0 costs: it is called for each sequence and step."""
    import rlaudit_recorder
    from vllm.engine.arg_utils import EngineArgs
    from vllm.engine.llm_engine import Sequence, SequenceGroup
    from vllm.sampling_params import SamplingParams

    class Output:
        """Makes nothing of a group."""

        @classmethod
        def from_seq_group(cls, seq_group: Any) -> None:
            return None

    def steps(number: int) -> float:
        ids, asked = (
            [[number, *range(prompt, prompt + PROMPT_LENGTH - 1)] for prompt in range(PROMPTS)],
            SamplingParams(),
        )
        groups = [
            SequenceGroup(f"{number}-{prompt}-{sample}", [Sequence(ids[prompt], [(7, -0.25)], sample)], asked)
            for prompt in range(PROMPTS)
            for sample in range(SAMPLES)
        ]
        taken, sampled = [], {7: SimpleNamespace(logprob=-0.25), 9: SimpleNamespace(logprob=-1.5)}
        for _ in range(TOKENS):
            for group in groups:
                group.seqs[0].ids.append(7)
                group.seqs[0].output_logprobs.append(sampled)
            began = time.thread_time()
            for group in groups:
                Output.from_seq_group(group)
            taken.append(time.thread_time() - began)
        return statistics.median(taken)

    EngineArgs().create_engine_config()
    rlaudit_recorder.KEPT_GROUPS = rlaudit_recorder.KEPT_BYTES = 0
    plain = min(steps(number) for number in range(rounds))
    rlaudit_recorder._HANDLERS["from_seq_group"](Output, "from_seq_group", "from_seq_group")
    steps(rounds)
    more = (min(steps(rounds + 1 + number) for number in range(rounds)) - plain) * 1e6
    print(f"V0, prompts 1/{prompts}: hooks {more:.0f} us a step of 256 sequences")


def rollout(add_request: Any, process_outputs: Any, number: int) -> list[float]:
    """Run 256 sequences to their end; return the seconds of each step."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.core import LogprobsLists

    processor, parameters = OutputProcessor(), SamplingParams(n=SAMPLES, max_tokens=TOKENS, logprobs=0)
    outputs = []
    for prompt in range(PROMPTS):
        ids = [number, *range(prompt, prompt + PROMPT_LENGTH - 1)]
        for sample in range(SAMPLES):
            name = f"{number}-{prompt}-{sample}"
            request = SimpleNamespace(
                request_id=name, prompt_token_ids=ids, sampling_params=parameters, lora_request=None, cache_salt=None
            )
            add_request(processor, request, None, None, sample)
            output = SimpleNamespace(request_id=name, new_token_ids=[7], finish_reason=None, stop_reason=None)
            output.new_logprobs = LogprobsLists([[7, 9]], [[-0.25, -1.5]], [])
            output.num_cached_tokens = 0
            outputs.append(output)
    clocks = [time.thread_time()]
    for step in range(TOKENS):
        if step == TOKENS - 1:
            for output in outputs:
                output.finish_reason = "length"
        process_outputs(processor, outputs, engine_core_timestamp=clocks[-1], iteration_stats=None)
        clocks.append(time.thread_time())
    return [after - before for before, after in pairwise(clocks)]


def in_an_engine(command: Sequence[str], model: str, rounds: int) -> None:
    """Start a real engine with the recorder, in one process, so that what the hooks take is taken from its steps."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {**switched_on(Path(folder), 16), "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
        words = [*command, __file__, "--model", model, "--out", folder, "--rounds", str(rounds)]
        subprocess.run(words, env={**os.environ, **variables}, check=True)


def in_the_engine(model: str, rounds: int) -> None:
    """Print the milliseconds a step without hooks, at 1/16 and at all prompts, in turn within one engine."""
    import rlaudit_recorder
    from vllm import LLM, SamplingParams
    from vllm.v1.engine.output_processor import OutputProcessor

    llm = LLM(model=model, dtype="float32", enforce_eager=True, max_model_len=256, max_num_seqs=256, seed=0)
    rlaudit_recorder._process.few = False
    parameters = SamplingParams(n=SAMPLES, max_tokens=32, logprobs=0, ignore_eos=True, temperature=1.0, seed=1)
    hooked = {name: getattr(OutputProcessor, name) for name in ("add_request", "process_outputs")}
    plain = {name: method.__wrapped__ for name, method in hooked.items()}
    wall: dict[str, list[float]] = {share: [] for share in ("without", *SHARES)}
    used: dict[str, list[float]] = {share: [] for share in wall}
    for number in range(rounds + 1):
        for share, taken in wall.items():
            for name, method in (plain if share == "without" else hooked).items():
                setattr(OutputProcessor, name, method)
            rlaudit_recorder._settings["prompts"] = SHARES.get(share, 1)
            prompts = [{"prompt_token_ids": [5 + number, *range(5 + prompt, 20 + prompt)]} for prompt in range(PROMPTS)]
            began, used_before = time.perf_counter(), time.process_time()
            llm.generate(prompts, parameters, use_tqdm=False)
            if number > 0:  # the first one warms up
                taken.append((time.perf_counter() - began) / 32 * 1e3)
                used[share].append((time.process_time() - used_before) / 32 * 1e3)
    for clock, taken in (("wall", wall), ("processor", used)):
        for share, found in taken.items():
            more = [one - without for one, without in zip(found, taken["without"])]  # noqa: B905 - an engine's Python
            print(
                f"{clock}, {share}: median {statistics.median(found):.2f} ms a step, least {min(found):.2f}; "
                f"more than without, in pairs: median {statistics.median(more):+.3f} ms of {len(found)}"
            )


if __name__ == "__main__":
    main()
