# The mailbox. You are here: mailbox.push, mailbox.take, mailbox.pop.

cdef void drop(void *message) noexcept:
    Py_DECREF(<object>message)


cdef inline object owned(void *message):
    """The object of a reference that has been ours, and is the caller's now."""
    cdef object value = <object>message
    Py_DECREF(value)
    return value


@cython.final
cdef class BoundedNodeQueue:
    """Bounded first-in-first-out queue: many producers, one consumer, False when exactly full.

    The consumer takes the head *into its hand*, where it still counts, and drops it from there when it is
    handled. What is in the hand belongs to the consumer alone; everything behind it may be evicted or
    drained by anybody.
    """

    def __cinit__(self, capacity):
        fa_mailbox_init(&self.box, 1, 0)  # so that __dealloc__ has one, whatever the capacity is
        self.box.capacity = _api.check_int("capacity", capacity, 1, _api.MAX_CAPACITY)

    def __init__(self, capacity: int):
        pass

    def __dealloc__(self):
        fa_mailbox_destroy(&self.box, <fa_dropper><void *>drop)

    @property
    def capacity(self) -> int:
        return self.box.capacity

    def add(self, value) -> bool:
        """Append; False when the queue is full."""
        Py_INCREF(value)
        cdef int result = fa_mailbox_push(&self.box, <void *>value)
        if result == FA_OK:
            return True
        Py_DECREF(value)
        if result == FA_NOMEM:
            raise MemoryError
        return False

    def peek(self, default=None):
        """The head, which stays; `default` when the queue is empty."""
        fa_mailbox_lock(&self.box)  # so that nobody polls it before we have a reference
        cdef PyObject *head = <PyObject *>fa_mailbox_head(&self.box)
        if head != NULL:
            Py_INCREF(<object>head)
        fa_mailbox_unlock(&self.box)
        return default if head == NULL else owned(head)

    def poll(self, default=None):
        """Remove and return the head; `default` when the queue is empty."""
        cdef void *head = fa_mailbox_poll(&self.box)
        return default if head == NULL else owned(head)

    def is_empty(self) -> bool:
        return fa_mailbox_len(&self.box) == 0

    def count(self) -> int:
        return fa_mailbox_len(&self.box)

    def __len__(self):
        return fa_mailbox_len(&self.box)

    def __repr__(self):
        return f"<BoundedNodeQueue {len(self)} of {self.capacity}>"
