/* More checks of arguments and states than classes.c has: requests that are not active, errors in
 * statuses, groups, infos, probes with nobody, intercommunicators, functions of attributes that
 * fail; on 2 ranks. */
#include "class.h"

#define TRY(call) error(#call, call)
/* MPICH 4.0.2 does not find these, ends, or says another class than the standard. */
#define OURS(call) \
    if (ours) \
    error(#call, call)

static int ours, other, n, flag, buf[100], out[100], zero[2], one[2] = {1, 1};
static MPI_Status st, sts[3];

static void status(const char *what, MPI_Status *s)
{
    int bytes, taken;
    MPI_Get_count(s, MPI_BYTE, &bytes);
    MPI_Test_cancelled(s, &taken);
    if (rank == 0)
        printf("%s: source %s, tag %s, %d bytes%s\n", what, s->MPI_SOURCE == MPI_ANY_SOURCE ? "any" : s->MPI_SOURCE == MPI_PROC_NULL ? "null" : "a rank",
               s->MPI_TAG == MPI_ANY_TAG ? "any" : "one", bytes, taken ? ", cancelled" : "");
}

/* Persistent requests that were not started, and MPI_REQUEST_NULL, are complete. */
static void inactive(MPI_Request *r)
{
    int list[3];
    TRY(MPI_Wait(&r[0], &st));
    status("waited", &st);
    say("there:", r[0] != MPI_REQUEST_NULL);
    TRY(MPI_Test(&r[1], &flag, &st));
    TRY(MPI_Waitall(3, r, sts));
    status("of all", &sts[2]);
    TRY(MPI_Waitany(3, r, &n, &st));
    say("none:", n == MPI_UNDEFINED);
    status("of any", &st);
    TRY(MPI_Testany(3, r, &n, &flag, &st));
    say("none:", n == MPI_UNDEFINED && flag);
    TRY(MPI_Waitsome(3, r, &n, list, sts));
    say("none:", n == MPI_UNDEFINED);
    TRY(MPI_Testsome(0, NULL, &n, NULL, NULL));
    say("none:", n == MPI_UNDEFINED);
    TRY(MPI_Waitany(0, NULL, &n, &st));
    TRY(MPI_Testall(0, NULL, &flag, NULL));
    TRY(MPI_Startall(0, NULL));
    TRY(MPI_Waitany(-1, r, &n, &st));
    TRY(MPI_Testsome(-1, r, &n, list, sts));
    TRY(MPI_Startall(-1, r));
    TRY(MPI_Cancel(&r[0]));
}

static void persistent(void)
{
    MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Send_init(buf, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(out, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &r[1]);
    inactive(r);
    TRY(MPI_Start(&r[1]));
    OURS(MPI_Start(&r[1]));
    TRY(MPI_Cancel(&r[1]));
    TRY(MPI_Wait(&r[1], &st));
    MPI_Test_cancelled(&st, &flag);
    say("cancelled", flag);
    MPI_Barrier(MPI_COMM_WORLD);
    TRY(MPI_Startall(2, r));
    TRY(MPI_Waitall(2, r, sts));
    status("received", &sts[1]);
    TRY(MPI_Request_free(&r[0]));
    TRY(MPI_Request_free(&r[1]));
    MPI_Irecv(buf, 1, MPI_INT, other, 9, MPI_COMM_WORLD, &r[0]);
    TRY(MPI_Start(&r[0]));
    TRY(MPI_Grequest_complete(r[0]));
    TRY(MPI_Cancel(&r[0]));
    TRY(MPI_Cancel(&r[0]));
    TRY(MPI_Wait(&r[0], &st));
    MPI_Irecv(buf, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &r[0]);
    TRY(MPI_Cancel(&r[0]));
    TRY(MPI_Wait(&r[0], &st));
    if (ours)
        status("from nobody", &st);
}

/* Of two messages that are there the first is too long. */
static void truncated(void)
{
    int word, list[2], code;
    MPI_Status *ignore = MPI_STATUSES_IGNORE;
    MPI_Request r[2];
    for (int how = 0; how < 5; how++) {
        MPI_Irecv(&word, 1, MPI_INT, other, 20, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(out, 1, MPI_INT, other, 21, MPI_COMM_WORLD, &r[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(buf, 2, MPI_INT, other, 20, MPI_COMM_WORLD);
        MPI_Send(buf, 1, MPI_INT, other, 21, MPI_COMM_WORLD);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        flag = 0;
        st.MPI_ERROR = sts[0].MPI_ERROR = MPI_ERR_DIMS;
        if (how == 0)
            TRY(MPI_Waitall(1, r, sts));
        else if (how == 1)
            error("ignored", MPI_Waitall(1, r, ignore));
        else if (how == 2)
            TRY(MPI_Waitany(1, r, &n, &st));
        else if (how == 3)
            TRY(MPI_Waitsome(1, r, &n, list, sts));
        else {
            do
                code = MPI_Test(&r[0], &flag, &st);
            while (!flag && code == MPI_SUCCESS);
            error("tested", code);
        }
        error("of one", st.MPI_ERROR);
        error("of several", sts[0].MPI_ERROR);
        say("gone:", r[0] == MPI_REQUEST_NULL);
    }
}

static void nobody(void)
{
    MPI_Message m;
    MPI_Request r;
    TRY(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &st));
    status("probed", &st);
    TRY(MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &st));
    say("found", flag);
    TRY(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &st));
    say("of nobody:", m == MPI_MESSAGE_NO_PROC);
    TRY(MPI_Mrecv(buf, 1, MPI_INT, &m, &st));
    status("received", &st);
    say("gone:", m == MPI_MESSAGE_NULL);
    TRY(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &m, &st));
    TRY(MPI_Imrecv(buf, 1, MPI_INT, &m, &r));
    TRY(MPI_Wait(&r, &st));
    status("received", &st);
    TRY(MPI_Improbe(5, 0, MPI_COMM_WORLD, &flag, &m, &st));
    TRY(MPI_Improbe(0, 0, MPI_COMM_WORLD, &flag, NULL, &st));
    TRY(MPI_Send(buf, -1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    TRY(MPI_Send(buf, 1, MPI_INT, MPI_PROC_NULL, -4, MPI_COMM_WORLD));
    TRY(MPI_Sendrecv_replace(buf, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &st));
}

/* Datatypes and buffers of no elements, and no buffer for MPI_Bsend. MPICH takes every datatype. */
static void nothing(void)
{
    MPI_Datatype open;
    void *at = buf;
    MPI_Type_contiguous(2, MPI_INT, &open);
#ifdef MPI_ABI_VERSION
    const int none = MPI_ERR_TYPE;
#else
    const int none = MPI_SUCCESS;
#endif
    say("not committed:", MPI_Sendrecv(buf, 0, open, other, 1, buf, 0, open, other, 1, MPI_COMM_WORLD, &st) == none);
    say("no datatype:", MPI_Sendrecv(buf, 0, MPI_DATATYPE_NULL, other, 1, buf, 0, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD, &st) == none);
    MPI_Type_free(&open);
    TRY(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
    TRY(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    TRY(MPI_Exscan(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    TRY(MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
    TRY(MPI_Allgatherv(NULL, 0, MPI_INT, NULL, zero, zero, MPI_INT, MPI_COMM_WORLD));
    OURS(MPI_Alltoallv(NULL, zero, zero, MPI_INT, NULL, zero, zero, MPI_INT, MPI_COMM_WORLD));
    TRY(MPI_Reduce_scatter(NULL, NULL, zero, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    TRY(MPI_Buffer_detach(&at, &n));
    say("no buffer:", n == 0 && (!ours || at == NULL));
    TRY(MPI_Buffer_attach(buf, sizeof buf));
    TRY(MPI_Buffer_attach(buf, sizeof buf));
    TRY(MPI_Buffer_detach(&at, &n));
    say("buffer", at == buf ? n : -1);
}

static void groups(void)
{
    MPI_Group g, m;
    int first[1][3] = {{0, 0, 0}}, down[1][3] = {{1, 0, -1}}, all[2][3] = {{0, 1, 1}, {1, 0, -1}};
    MPI_Comm_group(MPI_COMM_WORLD, &g);
    TRY(MPI_Group_incl(g, 0, NULL, &m));
    say("empty:", m == MPI_GROUP_EMPTY);
    TRY(MPI_Group_excl(g, 2, (int[]){1, 0}, &m));
    say("empty:", m == MPI_GROUP_EMPTY);
    OURS(MPI_Group_excl(g, 2, (int[]){0, 0}, &m));
    TRY(MPI_Group_excl(g, -1, zero, &m));
    TRY(MPI_Group_incl(g, 1, (int[]){MPI_PROC_NULL}, &m));
    TRY(MPI_Group_incl(MPI_GROUP_EMPTY, 1, zero, &m));
    TRY(MPI_Group_range_incl(g, 1, first, &m));
    TRY(MPI_Group_range_incl(g, 1, down, &m));
    MPI_Group_free(&m);
    TRY(MPI_Group_range_incl(g, 0, NULL, &m));
    TRY(MPI_Group_range_excl(g, -1, down, &m));
    OURS(MPI_Group_range_excl(g, 2, all, &m));
    TRY(MPI_Group_union(g, MPI_GROUP_NULL, &m));
    TRY(MPI_Group_difference(g, g, &m));
    say("empty:", m == MPI_GROUP_EMPTY);
    TRY(MPI_Group_compare(MPI_GROUP_NULL, g, &n));
    TRY(MPI_Group_translate_ranks(g, -1, zero, g, out));
    TRY(MPI_Group_translate_ranks(g, 1, (int[]){MPI_PROC_NULL}, g, out));
    say("nobody:", out[0] == MPI_PROC_NULL);
    TRY(MPI_Group_translate_ranks(g, 1, zero, MPI_GROUP_EMPTY, out));
    say("nobody:", out[0] == MPI_UNDEFINED);
    TRY(MPI_Comm_create_group(MPI_COMM_WORLD, g, -1, &(MPI_Comm){MPI_COMM_NULL}));
    TRY(MPI_Comm_create(MPI_COMM_SELF, g, &(MPI_Comm){MPI_COMM_NULL}));
    MPI_Group_free(&g);
}

/* The longest keys and values, which are a byte longer in MPICH than in the standard. */
static void infos(void)
{
    static char key[MPI_MAX_INFO_KEY + 2], value[MPI_MAX_INFO_VAL + 2], got[MPI_MAX_INFO_VAL + 2];
    MPI_Info i, same;
    memset(key, 'k', MPI_MAX_INFO_KEY + 1);
    memset(value, 'v', MPI_MAX_INFO_VAL + 1);
    MPI_Info_create(&i);
    TRY(MPI_Info_set(i, key, "too long"));
    TRY(MPI_Info_set(i, "too long", value));
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = 0;
    TRY(MPI_Info_set(i, key, value));
    TRY(MPI_Info_get(i, key, MPI_MAX_INFO_VAL, got, &flag));
    say("the same:", flag && strcmp(got, value) == 0);
    TRY(MPI_Info_set(i, "empty", ""));
    TRY(MPI_Info_get_valuelen(i, "empty", &n, &flag));
    say("bytes", flag ? n : -1);
    TRY(MPI_Info_get(i, "", 3, got, &flag));
    TRY(MPI_Info_get(i, "empty", -1, got, &flag));
    OURS(MPI_Info_get(i, key, 3, got, &flag));
    if (ours)
        say("cut:", strcmp(got, "vvv") == 0);
    TRY(MPI_Info_set(i, " a ", " b "));
    TRY(MPI_Info_get(i, "a", 3, got, &flag));
    say("without spaces", flag);
    TRY(MPI_Info_get_nthkey(i, -1, got));
    TRY(MPI_Info_get_nthkey(i, 3, got));
    OURS(MPI_Info_dup(MPI_INFO_NULL, &same));
    TRY(MPI_Info_dup(i, NULL));
    MPI_Info_free(&i);
    say("gone:", i == MPI_INFO_NULL);
}

static void between(void)
{
    MPI_Comm inter, c;
    MPI_Group g;
    MPI_Comm_group(MPI_COMM_SELF, &g);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, 7, &inter);
    TRY(MPI_Bcast(buf, 1, MPI_INT, 1, inter));
    TRY(MPI_Bcast(buf, 1, MPI_INT, -77, inter));
    TRY(MPI_Bcast(buf, 1, MPI_INT, MPI_PROC_NULL, inter));
    TRY(MPI_Reduce(buf, out, 1, MPI_INT, MPI_SUM, 5, inter));
    TRY(MPI_Scatter(buf, 1, MPI_INT, out, 1, MPI_INT, -9, inter));
    TRY(MPI_Scan(buf, out, 1, MPI_INT, MPI_SUM, inter));
    TRY(MPI_Exscan(buf, out, 1, MPI_INT, MPI_SUM, inter));
    TRY(MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, inter));
    OURS(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, inter));
    TRY(MPI_Cart_create(inter, 1, one, zero, 0, &c));
    TRY(MPI_Graph_create(inter, 1, one, zero, 0, &c));
    TRY(MPI_Comm_create_group(inter, g, 0, &c));
    TRY(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, other, 7, &c));
    TRY(MPI_Send(buf, 1, MPI_INT, 1, 0, inter));
    MPI_Comm_compare(inter, MPI_COMM_WORLD, &n);
    say(relation(n), n == MPI_UNEQUAL);
    MPI_Comm_free(&inter);
    MPI_Group_free(&g);
    TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &c));
    say("none:", c == MPI_COMM_NULL);
    c = MPI_COMM_WORLD;
    TRY(MPI_Comm_free(&c));
    c = MPI_COMM_SELF;
    OURS(MPI_Comm_disconnect(&c));
}

static int code;

static int copy(MPI_Comm c, int key, void *state, void *in, void *to, int *yes)
{
    *(void **)to = in;
    *yes = 1;
    return code;
}

static int delete(MPI_Comm c, int key, void *value, void *state)
{
    say("delete", *(int *)value);
    return code;
}

/* Functions of attributes that fail keep what is there. */
static void attributes(void)
{
    int key, *got, values[2] = {1, 2};
    MPI_Comm c, d;
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_set_attr(c, key, &values[0]);
    code = MPI_ERR_TAG;
    TRY(MPI_Comm_set_attr(c, key, &values[1]));
    MPI_Comm_get_attr(c, key, &got, &flag);
    say("value", flag ? *got : -1);
    TRY(MPI_Comm_delete_attr(c, key));
    MPI_Comm_get_attr(c, key, &got, &flag);
    say("there", flag);
    TRY(MPI_Comm_dup(c, &d));
    code = MPI_SUCCESS;
    TRY(MPI_Comm_free(&c));
    MPI_Comm_free_keyval(&key);
    key = MPI_TAG_UB;
    TRY(MPI_Comm_free_keyval(&key));
    TRY(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB));
}

static void handler(MPI_Win *w, int *number, ...) { say("called", *number); }

/* Handles of error handlers have a class of errors of their own, but not in MPICH 4.0. */
static void handlers(void)
{
#ifdef MPI_ABI_VERSION
    const int none = MPI_ERR_ERRHANDLER;
#else
    const int none = MPI_ERR_ARG;
#endif
    MPI_Errhandler h = MPI_ERRHANDLER_NULL;
    MPI_Win_create_errhandler((MPI_Win_errhandler_function *)handler, &h);
    MPI_Error_class(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), &n);
    say("none:", n == none);
    if (ours) {
        MPI_Error_class(MPI_Comm_set_errhandler(MPI_COMM_WORLD, h), &n);
        say("of windows:", n == none);
    }
    MPI_Errhandler_free(&h);
    MPI_Error_class(MPI_Errhandler_free(&h), &n);
    say("freed:", n == none);
}

static void types(void)
{
    MPI_Datatype t;
    int four[1] = {4}, block[1] = {MPI_DISTRIBUTE_BLOCK}, other_way[1] = {99}, some[1] = {MPI_DISTRIBUTE_DFLT_DARG}, two[1] = {2};
    TRY(MPI_Type_create_darray(2, 0, 1, four, block, (int[]){-1}, two, MPI_ORDER_C, MPI_INT, &t));
    TRY(MPI_Type_create_darray(2, 0, 1, four, block, one, two, MPI_ORDER_C, MPI_INT, &t));
    TRY(MPI_Type_create_darray(2, 0, 1, four, block, some, two, 9, MPI_INT, &t));
    OURS(MPI_Type_create_darray(2, 0, 1, four, block, some, one, MPI_ORDER_C, MPI_INT, &t));
    OURS(MPI_Type_create_darray(2, 0, 1, four, other_way, some, two, MPI_ORDER_C, MPI_INT, &t));
    OURS(MPI_Type_create_subarray(1, one, one, (int[]){-1}, MPI_ORDER_C, MPI_INT, &t));
    TRY(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &t));
    TRY(MPI_Type_create_hindexed(-1, one, (MPI_Aint[]){0}, MPI_INT, &t));
    TRY(MPI_Type_create_hindexed_block(1, -1, (MPI_Aint[]){0}, MPI_INT, &t));
    TRY(MPI_Type_create_indexed_block(1, 1, NULL, MPI_INT, &t));
    TRY(MPI_Type_create_struct(-1, one, (MPI_Aint[]){0}, &(MPI_Datatype){MPI_INT}, &t));
    TRY(MPI_Pack_size(-1, MPI_INT, MPI_COMM_WORLD, &n));
    TRY(MPI_Unpack(buf, 4, zero, out, -2, MPI_INT, MPI_COMM_WORLD));
    MPI_Type_contiguous(2147483647, MPI_INT, &t);
    MPI_Type_size(t, &n);
    say("too many bytes for an int:", n == MPI_UNDEFINED);
    MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    other = 1 - rank;
    ours = argc > 1;
    persistent();
    truncated();
    nobody();
    nothing();
    groups();
    infos();
    between();
    attributes();
    handlers();
    types();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
