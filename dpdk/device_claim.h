// At most one port per device in a process: who has which. Between processes see interface_claim.h. Internal to this
// folder.
#pragma once

#include <string>

namespace mltcp::dpdk {

class DeviceClaim {
 public:
  /// Claims what `identity` names, whatever the port is called, for the port `port`.
  DeviceClaim(std::string identity, const std::string& port);
  ~DeviceClaim();
  DeviceClaim(const DeviceClaim&) = delete;
  DeviceClaim& operator=(const DeviceClaim&) = delete;

  [[nodiscard]] bool is_ours() const { return ours_; }
  /// If not ours: "as af_packet:eth0, of the host 10.0.0.1:62400".
  [[nodiscard]] const std::string& holder() const { return holder_; }
  /// If ours: tells others who uses the port, "the host 10.0.0.1:62400". May be called by any thread.
  void set_user(const std::string& user) const;

 private:
  std::string identity_;
  std::string holder_;
  bool ours_ = false;
};

}  // namespace mltcp::dpdk
