/* An ordinary data-parallel program: each rank has gradients, and MPI_Allreduce sums them. The program does not depend
 * on MLTCP. The library over_mltcp.c replaces MPI_Allreduce if it is preloaded or linked. */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARAMETERS = 1 << 20, ITERATIONS = 5 };

int main(int argc, char** argv) {
  float* gradients = malloc(PARAMETERS * sizeof *gradients);
  int rank = 0;
  int ranks = 1;
  int right = gradients != NULL;
  double begun;
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  begun = MPI_Wtime();
  for (int iteration = 0; right && iteration < ITERATIONS; ++iteration) {
    int norm = rank; /* an int, whose sum MPI always performs itself */
    for (int i = 0; i < PARAMETERS; ++i) gradients[i] = (float)(rank + i % 7 + iteration);
    MPI_Allreduce(MPI_IN_PLACE, gradients, PARAMETERS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &norm, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right = norm == ranks * (ranks - 1) / 2;
    for (int i = 0; i < PARAMETERS; ++i)
      right = right && gradients[i] == (float)(ranks * (ranks - 1) / 2 + ranks * (i % 7 + iteration));
  }
  if (rank == 0) printf("%d iterations of %d ranks in %.0f ms\n", ITERATIONS, ranks, (MPI_Wtime() - begun) * 1e3);
  printf("rank %d: %s\n", rank, right ? "all sums right" : "a sum is wrong");
  MPI_Finalize();
  free(gradients);
  return right ? 0 : 1;
}
