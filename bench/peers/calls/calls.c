/*
 * calls times what programs in C call besides what the matrix of "xperf compare peers"
 * has: other kinds of sends and receives, many messages at a time, datatypes with
 * gaps, one-sided communication, new objects, collectives that do not block.
 *
 *	calls [SECONDS [NAME...]]
 *
 * prints a line "name bytes microseconds" for each call, or for those with the names:
 * the mean of as many calls as take about a third of SECONDS (default 0.15), the least
 * of three times, of the rank that takes longest. Ranks 0 and 1, 2 and 3, ... are pairs. Any
 * implementation of MPI-3 compiles it:
 *
 *	bin/xmpicc -O2 -o calls.xwarp bench/peers/calls/calls.c && bin/xrun -n 2 ./calls.xwarp
 *	mpicc -O2 -o calls.mpich bench/peers/calls/calls.c && mpiexec -n 2 ./calls.mpich
 *
 * bench/peers/calls/compare does so with three of them, in turns, on one host or on two.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20, MANY = 100, BATCH = 64 };

static int me, ranks, left, right, pair; /* pair: MPI_PROC_NULL if there is no such rank */
static char *in, *out, *window;          /* 2 * MOST bytes each */
static MPI_Comm world;
static MPI_Datatype type;
static MPI_Win win;
static MPI_Comm ring;
static MPI_Group before, behind;
static MPI_Op op;
static MPI_Request kept[4];

#define NOTHING MPI_STATUS_IGNORE
#define NOTHINGS MPI_STATUSES_IGNORE

/* Messages there and back: the lower rank of a pair begins. */
#define BACK_AND_FORTH(name, send, receive)          \
	static void name(int n)                      \
	{                                            \
		if (pair == MPI_PROC_NULL)           \
			return;                      \
		if (me % 2 == 0) {                   \
			send;                        \
			receive;                     \
		} else {                             \
			receive;                     \
			send;                        \
		}                                    \
	}

static void plain(int n) { MPI_Recv(in, n, MPI_CHAR, pair, 0, world, NOTHING); }
static void standard(int n) { MPI_Send(out, n, MPI_CHAR, pair, 0, world); }

static void probed(int n)
{
	MPI_Status st;

	MPI_Probe(pair, MPI_ANY_TAG, world, &st);
	MPI_Get_count(&st, MPI_CHAR, &n);
	MPI_Recv(in, n, MPI_CHAR, pair, st.MPI_TAG, world, NOTHING);
}

static void matched(int n)
{
	MPI_Message message;

	MPI_Mprobe(pair, MPI_ANY_TAG, world, &message, NOTHING);
	MPI_Mrecv(in, n, MPI_CHAR, &message, NOTHING);
}

static void polled(int n)
{
	int there = 0;

	while (!there)
		MPI_Iprobe(pair, 0, world, &there, NOTHING);
	plain(n);
}

static void tested(int n)
{
	MPI_Request r;
	int done = 0;

	MPI_Irecv(in, n, MPI_CHAR, pair, 0, world, &r);
	while (!done)
		MPI_Test(&r, &done, NOTHING);
}

BACK_AND_FORTH(send, standard(n), plain(n))
BACK_AND_FORTH(ssend, MPI_Ssend(out, n, MPI_CHAR, pair, 0, world), plain(n))
BACK_AND_FORTH(bsend, MPI_Bsend(out, n, MPI_CHAR, pair, 0, world), plain(n))
BACK_AND_FORTH(any, standard(n), MPI_Recv(in, n, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, world, NOTHING))
BACK_AND_FORTH(probe, standard(n), probed(n))
BACK_AND_FORTH(mprobe, standard(n), matched(n))
BACK_AND_FORTH(iprobe, standard(n), polled(n))
BACK_AND_FORTH(test, standard(n), tested(n))
BACK_AND_FORTH(typed, (void)n; MPI_Send(out, 1, type, pair, 0, world), MPI_Recv(in, 1, type, pair, 0, world, NOTHING))

