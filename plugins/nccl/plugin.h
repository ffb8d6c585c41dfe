// The plug-in, for all versions of the interface; one per process.
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

/// The source of all versions' properties.
struct Properties {
  const char* name = nullptr;
  const char* pci_path = nullptr;
  int number = 0;
  int speed_mbps = 0;
  int max_comms = 0;
  std::size_t max_bytes = 0;  ///< maximum of a message
};

/// The functions do what NCCL's functions of the same names do, and throw like Device's.
class Plugin {
 public:
  /// Created at the first call and never destroyed: threads of NCCL may use it until the process ends.
  static Plugin& of_process();

  /// Reads the environment, finds devices, and logs them in one line. `version` is that of the interface. If it fails,
  /// NCCL takes another network. With MLTCP_REQUIRED it returns success instead, and uses of its device fail.
  Result init(Logger logger, int version);
  /// For each init() of version 11.
  void finalize() noexcept;
  Result devices(int* count);
  Result properties(int device, Properties& out);
  /// Null if there is no such device, or if it is unusable, which is then logged.
  Device* device(int number);
  /// Reports a step of the collective sequence to the jobs of all devices: an iteration begins and will send as much as
  /// the previous one, or iterations are no longer known. Does nothing before init().
  void mark_iteration(endpoint::CollectiveSequence::Step step) noexcept;

 private:
  Plugin() = default;
  void set_up();
  [[nodiscard]] std::string description(int version) const;

  std::mutex guard_;
  Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::string broken_;  ///< why nothing is usable, if MLTCP_REQUIRED
  int contexts_ = 0;
  std::uint64_t told_versions_ = 0;  ///< versions already logged, one bit each
};

}  // namespace mltcp::nccl
