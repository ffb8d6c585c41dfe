// The plug-in, whatever the version of the interface: one a process.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mltcp/endpoint/collective_sequence.h"
#include "mltcp/plugins/nccl/device.h"
#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

/// What all versions' properties are made of.
struct Properties {
  const char* name = nullptr;
  const char* pci_path = nullptr;
  int number = 0;
  int speed_mbps = 0;
  int max_comms = 0;
  std::size_t max_bytes = 0;  ///< of a message
};

/// Functions do what NCCL's of the same names do; they throw as Device's.
class Plugin {
 public:
  /// Made with the first call, and never destroyed: threads of NCCL's may be in it until the process has ended.
  static Plugin& of_process();

  /// Reads the environment, finds devices, and tells of them in one line. `version` is that of the interface. Where
  /// that fails NCCL takes another network, unless MLTCP_REQUIRED is set: then success, and whatever uses the device
  /// that there is then fails.
  Result init(Logger logger, int version);
  /// Of each init() of version 11.
  void finalize() noexcept;
  Result devices(int* count);
  Result properties(int device, Properties& out);
  /// Null where there is no such device, or none that is usable; it has been told then.
  Device* device(int number);
  /// Of all devices' jobs, as the sequence of collectives says: an iteration begins, and will send what the one before
  /// did, or they are not known any more. Does nothing before init().
  void mark_iteration(endpoint::CollectiveSequence::Step step) noexcept;

 private:
  Plugin() = default;
  void set_up();
  [[nodiscard]] std::string description(int version) const;

  std::mutex guard_;
  Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::string broken_;  ///< why nothing is usable, with MLTCP_REQUIRED
  int contexts_ = 0;
  std::uint64_t told_versions_ = 0;  ///< a bit each
};

}  // namespace mltcp::nccl
