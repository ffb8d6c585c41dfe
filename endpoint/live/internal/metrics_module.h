// Functions of libmltcp_metrics.so, which metrics.cpp loads. They have a C interface, so that the module and the code
// that loads it may come from different builds.
#pragma once

extern "C" {

/// Returns a snapshot as JSON, which the module releases with free(3). Returns null if there is no snapshot at this
/// time.
using MltcpMetricsLook = char* (*)(void* context);

/// Starts to serve metrics at `host`, an IP address, and `port`. Returns a server for mltcp_metrics_stop(). On failure
/// returns null and writes the reason into `error`, a buffer of `error_bytes` bytes.
void* mltcp_metrics_start(const char* host, int port, MltcpMetricsLook look, void* context, char* error,
                          unsigned long error_bytes);
void mltcp_metrics_stop(void* server);
}
