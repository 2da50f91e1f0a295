"""The numerical tests as other processors compute them, with fewer vector units and other BLAS kernels.

    python -m tests.processors [PYTEST ARGUMENT...]

The tests of the loss, its gradients and its explanations, of both learners and both engines of the language model, of
replays, homework, lessons and recorded examples, and the self-test's golden numbers run once per row of
:func:`settings`. Results may differ in the last bits; no test may notice. The exit code is 1 if a test fails.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[import-not-found]

TESTS = (
    "tests/core/bandit",
    "tests/core/test_objective.py",
    "tests/core/test_surrogates.py",
    "tests/core/test_recompute.py",
    "tests/core/test_metrics.py",
    "tests/core/test_explain.py",
    "tests/core/test_what_if.py",
    "tests/core/teaching/test_homework.py",
    "tests/core/teaching/test_lesson_statements.py",
    "tests/core/test_other_processors.py",
    "tests/core/experiments/test_race.py",
    "tests/core/experiments/test_repeats.py",
    "tests/core/lm/test_interruptions.py",
    "tests/core/lm/test_learner.py",
    "tests/core/lm/test_numpy_engine.py",
    "tests/core/lm/test_recorded_answers.py",
    "tests/core/runs/test_branches.py",
    "tests/core/runs/test_editions.py",
    "tests/app/test_examples.py",
    "tests/app/test_self_test.py",
)
NEWEST = ("AVX512", "X86_V4")
KERNELS = {"x86_64": "Nehalem", "AMD64": "Nehalem", "aarch64": "ARMV8", "arm64": "ARMV8"}
"""Machine -> the BLAS kernels that each of its processors can run."""


def settings() -> dict[str, Mapping[str, str]]:
    """Return the processors to imitate: name -> environment variables. Those that equal this one are left out."""
    units = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    newest = [name for name in units if name.startswith(NEWEST)]
    found: dict[str, Mapping[str, str]] = {}
    if newest:
        found["without AVX-512"] = {"NPY_DISABLE_CPU_FEATURES": " ".join(newest), "ATEN_CPU_CAPABILITY": "avx2"}
    oldest = {"NPY_DISABLE_CPU_FEATURES": " ".join(units), "ATEN_CPU_CAPABILITY": "default"}
    if kernels := KERNELS.get(platform.machine()):
        oldest["OPENBLAS_CORETYPE"] = kernels
    return found | {"with the oldest vector units and BLAS kernels": oldest}


def main(arguments: list[str]) -> int:
    """Run the tests under each setting. Return 1 if a test fails under one of them, else 0."""
    failed = 0
    for name, variables in settings().items():
        print(f"{name}: {' '.join(f'{key}={value!r}' for key, value in variables.items())}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not long", *TESTS, *arguments]
        failed |= subprocess.run(command, env=os.environ | variables, check=False).returncode
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
