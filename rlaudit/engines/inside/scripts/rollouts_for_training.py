"""Samples for a training loop and loads its weights, in turns or while requests run.

A worker script (see engines/cells/worker.py). The trainer is a separate process in its own interpreter
(rlaudit/laboratory/trainer/train.py, which documents the pipe between the two). The engine is steered as in an audit
of weight updates (steerable_engine.py): V1 as AsyncLLM, V0 stepped.

job
  model, revision, trust_remote_code, engine_args, engine (see generate.py)
  transport       how weights come from the trainer: disk or broadcast (extension/rlaudit_weight_transport.py)
  path            how they are loaded: reload_weights, reload_from_iterator or load_weights
  mode            how the engine is paused meanwhile: none, keep, wait or abort; clear_cache: of the pause
  reset_cache     whether reset_prefix_cache is called after each load
  seconds         longest wait of one end of the transport for the other
  fp32_head       logits in float32 (see generate.py)
  sampling        keyword arguments of SamplingParams, but for seed and logprobs
  trainer         {"command", "script", "variables", "job"}: the training process; script: its path in rlaudit's
                  package

metrics.jsonl     one line per step, written as it ends
result            resolved, kind, transport (the real one), fp32_head, generated_tokens, generate_seconds (with requests
                  in flight), updates (how many), trainer (its own result)
"""

import asyncio
import json
import os
import subprocess
import time

EXTENSION = "rlaudit_training.TrainedEngine"
EXTENSION_FOLDER = os.path.join("engines", "inside", "extension")
# rlaudit's folder on this machine.
PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def run(job, channel):
    """Start the engine, then the trainer, and answer it until it is done."""
    channel.phase("launch")
    # AsyncLLM starts its tasks on the event loop that runs when it is made.
    return asyncio.run(play(job, channel))


async def play(job, channel):
    """Run the whole training."""
    channel.phase("load")
    head = channel.neighbour("generate").plan_fp32_head(job, job["engine_args"])
    job["extension"] = EXTENSION
    trainer = None
    try:
        async with channel.neighbour("steerable_engine").running(job, channel) as (engine, resolved):
            if not engine.can_pause(job["mode"], job["clear_cache"]):
                raise channel.Unsupported(
                    "this vLLM cannot pause with mode=%s, clear_cache=%s" % (job["mode"], job["clear_cache"])
                )
            if head == "extension":
                refusals = [reason for reason in await engine.call("rlaudit_install_fp32_head") if reason]
                if refusals:
                    raise channel.Unsupported("fp32 head: " + refusals[0])
            if not job["trainer"]["job"]["lag"]:
                # No update comes before a request has ended, so its output is needed only then.
                engine.output_kind = type(engine.output_kind).FINAL_ONLY
            import rlaudit_weight_transport as transport

            places = [] if job["transport"] == "disk" else await transport.worker_places(engine)
            channel.phase("train")
            trainer = Trainer(job["trainer"], channel.path("weights"), job["transport"], job["seconds"], len(places))
            session = Session(job, engine, trainer, channel, transport, places)
            trained = await session.serve()
    finally:
        if trainer is not None:
            trainer.end()
    return {
        "resolved": resolved,
        "kind": engine.kind,
        "transport": session.ran,
        "fp32_head": head,
        "generated_tokens": session.tokens,
        "generate_seconds": session.sampling_seconds,
        "updates": session.updates,
        "trainer": trained,
    }


