/* Sessions without MPI_Init, on 4 ranks, and one more after the last has ended. */
#include "class.h"

static int told, withNone;

static void ofSession(MPI_Session *s, int *code, ...)
{
    told++;
    withNone = *s == MPI_SESSION_NULL;
}

static void ofComm(MPI_Comm *c, int *code, ...)
{
    told++;
    withNone = *c == MPI_COMM_NULL;
}

/* The error handler of a call gets the error of that call, once. */
static void handlers(MPI_Group g)
{
    MPI_Session s = MPI_SESSION_NULL;
    MPI_Comm c;
    MPI_Info info;
    MPI_Errhandler h;
    char longer[300];

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "all");
    MPI_Session_create_errhandler(ofSession, &h);
    say("no session:", MPI_Session_init(info, h, &s) != MPI_SUCCESS && told == 1 && withNone);
    MPI_Errhandler_free(&h);
    MPI_Info_free(&info);
    MPI_Comm_create_errhandler(ofComm, &h);
    error("a long tag", MPI_Comm_create_from_group(g, longer, MPI_INFO_NULL, h, &c));
    say("told", told * 10 + withNone);
    error("a long tag", MPI_Intercomm_create_from_groups(g, 0, g, 0, longer, MPI_INFO_NULL, h, &c));
    say("told", told * 10 + (c == MPI_COMM_NULL));
    error("a long tag", MPI_Comm_create_from_group(g, longer, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    MPI_Errhandler_free(&h);
    told = 0;
}

/* What processes without MPI_Init have, too. */
static void besides(MPI_Session s, MPI_Comm c)
{
    static char room[1000];
    MPI_Group g;
    int class, code, n = 4, next = (rank + 1) % size, before = (rank + size - 1) % size;
    char name[100], *at;
    double time = MPI_Wtime();

    say("time:", time > 0 && MPI_Wtime() >= time);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "ours");
    MPI_Error_class(code, &n);
    say("class:", n == class);
    MPI_Error_string(code, name, &n);
    say(name, n);
    error("no room", MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &n, NULL));
    say("length", n);
    n = 4;
    error("little room", MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &n, name));
    say(name, n);
    error("other letters", MPI_Group_from_session_pset(s, "MPI://World", &g));
    MPI_Group_size(g, &n);
    say("ranks", n);
    MPI_Group_free(&g);
    MPI_Buffer_attach(room, sizeof room);
    error("buffered", MPI_Bsend(&rank, 1, MPI_INT, next, 2, c));
    MPI_Recv(&n, 1, MPI_INT, before, 2, c, MPI_STATUS_IGNORE);
    say("got", n);
    MPI_Buffer_detach(&at, &n);
    say("detached", n);
}

static void once(void)
{
    MPI_Session s;
    MPI_Group g, self;
    MPI_Comm c, one;
    MPI_Info info;
    int n, length = 0, word, got = -1, flag;
    char name[100], value[100];

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Initialized(&flag);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    MPI_Group_rank(g, &rank);
    MPI_Group_size(g, &size);
    say("initialized", flag);
    say("ranks", size);
    MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
    say("sets:", n >= 2);
    MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &length, NULL);
    say("length", length);
    MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &length, name);
    if (rank == 0)
        printf("%s\n", name);
    MPI_Session_get_pset_info(s, "mpi://WORLD", &info);
    MPI_Info_get(info, "mpi_size", 20, value, &flag);
    say("mpi_size", atoi(value));
    MPI_Info_free(&info);
    MPI_Comm_create_from_group(g, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
    word = rank;
    MPI_Sendrecv(&word, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, c, MPI_STATUS_IGNORE);
    say("got", got);
    error("rank 9", MPI_Send(&word, 1, MPI_INT, 9, 1, c));
    handlers(g);
    besides(s, c);
    MPI_Group_from_session_pset(s, "mpi://SELF", &self);
    MPI_Comm_create_from_group(self, "self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &one);
    MPI_Comm_size(one, &n);
    say("alone", n);
    MPI_Comm_free(&one);
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    MPI_Group_free(&self);
    MPI_Session_finalize(&s);
    say("ended:", s == MPI_SESSION_NULL);
}

int main(int argc, char **argv)
{
    once();
    once();
    if (argc > 1) {
        begin(&argc, &argv);
        say("ranks", size);
        MPI_Finalize();
    }
    return 0;
}
