/* Point-to-point in all its forms, on 2 ranks. Rank 0 prints what it finds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, other;
static MPI_Comm world;

static void say(const char *what, long value)
{
    if (rank == 0)
        printf("%s %ld\n", what, value);
}

static void status(const char *what, MPI_Status *st, MPI_Datatype type)
{
    int count, cancelled, elements;
    MPI_Get_count(st, type, &count);
    MPI_Get_elements(st, type, &elements);
    MPI_Test_cancelled(st, &cancelled);
    cancelled &= strcmp(what, "probe") != 0; /* MPICH does not set it there */
    if (rank == 0)
        printf("%s: source %d, tag %d, %d of the type, %d elements, cancelled %d\n", what, st->MPI_SOURCE == MPI_PROC_NULL ? -9 : st->MPI_SOURCE == MPI_ANY_SOURCE ? -8 : st->MPI_SOURCE,
               st->MPI_TAG == MPI_ANY_TAG ? -9 : st->MPI_TAG, count, elements, cancelled);
}

static void meet(void) { MPI_Sendrecv(NULL, 0, MPI_INT, other, 50, NULL, 0, MPI_INT, other, 50, world, MPI_STATUS_IGNORE); }

typedef int (*sender)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*starter)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void modes(void)
{
    static const sender send[] = {MPI_Send, MPI_Ssend, MPI_Bsend};
    static const starter isend[] = {MPI_Isend, MPI_Issend, MPI_Ibsend}, init[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init};
    static char buffer[1 << 18], *back;
    double out[100], in[100];
    int size;
    MPI_Status st;

    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int i = 0; i < 100; i++)
        out[i] = rank + i / 8.;
    for (int mode = 0; mode < 3; mode++) {
        memset(in, 0, sizeof in);
        if (rank == 0) {
            send[mode](out, 100, MPI_DOUBLE, 1, mode, world);
            MPI_Recv(in, 100, MPI_DOUBLE, 1, MPI_ANY_TAG, world, &st);
        } else {
            MPI_Recv(in, 100, MPI_DOUBLE, MPI_ANY_SOURCE, mode, world, &st);
            send[mode](out, 100, MPI_DOUBLE, 0, mode, world);
        }
        status("blocking", &st, MPI_DOUBLE);
        say("last", in[99] * 8);

        MPI_Request r[2];
        MPI_Status sts[2];
        MPI_Irecv(in, 100, MPI_DOUBLE, other, 7, world, &r[0]);
        isend[mode](out, 50 + mode, MPI_DOUBLE, other, 7, world, &r[1]);
        MPI_Waitall(2, r, sts);
        status("nonblocking", &sts[0], MPI_DOUBLE);
        say("null", r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);

        MPI_Recv_init(in, 100, MPI_DOUBLE, MPI_ANY_SOURCE, 8, world, &r[0]);
        init[mode](out, 10 + mode, MPI_DOUBLE, other, 8, world, &r[1]);
        for (int round = 0; round < 3; round++) {
            out[0] = round;
            MPI_Startall(2, r);
            MPI_Waitall(2, r, sts);
            say("persistent", in[0]);
        }
        status("persistent", &sts[0], MPI_DOUBLE);
        say("still there", r[0] != MPI_REQUEST_NULL);
        MPI_Wait(&r[0], &sts[0]);
        status("inactive", &sts[0], MPI_DOUBLE);
        MPI_Request_free(&r[0]);
        MPI_Request_free(&r[1]);
        say("freed", r[0] == MPI_REQUEST_NULL);
    }
    MPI_Buffer_detach(&back, &size);
    say("buffer", back == buffer && size == sizeof buffer);
}

