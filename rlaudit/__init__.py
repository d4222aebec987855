"""rlaudit: are the logprobs of your next vLLM still the ones your RL trainer assumes?

Public, beside the commands, are these names; all else may move without notice (`rlaudit explain api`).

    rlaudit.inspect     what vLLM will do with a config, before and after a move
    rlaudit.compare     what logged logprobs mean, and how far they are from the trainer's
    rlaudit.record      a context in which vLLM engines are recorded
    rlaudit.Report      what the first two return: the typed report, as JSON has it
    rlaudit.testing     assert_logprobs_agree, for the tests of a framework
    rlaudit.callbacks   GateCallback, for transformers' Trainer and TRL
    rlaudit.errors      UsageError and NotFinished, which they raise

The house, top floor first. A package needs only what stands below it (`lint-imports` says so).

    testing     and callbacks: for the tests and trainings of others
    api         the public functions, a file each
    cli         options in, one call, exit code out
    ablation    the course of `rlaudit ablate`: a recipe is carried out, and judged as it forms
    report      one typed report per command (`of_*.py`), and its formats, outlines and pictures
    probe       questions to a running server, a sampling parameter or a check a file
    diagnosis   evidence in, three layers out and the sentences of the answer: arms, logs, updates, recordings alike
    causes      what can be wrong, one signature a file, and the procedure that names them
    laboratory  recipe to outcomes: factors, arms, weight updates, the trainer's scores; judges nothing
    meaning     which of report, sample and trainer agree
    curves      two training logs in, the step at which they separate out; gates
    inspection  paths to judged findings; fixes, suppression, bumps
    rules       what can be wrong with a config, one file each; known defects as YAML
    statistics  figures with intervals, metrics one a file
    configs     any kind of file becomes a rollout config with places; frameworks as YAML
    tokens      any log becomes whole, aligned sequences
    engines     a job runs in another environment, and nothing of it survives
    recording   what runs inside a training, and the reader of what it wrote
    vllm        every fact about a release, once; pins
    text        how text is put out: units, plurals, progress, what a terminal may show
    settings    the settings of a rollout and its trainer, with their places
    files       where they lie, how they are read and written
"""

# As `typing` has it, whose import would take most of this module's time.
TYPE_CHECKING = False

__all__ = ["Report", "__version__", "compare", "errors", "inspect", "record", "testing"]

# Literal, as a build from a shallow clone or an archive knows no tag; pyproject.toml reads it here.
__version__ = "0.4.0"

if TYPE_CHECKING:
    from rlaudit import errors, testing
    from rlaudit.api.compare import compare
    from rlaudit.api.inspect import inspect
    from rlaudit.api.record import record
    from rlaudit.report.report import Report
else:
    # Behind each name is a second of imports, for which no command should wait. A type checker sees no function of this
    # name: it would take any name for one of ours.
    def __getattr__(name):
        """Return a public name, imported now."""
        from importlib import import_module

        if name in ("errors", "testing"):
            return import_module(f"rlaudit.{name}")
        if name in ("compare", "inspect", "record"):
            return getattr(import_module(f"rlaudit.api.{name}"), name)
        if name == "Report":
            return import_module("rlaudit.report.report").Report
        raise AttributeError(f"module 'rlaudit' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
