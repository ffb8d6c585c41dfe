// Functions shared by the doctor's files, here and in tools/; see doctor.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::dpdk {

inline Check ok(std::string name, std::string detail) {
  return {std::move(name), CheckStatus::ok, std::move(detail), {}};
}
inline Check warn(std::string name, std::string detail, std::string cure) {
  return {std::move(name), CheckStatus::warn, std::move(detail), std::move(cure)};
}
inline Check missing(std::string name, std::string detail, std::string cure) {
  return {std::move(name), CheckStatus::missing, std::move(detail), std::move(cure)};
}

/// Returns `check` with the mark that it concerns an interface or NIC that can be a port.
inline Check as_port(Check check) {
  check.is_port = true;
  return check;
}

/// Checks the RDMA devices that are listed in `folder`, which is /sys/class/infiniband except in tests.
Check check_rdma(const std::filesystem::path& folder);

/// Returns the first line of a file; empty if the file cannot be read.
std::string first_line(const std::filesystem::path& path);
/// Returns the sorted names of a folder's entries; empty if the folder cannot be read.
std::vector<std::string> entries(const std::filesystem::path& folder);

/// Runs `work`, which may start DPDK, in a child process, and hides the output of the child. Returns the result of
/// `work`. If the child fails or takes more than 20 seconds, returns `otherwise` followed by what happened.
std::string in_child(char otherwise, const std::function<std::string()>& work);

}  // namespace mltcp::dpdk
