/* Every function that sends, receives or completes one of both, on 2 ranks: rank 0 sends in
 * every mode and form, rank 1 receives in every form, and says what it got. */
#include "class.h"

enum { N = 5 };

static int data[N], got[N];
static MPI_Comm comm;
static int tag, received;
static char room[1 << 16];

/* Receives a message in the next way of all. */
static void receive(const char *what)
{
    MPI_Status st;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Message m;
    MPI_Count large = 0;
    int count = 0, flag = 0, way = received++ % 9;
    memset(got, 0, sizeof got);
    switch (way) {
    case 0: MPI_Recv(got, N, MPI_INT, 0, tag, comm, &st); break;
    case 1: MPI_Recv_c(got, N, MPI_INT, 0, tag, comm, &st); break;
    case 2: MPI_Irecv(got, N, MPI_INT, 0, tag, comm, &r); break;
    case 3: MPI_Irecv_c(got, N, MPI_INT, 0, tag, comm, &r); break;
    case 4: MPI_Recv_init(got, N, MPI_INT, 0, tag, comm, &r), MPI_Start(&r); break;
    case 5: MPI_Recv_init_c(got, N, MPI_INT, 0, tag, comm, &r), MPI_Startall(1, &r); break;
    case 6: MPI_Mprobe(0, tag, comm, &m, &st), MPI_Mrecv_c(got, N, MPI_INT, &m, &st); break;
    case 7:
        while (!flag)
            MPI_Improbe(0, tag, comm, &flag, &m, &st);
        MPI_Imrecv_c(got, N, MPI_INT, &m, &r);
        break;
    case 8: MPI_Probe(0, tag, comm, &st), MPI_Mprobe(0, tag, comm, &m, &st), MPI_Imrecv(got, N, MPI_INT, &m, &r);
    }
    if (r != MPI_REQUEST_NULL) {
        MPI_Wait(&r, &st);
        if (r != MPI_REQUEST_NULL)
            MPI_Request_free(&r);
    }
    MPI_Get_count(&st, MPI_INT, &count);
    MPI_Get_count_c(&st, MPI_INT, &large);
    printf("%s: %d %d from %d tag %d, %d words", what, got[0], got[N - 1], st.MPI_SOURCE, st.MPI_TAG, count == large ? count : -1);
    MPI_Get_elements_c(&st, MPI_INT, &large);
    printf(" %d", (int)large);
    MPI_Get_elements_x(&st, MPI_INT, &large);
    printf(" %d\n", (int)large);
}

static MPI_Request r;

