"""What programs in Python do most, through mpi4py and numpy, each with its answer."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size

# Objects
assert world.sendrecv({"of": rank, "list": [1.5] * rank}, right, 5, source=left, recvtag=5) == {"of": left, "list": [1.5] * left}
assert world.allreduce(rank) == size * (size - 1) // 2
assert world.allgather(str(rank)) == [str(r) for r in range(size)]
assert world.bcast({"x": 1} if rank == 0 else None) == {"x": 1}
assert world.scatter([r * r for r in range(size)] if rank == 0 else None) == rank * rank
assert world.alltoall([(rank, r) for r in range(size)]) == [(r, rank) for r in range(size)]
assert world.scan(1) == rank + 1
assert world.gather(rank) == (list(range(size)) if rank == 0 else None)
sent = world.isend(b"x" * 100_000, right)
assert len(world.recv(source=left)) == 100_000
sent.wait()

# Arrays
mine = np.arange(1000, dtype="d") + rank
theirs = np.empty_like(mine)
world.Allreduce(mine, theirs)
assert np.allclose(theirs, np.arange(1000) * size + size * (size - 1) / 2)
column = MPI.DOUBLE.Create_vector(10, 1, 10).Commit()
matrix = np.zeros((10, 10))
matrix[:, 0] = rank
request, got = world.Isend([matrix, 1, column], right, 3), np.empty(10)
world.Recv(got, left, 3)
request.Wait()
assert (got == left).all()
column.Free()
pair = [world.Send_init([mine, MPI.DOUBLE], right, 9), world.Recv_init([theirs, MPI.DOUBLE], left, 9)]
for _ in range(3):
    MPI.Prequest.Startall(pair)
    MPI.Request.Waitall(pair)
assert (theirs == np.arange(1000) + left).all()
for p in pair:
    p.Free()


def add(a, b, datatype):
    total = np.frombuffer(b, "d")
    total += np.frombuffer(a, "d")


op = MPI.Op.Create(add, commute=True)
ones = np.empty(4)
world.Allreduce(np.ones(4), ones, op)
assert (ones == size).all()
op.Free()

# Windows
window = MPI.Win.Allocate(8 * size, 8, comm=world)
memory = np.frombuffer(window, "d")
memory[:] = -1
window.Fence()
window.Put(np.array([float(rank)]), right, target=rank)
window.Fence()
assert memory[left] == left
window.Lock_all()
old = np.zeros(1)
window.Get_accumulate(np.ones(1), old, 0, target=0, op=MPI.SUM)
window.Flush_all()
window.Unlock_all()
window.Free()

# Communicators
half = world.Split(rank % 2, -rank)
assert half.size == len(range(rank % 2, size, 2))
half.Free()
key = MPI.Comm.Create_keyval(copy_fn=lambda comm, key, value: value)
world.Set_attr(key, {"kept": 1})
copy = world.Dup()
assert copy.Get_attr(key) == {"kept": 1}
copy.Free()
ring = world.Create_cart([size], [True])
assert ring.Shift(0, 1) == (left, right)
ring.Free()
try:
    world.Send(np.zeros(1), size + 5)
    raise AssertionError("there is no such rank")
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_RANK

if rank == 0:
    print(size, "ranks in mpi4py")
