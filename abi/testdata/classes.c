/* The classes of errors in arguments, on 2 ranks. None of these calls sends anything. */
#include "class.h"

#define TRY(call) error(#call, call)
/* MPICH 4.0.2 does not find these, and ends, or says another class than the standard. */
#define OURS(call) \
    if (ours) \
    error(#call, call)

static int ours;

static int buf[100], counts[2] = {1, 1}, negative[2] = {-1, 1}, displs[2], n, flag;
static MPI_Request r = MPI_REQUEST_NULL;
static MPI_Status st;
static MPI_Datatype open, t; /* open is not committed */
static MPI_Comm c;
static MPI_Group g;
static MPI_Info info;

static void messages(void)
{
    MPI_Message m = MPI_MESSAGE_NULL;
    TRY(MPI_Send(buf, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, open, 0, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, 2, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, -10, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD));
    TRY(MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    TRY(MPI_Send(buf, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    TRY(MPI_Recv(buf, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &st));
    TRY(MPI_Recv(buf, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, &st));
    TRY(MPI_Recv(buf, 1, MPI_INT, 0, -5, MPI_COMM_WORLD, &st));
    TRY(MPI_Recv(buf, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, &st));
    TRY(MPI_Irecv(buf, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, &r));
    TRY(MPI_Isend(buf, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, &r));
    TRY(MPI_Isend_c(buf, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &r));
    TRY(MPI_Ssend_init(buf, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, &r));
    TRY(MPI_Recv_init(buf, 1, MPI_INT, 0, -7, MPI_COMM_WORLD, &r));
    TRY(MPI_Sendrecv(buf, 1, MPI_INT, 9, 0, buf + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &st));
    OURS(MPI_Sendrecv_replace(buf, -1, MPI_INT, 0, 0, 0, 0, MPI_COMM_WORLD, &st));
    TRY(MPI_Probe(2, 0, MPI_COMM_WORLD, &st));
    TRY(MPI_Iprobe(0, -9, MPI_COMM_WORLD, &flag, &st));
    TRY(MPI_Mprobe(2, 0, MPI_COMM_WORLD, &m, &st));
    TRY(MPI_Mrecv(buf, 1, MPI_INT, &m, &st));
    TRY(MPI_Get_count(&st, MPI_DATATYPE_NULL, &n));
    TRY(MPI_Bsend(buf, 100, MPI_INT, 0, 0, MPI_COMM_WORLD));
    TRY(MPI_Buffer_attach(buf, -1));
    TRY(MPI_Buffer_attach(NULL, 100));
    TRY(MPI_Status_set_elements(&st, MPI_INT, -1));
    TRY(MPI_Pack(buf, 1, MPI_INT, buf + 50, -1, &n, MPI_COMM_WORLD));
    TRY(MPI_Unpack(buf, -1, &n, buf + 50, 1, MPI_INT, MPI_COMM_WORLD));
    OURS(MPI_Pack(buf, 10, MPI_INT, buf + 50, 4, &(int){0}, MPI_COMM_WORLD));
}

static void requests(void)
{
    MPI_Request none = MPI_REQUEST_NULL, list[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    TRY(MPI_Wait(&none, &st));
    TRY(MPI_Waitall(2, list, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitall(-1, list, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitany(2, list, &n, &st));
    say("none:", n == MPI_UNDEFINED);
    TRY(MPI_Request_free(&none));
    TRY(MPI_Cancel(&none));
    TRY(MPI_Start(&none));
    TRY(MPI_Grequest_complete(none));
}

static void collectives(void)
{
    TRY(MPI_Bcast(buf, 1, MPI_INT, 2, MPI_COMM_WORLD));
    TRY(MPI_Bcast(buf, 1, MPI_INT, -1, MPI_COMM_WORLD));
    TRY(MPI_Bcast(buf, -1, MPI_INT, 0, MPI_COMM_WORLD));
    TRY(MPI_Bcast(buf, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    TRY(MPI_Bcast(buf, 1, open, 0, MPI_COMM_WORLD));
    TRY(MPI_Bcast(buf, 1, MPI_INT, 0, MPI_COMM_NULL));
    TRY(MPI_Reduce(buf, buf + 10, 1, MPI_INT, MPI_OP_NULL, 0, MPI_COMM_WORLD));
    TRY(MPI_Reduce(buf, buf + 10, 1, MPI_FLOAT, MPI_BAND, 0, MPI_COMM_WORLD));
    TRY(MPI_Reduce(buf, buf + 10, 1, MPI_CHAR, MPI_SUM, 0, MPI_COMM_WORLD));
    TRY(MPI_Reduce(buf, buf + 10, 1, MPI_INT, MPI_REPLACE, 0, MPI_COMM_WORLD));
    TRY(MPI_Exscan(buf, buf + 10, 1, MPI_INT, MPI_NO_OP, MPI_COMM_WORLD));
    TRY(MPI_Reduce(buf, buf + 10, 1, MPI_INT, MPI_SUM, 7, MPI_COMM_WORLD));
    OURS(MPI_Allreduce(buf, buf + 10, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    TRY(MPI_Allreduce(buf, buf, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OURS(MPI_Allreduce(buf, buf + 10, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD));
    TRY(MPI_Allreduce(buf, buf + 10, 1, MPI_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    TRY(MPI_Gather(buf, 1, MPI_INT, buf + 10, 1, MPI_INT, 9, MPI_COMM_WORLD));
    TRY(MPI_Scatter(buf, 1, MPI_INT, buf + 10, -1, MPI_INT, 0, MPI_COMM_WORLD));
    TRY(MPI_Allgather(buf, 1, MPI_INT, buf + 10, -1, MPI_INT, MPI_COMM_WORLD));
    TRY(MPI_Alltoall(buf, 1, MPI_DATATYPE_NULL, buf + 10, 1, MPI_INT, MPI_COMM_WORLD));
    TRY(MPI_Alltoallv(buf, negative, displs, MPI_INT, buf + 10, counts, displs, MPI_INT, MPI_COMM_WORLD));
    TRY(MPI_Ibcast(buf, 1, MPI_INT, 5, MPI_COMM_WORLD, &r));
    TRY(MPI_Reduce_local(buf, buf + 10, 1, MPI_INT, MPI_OP_NULL));
    TRY(MPI_Barrier(MPI_COMM_NULL));
    TRY(MPI_Op_free(&(MPI_Op){MPI_SUM}));
}

static void communicators(void)
{
    int ranks[2] = {0, 0}, range[1][3] = {{0, 1, 0}};
    MPI_Group none = MPI_GROUP_NULL, made;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Errhandler h;
    TRY(MPI_Comm_rank(MPI_COMM_NULL, &n));
    TRY(MPI_Comm_size(MPI_COMM_NULL, &n));
    TRY(MPI_Comm_dup(MPI_COMM_NULL, &c));
    TRY(MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL}));
    OURS(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &c));
    TRY(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &c));
    TRY(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &c));
    OURS(MPI_Comm_remote_size(MPI_COMM_WORLD, &n));
    TRY(MPI_Comm_get_errhandler(MPI_COMM_NULL, &h));
    TRY(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &n));
    TRY(MPI_Comm_free_keyval(&(int){MPI_KEYVAL_INVALID}));
    TRY(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, NULL));
    TRY(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &world, &flag));
    TRY(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL));
    TRY(MPI_Intercomm_create(MPI_COMM_WORLD, 9, MPI_COMM_WORLD, 0, 0, &c));
    OURS(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &c));
    TRY(MPI_Group_size(MPI_GROUP_NULL, &n));
    TRY(MPI_Group_free(&none));
    MPI_Comm_group(MPI_COMM_WORLD, &g);
    OURS(MPI_Group_incl(g, 2, ranks, &made));
    TRY(MPI_Group_incl(g, -1, ranks, &made));
    TRY(MPI_Group_incl(g, 1, (int[]){7}, &made));
    TRY(MPI_Group_excl(g, 1, (int[]){-7}, &made));
    TRY(MPI_Group_range_incl(g, 1, range, &made));
    TRY(MPI_Group_range_incl(g, 1, (int[1][3]){{1, 0, 1}}, &made));
    TRY(MPI_Group_range_excl(g, 1, (int[1][3]){{0, 1, -1}}, &made));
    TRY(MPI_Group_translate_ranks(g, 1, ranks, g, NULL));
    TRY(MPI_Group_translate_ranks(g, 1, (int[]){9}, g, ranks));
    MPI_Group_free(&g);
}

static void types(void)
{
    MPI_Aint at = 0;
    TRY(MPI_Type_contiguous(-1, MPI_INT, &t));
    TRY(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
    TRY(MPI_Type_vector(-1, 1, 1, MPI_INT, &t));
    TRY(MPI_Type_vector(1, -1, 1, MPI_INT, &t));
    TRY(MPI_Type_indexed(1, (int[]){-1}, (int[]){0}, MPI_INT, &t));
    TRY(MPI_Type_create_struct(1, (int[]){-1}, &at, (MPI_Datatype[]){MPI_INT}, &t));
    TRY(MPI_Type_create_struct(1, (int[]){1}, &at, (MPI_Datatype[]){MPI_DATATYPE_NULL}, &t));
    OURS(MPI_Type_create_subarray(1, (int[]){4}, (int[]){5}, (int[]){0}, MPI_ORDER_C, MPI_INT, &t));
    OURS(MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){3}, MPI_ORDER_C, MPI_INT, &t));
    TRY(MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){0}, 99, MPI_INT, &t));
    TRY(MPI_Type_free(&(MPI_Datatype){MPI_INT}));
    TRY(MPI_Type_free(&(MPI_Datatype){MPI_DATATYPE_NULL}));
    TRY(MPI_Type_commit(&(MPI_Datatype){MPI_DATATYPE_NULL}));
    TRY(MPI_Type_commit(&(MPI_Datatype){MPI_INT}));
    TRY(MPI_Type_size(MPI_DATATYPE_NULL, &n));
    TRY(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &t));
    n = MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 16, &t) == MPI_SUCCESS;
    say("16 bytes as the ABI has it:", n == (MPI_INTEGER16 != MPI_DATATYPE_NULL));
    TRY(MPI_Type_set_attr(MPI_INT, MPI_KEYVAL_INVALID, NULL));
}

