/* A ring all-reduce in C, as data-parallel training sums its gradients: each rank sends to the next rank and receives
 * from the previous one (Patarasu and Yuan, J. Parallel Distrib. Comput. 69, 2009). Start the program once for each
 * rank, on one machine or several:
 *
 *   ring RANK RANKS OWN-IP FOLDER
 *
 * FOLDER is a new folder that all ranks share, for the exchange of their addresses. The program announces each
 * iteration to MLTCP, so that jobs that share a link separate.
 *
 *   cc ring.c $(pkg-config --cflags --libs mltcp-c) -o ring
 */
#include <mltcp/mltcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { count = 1 << 20, iterations = 3 };
static const int64_t patience = 30000000000; /* time limit in ns of each wait for another rank */

static void fail(const char* what, const char* why) {
  fprintf(stderr, "ring: %s: %s\n", what, why);
  exit(1);
}
/* Returns the number that the whole text represents; -1 if the text is not a number from 0 to 1000. */
static int number(const char* text) {
  char* end;
  const long value = strtol(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0' && value <= 1000 ? (int)value : -1;
}
static void must(const char* what, mltcp_code code) {
  if (code != MLTCP_OK) fail(what, mltcp_last_error());
}
static void must_end(mltcp_endpoint* endpoint, mltcp_operation operation) {
  mltcp_completion end;
  char text[256];
  mltcp_completion_init(&end);
  must("wait", mltcp_wait(endpoint, operation, &end, patience));
  mltcp_completion_text(&end, text, sizeof text);
  if (end.code != MLTCP_OK) fail("message", text);
}

/* Writes this rank's address into the folder. The file gets its final name only when it is complete. */
static void publish(mltcp_endpoint* endpoint, const char* folder, int rank) {
  char blob[MLTCP_ADDRESS_BYTES], early[4096], name[4096];
  size_t size = sizeof blob;
  must("address", mltcp_endpoint_address(endpoint, blob, &size));
  snprintf(early, sizeof early, "%s/%d.tmp", folder, rank);
  snprintf(name, sizeof name, "%s/%d", folder, rank);
  remove(early); /* an aborted run may have left this file */
  FILE* file = fopen(early, "wbx");
  if (file == NULL || fwrite(blob, 1, size, file) != size || fclose(file) != 0 || rename(early, name) != 0)
    fail(name, "it cannot be written; give a folder that all ranks share");
}

static mltcp_connection connect_to(mltcp_endpoint* endpoint, const char* folder, int rank) {
  char blob[MLTCP_ADDRESS_BYTES], name[4096];
  const time_t begun = time(NULL);
  const struct timespec moment = {0, 20000000};
  mltcp_connection connection;
  mltcp_operation operation;
  FILE* file;
  snprintf(name, sizeof name, "%s/%d", folder, rank);
  while ((file = fopen(name, "rb")) == NULL) {
    if (time(NULL) - begun > patience / 1000000000) fail(name, "it does not come; start all ranks");
    nanosleep(&moment, NULL);
  }
  const size_t size = fread(blob, 1, sizeof blob, file);
  fclose(file);
  must("connect", mltcp_connect(endpoint, blob, size, MLTCP_ORDERED, NULL, &connection, &operation));
  must_end(endpoint, operation);
  return connection;
}

struct ring {
  mltcp_endpoint* endpoint;
  mltcp_connection next, previous;
  int rank, ranks;
};
static int begin_of(const struct ring* ring, int part) { return (int)((int64_t)count * part / ring->ranks); }

/* Sends part `out` of `data` and receives part `in` into `into`, at the same time. */
static void exchange(const struct ring* ring, const float* data, int out, float* into, int in) {
  mltcp_operation sending, receiving;
  const size_t sent = sizeof *data * (size_t)(begin_of(ring, out + 1) - begin_of(ring, out));
  const size_t received = sizeof *data * (size_t)(begin_of(ring, in + 1) - begin_of(ring, in));
  must("receive", mltcp_receive(ring->endpoint, ring->previous, into, received, 0, NULL, &receiving));
  must("send", mltcp_send(ring->endpoint, ring->next, data + begin_of(ring, out), sent, 0, NULL, &sending));
  must_end(ring->endpoint, receiving);
  must_end(ring->endpoint, sending);
}

static void all_reduce(const struct ring* ring, float* data, float* spare) {
  const int n = ring->ranks;
  /* Each rank adds its data to a part, until one rank has the complete sum of this part. */
  for (int step = 0; step < n - 1; ++step) {
    const int out = (ring->rank - step + n) % n, in = (ring->rank - step - 1 + n) % n;
    exchange(ring, data, out, spare, in);
    for (int i = begin_of(ring, in); i < begin_of(ring, in + 1); ++i) data[i] += spare[i - begin_of(ring, in)];
  }
  /* The complete sum of each part goes around the ring to all ranks. */
  for (int step = 0; step < n - 1; ++step) {
    const int out = (ring->rank - step + 1 + n) % n, in = (ring->rank - step + n) % n;
    exchange(ring, data, out, data + begin_of(ring, in), in);
  }
}

/* The sender closes the connection, so that no data in flight is lost. */
static void leave(const struct ring* ring) {
  mltcp_queue* events;
  mltcp_completion event;
  size_t got = 0;
  mltcp_completion_init(&event);
  must("close", mltcp_close(ring->endpoint, ring->next));
  must("events", mltcp_endpoint_events(ring->endpoint, &events));
  for (int ended = 0; ended < 2; ended += event.kind == MLTCP_ENDED)
    must("end", mltcp_queue_wait(events, &event, 1, &got, patience));
  must("destroy", mltcp_endpoint_destroy(ring->endpoint));
}

int main(int argc, char** argv) {
  struct ring ring = {.rank = argc == 5 ? number(argv[1]) : -1, .ranks = argc == 5 ? number(argv[2]) : -1};
  if (ring.rank < 0 || ring.ranks < 2 || ring.rank >= ring.ranks) {
    fputs("write ring RANK RANKS OWN-IP FOLDER, with 2 to 1000 ranks and their numbers from 0 on\n", stderr);
    return 2;
  }
  mltcp_endpoint_options options;
  mltcp_job job;
  mltcp_job_options job_options;
  mltcp_job_options_init(&job_options);
  job_options.function = "F1";
  must("options", mltcp_endpoint_options_init(&options));
  options.address = argv[3];
  must("open", mltcp_endpoint_open(&options, &ring.endpoint));
  publish(ring.endpoint, argv[4], ring.rank);
  ring.next = connect_to(ring.endpoint, argv[4], (ring.rank + 1) % ring.ranks);
  must("accept", mltcp_accept(ring.endpoint, &ring.previous, NULL, patience));
  must("job", mltcp_job_create(ring.endpoint, &job_options, &job));
  must("attach", mltcp_job_attach(ring.endpoint, job, ring.next));
  float* data = malloc(2 * count * sizeof *data);
  if (data == NULL) fail("memory", "there is none left");
  const uint64_t bytes = (uint64_t)count * sizeof *data * 2 * (uint64_t)(ring.ranks - 1) / (uint64_t)ring.ranks;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int i = 0; i < count; ++i) data[i] = (float)(ring.rank + i % 7 + iteration);
    must("iteration", mltcp_job_begin_iteration(ring.endpoint, job, bytes));
    all_reduce(&ring, data, data + count);
    must("iteration", mltcp_job_end_iteration(ring.endpoint, job));
    for (int i = 0; i < count; ++i)
      if (data[i] != (float)(ring.ranks * (ring.ranks - 1) / 2 + ring.ranks * (i % 7 + iteration)))
        fail("a sum is wrong", "this should not be");
  }
  leave(&ring);
  free(data);
  printf("rank %d of %d: %d iterations, all sums right\n", ring.rank, ring.ranks, iterations);
  return 0;
}
