/* Attributes of communicators, datatypes and windows, and errors of their functions, on 4 ranks. */
#include "class.h"

static int extra = 77, fails, quiet;

static int copy(MPI_Comm c, int key, void *state, void *in, void *out, int *flag)
{
    if (*(int *)state != 77 || c == MPI_COMM_NULL)
        say("wrong state", *(int *)state);
    say("copy", *(int *)in);
    *(void **)out = (int *)in + 1;
    *flag = *(int *)in != 9;
    return fails ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int delete(MPI_Comm c, int key, void *value, void *state)
{
    if (*(int *)state != 77 || c == MPI_COMM_NULL)
        say("wrong state", *(int *)state);
    if (!quiet)
        say("delete", *(int *)value);
    return fails ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int delete_and_free(MPI_Comm c, int key, void *value, void *state)
{
    say("delete, and free the key of", *(int *)value);
    return MPI_Comm_free_keyval(&key);
}

static int copy_type(MPI_Datatype t, int key, void *state, void *in, void *out, int *flag)
{
    say("copy of a datatype's", *(int *)in);
    *(void **)out = in;
    *flag = t != MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

static int delete_type(MPI_Datatype t, int key, void *value, void *state)
{
    say("delete of a datatype's", *(int *)value + (t == MPI_DATATYPE_NULL) * 1000);
    return MPI_SUCCESS;
}

static int delete_win(MPI_Win w, int key, void *value, void *state)
{
    say("delete of a window's", *(int *)value + (w == MPI_WIN_NULL) * 1000);
    return MPI_SUCCESS;
}

static int values[] = {1, 2, 3, 4, 5, 9, 10};

static void comms(void)
{
    int key, key2, keyDup, flag, *got;
    MPI_Comm c, d;

    MPI_Comm_create_keyval(copy, delete, &key, &extra);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key2, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyDup, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_get_attr(c, key, &got, &flag);
    say("there", flag);
    MPI_Comm_set_attr(c, key, &values[0]);
    MPI_Comm_set_attr(c, key2, &values[2]);
    MPI_Comm_set_attr(c, keyDup, &values[3]);
    MPI_Comm_get_attr(c, key, &got, &flag);
    say("value", *got);
    MPI_Comm_set_attr(c, key, &values[1]);
    MPI_Comm_dup(c, &d);
    MPI_Comm_get_attr(d, key, &got, &flag);
    say("value in the duplicate", *got);
    MPI_Comm_get_attr(d, key2, &got, &flag);
    say("not copied:", !flag);
    MPI_Comm_get_attr(d, keyDup, &got, &flag);
    say("copied", *got);
    MPI_Comm_delete_attr(d, key);
    MPI_Comm_get_attr(d, key, &got, &flag);
    say("there", flag);
    error("delete again", MPI_Comm_delete_attr(d, key));
    MPI_Comm_free(&d);
    fails = 1;
    error("dup with a copy function that fails", MPI_Comm_dup(c, &d));
    say("no duplicate:", d == MPI_COMM_NULL);
    error("delete with a function that fails", MPI_Comm_delete_attr(c, key));
    fails = 0;
    MPI_Comm_free_keyval(&key);
    say("freed:", key == MPI_KEYVAL_INVALID);
    error("no key", MPI_Comm_get_attr(c, MPI_KEYVAL_INVALID, &got, &flag));
    MPI_Comm_free(&c);
    MPI_Comm_free_keyval(&key2);
    MPI_Comm_free_keyval(&keyDup);
}

/* A key that was freed is there for as long as an attribute has it. A communicator is there when
 * a function of an attribute has failed. */
static void freed(void)
{
    int key, again, flag, *got;
    MPI_Comm c, d;

    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_and_free, &key, NULL);
    again = key;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_set_attr(c, key, &values[0]);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_dup(c, &d);
    MPI_Comm_get_attr(d, again, &got, &flag);
    say("of a key that was freed", flag ? *got : -1);
    MPI_Comm_free(&d);
    key = again;
    error("free it again", MPI_Comm_free_keyval(&key));
    say("freed:", key == MPI_KEYVAL_INVALID);
    error("delete", MPI_Comm_delete_attr(c, again));

    MPI_Comm_create_keyval(copy, delete, &key, &extra);
    MPI_Comm_set_attr(c, key, &values[2]);
    fails = 1;
    d = c;
    error("free with a function that fails", MPI_Comm_free(&d));
    say("there:", d != MPI_COMM_NULL);
    error("and in use", MPI_Comm_size(c, &flag));
    fails = 0;
    quiet = 1; /* MPICH has forgotten the attribute */
    MPI_Comm_free(&c);
    quiet = 0;
    MPI_Comm_free_keyval(&key);
}

static void predefined(void)
{
    int flag, *got;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &got, &flag);
    say("many tags:", flag && *got >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &got, &flag);
    say("no host:", flag && *got == MPI_PROC_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &got, &flag);
    say("all have files:", flag && *got == MPI_ANY_SOURCE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &got, &flag);
    say("codes:", flag && *got >= MPI_ERR_LASTCODE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &got, &flag);
    say("global time", flag ? *got : 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &got, &flag);
    say("application", flag ? *got : 0);
    error("change", MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &extra));
}

static void others(void)
{
    int key, flag, *got, memory[4];
    MPI_Aint *bytes;
    void *base;
    MPI_Datatype t, u;
    MPI_Win w;

    MPI_Type_create_keyval(copy_type, delete_type, &key, NULL);
    MPI_Type_set_attr(MPI_INT, key, &values[4]);
    MPI_Type_get_attr(MPI_INT, key, &got, &flag);
    say("of MPI_INT", *got);
    MPI_Type_delete_attr(MPI_INT, key);
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_set_attr(t, key, &values[5]);
    MPI_Type_dup(t, &u);
    MPI_Type_get_attr(u, key, &got, &flag);
    say("of the duplicate", *got);
    MPI_Type_free(&t);
    MPI_Type_free(&u);
    error("a communicator with such a key", MPI_Comm_set_attr(MPI_COMM_WORLD, key, &values[0]));
    MPI_Type_free_keyval(&key);

    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_win, &key, NULL);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_set_attr(w, key, &values[6]);
    MPI_Win_get_attr(w, key, &got, &flag);
    say("of the window", *got);
    MPI_Win_get_attr(w, MPI_WIN_BASE, &base, &flag);
    say("base:", flag && base == memory);
    MPI_Win_get_attr(w, MPI_WIN_SIZE, &bytes, &flag);
    say("bytes", *bytes);
    MPI_Win_get_attr(w, MPI_WIN_DISP_UNIT, &got, &flag);
    say("unit", *got);
    MPI_Win_get_attr(w, MPI_WIN_CREATE_FLAVOR, &got, &flag);
    say("created:", *got == MPI_WIN_FLAVOR_CREATE);
    MPI_Win_get_attr(w, MPI_WIN_MODEL, &got, &flag);
    say("unified:", *got == MPI_WIN_UNIFIED);
    MPI_Win_free(&w);
    MPI_Win_free_keyval(&key);
}

int main(int argc, char **argv)
{
    int key, flag, *got;

    begin(&argc, &argv);
    comms();
    freed();
    predefined();
    others();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, &extra);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &values[3]);
    MPI_Comm_get_attr(MPI_COMM_SELF, key, &got, &flag);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &values[4]);
    MPI_Finalize();
    return 0;
}
