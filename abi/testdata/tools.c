/* The tools interface: what a tool asks first, the same on all libraries, and with an argument
 * what only xwarp has. */
#include "class.h"

static const char *tool_error(int code)
{
    static char other[32];
#define TNAME(c) \
    if (code == MPI_T_ERR_##c) \
        return #c;
    TNAME(NOT_INITIALIZED)
    TNAME(INVALID_INDEX)
    TNAME(INVALID_HANDLE)
    TNAME(INVALID_SESSION)
    TNAME(INVALID_NAME)
    TNAME(INVALID)
    TNAME(CVAR_SET_NOT_NOW)
    TNAME(CVAR_SET_NEVER)
    TNAME(PVAR_NO_WRITE)
    TNAME(PVAR_NO_STARTSTOP)
    TNAME(PVAR_NO_ATOMIC)
    sprintf(other, "%d", code);
    return code ? other : "success";
}

static void told(const char *what, int code)
{
    if (rank == 0)
        printf("%s: %s\n", what, tool_error(code));
}

static void variables(void)
{
    int n, i, length, verbosity, bind, scope, index, count, good = 0;
    char name[300], desc[2000];
    MPI_Datatype type;
    MPI_T_enum words;
    MPI_T_cvar_handle handle;
    static char value[1 << 16];
    MPI_T_cvar_get_num(&n);
    say("control variables:", n > 10);
    for (i = 0; i < n; i++) {
        int room = sizeof desc;
        length = sizeof name;
        MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &words, desc, &room, &bind, &scope);
        if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS || index != i || length != (int)strlen(name) + 1 || !*desc)
            printf("%s: %d, length %d\n", name, index, length);
        if (bind != MPI_T_BIND_NO_OBJECT)
            continue;
        if (MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) == MPI_SUCCESS && MPI_T_cvar_read(handle, value) == MPI_SUCCESS)
            good++;
        MPI_T_cvar_handle_free(&handle);
        if (handle != MPI_T_CVAR_HANDLE_NULL)
            printf("%s: the handle is there\n", name);
        if (words != MPI_T_ENUM_NULL) {
            int items, item;
            length = sizeof name;
            MPI_T_enum_get_info(words, &items, name, &length);
            for (int k = 0; k < items; k++) {
                length = sizeof name;
                MPI_T_enum_get_item(words, k, &item, name, &length);
                if (!*name)
                    printf("a word is empty\n");
            }
            if (MPI_T_enum_get_item(words, items, &item, name, &length) == MPI_SUCCESS)
                printf("more words than there are\n");
        }
    }
    say("can be read:", good > 10);
    length = 0;
    MPI_T_cvar_get_info(0, NULL, &length, &verbosity, &type, NULL, NULL, NULL, &bind, &scope);
    say("a length:", length > 1);
    told("no such name", MPI_T_cvar_get_index("no such", &index));
    told("no such variable", MPI_T_cvar_get_info(n, name, &length, &verbosity, &type, &words, desc, &length, &bind, &scope));
}

static void categories(void)
{
    int n, controls, counters, below, index, changed, list[1000], total = 0, some = 0;
    MPI_T_category_get_num(&n);
    say("categories:", n > 1);
    for (int i = 0; i < n; i++) {
        char name[300], desc[2000];
        int length = sizeof name, room = sizeof desc;
        MPI_T_category_get_info(i, name, &length, desc, &room, &controls, &counters, &below);
        if (MPI_T_category_get_index(name, &index) != MPI_SUCCESS || index != i)
            printf("%s: %d\n", name, index);
        total += controls, some += counters;
        MPI_T_category_get_cvars(i, 1000, list);
        MPI_T_category_get_pvars(i, 1000, list);
        MPI_T_category_get_categories(i, 1000, list);
    }
    say("with variables:", total > 10);
    MPI_T_category_changed(&changed);
    told("no such category", MPI_T_category_get_cvars(n, 1, list));
    told("no such name", MPI_T_category_get_index("no such", &index));
}

