/* What MPICH 4.0 does not have: functions of MPI 4.1 and 5.0, on 2 ranks. */
#include "class.h"

static char room[1 << 16];

static void errors(void)
{
    int class, code, n;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "ours");
    error("text", MPI_Remove_error_string(code));
    MPI_Error_string(code, text, &n);
    say("gone:", strcmp(text, "ours") != 0);
    error("class in use", MPI_Remove_error_class(class));
    error("code", MPI_Remove_error_code(code));
    error("class", MPI_Remove_error_class(class));
    error("again", MPI_Remove_error_class(class));
}

static void statuses(void)
{
    MPI_Status st;
    int n;
    MPI_Status_set_source(&st, 3);
    MPI_Status_set_tag(&st, 4);
    MPI_Status_set_error(&st, MPI_ERR_TAG);
    MPI_Status_set_elements_c(&st, MPI_INT, 5);
    MPI_Status_get_source(&st, &n);
    say("source", n);
    MPI_Status_get_tag(&st, &n);
    say("tag", n);
    MPI_Status_get_error(&st, &n);
    error("error", n);
    MPI_Get_elements(&st, MPI_INT, &n);
    say("elements", n);
}

/* Buffers of the process, a communicator and a session. */
static void buffers(void)
{
    MPI_Comm c;
    MPI_Session s;
    MPI_Request r;
    void *at = NULL;
    int bytes = 0, word = 7, got = 0, other = 1 - rank;
    MPI_Count large = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Buffer_attach(room, sizeof room / 2);
    MPI_Bsend(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    error("flush", MPI_Buffer_flush());
    error("iflush", MPI_Buffer_iflush(&r));
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&at, &bytes);
    say("detached", at == room ? bytes : -1);
    for (int way = 0; way < 2; way++) {
        if (way == 0)
            MPI_Comm_attach_buffer(c, room, sizeof room / 2);
        else
            MPI_Comm_attach_buffer_c(c, room, sizeof room / 2);
        word = 20 + way;
        MPI_Bsend(&word, 1, MPI_INT, other, 0, c);
        MPI_Recv(&got, 1, MPI_INT, other, 0, c, MPI_STATUS_IGNORE);
        say("got", got);
        MPI_Comm_flush_buffer(c);
        MPI_Comm_iflush_buffer(c, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        bytes = large = 0;
        if (way == 0)
            MPI_Comm_detach_buffer(c, &at, &bytes);
        else
            MPI_Comm_detach_buffer_c(c, &at, &large);
        say("bytes", bytes + large);
    }
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Session_attach_buffer(s, room, sizeof room / 2);
    MPI_Session_flush_buffer(s);
    MPI_Session_iflush_buffer(s, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Session_detach_buffer(s, &at, &bytes);
    MPI_Session_attach_buffer_c(s, room, sizeof room / 2);
    MPI_Session_detach_buffer_c(s, &at, &large);
    say("of a session", bytes + large);
    MPI_Session_finalize(&s);
    MPI_Comm_free(&c);
}

/* Handles as numbers. */
static void numbers(void)
{
    MPI_Message m = MPI_MESSAGE_NO_PROC;
    MPI_Session s = MPI_SESSION_NULL;
    MPI_Group g;
    MPI_Info info;
    MPI_Datatype t;
    MPI_Comm_group(MPI_COMM_WORLD, &g);
    MPI_Info_create(&info);
    MPI_Type_contiguous(3, MPI_INT, &t);
    say("comm", MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    say("type", MPI_Type_fromint(MPI_Type_toint(t)) == t);
    say("group", MPI_Group_fromint(MPI_Group_toint(g)) == g);
    say("info", MPI_Info_fromint(MPI_Info_toint(info)) == info);
    say("op", MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
    say("request", MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    say("errhandler", MPI_Errhandler_fromint(MPI_Errhandler_toint(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    say("win", MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    say("file", MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    say("message", MPI_Message_fromint(MPI_Message_toint(m)) == m);
    say("session", MPI_Session_fromint(MPI_Session_toint(s)) == s);
    MPI_Type_free(&t);
    MPI_Info_free(&info);
    MPI_Group_free(&g);
}

static void requests(void)
{
    MPI_Request r[2];
    MPI_Status st[2];
    int flag = 0, n = 0, index, which[2], in[2], out[2] = {rank, rank}, other = 1 - rank;
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &r[i]);
        MPI_Send(&out[i], 1, MPI_INT, other, i, MPI_COMM_WORLD);
    }
    while (!flag)
        MPI_Request_get_status_all(2, r, &flag, st);
    say("all:", st[1].MPI_TAG == 1 && r[1] != MPI_REQUEST_NULL);
    MPI_Request_get_status_any(2, r, &index, &flag, st);
    say("any", flag ? index : -1);
    MPI_Request_get_status_some(2, r, &n, which, st);
    say("some", n);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void partitioned(void)
{
    int data[4] = {1, 2, 3, 4}, got[4] = {0}, other = 1 - rank;
    MPI_Request s, r;
    MPI_Psend_init_c(data, 2, 2, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init_c(got, 2, 2, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Start(&s);
    error("beyond", MPI_Pready_range(0, 2, s)); /* and none of them is sent */
    error("backwards", MPI_Pready_range(1, 0, s));
    error("both", MPI_Pready_range(0, 1, s));
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    ints("partitions", got, 4);
    error("no list", MPI_Pready_list(1, NULL, s));
    error("-1 of a list", MPI_Pready_list(-1, got, s));
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    error("no name", MPI_Comm_create_from_group(MPI_GROUP_EMPTY, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &(MPI_Comm){MPI_COMM_NULL}));
    error("too many", MPI_Psend_init_c(data, 4, 1LL << 62, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &s));
}

static void abi(void)
{
    int major, minor, flag = -1;
    int one = 1, zero = 0, yes = -7, no = -7;
    MPI_Info info, hw;
    MPI_Datatype t;
    char value[20] = "";
    MPI_Abi_get_version(&major, &minor);
#ifdef MPI_ABI_VERSION
    say("version:", major == 1 && minor == 0);
#else
    say("version:", major == -1 && minor == -1);
#endif
    MPI_Abi_get_info(&info);
    MPI_Info_get(info, "mpi_count_size", 10, value, &flag);
    say("count", atoi(value));
    MPI_Info_free(&info);
    MPI_Abi_get_fortran_info(&info);
    say("nothing is known:", info == MPI_INFO_NULL);
    MPI_Abi_get_fortran_booleans(4, &yes, &no, &flag);
    say("set", flag);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_integer_size", "4");
    error("sizes", MPI_Abi_set_fortran_info(info));
    say("again:", MPI_Abi_set_fortran_info(info) != MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_Abi_get_fortran_info(&info);
    MPI_Info_get(info, "mpi_integer_size", 10, value, &flag);
    say("integer", atoi(value));
    MPI_Info_free(&info);
    error("values", MPI_Abi_set_fortran_booleans(4, &one, &zero));
    MPI_Abi_get_fortran_booleans(4, &yes, &no, &flag);
    say("set", flag * 100 + yes * 10 + no);
    MPI_Info_create_env(0, NULL, &info);
    MPI_Info_free(&info);
    MPI_Get_hw_resource_info(&hw);
    MPI_Info_free(&hw);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t);
    say("a pair:", t == MPI_DOUBLE_INT);
}

/* What is known about the start of the process, at any time. */
static int env(char text[4096])
{
    MPI_Info info;
    int n, there, length;
    char key[MPI_MAX_INFO_KEY + 1];
    text[0] = 0;
    MPI_Info_create_env(0, NULL, &info);
    MPI_Info_get_nkeys(info, &n);
    for (int i = 0; i < n; i++) {
        char value[MPI_MAX_INFO_VAL + 1];
        MPI_Info_get_nthkey(info, i, key);
        length = sizeof value;
        MPI_Info_get_string(info, key, &length, value, &there);
        strcat(strcat(strcat(text, key), "="), value);
    }
    MPI_Info_free(&info);
    return n;
}

/* So is what the program adds to the errors. */
static int known(int code)
{
    int class, n;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &n);
    return class != code && class >= MPI_ERR_LASTCODE && !strcmp(text, "ours");
}

int main(int argc, char **argv)
{
    static char first[4096], second[4096], third[4096];
    int n = env(first), class, code, early;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "ours");
    early = known(code);
    begin(&argc, &argv);
    env(second);
    say("before MPI_Init:", early && known(code));
    errors();
    statuses();
    buffers();
    numbers();
    requests();
    partitioned();
    abi();
    MPI_Finalize();
    env(third);
    say("after MPI_Finalize:", known(code));
    say("environment:", n > 3 && strstr(first, "maxprocs=2") && !strcmp(first, second) && !strcmp(first, third));
    return 0;
}
