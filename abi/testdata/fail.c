/* Ends in the way that its argument says. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, class;
    const char *way = argv[1];

    if (!strcmp(way, "early")) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(way, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 23);
    if (!strcmp(way, "fatal"))
        MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    if (!strcmp(way, "missing")) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Error_class(MPI_Close_port("none"), &class);
        printf("%d\n", class == MPI_ERR_UNSUPPORTED_OPERATION);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        MPI_Close_port("none");
    }
    if (!strcmp(way, "exit"))
        exit(9); /* without MPI_Finalize */
    if (!strcmp(way, "late")) {
        MPI_Finalize();
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return 0;
    }
    if (!strcmp(way, "left")) { /* a receive for which nothing comes */
        static int word;
        MPI_Request request;
        MPI_Irecv(&word, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
    }
    if (!strcmp(way, "segv"))
        *(volatile int *)8 = 1;
    MPI_Finalize();
    return 0;
}
