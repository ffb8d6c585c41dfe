// Ensures that a device has at most one port in a process, and records the port's user. interface_claim.h does the same
// between processes. Internal to this folder.
#pragma once

#include <string>

namespace mltcp::dpdk {

class DeviceClaim {
 public:
  /// Claims the device `identity` for the port named `port`. One device may have several port names, but one identity.
  DeviceClaim(std::string identity, const std::string& port);
  ~DeviceClaim();
  DeviceClaim(const DeviceClaim&) = delete;
  DeviceClaim& operator=(const DeviceClaim&) = delete;

  [[nodiscard]] bool is_ours() const { return ours_; }
  /// If the claim failed, describes the port that has the device, for messages: "as af_packet:eth0, of the host
  /// 10.0.0.1:62400".
  [[nodiscard]] const std::string& holder() const { return holder_; }
  /// Call it only if the claim succeeded. Sets the port's user, such as "the host 10.0.0.1:62400", for holder() of
  /// later claims. May be called by any thread.
  void set_user(const std::string& user) const;

 private:
  std::string identity_;
  std::string holder_;
  bool ours_ = false;
};

}  // namespace mltcp::dpdk
