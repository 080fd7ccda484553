/* Sessions without MPI_Init, on 4 ranks, and one more after the last has ended. */
#include "class.h"

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