/* The list of events is empty, so that no handle is one; MPICH looks at what is there, though. */
static void events(int handles)
{
    int n, k, length = 0;
    MPI_T_event_registration r = NULL;
    MPI_T_event_instance e = NULL;
    MPI_Info info;
    MPI_Count ticks;
    char name[300];
    MPI_T_source_order order;
    MPI_T_event_get_num(&n);
    say("events", n);
    MPI_T_category_get_num_events(0, &n);
    say("events of a category", n);
    MPI_T_category_get_events(0, 1, &k);
    told("no such event", MPI_T_event_get_index("no such", &k));
    told("a handle of it", MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &r));
    if (!handles)
        return;
    told("event 0", MPI_T_event_get_info(0, name, &length, &k, NULL, NULL, &n, NULL, &info, NULL, &length, &k));
    told("no handle", MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL));
    told("its callback", MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info));
    told("its callback", MPI_T_event_callback_set_info(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
    told("its info", MPI_T_event_handle_get_info(r, &info));
    told("its info", MPI_T_event_handle_set_info(r, MPI_INFO_NULL));
    told("dropped", MPI_T_event_set_dropped_handler(r, NULL));
    told("freed", MPI_T_event_handle_free(r, NULL, NULL));
    told("no instance", MPI_T_event_read(e, 0, name));
    told("no instance", MPI_T_event_copy(e, name));
    told("no instance", MPI_T_event_get_timestamp(e, &ticks));
    told("no instance", MPI_T_event_get_source(e, &k));
    MPI_T_source_get_num(&n);
    say("sources", n);
    told("source 0", MPI_T_source_get_info(0, name, &length, NULL, NULL, &order, &ticks, &ticks, &info));
    told("its time", MPI_T_source_get_timestamp(0, &ticks));
}

static int counter(const char *name, int class)
{
    int index = -1;
    MPI_T_pvar_get_index(name, class, &index);
    return index;
}

/* What can be written is written as it was read. */
static void back(void)
{
    static char value[1 << 16];
    int n, scope, count, length = 0, good = 0;
    MPI_T_cvar_handle handle;
    MPI_T_cvar_get_num(&n);
    for (int i = 0; i < n; i++) {
        MPI_T_cvar_get_info(i, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, &scope);
        MPI_T_cvar_handle_alloc(i, NULL, &handle, &count);
        MPI_T_cvar_read(handle, value);
        if (scope != MPI_T_SCOPE_CONSTANT && MPI_T_cvar_write(handle, value) != MPI_SUCCESS)
            printf("variable %d is not written\n", i);
        else
            good++;
        MPI_T_cvar_handle_free(&handle);
    }
    say("written back:", good == n && n > 10);
}

/* What comes before MPI_Init: the limit for eager messages is a control variable there. */
static void limit(void)
{
    int index = -1, count;
    MPI_T_cvar_handle handle;
    MPI_T_cvar_get_index("XWARP_EAGER", &index);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    told("not a size", MPI_T_cvar_write(handle, "many"));
    told("a size", MPI_T_cvar_write(handle, "1234"));
    MPI_T_cvar_handle_free(&handle);
    MPI_T_cvar_get_index("XWARP_RANK", &index);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    told("a rank", MPI_T_cvar_write(handle, "7"));
    MPI_T_cvar_handle_free(&handle);
}

static void counters(void)
{
    unsigned long long value = 99;
    int index, count, class, verbosity, bind, readonly, continuous, atomic, length = 0, n;
    MPI_Datatype type;
    MPI_T_pvar_session s, other;
    MPI_T_pvar_handle sent, eager;
    MPI_T_cvar_handle control;
    MPI_T_pvar_get_num(&n);
    say("performance variables:", n >= 13);
    MPI_T_pvar_session_create(&s);
    MPI_T_pvar_session_create(&other);
    index = counter("limit_eager", MPI_T_PVAR_CLASS_SIZE);
    MPI_T_pvar_get_info(index, NULL, &length, &verbosity, &class, &type, NULL, NULL, NULL, &bind, &readonly, &continuous, &atomic);
    say("64 bits:", type == MPI_UNSIGNED_LONG_LONG);
    say("read only", readonly + 10 * continuous + 100 * atomic);
    MPI_T_pvar_handle_alloc(s, index, NULL, &eager, &count);
    MPI_T_pvar_read(s, eager, &value);
    say("as it was set before MPI_Init:", value);
    told("a limit starts", MPI_T_pvar_start(s, eager));
    told("and is written", MPI_T_pvar_write(s, eager, &value));
    MPI_T_pvar_handle_alloc(s, counter("messages_sent", MPI_T_PVAR_CLASS_COUNTER), NULL, &sent, &count);
    MPI_T_pvar_start(s, MPI_T_PVAR_ALL_HANDLES);
    for (int i = 0; i < 3; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &index, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_T_pvar_read(s, sent, &value);
    say("sent", value);
    MPI_T_pvar_stop(s, sent);
    MPI_Sendrecv(&n, 1, MPI_INT, (rank + 1) % size, 0, &index, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_T_pvar_readreset(s, sent, &value);
    say("until the stop", value);
    MPI_T_pvar_read(s, sent, &value);
    say("after a reset", value);
    value = 40;
    MPI_T_pvar_write(s, sent, &value);
    MPI_T_pvar_read(s, sent, &value);
    say("written", value);
    told("reset", MPI_T_pvar_reset(s, sent));
    told("of another session", MPI_T_pvar_read(other, sent, &value));
    told("no such name", MPI_T_pvar_get_index("no such", MPI_T_PVAR_CLASS_COUNTER, &index));
    told("a call is counted", MPI_T_pvar_get_index("call_Sendrecv_count", MPI_T_PVAR_CLASS_COUNTER, &index));
    MPI_T_pvar_handle_free(s, &eager);
    told("freed", MPI_T_pvar_session_free(&s));
    told("freed again", MPI_T_pvar_session_free(&s));
    MPI_T_cvar_get_index("XWARP_EAGER", &index);
    MPI_T_cvar_handle_alloc(index, NULL, &control, &count);
    told("too late", MPI_T_cvar_write(control, "1"));
}

/* what has no room for its result */
static void nulls(void)
{
    MPI_T_pvar_session s;
    MPI_T_cvar_handle handle;
    int count;
    MPI_T_pvar_session_create(&s);
    told("no number", MPI_T_cvar_get_num(NULL));
    told("no index", MPI_T_cvar_get_index("XWARP_EAGER", NULL));
    told("no name", MPI_T_cvar_get_index(NULL, &count));
    told("no handle", MPI_T_cvar_handle_alloc(0, NULL, NULL, &count));
    told("no handle", MPI_T_cvar_handle_free(NULL));
    told("no handle", MPI_T_pvar_handle_free(s, NULL));
    told("no session", MPI_T_pvar_session_free(NULL));
    MPI_T_cvar_handle_alloc(0, NULL, &handle, &count);
    told("no value", MPI_T_cvar_read(handle, NULL));
    MPI_T_cvar_handle_free(&handle);
    MPI_T_pvar_session_free(&s);
}

int main(int argc, char **argv)
{
    int provided, n, one = argc > 1;
    told("before", MPI_T_cvar_get_num(&n));
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (one) {
        back();
        limit();
    }
    begin(&argc, &argv);
    say("threads:", provided == MPI_THREAD_SINGLE);
    variables();
    categories();
    events(one);
    if (one) {
        counters();
        nulls();
    }
    MPI_Finalize();
    MPI_T_cvar_get_num(&n);
    say("there after MPI_Finalize:", n > 10);
    MPI_T_finalize();
    told("after", MPI_T_cvar_get_num(&n));
    return 0;
}