class Trainer:
    """The training process, and the pipe to it."""

    def __init__(self, spec, weights, transport, seconds, workers):
        # Variables for the engine's interpreter do not apply to the trainer's.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "LD_PRELOAD"))}
        self.process = subprocess.Popen(
            [*spec["command"], "-s", os.path.join(PACKAGE, spec["script"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**kept, **spec["variables"]},
            encoding="utf-8",
        )
        handover = {"weights": weights, "transport": transport, "seconds": seconds, "workers": workers}
        self.say(dict(spec["job"], extension=os.path.join(PACKAGE, EXTENSION_FOLDER), **handover))

    def say(self, message):
        """Send a line."""
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self):
        """Return the next line. Raises RuntimeError if the trainer has ended."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the trainer ended with code %s; see above" % self.process.wait())
        return json.loads(line)

    def end(self):
        """End the process."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Session:
    """One engine and one trainer, and totals of their work."""

    def __init__(self, job, engine, trainer, channel, transport, places):
        """transport: the module rlaudit_weight_transport. places: where the workers compute."""
        self.job, self.engine, self.trainer, self.channel = job, engine, trainer, channel
        self.transport, self.places, self.ran = transport, places, transport.FROM_DISK
        self.version, self.tokens, self.updates, self.submitted = 0, 0, 0, 0
        self.batches, self.in_flight, self.busy_since = {}, 0, None
        self.sampling_seconds = 0.0
        self.prompts = job["trainer"]["job"]["prompt_token_ids"]

    async def serve(self):
        """Answer the trainer's messages; return its result."""
        loop = asyncio.get_running_loop()
        with open(self.channel.path("metrics.jsonl"), "w", encoding="utf-8") as log:
            while True:
                # In a thread, so that the engine's tasks and the batches go on.
                message = await loop.run_in_executor(None, self.trainer.hear)
                if message["do"] == "end":
                    return message["result"]
                if message["do"] == "log":
                    log.write(json.dumps(message["row"]) + "\n")
                    log.flush()
                    self.report(message["row"])
                else:
                    await getattr(self, message["do"])(message)

    def report(self, row):
        """Report the progress of the training."""
        self.channel.emit(
            "progress",
            done=row["step"],
            total=self.job["trainer"]["job"]["steps"],
            said="reward %.3f, clipped %.2f" % (row["rl/reward"], row["rl/clamp_log_ratio_new_old_indicator"]),
        )

    async def join(self, message):
        """Let the trainer and the workers find each other."""
        self.ran = await self.transport.meet(
            self.engine,
            message,
            self.places,
            self.trainer.say,
            self.job["seconds"],
        )

    async def begin(self, message):
        """Start every request of a batch, without waiting."""
        self.batches[message["batch"]] = asyncio.ensure_future(self.sample(message["requests"]))

    async def collect(self, message):
        """Send a batch to the trainer after its last request has ended."""
        samples, seconds = await self.batches.pop(message["batch"])
        self.trainer.say({"samples": samples, "seconds": seconds})

    async def sample(self, requests):
        """Return a batch, and how long it took."""
        begun = time.monotonic()
        samples = await asyncio.gather(*(self.complete(request) for request in requests))
        return samples, time.monotonic() - begun

    async def complete(self, request):
        """Return one completion: token ids, logprobs, each token's weight version.

        A paused engine samples nothing, so a token that arrives before the update has ended is of the old weights.
        """
        sample = {"token_ids": [], "logprobs": [], "versions": []}

        def take(output):
            completion = output.outputs[0]
            for token, position in zip(completion.token_ids, completion.logprobs or []):
                sample["token_ids"].append(token)
                sample["logprobs"].append(position[token].logprob)
                sample["versions"].append(self.version)

        self.submitted += 1
        # logprobs=0: of the sampled token alone.
        sampling = dict(self.job["sampling"], seed=request["seed"], logprobs=0)
        if not self.in_flight:
            self.busy_since = time.monotonic()
        self.in_flight += 1
        try:
            prompt = {"prompt_token_ids": self.prompts[request["prompt"]]}
            await self.engine.generate("r%d" % self.submitted, prompt, sampling, take)
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.sampling_seconds += time.monotonic() - self.busy_since
        self.tokens += len(sample["token_ids"])
        return sample

    async def update(self, message):
        """Load new weights as the job prescribes."""
        job, started, in_flight = self.job, time.monotonic(), self.in_flight
        if job["mode"] != "none":
            await self.engine.pause(job["mode"], job["clear_cache"])
        await self.engine.load(message["source"])
        if job["reset_cache"]:
            await self.engine.reset_prefix_cache()
        self.version = message["version"]
        if job["mode"] != "none":
            await self.engine.resume()
        self.updates += 1
        self.trainer.say({"seconds": time.monotonic() - started, "in_flight": in_flight})
