/* Datatypes, packing and operations, on one rank. It prints what it finds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int class(int code)
{
    int c = -1;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &c);
    return code == MPI_SUCCESS ? 0 : c;
}

/* The numbers of error classes and of combiners differ with the ABI. */
static const char *name(int code)
{
    static const struct {
        int class;
        const char *name;
    } names[] = {{MPI_ERR_COUNT, "COUNT"}, {MPI_ERR_TYPE, "TYPE"}, {MPI_ERR_ARG, "ARG"}, {MPI_ERR_OP, "OP"}, {MPI_ERR_BUFFER, "BUFFER"},
                 {MPI_ERR_DIMS, "DIMS"}, {MPI_ERR_COMM, "COMM"}, {MPI_ERR_TRUNCATE, "TRUNCATE"}, {MPI_ERR_OTHER, "OTHER"}};
    int c = class(code);
    if (c == 0)
        return "fine";
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].class == c)
            return names[i].name;
    return "another class";
}

static const char *combiner(int c)
{
    static const struct {
        int c;
        const char *name;
    } names[] = {{MPI_COMBINER_NAMED, "named"}, {MPI_COMBINER_DUP, "dup"}, {MPI_COMBINER_CONTIGUOUS, "contiguous"},
                 {MPI_COMBINER_VECTOR, "vector"}, {MPI_COMBINER_HVECTOR, "hvector"}, {MPI_COMBINER_INDEXED, "indexed"},
                 {MPI_COMBINER_HINDEXED, "hindexed"}, {MPI_COMBINER_INDEXED_BLOCK, "indexed block"},
                 {MPI_COMBINER_HINDEXED_BLOCK, "hindexed block"}, {MPI_COMBINER_STRUCT, "struct"}, {MPI_COMBINER_SUBARRAY, "subarray"},
                 {MPI_COMBINER_DARRAY, "darray"}, {MPI_COMBINER_RESIZED, "resized"}, {MPI_COMBINER_F90_REAL, "f90 real"},
                 {MPI_COMBINER_F90_INTEGER, "f90 integer"}, {MPI_COMBINER_F90_COMPLEX, "f90 complex"}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].c == c)
            return names[i].name;
    return "?";
}

static long constant(int v)
{
    return v == MPI_ORDER_C               ? 1001
           : v == MPI_ORDER_FORTRAN       ? 1002
           : v == MPI_DISTRIBUTE_BLOCK    ? 1003
           : v == MPI_DISTRIBUTE_CYCLIC   ? 1004
           : v == MPI_DISTRIBUTE_NONE     ? 1005
           : v == MPI_DISTRIBUTE_DFLT_DARG ? 1006
                                          : v;
}

