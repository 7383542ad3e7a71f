/* _interp.c: looks at the state of the GIL, which CPython keeps in internal structures.
 *
 * The extension is compiled for one minor version, within which these structures do not change: profilers
 * rely on that as well. Nothing is written. A file of its own, because Py_BUILD_CORE must not leak into the
 * rest.
 */
#include <Python.h>

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030F0000
#define FA_KNOWS_GIL 1
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#undef _PyGC_FINALIZED /* 3.12 has both the macro and, inside, a function of that name */
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#endif

#include "_interp.h"

PyThreadState *fa_gil_holder(PyInterpreterState *interpreter) {
#if PY_VERSION_HEX < 0x030C0000
    (void)interpreter;
    return _PyThreadState_UncheckedGet(); /* of the whole process, in these versions */
#elif defined(FA_KNOWS_GIL) && PY_VERSION_HEX < 0x030D0000
    struct _gil_runtime_state *gil = interpreter->ceval.gil;
    if (!_Py_atomic_load_relaxed(&gil->locked)) return NULL;
    return (PyThreadState *)_Py_atomic_load_relaxed(&gil->last_holder);
#elif defined(FA_KNOWS_GIL)
    struct _gil_runtime_state *gil = interpreter->ceval.gil;
    if (!_Py_atomic_load_int_relaxed(&gil->locked)) return NULL;
    return (PyThreadState *)_Py_atomic_load_ptr_relaxed(&gil->last_holder);
#else
    return (PyThreadState *)interpreter;
#endif
}

int fa_is_attached(PyThreadState *thread) {
#if defined(Py_GIL_DISABLED)
    return _Py_atomic_load_int_relaxed(&thread->state) == 1; /* _Py_THREAD_ATTACHED */
#else
    (void)thread;
    return 1;
#endif
}
