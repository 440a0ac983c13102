"""A spool: segments of a tape that wait in memory to be written to a file, and are read back.

The file belongs to the process alone and has no name, so it vanishes with the process. A thread
writes while the loop runs, and reads ahead of the backward loop, which reads segments in reverse.
It ends whenever it has nothing to do. At most two segments wait for it each way.
"""

from __future__ import annotations

import _thread
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from wend.runtime.packed import pack, unpack

_IN_FLIGHT = 2  # segments that wait to be written, or are read ahead
_READ_BUFFERS = _IN_FLIGHT + 2  # segments of the file that are in memory at once
# The part of a limit that closed segments may take; the rest is for those on their way
_CLOSED_SHARE = 0.6
# A wait looks again after this time: an interrupt may have lost what would have woken it
_WAIT_SECONDS = 0.1

# The spools in use, by process, thread, folder and limit
_spools: WeakValueDictionary[tuple[int, int, str, int], Spool] = WeakValueDictionary()


def current_spool(folder: str, limit: int) -> Spool:
    """Return the spool of this thread for a folder and a limit of bytes; 0: none stay in memory."""
    key = os.getpid(), threading.get_ident(), folder, limit
    spool = _spools.get(key)
    if spool is None or not spool.is_usable():
        spool = _spools[key] = Spool(folder, limit)
    return spool


class _Holding:
    """The share of a segment in memory and in the file; it leaves a note when it goes.

    It is an object of its own because nothing refers to it weakly: what has a `__del__` can be
    reached by weak references while that runs.

    Attributes:
        size: the number of bytes.
        block: the bytes, while they are in memory.
        offset: where they lie in the file, once they are written.
    """

    __slots__ = ("_notes", "block", "offset", "size")

    def __init__(self, block: np.ndarray, notes: deque[tuple[int | None, int, bool]]) -> None:
        self.block: np.ndarray | None = block
        self.size: int = block.nbytes
        self.offset: int | None = None
        self._notes = notes

    def __del__(self) -> None:
        self._notes.append((self.offset, self.size, self.block is not None))