static void completions(void)
{
    enum { n = 8 };
    int in[n], out[n], index, flag, count, indices[n];
    MPI_Request r[n];
    MPI_Status st, sts[n];

    for (int i = 0; i < n; i++)
        r[i] = MPI_REQUEST_NULL;
    MPI_Waitany(n, r, &index, &st);
    say("none to wait for", index == MPI_UNDEFINED);
    status("empty", &st, MPI_INT);
    MPI_Testany(n, r, &index, &flag, &st);
    say("none to test", flag && index == MPI_UNDEFINED);
    MPI_Waitsome(n, r, &count, indices, sts);
    say("none of some", count == MPI_UNDEFINED);
    MPI_Testall(n, r, &flag, sts);
    say("all of none", flag);

    for (int i = 0; i < n; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, other, i, world, &r[i]);
    meet();
    for (int i = 0; i < n; i++) {
        out[i] = 10 * i + rank;
        MPI_Send(&out[i], 1, MPI_INT, other, i, world);
    }
    MPI_Wait(&r[3], &st);
    status("one", &st, MPI_INT);
    int seen = 0;
    MPI_Waitany(n, r, &index, &st);
    seen += in[index];
    do
        MPI_Testany(n, r, &index, &flag, &st);
    while (!flag);
    seen += in[index];
    int left = 5;
    while (left > 1) {
        MPI_Waitsome(n, r, &count, indices, sts);
        for (int i = 0; i < count; i++)
            seen += in[indices[i]];
        left -= count;
    }
    do
        MPI_Testsome(n, r, &count, indices, MPI_STATUSES_IGNORE);
    while (count == 0);
    say("sum", seen + in[3] + (count > 0 ? in[indices[0]] : 0));

    MPI_Request behind[3] = {MPI_REQUEST_NULL};
    MPI_Irecv(&in[0], 1, MPI_INT, other, 98, world, &behind[1]);
    MPI_Isend(&out[1], 1, MPI_INT, other, 97, world, &behind[2]);
    MPI_Waitany(3, behind, &index, &st);
    say("behind one that waits", index == 2 && behind[1] != MPI_REQUEST_NULL && behind[2] == MPI_REQUEST_NULL);
    MPI_Recv(&in[1], 1, MPI_INT, other, 97, world, &st);
    meet(); // else the other one's message may be there before the first Waitany, which may then end that receive
    MPI_Send(&out[2], 1, MPI_INT, other, 98, world);
    MPI_Waitany(3, behind, &index, &st);
    say("and that one", index == 1 && in[0] == 20 + other && behind[1] == MPI_REQUEST_NULL);

    MPI_Irecv(in, 1, MPI_INT, other, 99, world, r);
    MPI_Request_get_status(r[0], &flag, &st);
    say("not there", flag);
    MPI_Test(r, &flag, &st);
    say("not there", flag);
    MPI_Cancel(r);
    MPI_Wait(r, &st);
    MPI_Test_cancelled(&st, &flag);
    say("cancelled", flag);
}

static void probes(void)
{
    int in[4] = {0}, out[4] = {1, 2, 3, 4}, flag, count;
    MPI_Status st;
    MPI_Message m;
    MPI_Request r;

    MPI_Iprobe(other, 5, world, &flag, &st);
    say("no message", flag);
    meet();
    MPI_Send(out, 3, MPI_INT, other, 5, world);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &st);
    status("probe", &st, MPI_INT);
    MPI_Get_count(&st, MPI_INT, &count);
    MPI_Mprobe(st.MPI_SOURCE, st.MPI_TAG, world, &m, &st);
    MPI_Iprobe(other, 5, world, &flag, &st);
    say("taken", !flag && m != MPI_MESSAGE_NULL);
    MPI_Mrecv(in, count, MPI_INT, &m, &st);
    status("mrecv", &st, MPI_INT);
    say("none", m == MPI_MESSAGE_NULL && in[2] == 3);
    MPI_Send(out, 4, MPI_INT, other, 6, world);
    do
        MPI_Improbe(other, 6, world, &flag, &m, &st);
    while (!flag);
    MPI_Imrecv(in, 4, MPI_INT, &m, &r);
    MPI_Wait(&r, &st);
    status("imrecv", &st, MPI_INT);

    MPI_Mprobe(MPI_PROC_NULL, 3, world, &m, &st);
    say("no proc", m == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(in, 4, MPI_INT, &m, &st);
    status("from nobody", &st, MPI_INT);
    MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, 3, world, &st);
    status("from nobody", &st, MPI_INT);
    MPI_Send(out, 4, MPI_INT, MPI_PROC_NULL, 3, world);

    MPI_Sendrecv(out, 2, MPI_INT, other, 1, in, 4, MPI_INT, other, 1, world, &st);
    status("sendrecv", &st, MPI_INT);
    MPI_Sendrecv_replace(out, 4, MPI_INT, other, 2, other, 2, world, &st);
    status("replace", &st, MPI_INT);
    MPI_Recv(in, 0, MPI_INT, MPI_PROC_NULL, 3, world, MPI_STATUS_IGNORE);
}

