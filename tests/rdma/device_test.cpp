// Tests access to this machine's RDMA devices. Most machines have none, so most tests expect the errors for that case.
// The virtual machines of tests/guest have devices.
#include "mltcp/rdma/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/rdma/doctor.h"
#include "mltcp/rdma/register_datapath.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

bool has_devices() {
  std::error_code error;
  return !std::filesystem::is_empty("/sys/class/infiniband", error) && !error;
}

TEST(VerbsDevice, open__names_the_cure_where_there_is_none) {
  register_datapath();
  HostPlace place;
  place.address = Address::parse("127.0.0.1:47700");
  const std::string error = message_of<InputError>([&] { check_host_datapath({.device = "verbs:nosuch0"}, place); });
  if (has_devices())
    EXPECT_THAT(error, HasSubstr("port verbs:nosuch0: "));
  else
    EXPECT_THAT(error, HasSubstr("port verbs:nosuch0: this machine has no RDMA device: load its driver's module, or "
                                 "let the kernel create one on an interface (modprobe rdma_rxe"));
}

TEST(VerbsDevice, open__for_frames_offers_no_software_device) {
  if (has_devices()) GTEST_SKIP() << "there are devices here";
  register_datapath();
  EXPECT_EQ(
      message_of<InputError>([] { open_host_datapath({.device = "verbs:nosuch0:1:raw"}); }),
      "port verbs:nosuch0: this machine has no RDMA device: load its driver's module, or use another kind of port "
      "(af_xdp:IFACE, udp:)");
}

TEST(VerbsDevice, doctor__says_whether_there_is_one) {
  const Examination found = examine();
  if (has_devices()) GTEST_SKIP() << "there are devices here: " << found.detail;
  EXPECT_FALSE(found.works);
  EXPECT_FALSE(found.has_devices);
  EXPECT_EQ(found.detail, "this machine has no RDMA device");
  EXPECT_THAT(found.cure, HasSubstr("modprobe rdma_rxe"));
}

TEST(VerbsDevice, forms__are_named_where_a_port_is_none) {
  register_datapath();
  EXPECT_THAT(message_of<InputError>([&] { open_host_datapath({.device = "nosuch:1"}); }),
              HasSubstr("verbs:DEVICE, verbs:DEVICE:PORT, verbs:DEVICE:PORT:GID"));
}

}  // namespace
}  // namespace mltcp::rdma
