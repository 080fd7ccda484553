# MPI in a process that is no program in C: the library is loaded late, and works beside the
# interpreter's threads, signals and child processes.
import ctypes, signal, subprocess, sys, threading

mpi = ctypes.CDLL(sys.argv[1])
WORLD, INT, SUM = (ctypes.c_void_p(h) for h in (0x101, 0x208, 0x21))
ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
level = ctypes.c_int()
assert mpi.MPI_Init_thread(None, None, 4096, ctypes.byref(level)) == 0 and level.value == 4096
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def count():
    for i in range(2000):
        value, back = ctypes.c_int(i), ctypes.c_int()
        mpi.MPI_Sendrecv(ctypes.byref(value), 1, INT, rank, 1, ctypes.byref(back), 1, INT, rank, 1, WORLD, None)
        assert back.value == i


thread = threading.Thread(target=count)
thread.start()
thread.join()
while len(ticks) < 10:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
assert subprocess.run([sys.executable, "-c", "raise SystemExit(3)"]).returncode == 3
mine, total = ctypes.c_int(rank.value + 1), ctypes.c_int()
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, INT, SUM, WORLD)
assert total.value == size.value * (size.value + 1) // 2, total.value
if rank.value == 0:
    print(size.value, "ranks in Python")
mpi.MPI_Finalize()
