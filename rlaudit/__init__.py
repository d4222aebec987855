"""rlaudit: are the logprobs of your next vLLM still the ones your RL trainer assumes?

The house, top floor first. A package needs only what stands below it (`lint-imports` says so).

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

__all__ = ["__version__"]

# Literal, as a build from a shallow clone or an archive knows no tag; pyproject.toml reads it here.
__version__ = "0.4.0"