static void finish(int start)
{
    for (int i = 0; i < start; i++) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    if (start)
        MPI_Request_free(&r);
    else
        MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* A call that sends, or makes a request that does so that many times. */
#define SEND(call, requests, starts) \
    do { \
        int times = starts > 1 ? starts : 1; \
        tag++; \
        if (rank == 0) { \
            for (int i = 0; i < N; i++) \
                data[i] = tag * 100 + i; \
            call; \
            if (requests) \
                finish(starts); \
        } else \
            for (int i = 0; i < times; i++) \
                receive(#call); \
    } while (0)
#define TO data, N, MPI_INT, 1, tag, comm

static void modes(void)
{
    SEND(MPI_Send(TO), 0, 0);
    SEND(MPI_Send_c(TO), 0, 0);
    SEND(MPI_Ssend(TO), 0, 0);
    SEND(MPI_Ssend_c(TO), 0, 0);
    SEND(MPI_Bsend(TO), 0, 0);
    SEND(MPI_Bsend_c(TO), 0, 0);
    SEND(MPI_Isend(TO, &r), 1, 0);
    SEND(MPI_Isend_c(TO, &r), 1, 0);
    SEND(MPI_Issend(TO, &r), 1, 0);
    SEND(MPI_Issend_c(TO, &r), 1, 0);
    SEND(MPI_Ibsend(TO, &r), 1, 0);
    SEND(MPI_Ibsend_c(TO, &r), 1, 0);
    SEND(MPI_Send_init(TO, &r), 1, 2);
    SEND(MPI_Send_init_c(TO, &r), 1, 2);
    SEND(MPI_Ssend_init(TO, &r), 1, 2);
    SEND(MPI_Ssend_init_c(TO, &r), 1, 2);
    SEND(MPI_Bsend_init(TO, &r), 1, 2);
    SEND(MPI_Bsend_init_c(TO, &r), 1, 2);
}

/* The receive is there when a message in ready mode comes. */
static void ready(void)
{
    for (int way = 0; way < 6; way++) {
        MPI_Request receive;
        data[0] = way;
        if (rank == 1)
            MPI_Irecv(got, N, MPI_INT, 0, 99, comm, &receive);
        MPI_Barrier(comm);
        if (rank == 0) {
            switch (way) {
            case 0: MPI_Rsend(data, N, MPI_INT, 1, 99, comm); break;
            case 1: MPI_Rsend_c(data, N, MPI_INT, 1, 99, comm); break;
            case 2: MPI_Irsend(data, N, MPI_INT, 1, 99, comm, &r); break;
            case 3: MPI_Irsend_c(data, N, MPI_INT, 1, 99, comm, &r); break;
            case 4: MPI_Rsend_init(data, N, MPI_INT, 1, 99, comm, &r); break;
            case 5: MPI_Rsend_init_c(data, N, MPI_INT, 1, 99, comm, &r);
            }
            if (way > 1)
                finish(way > 3);
        } else {
            MPI_Wait(&receive, MPI_STATUS_IGNORE);
            printf("ready %d: %d\n", way, got[0]);
        }
    }
}

/* Both directions at once. */
static void exchanges(void)
{
    int other = 1 - rank, mine, theirs;
    MPI_Status st;
    for (int way = 0; way < 8; way++) {
        mine = 10 * rank + way, theirs = -1;
        switch (way) {
        case 0: MPI_Sendrecv(&mine, 1, MPI_INT, other, 7, &theirs, 1, MPI_INT, other, 7, comm, &st); break;
        case 1: MPI_Sendrecv_c(&mine, 1, MPI_INT, other, 7, &theirs, 1, MPI_INT, other, 7, comm, &st); break;
        case 2: MPI_Sendrecv_replace(&mine, 1, MPI_INT, other, 7, other, 7, comm, &st); break;
        case 3: MPI_Sendrecv_replace_c(&mine, 1, MPI_INT, other, 7, other, 7, comm, &st); break;
        case 4: MPI_Isendrecv(&mine, 1, MPI_INT, other, 7, &theirs, 1, MPI_INT, other, 7, comm, &r); break;
        case 5: MPI_Isendrecv_c(&mine, 1, MPI_INT, other, 7, &theirs, 1, MPI_INT, other, 7, comm, &r); break;
        case 6: MPI_Isendrecv_replace(&mine, 1, MPI_INT, other, 7, other, 7, comm, &r); break;
        case 7: MPI_Isendrecv_replace_c(&mine, 1, MPI_INT, other, 7, other, 7, comm, &r);
        }
        if (way > 3)
            MPI_Wait(&r, &st);
        if (rank == 1)
            printf("exchange %d: %d\n", way, theirs == -1 ? mine : theirs);
    }
}

/* Truncation, and what is no message. */
static void odd(void)
{
    MPI_Status st;
    int flag, n;
    if (rank == 0) {
        MPI_Send(data, N, MPI_INT, 1, 5, comm);
        MPI_Send(data, N, MPI_INT, 1, 6, comm);
        MPI_Bsend(data, 0, MPI_INT, 1, 7, comm);
    } else {
        printf("truncated: %s\n", class_name(MPI_Recv(got, 2, MPI_INT, 0, 5, comm, &st)));
        MPI_Irecv(got, 2, MPI_INT, 0, 6, comm, &r);
        printf("truncated later: %s\n", class_name(MPI_Wait(&r, &st)));
        MPI_Recv(got, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &st);
        MPI_Get_count(&st, MPI_INT, &n);
        printf("empty: %d from %d tag %d\n", n, st.MPI_SOURCE, st.MPI_TAG);
        MPI_Recv(got, 2, MPI_INT, MPI_PROC_NULL, 3, comm, &st);
        MPI_Get_count(&st, MPI_INT, &n);
        printf("nobody: %d %d %d\n", n, st.MPI_SOURCE == MPI_PROC_NULL, st.MPI_TAG == MPI_ANY_TAG);
        MPI_Irecv(got, 1, MPI_INT, 0, 1234, comm, &r);
        MPI_Cancel(&r);
        MPI_Wait(&r, &st);
        MPI_Test_cancelled(&st, &flag);
        printf("cancelled %d\n", flag);
        MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &st);
        printf("no request %d\n", flag);
    }
}

int main(int argc, char **argv)
{
    void *buffer;
    MPI_Count large;
    int small;
    begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Buffer_attach(room, sizeof room);
    modes();
    MPI_Buffer_detach(&buffer, &small);
    MPI_Buffer_attach_c(room, sizeof room);
    ready();
    exchanges();
    odd();
    MPI_Buffer_detach_c(&buffer, &large);
    if (rank == 1)
        printf("buffer %d %d\n", buffer == room, small == large);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
