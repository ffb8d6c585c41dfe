// Captures messages of DPDK and its drivers' libraries, to keep them off the user's terminal. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mltcp::dpdk {

/// Redirects DPDK's log to dpdk_log() (eal.h) from now on.
void capture_log();
/// Redirects the messages of libxdp and libbpf from standard error to dpdk_log(). Has no effect if no driver has loaded
/// these libraries.
void capture_xdp_log();

/// log_count() returns the number of lines logged so far. log_since() returns the lines after the first `count` lines,
/// without those that are no longer stored.
std::uint64_t log_count();
std::vector<std::string> log_since(std::uint64_t count);

}  // namespace mltcp::dpdk
