"""Runs the model checker over the shipped csrc, and over mutants of it that it must catch.

A mutant is a copy of csrc with one line broken. One that survives means that the model does not check what
that line is for.
"""
# ruff: noqa: E501  # a mutant is easier to read on one line

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]

MUTANTS = {
    'two owners': ('fa_status.h', 'while (word == 0) {', 'while ((word & ~FA_SCHEDULED) == 0) {', 'cell'),
    'no look again': ('fa_worker.c', 'if (word == 0 && fa_mailbox_len', 'if (word == 9 && fa_mailbox_len', 'pool'),
    'capacity not kept': ('fa_mailbox.h', 'if (FA_UNLIKELY(room == 0)) return FA_FULL;', '', 'cell'),
    'room for one too many': ('fa_mailbox.h', 'box->capacity - length : wanted', 'box->capacity - length + 1 : wanted', 'cell'),
    'frees the new node': ('fa_mailbox.h', '? NULL : box->out;', '? NULL : next;', 'cell'),
    'evicts without counting': ('fa_mailbox.h', 'if (value != NULL) fa__count_pop(box);\n        fa_mailbox_unlock', 'fa_mailbox_unlock', 'cell'),
    'evicts the hand as well': ('fa_mailbox.h', 'void *value = fa__unlink(box, &garbage);\n        uint32_t in_hand', 'void *value = box->stub.value ? box->stub.value : fa__unlink(box, &garbage);\n        uint32_t in_hand', 'cell'),
    'retires with a message': ('fa_mailbox.h', 'while (pushed == fa_load(&box->popped)) {', 'while (!(pushed & FA_NO_MORE)) {', 'cell'),
    'closing loses the flag': ('fa_mailbox.h', 'fa_or(&box->pushed, FA_NO_MORE); /* [M1] */', '', 'cell'),
    'nobody makes room known': ('fa_room.h', 'if (fa_add(&box->waiters, 0))', 'if (fa_add(&box->waiters, 0) > 99)', 'cell'),
    'a push wakes nobody': ('fa_worker.c', 'fa__unlock_and_call(pool, fa__call_worker(pool));\n    return FA_OK;', 'fa_unlock(&pool->lock);\n    return FA_OK;', 'pool'),
    'spins for ever in name': ('fa_worker.c', '    pool->spinning = false;\n', '', 'pool'),
    'the guard never works': ('fa_worker.c', 'fa__promote(worker)) worker->may_run = true;', 'fa__promote(worker)) worker->may_run = false;', 'pool'),
    'a delay is forgotten': ('fa_worker.c', 'fa_ready_delay(&pool->ready, cell, turn.ended + turn.delay);', '', 'pool'),
    'queued twice': ('fa_worker.c', '            turn.delay = 0;\n            origin = FA_WOKEN;', '            fa_status_set_idle(&cell->status);\n            turn.delay = 0;\n            origin = FA_WOKEN;', 'pool'),
}  # fmt: skip


def build(csrc, program, to):
    sources = [HERE / f"model_{program}.c", HERE / "explore.c", *sorted(csrc.glob("*.c"))]
    flags = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-DFA_MODEL=1", f"-I{csrc}", f"-I{HERE}"]
    done = subprocess.run([COMPILER, *flags, *sources, "-o", to], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def explore(program):
    # A mutant may well loop for ever; the shipped source needs about twenty seconds.
    command = ["timeout", "100", program]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("program", ["cell", "pool"])
def test_no_schedule_fails(program, tmp_path):
    """Nothing lost, nothing twice, one worker a cell, no lost wake-up, exact capacity, no leak."""
    build(CSRC, program, tmp_path / program)
    done = explore(tmp_path / program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed ") >= 7


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name, tmp_path):
    """The checker sees the difference that this line makes."""
    file, line, broken, program = MUTANTS[name]
    csrc = tmp_path / "csrc"
    shutil.copytree(CSRC, csrc)
    text = (csrc / file).read_text()
    assert text.count(line) == 1, "the line to break has changed"
    (csrc / file).write_text(text.replace(line, broken))
    build(csrc, program, tmp_path / program)
    assert explore(tmp_path / program).returncode != 0, "the mutant survives"
