"""Parallel loops: the scheduler that the calling thread and the helper threads share.

    void wend.parallel(function, context, count, cost, most)
                               call function(context, from, size, thread) on parts of a loop
    void wend.chunks(function, context, count, most, limit, words)
                               the same on chunks that may take long, one at a time
    void wend.tasks(function, context, count, size, most, limit, words)
                               the same on chunks of a size, each of which takes long
    void wend.serve(thread)    the body of a helper thread: work until told to stop
    void wend.join(count)      set the number of helpers; 0 tells them to stop
    void wend.forget()         reset the state in a fork, where the helpers do not exist

The caller takes chunks like the helpers, and waits only for chunks that have been started: a helper
that wakes up late costs nothing. Only one loop at a time has helpers. A caller that finds them busy
runs its loop alone, as does one with a small loop, so nobody waits for a lock.

How long a chunk takes is not known before. So the caller computes the first ones by itself, until
they have taken 0.05 ms. A caller that waits for helpers handles signals; the error of its handler
sets the limit, an i64 below which chunks may go on, to -1.

After a loop helpers spin for a third of a millisecond, yielding to other threads; then they sleep.
To wake one takes as long on a virtual machine, and the next loop often comes sooner.
"""

from __future__ import annotations

from wend.backends.native.rt.clock import NOW

NAMES = ("wend.parallel", "wend.chunks", "wend.tasks", "wend.serve", "wend.join", "wend.forget")

# The least cost of a loop that is worth waking up helpers, in units of `cost`: about 0.1 ms
MIN_PARALLEL_COST = 1 << 20
# The least cost of a chunk, and the most chunks for each thread
_MIN_CHUNK_COST, _MAX_CHUNKS_PER_THREAD = 1 << 17, 4
# Chunks that have run for so long on one thread are worth waking up helpers for the others
_MIN_CHUNKS_NS = 50_000
_MAX_SPINS = 1_000  # polls for work before a helper sleeps: some 0.3 ms
_OPEN_BIT = 1 << 32  # set in `inside` while there are chunks; the rest counts active helpers

DECLARATION = """declare void @wend.parallel(ptr, ptr, i64, i64, i64) nounwind
declare void @wend.chunks(ptr, ptr, i64, i64, ptr, ptr) nounwind
declare void @wend.tasks(ptr, ptr, i64, i64, i64, ptr, ptr) nounwind"""

