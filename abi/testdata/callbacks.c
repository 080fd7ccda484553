/* Functions of the program that the library calls, which call the library themselves, many deep,
 * while other threads do the same. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { DEEP = 100, THREADS = 4, ROUNDS = 20 };

static MPI_Op op;
static int key, mistakes = 1; /* with an argument many: MPICH 4.0's MPI_Send stops in an error handler */
static _Thread_local int depth, errors, copies, deletes;

/* add reduces one element, and the rest by a call of its own. */
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int *a = in, *b = inout;
    if (*n > 1)
        MPI_Reduce_local(a + 1, b + 1, *n - 1, *type, op);
    *b += *a;
}

/* on_error makes the same mistake again. */
static void on_error(MPI_Comm *comm, int *code, ...)
{
    int class;
    MPI_Error_class(*code, &class);
    errors += class == MPI_ERR_RANK;
    if (++depth < mistakes)
        MPI_Send(&class, 1, MPI_INT, 99, 0, *comm);
}

/* copy_attr makes and frees a communicator before it says yes. */
static int copy_attr(MPI_Comm comm, int k, void *extra, void *value, void *copied, int *flag)
{
    MPI_Comm other;
    (void)comm, (void)k, (void)extra;
    copies++;
    *flag = 1;
    *(void **)copied = value;
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    return MPI_Comm_free(&other);
}

/* delete_attr takes the same attribute from a communicator that has a smaller one. */
static int delete_attr(MPI_Comm comm, int k, void *value, void *extra)
{
    intptr_t left = (intptr_t)value;
    MPI_Comm other;
    (void)comm, (void)extra;
    deletes++;
    if (left < 2)
        return MPI_SUCCESS;
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_set_attr(other, k, (void *)(left - 1));
    return MPI_Comm_free(&other);
}

static void *thread(void *right)
{
    MPI_Comm mine, again;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_SELF, &mine);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(mine, handler);
    *(int *)right = 1;
    for (int i = 0; i < ROUNDS; i++) {
        int a[DEEP], b[DEEP], sum = 0;
        for (int j = 0; j < DEEP; j++)
            a[j] = j, b[j] = 1;
        MPI_Reduce_local(a, b, DEEP, MPI_INT, op);
        for (int j = 0; j < DEEP; j++)
            sum += b[j];
        depth = errors = copies = deletes = 0;
        MPI_Send(&sum, 1, MPI_INT, 99, 0, mine);
        MPI_Comm_set_attr(mine, key, (void *)(intptr_t)3);
        MPI_Comm_dup(mine, &again);
        MPI_Comm_free(&again);
        MPI_Comm_delete_attr(mine, key);
        if (sum != DEEP * (DEEP + 1) / 2 || errors != mistakes || copies != 1 || deletes != 6)
            *(int *)right = 0;
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&mine);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int level, right[THREADS];
    if (argc > 1)
        mistakes = DEEP;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Op_create(add, 1, &op);
    MPI_Comm_create_keyval(copy_attr, delete_attr, &key, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, &right[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        printf("thread: %d\n", right[i]);
    }
    MPI_Op_free(&op);
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
    return 0;
}
