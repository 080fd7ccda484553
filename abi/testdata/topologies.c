/* Cartesian topologies, graphs and distributed graphs, on 4 ranks. */
#include "class.h"

static void cart(void)
{
    MPI_Comm c, d;
    int n, r, kind, dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], from, to;

    MPI_Dims_create(12, 2, dims);
    ints("dims of 12", dims, 2);
    error("dims of 4 with 3", MPI_Dims_create(4, 2, (int[]){3, 0}));
    dims[0] = dims[1] = 2;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &c);
    MPI_Topo_test(c, &kind);
    say("a grid:", kind == MPI_CART);
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    say("none:", kind == MPI_UNDEFINED);
    MPI_Cartdim_get(c, &n);
    say("dimensions", n);
    MPI_Cart_get(c, 2, dims, periods, coords);
    ints("dims", dims, 2);
    ints("periods", periods, 2);
    ints("coords", coords, 2);
    MPI_Cart_rank(c, (int[]){-1, 1}, &r);
    say("rank at -1, 1", r);
    MPI_Cart_coords(c, 2, 2, coords);
    ints("coords of 2", coords, 2);
    MPI_Cart_shift(c, 0, 1, &from, &to);
    ints("shift", (int[]){from, to}, 2);
    MPI_Cart_shift(c, 1, 1, &from, &to);
    ints("shift", (int[]){from, to}, 2);
    MPI_Cart_sub(c, (int[]){0, 1}, &d);
    MPI_Comm_size(d, &n);
    say("size of a row", n);
    MPI_Comm_free(&d);
    MPI_Cart_map(MPI_COMM_WORLD, 1, (int[]){4}, periods, &r);
    say("mapped:", r >= 0 && r < 4);
    error("rank outside", MPI_Cart_rank(c, (int[]){0, 5}, &r));
    error("coords of 9", MPI_Cart_coords(c, 9, 2, coords));
    error("direction 4", MPI_Cart_shift(c, 4, 1, &from, &to));
    error("no grid", MPI_Cartdim_get(MPI_COMM_WORLD, &n));
    error("too large a grid", MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){3, 3}, periods, 0, &d));
    error("-1 dimensions", MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &d));
    MPI_Comm_free(&c);
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){3}, periods, 0, &c);
    say("in a grid of 3:", c != MPI_COMM_NULL);
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
}

static void graph(void)
{
    MPI_Comm c;
    int n, m, kind, index[4] = {2, 3, 4, 6}, edges[6] = {1, 3, 0, 3, 0, 2}, list[6];

    MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &c);
    MPI_Topo_test(c, &kind);
    say("a graph:", kind == MPI_GRAPH);
    MPI_Graphdims_get(c, &n, &m);
    say("nodes", n);
    say("edges", m);
    MPI_Graph_get(c, 4, 6, list, edges);
    ints("index", list, 4);
    ints("edges", edges, 6);
    MPI_Graph_neighbors_count(c, 3, &n);
    MPI_Graph_neighbors(c, 3, 6, list);
    ints("neighbours of 3", list, n);
    MPI_Graph_map(MPI_COMM_WORLD, 4, index, edges, &n);
    say("mapped:", n >= 0 && n < 4);
    error("neighbours of 9", MPI_Graph_neighbors_count(c, 9, &n));
    error("an edge to 8", MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){1}, (int[]){8}, 0, &c));
    error("too large a graph", MPI_Graph_create(MPI_COMM_WORLD, 1000000000, index, edges, 0, &c));
    MPI_Comm_free(&c);
}

static void distributed(void)
{
    MPI_Comm c;
    int in, out, weighted, from[2], to[2], fromW[2] = {0, 0}, toW[2] = {0, 0}, kind;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, (int[]){5}, 1, &next, (int[]){6}, MPI_INFO_NULL, 0, &c);
    MPI_Topo_test(c, &kind);
    say("a distributed graph:", kind == MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    ints("counts", (int[]){in, out, weighted}, 3);
    MPI_Dist_graph_neighbors(c, 1, from, fromW, 1, to, toW);
    ints("neighbours", (int[]){from[0], fromW[0], to[0], toW[0]}, 4);
    MPI_Comm_free(&c);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    ints("counts", (int[]){in, out, weighted}, 3);
    MPI_Dist_graph_neighbors(c, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED);
    ints("neighbours", (int[]){from[0], to[0]}, 2);
    MPI_Comm_free(&c);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    ints("counts", (int[]){in, out, weighted}, 3);
    MPI_Comm_free(&c);
    MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0 ? 1 : 0, (int[]){2}, (int[]){2}, (int[]){0, 1}, (int[]){3, 4}, MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    ints("counts", (int[]){in, out, weighted}, 3);
    MPI_Dist_graph_neighbors(c, in, from, fromW, out, to, toW);
    ints("neighbours", (int[]){from[0], fromW[0]}, 2);
    MPI_Comm_free(&c);
    error("no graph", MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &in, &out, &weighted));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    cart();
    graph();
    distributed();
    MPI_Finalize();
    return 0;
}
