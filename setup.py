"""Builds the one extension module, fastactor._native. Everything declarative is in pyproject.toml.

Switches, read from the environment:
    FASTACTOR_PURE=1                       no extension: a pure-Python build of the same tree
    FASTACTOR_DEBUG=1                      no optimisation, assertions and debug counters on
    FASTACTOR_SANITIZE=address,undefined   instrumented with -fsanitize=address,undefined
"""

import os
import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup

PURE = os.environ.get("FASTACTOR_PURE") == "1" or sys.implementation.name != "cpython"
DEBUG = os.environ.get("FASTACTOR_DEBUG") == "1"
SANITIZE = os.environ.get("FASTACTOR_SANITIZE")


def native() -> Extension:
    if sys.platform == "win32":
        compile_args = ["/std:c11", "/experimental:c11atomics", "/Od" if DEBUG else "/O2"]
        link_args = []
    else:
        # hidden: csrc is linked into this module only, and calls inside it need no PLT
        compile_args = ["-std=c11", "-pthread", "-fvisibility=hidden"]
        compile_args += ["-O0", "-g3"] if DEBUG else ["-O3"]
        link_args = ["-pthread"]
        if SANITIZE:
            compile_args += [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-g"]
            link_args += [f"-fsanitize={SANITIZE}"]
    return Extension(
        "fastactor._native",
        sources=["fastactor/_native.pyx", "fastactor/_interp.c", *sorted(glob("csrc/*.c"))],
        include_dirs=["csrc", "fastactor"],
        depends=[
            *glob("csrc/*.h"),
            *glob("fastactor/*.pxd"),
            *glob("fastactor/*.h"),
            *glob("fastactor/native/*.pxi"),
        ],
        # Said outright: the flags that Python was built with, which come first, may differ.
        define_macros=[("FA_DEBUG", "1")] if DEBUG else [("NDEBUG", None)],
        undef_macros=["NDEBUG"] if DEBUG else [],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
    )


def extensions() -> list[Extension]:
    if PURE:
        return []
    from Cython.Build import cythonize  # here, because a pure build must not need it

    # The ABI tag, e.g. cpython-313t-x86_64-linux-gnu: interpreters that share a tree do not clash.
    abi = sysconfig.get_config_var("EXT_SUFFIX").split(".")[1]
    return cythonize(
        [native()],
        build_dir=f"build/cython-{abi}",
        compiler_directives={"language_level": 3},
    )


setup(ext_modules=extensions())
