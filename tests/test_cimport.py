"""Cython users cimport the queue and the status word and use them without the GIL."""

import importlib.util
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent

SOURCE = """
# cython: language_level=3, freethreading_compatible=True
from libc.stdint cimport uint32_t, uintptr_t
from fastactor._fa cimport *

cdef void forget(void *value) noexcept nogil:
    pass

cdef uint32_t fill(uint32_t capacity) noexcept nogil:
    cdef fa_mailbox box
    cdef uint32_t count = 0
    fa_mailbox_init(&box, capacity, 0)
    while fa_mailbox_push(&box, <void *><uintptr_t>(count + 1)) == FA_OK:
        count += 1
    if fa_mailbox_poll(&box) != <void *>1 or fa_mailbox_len(&box) != capacity - 1:
        count = 0
    fa_mailbox_destroy(&box, forget)
    return count

cdef uint32_t step() noexcept nogil:
    cdef fa_status status
    fa_status_init(&status)
    if not fa_status_try_schedule(&status) or fa_status_try_schedule(&status):
        return 0
    fa_status_suspend(&status)
    return fa_status_set_idle(&status)

def run(capacity):
    cdef uint32_t count, word, wanted = capacity
    with nogil:
        count = fill(wanted)
        word = step()
    return count, word
"""


def test_queue_and_status_word_without_the_gil(tmp_path):
    """Every operation of the queue and the status word is a nogil C function declared in the .pxd."""
    (tmp_path / "user.pyx").write_text(SOURCE)
    (tmp_path / "setup.py").write_text(
        textwrap.dedent(f"""
        from Cython.Build import cythonize
        from setuptools import Extension, setup
        csrc = {str(ROOT / "csrc")!r}
        sources = ["user.pyx", csrc + "/fa_platform.c", csrc + "/fa_mailbox.c", csrc + "/fa_room.c"]
        setup(
            name="user",
            ext_modules=cythonize(
                [Extension("user", sources, include_dirs=[csrc], extra_compile_args=["-std=c11"])],
                include_path=[{str(ROOT)!r}],
            ),
        )
        """)
    )
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    path = tmp_path / ("user" + sysconfig.get_config_var("EXT_SUFFIX"))
    spec = importlib.util.spec_from_file_location("user", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.run(3) == (3, 4)
