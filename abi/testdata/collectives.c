/* Collectives in their three forms, on 4 ranks. Rank 0 prints what it and the others find. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static MPI_Comm comm;

/* tell prints a sum over all ranks of what they have got, and where. */
static void tell(const char *what, const int *v, int n)
{
    long sum = 0, all[64];
    for (int i = 0; i < n; i++)
        sum = (sum * 31 + v[i]) % 1000003;
    MPI_Send(&sum, 1, MPI_LONG, 0, 99, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s:", what);
        for (int r = 0; r < size; r++) {
            MPI_Recv(&all[r], 1, MPI_LONG, r, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf(" %ld", all[r]);
        }
        printf("\n");
    }
}

static int out[256], in[256], counts[8], displs[8], sdispls[8], bytes[8], sbytes[8];
static MPI_Datatype types[8];

static void fill(void)
{
    for (int i = 0; i < 256; i++)
        out[i] = rank * 1000 + i, in[i] = -1 - rank * 7 - i % 5;
    for (int r = 0; r < 8; r++) {
        counts[r] = r + 1, displs[r] = 30 - 4 * r - r * (r + 1) / 2, sdispls[r] = 10 * r;
        bytes[r] = 4 * displs[r], sbytes[r] = 4 * sdispls[r], types[r] = MPI_INT;
    }
}

/* Each form of a call: 0 blocks, 1 is to be waited for, 2 is to be started twice. */
#define FORMS(what, name, ...)                                                                                                                     \
    do {                                                                                                                                           \
        MPI_Request r;                                                                                                                             \
        fill();                                                                                                                                    \
        MPI_##name(__VA_ARGS__, comm);                                                                                                             \
        tell(what, in, 256);                                                                                                                       \
        fill();                                                                                                                                    \
        MPI_I##name##_(__VA_ARGS__, comm, &r);                                                                                                     \
        MPI_Wait(&r, MPI_STATUS_IGNORE);                                                                                                           \
        tell(what " later", in, 256);                                                                                                              \
        fill();                                                                                                                                    \
        MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &r);                                                                                   \
        for (int i = 0; i < 2; i++) {                                                                                                              \
            MPI_Start(&r);                                                                                                                         \
            MPI_Wait(&r, MPI_STATUS_IGNORE);                                                                                                       \
        }                                                                                                                                          \
        MPI_Request_free(&r);                                                                                                                      \
        tell(what " again", in, 256);                                                                                                              \
    } while (0)

#define MPI_IGather_ MPI_Igather
#define MPI_IGatherv_ MPI_Igatherv
#define MPI_IScatter_ MPI_Iscatter
#define MPI_IScatterv_ MPI_Iscatterv
#define MPI_IAllgather_ MPI_Iallgather
#define MPI_IAllgatherv_ MPI_Iallgatherv
#define MPI_IAlltoall_ MPI_Ialltoall
#define MPI_IAlltoallv_ MPI_Ialltoallv
#define MPI_IAlltoallw_ MPI_Ialltoallw
#define MPI_IReduce_ MPI_Ireduce
#define MPI_IAllreduce_ MPI_Iallreduce
#define MPI_IReduce_scatter_ MPI_Ireduce_scatter
#define MPI_IReduce_scatter_block_ MPI_Ireduce_scatter_block
#define MPI_IScan_ MPI_Iscan
#define MPI_IExscan_ MPI_Iexscan
#define MPI_IBcast_ MPI_Ibcast
#define MPI_INeighbor_allgather_ MPI_Ineighbor_allgather
#define MPI_INeighbor_allgatherv_ MPI_Ineighbor_allgatherv
#define MPI_INeighbor_alltoall_ MPI_Ineighbor_alltoall
#define MPI_INeighbor_alltoallv_ MPI_Ineighbor_alltoallv
#define MPI_INeighbor_alltoallw_ MPI_Ineighbor_alltoallw

static void affine(void *a, void *b, int *n, MPI_Datatype *t) /* does not commute */
{
    int *x = a, *y = b;
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*t, &lb, &extent);
    for (int i = 0; i < *n; i++, x += extent / 4, y += extent / 4) {
        y[1] = (x[1] * y[0] + y[1]) % 1009;
        y[0] = x[0] * y[0] % 1009;
    }
}