class _OpenFile:
    """A file descriptor, closed when nobody refers to it: an object of its own, as a holding is."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self, _close: Callable[[int], None] = os.close) -> None:
        _close(self.number)


class SpoolSegment:
    """Values that a spool holds, until nobody refers to the segment.

    Attributes:
        forms: what lies where in its block of bytes, a form for each value.
        held: the bytes, in memory or in the file.
        previous: the preceding segment.
    """

    def __init__(
        self, spool: Spool, values: Iterable[Any], previous: ref[SpoolSegment] | None
    ) -> None:
        self._spool, self.previous = spool, previous
        self.forms, block = pack(values, spool.new_block)
        self.held = _Holding(block, spool.dropped)
        self.error: Exception | None = None  # of the last attempt to read it
        self.awaited_by: Any = None  # the lock of the spool that has queued a read of it
        self.is_shared = False  # whether values that somebody may hold are views of the block

    def read(self, index: int) -> Any:
        """Return one of the values.

        Raises:
            OSError: it cannot be read.
        """
        return unpack(self.forms[index], self._spool.load(self))


class Spool:
    """The segments that one thread makes, and the file that they are written to.

    The thread only runs jobs, which change nothing but their segment and the queue of finished
    jobs; the calling thread does the accounting. A signal handler that raises, wherever it does,
    leaves no lock taken and no segment half written.

    Attributes:
        dropped: what segments that are gone have held: offset, size, whether in memory.
        resident: the bytes of the blocks in memory.
        peak: the maximum so far.
        written: the bytes that have been written.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self.folder, self._closed_bytes = folder, int(limit * _CLOSED_SHARE)
        self.dropped: deque[tuple[int | None, int, bool]] = deque()
        self.resident = self.peak = self.written = 0
        self._is_broken = False
        self._file: _OpenFile | None = None
        self._end = 0
        self._holes: dict[int, list[int]] = {}  # offsets in the file that are free, by size
        self._newest: ref[SpoolSegment] | None = None
        self._unqueued: deque[tuple[ref[SpoolSegment], int]] = (
            deque()
        )  # and sizes, the oldest first
        self._unqueued_bytes = 0
        self._error: Exception | None = None  # of a write
        self._failed: ref[SpoolSegment] | None = None  # what was not written
        self._in_use: ref[SpoolSegment] | None = None
        self._loaded: deque[ref[SpoolSegment]] = deque()
        self._spare: list[np.ndarray] = []
        self._start_threads()

    def _start_threads(self) -> None:
        self._process = os.getpid()
        # Locks and queues of the standard library that are written in C: a signal handler that
        # raises inside of a `threading.Condition` leaves its lock taken, or released twice.
        self._lock = threading.RLock()  # of the accounts
        self._working = threading.Lock()  # taken by whoever runs the jobs
        self._finished: SimpleQueue[tuple[Callable[..., None], *tuple[Any, ...]]] = (
            SimpleQueue()
        )  # functions of the spool that account for them, and arguments
        self._urgent_jobs: deque[Callable[[], None]] = deque()
        self._jobs: deque[Callable[[], None]] = deque()
        self._has_no_threads = False
        self._being_written = 0

    def is_usable(self) -> bool:
        """Return whether segments may be added: no error was told, or is left to be told."""
        is_known = self._failed is not None and self._failed() is None
        return not self._is_broken and not is_known

    def is_working(self) -> bool:
        """Return whether jobs run, or wait for a thread to start."""
        return bool(self._urgent_jobs or self._jobs) or self._working.locked()

    def put(self, values: Iterable[Any]) -> SpoolSegment:
        """Return a segment of copies of some values, and let it be written if memory is full.

        Raises:
            OSError: this segment, or one before it, cannot be written.
        """
        segment = SpoolSegment(self, values, self._newest)
        self._newest = ref(segment)
        with self._lock:
            try:
                self._enqueue(segment)
                self._wait(lambda: self._being_written <= _IN_FLIGHT or self._error is not None)
                if self._error is not None:
                    raise self._error
            except BaseException:
                self._is_broken = True
                raise
        return segment

    def new_block(self, size: int) -> np.ndarray:
        """Return a block of bytes; a reused one has its pages mapped already."""
        with self._lock:
            self._collect()
            for k, block in enumerate(self._spare):
                if block.nbytes == size:
                    return self._spare.pop(k)
            self.resident -= sum(block.nbytes for block in self._spare)
            self._spare.clear()
            self._grow(size)
        return np.empty(size, np.uint8)

    def load(self, segment: SpoolSegment) -> np.ndarray:
        """Return the block of a segment, and read the two before it ahead.

        Raises:
            OSError: it cannot be read.
        """
        if self._process != os.getpid():
            self._start_threads()  # the child of a fork has no other threads
        with self._lock:
            self._collect()
            last = None if self._in_use is None else self._in_use()
            if last is not None and last is not segment:
                self._release(last)
            self._in_use = ref(segment)
            segment.is_shared = True
            self._queue_read(segment)
            ahead: SpoolSegment | None = segment
            for _ in range(_IN_FLIGHT):
                ahead = None if ahead is None or ahead.previous is None else ahead.previous()
                if ahead is not None:
                    self._queue_read(ahead)
            self._wait(lambda: segment.held.block is not None or segment.error is not None)
            if segment.held.block is None:
                error, segment.error = segment.error, None
                assert error is not None
                raise error
            return segment.held.block

    # The accounts: what follows runs with the lock taken, up to the jobs.
    def _collect(self, timeout: float = 0.0) -> None:
        """Account for finished jobs, after a wait for the first, and for segments that are gone.

        A segment may go at any time, and only leaves a note.
        """
        try:
            while timeout or not self._finished.empty():
                try:
                    account, *args = self._finished.get(timeout=timeout)
                except Empty:
                    break
                account(self, *args)
                timeout = 0.0
            while self.dropped:
                offset, size, was_resident = self.dropped.popleft()
                if was_resident:
                    self.resident -= size
                if offset is not None:
                    self._holes.setdefault(size, []).append(offset)
        except BaseException:  # from a signal handler: what was taken off a queue is lost
            self._is_broken = True
            raise

    def _enqueue(self, segment: SpoolSegment) -> None:
        self._unqueued.append((ref(segment), segment.held.size))
        self._unqueued_bytes += segment.held.size
        while self._unqueued_bytes > self._closed_bytes:
            oldest, size = self._unqueued.popleft()
            self._unqueued_bytes -= size
            self._queue_write(oldest, size)

    def _grow(self, size: int) -> None:
        self.resident += size
        self.peak = max(self.peak, self.resident)

    def _release(self, segment: SpoolSegment) -> None:
        """Free the memory of a segment that is in the file."""
        if segment.held.offset is not None and segment.held.block is not None:
            if not segment.is_shared and len(self._spare) < _IN_FLIGHT:
                self._spare.append(segment.held.block)
            else:
                self.resident -= segment.held.size
            segment.held.block = None

    def _wait(self, is_done: Callable[[], bool]) -> None:
        """Wait for the thread; without one, do its work here."""
        while not is_done():
            if self._has_no_threads:
                try:
                    with self._working:
                        self._run_jobs()
                except BaseException:  # from a signal handler: the job will run once more
                    self._is_broken = True
                    raise
            self._collect(_WAIT_SECONDS)

    def _queue(self, job: Callable[[], None], *, first: bool = False) -> None:
        (self._urgent_jobs if first else self._jobs).append(job)
        if self._working.locked():
            return
        try:
            # A signal handler that raises inside of `threading.Thread.start` leaves it half done.
            _thread.start_new_thread(self._work, ())
        except RuntimeError:  # the system, or the end of the process, allows no more
            self._has_no_threads = True

    def _work(self) -> None:
        """Run jobs until there are none, unless somebody does: the body of the thread."""
        while (self._urgent_jobs or self._jobs) and self._working.acquire(blocking=False):
            try:
                self._run_jobs()
            finally:
                self._working.release()

    def _run_jobs(self) -> None:
        while jobs := self._urgent_jobs or self._jobs:
            jobs[0]()
            jobs.popleft()  # not before: a signal handler may have raised

    def _queue_write(self, segment_ref: ref[SpoolSegment], size: int) -> None:
        if segment_ref() is None or not size:
            return
        if self._file is None:
            self._file = _OpenFile(_nameless_file(self.folder))
        holes = self._holes.get(size)
        offset = holes.pop() if holes else self._end
        self._end = max(self._end, offset + size)
        self._being_written += 1
        self._queue(lambda: self._write(segment_ref, offset, size))

    def _queue_read(self, segment: SpoolSegment) -> None:
        if segment.held.block is not None or segment.awaited_by is self._lock:
            return
        segment.error = None
        segment.awaited_by = self._lock
        segment_ref = ref(segment)
        is_needed = self._in_use is not None and self._in_use() is segment
        self._queue(lambda: self._read(segment_ref), first=is_needed)

    # The jobs run without the lock; what the caller accounts for goes into the queue.
    def _write(self, segment_ref: ref[SpoolSegment], offset: int, size: int) -> None:
        segment, error = segment_ref(), None
        try:
            if segment is not None and segment.held.block is not None and self._error is None:
                assert self._file is not None
                _write_all(self._file.number, segment.held.block, offset)
                segment.held.offset = offset
        except (OSError, MemoryError) as failure:
            error = failure.with_traceback(None)  # its frames hold the segment
        is_gone = segment is None
        self._finished.put((Spool._count_written, segment_ref, offset, size, is_gone, error))

    def _count_written(
        self,
        segment_ref: ref[SpoolSegment],
        offset: int,
        size: int,
        is_gone: bool,
        error: Exception | None,
    ) -> None:
        self._being_written -= 1
        if error is not None and self._error is None:
            self._error, self._failed = error, segment_ref
        if self._error is not None:
            return
        if is_gone:
            self._holes.setdefault(size, []).append(offset)
            return
        self.written += size
        segment = segment_ref()
        if segment is not None and (self._in_use is None or self._in_use() is not segment):
            self._release(segment)

    def _read(self, segment_ref: ref[SpoolSegment]) -> None:
        segment = segment_ref()
        if segment is None:
            return
        size = 0
        try:
            if segment.held.block is None:
                assert self._file is not None and segment.held.offset is not None
                block = np.empty(segment.held.size, np.uint8)
                _read_all(self._file.number, block, segment.held.offset)
                segment.held.block, size = block, block.nbytes
        except (OSError, MemoryError) as failure:
            segment.error = failure.with_traceback(None)  # its frames hold the segment
        segment.awaited_by = None
        self._finished.put((Spool._count_read, segment_ref, size))

    def _count_read(self, segment_ref: ref[SpoolSegment], size: int) -> None:
        if not size:
            return
        self._grow(size)
        self._loaded.append(segment_ref)
        if len(self._loaded) > _READ_BUFFERS:
            oldest = self._loaded.popleft()()
            if oldest is not None and (self._in_use is None or self._in_use() is not oldest):
                self._release(oldest)


def _nameless_file(folder: str) -> int:
    """Return a new file, of this user alone, that no name leads to."""
    flags = os.O_RDWR | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, flags | os.O_TMPFILE, 0o600)
        except OSError:
            pass  # not on this file system, or something is wrong, which the next lines tell
    file, name = tempfile.mkstemp(prefix="wend-", dir=folder)
    os.unlink(name)
    return file


def _write_all(file: int, block: np.ndarray, offset: int) -> None:
    remaining = block.data
    while remaining:
        count = os.pwrite(file, remaining, offset)
        remaining, offset = remaining[count:], offset + count


def _read_all(file: int, block: np.ndarray, offset: int) -> None:
    remaining = block.data
    while remaining:
        count = os.preadv(file, [remaining], offset)
        if not count:
            raise OSError("the file is shorter than what was written to it")
        remaining, offset = remaining[count:], offset + count
