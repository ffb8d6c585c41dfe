// The plug-in, for all versions of the interface. Each process has one.
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

/// Properties of a device, from which the properties of each version of the interface are made.
struct Properties {
  const char* name = nullptr;
  const char* pci_path = nullptr;
  int number = 0;
  int speed_mbps = 0;
  int max_comms = 0;
  std::size_t max_bytes = 0;  ///< maximum length of a message, in bytes
};

/// The functions do what NCCL's functions of the same names do. They throw the same exceptions as Device's functions.
class Plugin {
 public:
  /// Returns the plug-in of this process. It is created at the first call and never destroyed, because threads of NCCL
  /// may use it until the process ends.
  static Plugin& of_process();

  /// Reads the environment, finds devices, and logs them in one line. `version` is the version of the interface. If
  /// init() fails, NCCL uses another network. If Settings::required is true, init() returns success instead, and each
  /// use of its device fails.
  Result init(Logger logger, int version);
  /// Called once for each init() of version 11.
  void finalize() noexcept;
  Result devices(int* count);
  Result properties(int device, Properties& out);
  /// Returns null if there is no such device, or if the device is unusable. Logs a line if the device is unusable.
  Device* device(int number);
  /// Reports a step of the collective sequence to the jobs of all devices. Either an iteration begins, and will send as
  /// much as the previous one, or the iterations are no longer known. Does nothing before init().
  void mark_iteration(endpoint::CollectiveSequence::Step step) noexcept;

 private:
  Plugin() = default;
  void set_up();
  [[nodiscard]] std::string description(int version) const;

  std::mutex guard_;
  Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::string broken_;  ///< with Settings::required: why no device is usable
  int contexts_ = 0;
  std::uint64_t logged_versions_ = 0;  ///< versions of the interface that were already logged, one bit each
};

}  // namespace mltcp::nccl
