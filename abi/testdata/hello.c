/* Each rank says who it is, and a message goes around. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, token = 0, length;
    char name[MPI_MAX_PROCESSOR_NAME], text[MPI_MAX_ERROR_STRING];
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    if ((int)strlen(name) != length || MPI_Wtime() <= 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0) {
        token = 1;
        if (size > 1) {
            MPI_Send(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, size - 1, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_SOURCE != size - 1 || status.MPI_TAG != 7)
                MPI_Abort(MPI_COMM_WORLD, 4);
        }
        printf("%d ranks, token %d\n", size, token);
    } else {
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token++;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
    }
    MPI_Error_string(MPI_SUCCESS, text, &length);
    MPI_Finalize();
    return 0;
}
