/* Windows of all flavors and all synchronization, on 4 ranks. */
#include "class.h"

static int next, before;

static void meet(void)
{
    int word = 0, got;
    for (int i = 1; i < size; i++)
        MPI_Sendrecv(&word, 1, MPI_INT, (rank + i) % size, 90, &got, 1, MPI_INT, (rank + size - i) % size, 90, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* operations does each of them on the memory of the next rank, which has 16 ints, in an epoch. */
static void fences(MPI_Win w, int *memory)
{
    int out[4] = {rank, rank + 10, rank + 20, rank + 30}, in[4] = {0};

    for (int i = 0; i < 16; i++)
        memory[i] = i;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w);
    MPI_Put(out, 4, MPI_INT, next, 2, 4, MPI_INT, w);
    MPI_Win_fence(0, w);
    ints("put", memory, 8);
    MPI_Get(in, 4, MPI_INT, next, 2, 4, MPI_INT, w);
    MPI_Win_fence(0, w);
    ints("got", in, 4);
    MPI_Accumulate(out, 2, MPI_INT, 0, 8, 2, MPI_INT, MPI_SUM, w);
    MPI_Win_fence(0, w);
    ints("sum", memory + 8, 2);
    MPI_Put(NULL, 0, MPI_INT, next, 0, 0, MPI_INT, w);
    MPI_Put(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
}

static void passive(MPI_Win w, int *memory)
{
    int one = 1, was = -1, swapped = -1, results[2] = {-1, -1}, in[2] = {0}, out[2] = {100 + rank, 200 + rank};
    MPI_Request q[2];

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w);
    for (int i = 0; i < 16; i++)
        memory[i] = 0;
    MPI_Win_unlock(rank, w);
    meet();
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w);
    for (int i = 0; i < 10; i++)
        MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 0, MPI_SUM, w);
    MPI_Win_unlock(0, w);
    meet();
    MPI_Win_lock_all(0, w);
    MPI_Fetch_and_op(NULL, &was, MPI_INT, 0, 0, MPI_NO_OP, w);
    MPI_Win_flush(0, w);
    say("counted", was);
    meet();
    int zero = 0, mine = rank + 1;
    MPI_Compare_and_swap(&mine, &zero, &swapped, MPI_INT, next, 1, w);
    MPI_Win_flush_all(w);
    say("swapped", swapped);
    MPI_Compare_and_swap(&mine, &zero, &swapped, MPI_INT, next, 1, w);
    MPI_Win_flush_local(next, w);
    say("not swapped", swapped);
    MPI_Get_accumulate(out, 2, MPI_INT, results, 2, MPI_INT, next, 4, 2, MPI_INT, MPI_REPLACE, w);
    MPI_Win_flush_local_all(w);
    ints("results", results, 2);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, results, 2, MPI_INT, next, 4, 2, MPI_INT, MPI_NO_OP, w);
    MPI_Win_flush(next, w);
    ints("results", results, 2);
    MPI_Rput(out, 2, MPI_INT, next, 8, 2, MPI_INT, w, &q[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(next, w);
    MPI_Rget(in, 2, MPI_INT, next, 8, 2, MPI_INT, w, &q[0]);
    MPI_Raccumulate(out, 2, MPI_INT, next, 12, 2, MPI_INT, MPI_MAX, w, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    ints("got", in, 2);
    MPI_Win_flush(next, w);
    MPI_Rget_accumulate(out, 2, MPI_INT, in, 2, MPI_INT, next, 12, 2, MPI_INT, MPI_SUM, w, &q[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    ints("got", in, 2);
    MPI_Win_sync(w);
    MPI_Win_unlock_all(w);
    meet();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, w);
    ints("memory", memory + 1, 13);
    MPI_Win_unlock(rank, w);
    meet();
}

static void active(MPI_Win w, int *memory)
{
    MPI_Group world, to, from;
    int out = 1000 + rank, flag = 0;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &next, &to);
    MPI_Group_incl(world, 1, &before, &from);
    MPI_Win_post(from, 0, w);
    MPI_Win_start(to, 0, w);
    MPI_Put(&out, 1, MPI_INT, next, 5, 1, MPI_INT, w);
    MPI_Win_complete(w);
    MPI_Win_wait(w);
    say("posted", memory[5]);
    MPI_Win_post(from, MPI_MODE_NOSTORE, w);
    MPI_Win_start(to, 0, w);
    MPI_Accumulate(&out, 1, MPI_INT, next, 5, 1, MPI_INT, MPI_SUM, w);
    MPI_Win_complete(w);
    while (!flag)
        MPI_Win_test(w, &flag);
    say("posted", memory[5]);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&world);
}

static void all(const char *flavor, MPI_Win w, int *memory)
{
    if (rank == 0)
        printf("%s\n", flavor);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    fences(w, memory);
    passive(w, memory);
    active(w, memory);
}

static void shared(void)
{
    MPI_Win w;
    int *mine, *theirs, unit, *flavor, flag;
    MPI_Aint bytes;

    MPI_Win_allocate_shared(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    all("shared", w, mine);
    MPI_Win_get_attr(w, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    say("flavor:", *flavor == MPI_WIN_FLAVOR_SHARED);
    MPI_Win_shared_query(w, next, &bytes, &unit, &theirs);
    say("bytes", bytes);
    say("unit", unit);
    MPI_Win_fence(0, w);
    theirs[3] = 70 + rank;
    MPI_Win_fence(0, w);
    say("stored", mine[3]);
    MPI_Win_shared_query(w, MPI_PROC_NULL, &bytes, &unit, &theirs);
    say("first:", rank || theirs == mine);
    MPI_Win_free(&w);
    MPI_Win_allocate_shared(rank ? 0 : 10, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    MPI_Win_shared_query(w, 0, &bytes, &unit, &theirs);
    say("bytes", bytes);
    MPI_Win_free(&w);
}

static void dynamic(void)
{
    MPI_Win w;
    int memory[4] = {0, 0, 0, 0}, out[2] = {rank + 5, rank + 6};
    MPI_Aint mine, theirs;

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Win_attach(w, memory, sizeof memory);
    mine = (MPI_Aint)memory;
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, before, 1, &theirs, sizeof mine, MPI_BYTE, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, w);
    MPI_Put(out, 2, MPI_INT, next, MPI_Aint_add(theirs, 4), 2, MPI_INT, w);
    MPI_Win_fence(0, w);
    ints("attached", memory, 4);
    meet();
    error("detach", MPI_Win_detach(w, memory));
    MPI_Win_free(&w);
}

static void names(MPI_Win w)
{
    char name[MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Group g;
    MPI_Info info;

    MPI_Win_get_name(w, name, &n);
    say("name", n);
    MPI_Win_set_name(w, "window");
    MPI_Win_get_name(w, name, &n);
    if (rank == 0)
        printf("%s %d\n", name, n);
    MPI_Win_get_group(w, &g);
    MPI_Group_size(g, &n);
    say("ranks", n);
    MPI_Group_free(&g);
    MPI_Win_get_info(w, &info);
    MPI_Info_get(info, "no_locks", 10, name, &n);
    if (rank == 0)
        printf("%s %d\n", name, n);
    MPI_Info_free(&info);
}

static int handled;

static void handler(MPI_Win *w, int *code, ...) { handled = *w == MPI_WIN_NULL ? -1 : 1; }

static void errors(MPI_Win w)
{
    int x = 0;
    MPI_Errhandler h;
    MPI_Win bad;

    MPI_Win_fence(0, w);
    error("rank 9", MPI_Put(&x, 1, MPI_INT, 9, 0, 1, MPI_INT, w));
    error("count -1", MPI_Put(&x, -1, MPI_INT, 0, 0, 1, MPI_INT, w));
    error("count -1 there", MPI_Get(&x, 1, MPI_INT, 0, 0, -1, MPI_INT, w));
    error("no datatype", MPI_Put(&x, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, w));
    error("no datatype there", MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_DATATYPE_NULL, w));
    error("no operation", MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, w));
    error("no window", MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL));
    error("swap of doubles", MPI_Compare_and_swap(&x, &x, &x, MPI_DOUBLE, 0, 0, w));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    error("put outside of an epoch", MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, w));
    error("unlock without a lock", MPI_Win_unlock(0, w));
    error("complete without start", MPI_Win_complete(w));
    error("flush without a lock", MPI_Win_flush(0, w));
    error("unit 0", MPI_Win_create(&x, sizeof x, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &bad));
    error("size -1", MPI_Win_create(&x, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &bad));
    error("no communicator", MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_NULL, &bad));
    MPI_Win_create_errhandler(handler, &h);
    MPI_Win_set_errhandler(w, h);
    MPI_Errhandler_free(&h);
    MPI_Put(&x, 1, MPI_INT, 9, 0, 1, MPI_INT, w);
    say("handled", handled);
}

