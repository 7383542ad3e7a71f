# The status word of a cell. You are here: status.try_schedule and status.set_idle.

@cython.final
cdef class StatusWord:
    """Open 0; bit 0 Closed, final; bit 1 Scheduled; each unit of 4 one suspension."""

    def __cinit__(self):
        fa_status_init(&self.own)
        self.word = &self.own

    def __init__(self):
        pass

    def try_schedule(self) -> bool:
        """Open -> Scheduled. True for exactly one caller, who alone may push the cell on the ready queue."""
        if self.cell is not None:
            raise RuntimeError(_api.NOT_YOURS)
        return fa_status_try_schedule(self.word)

    def set_idle(self) -> None:
        """Clear Scheduled. Whoever calls it must look at the mailbox again afterwards."""
        if self.cell is not None:
            raise RuntimeError(_api.NOT_YOURS)
        if fa_status_value(self.word) & FA_SCHEDULED:
            fa_status_set_idle(self.word)

    def suspend(self) -> None:
        """Add one suspension; as many `resume`s are needed. It takes effect before the next message."""
        if not fa_status_suspend(self.word):
            raise OverflowError(f"more than {2**32 // FA_SUSPEND_UNIT - 1} suspensions")

    def resume(self) -> bool:
        """Take one suspension away; True when none is left. One too many stays at zero."""
        return fa_status_resume(self.word)

    def close(self) -> None:
        """Set Closed, for good. On the word of a cell: stop the cell."""
        if self.cell is not None:
            self.cell.stop()
        else:
            fa_status_close(self.word)

    def should_process(self) -> bool:
        """Whether the next message may be handled: neither closed nor suspended."""
        return fa_status_should_process(self.word)

    @property
    def suspend_count(self) -> int:
        return fa_status_value(self.word) // FA_SUSPEND_UNIT

    @property
    def is_scheduled(self) -> bool:
        return fa_status_value(self.word) & FA_SCHEDULED != 0

    @property
    def is_closed(self) -> bool:
        return fa_status_value(self.word) & FA_CLOSED != 0

    @property
    def value(self) -> int:
        return fa_status_value(self.word)

    def __repr__(self):
        return (
            f"<StatusWord {self.value}: closed={self.is_closed}, scheduled={self.is_scheduled}, "
            f"suspensions={self.suspend_count}>"
        )