/* Many messages at a time. */
static void halo(int n)
{
	MPI_Request r[4];

	MPI_Irecv(in, n, MPI_CHAR, left, 1, world, r);
	MPI_Irecv(in + MOST, n, MPI_CHAR, right, 2, world, r + 1);
	MPI_Isend(out, n, MPI_CHAR, right, 1, world, r + 2);
	MPI_Isend(out + MOST, n, MPI_CHAR, left, 2, world, r + 3);
	MPI_Waitall(4, r, NOTHINGS);
}

static void shift(int n) { MPI_Sendrecv(out, n, MPI_CHAR, right, 1, in, n, MPI_CHAR, left, 1, world, NOTHING); }

static void prepare(int n)
{
	MPI_Recv_init(in, n, MPI_CHAR, left, 1, world, kept);
	MPI_Recv_init(in + MOST, n, MPI_CHAR, right, 2, world, kept + 1);
	MPI_Send_init(out, n, MPI_CHAR, right, 1, world, kept + 2);
	MPI_Send_init(out + MOST, n, MPI_CHAR, left, 2, world, kept + 3);
}

static void persistent(int n)
{
	(void)n;
	MPI_Startall(4, kept);
	MPI_Waitall(4, kept, NOTHINGS);
}

static void forget(void)
{
	int i;

	for (i = 0; i < 4; i++)
		MPI_Request_free(kept + i);
}

static void unexpected(int n)
{
	MPI_Request r[MANY];
	int i;

	for (i = 0; i < MANY; i++)
		MPI_Isend(out, n, MPI_CHAR, pair, i, world, r + i);
	for (i = MANY; i-- > 0;)
		MPI_Recv(in, n, MPI_CHAR, pair, i, world, NOTHING);
	MPI_Waitall(MANY, r, NOTHINGS);
}

static void start(int n, MPI_Request *r)
{
	int i;

	for (i = 0; i < MANY; i++)
		MPI_Irecv(in, n, MPI_CHAR, pair, i, world, r + i);
	for (i = MANY; i-- > 0;)
		MPI_Isend(out, n, MPI_CHAR, pair, i, world, r + MANY + i);
}

static void posted(int n)
{
	MPI_Request r[2 * MANY];

	start(n, r);
	MPI_Waitall(2 * MANY, r, NOTHINGS);
}

static void waitany(int n)
{
	MPI_Request r[2 * MANY];
	int i, which;

	start(n, r);
	for (i = 0; i < 2 * MANY; i++)
		MPI_Waitany(2 * MANY, r, &which, NOTHING);
}

static void incast(int n) /* to rank 0 */
{
	int i;

	if (me != 0) {
		for (i = 0; i < 16; i++)
			MPI_Send(out, n, MPI_CHAR, 0, 0, world);
		MPI_Recv(in, 0, MPI_CHAR, 0, 1, world, NOTHING);
		return;
	}
	for (i = 0; i < 16 * (ranks - 1); i++)
		MPI_Recv(in, n, MPI_CHAR, MPI_ANY_SOURCE, 0, world, NOTHING);
	for (i = 1; i < ranks; i++)
		MPI_Send(out, 0, MPI_CHAR, i, 1, world);
}

static void self(int n)
{
	MPI_Request r;

	MPI_Irecv(in, n, MPI_CHAR, 0, 0, MPI_COMM_SELF, &r);
	MPI_Send(out, n, MPI_CHAR, 0, 0, MPI_COMM_SELF);
	MPI_Wait(&r, NOTHING);
}

/* Datatypes of n bytes without their gaps. */
static void of_doubles(int n) { MPI_Type_vector(n / 8, 1, 2, MPI_DOUBLE, &type), MPI_Type_commit(&type); }
static void of_rows(int n) { MPI_Type_vector(n / 512, 512, 1024, MPI_CHAR, &type), MPI_Type_commit(&type); }

static void of_structs(int n)
{
	int lengths[] = {1, 1};
	MPI_Aint at[] = {0, 8};
	MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE}, one;

	MPI_Type_create_struct(2, lengths, at, parts, &one);
	MPI_Type_contiguous(n / 12, one, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&one);
}

