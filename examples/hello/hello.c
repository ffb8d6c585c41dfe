/* `hello OWN-IP` waits and prints its address. On another machine, `hello OWN-IP ADDRESS` sends it a message. */
#include <mltcp/mltcp.h>
#include <stdio.h>
#define MUST(call) \
  if ((call) != MLTCP_OK) return fprintf(stderr, "hello: %s\n", mltcp_last_error()), 1
int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || *argv[1] == '-')
    return fputs("hello OWN-IP waits, hello OWN-IP ADDRESS sends\n", stderr), 2;
  mltcp_endpoint* endpoint;
  mltcp_endpoint_options options;
  MUST(mltcp_endpoint_options_init(&options));
  options.address = argv[1];
  MUST(mltcp_endpoint_open(&options, &endpoint));
  char blob[MLTCP_ADDRESS_BYTES], text[1024] = "hello, you there";
  size_t size = sizeof blob;
  uint64_t peer = MLTCP_ANY_CONNECTION, operation;
  if (argc > 2) {
    MUST(mltcp_address_from_hex(argv[2], blob, &size));
    MUST(mltcp_connect(endpoint, blob, size, MLTCP_TAGGED, NULL, &peer, NULL));
    MUST(mltcp_send_tagged(endpoint, peer, text, strlen(text), 1, NULL, &operation));
  } else {
    MUST(mltcp_endpoint_address(endpoint, blob, &size));
    MUST(mltcp_address_to_hex(blob, size, text, sizeof text));
    if (puts(text) < 0 || fflush(stdout) != 0) return perror("hello"), 1;
    MUST(mltcp_receive_tagged(endpoint, peer, text, sizeof text, 1, MLTCP_WHOLE_TAG, NULL, &operation));
  }
  mltcp_completion end;
  mltcp_completion_init(&end);
  MUST(mltcp_wait(endpoint, operation, &end, MLTCP_FOREVER));
  if (end.code == MLTCP_OK && argc == 2) printf("%.*s\n", (int)end.bytes, text);
  if (end.code != MLTCP_OK && mltcp_completion_text(&end, text, sizeof text) == MLTCP_OK)
    fprintf(stderr, "hello: %s\n", text);
  return mltcp_endpoint_destroy(endpoint) != MLTCP_OK || end.code != MLTCP_OK;
}
