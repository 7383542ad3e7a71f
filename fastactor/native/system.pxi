# The hot half of a system. You are here: dispatch, by path.

cdef class SystemCore:
    """What of an ActorSystem is on the way of each message: the registry and `dispatch`."""

    def __cinit__(self, *args, **kwargs):
        self._cells = {}

    def __init__(self):
        pass

    @property
    def _state(self):
        return fa_flag_get(&self.state)

    @_state.setter
    def _state(self, uint32_t value):
        fa_flag_set(&self.state, value)

    def dispatch(self, path, message, processor=None, *, timeout=None) -> bool:
        """Create or get the cell of `path` and dispatch the message to it.

        The first processor of a path wins. Without a processor the cell must exist (LookupError).
        """
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        if fa_flag_get(&self.state):
            self._admit()
        return offer(<ActorCell>cell, message, timeout)

    def dispatch_many(self, path, messages, processor=None) -> int:
        """Dispatch each message in order; how many were accepted (also in MailboxFull.accepted)."""
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        return (<ActorCell>cell).dispatch_many(messages)

    def get(self, path):
        """The cell of `path`, or None."""
        return self._cells.get(path)

    def __len__(self):
        return len(self._cells)

    def __bool__(self):
        return True

    def __contains__(self, path):
        return path in self._cells

    def __iter__(self):
        return iter(list(self._cells.values()))

    def _tally(self):
        """Messages queued in all registered cells."""
        cdef int64_t queued = 0
        for cell in list(self._cells.values()):
            queued += fa_mailbox_len(&(<ActorCell>cell).cell.mailbox)
        return queued