/* describe prints all about a datatype, and packs two elements of it. */
static void describe(const char *what, MPI_Datatype t)
{
    MPI_Aint lb, extent, tlb, textent, addresses[40];
    MPI_Count size_x, lb_x, extent_x;
    int size, ni, na, nt, how, integers[40], at = 0;
    MPI_Datatype types[40];

    MPI_Type_size(t, &size);
    MPI_Type_size_x(t, &size_x);
    MPI_Type_get_extent(t, &lb, &extent);
    MPI_Type_get_extent_x(t, &lb_x, &extent_x);
    MPI_Type_get_true_extent(t, &tlb, &textent);
    printf("%s: size %d, extent %ld from %ld, true %ld from %ld", what, size, (long)extent, (long)lb, (long)textent, (long)tlb);
    if (size_x != size || lb_x != lb || extent_x != extent)
        printf(", and the long forms differ");
    MPI_Type_get_envelope(t, &ni, &na, &nt, &how);
    printf("; %s:", combiner(how));
    if (how != MPI_COMBINER_NAMED) {
        MPI_Type_get_contents(t, ni, na, nt, integers, addresses, types);
        int arrays = how == MPI_COMBINER_SUBARRAY || how == MPI_COMBINER_DARRAY;
        for (int i = 0; i < ni; i++)
            printf(" %ld", arrays ? constant(integers[i]) : integers[i]);
        for (int i = 0; i < na; i++)
            printf(" @%ld", (long)addresses[i]);
        for (int i = 0; i < nt; i++) {
            int a, b, c, made;
            MPI_Type_get_envelope(types[i], &a, &b, &c, &made);
            printf(" (%s)", combiner(made));
            if (made != MPI_COMBINER_NAMED && made != MPI_COMBINER_F90_REAL)
                MPI_Type_free(&types[i]);
        }
    }
    unsigned char memory[4096], packed[4096];
    for (unsigned i = 0; i < sizeof memory; i++)
        memory[i] = i * 7 + i / 256;
    if (textent + extent < 2000 && lb > -500) {
        unsigned sum = 0;
        MPI_Type_commit(&t);
        MPI_Pack(memory + 1024, 2, t, packed, sizeof packed, &at, MPI_COMM_SELF);
        for (int i = 0; i < at; i++)
            sum = sum * 31 + packed[i];
        memset(memory, 0, sizeof memory);
        int from = 0;
        MPI_Unpack(packed, at, &from, memory + 1024, 2, t, MPI_COMM_SELF);
        unsigned back = 0;
        for (unsigned i = 0; i < sizeof memory; i++)
            back = back * 31 + memory[i];
        printf("; packed %d %08x %08x", at, sum, back);
    }
    printf("\n");
}

static void made(const char *what, int rc, MPI_Datatype *t)
{
    if (rc != MPI_SUCCESS) {
        printf("%s: %s\n", what, name(rc));
        return;
    }
    describe(what, *t);
    MPI_Type_free(t);
    if (*t != MPI_DATATYPE_NULL)
        printf("%s: not null after it was freed\n", what);
}

#define MADE(what, call) made(what, call, &t)

static void constructors(void)
{
    MPI_Datatype t, vec, two[2] = {MPI_INT, MPI_DOUBLE};
    int lengths[] = {2, 1, 3}, displs[] = {4, 0, 9}, sizes[] = {4, 5}, subsizes[] = {2, 3}, starts[] = {1, 2};
    int distribs[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, dargs[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 2};
    MPI_Aint bytes[] = {40, 0, 96};

    MADE("contiguous", MPI_Type_contiguous(3, MPI_INT, &t));
    MADE("nothing", MPI_Type_contiguous(0, MPI_INT, &t));
    MADE("vector", MPI_Type_vector(3, 2, 4, MPI_INT, &t));
    MADE("vector backwards", MPI_Type_vector(3, 2, -4, MPI_SHORT, &t));
    MADE("hvector", MPI_Type_create_hvector(3, 2, 13, MPI_SHORT, &t));
    MADE("indexed", MPI_Type_indexed(3, lengths, displs, MPI_INT, &t));
    MADE("hindexed", MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &t));
    MADE("indexed block", MPI_Type_create_indexed_block(3, 2, displs, MPI_INT, &t));
    MADE("hindexed block", MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &t));
    MADE("struct", MPI_Type_create_struct(2, lengths, bytes, two, &t));
    MADE("subarray", MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t));
    MADE("subarray of Fortran", MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &t));
    for (int rank = 0; rank < 4; rank++)
        MADE("darray", MPI_Type_create_darray(4, rank, 2, sizes, distribs, dargs, grid, MPI_ORDER_C, MPI_INT, &t));
    MADE("resized", MPI_Type_create_resized(MPI_INT, -4, 20, &t));
    MPI_Type_vector(2, 1, 3, MPI_CHAR, &vec);
    MADE("dup", MPI_Type_dup(vec, &t));
    MADE("of a vector", MPI_Type_contiguous(2, vec, &t));
    MPI_Type_contiguous(2, vec, &t);
    MPI_Type_free(&vec);
    MADE("of one that was freed", MPI_SUCCESS);
}