static int queried, freed;

static int query(void *state, MPI_Status *st)
{
    queried++;
    MPI_Status_set_elements(st, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(st, 0);
    st->MPI_SOURCE = 4;
    st->MPI_TAG = 5;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    freed += *(int *)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    return complete ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void generalized(void)
{
    int state = 6, flag;
    MPI_Request r, freed_before;
    MPI_Status st;

    MPI_Grequest_start(query, release, cancel, &state, &r);
    MPI_Test(&r, &flag, &st);
    say("general", flag);
    MPI_Grequest_complete(r);
    MPI_Wait(&r, &st);
    status("general", &st, MPI_INT);
    say("general", queried * 100 + freed);
    MPI_Grequest_start(query, release, cancel, &state, &r);
    freed_before = r;
    MPI_Request_free(&r);
    MPI_Grequest_complete(freed_before);
    say("general, freed before it has ended", queried * 100 + freed);
}

static void partitions(void)
{
    double part[12];
    int flag;
    MPI_Request r;

    if (rank == 1) {
        for (int i = 0; i < 12; i++)
            part[i] = i;
        MPI_Psend_init(part, 4, 3, MPI_DOUBLE, 0, 11, world, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        int first[] = {2, 0};
        MPI_Pready_list(2, first, r);
        MPI_Pready(3, r);
        MPI_Pready_range(1, 1, r);
    } else {
        MPI_Precv_init(part, 4, 3, MPI_DOUBLE, 1, 11, world, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        for (int i = 0; i < 4; i++)
            do
                MPI_Parrived(r, i, &flag);
            while (!flag);
    }
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    say("parts", part[11]);
    MPI_Request_free(&r);
}

static int handled;

static void handler(MPI_Comm *comm, int *number, ...)
{
    int class;
    MPI_Error_class(*number, &class);
    handled += *comm == world && class == MPI_ERR_RANK;
}

static void errors(void)
{
    int in, out = rank, class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler mine, got;
    MPI_Status sts[2];
    MPI_Request r[2];

    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(world, mine);
    MPI_Comm_get_errhandler(world, &got);
    say("handler", got == mine);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&mine);
    say("handler", mine == MPI_ERRHANDLER_NULL);
    MPI_Error_class(MPI_Send(&out, 1, MPI_INT, 77, 0, world), &class);
    say("handled", handled * 10 + (class == MPI_ERR_RANK));
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(&out, -1, MPI_INT, other, 0, world), &class);
    say("count", class == MPI_ERR_COUNT);
    MPI_Error_class(MPI_Send(&out, 1, MPI_DATATYPE_NULL, other, 0, world), &class);
    say("type", class == MPI_ERR_TYPE);
    MPI_Error_class(MPI_Send(&out, 1, MPI_INT, other, -5, world), &class);
    say("tag", class == MPI_ERR_TAG);
    MPI_Error_class(MPI_Send(&out, 1, MPI_INT, other, 0, MPI_COMM_NULL), &class);
    say("comm", class == MPI_ERR_COMM);
    MPI_Irecv(&in, 1, MPI_INT, other, 1, world, &r[0]);
    MPI_Irecv(text, 4, MPI_CHAR, other, 2, world, &r[1]);
    meet();
    MPI_Send(&out, 1, MPI_INT, other, 1, world);
    MPI_Send("longer", 6, MPI_CHAR, other, 2, world);
    say("in status", MPI_Waitall(2, r, sts) == MPI_ERR_IN_STATUS);
    MPI_Error_class(sts[1].MPI_ERROR, &class);
    say("truncated", class == MPI_ERR_TRUNCATE && sts[0].MPI_ERROR == MPI_SUCCESS);
    MPI_Add_error_class(&class);
    MPI_Add_error_string(class, "of our own");
    MPI_Error_string(class, text, &length);
    if (rank == 0)
        printf("%s %d\n", text, length);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    int level, flag;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    other = 1 - rank;
    say("threads", level == MPI_THREAD_MULTIPLE);
    MPI_Is_thread_main(&flag);
    say("main", flag);
    modes();
    completions();
    probes();
    generalized();
    partitions();
    errors();
    MPI_Finalize();
    MPI_Finalized(&flag);
    say("over", flag);
    return 0;
}
