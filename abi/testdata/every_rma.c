/* Every form with large counts of one-sided communication, windows, packing and datatypes, and
 * what else has no test of its own, on 2 ranks. */
#include "class.h"

enum { N = 4 };

static void show(const char *what, const int *list) { ints(what, list, N); }

static void operations(void)
{
    int *memory, mine[N] = {1, 2, 3, 4}, back[N] = {0}, other, unit = 4, flag;
    MPI_Win w;
    MPI_Request r;
    MPI_Aint bytes;
    MPI_Info info;
    MPI_Errhandler h;
    void *base;
    other = (rank + 1) % size;
    MPI_Win_allocate_c(N * sizeof(int), 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &w);
    MPI_Win_get_errhandler(w, &h);
    say("fatal:", h == MPI_ERRORS_ARE_FATAL);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    say("returned:", MPI_Win_call_errhandler(w, MPI_ERR_OTHER) == MPI_SUCCESS);
    MPI_Info_create(&info);
    MPI_Win_set_info(w, info);
    MPI_Info_free(&info);
    memset(memory, 0, N * sizeof(int));
    MPI_Win_lock_all(0, w);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Put_c(mine, N, MPI_INT, other, 0, N, MPI_INT, w);
    MPI_Win_flush(other, w);
    MPI_Get_c(back, N, MPI_INT, other, 0, N, MPI_INT, w);
    MPI_Win_flush(other, w);
    show("put, get", back);
    MPI_Accumulate_c(mine, N, MPI_INT, other, 0, N, MPI_INT, MPI_SUM, w);
    MPI_Win_flush(other, w);
    MPI_Get_accumulate_c(mine, N, MPI_INT, back, N, MPI_INT, other, 0, N, MPI_INT, MPI_SUM, w);
    MPI_Win_flush(other, w);
    show("accumulate", back);
    MPI_Rput_c(mine, 1, MPI_INT, other, 0, 1, MPI_INT, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_flush(other, w);
    MPI_Raccumulate_c(mine, 1, MPI_INT, other, 1, 1, MPI_INT, MPI_MAX, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_flush(other, w);
    MPI_Rget_c(back, N, MPI_INT, other, 0, N, MPI_INT, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    show("with requests", back);
    MPI_Rget_accumulate_c(mine, 1, MPI_INT, back, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_NO_OP, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    say("one", back[0]);
    error("rank", MPI_Put(mine, 1, MPI_INT, size, 0, 1, MPI_INT, w));
    error("type", MPI_Put(mine, 1, MPI_DATATYPE_NULL, other, 0, 1, MPI_INT, w));
    error("count", MPI_Put(mine, -1, MPI_INT, other, 0, 1, MPI_INT, w));
    error("operation", MPI_Accumulate(mine, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_OP_NULL, w));
    error("no operation", MPI_Accumulate(mine, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_NO_OP, w));
    error("displacement", MPI_Put(mine, 1, MPI_INT, other, -1, 1, MPI_INT, w));
    error("of one to get", MPI_Fetch_and_op(mine, back, MPI_INT, other, -1, MPI_SUM, w));
    error("of one to swap", MPI_Compare_and_swap(mine, mine + 1, back, MPI_INT, other, -1, w));
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);

    MPI_Win_create_c(mine, sizeof mine, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_get_attr(w, MPI_WIN_SIZE, &base, &flag);
    say("bytes", *(MPI_Aint *)base);
    int key;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
    MPI_Win_set_attr(w, key, mine);
    MPI_Win_delete_attr(w, key);
    MPI_Win_get_attr(w, key, &base, &flag);
    say("attribute", flag);
    MPI_Win_free_keyval(&key);
    MPI_Win_free(&w);

    MPI_Win_allocate_shared_c(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &w);
    MPI_Win_shared_query_c(w, 0, &bytes, &(MPI_Aint){0}, &base);
    say("shared", bytes);
    MPI_Win_shared_query(w, 0, &bytes, &unit, &base);
    say("unit", unit);
    MPI_Win_free(&w);
}

static void types(void)
{
    MPI_Datatype t, u;
    MPI_Count size_c, lb, extent, lengths[2] = {1, 2}, displs[2] = {0, 3}, far[2] = {0, 16}, total = 24, part = 6, start = 3, position = 0;
    MPI_Aint bytes, at = 0;
    MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE};
    int in[24], out[24], n = 0, gsizes = 24, distribution = MPI_DISTRIBUTE_BLOCK, darg = MPI_DISTRIBUTE_DFLT_DARG, procs = 1;
    char packed[400];
    for (int i = 0; i < 24; i++)
        in[i] = i, out[i] = 99;
    struct {
        const char *name;
        MPI_Datatype type;
    } made[9];
#define MAKE(call) made[n].name = #call, call, n++
#define T &made[n].type
    MAKE(MPI_Type_indexed_c(2, lengths, displs, MPI_INT, T));
    MAKE(MPI_Type_create_hindexed_c(2, lengths, far, MPI_INT, T));
    MAKE(MPI_Type_create_hindexed_block_c(2, 2, far, MPI_INT, T));
    MAKE(MPI_Type_create_indexed_block_c(2, 1, displs, MPI_INT, T));
    MAKE(MPI_Type_create_hvector_c(2, 1, 12, MPI_INT, T));
    MAKE(MPI_Type_create_struct_c(2, lengths, far, parts, T));
    MAKE(MPI_Type_create_subarray_c(1, &total, &part, &start, MPI_ORDER_C, MPI_INT, T));
    MAKE(MPI_Type_create_darray_c(1, 0, 1, &total, &distribution, &darg, &procs, MPI_ORDER_C, MPI_INT, T));
    MAKE(MPI_Type_create_darray(1, 0, 1, &gsizes, &distribution, &darg, &procs, MPI_ORDER_C, MPI_INT, T));
    for (int i = 0; i < n; i++) {
        t = made[i].type;
        MPI_Type_commit(&t);
        MPI_Type_size_c(t, &size_c);
        MPI_Type_get_extent_c(t, &lb, &extent);
        if (rank == 0)
            printf("%.*s: %d bytes, %d to %d", (int)strcspn(made[i].name, "("), made[i].name, (int)size_c, (int)lb, (int)(lb + extent));
        MPI_Type_get_true_extent_c(t, &lb, &extent);
        MPI_Type_get_true_extent_x(t, &lb, &extent);
        if (rank == 0)
            printf(", truly %d to %d\n", (int)lb, (int)(lb + extent));
        MPI_Type_free(&made[i].type);
    }
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Pack_size_c(2, t, MPI_COMM_WORLD, &size_c);
    MPI_Pack_c(in, 2, t, packed, sizeof packed, &position, MPI_COMM_WORLD);
    say("packed", position == 24 && size_c >= position);
    position = 0;
    MPI_Unpack_c(packed, sizeof packed, &position, out, 2, t, MPI_COMM_WORLD);
    ints("unpacked", out, 7);
    MPI_Pack_external_size_c("external32", 2, t, &size_c);
    position = 0;
    MPI_Pack_external_c("external32", in, 2, t, packed, sizeof packed, &position);
    say("external", position == size_c);
    say("its byte", packed[7]);
    position = 0, out[0] = out[5] = -1;
    MPI_Unpack_external_c("external32", packed, sizeof packed, &position, out, 2, t);
    ints("unpacked", out, 7);
    MPI_Pack_external_size("external32", 2, t, &bytes);
    MPI_Pack_external("external32", in, 2, t, packed, bytes, &at);
    say("bytes", at);
    MPI_Type_dup(t, &u);
    MPI_Type_free(&u);
    MPI_Type_free(&t);
}

static int called, last;

static void note(MPI_Comm *c, int *code, ...) { called++, last = *code; }

static int extent_of(MPI_Datatype t, MPI_Aint *extent, void *state) { return MPI_SUCCESS; }

/* Errors that the program adds, error handlers, attributes as MPI-1 had them. */
static void others(void)
{
    int class, number, n, key, flag, version, minor, level, got;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    void *value;
    MPI_Errhandler h;
    MPI_Comm c;
    MPI_Info info;
    MPI_Request r;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &number);
    MPI_Add_error_string(number, "an error of ours");
    MPI_Error_string(number, text, &n);
    if (rank == 0)
        printf("%s\n", text);
    MPI_Error_class(number, &got);
    say("its class:", got == class);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_create_errhandler(note, &h);
    MPI_Comm_set_errhandler(c, h);
    MPI_Errhandler_free(&h);
    MPI_Comm_call_errhandler(c, number);
    say("called", called);
    say("with it:", last == number);
    MPI_Send(&n, -1, MPI_INT, 0, 0, c);
    say("called", called);
    error("for a", last);
    MPI_Info_create(&info);
    MPI_Comm_set_info(c, info);
    MPI_Info_free(&info);
    MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
    MPI_Attr_put(c, key, text);
    MPI_Attr_get(c, key, &value, &flag);
    say("attribute:", flag && value == text);
    MPI_Comm_idup_with_info(c, MPI_INFO_NULL, &(MPI_Comm){0}, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Attr_delete(c, key);
    MPI_Attr_get(c, key, &value, &flag);
    say("deleted:", !flag);
    MPI_Keyval_free(&key);
    say("no key:", key == MPI_KEYVAL_INVALID);
    MPI_Comm_disconnect(&c);
    say("disconnected:", c == MPI_COMM_NULL);
    MPI_Get_version(&version, &minor);
    say("MPI 4 or later:", version >= 4);
    MPI_Get_library_version(text, &n);
    say("a version:", n == (int)strlen(text));
    MPI_Query_thread(&level);
    say("a level:", level >= MPI_THREAD_SINGLE);
    say("ticks:", MPI_Wtick() > 0 && MPI_Wtick() < 1);
    MPI_Pcontrol(1);
    MPI_File_create_errhandler((MPI_File_errhandler_function *)note, &h);
    MPI_Errhandler_free(&h);
    error("representation", MPI_Register_datarep("ours", NULL, NULL, extent_of, NULL));
    MPI_Register_datarep_c("ours too", NULL, NULL, extent_of, NULL);
    MPI_Status st;
    MPI_Status_set_elements_x(&st, MPI_INT, 9);
    MPI_Get_count(&st, MPI_INT, &n);
    say("elements", n);
}

static int handled;

static void session_error(MPI_Session *s, int *code, ...) { handled = *code; }

static void sessions(void)
{
    MPI_Session s;
    MPI_Errhandler h, was;
    MPI_Info info;
    MPI_Group a, b;
    MPI_Comm c;
    int n;
    MPI_Session_create_errhandler(session_error, &h);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Session_get_errhandler(s, &was);
    say("a handler:", was != MPI_ERRHANDLER_NULL);
    MPI_Session_set_errhandler(s, h);
    MPI_Session_call_errhandler(s, MPI_ERR_ARG);
    error("handled", handled);
    MPI_Session_get_info(s, &info);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &a);
    MPI_Group_incl(a, 1, (int[]){rank}, &b);
    MPI_Group_free(&a);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &a);
    int other = 1 - rank;
    MPI_Group remote;
    MPI_Group_incl(a, 1, &other, &remote);
    MPI_Intercomm_create_from_groups(b, 0, remote, 0, "pair", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
    MPI_Comm_remote_size(c, &n);
    say("on the other side", n);
    MPI_Comm_free(&c);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
    MPI_Group_free(&remote);
    MPI_Errhandler_free(&h);
    MPI_Session_finalize(&s);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    operations();
    types();
    others();
    sessions();
    MPI_Finalize();
    return 0;
}