static void names(void)
{
    static const struct {
        MPI_Datatype t;
    } all[] = {{MPI_INT}, {MPI_LONG_LONG}, {MPI_C_FLOAT_COMPLEX}, {MPI_2INT}, {MPI_DOUBLE_INT}, {MPI_LONG_DOUBLE_INT}, {MPI_SHORT_INT}, {MPI_LONG_INT},
               {MPI_FLOAT_INT}, {MPI_LONG_DOUBLE}, {MPI_C_BOOL}, {MPI_WCHAR}, {MPI_AINT}, {MPI_COUNT}, {MPI_OFFSET}, {MPI_PACKED}, {MPI_BYTE},
               {MPI_INTEGER}, {MPI_DOUBLE_PRECISION}, {MPI_COMPLEX}, {MPI_DOUBLE_COMPLEX}, {MPI_LOGICAL}, {MPI_CHARACTER}, {MPI_2INTEGER},
               {MPI_2DOUBLE_PRECISION}, {MPI_REAL8}, {MPI_INTEGER8}, {MPI_COMPLEX16}, {MPI_UINT64_T}, {MPI_C_DOUBLE_COMPLEX},
               {MPI_REAL16}, {MPI_COMPLEX32}};
    char text[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Datatype t;

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        MPI_Type_get_name(all[i].t, text, &length);
        if ((int)strlen(text) != length)
            printf("a name of another length: ");
        describe(text, all[i].t);
    }
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_get_name(t, text, &length);
    printf("no name: '%s' %d\n", text, length);
    MPI_Type_set_name(t, "pair");
    MPI_Type_get_name(t, text, &length);
    printf("a name: '%s' %d\n", text, length);
    MPI_Type_free(&t);
    static const int classes[] = {MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_COMPLEX};
    for (int i = 0; i < 3; i++)
        for (int size = 4; size <= 32; size *= 2)
            if ((i != 0 || size < 32) && (i != 1 || size < 16) && (i != 2 || size > 4)) {
                int got;
                MPI_Type_match_size(classes[i], size, &t);
                MPI_Type_size(t, &got);
                printf("class %d of %d bytes: %d\n", i, size, got);
            }
    MPI_Type_create_f90_real(10, 100, &t);
    describe("real of Fortran", t);
    MPI_Type_create_f90_integer(7, &t);
    describe("integer of Fortran", t);
    MPI_Type_create_f90_complex(5, MPI_UNDEFINED, &t);
    MPI_Aint lb, extent;
    MPI_Type_get_extent(t, &lb, &extent);
    printf("complex of Fortran: %ld\n", (long)extent);
}

