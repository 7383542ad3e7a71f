"""The code in the documentation runs, and says what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("pure", ["0", "1"])
def test_the_example_of_the_readme(pure):
    """A 12-line example that runs."""
    (example,) = BLOCKS
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    output = run("-c", example, FASTACTOR_PURE=pure)
    assert sorted(map(int, re.findall(r": (\d+)", output))) == [1000, 1000, 1000]


@pytest.mark.parametrize("pure", ["0", "1"])
def test_the_fairness_demonstration(pure):
    """`make demo`: every policy is measured."""
    output = run("examples/fairness.py", "0.1", FASTACTOR_PURE=pure)
    for policy in ("fifo", "total", "last-run", "fair"):
        assert re.search(rf"^{policy} .*%.*%.*ms", output, re.M)
