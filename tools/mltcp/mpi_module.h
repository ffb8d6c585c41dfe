// The MPI functions that `mltcp gen --mpi` needs. They are in a separate module, libmltcp_mpi.so, so that the program
// itself does not need MPI. The program loads the module on demand, and finds the functions by dlsym() because they
// have C names.
#pragma once

extern "C" {

/// Initialises MPI, and stores the rank of this process and the number of processes. Returns 0 or an MPI error code.
int mltcp_mpi_start(int* rank, int* size);
/// Returns 1 if all processes run on one machine, 0 if not, -1 on error. All processes must call it.
int mltcp_mpi_one_machine();
/// Sends `bytes` of rank 0 to all other ranks. Returns 0 or an MPI error code. All processes must call it.
int mltcp_mpi_broadcast(char* bytes, int count);
/// Finalises MPI, and waits for all other processes. A process that failed exits without this call, and its launcher
/// terminates the others.
void mltcp_mpi_end();
}