static void drop_type(void) { MPI_Type_free(&type); }

static void pack(int n)
{
	int at = 0;

	MPI_Pack(out, 1, type, in, MOST, &at, world);
	at = 0;
	MPI_Unpack(in, n, &at, out, 1, type, world);
}

/* One-sided communication: the lower rank of a pair is the origin. */
#define ORIGIN(name, times, call)                            \
	static void name(int n)                              \
	{                                                    \
		int i;                                       \
		(void)n;                                     \
		if (me % 2 != 0 || pair == MPI_PROC_NULL)    \
			return;                              \
		for (i = 0; i < times; i++)                  \
			call;                                \
		MPI_Win_flush(pair, win);                    \
	}

ORIGIN(put, 1, MPI_Put(out, n, MPI_CHAR, pair, 0, n, MPI_CHAR, win))
ORIGIN(get, 1, MPI_Get(in, n, MPI_CHAR, pair, 0, n, MPI_CHAR, win))
ORIGIN(put_batch, BATCH, MPI_Put(out + i * n, n, MPI_CHAR, pair, i * n, n, MPI_CHAR, win))
ORIGIN(get_batch, BATCH, MPI_Get(in + i * n, n, MPI_CHAR, pair, i * n, n, MPI_CHAR, win))
ORIGIN(accumulate, 1, MPI_Accumulate(out, n / 8, MPI_LONG, pair, 0, n / 8, MPI_LONG, MPI_SUM, win))
ORIGIN(get_accumulate, 1, MPI_Get_accumulate(out, n / 8, MPI_LONG, in, n / 8, MPI_LONG, pair, 0, n / 8, MPI_LONG, MPI_SUM, win))
ORIGIN(fetch_and_op, 1, MPI_Fetch_and_op(out, in, MPI_LONG, pair, 0, MPI_SUM, win))
ORIGIN(compare_and_swap, 1, MPI_Compare_and_swap(out, out + 8, in, MPI_LONG, pair, 0, win))

static void lock_all(int n) { (void)n, MPI_Win_lock_all(0, win); }
static void unlock_all(void) { MPI_Win_unlock_all(win); }

static void fence(int n)
{
	MPI_Win_fence(0, win);
	MPI_Put(out, n, MPI_CHAR, right, 0, n, MPI_CHAR, win);
	MPI_Win_fence(0, win);
}

static void lock(int n)
{
	if (me % 2 != 0 || pair == MPI_PROC_NULL)
		return;
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, pair, 0, win);
	MPI_Put(out, n, MPI_CHAR, pair, 0, n, MPI_CHAR, win);
	MPI_Win_unlock(pair, win);
}

static void pscw(int n)
{
	MPI_Win_post(before, 0, win);
	MPI_Win_start(behind, 0, win);
	MPI_Put(out, n, MPI_CHAR, right, 0, n, MPI_CHAR, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
}

/* Objects are made and freed. */
static void dup_and(int allreduces)
{
	MPI_Comm c;

	MPI_Comm_dup(world, &c);
	for (; allreduces > 0; allreduces--)
		MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, c);
	MPI_Comm_free(&c);
}

static void split(int n)
{
	MPI_Comm c;

	(void)n;
	MPI_Comm_split(world, me % 2, me, &c);
	MPI_Comm_free(&c);
}

static void win_create(int n)
{
	MPI_Win w;

	MPI_Win_create(window, n, 1, MPI_INFO_NULL, world, &w);
	MPI_Win_free(&w);
}

static void win_allocate(int n)
{
	MPI_Win w;
	void *p;

	MPI_Win_allocate(n, 1, MPI_INFO_NULL, world, &p, &w);
	MPI_Win_free(&w);
}

static void alloc_mem(int n)
{
	void *p;

	MPI_Alloc_mem(n, MPI_INFO_NULL, &p);
	MPI_Free_mem(p);
}

static void type_vector(int n) { of_doubles(n), drop_type(); }

