// What `mltcp gen --mpi` asks of MPI. It lives in a module of its own, libmltcp_mpi.so, which is loaded when it is
// wanted: the program itself runs where there is no MPI. C, since that is what dlsym() finds.
#pragma once

extern "C" {

/// Starts MPI. 0, or an error of MPI.
int mltcp_mpi_start(int* rank, int* size);
/// Whether all processes are on one machine: 1 or 0; -1 for an error. Called by all.
int mltcp_mpi_one_machine();
/// Rank 0's bytes to all. 0, or an error of MPI.
int mltcp_mpi_broadcast(char* bytes, int count);
/// Waits for all. A process that failed ends without, and its launcher ends the others.
void mltcp_mpi_end();
}