static void addresses(void)
{
    struct {
        int i;
        double d[3];
        char c;
    } out = {5, {.5, 1.5, 2.5}, 'x'}, in = {0};
    int lengths[] = {1, 3, 1};
    MPI_Aint at[3], to[3];
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, a, b;
    MPI_Request r;

    MPI_Get_address(&out.i, &at[0]);
    MPI_Get_address(out.d, &at[1]);
    MPI_Get_address(&out.c, &at[2]);
    for (int i = 0; i < 3; i++) {
        MPI_Aint base;
        MPI_Get_address(&in, &base);
        to[i] = MPI_Aint_add(base, MPI_Aint_diff(at[i], at[0]));
    }
    MPI_Type_create_struct(3, lengths, at, types, &a);
    MPI_Type_create_struct(3, lengths, to, types, &b);
    MPI_Type_commit(&a);
    MPI_Type_commit(&b);
    MPI_Isend(MPI_BOTTOM, 1, a, 0, 1, MPI_COMM_SELF, &r);
    MPI_Type_free(&a); /* while it is in use */
    MPI_Recv(MPI_BOTTOM, 1, b, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Type_free(&b);
    printf("absolute addresses: %d %g %g %g %c\n", in.i, in.d[0], in.d[1], in.d[2], in.c);
}

static void packing(void)
{
    char packed[200];
    int at = 0, n = 0, three[3] = {1, 2, 3}, back[3] = {0};
    double d = 3.25, e = 0;
    MPI_Aint where = 0, room;

    MPI_Pack(three, 3, MPI_INT, packed, sizeof packed, &at, MPI_COMM_WORLD);
    MPI_Pack(&d, 1, MPI_DOUBLE, packed, sizeof packed, &at, MPI_COMM_WORLD);
    MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &n);
    printf("packed to %d, of 3 ints %s\n", at, n >= 12 ? "enough" : "too little");
    n = 0;
    MPI_Unpack(packed, at, &n, back, 3, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(packed, at, &n, &e, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    printf("unpacked to %d: %d %d %d %g\n", n, back[0], back[1], back[2], e);
    MPI_Pack_external_size("external32", 3, MPI_INT, &room);
    MPI_Pack_external("external32", three, 3, MPI_INT, packed, sizeof packed, &where);
    printf("external: %ld of %ld, %d %d\n", (long)where, (long)room, packed[3], packed[7]);
    where = 0;
    memset(back, 0, sizeof back);
    MPI_Unpack_external("external32", packed, room, &where, back, 3, MPI_INT);
    printf("external back: %ld, %d %d %d\n", (long)where, back[0], back[1], back[2]);
}

static void large(void)
{
    MPI_Datatype t, types[4];
    MPI_Count size, ni, na, nc, nt, counts[20], lengths[] = {1, 2}, displs[] = {0, 24}, sizes[] = {4, 5}, sub[] = {2, 2}, starts[] = {0, 1};
    MPI_Aint addresses[20];
    int how, integers[20];

    for (int i = 0; i < 5; i++) {
        if (i == 0)
            MPI_Type_contiguous_c((MPI_Count)1 << 33, MPI_INT, &t);
        else if (i == 1)
            MPI_Type_vector_c(3, 2, 4, MPI_INT, &t);
        else if (i == 2)
            MPI_Type_create_hindexed_c(2, lengths, displs, MPI_INT, &t);
        else if (i == 3)
            MPI_Type_create_subarray_c(2, sizes, sub, starts, MPI_ORDER_C, MPI_INT, &t);
        else
            MPI_Type_create_resized_c(MPI_INT, 0, 8, &t);
        MPI_Type_size_c(t, &size);
        MPI_Type_get_envelope_c(t, &ni, &na, &nc, &nt, &how);
        printf("large %d: size %lld, %s, %lld %lld %lld %lld:", i, (long long)size, combiner(how), (long long)ni, (long long)na, (long long)nc, (long long)nt);
        MPI_Type_get_contents_c(t, ni, na, nc, nt, integers, addresses, counts, types);
        for (int k = 0; k < ni; k++)
            printf(" %ld", constant(integers[k]));
        for (int k = 0; k < nc; k++)
            printf(" %lld", (long long)counts[k]);
        int small;
        MPI_Type_size(t, &small);
        printf("; size as an int %d\n", small == MPI_UNDEFINED ? -1 : small);
        MPI_Type_free(&t);
    }
    MPI_Type_contiguous(2147483647, MPI_CHAR, &types[0]);
    MPI_Type_contiguous(2147483647, types[0], &t);
    MPI_Type_size_c(t, &size);
    printf("the largest of the largest: size %lld\n", (long long)size);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&t);
}

static void sum_pairs(void *in, void *inout, int *n, MPI_Datatype *t)
{
    int size;
    MPI_Type_size(*t, &size);
    for (int i = 0; i < *n * 2; i++)
        ((int *)inout)[i] += ((int *)in)[i] * size;
}

static void sum_large(void *in, void *inout, MPI_Count *n, MPI_Datatype *t)
{
    for (MPI_Count i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void operations(void)
{
    int a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, commute;
    MPI_Op op;
    MPI_Datatype pair;

    MPI_Reduce_local(a, b, 4, MPI_INT, MPI_SUM);
    printf("sum %d %d %d %d\n", b[0], b[1], b[2], b[3]);
    MPI_Op_create(sum_pairs, 0, &op);
    MPI_Op_commutative(op, &commute);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Reduce_local(a, b, 2, pair, op);
    printf("pairs %d %d %d %d, commute %d\n", b[0], b[1], b[2], b[3], commute);
    MPI_Op_free(&op);
    printf("null %d\n", op == MPI_OP_NULL);
    MPI_Op_create_c(sum_large, 1, &op);
    MPI_Reduce_local_c(a, b, 4, MPI_INT, op);
    printf("large %d %d %d %d\n", b[0], b[1], b[2], b[3]);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    MPI_Op_commutative(MPI_SUM, &commute);
    printf("sum commutes %d\n", commute);
}

#define WRONG(call) printf("%s: %s\n", #call, name(call))

static void errors(void)
{
    MPI_Datatype t = MPI_DATATYPE_NULL, vec, none = MPI_DATATYPE_NULL, i = MPI_INT;
    int n, at = 0, back[4], one[1] = {1}, neg[1] = {-1}, zero[1] = {0};
    MPI_Aint a, b;
    char buf[8];
    MPI_Op op = MPI_SUM;

    WRONG(MPI_Type_contiguous(-1, MPI_INT, &t));
    WRONG(MPI_Type_contiguous(1, none, &t));
    WRONG(MPI_Type_vector(-1, 1, 1, MPI_INT, &t));
    WRONG(MPI_Type_vector(1, -1, 1, MPI_INT, &t));
    WRONG(MPI_Type_indexed(-1, one, one, MPI_INT, &t));
    WRONG(MPI_Type_indexed(1, neg, one, MPI_INT, &t));
    WRONG(MPI_Type_create_indexed_block(1, -1, one, MPI_INT, &t));
    WRONG(MPI_Type_create_subarray(1, one, one, zero, 12345, MPI_INT, &t));
    WRONG(MPI_Type_commit(&none));
    WRONG(MPI_Type_free(&none));
    WRONG(MPI_Type_free(&i));
    WRONG(MPI_Type_size(none, &n));
    WRONG(MPI_Type_get_extent(none, &a, &b));
    WRONG(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL));
    WRONG(MPI_Type_match_size(12345, 4, &t));
    MPI_Type_vector(2, 1, 2, MPI_INT, &vec);
    WRONG(MPI_Send(back, 1, vec, MPI_PROC_NULL, 0, MPI_COMM_SELF));
    WRONG(MPI_Type_get_contents(vec, 0, 0, 0, NULL, NULL, NULL));
    MPI_Type_commit(&vec);
    WRONG(MPI_Type_commit(&vec));
    WRONG(MPI_Pack(back, -1, MPI_INT, buf, 8, &at, MPI_COMM_SELF));
    WRONG(MPI_Pack(back, 4, none, buf, 8, &at, MPI_COMM_SELF));
    WRONG(MPI_Pack(back, 4, MPI_INT, buf, 8, &at, MPI_COMM_NULL));
    WRONG(MPI_Pack_size(-1, MPI_INT, MPI_COMM_SELF, &n));
    WRONG(MPI_Op_free(&op));
    op = MPI_OP_NULL;
    WRONG(MPI_Op_free(&op));
    WRONG(MPI_Reduce_local(back, buf, 1, MPI_INT, MPI_OP_NULL));
    WRONG(MPI_Reduce_local(back, buf, 1, MPI_FLOAT, MPI_BAND));
    WRONG(MPI_Reduce_local(back, buf, 1, MPI_INT, MPI_MAXLOC));
    MPI_Type_free(&vec);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    constructors();
    names();
    addresses();
    packing();
    large();
    operations();
    errors();
    MPI_Finalize();
    return 0;
}