/* what has no room for its result */
static void nulls(void)
{
    TRY(MPI_Comm_rank(MPI_COMM_WORLD, NULL));
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, NULL));
    TRY(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL));
    TRY(MPI_Isend(buf, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL));
    TRY(MPI_Wait(NULL, &st));
    TRY(MPI_Get_count(&st, MPI_INT, NULL));
    TRY(MPI_Type_contiguous(1, MPI_INT, NULL));
    TRY(MPI_Info_create(NULL));
    TRY(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitsome(1, NULL, &n, buf, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitsome(1, &r, &n, NULL, MPI_STATUSES_IGNORE));
    TRY(MPI_Startall(1, NULL));
    TRY(MPI_Type_create_struct(1, counts, &(MPI_Aint){0}, NULL, &t));
    TRY(MPI_Type_get_contents(open, 1, 0, 1, NULL, NULL, &t));
    TRY(MPI_Type_get_contents(open, 1, 0, 1, &n, NULL, NULL));
    TRY(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL, &flag));
    TRY(MPI_Comm_set_name(MPI_COMM_WORLD, NULL));
    TRY(MPI_Comm_get_name(MPI_COMM_WORLD, NULL, &n));
    TRY(MPI_Type_get_name(MPI_INT, NULL, &n));
    TRY(MPI_Error_string(MPI_ERR_TAG, NULL, &n));
    TRY(MPI_Add_error_string(MPI_ERR_LASTCODE, NULL));
    TRY(MPI_Get_processor_name(NULL, &n));
    TRY(MPI_Get_library_version(NULL, &n));
    TRY(MPI_Op_create(NULL, 1, &(MPI_Op){MPI_OP_NULL}));
    OURS(MPI_Comm_get_name(MPI_COMM_NULL, (char[MPI_MAX_OBJECT_NAME]){0}, &n));
    OURS(MPI_Win_get_name(MPI_WIN_NULL, (char[MPI_MAX_OBJECT_NAME]){0}, &n));
}

