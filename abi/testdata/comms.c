/* Communicators, groups, intercommunicators and infos, on 4 ranks. */
#include "class.h"

static void groups(void)
{
    MPI_Group world, a, b, c;
    int r, n, ranks[4] = {3, 1, MPI_PROC_NULL, 0}, to[4], range[1][3] = {{3, 0, -2}};

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &a);
    MPI_Group_excl(world, 2, ranks, &b);
    MPI_Group_rank(a, &r);
    say("rank 0 in {3, 1} is undefined:", r == MPI_UNDEFINED);
    MPI_Group_union(a, b, &c);
    MPI_Group_translate_ranks(c, 4, (int[]){0, 1, 2, 3}, world, to);
    ints("union", to, 4);
    MPI_Group_compare(c, world, &r);
    say(relation(r), 0);
    MPI_Group_free(&c);
    say("freed:", c == MPI_GROUP_NULL);
    MPI_Group_intersection(a, b, &c);
    say("empty:", c == MPI_GROUP_EMPTY);
    MPI_Group_free(&c);
    MPI_Group_difference(world, b, &c);
    MPI_Group_size(c, &n);
    say("difference", n);
    MPI_Group_compare(c, a, &r);
    say(relation(r), 0);
    MPI_Group_free(&c);
    MPI_Group_translate_ranks(world, 4, ranks, a, to);
    ints("in a", to, 4);
    MPI_Group_range_incl(world, 1, range, &c);
    MPI_Group_translate_ranks(c, 2, (int[]){0, 1}, world, to);
    ints("range", to, 2);
    MPI_Group_free(&c);
    MPI_Group_range_excl(world, 1, range, &c);
    MPI_Group_translate_ranks(c, 2, (int[]){0, 1}, world, to);
    ints("without range", to, 2);
    MPI_Group_free(&c);
    error("incl of rank 7", MPI_Group_incl(world, 1, (int[]){7}, &c));
    error("incl of -1", MPI_Group_incl(world, -1, ranks, &c));
    error("range of stride 0", MPI_Group_range_incl(world, 1, (int[1][3]){{0, 1, 0}}, &c));
    error("range to 9", MPI_Group_range_incl(world, 1, (int[1][3]){{0, 9, 1}}, &c));
    error("range from 9", MPI_Group_range_incl(world, 1, (int[1][3]){{9, 0, -1}}, &c));
    error("null group", MPI_Group_size(MPI_GROUP_NULL, &n));
    error("translate 9", MPI_Group_translate_ranks(world, 1, (int[]){9}, a, to));
    MPI_Group_free(&a);
    MPI_Group_free(&b);
    MPI_Group_free(&world);
}