/* Collectives that the matrix has no cells for. */
#define NONBLOCKING(name, call)       \
	static void name(int n)       \
	{                             \
		MPI_Request r;        \
		(void)n;              \
		call;                 \
		MPI_Wait(&r, NOTHING); \
	}

NONBLOCKING(ibarrier, MPI_Ibarrier(world, &r))
NONBLOCKING(iallreduce, MPI_Iallreduce(out, in, n / 8, MPI_DOUBLE, MPI_SUM, world, &r))
NONBLOCKING(ibcast, MPI_Ibcast(out, n, MPI_CHAR, 0, world, &r))
NONBLOCKING(ialltoall, MPI_Ialltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, world, &r))
NONBLOCKING(iallgather, MPI_Iallgather(out, n, MPI_CHAR, in, n, MPI_CHAR, world, &r))
NONBLOCKING(ineighbor, MPI_Ineighbor_alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, ring, &r))

static void neighbor(int n) { MPI_Neighbor_alltoall(out, n, MPI_CHAR, in, n, MPI_CHAR, ring); }
static void bcast_typed(int n) { (void)n, MPI_Bcast(out, 1, type, 0, world); }
static void in_place(int n) { MPI_Allreduce(MPI_IN_PLACE, in, n / 8, MPI_DOUBLE, MPI_SUM, world); }
static void minloc(int n) { MPI_Allreduce(out, in, n / 16 + 1, MPI_DOUBLE_INT, MPI_MINLOC, world); }
static void complexes(int n) { MPI_Allreduce(out, in, n / 16 + 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, world); }
static void band(int n) { MPI_Allreduce(out, in, n, MPI_UNSIGNED_CHAR, MPI_BAND, world); }
static void user_op(int n) { MPI_Allreduce(out, in, n / 8, MPI_DOUBLE, op, world); }
static void reduce_local(int n) { MPI_Reduce_local(out, in, n / 8, MPI_DOUBLE, MPI_SUM); }

static void add(void *a, void *b, int *n, MPI_Datatype *t)
{
	double *from = a, *to = b;
	int i;

	(void)t;
	for (i = 0; i < *n; i++)
		to[i] += from[i];
}

static const int messages[] = {8, 1 << 10, 16 << 10, 256 << 10, -1}, vectors[] = {8, 4 << 10, 64 << 10, 1 << 20, -1}, shorts[] = {8, 1 << 10, -1},
		 medium[] = {8, 1 << 10, 16 << 10, -1}, rows[] = {4 << 10, 64 << 10, 1 << 20, -1}, structs[] = {24, 3 << 10, 48 << 10, 768 << 10, -1},
		 eight[] = {8, -1}, none[] = {0, -1}, some[] = {0, 1, 10, -1}, pages[] = {64 << 10, 1 << 20, -1};

