/* What MPICH's tests found: communicators that are freed in different orders, accumulates of
 * nothing, what is left after errors, and the like; on 4 ranks. */
#include "class.h"

static const int zero, three = 3;

/* Each rank frees the communicators with its neighbours, that with the next one first, and one
 * with a message under way. */
static void frees(void)
{
    MPI_Comm pair[4], c;
    MPI_Group world, g;
    MPI_Request r;
    int word = 0, next = (rank + 1) % size, before = (rank + size - 1) % size;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < size; i++) {
        MPI_Group_incl(world, 2, (int[]){i, (i + 1) % size}, &g);
        MPI_Comm_create(MPI_COMM_WORLD, g, &pair[i]);
        MPI_Group_free(&g);
    }
    MPI_Group_free(&world);
    MPI_Comm_free(&pair[rank]);
    MPI_Comm_free(&pair[before]);
    say("freed:", pair[rank] == MPI_COMM_NULL && next != before);

    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    if (rank == 1) {
        MPI_Irecv(&word, 1, MPI_INT, 0, 0, c, &r);
        MPI_Comm_free(&c);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Ssend(&three, 1, MPI_INT, 1, 0, c);
        MPI_Comm_free(&c);
    }
    MPI_Bcast(&word, 1, MPI_INT, 1, MPI_COMM_WORLD);
    say("got", word);
}

static void logical(void)
{
    MPI_Aint a = rank, b = 0;
    MPI_Offset c = rank + 1, d = 0;
    MPI_Count e = rank == 2, f = 0;
    MPI_Allreduce(&a, &b, 1, MPI_AINT, MPI_LAND, MPI_COMM_WORLD);
    MPI_Allreduce(&c, &d, 1, MPI_OFFSET, MPI_LOR, MPI_COMM_WORLD);
    MPI_Allreduce(&e, &f, 1, MPI_COUNT, MPI_LXOR, MPI_COMM_WORLD);
    ints("logical", (int[]){b, d, f}, 3);
}

/* Nothing fits everything. */
static void nothing(void)
{
    int memory[4] = {1, 2, 3, 4};
    double from[4];
    MPI_Datatype empty;
    MPI_Request r[2];
    MPI_Win w;

    MPI_Type_contiguous(0, MPI_FLOAT, &empty);
    MPI_Type_commit(&empty);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, w);
    error("other types", MPI_Accumulate(from, 0, MPI_DOUBLE, 0, 0, 0, MPI_INT, MPI_SUM, w));
    error("empty types", MPI_Accumulate(from, 3, empty, 0, 0, 0, MPI_INT, MPI_SUM, w));
    error("fetched", MPI_Get_accumulate(from, 0, MPI_DOUBLE, from, 2, empty, 0, 0, 0, MPI_INT, MPI_SUM, w));
    error("requests", MPI_Raccumulate(from, 0, MPI_DOUBLE, 0, 0, 1, empty, MPI_SUM, w, &r[0]));
    error("requests", MPI_Rget_accumulate(from, 0, MPI_DOUBLE, from, 0, MPI_INT, 0, 0, 1, empty, MPI_BAND, w, &r[1]));
    error("waited", MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    MPI_Type_free(&empty);
    ints("memory", memory, 4);
}

/* After an error there is no new object; MPICH 4.0 leaves what was there. */
static void none(void)
{
    MPI_Comm c;
    MPI_Datatype t;
    int code;
#define COMM(call) \
    c = MPI_COMM_WORLD; \
    code = call; \
    say(code == MPI_SUCCESS ? "no error: " #call : #call, c == MPI_COMM_NULL);
#define TYPE(call) \
    t = MPI_INT; \
    code = call; \
    say(code == MPI_SUCCESS ? "no error: " #call : #call, t == MPI_DATATYPE_NULL);
    COMM(MPI_Comm_dup(MPI_COMM_NULL, &c))
    COMM(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &c))
    COMM(MPI_Comm_create_group(MPI_COMM_NULL, MPI_GROUP_EMPTY, 0, &c))
    COMM(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &c))
    COMM(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &c))
    COMM(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){9}, &zero, 0, &c))
    COMM(MPI_Cart_sub(MPI_COMM_WORLD, &zero, &c))
    COMM(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){1}, (int[]){8}, 0, &c))
    COMM(MPI_Dist_graph_create(MPI_COMM_WORLD, -1, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c))
    COMM(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, -1, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c))
    COMM(MPI_Intercomm_create(MPI_COMM_WORLD, 9, MPI_COMM_WORLD, 0, 0, &c))
    COMM(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &c))
    TYPE(MPI_Type_contiguous(-1, MPI_INT, &t))
    TYPE(MPI_Type_dup(MPI_DATATYPE_NULL, &t))
    TYPE(MPI_Type_vector(-1, 1, 1, MPI_INT, &t))
    TYPE(MPI_Type_create_struct(1, (int[]){-1}, (MPI_Aint[]){0}, (MPI_Datatype[]){MPI_INT}, &t))
    TYPE(MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 4, &t))
}