static void topologies(void)
{
    int dims[1] = {9}, periods[1] = {0}, zero[2] = {0, 3};
    TRY(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &c));
    TRY(MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &c));
    TRY(MPI_Cart_coords(MPI_COMM_WORLD, 0, 1, dims));
    TRY(MPI_Cart_rank(MPI_COMM_WORLD, dims, &n));
    TRY(MPI_Cartdim_get(MPI_COMM_WORLD, &n));
    TRY(MPI_Graphdims_get(MPI_COMM_WORLD, &n, &n));
    TRY(MPI_Dims_create(4, 2, zero));
    TRY(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &n, &n, &flag));
    TRY(MPI_Neighbor_allgather(buf, 1, MPI_INT, buf + 10, 1, MPI_INT, MPI_COMM_WORLD));
}

static void infos(void)
{
    char value[10];
    MPI_Win w;
    OURS(MPI_Info_free(&(MPI_Info){MPI_INFO_NULL}));
    OURS(MPI_Info_set(MPI_INFO_NULL, "a", "b"));
    MPI_Info_create(&info);
    TRY(MPI_Info_set(info, "", "b"));
    TRY(MPI_Info_delete(info, "missing"));
    TRY(MPI_Info_get_nthkey(info, 3, value));
    TRY(MPI_Info_get(info, "missing", 5, value, &flag));
    MPI_Info_free(&info);
    TRY(MPI_Error_class(MPI_SUCCESS, &n));
    TRY(MPI_Win_free(&(MPI_Win){MPI_WIN_NULL}));
    TRY(MPI_Win_fence(0, MPI_WIN_NULL));
    TRY(MPI_Win_create(buf, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
    TRY(MPI_Win_create(buf, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
    TRY(MPI_Alloc_mem(-1, MPI_INFO_NULL, &w));
    TRY(MPI_Alloc_mem(1, MPI_INFO_NULL, NULL));
}

static int function(void) { return MPI_SUCCESS; }

/* MPI_COMM_SELF as a grid and as graphs, and the edges that a caller has room for */
static void neighbours(void)
{
    int one = 1, edge = 0, list[4] = {7, 7, 7, 7};
    MPI_Comm grid, graph, dist;
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &grid);
    MPI_Graph_create(MPI_COMM_SELF, 1, &one, &edge, 0, &graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 2, (int[]){0, 0}, MPI_UNWEIGHTED, 2, (int[]){0, 0}, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist);
    TRY(MPI_Cart_get(grid, 1, NULL, list, list));
    TRY(MPI_Cart_get(grid, 1, list, NULL, list));
    TRY(MPI_Cart_get(grid, 1, list, list, NULL));
    TRY(MPI_Cart_coords(grid, 0, 1, NULL));
    TRY(MPI_Graph_get(graph, 1, 1, NULL, list));
    TRY(MPI_Graph_get(graph, 1, 1, list, NULL));
    TRY(MPI_Graph_neighbors(graph, 0, 1, NULL));
    TRY(MPI_Graph_neighbors(graph, 0, -1, list));
    TRY(MPI_Dist_graph_neighbors(dist, 2, NULL, MPI_UNWEIGHTED, 2, list, MPI_UNWEIGHTED));
    TRY(MPI_Dist_graph_neighbors(dist, 2, list, MPI_UNWEIGHTED, -1, list, MPI_UNWEIGHTED));
    TRY(MPI_Dist_graph_neighbors(dist, 3, list, MPI_UNWEIGHTED, 3, list, MPI_UNWEIGHTED));
    ints("of 2 with room for 3", list, 2);
    list[0] = list[1] = 7;
    OURS(MPI_Dist_graph_neighbors(dist, 1, list, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
    if (ours)
        ints("of 2 with room for 1", list, 2);
    MPI_Comm_free(&grid);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&dist);
    TRY(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, rank, 0, &c));
}

/* datatypes that were made, in reductions and where they do not count; buffers that are one */
static void made(void)
{
    MPI_Datatype none[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}, ints[2] = {MPI_INT, MPI_INT};
    int zero[2] = {0, 0};
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_commit(&t);
    TRY(MPI_Allreduce(buf, buf + 10, 1, t, MPI_SUM, MPI_COMM_WORLD));
    TRY(MPI_Reduce_local(buf, buf + 10, 1, t, MPI_MAX));
    TRY(MPI_Reduce_local(buf, buf + 10, 1, MPI_INT, MPI_REPLACE));
    TRY(MPI_Reduce_local(buf, buf + 10, 1, MPI_INT, MPI_NO_OP));
    MPI_Op_create((MPI_User_function *)function, 1, &op);
    TRY(MPI_Reduce_local(buf, buf + 10, 1, t, op));
    MPI_Op_free(&op);
    TRY(MPI_Allgather(buf, 1, open, buf + 10, 1, MPI_INT, MPI_COMM_WORLD));
    TRY(MPI_Scatter(buf, 1, MPI_INT, buf + 10, 1, open, 0, MPI_COMM_SELF));
    TRY(MPI_Alltoallw(buf, zero, displs, none, buf + 10, zero, displs, none, MPI_COMM_WORLD));
    TRY(MPI_Allgatherv(buf, 1, MPI_INT, buf, counts, displs, MPI_INT, MPI_COMM_SELF));
    TRY(MPI_Gatherv(buf, 1, MPI_INT, buf, counts, displs, MPI_INT, 0, MPI_COMM_SELF));
    TRY(MPI_Scatterv(buf, counts, displs, MPI_INT, buf, 1, MPI_INT, 0, MPI_COMM_SELF));
    OURS(MPI_Alltoallv(buf, counts, displs, MPI_INT, buf, counts, displs, MPI_INT, MPI_COMM_SELF));
    OURS(MPI_Alltoallw(buf, counts, displs, ints, buf, counts, displs, ints, MPI_COMM_SELF));
    OURS(MPI_Type_get_contents(t, -1, 0, 1, &n, NULL, none));
    OURS(MPI_Type_create_darray(2, 2, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2}, MPI_ORDER_C, MPI_INT, none));
    TRY(MPI_Type_free(&t));
}

/* requests of functions that are none, and of partitions from anywhere; windows of another kind */
static void others(void)
{
    char longer[MPI_MAX_OBJECT_NAME + 10], name[MPI_MAX_OBJECT_NAME];
    MPI_Win w;
    MPI_Aint bytes;
    TRY(MPI_Grequest_start(NULL, NULL, NULL, NULL, &r));
    OURS(MPI_Precv_init(buf, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OURS(MPI_Precv_init(buf, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OURS(MPI_Precv_init(buf, 1, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OURS(MPI_Psend_init(buf, -1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    MPI_Type_contiguous(1, MPI_INT, &t);
    TRY(MPI_Type_set_name(t, longer));
    MPI_Type_get_name(t, name, &n);
    say("cut:", n == MPI_MAX_OBJECT_NAME - 1);
    MPI_Type_free(&t);
    MPI_Info_create(&info);
    TRY(MPI_Info_set(info, "a", NULL));
    TRY(MPI_Info_get(info, "a", 5, NULL, &flag));
    MPI_Info_free(&info);
    MPI_Win_create(buf, sizeof buf, 1, MPI_INFO_NULL, MPI_COMM_SELF, &w);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    TRY(MPI_Win_detach(w, buf));
    OURS(MPI_Win_shared_query(w, 0, &bytes, &n, NULL));
    MPI_Win_free(&w);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    ours = argc > 1;
    MPI_Type_contiguous(2, MPI_INT, &open);
    messages();
    requests();
    collectives();
    communicators();
    types();
    nulls();
    topologies();
    infos();
    neighbours();
    made();
    others();
    MPI_Type_free(&open);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
