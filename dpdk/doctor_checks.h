// What the doctor's files share, here and in tools/; see doctor.h.
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

/// The same, of what can be a port.
inline Check as_port(Check check) {
  check.is_port = true;
  return check;
}

/// Devices in a folder such as /sys/class/infiniband.
Check check_rdma(const std::filesystem::path& folder);

/// Empty if the file can't be read.
std::string first_line(const std::filesystem::path& path);
/// Names of what is in a folder, sorted; none if it can't be read.
std::vector<std::string> entries(const std::filesystem::path& folder);

/// Does `work` in a child process, which may start DPDK, with nothing of its output to be seen. Returns what `work`
/// does; or `otherwise` and what happened, if the child ends otherwise or takes more than 20 seconds.
std::string in_child(char otherwise, const std::function<std::string()>& work);

}  // namespace mltcp::dpdk
