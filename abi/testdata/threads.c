/* Levels of threads: threads of a rank call MPI at once if they may. Every thread of a rank
 * exchanges messages with that of the same number in all others. */
#include "class.h"
#include <pthread.h>

enum { THREADS = 3, TIMES = 20 };

static MPI_Comm comm[THREADS];
static long sums[THREADS];

static void *thread(void *number)
{
    int me = *(int *)number, word, got;
    for (int i = 0; i < TIMES; i++) {
        word = rank * 100 + me;
        MPI_Sendrecv(&word, 1, MPI_INT, (rank + 1) % size, me, &got, 1, MPI_INT, (rank + size - 1) % size, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sums[me] += got;
        MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, comm[me]);
        sums[me] += word;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    int want = levels[argc > 1 ? atoi(argv[1]) : 3], provided, queried, main_thread, numbers[THREADS];
    pthread_t threads[THREADS];
    long sum = 0, all;
    MPI_Init_thread(&argc, &argv, want, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Query_thread(&queried);
    MPI_Is_thread_main(&main_thread);
    say("as asked:", provided >= want && queried == provided);
    say("main thread:", main_thread);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        numbers[i] = i;
    }
    for (int i = 0; i < THREADS; i++)
        if (want == MPI_THREAD_MULTIPLE)
            pthread_create(&threads[i], NULL, thread, &numbers[i]);
        else
            thread(&numbers[i]);
    for (int i = 0; i < THREADS; i++) {
        if (want == MPI_THREAD_MULTIPLE)
            pthread_join(threads[i], NULL);
        sum += sums[i];
        MPI_Comm_free(&comm[i]);
    }
    MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    say("sum", all);
    MPI_Finalize();
    return 0;
}
