/* Every collective in every form: blocking, nonblocking and persistent, with small counts and
 * with large ones. All forms of one must have the same result, of which rank 0 prints a sum.
 * An argument leaves out persistent ones, of which MPICH 4.0.2 does some wrongly. */
#include "class.h"

enum { N = 3, MOST = 64 };

static MPI_Comm comm;
static int in[N * MOST], out[N * MOST];
static unsigned long first;
static int forms;
static const char *running;
static int persistent = 1;

static void before(void)
{
    for (int i = 0; i < N * MOST; i++) {
        in[i] = (rank + 1) * 1000 + i;
        out[i] = -1 - rank;
    }
}

static void after(const char *form)
{
    unsigned long sum = 0, all;
    for (int i = 0; i < N * size; i++)
        sum = sum * 31 + (unsigned)out[i];
    sum *= rank + 1;
    MPI_Allreduce(&sum, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (forms++ == 0)
        first = all;
    else if (all != first && rank == 0)
        printf("%s, %s: %lx and not %lx\n", running, form, all, first);
}

static void done(int code)
{
    if (code != MPI_SUCCESS)
        error(running, code);
}

static void wait(int code, MPI_Request *r)
{
    if (code != MPI_SUCCESS || MPI_Wait(r, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        error(running, code);
}

static void twice(int code, MPI_Request *r, const char *form)
{
    for (int i = 0; i < 2 * persistent; i++) {
        before();
        MPI_Start(r);
        wait(code, r);
        after(form);
    }
    MPI_Request_free(r);
}

#define ARGS(...) __VA_ARGS__
/* The arguments of both forms are in parentheses. */
#define FORMS(name, inone, small, large) \
    do { \
        MPI_Request r; \
        running = #name, forms = 0; \
        before(), done(MPI_##name(ARGS small, comm)), after("blocking"); \
        before(), done(MPI_##name##_c(ARGS large, comm)), after("blocking, large"); \
        before(), wait(MPI_##inone(ARGS small, comm, &r), &r), after("nonblocking"); \
        before(), wait(MPI_##inone##_c(ARGS large, comm, &r), &r), after("nonblocking, large"); \
        twice(MPI_##name##_init(ARGS small, comm, MPI_INFO_NULL, &r), &r, "persistent"); \
        twice(MPI_##name##_init_c(ARGS large, comm, MPI_INFO_NULL, &r), &r, "persistent, large"); \
        if (rank == 0) \
            printf("%s %lx\n", #name, first); \
    } while (0)
#define SAME(name, inone, ...) FORMS(name, inone, (__VA_ARGS__), (__VA_ARGS__))

/* Counts, displacements and types, for all ranks or for neighbours. */
static int counts[MOST], displs[MOST], bytes[MOST];
static MPI_Count large_counts[MOST];
static MPI_Aint large_displs[MOST], large_bytes[MOST];
static MPI_Datatype types[MOST];

static void lists(void)
{
    for (int i = 0; i < MOST; i++) {
        large_counts[i] = counts[i] = 1 + i % 2;
        large_displs[i] = displs[i] = i * 2;
        large_bytes[i] = bytes[i] = i * 2 * (int)sizeof(int);
        types[i] = MPI_INT;
    }
}

static void everybody(void)
{
    int root = size - 1, me = counts[rank];

    SAME(Bcast, Ibcast, rank == root ? in : out, N, MPI_INT, root);
    SAME(Gather, Igather, in, 2, MPI_INT, out, 2, MPI_INT, root);
    SAME(Scatter, Iscatter, in, 2, MPI_INT, out, 2, MPI_INT, root);
    SAME(Allgather, Iallgather, in, N, MPI_INT, out, N, MPI_INT);
    SAME(Alltoall, Ialltoall, in, N, MPI_INT, out, N, MPI_INT);
    SAME(Reduce, Ireduce, in, out, N, MPI_INT, MPI_SUM, root);
    SAME(Allreduce, Iallreduce, in, out, N, MPI_INT, MPI_MAX);
    SAME(Scan, Iscan, in, out, N, MPI_INT, MPI_SUM);
    SAME(Exscan, Iexscan, in, out, N, MPI_INT, MPI_SUM);
    SAME(Reduce_scatter_block, Ireduce_scatter_block, in, out, N, MPI_INT, MPI_SUM);
    FORMS(Reduce_scatter, Ireduce_scatter, (in, out, counts, MPI_INT, MPI_SUM), (in, out, large_counts, MPI_INT, MPI_SUM));
    FORMS(Gatherv, Igatherv, (in, me, MPI_INT, out, counts, displs, MPI_INT, root), (in, me, MPI_INT, out, large_counts, large_displs, MPI_INT, root));
    FORMS(Scatterv, Iscatterv, (in, counts, displs, MPI_INT, out, me, MPI_INT, root), (in, large_counts, large_displs, MPI_INT, out, me, MPI_INT, root));
    FORMS(Allgatherv, Iallgatherv, (in, me, MPI_INT, out, counts, displs, MPI_INT), (in, me, MPI_INT, out, large_counts, large_displs, MPI_INT));
    for (int i = 0; i < MOST; i++) /* of all to all, each sends what the other expects */
        large_counts[i] = counts[i] = 2;
    FORMS(Alltoallv, Ialltoallv, (in, counts, displs, MPI_INT, out, counts, displs, MPI_INT),
          (in, large_counts, large_displs, MPI_INT, out, large_counts, large_displs, MPI_INT));
    FORMS(Alltoallw, Ialltoallw, (in, counts, bytes, types, out, counts, bytes, types), (in, large_counts, large_bytes, types, out, large_counts, large_bytes, types));
}

static void neighbours(void)
{
    SAME(Neighbor_allgather, Ineighbor_allgather, in, N, MPI_INT, out, N, MPI_INT);
    SAME(Neighbor_alltoall, Ineighbor_alltoall, in, N, MPI_INT, out, N, MPI_INT);
    FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, (in, 2, MPI_INT, out, counts, displs, MPI_INT), (in, 2, MPI_INT, out, large_counts, large_displs, MPI_INT));
    FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, (in, counts, displs, MPI_INT, out, counts, displs, MPI_INT),
          (in, large_counts, large_displs, MPI_INT, out, large_counts, large_displs, MPI_INT));
    FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, (in, counts, large_bytes, types, out, counts, large_bytes, types),
          (in, large_counts, large_bytes, types, out, large_counts, large_bytes, types));
}

static void barriers(void)
{
    MPI_Request r;
    running = "Barrier";
    forms = 0;
    done(MPI_Barrier(comm));
    wait(MPI_Ibarrier(comm, &r), &r);
    twice(MPI_Barrier_init(comm, MPI_INFO_NULL, &r), &r, "persistent");
    say("Barrier", 1);
}

int main(int argc, char **argv)
{
    int period = 1;
    begin(&argc, &argv);
    persistent = argc < 2;
    comm = MPI_COMM_WORLD;
    lists();
    everybody();
    barriers();
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 0, &comm);
    neighbours();
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