static void forms(void)
{
    MPI_Op op;
    MPI_Datatype pair, wide;

    MPI_Barrier(comm);
    FORMS("bcast", Bcast, rank == 2 ? out : in, 40, MPI_INT, 2);
    FORMS("gather", Gather, out, 5, MPI_INT, in, 5, MPI_INT, 1);
    FORMS("gather in place", Gather, rank == 1 ? MPI_IN_PLACE : out, 5, MPI_INT, in, 5, MPI_INT, 1);
    FORMS("gatherv", Gatherv, out, rank + 1, MPI_INT, in, counts, displs, MPI_INT, 3);
    FORMS("scatter", Scatter, out, 5, MPI_INT, in, 5, MPI_INT, 1);
    FORMS("scatter in place", Scatter, out, 5, MPI_INT, rank == 1 ? MPI_IN_PLACE : in, 5, MPI_INT, 1);
    FORMS("scatterv", Scatterv, out, counts, displs, MPI_INT, in, rank + 1, MPI_INT, 3);
    FORMS("allgather", Allgather, out, 6, MPI_INT, in, 6, MPI_INT);
    FORMS("allgather in place", Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 6, MPI_INT);
    FORMS("allgatherv", Allgatherv, out, rank + 1, MPI_INT, in, counts, displs, MPI_INT);
    FORMS("alltoall", Alltoall, out, 7, MPI_INT, in, 7, MPI_INT);
    for (int i = 0; i < 8; i++)
        counts[i] = i + rank + 1;
    fill();
    int even[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    FORMS("alltoallv", Alltoallv, out, even, sdispls, MPI_INT, in, even, displs, MPI_INT);
    FORMS("alltoallw", Alltoallw, out, even, sbytes, types, in, even, bytes, types);
    FORMS("alltoallv in place", Alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, even, sdispls, MPI_INT);
    FORMS("reduce", Reduce, out, in, 50, MPI_INT, MPI_SUM, 2);
    FORMS("reduce in place", Reduce, rank == 2 ? MPI_IN_PLACE : out, rank == 2 ? in : NULL, 50, MPI_INT, MPI_MAX, 2);
    FORMS("allreduce", Allreduce, out, in, 50, MPI_INT, MPI_BXOR);
    FORMS("maxloc", Allreduce, out, in, 50, MPI_2INT, MPI_MAXLOC);
    FORMS("reduce_scatter", Reduce_scatter, out, in, counts, MPI_INT, MPI_MIN);
    FORMS("reduce_scatter_block", Reduce_scatter_block, out, in, 5, MPI_INT, MPI_SUM);
    FORMS("scan", Scan, out, in, 9, MPI_INT, MPI_SUM);
    FORMS("exscan", Exscan, out, in, 9, MPI_INT, MPI_SUM);

    MPI_Op_create(affine, 0, &op);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 16, &wide);
    MPI_Type_commit(&wide);
    FORMS("own operation", Allreduce, out, in, 10, wide, op);
    FORMS("own operation, reduce", Reduce, out, in, 10, wide, op, 1);
    FORMS("own operation, scan", Scan, out, in, 10, wide, op);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    MPI_Type_free(&wide);
    MPI_Type_vector(5, 1, 3, MPI_INT, &wide);
    MPI_Type_commit(&wide);
    FORMS("bcast of a vector", Bcast, rank == 0 ? out : in, 2, wide, 0);
    FORMS("allgather of vectors", Allgather, out, 10, MPI_INT, in, 2, wide);
    MPI_Type_free(&wide);
}

static void backwards(void) /* displacements below the buffer */
{
    int c[8], d[8];
    fill();
    for (int r = 0; r < size; r++)
        c[r] = 2, d[r] = -2 * r;
    MPI_Allgatherv(out, 2, MPI_INT, in + 100, c, d, MPI_INT, comm);
    tell("allgatherv backwards", in, 256);
}

static void large(void)
{
    MPI_Count c[8];
    MPI_Aint d[8];
    fill();
    for (int r = 0; r < size; r++)
        c[r] = r + 1, d[r] = 20 - 5 * r;
    MPI_Allgatherv_c(out, rank + 1, MPI_INT, in, c, d, MPI_INT, comm);
    tell("large allgatherv", in, 256);
    MPI_Allreduce_c(out, in, 20, MPI_INT, MPI_SUM, comm);
    tell("large allreduce", in, 256);
}

#define WRONG(call)                                                                                                                                \
    do {                                                                                                                                           \
        int rc = call;                                                                                                                             \
        if (rank == 0)                                                                                                                             \
            printf("%s: %s\n", #call, name(rc));                                                                                                   \
    } while (0)

static const char *name(int code)
{
    static const struct {
        int class;
        const char *name;
    } names[] = {{MPI_ERR_COUNT, "COUNT"}, {MPI_ERR_TYPE, "TYPE"}, {MPI_ERR_ARG, "ARG"}, {MPI_ERR_OP, "OP"}, {MPI_ERR_BUFFER, "BUFFER"},
                 {MPI_ERR_ROOT, "ROOT"}, {MPI_ERR_COMM, "COMM"}, {MPI_ERR_TOPOLOGY, "TOPOLOGY"}, {MPI_ERR_OTHER, "OTHER"}};
    int c = MPI_SUCCESS;
    if (code == MPI_SUCCESS)
        return "fine";
    MPI_Error_class(code, &c);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].class == c)
            return names[i].name;
    return "another class";
}

