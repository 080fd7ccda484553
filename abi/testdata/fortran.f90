program f
  use mpi
  implicit none
  integer :: ierr, rank, n, w, key, comm
  integer(kind=MPI_ADDRESS_KIND) :: value, extra, bytes, disp
  logical :: flag
  integer :: memory(4), x(2), r, status(MPI_STATUS_SIZE)
  external :: query, release, cancel
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  memory = 0
  bytes = 16
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, w, ierr)
  call MPI_Win_fence(0, w, ierr)
  x = (/ rank + 1, rank + 2 /)
  disp = 1
  call MPI_Put(x, 2, MPI_INTEGER, mod(rank + 1, n), disp, 2, MPI_INTEGER, w, ierr)
  call MPI_Win_fence(0, w, ierr)
  if (rank == 0) print *, memory
  call MPI_Win_free(w, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, comm, ierr)
  x = rank
  call MPI_Allreduce(MPI_IN_PLACE, x, 2, MPI_INTEGER, MPI_SUM, comm, ierr)
  if (rank == 0) print *, x
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  if (rank == 0) print *, flag, value > 32767
  extra = 5
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, extra, ierr)
  value = 42
  call MPI_Comm_set_attr(comm, key, value, ierr)
  value = 0
  call MPI_Comm_get_attr(comm, key, value, flag, ierr)
  if (rank == 0) print *, flag, value
  call MPI_Comm_free(comm, ierr)
  call MPI_Grequest_start(query, release, cancel, extra, r, ierr)
  call MPI_Cancel(r, ierr)
  call MPI_Grequest_complete(r, ierr)
  call MPI_Wait(r, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, n, ierr)
  if (rank == 0) print *, ierr == MPI_SUCCESS, n, extra
  call MPI_Finalize(ierr)
end program

subroutine query(extra, status, ierr)
  use mpi
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: status(MPI_STATUS_SIZE), ierr
  call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierr)
  call MPI_Status_set_cancelled(status, .false., ierr)
  status(MPI_SOURCE) = MPI_UNDEFINED
  status(MPI_TAG) = MPI_UNDEFINED
end subroutine

subroutine release(extra, ierr)
  use mpi
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: ierr
  extra = extra + 10
  ierr = MPI_SUCCESS
end subroutine

subroutine cancel(extra, complete, ierr)
  use mpi
  integer(kind=MPI_ADDRESS_KIND) :: extra
  logical :: complete
  integer :: ierr
  if (.not. complete) extra = extra + 1
  ierr = MPI_SUCCESS
end subroutine