# 128 bytes hold a pthread_mutex_t or pthread_cond_t on every platform.
LIBRARY = f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @wend.safepoint(ptr, ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

@mutex = internal global [128 x i8] zeroinitializer, align 64
@bell = internal global [128 x i8] zeroinitializer, align 64
; How many threads serve; whether they help somebody; how many sleep; which loop it is
@serving = internal global i64 0, align 64
@busy = internal global i32 0, align 64
@asleep = internal global i64 0, align 64
@ticket = internal global i64 0, align 64
@inside = internal global i64 0, align 64
@next = internal global i64 0, align 64
; The loop: function, context, how many steps, how many a part has, how many threads
@loop = internal global {{ ptr, ptr, i64, i64, i64 }} zeroinitializer, align 64

define void @wend.parallel(ptr %function, ptr %context, i64 %count, i64 %cost, i64 %most) {{
  %total = mul i64 %count, %cost
  %little = icmp slt i64 %total, {MIN_PARALLEL_COST}
  br i1 %little, label %alone, label %ask
alone:
  call void %function(ptr %context, i64 0, i64 %count, i64 0)
  ret void
ask:
  %serving = load atomic i64, ptr @serving monotonic, align 8
  %threads0 = add i64 %serving, 1
  %threads = call i64 @llvm.umin.i64(i64 %threads0, i64 %most)
  %many = mul i64 %threads, {_MAX_CHUNKS_PER_THREAD}
  %worth = udiv i64 %total, {_MIN_CHUNK_COST}
  %parts0 = call i64 @llvm.umin.i64(i64 %many, i64 %worth)
  %parts = call i64 @llvm.umax.i64(i64 %parts0, i64 1)
  %up0 = add i64 %count, %parts
  %up = sub i64 %up0, 1
  %size0 = udiv i64 %up, %parts
  ; Vectors of whole parts have nothing left over
  %long = icmp uge i64 %size0, 256
  %size1 = add i64 %size0, 63
  %size2 = and i64 %size1, -64
  %size = select i1 %long, i64 %size2, i64 %size0
  call void @wend.tasks(ptr %function, ptr %context, i64 %count, i64 %size, i64 %most,
    ptr null, ptr null)
  ret void
}}

; Run parts of so many steps on all threads, from the first step on; a signal sets the limit
define internal void @wend.post(ptr %function, ptr %context, i64 %first, i64 %count, i64 %size,
    i64 %most, ptr %limit, ptr %words) {{
  %counter = alloca [2 x i64]
  %trips.at = getelementptr i64, ptr %counter, i64 1
  store i64 1, ptr %trips.at
  %f.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 0
  %c.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 1
  %n.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 2
  %s.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 3
  %m.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 4
  store ptr %function, ptr %f.at
  store ptr %context, ptr %c.at
  store i64 %count, ptr %n.at
  store i64 %size, ptr %s.at
  store i64 %most, ptr %m.at
  store atomic i64 %first, ptr @next monotonic, align 8
  %opened = atomicrmw or ptr @inside, i64 {_OPEN_BIT} seq_cst
  %rung = atomicrmw add ptr @ticket, i64 1 seq_cst
  %asleep = load atomic i64, ptr @asleep seq_cst, align 8
  %all.awake = icmp eq i64 %asleep, 0
  br i1 %all.awake, label %work, label %wake
wake:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %rings = call i32 @pthread_cond_broadcast(ptr @bell)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  call void @wend.parts(i64 0)
  %closed = atomicrmw and ptr @inside, i64 {_OPEN_BIT - 1} seq_cst
  br label %wait
wait:
  %watched = phi ptr [ %words, %work ], [ %watched, %yield ], [ %watched, %watch ], [ null, %end ]
  %left = load atomic i64, ptr @inside acquire, align 8
  %over = icmp eq i64 %left, 0
  br i1 %over, label %done, label %yield
yield:
  %yielded = call i32 @sched_yield()
  %deaf = icmp eq ptr %watched, null
  br i1 %deaf, label %wait, label %watch
watch:
  store i64 0, ptr %counter
  %trips = call i64 @wend.safepoint(ptr %watched, ptr %counter)
  %raised = icmp eq i64 %trips, 0
  br i1 %raised, label %end, label %wait
end:
  store atomic i64 -1, ptr %limit monotonic, align 8
  br label %wait
done:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}}


define void @wend.chunks(ptr %function, ptr %context, i64 %count, i64 %most, ptr %limit,
    ptr %words) {{
  %serving = load atomic i64, ptr @serving monotonic, align 8
  %none = icmp eq i64 %serving, 0
  %one = icmp slt i64 %most, 2
  %alone = or i1 %none, %one
  %began = call i64 @wend.now()
  br label %look
look:
  %k = phi i64 [ 0, %0 ], [ %k1, %time ]
  %left = sub i64 %count, %k
  %few = icmp slt i64 %left, 2
  %last = or i1 %few, %alone
  br i1 %last, label %rest, label %step
step:
  call void %function(ptr %context, i64 %k, i64 1, i64 0)
  %k1 = add i64 %k, 1
  br label %time
time:
  %now = call i64 @wend.now()
  %took = sub i64 %now, %began
  %short = icmp ult i64 %took, {_MIN_CHUNKS_NS}
  br i1 %short, label %look, label %ask
ask:
  %left1 = sub i64 %count, %k1
  %few1 = icmp slt i64 %left1, 2
  br i1 %few1, label %rest, label %try
try:
  %was = atomicrmw xchg ptr @busy, i32 1 acquire
  %mine = icmp eq i32 %was, 0
  br i1 %mine, label %post, label %rest
post:
  call void @wend.post(ptr %function, ptr %context, i64 %k1, i64 %count, i64 1, i64 %most,
    ptr %limit, ptr %words)
  ret void
rest:
  %from = phi i64 [ %k, %look ], [ %k1, %ask ], [ %k1, %try ]
  %many = sub i64 %count, %from
  call void %function(ptr %context, i64 %from, i64 %many, i64 0)
  ret void
}}

define void @wend.tasks(ptr %function, ptr %context, i64 %count, i64 %size, i64 %most, ptr %limit,
    ptr %words) {{
  %serving = load atomic i64, ptr @serving monotonic, align 8
  %none = icmp eq i64 %serving, 0
  %whole = icmp sle i64 %count, %size
  %not = or i1 %none, %whole
  br i1 %not, label %alone, label %try
try:
  %was = atomicrmw xchg ptr @busy, i32 1 acquire
  %mine = icmp eq i32 %was, 0
  br i1 %mine, label %post, label %alone
post:
  call void @wend.post(ptr %function, ptr %context, i64 0, i64 %count, i64 %size, i64 %most,
    ptr %limit, ptr %words)
  ret void
alone:
  call void %function(ptr %context, i64 0, i64 %count, i64 0)
  ret void
}}

{NOW}

; Run parts as long as there are any
define internal void @wend.parts(i64 %thread) {{
  %f.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 0
  %c.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 1
  %n.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 2
  %s.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 3
  %function = load ptr, ptr %f.at
  %context = load ptr, ptr %c.at
  %count = load i64, ptr %n.at
  %size = load i64, ptr %s.at
  br label %take
take:
  %from = atomicrmw add ptr @next, i64 %size monotonic
  %some = icmp slt i64 %from, %count
  br i1 %some, label %run, label %done
run:
  %rest = sub i64 %count, %from
  %mine = call i64 @llvm.umin.i64(i64 %size, i64 %rest)
  call void %function(ptr %context, i64 %from, i64 %mine, i64 %thread)
  br label %take
done:
  ret void
}}

define void @wend.serve(i64 %thread) {{
  %at.first = load atomic i64, ptr @ticket acquire, align 8
  br label %look
look:
  %seen = phi i64 [ %at.first, %0 ], [ %new, %left ], [ %seen, %again ]
  %looks = phi i64 [ 0, %0 ], [ 0, %left ], [ %looks.next, %again ]
  %new = load atomic i64, ptr @ticket seq_cst, align 8
  %same = icmp eq i64 %new, %seen
  br i1 %same, label %rest, label %enter
rest:
  %serving = load atomic i64, ptr @serving acquire, align 8
  %stop = icmp ult i64 %serving, %thread
  br i1 %stop, label %done, label %tired
tired:
  %looks1 = add i64 %looks, 1
  %long = icmp ugt i64 %looks, {_MAX_SPINS}
  br i1 %long, label %lie, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %again
again:
  %looks.next = phi i64 [ %looks1, %yield ], [ 0, %awake ]
  br label %look
lie:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %more = atomicrmw add ptr @asleep, i64 1 seq_cst
  br label %sleep
sleep:
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %nothing = icmp eq i64 %now, %seen
  %serving2 = load atomic i64, ptr @serving seq_cst, align 8
  %stay = icmp uge i64 %serving2, %thread
  %sleeps = and i1 %nothing, %stay
  br i1 %sleeps, label %sleeping, label %awake
sleeping:
  %slept = call i32 @pthread_cond_wait(ptr @bell, ptr @mutex)
  br label %sleep
awake:
  %fewer = atomicrmw sub ptr @asleep, i64 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %again
enter:
  %before = atomicrmw add ptr @inside, i64 1 seq_cst
  %open = and i64 %before, {_OPEN_BIT}
  %is.open = icmp ne i64 %open, 0
  br i1 %is.open, label %may, label %left
may:
  %m.at = getelementptr {{ ptr, ptr, i64, i64, i64 }}, ptr @loop, i32 0, i32 4
  %most = load i64, ptr %m.at
  %wanted = icmp ult i64 %thread, %most
  br i1 %wanted, label %help, label %left
help:
  call void @wend.parts(i64 %thread)
  br label %left
left:
  %out = atomicrmw sub ptr @inside, i64 1 seq_cst
  br label %look
done:
  ret void
}}

define void @wend.join(i64 %count) {{
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i64 %count, ptr @serving seq_cst, align 8
  %rings = call i32 @pthread_cond_broadcast(ptr @bell)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}}

define void @wend.forget() {{
  %mutex = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %bell = call i32 @pthread_cond_init(ptr @bell, ptr null)
  store atomic i64 0, ptr @serving seq_cst, align 8
  store atomic i64 0, ptr @asleep seq_cst, align 8
  store atomic i64 0, ptr @inside seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}}
"""