static void errors(void)
{
    MPI_Request r;
    MPI_Datatype vec;

    fill();
    MPI_Type_vector(2, 1, 2, MPI_INT, &vec);
    WRONG(MPI_Barrier(MPI_COMM_NULL));
    WRONG(MPI_Bcast(in, -1, MPI_INT, 0, comm));
    WRONG(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, comm));
    WRONG(MPI_Bcast(in, 1, vec, 0, comm));
    WRONG(MPI_Bcast(in, 1, MPI_INT, size, comm));
    WRONG(MPI_Bcast(in, 1, MPI_INT, -1000, comm));
    WRONG(MPI_Bcast(in, 1, MPI_INT, MPI_ROOT, comm));
    WRONG(MPI_Bcast(NULL, 1, MPI_INT, 0, comm));
    WRONG(MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_NULL));
    WRONG(MPI_Ibcast(in, -1, MPI_INT, 0, comm, &r));
    WRONG(MPI_Gather(out, -1, MPI_INT, in, 1, MPI_INT, 0, comm));
    WRONG(MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, size, comm));
    WRONG(MPI_Allgather(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, comm));
    WRONG(MPI_Allgather(out, 1, MPI_INT, in, -1, MPI_INT, comm));
    WRONG(MPI_Alltoall(out, -1, MPI_INT, in, -1, MPI_INT, comm));
    WRONG(MPI_Reduce(out, in, 1, MPI_INT, MPI_OP_NULL, 0, comm));
    WRONG(MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, size, comm));
    WRONG(MPI_Allreduce(out, in, 1, MPI_INT, MPI_OP_NULL, comm));
    WRONG(MPI_Allreduce(out, in, 1, MPI_INT, MPI_MAXLOC, comm));
    WRONG(MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_BOR, comm));
    WRONG(MPI_Allreduce(out, out, 1, MPI_INT, MPI_SUM, comm));
    WRONG(MPI_Allreduce(NULL, in, 1, MPI_INT, MPI_SUM, comm));
    WRONG(MPI_Iallreduce(out, in, 1, MPI_INT, MPI_OP_NULL, comm, &r));
    MPI_Type_free(&vec);
}

static void neighbors(void)
{
    MPI_Comm world = comm;
    int dims[2] = {4, 1}, periods[2] = {1, 0};
    MPI_Aint at[8], sat[8];
    for (int i = 0; i < 8; i++)
        at[i] = 40 * i, sat[i] = 20 * i;
    MPI_Cart_create(world, 2, dims, periods, 0, &comm);
    FORMS("neighbor allgather", Neighbor_allgather, out, 4, MPI_INT, in, 4, MPI_INT);
    fill();
    FORMS("neighbor alltoall", Neighbor_alltoall, out, 4, MPI_INT, in, 4, MPI_INT);
    int same[4] = {3, 3, 3, 3};
    FORMS("neighbor allgatherv", Neighbor_allgatherv, out, 3, MPI_INT, in, same, displs, MPI_INT);
    FORMS("neighbor alltoallv", Neighbor_alltoallv, out, same, sdispls, MPI_INT, in, same, displs, MPI_INT);
    FORMS("neighbor alltoallw", Neighbor_alltoallw, out, same, sat, types, in, same, at, types);
    MPI_Comm_free(&comm);
    comm = world;
}

static void groups(void)
{
    MPI_Comm half, world = comm;
    int me, root;
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Comm_rank(half, &me);
    MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, &comm);
    root = rank % 2 ? 1 : me == 1 ? MPI_ROOT : MPI_PROC_NULL; /* the second of the even ones */
    fill();
    MPI_Bcast(rank % 2 ? in : out, 30, MPI_INT, root, comm);
    tell("inter bcast", in, 256);
    FORMS("inter gather", Gather, out, 5, MPI_INT, in, 5, MPI_INT, root);
    FORMS("inter scatter", Scatter, out, 5, MPI_INT, in, 5, MPI_INT, root);
    FORMS("inter allgather", Allgather, out, 6, MPI_INT, in, 6, MPI_INT);
    FORMS("inter alltoall", Alltoall, out, 6, MPI_INT, in, 6, MPI_INT);
    FORMS("inter reduce", Reduce, out, in, 20, MPI_INT, MPI_SUM, root);
    FORMS("inter allreduce", Allreduce, out, in, 20, MPI_INT, MPI_SUM);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
    comm = world;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    forms();
    backwards();
    large();
    neighbors();
    groups();
    errors();
    MPI_Finalize();
    return 0;
}