static void alloc(void)
{
    int *memory, *more;
    MPI_Win w;

    MPI_Alloc_mem(16 * sizeof(int), MPI_INFO_NULL, &memory);
    MPI_Alloc_mem(0, MPI_INFO_NULL, &more);
    MPI_Free_mem(more);
    MPI_Win_create(memory, 16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    fences(w, memory);
    MPI_Win_free(&w);
    error("free", MPI_Free_mem(memory));
}

/* columns puts a column of a matrix into a column of that of the next rank, and adds another one. */
static void columns(void)
{
    int matrix[4][4], i, j;
    MPI_Datatype column;
    MPI_Win w;

    for (i = 0; i < 4; i++)
        for (j = 0; j < 4; j++)
            matrix[i][j] = 100 * rank + 10 * i + j;
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win_create(matrix, sizeof matrix, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_fence(0, w);
    MPI_Put(&matrix[0][0], 1, column, next, 1, 1, column, w);
    MPI_Accumulate(&matrix[0][0], 1, column, next, 3, 1, column, MPI_SUM, w);
    MPI_Win_fence(0, w);
    ints("columns", matrix[0], 16);
    MPI_Win_free(&w);
    MPI_Type_free(&column);
}

int main(int argc, char **argv)
{
    MPI_Win w;
    int memory[16], *allocated;

    begin(&argc, &argv);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    all("create", w, memory);
    names(w);
    errors(w);
    MPI_Win_free(&w);
    say("freed:", w == MPI_WIN_NULL);
    MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &w);
    all("allocate", w, allocated);
    MPI_Win_free(&w);
    if (argc == 1)
        shared();
    dynamic();
    alloc();
    columns();
    MPI_Finalize();
    return 0;
}
