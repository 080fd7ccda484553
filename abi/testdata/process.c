/* MPI inside a process that has signals, threads and work of its own. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, deep;

/* on_tick needs more stack than a goroutine has, and no SA_ONSTACK was asked for. */
static void on_tick(int number)
{
    volatile char room[12 << 10];
    for (unsigned i = 0; i < sizeof room; i++)
        room[i] = (char)i;
    deep += room[number] == (char)number;
    ticks++;
}

/* calls makes the library grow its stack, with handles that are small integers in it. */
static void calls(int rounds)
{
    char text[MPI_MAX_ERROR_STRING];
    int out[2000], in[2000], length, number;
    MPI_Request r[2];
    for (int i = 0; i < rounds; i++) {
        MPI_Irecv(in, 2000, MPI_INT, 0, 1, MPI_COMM_SELF, &r[0]);
        MPI_Isend(out, 2000, MPI_INT, 0, 1, MPI_COMM_SELF, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        number = MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 1, MPI_COMM_SELF); /* no buffer of a message */
        MPI_Error_string(number, text, &length);
    }
}

static void *thread(void *arg)
{
    calls(50);
    return arg;
}

/* switches is how often a thread has gone to sleep, the most of all others. */
static long switches(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long most = 0;
    for (struct dirent *d; (d = readdir(tasks));) {
        char path[300], line[200];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", d->d_name);
        FILE *f = atoi(d->d_name) == getpid() ? NULL : fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            long n;
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 && n > most)
                most = n;
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return most;
}

/* late_timers is how many threads have timers that may be 10 ms late, or 1 if that is not told. */
static int late_timers(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int late = 0, told = 0;
    for (struct dirent *d; (d = readdir(tasks));) {
        char path[300];
        long slack;
        snprintf(path, sizeof path, "/proc/%s/timerslack_ns", d->d_name);
        FILE *f = atoi(d->d_name) == getpid() ? NULL : fopen(path, "r");
        if (f && fscanf(f, "%ld", &slack) == 1) {
            told++;
            late += slack == 10000000;
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return told ? late : 1;
}

/* own_slack says whether timers of this thread are as precise as at first. */
static int own_slack(void)
{
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 0);
    return slack == prctl(PR_GET_TIMERSLACK);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_tick}, back;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    pthread_t threads[4];
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGALRM, NULL, &back);
    printf("on a stack of its own: %d\n", (back.sa_flags & SA_ONSTACK) != 0 && back.sa_handler == on_tick);
    signal(SIGUSR1, on_tick);
    sigaction(SIGUSR1, NULL, &back);
    printf("on a stack of its own: %d\n", (back.sa_flags & SA_ONSTACK) != 0 && signal(SIGUSR1, SIG_DFL) == on_tick);

    setitimer(ITIMER_REAL, &often, NULL);
    do
        calls(10);
    while (ticks < 100);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("handled: %d\n", deep == ticks);

    long before = switches(); /* while this thread computes, another one keeps the library awake */
    while (switches() < before + 10)
        for (volatile int i = 0; i < 1000000; i++)
            ;
    printf("awake\n");
    printf("late timers: %d\n", late_timers()); /* the monitor of the library's runtime */
    printf("own slack: %d\n", own_slack());
    fflush(stdout);
    printf("shell: %d\n", system("exit 3") >> 8);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 4", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("child: %d\n", status >> 8);
    calls(1); /* and the parent goes on */
    MPI_Finalize();
    return 5;
}
