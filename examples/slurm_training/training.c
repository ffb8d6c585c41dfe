/* The traffic of a training job, for Slurm. In each iteration a rank computes, which means that it sleeps. Then it
 * sends its gradients to the next rank of a ring, while it receives those of the previous rank. Start the program with
 * srun, one task per node:
 *
 *   srun training DEVICE FOLDER COMPUTE-MS BYTES ITERATIONS
 *   srun sh -c './training udp:$(hostname -i) $PWD/ring.$SLURM_JOB_ID 150 1000000 50'
 *
 * FOLDER is a new folder that all nodes share, for the exchange of the ranks' addresses. MLTCP's plug-in for Slurm
 * (docs/how-to/slurm.md) sets MLTCP_JOB, the job's number, and MLTCP_SLOT_UNIX_NS and MLTCP_SLOT_PERIOD_NS, its slots.
 * Without slots, only congestion control separates jobs. MLTCP_PLAN_FILE names a file with the current slots, which
 * change when other jobs start or end. The program checks this file in each iteration. Rank 0 prints a line of JSON
 * with the length of each iteration, and the number of iterations that began on their slot.
 *
 *   cc training.c $(pkg-config --cflags --libs mltcp-c) -o training
 */
#include <inttypes.h>
#include <mltcp/mltcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { max_iterations = 100000 };
static const int64_t patience = 60000000000; /* time limit in ns of each wait for another rank */

