"""Builds the C tests of csrc and runs them: plain, under ASan and UBSan, and under TSan."""

import os
import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
FLAGS = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-pthread"]
SANITIZERS = {"plain": [], "asan+ubsan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"]}


def run(command, **how):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **how)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("build", ["release", "debug"])
def test_csrc_compiles_without_a_warning(build, tmp_path):
    """C11 without Python.h, warnings as errors."""
    defines = ["-DFA_DEBUG=1"] if build == "debug" else ["-DNDEBUG"]
    for source in sorted(CSRC.glob("*.c")):
        run([COMPILER, *FLAGS, *defines, "-c", source, "-o", tmp_path / "out.o"])


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("program", sorted(path.stem for path in HERE.glob("test_*.c")))
def test_program(program, sanitizer, tmp_path):
    """Each program checks itself; its exit code and its silence count."""
    sources = [HERE / f"{program}.c", *sorted(CSRC.glob("*.c"))]
    flags = [*FLAGS, "-DFA_DEBUG=1", *SANITIZERS[sanitizer], f"-I{CSRC}", f"-I{HERE}"]
    run([COMPILER, *flags, *sources, "-o", tmp_path / program])
    command = [tmp_path / program]
    if sanitizer == "tsan" and shutil.which("setarch"):
        # TSan maps its shadow at fixed addresses, which a randomised layout may have taken.
        command = ["setarch", platform.machine(), "-R", *command]
    output = run(command)
    assert output.count("passed ") >= 3
