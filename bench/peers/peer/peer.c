/*
 * The tests of package osu for MPI libraries other than ours, with calls of the
 * MPI standard only. rank.go is the same in Go; methods are those of the OSU
 * micro-benchmarks: warm-up, blocking ping-pongs, windows of non-blocking calls
 * with a short answer, a barrier between collectives.
 *
 * Rank 0 says "ready", reads orders, a line each, from its standard input:
 *
 *	TEST SIZE ITERS WARMUP WINDOW COMPUTE
 *
 * and answers each with "times MIN P50 P99 P999 MAX AVG STDEV" in microseconds, or with
 * "stream MESSAGES SECONDS". Between orders the other ranks sleep, so that they
 * do not take processors from whoever is measured meanwhile.
 *
 * XPERF_CORES=2,3 pins rank i to the (i mod n)th of n processors.
 */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 1, WINDOW_MAX = 4096, MESSAGE_MAX = 64 << 20, RANKS_MAX = 256 };

static int me, ranks;
static char *out, *in;
static size_t room; /* of out and of in */
static double *samples;
static int room_samples;
static MPI_Request requests[2 * WINDOW_MAX]; /* as many each way */

struct order {
	char test[32];
	int size, iters, warmup, window;
	int compute; /* microseconds */
};

static void fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void pin(void)
{
	int core, n = 0, cores[1024];
	char *end, *list = getenv("XPERF_CORES");
	cpu_set_t set;

	while (list && *list && n < 1024) {
		core = strtol(list, &end, 10);
		if (end == list)
			fail("XPERF_CORES is no list of processors");
		cores[n++] = core;
		list = *end ? end + 1 : end;
	}
	if (n == 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cores[me % n], &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fail("sched_setaffinity failed");
}

/* prepare makes room for n bytes each way, and for the samples. */
static void prepare(size_t n, int iters)
{
	if (n > room) {
		free(out);
		free(in);
		out = in = NULL;
		if (posix_memalign((void **)&out, 4096, n) || posix_memalign((void **)&in, 4096, n))
			fail("out of memory");
		memset(out, 1, n);
		memset(in, 1, n);
		room = n;
	}
	if (iters > room_samples) {
		free(samples);
		samples = malloc(iters * sizeof *samples);
		if (!samples)
			fail("out of memory");
		room_samples = iters;
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* So many per thousand, by the nearest rank. */
static double percentile(int n, int permille)
{
	int rank = (n * (long long)permille + 999) / 1000;

	return samples[rank > 1 ? rank - 1 : 0];
}

struct times {
	double min, p50, p99, p999, max, avg, stdev;
};

/* sum_up makes microseconds of the samples, which are seconds over ways. */
static struct times sum_up(int n, int ways)
{
	struct times t = {0};
	double unit = 1e6 / ways, d;
	int i;

	for (i = 0; i < n; i++)
		t.avg += samples[i] * unit / n;
	for (i = 0; i < n; i++) {
		d = samples[i] * unit - t.avg;
		t.stdev += d * d / n;
	}
	t.stdev = sqrt(t.stdev);
	qsort(samples, n, sizeof *samples, ascending);
	t.min = samples[0] * unit;
	t.p50 = percentile(n, 500) * unit;
	t.p99 = percentile(n, 990) * unit;
	t.p999 = percentile(n, 999) * unit;
	t.max = samples[n - 1] * unit;
	return t;
}

static void answer_times(struct times t)
{
	printf("times %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", t.min, t.p50, t.p99, t.p999, t.max, t.avg, t.stdev);
	fflush(stdout);
}

static void latency(const struct order *o)
{
	double before, now;
	int i;

	if (me > 1)
		return;
	before = MPI_Wtime();
	for (i = -o->warmup; i < o->iters; i++) {
		if (me == 0) {
			MPI_Send(out, o->size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
			MPI_Recv(in, o->size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			now = MPI_Wtime();
			if (i >= 0)
				samples[i] = now - before;
			before = now;
		} else {
			MPI_Recv(in, o->size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, o->size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
		}
	}
	if (me == 0)
		answer_times(sum_up(o->iters, 2));
}

static void windows(const struct order *o, int messages)
{
	int i, w;

	for (w = 0; w < messages / o->window; w++) {
		for (i = 0; i < o->window; i++) {
			if (me == 0)
				MPI_Isend(out, o->size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &requests[i]);
			else
				MPI_Irecv(in, o->size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[i]);
		}
		MPI_Waitall(o->window, requests, MPI_STATUSES_IGNORE);
		if (me == 0)
			MPI_Recv(in, 4, MPI_CHAR, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(out, 4, MPI_CHAR, 0, TAG + 1, MPI_COMM_WORLD);
	}
}

/* exchange moves messages both ways at once. */
static void exchange(const struct order *o, int messages)
{
	int i, w, n = o->window;

	for (w = 0; w < messages / n; w++) {
		for (i = 0; i < n; i++)
			MPI_Irecv(in, o->size, MPI_CHAR, 1 - me, TAG, MPI_COMM_WORLD, &requests[i]);
		for (i = 0; i < n; i++)
			MPI_Isend(out, o->size, MPI_CHAR, 1 - me, TAG, MPI_COMM_WORLD, &requests[n + i]);
		MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
	}
}

/* stream says how long it takes to move messages, one way or both. */
static void stream(const struct order *o, int ways, void (*move)(const struct order *, int))
{
	double start;

	if (me > 1)
		return;
	move(o, o->warmup);
	start = MPI_Wtime();
	move(o, o->iters);
	if (me == 0) {
		printf("stream %d %.9g\n", ways * o->iters, MPI_Wtime() - start);
		fflush(stdout);
	}
}

/*
 * One-sided tests: rank 0 operates on the window of rank 1, which waits for a
 * message meanwhile, under lock_all, and flushes after each window of operations.
 */
static MPI_Win win;
static int64_t result;

static void put(int n) { MPI_Put(out, n, MPI_CHAR, 1, 0, n, MPI_CHAR, win); }
static void get(int n) { MPI_Get(in, n, MPI_CHAR, 1, 0, n, MPI_CHAR, win); }
static void acc(int n) { MPI_Accumulate(out, n, MPI_UNSIGNED_CHAR, 1, 0, n, MPI_UNSIGNED_CHAR, MPI_SUM, win); }

static void fop(int n)
{
	const int64_t one = 1;

	(void)n;
	MPI_Fetch_and_op(&one, &result, MPI_INT64_T, 1, 0, MPI_SUM, win);
}

static void cas(int n)
{
	int64_t compare = result, value = result + 1;

	(void)n;
	MPI_Compare_and_swap(&value, &compare, &result, MPI_INT64_T, 1, 0, win);
}

static const struct one_sided {
	const char *name;
	void (*call)(int);
	int stream;
} one_sided[] = {
	{"put_lat", put, 0}, {"get_lat", get, 0}, {"acc_lat", acc, 0}, {"fop_lat", fop, 0}, {"cas_lat", cas, 0},
	{"put_bw", put, 1}, {"get_bw", get, 1}, {"put_rate", put, 1},
};

/* flushed does n operations, and waits for them after each window. */
static void flushed(const struct order *o, const struct one_sided *t, int window, int n)
{
	int i, w;

	for (w = 0; w < n / window; w++) {
		for (i = 0; i < window; i++)
			t->call(o->size);
		MPI_Win_flush(1, win);
	}
}

static void operate(const struct order *o, const struct one_sided *t)
{
	double before, now;
	int i;

	if (t->stream) {
		flushed(o, t, o->window, o->warmup);
		before = MPI_Wtime();
		flushed(o, t, o->window, o->iters);
		printf("stream %d %.9g\n", o->iters, MPI_Wtime() - before);
		fflush(stdout);
		return;
	}
	before = MPI_Wtime();
	for (i = -o->warmup; i < o->iters; i++) {
		flushed(o, t, 1, 1);
		now = MPI_Wtime();
		if (i >= 0)
			samples[i] = now - before;
		before = now;
	}
	answer_times(sum_up(o->iters, 1));
}

static void on_window(const struct order *o, const struct one_sided *t)
{
	void *base;

	MPI_Win_allocate(o->size + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	if (me == 0) {
		operate(o, t);
		MPI_Send(out, 0, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
	} else if (me == 1) {
		MPI_Recv(in, 0, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

/*
 * Epochs of rank 0 while rank 1 computes: lock_all, an operation and flush, or
 * operations between two fences.
 */
enum { FENCE_WINDOW = 64 };

static MPI_Datatype every_other;
static void *memory; /* of the window */

static void put_words(int n) { MPI_Put(out, n, MPI_INT64_T, 1, 0, n, MPI_INT64_T, win); }
static void get_words(int n) { MPI_Get(in, n, MPI_INT64_T, 1, 0, n, MPI_INT64_T, win); }
static void acc_words(int n) { MPI_Accumulate(out, n, MPI_INT64_T, 1, 0, n, MPI_INT64_T, MPI_SUM, win); }
static void acc_vector(int n) { MPI_Accumulate(out, n, MPI_INT64_T, 1, 0, 1, every_other, MPI_SUM, win); }

static const struct epoch {
	const char *name;
	void (*call)(int);
	int fences, sends;
} epochs[] = {
	{"overlap_acc", acc_words, 0, 0}, {"overlap_put", put_words, 0, 0}, {"overlap_get", get_words, 0, 0},
	{"overlap_vector", acc_vector, 0, 0}, {"overlap_fence", acc_words, 1, 0},
	{"overlap_recv", NULL, 0, 0}, {"overlap_send", NULL, 0, 1}, /* of what the target sends from its window, or receives there */
};

static double origin(const struct epoch *e, int words)
{
	double start, took;
	int i;

	if (e->fences) {
		MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
		start = MPI_Wtime();
		for (i = 0; i < FENCE_WINDOW; i++)
			e->call(words);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
		return MPI_Wtime() - start;
	}
	if (!e->call) {
		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		e->sends ? MPI_Send(out, words, MPI_INT64_T, 1, TAG, MPI_COMM_WORLD)
			 : MPI_Recv(in, words, MPI_INT64_T, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return MPI_Wtime() - start;
	}
	start = MPI_Wtime();
	MPI_Win_lock_all(0, win);
	e->call(words);
	MPI_Win_flush(1, win);
	took = MPI_Wtime() - start;
	MPI_Win_unlock_all(win);
	return took;
}

static void compute(double seconds)
{
	double end = MPI_Wtime() + seconds;

	while (MPI_Wtime() < end)
		;
}

static void target(const struct order *o, const struct epoch *e)
{
	int i, done = !e->call || e->fences;
	MPI_Request message;

	for (i = 0; done && i < o->warmup + o->iters; i++) {
		e->fences ? MPI_Win_fence(MPI_MODE_NOPRECEDE, win) : MPI_Barrier(MPI_COMM_WORLD);
		if (!e->fences)
			e->sends ? MPI_Irecv(memory, o->size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &message)
				 : MPI_Isend(memory, o->size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &message);
		compute(o->compute * 1e-6);
		e->fences ? MPI_Win_fence(MPI_MODE_NOSUCCEED, win) : MPI_Wait(&message, MPI_STATUS_IGNORE);
	}
	while (!done) {
		compute(o->compute * 1e-6);
		MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
	}
	MPI_Recv(in, 0, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void overlap(const struct order *o, const struct epoch *e)
{
	int i, words = o->size / 8;
	double took;

	MPI_Type_vector(words, 1, 2, MPI_INT64_T, &every_other);
	MPI_Type_commit(&every_other);
	MPI_Win_allocate(2 * o->size, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	if (me == 0) {
		for (i = -o->warmup; i < o->iters; i++) {
			took = origin(e, words);
			if (i >= 0)
				samples[i] = took;
		}
		MPI_Send(out, 0, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
	} else {
		target(o, e);
	}
	MPI_Win_free(&win);
	MPI_Type_free(&every_other);
	if (me == 0)
		answer_times(sum_up(o->iters, 1));
}

static void allreduce(int n) { MPI_Allreduce(out, in, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void reduce(int n) { MPI_Reduce(out, in, n / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void gather(int n) { MPI_Gather(out, n, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void scatter(int n) { MPI_Scatter(out, n, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void bcast(int n) { MPI_Bcast(out, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void alltoall(int n) { MPI_Alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD); }
static void allgather(int n) { MPI_Allgather(out, n, MPI_CHAR, in, n, MPI_CHAR, MPI_COMM_WORLD); }
static void scan(int n) { MPI_Scan(out, in, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void exscan(int n) { MPI_Exscan(out, in, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

/* Of the collectives that take a count for each rank; all are alike. */
static int counts[RANKS_MAX], words[RANKS_MAX], displs[RANKS_MAX];
static MPI_Datatype types[RANKS_MAX];

static void count(int n)
{
	int i;

	for (i = 0; i < ranks; i++) {
		counts[i] = n;
		words[i] = n / 4;
		displs[i] = i * n;
		types[i] = MPI_CHAR;
	}
}

static void allgatherv(int n) { MPI_Allgatherv(out, n, MPI_CHAR, in, counts, displs, MPI_CHAR, MPI_COMM_WORLD); }
static void gatherv(int n) { MPI_Gatherv(out, n, MPI_CHAR, in, counts, displs, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void scatterv(int n) { MPI_Scatterv(out, counts, displs, MPI_CHAR, in, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void reduce_scatter_block(int n) { MPI_Reduce_scatter_block(out, in, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static void alltoallv(int n)
{
	(void)n;
	MPI_Alltoallv(out, counts, displs, MPI_CHAR, in, counts, displs, MPI_CHAR, MPI_COMM_WORLD);
}

static void alltoallw(int n)
{
	(void)n;
	MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types, MPI_COMM_WORLD);
}

static void reduce_scatter(int n)
{
	(void)n;
	MPI_Reduce_scatter(out, in, words, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(int n) { (void)n; MPI_Barrier(MPI_COMM_WORLD); }

/*
 * collective times the calls of every rank, and answers with the mean over the
 * ranks, and with the extremes of all of them.
 */
static void collective(const struct order *o, void (*call)(int))
{
	struct times mine, all;
	double start;
	int i;

	count(o->size);
	for (i = -o->warmup; i < o->iters; i++) {
		start = MPI_Wtime();
		call(o->size);
		if (i >= 0)
			samples[i] = MPI_Wtime() - start;
		if (call != barrier)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	mine = sum_up(o->iters, 1);
	MPI_Reduce(&mine.min, &all.min, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.p50, &all.p50, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.p99, &all.p99, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.p999, &all.p999, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.stdev, &all.stdev, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.max, &all.max, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.avg, &all.avg, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0) {
		all.p50 /= ranks;
		all.p99 /= ranks;
		all.p999 /= ranks;
		all.avg /= ranks;
		all.stdev /= ranks;
		answer_times(all);
	}
}

static const struct {
	const char *name;
	void (*call)(int);
} collectives[] = {
	{"allreduce", allreduce}, {"bcast", bcast}, {"alltoall", alltoall},
	{"allgather", allgather}, {"barrier", barrier},
	{"reduce", reduce}, {"gather", gather}, {"scatter", scatter},
	{"allgatherv", allgatherv}, {"alltoallv", alltoallv}, {"alltoallw", alltoallw},
	{"gatherv", gatherv}, {"scatterv", scatterv}, {"scan", scan}, {"exscan", exscan},
	{"reduce_scatter", reduce_scatter}, {"reduce_scatter_block", reduce_scatter_block},
};

static void execute(const struct order *o)
{
	size_t i;

	prepare((size_t)(o->size > 4 ? o->size : 4) * ranks, o->iters);
	if (strcmp(o->test, "lat") == 0) {
		latency(o);
		return;
	}
	if (strcmp(o->test, "stream") == 0) {
		stream(o, 1, windows);
		return;
	}
	if (strcmp(o->test, "duplex") == 0) {
		stream(o, 2, exchange);
		return;
	}
	for (i = 0; i < sizeof one_sided / sizeof *one_sided; i++) {
		if (strcmp(o->test, one_sided[i].name) == 0) {
			on_window(o, &one_sided[i]);
			return;
		}
	}
	for (i = 0; i < sizeof epochs / sizeof *epochs; i++) {
		if (strcmp(o->test, epochs[i].name) == 0) {
			overlap(o, &epochs[i]);
			return;
		}
	}
	for (i = 0; i < sizeof collectives / sizeof *collectives; i++) {
		if (strcmp(o->test, collectives[i].name) == 0) {
			collective(o, collectives[i].call);
			return;
		}
	}
	fail("unknown test");
}

/* next gives all ranks the next order. It returns 0 at the end. */
static int next(struct order *o)
{
	char line[256];
	int done = 0;
#ifdef XPERF_SLEEPS /* The library sleeps in a call that blocks: these wait for orders as ranks in Go do. */
	const double until = MPI_Wtime() + 2e-3;

	while (me == 0 && MPI_Wtime() < until)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
#else
	const struct timespec pause = {0, 500 * 1000};
	MPI_Request r;
#endif

	memset(o, 0, sizeof *o);
	if (me == 0 && fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "%31s %d %d %d %d %d", o->test, &o->size, &o->iters, &o->warmup, &o->window, &o->compute) != 6 ||
		    o->size < 0 || o->size > MESSAGE_MAX || o->iters < 1 || o->warmup < 0 ||
		    o->window < 1 || o->window > WINDOW_MAX)
			fail("bad order");
	}
#ifdef XPERF_SLEEPS
	MPI_Bcast(o, sizeof *o, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
	MPI_Ibcast(o, sizeof *o, MPI_BYTE, 0, MPI_COMM_WORLD, &r);
	for (;;) {
		MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		if (done)
			break;
		nanosleep(&pause, NULL);
	}
#endif
	return o->iters > 0;
}

int main(int argc, char **argv)
{
	struct order o;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks > RANKS_MAX)
		fail("too many ranks");
	pin();
	if (me == 0) {
		puts("ready");
		fflush(stdout);
	}
	while (next(&o)) {
		MPI_Barrier(MPI_COMM_WORLD); /* all are awake */
		execute(&o);
	}
	MPI_Finalize();
	return 0;
}
