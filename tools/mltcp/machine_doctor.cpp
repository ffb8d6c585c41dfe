// Checks of sockets, kernel TCP and RDMA devices (see machine_doctor.h).
#include "machine_doctor.h"

#include "mltcp/dpdk/doctor_checks.h"
#include "mltcp/plugins/kernel/doctor.h"
#include "mltcp/socket/doctor.h"
#if MLTCP_HAS_VERBS
#include "mltcp/rdma/doctor.h"
#include "mltcp/rdma/verbs_name.h"
#endif

namespace mltcp::tools {

using dpdk::Check;

Check check_udp() {
  const socket::Examination found = socket::examine();
  const std::string detail = "udp: " + found.detail;
  if (!found.works) return dpdk::missing(kUdpCheck, detail, found.cure);
  return found.cure.empty() ? dpdk::ok(kUdpCheck, detail) : dpdk::warn(kUdpCheck, detail, found.cure);
}

Check check_kernel_tcp() {
  constexpr const char* name = "kernel TCP";
  const kernel::Examination found = kernel::examine();
  return found.works ? dpdk::ok(name, found.detail) : dpdk::missing(name, found.detail, found.cure);
}

#if MLTCP_HAS_VERBS
Check check_verbs(const Check& found) {
  const rdma::Examination verbs = rdma::examine();
  if (!verbs.has_devices && found.status != dpdk::CheckStatus::ok) return found;
  if (!verbs.works || !verbs.cure.empty()) return dpdk::warn(found.name, "verbs: " + verbs.detail, verbs.cure);
  const std::size_t hint = found.detail.find("; ");  // the part of the text before the hint about RoCE's UDP port
  return dpdk::ok(found.name,
                  "verbs: " + verbs.detail + (hint == std::string::npos ? std::string() : found.detail.substr(hint)));
}

Check check_verbs_port(const std::string& device) {
  rdma::parse_verbs_name(device);
  const rdma::Examination found = rdma::examine_port(device);
  const std::string name = "port " + device;
  Check check = found.works ? dpdk::ok(name, found.detail) : dpdk::missing(name, found.detail, found.cure);
  check.is_port = true;
  check.was_asked_for = true;
  return check;
}
#endif

}  // namespace mltcp::tools
