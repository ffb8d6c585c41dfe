// The functions of libmltcp_metrics.so, which metrics.cpp loads. In C, so that the two need not come from one build.
#pragma once

extern "C" {

/// Returns a snapshot as JSON, which the module frees by free(3); null if there is none at this time.
using MltcpMetricsLook = char* (*)(void* context);

/// Serves at `host`, an IP address, and `port`. On failure returns null and writes the reason into `error`, which has
/// `error_bytes` bytes.
void* mltcp_metrics_start(const char* host, int port, MltcpMetricsLook look, void* context, char* error,
                          unsigned long error_bytes);
void mltcp_metrics_stop(void* server);
}