/* Nothing for nobody needs no datatype. */
static void nobody(void)
{
    MPI_Request r[2];
    error("send", MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    error("receive", MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    error("send", MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[0]));
    error("receive", MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[1]));
    error("both", MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    error("1 for nobody", MPI_Send(NULL, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    error("1 from nobody", MPI_Recv(NULL, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void grids(void)
{
    int dims[11] = {0}, one[2] = {2, 2}, periods[2] = {0}, n = 9;
    MPI_Comm grid, point;

    MPI_Dims_create(163296, 11, dims);
    ints("dims", dims, 11);
    memset(dims, 0, sizeof dims);
    MPI_Dims_create(472392, 11, dims);
    ints("dims", dims, 11);
    memset(dims, 0, sizeof dims);
    MPI_Dims_create(6125, 2, dims);
    ints("dims", dims, 2);
    MPI_Cart_create(MPI_COMM_WORLD, 2, one, periods, 0, &grid);
    MPI_Cart_sub(grid, (int[]){0, 0}, &point);
    if (point != MPI_COMM_NULL)
        MPI_Cartdim_get(point, &n);
    MPI_Allgather(&n, 1, MPI_INT, dims, 1, MPI_INT, MPI_COMM_WORLD);
    ints("dimensions", dims, 4);
    if (point != MPI_COMM_NULL)
        MPI_Comm_free(&point);
    MPI_Comm_free(&grid);
}

/* A send that waits for its receive is taken back; MPICH 4.0 waits for ever. */
static void cancel(void)
{
    static char long_one[1 << 20];
    int taken, found;
    MPI_Request r;
    MPI_Status st;

    for (int how = 0; how < 3; how++) {
        if (rank == 0) {
            if (how == 0)
                MPI_Issend(&three, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &r);
            else if (how == 1)
                MPI_Isend(long_one, sizeof long_one, MPI_CHAR, 1, 6, MPI_COMM_WORLD, &r);
            else {
                MPI_Ssend_init(&three, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &r);
                MPI_Start(&r);
            }
            MPI_Cancel(&r);
            MPI_Wait(&r, &st);
            MPI_Test_cancelled(&st, &taken);
            say("taken back", taken);
            if (r != MPI_REQUEST_NULL)
                MPI_Request_free(&r);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iprobe(0, 6, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Bcast(&found, 1, MPI_INT, 1, MPI_COMM_WORLD);
        say("found", found);
    }
}

/* Who has operations in the epoch of a fence has not ended it. */
static void fenced(void)
{
    int memory[2] = {0, 0}, got;
    MPI_Datatype same;
    MPI_Group g;
    MPI_Win w;

    MPI_Type_contiguous(1, MPI_INT, &same);
    MPI_Type_commit(&same);
    MPI_Comm_group(MPI_COMM_SELF, &g);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, w);
    error("put", MPI_Put(&three, 1, MPI_INT, rank, 0, 1, MPI_INT, w));
    error("derived", MPI_Fetch_and_op(&three, &got, same, rank, 1, MPI_SUM, w));
    error("post", MPI_Win_post(g, 0, w));
    error("start", MPI_Win_start(g, 0, w));
    error("lock", MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w));
    error("fence", MPI_Win_fence(MPI_MODE_NOSUCCEED, w));
    MPI_Win_free(&w);
    MPI_Group_free(&g);
    MPI_Type_free(&same);
}

/* What MPI_Status_set_elements counts is elements of predefined datatypes, in MPICH of the one given. */
static void elements(void)
{
#ifdef MPI_ABI_VERSION
    const int each = 1;
#else
    const int each = 6;
#endif
    MPI_Datatype t;
    MPI_Status st;
    MPI_Count large = 0;
    int n = 0, count = 0;

    MPI_Type_vector(3, 2, 4, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Status_set_elements(&st, t, 12 / each);
    MPI_Get_elements(&st, t, &n);
    MPI_Get_count(&st, t, &count);
    ints("elements", (int[]){n, count}, 2);
    MPI_Status_set_elements_x(&st, t, 6 / each);
    MPI_Get_elements_x(&st, t, &large);
    say("elements", large);
    MPI_Type_free(&t);
}

/* Rank 1 has another length than the others: somebody finds out, and nobody waits for ever, as
 * on MPICH. */
static void lengths(void)
{
    int from[20] = {0}, to[20], n = rank == 1 ? 3 : 2, error, any;
    MPI_Comm c;
    for (int how = 0; how < 7; how++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        error = how == 0   ? MPI_Bcast(from, n, MPI_INT, 0, c)
                : how == 1 ? MPI_Allreduce(from, to, n, MPI_INT, MPI_SUM, c)
                : how == 2 ? MPI_Reduce(from, to, n, MPI_INT, MPI_SUM, 0, c)
                : how == 3 ? MPI_Gather(from, n, MPI_INT, to, n, MPI_INT, 0, c)
                : how == 4 ? MPI_Allgather(from, n, MPI_INT, to, n, MPI_INT, c)
                : how == 5 ? MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, c)
                           : MPI_Scan(from, to, n, MPI_INT, MPI_SUM, c);
        if (error != MPI_SUCCESS)
            MPI_Error_class(error, &error);
        MPI_Allreduce(&error, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        say("truncated:", any == MPI_ERR_TRUNCATE);
        MPI_Comm_free(&c);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    frees();
    logical();
    nothing();
    nobody();
    grids();
    fenced();
    elements();
    if (argc > 1) {
        none();
        cancel();
        lengths();
    }
    MPI_Finalize();
    return 0;
}
