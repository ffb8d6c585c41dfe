// The MPI functions for `mltcp gen --mpi`, in a module of their own, libmltcp_mpi.so, which is loaded on demand: the
// program itself does not need MPI. In C, to be found by dlsym().
#pragma once

extern "C" {

/// Initialises MPI. Returns 0 or an MPI error code.
int mltcp_mpi_start(int* rank, int* size);
/// Whether all processes are on one machine: 1 or 0; -1 on error. Collective.
int mltcp_mpi_one_machine();
/// Broadcasts rank 0's bytes. Returns 0 or an MPI error code. Collective.
int mltcp_mpi_broadcast(char* bytes, int count);
/// Finalises MPI, which waits for all. A failed process exits without it, and its launcher terminates the others.
void mltcp_mpi_end();
}
