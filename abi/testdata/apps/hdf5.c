/* Each rank writes a compressed array to a file of its own by HDF5, and reads that of the next one. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 100, COLUMNS = 200 };
static double written[ROWS][COLUMNS], got[ROWS][COLUMNS];

static double value(int rank, int i, int j) { return rank * 1e6 + i * COLUMNS + j; }

static hid_t file(int rank, int make) {
	char name[64];
	snprintf(name, sizeof name, "rank%d.h5", rank);
	return make ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT) : H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
}

int main(int argc, char **argv) {
	int rank, size, bad = 0, all;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	hsize_t dims[2] = {ROWS, COLUMNS}, chunk[2] = {10, 20};
	hid_t space = H5Screate_simple(2, dims, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
	bad |= H5Pset_chunk(how, 2, chunk) < 0 || H5Pset_deflate(how, 6) < 0;
	hid_t f = file(rank, 1), d = H5Dcreate2(f, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) written[i][j] = value(rank, i, j);
	bad |= H5Dwrite(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, written) < 0;
	bad |= H5Dclose(d) < 0 || H5Fclose(f) < 0;
	MPI_Barrier(MPI_COMM_WORLD);

	int next = (rank + 1) % size;
	f = file(next, 0);
	d = H5Dopen2(f, "x", H5P_DEFAULT);
	bad |= H5Dread(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) < 0;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) bad |= got[i][j] != value(next, i, j);
	bad |= H5Dclose(d) < 0 || H5Fclose(f) < 0 || H5Pclose(how) < 0 || H5Sclose(space) < 0;

	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0) printf("%d files of HDF5, %d bad\n", size, all);
	MPI_Finalize();
	return all != 0;
}
