"""A stand-in for vLLM: the classes that the generation script touches, over a model in closed form.

Sampling is real (temperature, seeds), and so are the differences between releases that an audit is about: V0 returns
logprobs of what it samples from, V1 those of the untouched logits unless `logprobs_mode` says otherwise.
FAKE_VLLM_ENGINE_CORE gives the engine a process of its own, as V1 has one.
FAKE_VLLM_TELL (a path) gets the arguments and variables of the engine, as they arrived.
FAKE_VLLM_DRIFT (a number) moves the logits of an engine that does not run eagerly, as compiled kernels do.
"""

import dataclasses
import json
import os
import random
from itertools import accumulate, pairwise, takewhile
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import engine_core
import known_model

from vllm import _ailments
from vllm._config import config_of
from vllm._release import IS_V1
from vllm._worker import worker_of
from vllm.engine.arg_utils import EngineArgs

if IS_V1:
    from vllm.v1.engine.llm_engine import LLMEngine
else:
    from vllm.engine.llm_engine import LLMEngine


@dataclasses.dataclass
class SamplingParams:
    """What is asked for with one request."""

    seed: int
    detokenize: bool
    max_tokens: int
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    temperature: float = 1.0
    ignore_eos: bool = False
    presence_penalty: float = 0.0  # taken, and not applied


class LLM:
    """An engine that is loaded."""

    def __init__(self, model: str, **engine_args: Any):
        # As vLLM does, whatever is among them.
        print(f"INFO 11-21 03:38:11 [utils.py:1] non-default args: {engine_args}")
        if told := os.environ.get("FAKE_VLLM_TELL"):
            arrived = {"engine_args": engine_args, "variables": dict(os.environ)}
            Path(told).write_text(json.dumps(arrived, default=str))
        args = EngineArgs(model=model, **engine_args)
        args.create_engine_config()
        if not Path(model).is_dir():
            raise OSError(f"{model} is not a local folder and is not a valid model identifier")
        _ailments.suffer_at_load()
        self._ask = engine_core.start() if os.environ.get("FAKE_VLLM_ENGINE_CORE") else lambda: None
        self._args = args
        self._drift = 0.0 if args.enforce_eager else float(os.environ.get("FAKE_VLLM_DRIFT", "0"))
        self._seen: list[tuple[int, ...]] = []
        self.llm_engine = LLMEngine(config_of(args))
        self._worker = worker_of(args, self.llm_engine.vllm_config)
        self._waiting: list[tuple[str, Any, SamplingParams]] = []
        self.llm_engine.add_request = lambda *request: self._waiting.append(request)
        self.llm_engine.has_unfinished_requests = lambda: bool(self._waiting)
        self.llm_engine.step = self._all_that_wait
        print("INFO 11-21 03:38:11 [llm.py:1] this line belongs to the log of the cell")

    def generate(self, prompts, sampling_params, use_tqdm):
        """One output per prompt, in order."""
        _ailments.wait_for_its_time()
        _ailments.suffer_at_generation()
        self._ask()
        runner = self._worker.model_runner
        if IS_V1:
            runner.cudagraph_dispatcher.dispatch()
            runner.sampler.sample()
        else:
            runner.sampler.forward()
        return [
            self._complete(prompt["prompt_token_ids"], wanted)
            for prompt, wanted in zip(prompts, sampling_params, strict=True)
        ]

    def _all_that_wait(self):
        """A step: it completes every request that has come."""
        names, prompts, wanted = zip(*self._waiting, strict=True)
        self._waiting.clear()
        outputs = self.generate(prompts, wanted, use_tqdm=False)
        for name, output in zip(names, outputs, strict=True):
            output.request_id, output.finished = name, True
        return outputs

    def collective_rpc(self, method):
        """The answer of the one worker."""
        return [getattr(self._worker, method)()]

    def reset_prefix_cache(self):
        """Forget every prompt."""
        self._seen.clear()

    def _complete(self, prompt, wanted):
        source = random.Random(wanted.seed)
        last, ids, steps = prompt[-1], [], []
        for position in range(wanted.max_tokens):
            logits = self._logits(last, position)
            processed = known_model.log_softmax([logit / wanted.temperature for logit in logits])
            last = self._drawn(processed, source.random())
            mode = getattr(self._args, "logprobs_mode", "raw_logprobs")
            as_sampled = not IS_V1 or mode == "processed_logprobs"
            reported = processed if as_sampled else known_model.log_softmax(logits)
            ids.append(last)
            steps.append(self._step(reported, last, wanted.logprobs))
        cached = self._cached(prompt)
        completion = SimpleNamespace(token_ids=ids, logprobs=steps, finish_reason="length")
        prompt_logprobs = self._of_prompt(prompt, wanted) if wanted.prompt_logprobs else None
        return SimpleNamespace(outputs=[completion], num_cached_tokens=cached, prompt_logprobs=prompt_logprobs)

    def _of_prompt(self, prompt, wanted):
        """V1 leaves the temperature out."""
        heat = 1.0 if IS_V1 else wanted.temperature
        steps = [
            self._step(known_model.log_softmax([logit / heat for logit in self._logits(last, 0)]), token, 1)
            for last, token in pairwise(prompt)
        ]
        return [None, *steps]

    def _logits(self, last, position):
        float32_head = (self._args.hf_overrides or {}).get("head_dtype") == "float32"
        logits = known_model.logits_after(last, "float32" if float32_head else self._args.dtype)
        if not self._drift:
            return logits
        noise = random.Random(1000 * position + last)
        return [logit + noise.gauss(0.0, self._drift) for logit in logits]

    @staticmethod
    def _drawn(logprobs, level):
        for token, reached in enumerate(accumulate(exp(logprob) for logprob in logprobs)):
            if level < reached:
                return token
        return len(logprobs) - 1

    @staticmethod
    def _step(reported, sampled, top):
        best = sorted(range(len(reported)), key=lambda token: -reported[token])[:top]
        return {
            token: SimpleNamespace(logprob=_ailments.altered(known_model.as_float32(reported[token])))
            for token in dict.fromkeys([sampled, *best])
        }

    def _cached(self, prompt):
        """Whole blocks of an earlier prompt that this one begins with."""
        size, whole = self._args.block_size, 0
        for earlier in self._seen if self._args.enable_prefix_caching else []:
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(earlier, prompt, strict=False)))
            whole = max(whole, shared // size * size)
        self._seen.append(tuple(prompt))
        return whole
