// The functions of libmltcp_metrics.so, which metrics.cpp loads. In C, so that nothing of the two must be of one build.
#pragma once

extern "C" {

/// A snapshot as JSON, which the module frees by free(3); null: there is none just now.
using MltcpMetricsLook = char* (*)(void* context);

/// Serves at `host`, an IP address, and `port`. Returns null and writes why into `error`, of `error_bytes` bytes, if it
/// can't.
void* mltcp_metrics_start(const char* host, int port, MltcpMetricsLook look, void* context, char* error,
                          unsigned long error_bytes);
void mltcp_metrics_stop(void* server);
}
