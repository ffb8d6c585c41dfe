// Tests several endpoints of the C interface over DPDK in one process. The shared library contains the datapaths, and
// starts DPDK once for all endpoints.
#include "../endpoint/c_pair.h"

namespace mltcp::c_test {
namespace {

mltcp_endpoint* open_on(const char* device, const char* address, std::int32_t driving) {
  mltcp_endpoint_options options = options_of(driving);
  options.device = device;
  options.address = address;
  options.peer_timeout_ns = 5'000 * kMillisecond;
  return open(options);
}

class CInterfaceOverDpdk : public CInterface {
 protected:
  void exchange() {
    connect(MLTCP_TAGGED);
    const auto message = bytes_of(100'000);
    std::vector<unsigned char> buffer(message.size());
    mltcp_operation sending = 0;
    mltcp_operation receiving = 0;
    ASSERT_EQ(mltcp_receive_tagged(right, there, buffer.data(), buffer.size(), 7, ~0ULL, nullptr, &receiving),
              MLTCP_OK);
    ASSERT_EQ(mltcp_send_tagged(left, here, message.data(), message.size(), 7, nullptr, &sending), MLTCP_OK);
    EXPECT_EQ(end_of(left, sending).code, MLTCP_OK);
    EXPECT_EQ(end_of(right, receiving).code, MLTCP_OK);
    EXPECT_EQ(buffer, message);
  }
};

TEST_F(CInterfaceOverDpdk, two_endpoints__exchange_messages_and_open_again) {
  for (int round = 0; round < 3; ++round) {
    left = open_on("ring:left,to=right", "10.9.0.1:50000", MLTCP_DRIVEN_BY_THREADS);
    right = open_on("ring:right,to=left", "10.9.0.2:50000", MLTCP_DRIVEN_BY_THREADS);
    ASSERT_TRUE(left != nullptr && right != nullptr);
    ASSERT_NO_FATAL_FAILURE(exchange());
    mltcp_endpoint_destroy(left);
    mltcp_endpoint_destroy(right);
    left = right = nullptr;
  }
}

TEST_F(CInterfaceOverDpdk, device_that_another_has__is_refused_with_the_holders_name) {
  left = open_on("ring:left,to=right", "10.9.0.1:50000", MLTCP_DRIVEN_BY_CALLER);
  ASSERT_NE(left, nullptr);
  mltcp_endpoint_options options = options_of();
  options.device = "ring:left,to=right";
  options.address = "10.9.0.2:50000";
  EXPECT_EQ(mltcp_endpoint_open(&options, &right), MLTCP_FAILED);
  EXPECT_NE(std::string(mltcp_last_error())
                .find("this process has that device already, as ring:left,to=right, of the host 10.9.0.1:50000; put "
                      "more shards on that port"),
            std::string::npos)
      << mltcp_last_error();
}

}  // namespace
}  // namespace mltcp::c_test
