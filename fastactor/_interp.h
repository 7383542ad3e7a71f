/* _interp.h: what of the interpreter has no public interface in Cython. */
#ifndef FASTACTOR_INTERP_H
#define FASTACTOR_INTERP_H

#include <Python.h>

#if defined(_MSC_VER)
#define FA_THREAD_LOCAL __declspec(thread)
#else
#define FA_THREAD_LOCAL _Thread_local
#endif

/* The cell that this thread runs; borrowed, for the Scheduled bit owns a reference meanwhile. */
static FA_THREAD_LOCAL PyObject *fa_current_cell;

static inline PyObject *fa_get_current(void) { return fa_current_cell; }

static inline void fa_set_current(PyObject *cell) { fa_current_cell = cell; }

/* Who holds the GIL just now, or NULL. A hint: it may be wrong by the time it is read. Where the version is
 * not known it names nobody that exists, and the pool finds out by trying. */
PyThreadState *fa_gil_holder(PyInterpreterState *interpreter);

/* Whether a thread is attached, on a build without a GIL. A hint as well. */
int fa_is_attached(PyThreadState *thread);

#endif