static void comms(void)
{
    MPI_Comm c, d;
    MPI_Group g, part;
    MPI_Request q;
    MPI_Info info;
    char name[MPI_MAX_OBJECT_NAME];
    int n, r, flag;

    MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
    if (rank == 0)
        printf("%s %d\n", name, n);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_get_name(c, name, &n);
    say("name of a duplicate", n);
    MPI_Comm_set_name(c, "mine");
    MPI_Comm_get_name(c, name, &n);
    if (rank == 0)
        printf("%s %d\n", name, n);
    MPI_Comm_compare(c, MPI_COMM_WORLD, &r);
    say(relation(r), 0);
    MPI_Comm_compare(c, c, &r);
    say(relation(r), 0);
    MPI_Comm_compare(c, MPI_COMM_SELF, &r);
    say(relation(r), 0);
    MPI_Comm_idup(c, &d, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Comm_size(d, &n);
    say("size of idup", n);
    MPI_Comm_free(&d);
    say("freed:", d == MPI_COMM_NULL);
    MPI_Comm_split(c, rank % 2, -rank, &d);
    MPI_Comm_size(d, &n);
    MPI_Comm_rank(d, &r);
    say("split size", n);
    say("split rank", r);
    MPI_Comm_compare(c, d, &r);
    say(relation(r), 0);
    MPI_Comm_free(&d);
    MPI_Comm_split(c, rank ? 0 : MPI_UNDEFINED, 0, &d);
    say("no part:", d == MPI_COMM_NULL);
    if (rank)
        MPI_Comm_free(&d);
    MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &d);
    say("some share:", d != MPI_COMM_NULL);
    MPI_Comm_free(&d);
    MPI_Comm_split_type(c, MPI_UNDEFINED, 0, MPI_INFO_NULL, &d);
    say("no part:", d == MPI_COMM_NULL);
    MPI_Comm_group(c, &g);
    MPI_Group_incl(g, 2, (int[]){2, 0}, &part);
    MPI_Comm_create(c, part, &d);
    if (rank % 2 == 0) {
        MPI_Comm_rank(d, &r);
        say("rank in created", r);
        MPI_Comm_free(&d);
        MPI_Comm_create_group(c, part, 5, &d);
        MPI_Comm_size(d, &n);
        say("size of group's", n);
        MPI_Comm_free(&d);
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(c, info, &d);
    MPI_Info_free(&info);
    MPI_Comm_get_info(d, &info);
    MPI_Info_get(info, "mpi_assert_no_any_tag", 9, name, &flag);
    say("hint", flag && !strcmp(name, "true"));
    MPI_Info_free(&info);
    MPI_Comm_free(&d);
    MPI_Comm_test_inter(c, &flag);
    say("inter", flag);
    MPI_Comm_get_parent(&d);
    say("no parent:", d == MPI_COMM_NULL);
    error("split with a null communicator", MPI_Comm_split(MPI_COMM_NULL, 0, 0, &d));
    error("free of the world", MPI_Comm_free(&(MPI_Comm){MPI_COMM_WORLD}));
    error("create with a null group", MPI_Comm_create(c, MPI_GROUP_NULL, &d));
    MPI_Group_free(&g);
    MPI_Group_free(&part);
    MPI_Comm_free(&c);
}

static void inter(void)
{
    MPI_Comm half, both, merged, d;
    MPI_Group g;
    int n, r, flag, word = rank, got = -1;

    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 11, &both);
    MPI_Comm_test_inter(both, &flag);
    say("inter", flag);
    MPI_Comm_remote_size(both, &n);
    say("remote size", n);
    MPI_Comm_remote_group(both, &g);
    MPI_Group_rank(g, &r);
    say("not in it:", r == MPI_UNDEFINED);
    MPI_Group_free(&g);
    MPI_Comm_rank(both, &r);
    MPI_Sendrecv(&word, 1, MPI_INT, r, 1, &got, 1, MPI_INT, r, 1, both, MPI_STATUS_IGNORE);
    say("from the other side", got);
    MPI_Comm_dup(both, &d);
    MPI_Comm_compare(both, d, &r);
    say(relation(r), 0);
    MPI_Comm_free(&d);
    MPI_Comm_split(both, rank % 2, 0, &d);
    MPI_Comm_remote_size(d, &n);
    say("remote size of a part", n);
    MPI_Comm_free(&d);
    MPI_Intercomm_merge(both, rank < 2, &merged);
    MPI_Comm_rank(merged, &r);
    say("rank merged", r);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&both);
    error("leader 9", MPI_Intercomm_create(half, 9, MPI_COMM_WORLD, 0, 1, &both));
    MPI_Comm_free(&half);
}

static void infos(void)
{
    MPI_Info i, j;
    int n, flag, length;
    char key[MPI_MAX_INFO_KEY + 1], value[100];

    MPI_Info_create(&i);
    MPI_Info_set(i, "one", "1");
    MPI_Info_set(i, "two", "twotwo");
    MPI_Info_set(i, "one", "uno");
    MPI_Info_get_nkeys(i, &n);
    say("keys", n);
    MPI_Info_get_nthkey(i, 1, key);
    MPI_Info_get(i, "two", 3, value, &flag);
    if (rank == 0)
        printf("%s %s %d\n", key, value, flag);
    MPI_Info_get_valuelen(i, "two", &length, &flag);
    say("length", length);
    length = 4;
    MPI_Info_get_string(i, "two", &length, value, &flag);
    if (rank == 0)
        printf("%s %d %d\n", value, length, flag);
    MPI_Info_dup(i, &j);
    MPI_Info_delete(i, "one");
    MPI_Info_get(i, "one", 10, value, &flag);
    say("deleted:", !flag);
    MPI_Info_get(j, "one", 10, value, &flag);
    say("in the copy:", flag && !strcmp(value, "uno"));
    error("delete again", MPI_Info_delete(i, "one"));
    error("key 5", MPI_Info_get_nthkey(i, 5, key));
    error("an empty key", MPI_Info_set(i, "", "x"));
    MPI_Info_free(&i);
    say("freed:", i == MPI_INFO_NULL);
    MPI_Info_free(&j);
    MPI_Info_get(MPI_INFO_ENV, "maxprocs", 20, value, &flag);
    say("environment", flag ? atoi(value) : 4);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    groups();
    comms();
    inter();
    infos();
    MPI_Finalize();
    return 0;
}
