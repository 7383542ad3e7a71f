# The layouts of the native classes, for those who cimport them.

from ._fa cimport fa_cell, fa_flag, fa_mailbox, fa_pool, fa_status


cdef class StatusWord:
    cdef fa_status *word  # of this object, or of a cell
    cdef fa_status own
    cdef ActorCell cell  # keeps the word alive


cdef class BoundedNodeQueue:
    cdef fa_mailbox box
    cdef object __weakref__
    cdef object collected  # an object field, so that the garbage collector looks at this class


cdef class ActorCell:
    cdef fa_cell cell
    cdef object key
    cdef SystemCore home
    cdef readonly object _process
    cdef object error_policy
    cdef PriorityExecutor executor
    cdef object __weakref__
    cdef unsigned char close_reason
    cdef readonly bint _retired


cdef class _Pool:
    cdef fa_pool *pool
    cdef object chore
    cdef object on_quiet


cdef class PriorityExecutor:
    cdef _Pool pool
    cdef str label
    cdef str order
    cdef list workers
    cdef object starting
    cdef fa_flag started
    cdef object __weakref__


cdef class SystemCore:
    cdef public dict _cells
    cdef public PriorityExecutor _executor
    cdef fa_flag state
