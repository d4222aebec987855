"""What a training really asked of vLLM, what it got, and what was done to the weights in between.

vLLM loads this file in every process of a training: the front end, the engine core and each worker. It writes one file
of JSON lines a process, `HOST-PID-RANDOM.jsonl`, into the folder that RLAUDIT_RECORD names. Every line is whole when it
is written, so a recording can be read at any moment, also after SIGKILL: what was not finished has no closing line.

An object a line. `kind` says what it is; `at` is this host's monotonic clock in seconds, which all its processes share.
Arrays are base64 of little-endian numbers: token ids and counts int32, logprobs (nats) float32, clocks float64.

    process    first line of a file: schema, host, boot, pid, parent, name, wall (the epoch's seconds at `at`), argv,
               executable, python, versions {package: release}, environment {variable: value}, settings
    hooks      hooked [target], absent [{target, why}]: what this process records from here on, and what it cannot
    engine     number, class, written {argument: value} (what differs from that class's defaults), effective
               {section: {field: value}} (the resolved VllmConfig), error
    worker     class, rank, device, capability: a process that holds weights
    model      class, tensors, dtypes {dtype: tensors}, parameters: what `load_model` left in a worker
    sampling   sampling (number), parameters: one of the distinct SamplingParams
    prompt     prompt (name: a hash of the ids), ids
    request    request, prompt, sampling, parent, index, salted, lora, parts ("text" or what else the prompt holds)
    sequence   request, prompt, index, ids, logprobs (null: not asked for), steps [[first, count, tokens a step]],
               cached (prompt tokens from the prefix cache, null: not said by this release), finish, stop, visible (how
               many tokens the caller saw), resumed
    steps      first (number), stamps (of the engine core), tokens, cached: every step, kept sequences and others
    event      call, what (the hooked method), side ("begin" or "end"); begin: arguments, in_flight; end: result, error
    repeats    call, count, end, errors: calls like the one before, with nothing in between
    tensors    tensors (number), names, dtypes, shapes: one set that `load_weights` was given
    load       load (number), side; begin: names (the first), in_flight; end: tensors, calls, begin, end, error
    trainer    function, gradients, backward, model {number, class, dtype, trainable, adapters}, shape, rows, ids,
               logprobs: what the trainer's own function made of recorded completions
    totals     counts since the process began; the last line of this kind holds. `ended` is true at an orderly exit
    failed     hook, error: something of the recorder's own went wrong, and the training did not notice
    dropped    what, why: from here on something is not kept

Prompts are kept whole or not at all, so that the samples of one prompt stay together: the first 64, every prompt until
64 MiB are written, and after that one in `prompts` by the hash of its ids, which keeps the same ones in two runs.

Rules of this file. Nothing it does may reach the training: every hook catches its own errors. No thread, lock or open
file before the engine answers (vLLM forks), none that is inherited. It never asks for logprobs that the user did not
ask for, unless settings say so; never unpickles; never reads a weight; touches no GPU but to copy a few KiB of logprobs
that the trainer has computed; stays out of whatever torch.compile traces. Standard library and Python 3.9, beside what
vLLM has imported already.
"""
