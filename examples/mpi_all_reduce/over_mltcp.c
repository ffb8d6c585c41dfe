/* Carries the all-reduces of an MPI program over MLTCP. The program does not change, because MPI's profiling interface
 * allows a library to replace MPI's functions (MPI 4.1, chapter 15).
 *
 *   mpirun -n 4 -x LD_PRELOAD=$PWD/libover_mltcp.so -x MLTCP_ADDRESS=... ./train
 *
 * Sums of floats on MPI_COMM_WORLD go around a ring of endpoints (Patarasu and Yuan, J. Parallel Distrib. Comput. 69,
 * 2009). MPI performs all other operations, and also exchanges the endpoints' addresses. MLTCP learns from the traffic
 * when iterations begin. MLTCP_ADDRESS is the IP address of the host on the training network. It is not needed if all
 * ranks run on one machine.
 */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mltcp/mltcp.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE INT64_C(30000000000) /* time limit for a message or a connection, in ns */

static mltcp_endpoint* endpoint; /* NULL if MPI performs the all-reduces itself */
static mltcp_connection next_rank, previous_rank;
static mltcp_job job;
static int rank, ranks;
static float* spare;
static size_t spare_count;

/* If `code` is an error, prints its cause and ends all ranks, as MPI does by default. */
static void must(const char* what, mltcp_code code) {
  if (code == MLTCP_OK) return;
  fprintf(stderr, "rank %d, %s: %s\n", rank, what, mltcp_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
static void must_end(const char* what, mltcp_operation operation) {
  mltcp_completion end;
  mltcp_completion_init(&end);
  must(what, mltcp_wait(endpoint, operation, &end, PATIENCE));
  if (end.code == MLTCP_OK) return;
  fprintf(stderr, "rank %d, %s: %s\n", rank, what, mltcp_code_text(end.code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static const char* own_address(void) {
  const char* address = getenv("MLTCP_ADDRESS");
  MPI_Comm here;
  int on_this_machine = 0;
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  PMPI_Comm_size(here, &on_this_machine);
  PMPI_Comm_free(&here);
  if (address != NULL && *address != '\0') return address;
  if (on_this_machine == ranks) return "127.0.0.1";
  fprintf(stderr, "rank %d: set MLTCP_ADDRESS to this host's IP address on the training network\n", rank);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return NULL;
}

static void open_ring(void) {
  mltcp_endpoint_options options;
  mltcp_job_options of_job;
  mltcp_operation connecting;
  size_t size = MLTCP_ADDRESS_BYTES;
  unsigned char own[MLTCP_ADDRESS_BYTES] = {0};
  unsigned char* all;
  int own_size;
  int* sizes;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) return;
  must("options", mltcp_endpoint_options_init(&options));
  options.device = getenv("MLTCP_DEVICE"); /* NULL stands for "udp:" */
  options.address = own_address();
  must("endpoint", mltcp_endpoint_open(&options, &endpoint));
  must("address", mltcp_endpoint_address(endpoint, own, &size));
  own_size = (int)size;
  all = malloc((size_t)ranks * sizeof own);
  sizes = malloc((size_t)ranks * sizeof *sizes);
  if (all == NULL || sizes == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  PMPI_Allgather(own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  PMPI_Allgather(&own_size, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
  must("connect", mltcp_connect(endpoint, all + (size_t)((rank + 1) % ranks) * sizeof own,
                                (size_t)sizes[(rank + 1) % ranks], MLTCP_ORDERED, NULL, &next_rank, &connecting));
  free(all);
  free(sizes);
  must_end("connect", connecting);
  must("the rank before", mltcp_accept(endpoint, &previous_rank, NULL, PATIENCE));
  mltcp_job_options_init(&of_job);
  of_job.function = "F1";
  of_job.learn_iterations = 1;
  must("job", mltcp_job_create(endpoint, &of_job, &job));
  must("job", mltcp_job_attach(endpoint, job, next_rank));
  if (rank == 0) printf("all-reduces of %d ranks run over MLTCP\n", ranks);
}

int MPI_Init(int* argc, char*** argv) {
  const int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS) open_ring();
  return error;
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int error = PMPI_Init_thread(argc, argv, required, provided);
  if (error == MPI_SUCCESS) open_ring();
  return error;
}

static void exchange(const float* out, size_t out_count, float* in, size_t in_count) {
  mltcp_operation receiving;
  mltcp_operation sending;
  must("receive", mltcp_receive(endpoint, previous_rank, in, in_count * sizeof *in, 0, NULL, &receiving));
  must("send", mltcp_send(endpoint, next_rank, out, out_count * sizeof *out, 0, NULL, &sending));
  must_end("receive", receiving);
  must_end("send", sending);
}

/* Part `number` of the data, 0 to ranks - 1, begins at begin_of() and has count_of() elements. */
static size_t begin_of(size_t count, int number) { return count * (size_t)number / (size_t)ranks; }
static size_t count_of(size_t count, int number) { return begin_of(count, number + 1) - begin_of(count, number); }

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator) {
  const size_t total = (size_t)count;
  float* const data = out;
  if (endpoint == NULL || type != MPI_FLOAT || op != MPI_SUM || communicator != MPI_COMM_WORLD || count < ranks)
    return PMPI_Allreduce(in, out, count, type, op, communicator);
  if (in != MPI_IN_PLACE) memcpy(out, in, total * sizeof *data);
  if (spare_count < total / (size_t)ranks + 1) {
    free(spare);
    spare_count = total / (size_t)ranks + 1;
    spare = malloc(spare_count * sizeof *spare);
    if (spare == NULL) MPI_Abort(communicator, 1);
  }
  /* Each rank adds its data to a part, until one rank has the complete sum of this part. */
  for (int step = 0; step + 1 < ranks; ++step) {
    const int give = (rank + ranks - step) % ranks;
    const int take = (rank + 2 * ranks - step - 1) % ranks;
    float* const sum = data + begin_of(total, take);
    exchange(data + begin_of(total, give), count_of(total, give), spare, count_of(total, take));
    for (size_t i = 0; i < count_of(total, take); ++i) sum[i] += spare[i];
  }
  /* The complete sum of each part goes around the ring to all ranks. */
  for (int step = 0; step + 1 < ranks; ++step) {
    const int give = (rank + ranks - step + 1) % ranks;
    const int take = (rank + ranks - step) % ranks;
    exchange(data + begin_of(total, give), count_of(total, give), data + begin_of(total, take), count_of(total, take));
  }
  return MPI_SUCCESS;
}

int MPI_Finalize(void) {
  if (endpoint != NULL) {
    /* After the barrier no rank sends data, so that endpoints can close. */
    PMPI_Barrier(MPI_COMM_WORLD);
    must("close", mltcp_endpoint_destroy(endpoint));
    endpoint = NULL;
  }
  free(spare);
  return PMPI_Finalize();
}