static const struct test {
	const char *name;
	void (*call)(int n);
	const int *sizes; /* up to -1 */
	void (*begin)(int n);
	void (*end)(void);
} tests[] = {
	{"send", send, messages}, {"ssend", ssend, messages}, {"bsend", bsend, medium}, {"any", any, messages}, {"probe", probe, messages},
	{"mprobe", mprobe, messages}, {"iprobe", iprobe, messages}, {"test", test, messages}, {"halo", halo, messages}, {"shift", shift, messages},
	{"persistent", persistent, messages, prepare, forget}, {"unexpected", unexpected, shorts}, {"posted", posted, shorts},
	{"waitany", waitany, shorts}, {"incast", incast, shorts}, {"self", self, vectors},
	{"doubles", typed, vectors, of_doubles, drop_type}, {"doubles_pack", pack, vectors, of_doubles, drop_type},
	{"doubles_bcast", bcast_typed, vectors, of_doubles, drop_type},
	{"rows", typed, rows, of_rows, drop_type}, {"rows_pack", pack, rows, of_rows, drop_type},
	{"structs", typed, structs, of_structs, drop_type}, {"structs_pack", pack, structs, of_structs, drop_type},
	{"put", put, messages, lock_all, unlock_all}, {"get", get, messages, lock_all, unlock_all},
	{"put_batch", put_batch, shorts, lock_all, unlock_all}, {"get_batch", get_batch, shorts, lock_all, unlock_all},
	{"accumulate", accumulate, messages, lock_all, unlock_all}, {"get_accumulate", get_accumulate, messages, lock_all, unlock_all},
	{"fetch_and_op", fetch_and_op, eight, lock_all, unlock_all}, {"compare_and_swap", compare_and_swap, eight, lock_all, unlock_all},
	{"fence", fence, messages}, {"lock", lock, medium}, {"pscw", pscw, medium},
	{"dup", dup_and, some}, {"split", split, none}, {"win_create", win_create, pages}, {"win_allocate", win_allocate, pages},
	{"alloc_mem", alloc_mem, vectors}, {"type_vector", type_vector, eight},
	{"ibarrier", ibarrier, none}, {"iallreduce", iallreduce, messages}, {"ibcast", ibcast, messages}, {"ialltoall", ialltoall, messages},
	{"iallgather", iallgather, messages}, {"neighbor", neighbor, messages}, {"ineighbor", ineighbor, messages},
	{"in_place", in_place, vectors}, {"minloc", minloc, vectors}, {"complex", complexes, vectors}, {"band", band, vectors},
	{"user_op", user_op, vectors}, {"reduce_local", reduce_local, vectors},
};

static double lap(const struct test *t, int n, int calls)
{
	double start, took, most;
	int i;

	MPI_Barrier(world);
	start = MPI_Wtime();
	for (i = 0; i < calls; i++)
		t->call(n);
	took = MPI_Wtime() - start;
	MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, world);
	return most;
}

static void run(const struct test *t, int n, double seconds)
{
	double took, least;
	int calls = 1, i;

	if (t->begin)
		t->begin(n);
	lap(t, n, 2);
	while (lap(t, n, calls) < seconds / 9 && calls < 1 << 24)
		calls *= 2;
	least = lap(t, n, calls);
	for (i = 0; i < 2; i++)
		if ((took = lap(t, n, calls)) < least)
			least = took;
	if (t->end)
		t->end();
	if (me == 0) {
		printf("%s %d %.3f\n", t->name, n, least / calls * 1e6);
		fflush(stdout);
	}
}

static int chosen(const char *name, int argc, char **argv)
{
	int i;

	for (i = 2; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc <= 2;
}

int main(int argc, char **argv)
{
	static char buffered[1 << 20];
	int all, one = 1, size;
	double seconds;
	void *memory;
	size_t i;
	const int *n;
	MPI_Group whole;

	MPI_Init(&argc, &argv);
	world = MPI_COMM_WORLD;
	MPI_Comm_rank(world, &me);
	MPI_Comm_size(world, &ranks);
	seconds = argc > 1 ? atof(argv[1]) : 0.15;
	all = ranks > 2 ? ranks : 2; /* vectors of doubles with gaps, or a block of 256 KiB for each rank */
	in = calloc((size_t)all, MOST);
	out = calloc((size_t)all, MOST);
	left = (me + ranks - 1) % ranks;
	right = (me + 1) % ranks;
	pair = (me ^ 1) < ranks ? me ^ 1 : MPI_PROC_NULL;
	MPI_Buffer_attach(buffered, sizeof buffered);
	MPI_Win_allocate(2 * MOST, 1, MPI_INFO_NULL, world, &window, &win);
	MPI_Comm_group(world, &whole);
	MPI_Group_incl(whole, 1, &left, &before);
	MPI_Group_incl(whole, 1, &right, &behind);
	MPI_Cart_create(world, 1, &ranks, &one, 0, &ring);
	MPI_Op_create(add, 1, &op);
	for (i = 0; i < sizeof tests / sizeof *tests; i++)
		if (chosen(tests[i].name, argc, argv))
			for (n = tests[i].sizes; *n >= 0; n++)
				run(&tests[i], *n, seconds);
	MPI_Buffer_detach(&memory, &size);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
