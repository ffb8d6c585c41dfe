/* Tests mltcp.h in strict C99, as a program in C uses it: two endpoints in one process, tagged and ordered messages in
 * both directions, a callback, a queue, and a job. */
#include <mltcp/mltcp.h>
#include <stdio.h>

static int calls = 0;

static void on_end(void* context, const mltcp_completion* completion) {
  (void)completion;
  ++*(int*)context;
}

static int check(int condition, const char* what) {
  if (!condition) fprintf(stderr, "c99_test: %s: %s\n", what, mltcp_last_error());
  return condition ? 0 : 1;
}

static int ended_well(mltcp_endpoint* endpoint, mltcp_operation operation) {
  mltcp_completion end;
  mltcp_completion_init(&end);
  return mltcp_wait(endpoint, operation, &end, 20000000000) == MLTCP_OK && end.code == MLTCP_OK;
}

static int exchange(mltcp_endpoint* a, mltcp_endpoint* b, int32_t kind) {
  unsigned char blob[MLTCP_ADDRESS_BYTES];
  size_t size = sizeof blob;
  mltcp_connection here, there;
  mltcp_operation operation;
  mltcp_operation sending;
  char text[16] = "";
  mltcp_post_options options;
  int wrong = 0;
  mltcp_post_options_init(&options);
  options.callback = on_end;
  options.context = &calls;
  wrong += check(mltcp_endpoint_address(b, blob, &size) == MLTCP_OK, "address");
  wrong += check(mltcp_connect(a, blob, size, kind, NULL, &here, &operation) == MLTCP_OK, "connect");
  wrong += check(ended_well(a, operation), "connected");
  wrong += check(mltcp_accept(b, &there, NULL, 20000000000) == MLTCP_OK, "accept");
  if (wrong) return wrong;
  if (kind == MLTCP_TAGGED) {
    wrong += check(mltcp_send_tagged(a, here, "hello", 6, 3, &options, &sending) == MLTCP_OK, "send");
    wrong += check(mltcp_receive_tagged(b, there, text, sizeof text, 3, MLTCP_WHOLE_TAG, NULL, &operation) == MLTCP_OK,
                   "receive");
  } else {
    wrong += check(mltcp_send(a, here, "hello", 6, 3, &options, &sending) == MLTCP_OK, "send");
    wrong += check(mltcp_receive(b, there, text, sizeof text, 3, NULL, &operation) == MLTCP_OK, "receive");
  }
  wrong += check(ended_well(b, operation) && strcmp(text, "hello") == 0, "received");
  return wrong;
}

int main(void) {
  mltcp_endpoint_options options;
  mltcp_endpoint *a, *b;
  mltcp_queue* queue;
  mltcp_job_options job_options;
  mltcp_job job;
  mltcp_job_plan plan;
  mltcp_job_report job_report;
  mltcp_connection_report connection_report;
  mltcp_endpoint_report endpoint_report;
  int wrong = 0;
  mltcp_endpoint_options_init(&options);
  options.address = "127.0.0.1";
  wrong += check(mltcp_endpoint_open(&options, &a) == MLTCP_OK, "open");
  wrong += check(mltcp_endpoint_open(&options, &b) == MLTCP_OK, "open");
  if (wrong) return 1;
  wrong += exchange(a, b, MLTCP_ORDERED);
  wrong += exchange(a, b, MLTCP_TAGGED);
  mltcp_job_options_init(&job_options);
  mltcp_job_plan_init(&plan);
  mltcp_job_report_init(&job_report);
  mltcp_connection_report_init(&connection_report);
  mltcp_endpoint_report_init(&endpoint_report);
  wrong += check(mltcp_job_create(a, &job_options, &job) == MLTCP_OK, "job");
  wrong += check(mltcp_report_job(a, job, &job_report) == MLTCP_OK, "report");
  wrong += check(mltcp_report_endpoint(a, &endpoint_report) == MLTCP_OK && endpoint_report.connections == 2, "report");
  wrong += check(mltcp_queue_create(a, 16, &queue) == MLTCP_OK, "queue");
  wrong += check(mltcp_queue_destroy(queue) == MLTCP_OK, "queue");
  wrong += check(mltcp_endpoint_destroy(a) == MLTCP_OK && mltcp_endpoint_destroy(b) == MLTCP_OK, "destroy");
  wrong += check(calls == 2, "callbacks");
  return wrong ? 1 : 0;
}
