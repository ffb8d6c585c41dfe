// Captures messages of DPDK and its drivers' libraries, to keep them off the user's terminal. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mltcp::dpdk {

/// Redirects DPDK's log to dpdk_log() (eal.h) from now on.
void capture_log();
/// The same for libxdp and libbpf, which print to standard error, if a driver has loaded them.
void capture_xdp_log();

/// Number of lines logged so far, and those lines, as far as they are kept, that came after the first `count`.
std::uint64_t log_count();
std::vector<std::string> log_since(std::uint64_t count);

}  // namespace mltcp::dpdk
