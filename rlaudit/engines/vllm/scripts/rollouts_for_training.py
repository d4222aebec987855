"""Samples for a training loop and takes its weights, turn by turn. A worker script (see engines/cells/worker.py).

The trainer is a process of its own, in its own interpreter (rlaudit/trainer/train.py, which documents the pipe between
the two); the engine is steered as in an audit of weight updates (steerable_engine.py): V1 as AsyncLLM, V0 stepped.

job
  model, revision, trust_remote_code, engine_args, engine (see generate.py)
  path            how weights are loaded: reload_weights, reload_from_iterator or load_weights
  mode            how the engine is paused meanwhile: none, keep, wait or abort; clear_cache: of the pause
  reset_cache     whether reset_prefix_cache is called after each load
  skip            parts of tensor names that no update loads: planted
  fp32_head       logits in float32 (see generate.py)
  sampling        keyword arguments of SamplingParams, but for seed and logprobs
  trainer         {"command", "script", "variables", "job"}: the training process; script: by
                  its place in rlaudit's package

metrics.jsonl     one line per step, written as it ends
result            resolved, kind, fp32_head, generated_tokens, generate_seconds, update_seconds, updates (how many),
                  loop_seconds (of all steps), trainer (what it said of itself)
"""

import asyncio
import importlib.util
import json
import os
import subprocess
import time

EXTENSION = "rlaudit_training.TrainedEngine"
# rlaudit's own folder, wherever it lies on this machine.
PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def neighbour(name):
    """A file shipped beside this one, as a module; found by path because rlaudit is not installed here."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("rlaudit_engine_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(job, channel):
    """Start the engine, then the trainer, and answer it until it is done."""
    channel.phase("launch")
    # The event loop first: AsyncLLM starts its tasks on the loop that runs when it is made.
    return asyncio.run(play(job, channel))


async def play(job, channel):
    """The whole training."""
    channel.phase("load")
    generate = neighbour("generate")
    neighbour("loaded_engine").offer_extensions()
    steerable = neighbour("steerable_engine")
    head = generate.plan_fp32_head(job, job["engine_args"])
    job["extension"] = EXTENSION
    with generate.refusal_of_engine(job, channel):
        engine = steerable.start(job, channel)
    trainer = None
    try:
        await engine.prepare()
        resolved = generate.resolve(neighbour("update_weights").Described(engine.config, engine.kind), {})
        channel.emit("loaded", resolved=resolved)
        generate.check_engine(job, resolved["engine"], channel)
        if not engine.can_pause(job["mode"], job["clear_cache"]):
            raise channel.Unsupported(
                "this vLLM cannot pause with mode=%s, clear_cache=%s" % (job["mode"], job["clear_cache"])
            )
        if head == "extension":
            refusals = [reason for reason in await engine.call("rlaudit_install_fp32_head") if reason]
            if refusals:
                raise channel.Unsupported("fp32 head: " + refusals[0])
        # No output is looked at before its request has ended.
        engine.output_kind = type(engine.output_kind).FINAL_ONLY
        channel.phase("train")
        trainer = Trainer(job["trainer"], channel.path("weights"))
        session = Session(job, engine, trainer, channel)
        started = time.monotonic()
        told = await session.serve()
        loop_seconds = time.monotonic() - started
    finally:
        engine.shutdown()
        if trainer is not None:
            trainer.end()
    return {
        "resolved": resolved,
        "kind": engine.kind,
        "fp32_head": head,
        "generated_tokens": session.tokens,
        "generate_seconds": session.seconds["sample"],
        "update_seconds": session.seconds["update"],
        "updates": session.updates,
        "loop_seconds": loop_seconds,
        "trainer": told,
    }


class Trainer:
    """The training process, and the pipe to it."""

    def __init__(self, told, weights):
        # What the engine's interpreter preloads or reads is none of the trainer's.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "LD_PRELOAD"))}
        self.process = subprocess.Popen(
            [*told["command"], "-s", os.path.join(PACKAGE, told["script"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**kept, **told["variables"]},
            encoding="utf-8",
        )
        self.say(dict(told["job"], weights=weights))

    def say(self, message):
        """Send a line."""
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self):
        """The next line; raises when the trainer is gone."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the trainer ended with code %s; see above" % self.process.wait())
        return json.loads(line)

    def end(self):
        """End it, however far it is."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Session:
    """One engine and one trainer, and what they have done."""

    def __init__(self, job, engine, trainer, channel):
        self.job, self.engine, self.trainer, self.channel = job, engine, trainer, channel
        self.version, self.tokens, self.updates, self.asked = 0, 0, 0, 0
        self.seconds = {"sample": 0.0, "update": 0.0}
        self.prompts = job["trainer"]["job"]["prompt_token_ids"]

    async def serve(self):
        """Answer the trainer; returns its last word."""
        loop = asyncio.get_running_loop()
        with open(self.channel.path("metrics.jsonl"), "w", encoding="utf-8") as log:
            while True:
                # The engine's own tasks go on meanwhile.
                message = await loop.run_in_executor(None, self.trainer.hear)
                if message["do"] == "end":
                    return message["result"]
                if message["do"] == "log":
                    log.write(json.dumps(message["row"]) + "\n")
                    log.flush()
                    self.tell(message["row"])
                    continue
                started = time.monotonic()
                answer = await getattr(self, message["do"])(message)
                answer["seconds"] = time.monotonic() - started
                self.seconds[message["do"]] += answer["seconds"]
                self.trainer.say(answer)

    def tell(self, row):
        """How far the training is, for whoever watches it."""
        self.channel.emit(
            "progress",
            done=row["step"],
            total=self.job["trainer"]["job"]["steps"],
            said="reward %.3f, clipped %.2f" % (row["rl/reward"], row["rl/clamp_log_ratio_new_old_indicator"]),
        )

    async def sample(self, message):
        """Every request of a step at once; no more than the sampled token's logprob is asked for."""
        outputs = await asyncio.gather(*(self.one(request) for request in message["requests"]))
        return {"samples": outputs, "version": self.version}

    async def one(self, request):
        """One completion: token ids, logprobs, prompt tokens out of the cache."""
        taken = {"token_ids": [], "logprobs": [], "cached_tokens": None}

        def take(output):
            completion = output.outputs[0]
            for token, position in zip(completion.token_ids, completion.logprobs or []):
                taken["token_ids"].append(token)
                taken["logprobs"].append(position[token].logprob)
            if output.num_cached_tokens is not None and taken["cached_tokens"] is None:
                taken["cached_tokens"] = output.num_cached_tokens

        self.asked += 1
        sampling = dict(self.job["sampling"], seed=request["seed"], logprobs=0)
        await self.engine.generate("r%d" % self.asked, self.prompts[request["prompt"]], sampling, take)
        self.tokens += len(taken["token_ids"])
        return taken

    async def update(self, message):
        """New weights, by the way under audit."""
        job = self.job
        if job["mode"] != "none":
            await self.engine.pause(job["mode"], job["clear_cache"])
        await self.engine.load(message["path"], job["skip"], message["version"])
        if job["reset_cache"]:
            await self.engine.reset_prefix_cache()
        if job["mode"] != "none":
            await self.engine.resume()
        self.version = message["version"]
        self.updates += 1
        return {}