static void fail(const char* what, const char* why) {
  fprintf(stderr, "training: %s: %s\n", what, why);
  exit(1);
}
/* Returns the number that the whole text represents; -1 if the text is not a number from 0 to `max`. */
static int64_t number(const char* text, int64_t max) {
  char* end;
  if (text == NULL || *text < '0' || *text > '9') return -1;
  const long long value = strtoll(text, &end, 10);
  return *end == '\0' && value <= max ? value : -1;
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
static int64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static void sleep_ns(int64_t time) {
  const struct timespec pause = {time / 1000000000, time % 1000000000};
  nanosleep(&pause, NULL);
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
    fail(name, "it cannot be written; give a folder that all nodes share");
}

static mltcp_connection connect_to(mltcp_endpoint* endpoint, const char* folder, int rank) {
  char blob[MLTCP_ADDRESS_BYTES], name[4096];
  const int64_t begun = now_ns(CLOCK_MONOTONIC);
  mltcp_connection connection;
  mltcp_operation operation;
  FILE* file;
  snprintf(name, sizeof name, "%s/%d", folder, rank);
  while ((file = fopen(name, "rb")) == NULL) {
    if (now_ns(CLOCK_MONOTONIC) - begun > patience) fail(name, "it does not come; do all nodes share the folder?");
    sleep_ns(20000000);
  }
  const size_t size = fread(blob, 1, sizeof blob, file);
  fclose(file);
  must("connect", mltcp_connect(endpoint, blob, size, MLTCP_ORDERED, NULL, &connection, &operation));
  must_end(endpoint, operation);
  return connection;
}

/* Sets a plan with slots at slot + k * period, in ns of CLOCK_REALTIME. Removes the plan if `period` is 0 or less. */
static void hold_to(mltcp_endpoint* endpoint, mltcp_job job, int64_t slot, int64_t period) {
  mltcp_job_plan plan;
  int64_t now;
  int32_t state;
  if (period <= 0) {
    must("plan", mltcp_job_clear_plan(endpoint, job));
    return;
  }
  must("now", mltcp_now(endpoint, &now));
  mltcp_job_plan_init(&plan);
  plan.slot_ns = slot - (now_ns(CLOCK_REALTIME) - now); /* the slot on the endpoint's clock */
  plan.period_ns = period;
  must("plan", mltcp_job_set_plan(endpoint, job, &plan, &state));
}

/* Creates the job, with the slots that environment variables describe. */
static mltcp_job join_job(mltcp_endpoint* endpoint, mltcp_connection next) {
  mltcp_job job;
  mltcp_job_options options;
  const int64_t job_number = number(getenv("MLTCP_JOB"), UINT32_MAX);
  const int64_t slot = number(getenv("MLTCP_SLOT_UNIX_NS"), INT64_MAX);
  const int64_t period = number(getenv("MLTCP_SLOT_PERIOD_NS"), INT64_MAX);
  mltcp_job_options_init(&options);
  options.function = "F1";
  options.number = job_number > 0 ? (uint32_t)job_number : 0;
  must("job", mltcp_job_create(endpoint, &options, &job));
  must("attach", mltcp_job_attach(endpoint, job, next));
  if (slot >= 0 && period > 0) hold_to(endpoint, job, slot, period);
  return job;
}

/* Returns the number after the first `key` in a JSON text; 0 if the text does not contain `key`. */
static int64_t member(const char* text, const char* key) {
  const char* found = strstr(text, key);
  return found != NULL ? strtoll(found + strlen(key), NULL, 10) : 0;
}

/* Reads the slots from MLTCP_PLAN_FILE if the file has changed since `read`. The file has one job, with offset 0. */
static void follow_plan(mltcp_endpoint* endpoint, mltcp_job job, struct timespec* read) {
  const char* path = getenv("MLTCP_PLAN_FILE");
  struct stat now;
  char text[1024];
  if (path == NULL || stat(path, &now) != 0 ||
      (now.st_mtim.tv_sec == read->tv_sec && now.st_mtim.tv_nsec == read->tv_nsec))
    return;
  FILE* file = fopen(path, "r");
  if (file == NULL) return; /* the plug-in is replacing the file */
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  *read = now.st_mtim;
  hold_to(endpoint, job, member(text, "\"epoch_ns\":"), member(text, "\"period_ns\":"));
}

/* The sender closes the connection, so that no data in flight is lost. */
static void leave(mltcp_endpoint* endpoint, mltcp_connection next) {
  mltcp_queue* events;
  mltcp_completion event;
  size_t got = 0;
  mltcp_completion_init(&event);
  must("close", mltcp_close(endpoint, next));
  must("events", mltcp_endpoint_events(endpoint, &events));
  for (int ended = 0; ended < 2; ended += event.kind == MLTCP_ENDED)
    must("end", mltcp_queue_wait(events, &event, 1, &got, patience));
  must("destroy", mltcp_endpoint_destroy(endpoint));
}

int main(int argc, char** argv) {
  const int64_t rank = number(getenv("SLURM_PROCID"), 1000), ranks = number(getenv("SLURM_NTASKS"), 1000);
  const int64_t compute_ms = argc == 6 ? number(argv[3], 3600000) : -1;
  const int64_t bytes = argc == 6 ? number(argv[4], INT64_C(4000000000)) : -1;
  const int64_t iterations = argc == 6 ? number(argv[5], max_iterations) : -1;
  if (compute_ms < 0 || bytes < 1 || iterations < 1) {
    fputs("write training DEVICE FOLDER COMPUTE-MS BYTES ITERATIONS\n", stderr);
    return 2;
  }
  if (rank < 0 || ranks < 2 || rank >= ranks) {
    fputs("training: SLURM_PROCID and SLURM_NTASKS name no rank of two or more; start it by srun\n", stderr);
    return 2;
  }
  mltcp_endpoint* endpoint;
  mltcp_endpoint_options options;
  mltcp_connection next, previous;
  must("options", mltcp_endpoint_options_init(&options));
  options.device = argv[1];
  options.max_operations = 64;
  must("open", mltcp_endpoint_open(&options, &endpoint));
  publish(endpoint, argv[2], (int)rank);
  next = connect_to(endpoint, argv[2], (int)((rank + 1) % ranks));
  must("accept", mltcp_accept(endpoint, &previous, NULL, patience));
  const mltcp_job job = join_job(endpoint, next);
  char* out = calloc(2, (size_t)bytes);
  int64_t* lengths = calloc((size_t)iterations, sizeof *lengths);
  if (out == NULL || lengths == NULL) fail("memory", "there is none left");
  struct timespec plan_read = {0, 0};
  const int64_t begun_unix = now_ns(CLOCK_REALTIME);
  int64_t begun = now_ns(CLOCK_MONOTONIC);
  for (int64_t i = 0; i < iterations; ++i) {
    mltcp_operation sending, receiving;
    must("receive", mltcp_receive(endpoint, previous, out + bytes, (size_t)bytes, 0, NULL, &receiving));
    sleep_ns(compute_ms * 1000000);
    follow_plan(endpoint, job, &plan_read);
    must("iteration", mltcp_job_begin_iteration(endpoint, job, (uint64_t)bytes));
    must("send", mltcp_send(endpoint, next, out, (size_t)bytes, 0, NULL, &sending));
    must_end(endpoint, receiving);
    must_end(endpoint, sending);
    must("iteration", mltcp_job_end_iteration(endpoint, job));
    const int64_t ended = now_ns(CLOCK_MONOTONIC);
    lengths[i] = ended - begun;
    begun = ended;
  }
  mltcp_job_report report = {.struct_size = sizeof report};
  must("report", mltcp_report_job(endpoint, job, &report));
  if (rank == 0) {
    printf("{\"job\": %" PRId64 ", \"begun_unix_ns\": %" PRId64 ", \"on_slot\": %" PRIu64 ", \"corrections\": %" PRIu64
           ", \"slots\": %s, \"iteration_ns\": [",
           number(getenv("MLTCP_JOB"), UINT32_MAX), begun_unix, report.on_slot, report.corrections,
           report.plan_state == MLTCP_PLAN_ACTIVE ? "true" : "false");
    for (int64_t i = 0; i < iterations; ++i) printf("%s%" PRId64, i > 0 ? ", " : "", lengths[i]);
    puts("]}");
  }
  leave(endpoint, next);
  free(out);
  free(lengths);
  return 0;
}
