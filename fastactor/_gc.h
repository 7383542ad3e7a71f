/* _gc.h: shows the garbage collector the messages inside the nodes of a mailbox.
 *
 * Cython visits the object fields of a class; the nodes are C. So the two classes that hold a mailbox get
 * these slots around the ones that Cython made. They may walk the nodes because every push and pop of a
 * Python object happens on an attached thread: with a GIL the collector holds it, without one it has stopped
 * the world.
 */
#ifndef FASTACTOR_GC_H
#define FASTACTOR_GC_H

#include <Python.h>

#include "fa_mailbox.h"

typedef struct fa_visit {
    visitproc visit;
    void *arg;
} fa_visit;

static int fa_visit_one(void *value, void *context) {
    fa_visit *visit = (fa_visit *)context;
    return visit->visit((PyObject *)value, visit->arg);
}

static int fa_gc_traverse(PyObject *self, traverseproc fields, Py_ssize_t offset, visitproc visit,
                          void *arg) {
    fa_visit context = {visit, arg};
    int result = fields(self, visit, arg);
    if (result != 0) return result;
    return fa_mailbox_visit((fa_mailbox *)((char *)self + offset), fa_visit_one, &context);
}

static int fa_gc_clear(PyObject *self, inquiry fields, Py_ssize_t offset) {
    fa_mailbox *box = (fa_mailbox *)((char *)self + offset);
    void *value;
    while ((value = fa_mailbox_poll(box)) != NULL) Py_DECREF((PyObject *)value);
    return fields(self);
}

#define FA_GC_TYPE(name)                                                                \
    static traverseproc name##_traverse_fields;                                         \
    static inquiry name##_clear_fields;                                                 \
    static Py_ssize_t name##_offset;                                                    \
    static int name##_traverse(PyObject *self, visitproc visit, void *arg) {            \
        return fa_gc_traverse(self, name##_traverse_fields, name##_offset, visit, arg); \
    }                                                                                   \
    static int name##_clear(PyObject *self) {                                           \
        return fa_gc_clear(self, name##_clear_fields, name##_offset);                   \
    }                                                                                   \
    static void name##_install(PyObject *cls, Py_ssize_t offset) {                      \
        PyTypeObject *type = (PyTypeObject *)cls;                                       \
        name##_traverse_fields = type->tp_traverse;                                     \
        name##_clear_fields = type->tp_clear;                                           \
        name##_offset = offset;                                                         \
        type->tp_traverse = name##_traverse;                                            \
        type->tp_clear = name##_clear;                                                  \
    }

FA_GC_TYPE(fa_gc_cell)
FA_GC_TYPE(fa_gc_queue)

#endif
