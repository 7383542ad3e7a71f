# cython: language_level=3, freethreading_compatible=True, embedsignature=True, binding=False, annotation_typing=False
"""The native runtime: the classes of _pure/ over csrc/. C owns when, this file owns what: references,
arguments, exceptions and the GIL.

    dispatch -> mailbox.push -> status.try_schedule -> ready.push -> worker.take -> processor(message, cell)
             -> mailbox.pop -> (quota over | empty | suspended) -> status.set_idle -> look again -> ready.push

References: a node owns one to its message; the Scheduled bit owns one to its cell, from `make_ready` to
`release_cell`. Every push and pop of a Python object happens on an attached thread, which is why the garbage
collector may walk the mailboxes.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint32_t

from ._fa cimport *

import logging
import os
import sys
import threading

from . import _api
from .hold import Hold
from .overflow import refused
from .process import remember_executor
from .system import SystemLayer

cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState
    ctypedef struct PyInterpreterState
    PyThreadState *PyThreadState_Get()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)
    PyInterpreterState *PyInterpreterState_Get()
    PyObject *PyObject_Vectorcall(PyObject *call, PyObject **arguments, size_t count, PyObject *names)
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject *Py_False

cdef extern from "_interp.h" nogil:
    PyObject *fa_get_current()
    void fa_set_current(PyObject *cell)
    PyThreadState *fa_gil_holder(PyInterpreterState *interpreter)
    int fa_is_attached(PyThreadState *thread)

cdef extern from "_gc.h":
    void fa_gc_cell_install(object cls, Py_ssize_t offset)
    void fa_gc_queue_install(object cls, Py_ssize_t offset)

implementation = "native"

log = logging.getLogger("fastactor")

cdef tuple OVERFLOW_NAMES = _api.OVERFLOW_NAMES
cdef tuple CLOSE_REASONS = ("", "stopped", "shutdown", "idle", "error")
cdef double MOVED_ASIDE = _api.MOVED_ASIDE
cdef double STAYS = _api.STAYS

# On the main thread a wait ends this often to see whether a signal, such as Ctrl-C, has come.
cdef int64_t SIGNAL_EVERY = 50_000_000

# Whether threads exclude each other while they run Python: on a free-threaded build, only if asked to.
cdef bint has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
cdef PyInterpreterState *interpreter = PyInterpreterState_Get()

include "native/status.pxi"
include "native/queue.pxi"
include "native/cell.pxi"
include "native/worker.pxi"
include "native/executor.pxi"
include "native/system.pxi"


class ActorSystem(SystemLayer, SystemCore):
    __doc__ = SystemLayer.__doc__
    _core = (ActorCell, PriorityExecutor, current_cell)


# -- garbage collection: the messages in the nodes -------------------------------------------------------------


cdef int show_nodes() except -1:
    """Learn from an example where the mailboxes are inside of the objects, and tell the collector."""
    global cell_offset
    cdef ActorCell cell = ActorCell(SystemCore(), None, print)
    cdef BoundedNodeQueue queue = BoundedNodeQueue(1)
    cell_offset = <char *>&cell.cell - <char *><void *>cell
    fa_gc_cell_install(ActorCell, <char *>&cell.cell.mailbox - <char *><void *>cell)
    fa_gc_queue_install(BoundedNodeQueue, <char *>&queue.box - <char *><void *>queue)
    return 0


show_nodes()
