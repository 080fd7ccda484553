/* Rank 0 prints what it finds: numbers, and errors by the names of their classes. */
#include <mpi.h>
#include <mpi.h> /* as programs of several files do */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

__attribute__((unused)) static void say(const char *what, long value)
{
    if (rank == 0)
        printf("%s %ld\n", what, value);
}

__attribute__((unused)) static void ints(const char *what, const int *list, int n)
{
    if (rank)
        return;
    printf("%s:", what);
    for (int i = 0; i < n; i++)
        if (list[i] == MPI_PROC_NULL)
            printf(" null");
        else if (list[i] == MPI_UNDEFINED)
            printf(" undefined");
        else
            printf(" %d", list[i]);
    printf("\n");
}

#define NAME(c) \
    if (class == MPI_##c) \
        return #c;

__attribute__((unused)) static const char *class_name(int code)
{
    static char other[32];
    int class;
    MPI_Error_class(code, &class);
    NAME(SUCCESS)
    NAME(ERR_BUFFER)
    NAME(ERR_COUNT)
    NAME(ERR_TYPE)
    NAME(ERR_TAG)
    NAME(ERR_COMM)
    NAME(ERR_RANK)
    NAME(ERR_ROOT)
    NAME(ERR_GROUP)
    NAME(ERR_OP)
    NAME(ERR_TOPOLOGY)
    NAME(ERR_DIMS)
    NAME(ERR_ARG)
    NAME(ERR_TRUNCATE)
    NAME(ERR_REQUEST)
    NAME(ERR_IN_STATUS)
    NAME(ERR_PENDING)
    NAME(ERR_DUP_DATAREP)
    NAME(ERR_OTHER)
    NAME(ERR_INTERN)
    NAME(ERR_INFO)
    NAME(ERR_INFO_KEY)
    NAME(ERR_INFO_NOKEY)
    NAME(ERR_INFO_VALUE)
    NAME(ERR_KEYVAL)
    NAME(ERR_WIN)
    NAME(ERR_SIZE)
    NAME(ERR_DISP)
    NAME(ERR_ASSERT)
    NAME(ERR_LOCKTYPE)
    NAME(ERR_RMA_SYNC)
    NAME(ERR_RMA_RANGE)
    NAME(ERR_RMA_CONFLICT)
    NAME(ERR_RMA_ATTACH)
    NAME(ERR_RMA_SHARED)
    NAME(ERR_RMA_FLAVOR)
    NAME(ERR_UNSUPPORTED_OPERATION)
    sprintf(other, "class %d", class);
    return other;
}

__attribute__((unused)) static void error(const char *what, int code)
{
    if (rank == 0)
        printf("%s: %s\n", what, class_name(code));
}

__attribute__((unused)) static const char *relation(int r)
{
    return r == MPI_IDENT ? "ident" : r == MPI_CONGRUENT ? "congruent" : r == MPI_SIMILAR ? "similar" : r == MPI_UNEQUAL ? "unequal" : "?";
}

__attribute__((unused)) static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}
