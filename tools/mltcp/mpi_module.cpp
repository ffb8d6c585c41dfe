// The MPI functions for `mltcp gen --mpi` (see mpi_module.h).
#include "mpi_module.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

extern "C" {

int mltcp_mpi_start(int* rank, int* size) {
  int provided = 0;  // MPI_THREAD_FUNNELED: only one thread calls MPI
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided); error != MPI_SUCCESS)
    return error;
  if (const int error = MPI_Comm_rank(MPI_COMM_WORLD, rank); error != MPI_SUCCESS) return error;
  return MPI_Comm_size(MPI_COMM_WORLD, size);
}

int mltcp_mpi_one_machine() {
  MPI_Comm here = MPI_COMM_NULL;
  int size = 0;
  int all = 0;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS ||
      MPI_Comm_size(here, &size) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &all) != MPI_SUCCESS)
    return -1;
  MPI_Comm_free(&here);
  // All processes must return the same result, although their machines may run different numbers of processes.
  int smallest = 0;
  if (MPI_Allreduce(&size, &smallest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) != MPI_SUCCESS) return -1;
  return smallest == all ? 1 : 0;
}

int mltcp_mpi_broadcast(char* bytes, int count) { return MPI_Bcast(bytes, count, MPI_CHAR, 0, MPI_COMM_WORLD); }

void mltcp_mpi_end() { MPI_Finalize(); }
}
