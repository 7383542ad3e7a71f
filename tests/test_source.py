"""What can be read off the source text: who includes what, and that each atomic names its partner."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CSRC = sorted((ROOT / "csrc").glob("*.[ch]"))
TAG = re.compile(r"\[([A-Z]\d+)\]")
ATOMIC = re.compile(r"\bfa_(load|store|swap|cas|add|sub|or|and)(_acquire|_release|_relaxed|_acq_rel)?\(")


def test_only_one_file_includes_stdatomic():
    users = [
        path.name for path in CSRC if "<stdatomic.h>" in path.read_text().replace("user of <stdatomic", "")
    ]
    assert users == ["fa_atomic.h"]


def test_csrc_knows_no_python():
    assert not [path.name for path in CSRC if re.search(r"#include [<\"]Python\.h", path.read_text())]


@pytest.mark.parametrize("path", CSRC, ids=lambda path: path.name)
def test_every_atomic_says_with_what_it_pairs(path):
    """A tag of the ordering table, or "shown"/"ours"/... for what is relaxed, within the lines around it."""
    if path.name == "fa_atomic.h":
        return
    lines = path.read_text().splitlines()
    untagged = []
    for number, line in enumerate(lines):
        if not ATOMIC.search(line.split("/*")[0]) or line.startswith("#define"):
            continue
        around = "\n".join(lines[max(0, number - 5) : number + 4])
        weaker = "_relaxed(" in line
        argued = re.search(r"shown|ours alone|standstill|on its own|as above|for tests|only holders", around)
        if not TAG.search(around) and not (argued and (weaker or "for tests" in around)):
            untagged.append(f"{path.name}:{number + 1}: {line.strip()}")
    assert not untagged


def test_every_tag_is_in_the_table_and_used():
    table = set(re.findall(r"^\| ([A-Z]\d+) \|", (ROOT / "csrc" / "README.md").read_text(), re.M))
    used = {tag for path in CSRC for tag in TAG.findall(path.read_text())}
    assert used == table


def test_the_flow_is_in_the_first_line_of_each_file():
    """A reader who opens any file of the runtime learns where in the flow it is."""
    files = [
        *(ROOT / "fastactor" / "native").glob("*.pxi"),
        *(ROOT / "fastactor" / "_pure").glob("[a-z]*.py"),
    ]
    files += [path for path in CSRC if path.suffix == ".h"]
    assert len(files) > 15
    lost = [path.name for path in files if "ou are here" not in path.read_text().split("\n")[0]]
    assert not lost


def test_no_file_grows_beyond_bounds():
    """Files past about 500 lines are split by noun."""
    sources = [*CSRC, *(ROOT / "fastactor").rglob("*.py"), *(ROOT / "fastactor").rglob("*.p[xy][xid]")]
    long = {path.name: n for path in sources if (n := len(path.read_text().splitlines())) > 500}
    assert not long
