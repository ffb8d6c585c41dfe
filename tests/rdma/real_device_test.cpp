// Tests RDMA devices through an emulated libibverbs (fake_libibverbs.h): the library calls, the errors of a device that
// refuses a request, device events, and the recovery of queue pairs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "../message_of.h"
#include "fake_libibverbs.h"
#include "mltcp/base/error.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/doctor.h"
#include "mltcp/rdma/register_datapath.h"
#include "mltcp/transport/host_datapath.h"
#include "namespaces.h"

namespace mltcp::rdma {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr std::size_t kPage = 4096;

struct FreePages {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Returns a page of memory for the buffers.
std::span<std::byte> pages() {
  static const std::unique_ptr<std::byte, FreePages> memory(static_cast<std::byte*>(std::aligned_alloc(kPage, kPage)));
  return {memory.get(), kPage};
}

std::unique_ptr<Device> open_fake() { return open_device({.device = "fake0"}); }

std::unique_ptr<QueuePair> pair_of(Device& device) {
  return device.make_queue_pair({.key = 1, .inline_bytes = 256, .memory = pages()});
}

std::string pair_error(FakeVerbs&) {
  return message_of<RunError>([] { pair_of(*open_fake()); });
}

class RealDeviceTest : public testing::Test {
 protected:
  FakeVerbs verbs;
};

TEST_F(RealDeviceTest, open__tells_what_the_device_is_and_prepares_for_forks) {
  const auto device = open_fake();
  EXPECT_EQ(device->facts().longest_message, 1024u);
  EXPECT_EQ(device->facts().max_pieces, 4u);
  ASSERT_EQ(device->facts().gids.size(), 2u);
  EXPECT_TRUE(device->facts().gids[1].is_roce_v2);
  EXPECT_EQ(device->why_down(), "");
  EXPECT_GE(verbs.forks_prepared, 1);
}

TEST_F(RealDeviceTest, open__names_cause_and_cure) {
  EXPECT_THAT(
      message_of<InputError>([] { open_device({.device = "mlx5_0"}); }),
      HasSubstr("port verbs:mlx5_0: there is no such RDMA device; write verbs:DEVICE with one that there is: fake0"));
  EXPECT_THAT(message_of<InputError>([] { open_device({.device = "fake0", .port = 2}); }),
              HasSubstr("port verbs:fake0:2: the device has 1 port; leave it out"));
  verbs.transport = IBV_TRANSPORT_IWARP;
  EXPECT_THAT(message_of<InputError>(open_fake), HasSubstr("an iWARP device, which has no datagrams"));
  verbs.transport = IBV_TRANSPORT_IB;
  verbs.open_error = EACCES;
  EXPECT_THAT(message_of<RunError>(open_fake), HasSubstr("add this user to the group of /dev/infiniband/uverbs*"));
}

TEST_F(RealDeviceTest, open__of_an_interface_names_its_device) {
  const auto error = [] { return message_of<InputError>([] { open_device({.device = "lo"}); }); };
  EXPECT_EQ(
      error(),
      "port verbs:lo: lo is an interface, and no RDMA device is on it; write verbs:DEVICE with one that there is: "
      "fake0");
  verbs.gids.push_back({.index = 2, .ip = Address::parse("127.0.0.1"), .interface = if_nametoindex("lo")});
  EXPECT_EQ(error(), "port verbs:lo: lo is an interface, whose RDMA device is fake0; write verbs:fake0");
  verbs.gids.back().port = 2;
  EXPECT_EQ(error(), "port verbs:lo: lo is an interface, whose RDMA device is fake0; write verbs:fake0:2");
}

TEST_F(RealDeviceTest, name_without_a_device__lists_those_that_there_are) {
  verbs.names = {"fake0", "fake1"};
  EXPECT_THAT(message_of<InputError>([] { parse_verbs_name("verbs:"); }),
              HasSubstr("the device is missing; write verbs:DEVICE, verbs:DEVICE:PORT, verbs:DEVICE:PORT:GID, "
                        "verbs:DEVICE:PORT:raw (here: fake0, fake1)"));
  verbs.names.clear();
  EXPECT_THAT(message_of<InputError>([] { parse_verbs_name("verbs:"); }), EndsWith("verbs:DEVICE:PORT:raw"));
}

TEST_F(RealDeviceTest, doctor__tells_of_a_wrong_name_what_to_write) {
  const Examination found = examine_port("verbs:fake9");
  EXPECT_EQ(found.detail, "port verbs:fake9: there is no such RDMA device");
  EXPECT_EQ(found.cure, "write verbs:DEVICE with one that there is: fake0");
}

TEST_F(RealDeviceTest, queue_pair__is_refused_with_cause_and_cure) {
  verbs.memory_error = ENOMEM;
  EXPECT_THAT(pair_error(verbs), HasSubstr("4 kB of buffers can't be registered (Cannot allocate memory); the limit of "
                                           "locked memory is"));
  verbs.memory_error = 0;
  verbs.completions_error = [](int entries) { return entries == 1024 ? ENOMEM : 0; };
  EXPECT_THAT(pair_error(verbs), HasSubstr("no completion queue of 1024 entries"));
  verbs.completions_error = [](int) { return 0; };
  // If the device creates no UD queue pair at all, it does not support datagrams. If the device creates only short UD
  // queue pairs, the user must request shorter queues.
  verbs.queue_error = [](const ibv_qp_init_attr&) { return EOPNOTSUPP; };
  EXPECT_THAT(pair_error(verbs), HasSubstr("it has no queue pairs for unreliable datagrams (Operation not supported); "
                                           "use another device, or its interface (udp:, af_xdp:)"));
  verbs.queue_error = [](const ibv_qp_init_attr& wanted) { return wanted.cap.max_recv_wr > 100 ? EINVAL : 0; };
  EXPECT_THAT(pair_error(verbs), HasSubstr("no queue pair of 512 sends and 1024 receives (Invalid argument); ask for "
                                           "shorter queues"));
  verbs.queue_error = [](const ibv_qp_init_attr&) { return ENOMEM; };
  EXPECT_THAT(pair_error(verbs), HasSubstr("no queue pair of 512 sends and 1024 receives (Cannot allocate memory)"));
  verbs.queue_error = [](const ibv_qp_init_attr&) { return 0; };
  verbs.modify_error = EINVAL;
  EXPECT_THAT(pair_error(verbs), HasSubstr("can't be made ready (Invalid argument); check that the port is up"));
}

TEST_F(RealDeviceTest, queue_pair__takes_as_much_inline_as_there_is) {
  verbs.queue_error = [](const ibv_qp_init_attr& wanted) { return wanted.cap.max_inline_data > 100 ? EINVAL : 0; };
  const auto device = open_fake();
  EXPECT_EQ(pair_of(*device)->inline_bytes, 64u);
}

TEST_F(RealDeviceTest, recover__goes_on_from_where_a_queue_pair_has_stopped) {
  const auto device = open_fake();
  const auto pair = pair_of(*device);
  EXPECT_EQ(FakeVerbs::state_of(pair->queue), IBV_QPS_RTS);
  EXPECT_EQ(pair->recover(false), QueuePair::Recovery::none_needed);
  FakeVerbs::set_state(pair->queue, IBV_QPS_SQE);
  EXPECT_EQ(pair->recover(false), QueuePair::Recovery::resumed) << "what is to be received stays";
  EXPECT_EQ(FakeVerbs::state_of(pair->queue), IBV_QPS_RTS);
  for (const ibv_qp_state failed : {IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    FakeVerbs::set_state(pair->queue, failed);
    verbs.completions[pair->sent].push_back({});
    verbs.completions[pair->received].push_back({});
    EXPECT_EQ(pair->recover(false), QueuePair::Recovery::reset);
    EXPECT_EQ(FakeVerbs::state_of(pair->queue), IBV_QPS_RTS);
    EXPECT_TRUE(verbs.completions[pair->sent].empty() && verbs.completions[pair->received].empty());
  }
  EXPECT_EQ(pair->recover(true), QueuePair::Recovery::reset) << "though it has not stopped";
  FakeVerbs::set_state(pair->queue, IBV_QPS_ERR);
  verbs.modify_error = EIO;
  EXPECT_EQ(pair->recover(false), QueuePair::Recovery::failed);
  verbs.modify_error = 0;
  pair->stop();
  EXPECT_EQ(FakeVerbs::state_of(pair->queue), IBV_QPS_RESET);
}

TEST_F(RealDeviceTest, events__of_a_queue_pair_reach_it) {
  const auto device = open_fake();
  const auto pair = pair_of(*device);
  const auto other = pair_of(*device);
  EXPECT_FALSE(device->take_events());
  for (const auto type : {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR}) {
    verbs.happen(type, pair->queue);
    EXPECT_TRUE(device->take_events());
    EXPECT_TRUE(pair->has_failed.exchange(false));
    EXPECT_FALSE(other->has_failed);
  }
  for (const auto type : {IBV_EVENT_PORT_ACTIVE, IBV_EVENT_GID_CHANGE, IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,
                          IBV_EVENT_SM_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_CLIENT_REREGISTER}) {
    verbs.happen(type, pair->queue);
    EXPECT_FALSE(device->take_events()) << type;
  }
  EXPECT_EQ(device->why_down(), "");
}

TEST_F(RealDeviceTest, events__of_the_port_are_told_and_end) {
  const auto device = open_fake();
  verbs.port_state = IBV_PORT_DOWN;
  verbs.happen(IBV_EVENT_PORT_ERR);
  EXPECT_FALSE(device->take_events());
  EXPECT_THAT(device->why_down(), HasSubstr("verbs:fake0 is down; bring its interface up: ip link set dev"));
  verbs.port_error = EAGAIN;
  device->take_events();
  EXPECT_THAT(device->why_down(), HasSubstr("is down"));
  verbs.port_error = 0;
  verbs.port_state = IBV_PORT_ACTIVE;
  device->take_events();
  EXPECT_EQ(device->why_down(), "");
}

TEST_F(RealDeviceTest, a_completion_queue_that_is_lost__is_told_of_for_good) {
  const auto device = open_fake();
  verbs.happen(IBV_EVENT_CQ_ERR);
  EXPECT_TRUE(device->take_events());
  EXPECT_TRUE(device->is_gone());
  EXPECT_EQ(device->why_down(), "verbs:fake0 has lost a completion queue; start the program again");
  EXPECT_FALSE(device->take_events());
  EXPECT_TRUE(device->is_gone());
}

TEST(RealDevice, a_device_that_goes__is_told_of_for_good) {
  for (const bool by_event : {false, true}) {
    FakeVerbs verbs;
    const auto device = open_fake();
    verbs.wrong_keys = 5;
    EXPECT_EQ(device->wrong_keys(), 5u);
    if (by_event)
      verbs.happen(IBV_EVENT_DEVICE_FATAL);
    else
      verbs.port_error = EIO;
    EXPECT_TRUE(device->take_events());
    EXPECT_TRUE(device->is_gone());
    EXPECT_THAT(device->why_down(), HasSubstr("the device is gone; bring it back, and start the program again"));
    verbs.port_error = 0;
    EXPECT_FALSE(device->take_events());
    EXPECT_TRUE(device->is_gone());
    verbs.wrong_keys = 9;
    EXPECT_EQ(device->wrong_keys(), 5u) << "what was counted stays";
  }
}

TEST_F(RealDeviceTest, a_gid_that_comes_back_elsewhere__is_found) {
  const auto device = open_fake();
  device->watch(choose_gid(device->facts(), Address::parse("10.0.0.1"), std::nullopt));
  EXPECT_EQ(device->gid_index(), 1);
  const auto gids = verbs.gids;
  verbs.gids.clear();
  verbs.happen(IBV_EVENT_GID_CHANGE);
  device->take_events();
  EXPECT_THAT(device->why_down(), HasSubstr("has lost the address 10.0.0.1; give it back: ip addr add 10.0.0.1/24"));
  // At first, the GID table has 10.0.0.1 only for RoCE version 1, and 10.0.0.9 at index 1. Then it gets 10.0.0.1 for
  // version 2 at index 5.
  verbs.gids = {{.index = 1, .ip = Address::parse("10.0.0.9")},
                {.index = 2, .ip = Address::parse("10.0.0.1"), .is_v2 = false}};
  device->take_events();
  EXPECT_THAT(device->why_down(), HasSubstr("has lost the address 10.0.0.1"));
  verbs.gids.push_back({.index = 5, .ip = Address::parse("10.0.0.1")});
  device->take_events();
  EXPECT_EQ(device->why_down(), "");
  EXPECT_EQ(device->gid_index(), 5);
  verbs.gids = {{.index = 5, .ip = Address::parse("10.0.0.1"), .is_v2 = false}, {.index = 1, .ip = gids[1].ip}};
  device->take_events();
  EXPECT_EQ(device->gid_index(), 1) << "at the former place is version 1";
}

TEST_F(RealDeviceTest, raw_packets__are_tried_and_what_is_missing_is_named) {
  register_datapath();
  const auto raw = [](int error) {
    return [error](const ibv_qp_init_attr& wanted) { return wanted.qp_type == IBV_QPT_RAW_PACKET ? error : 0; };
  };
  HostPlace place;
  place.address = Address::parse("10.0.0.1:5000");
  const auto check = [&] {
    return message_of<InputError>([&] { check_host_datapath({.device = "verbs:fake0:1:raw"}, place); });
  };
  const auto refusal = [&] {
    const std::string opened = message_of<InputError>([] { open_host_datapath({.device = "verbs:fake0:1:raw"}); });
    EXPECT_EQ(check(), opened);
    EXPECT_EQ(
        message_of<InputError>([&] { free_host_ports({.device = "verbs:fake0:1:raw"}, place); }),
        "port \"verbs:fake0:1:raw\": the kernel has no Ethernet interface on that port; load its driver (for mlx5: "
        "mlx5_core, with Ethernet)");
    return opened;
  };
  EXPECT_EQ(open_fake()->try_raw_packets().why_not, "");
  EXPECT_THAT(check(), HasSubstr("the kernel has no Ethernet interface on that port"));
  EXPECT_THAT(
      examine_port("verbs:fake0").detail,
      HasSubstr("fake0: RoCEv2, messages of 1024 bytes, up, 10.0.0.1; raw-packet queue pairs with flow steering"));
  EXPECT_TRUE(examine_port("verbs:fake0").works);
  verbs.flow_error = EOPNOTSUPP;
  EXPECT_EQ(refusal(),
            "port \"verbs:fake0:1:raw\": the device has raw-packet queue pairs, but no flow steering (Operation not "
            "supported); use the NIC under DPDK (pci:ADDRESS), or its interface (af_xdp:IFACE, udp:)");
  verbs.queue_error = raw(EPERM);
  EXPECT_EQ(refusal(),
            "port \"verbs:fake0:1:raw\": the device has no raw-packet queue pairs (they need root, or the capability "
            "CAP_NET_RAW); run the program as root, or give it that (setcap cap_net_raw+ep PROGRAM)");
  EXPECT_THAT(examine_port("verbs:fake0:1:raw").cure, HasSubstr("CAP_NET_RAW"));
  verbs.queue_error = raw(EOPNOTSUPP);
  EXPECT_THAT(refusal(), HasSubstr("has no raw-packet queue pairs (Operation not supported); use the NIC"));
  const Examination found = examine_port("verbs:fake0:1:raw");
  EXPECT_FALSE(found.works);
  EXPECT_EQ(found.detail, "fake0: no raw-packet queue pairs (Operation not supported)");
  EXPECT_EQ(found.cure, "use the NIC under DPDK (pci:ADDRESS), or its interface (af_xdp:IFACE, udp:)");
  verbs.link_layer = IBV_LINK_LAYER_INFINIBAND;
  EXPECT_EQ(open_fake()->try_raw_packets().why_not, "InfiniBand has no Ethernet frames");
  EXPECT_EQ(check(),
            "port \"verbs:fake0:1:raw\": InfiniBand has no Ethernet frames; write verbs:fake0 to use its datagrams");
}

TEST(RealDevice, frames__are_checked_and_examined_on_the_interface_of_the_port) {
  const std::string verdict = namespaces::between_namespaces([]() -> std::string {
    FakeVerbs verbs;
    register_datapath();
    verbs.gids = {{.index = 0, .ip = Address::parse("10.9.0.1"), .interface = if_nametoindex("v0")}};
    HostPlace place;
    place.address = Address::parse("10.9.0.1:5000");
    const HostDatapathConfig config{.device = "verbs:fake0:1:raw"};
    check_host_datapath(config, place);
    if (free_host_ports(config, place) == 0) return "no free port";
    const Examination found = examine_port(config.device);
    if (!found.works || found.cure != "" ||
        found.detail !=
            "fake0: raw-packet queue pairs with flow steering; v0 10.9.0.1, MTU 1400, checksums in software, up")
      return found.detail;
    place.address = Address::parse("10.9.0.2:5000");
    const std::string error = message_of<InputError>([&] { check_host_datapath(config, place); });
    if (error.find("none of its interface's addresses is 10.9.0.2, but v0 10.9.0.1") == std::string::npos) return error;
    return "";
  });
  if (verdict.starts_with("skip: ")) GTEST_SKIP() << verdict.substr(6);
  EXPECT_EQ(verdict, "");
}

std::unique_ptr<QueuePair> frame_pair_of(Device& device) {
  return device.make_queue_pair({.kind = PairKind::frames, .inline_bytes = 256, .memory = pages()});
}

TEST_F(RealDeviceTest, a_queue_pair_for_frames__is_made_ready_without_keys) {
  std::vector<ibv_qp_type> types;
  verbs.queue_error = [&](const ibv_qp_init_attr& wanted) {
    types.push_back(wanted.qp_type);
    return 0;
  };
  const auto device = open_fake();
  const auto pair = frame_pair_of(*device);
  EXPECT_EQ(types, std::vector{IBV_QPT_RAW_PACKET});
  EXPECT_EQ(FakeVerbs::state_of(pair->queue), IBV_QPS_RTS);
  FakeVerbs::set_state(pair->queue, IBV_QPS_ERR);
  EXPECT_EQ(pair->recover(false), QueuePair::Recovery::reset);
  EXPECT_EQ(FakeVerbs::state_of(pair->queue), IBV_QPS_RTS);
  verbs.queue_error = [](const ibv_qp_init_attr&) { return EOPNOTSUPP; };
  EXPECT_THAT(message_of<RunError>([&] { frame_pair_of(*device); }), HasSubstr("it has no raw-packet queue pairs ("));
}

/// Returns the specification at byte offset `at` of a flow rule.
template <typename Spec>
Spec spec_at(const std::vector<std::byte>& rule, std::size_t at) {
  Spec spec{};
  EXPECT_LE(at + sizeof spec, rule.size());
  std::memcpy(&spec, rule.data() + at, sizeof spec);
  EXPECT_EQ(spec.size, sizeof spec);
  return spec;
}

TEST_F(RealDeviceTest, steer__names_mac_address_ip_address_and_udp_port) {
  const auto device = open_fake();
  const auto pair = frame_pair_of(*device);
  const FrameRule v4{.destination_mac = {2, 0, 0, 0, 0, 7}, .destination = Address::parse("10.0.0.1:62400")};
  ASSERT_EQ(pair->steer(v4), 0);
  ASSERT_EQ(pair->steer({.destination_mac = v4.destination_mac, .destination = Address::parse("[fd00::5]:62401")}), 0);
  ASSERT_EQ(verbs.rules.size(), 2u);
  for (const std::vector<std::byte>& rule : verbs.rules) {
    ibv_flow_attr head{};
    std::memcpy(&head, rule.data(), sizeof head);
    EXPECT_EQ(head.type, IBV_FLOW_ATTR_NORMAL);
    EXPECT_EQ(head.num_of_specs, 3);
    EXPECT_EQ(head.port, 1);
    EXPECT_EQ(head.flags, 0u);
    const auto frame = spec_at<ibv_flow_spec_eth>(rule, sizeof head);
    EXPECT_EQ(frame.type, IBV_FLOW_SPEC_ETH);
    EXPECT_EQ(std::memcmp(frame.val.dst_mac, v4.destination_mac.data(), 6), 0);
    EXPECT_EQ(std::memcmp(frame.mask.dst_mac, "\xff\xff\xff\xff\xff\xff", 6), 0);
    EXPECT_EQ(frame.mask.ether_type, 0) << "it is told by the next part";
  }
  constexpr std::size_t ip_at = sizeof(ibv_flow_attr) + sizeof(ibv_flow_spec_eth);
  const auto ip = spec_at<ibv_flow_spec_ipv4>(verbs.rules[0], ip_at);
  EXPECT_EQ(ip.type, IBV_FLOW_SPEC_IPV4);
  EXPECT_EQ(std::memcmp(&ip.val.dst_ip, "\x0a\x00\x00\x01", 4), 0);
  EXPECT_EQ(ip.mask.dst_ip, 0xFFFFFFFFu);
  EXPECT_EQ(ip.mask.src_ip, 0u);
  const auto ip6 = spec_at<ibv_flow_spec_ipv6>(verbs.rules[1], ip_at);
  EXPECT_EQ(ip6.type, IBV_FLOW_SPEC_IPV6);
  EXPECT_EQ(ip6.val.dst_ip[0], 0xFD);
  EXPECT_EQ(ip6.val.dst_ip[15], 5);
  EXPECT_EQ(ip6.mask.dst_ip[7], 0xFF);
  for (const auto& [rule, at, port] :
       {std::tuple(0U, ip_at + sizeof ip, "\xf3\xc0"), std::tuple(1U, ip_at + sizeof ip6, "\xf3\xc1")}) {
    const auto udp = spec_at<ibv_flow_spec_tcp_udp>(verbs.rules[rule], at);
    EXPECT_EQ(udp.type, IBV_FLOW_SPEC_UDP);
    EXPECT_EQ(std::memcmp(&udp.val.dst_port, port, 2), 0);
    EXPECT_EQ(udp.mask.dst_port, 0xFFFF);
    EXPECT_EQ(udp.mask.src_port, 0);
  }
  EXPECT_EQ(verbs.alive["flow"], 2) << "as long as the queue pair";
  verbs.flow_error = EBUSY;
  EXPECT_EQ(pair->steer(v4), EBUSY);
}

TEST_F(RealDeviceTest, frame_checksums__are_the_devices_if_it_says_so) {
  EXPECT_FALSE(open_fake()->facts().has_frame_checksums);
  verbs.raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING;
  EXPECT_FALSE(open_fake()->facts().has_frame_checksums);
  verbs.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
  EXPECT_TRUE(open_fake()->facts().has_frame_checksums);
}

TEST_F(RealDeviceTest, interfaces__are_those_of_its_gids) {
  EXPECT_TRUE(open_fake()->facts().interfaces.empty());
  verbs.gids = {{.index = 0, .ip = Address::parse("10.0.0.1"), .interface = 5},
                {.index = 1, .ip = Address::parse("10.0.0.1"), .interface = 5},
                {.index = 2, .ip = Address::parse("10.0.5.1"), .interface = 6},
                {.index = 3, .ip = Address::parse("10.0.6.1"), .interface = 7, .port = 2}};
  EXPECT_EQ(open_fake()->facts().interfaces, (std::vector<std::uint32_t>{5, 6}));
}

TEST_F(RealDeviceTest, make_handle__says_all_to_the_device) {
  const auto device = open_fake();
  ibv_ah* const handle = device->make_handle({.gid_index = 3,
                                              .destination = Address::parse("10.0.0.2"),
                                              .lid = 4,
                                              .traffic_class = 0x62,
                                              .service_level = 3,
                                              .flow_label = 0x12345});
  ASSERT_EQ(verbs.handles.size(), 1u);
  const ibv_ah_attr& attributes = verbs.handles[0];
  EXPECT_EQ(attributes.grh.sgid_index, 3);
  EXPECT_EQ(attributes.grh.traffic_class, 0x62);
  EXPECT_EQ(attributes.grh.flow_label, 0x12345u);
  EXPECT_EQ(attributes.grh.hop_limit, 64);
  EXPECT_EQ(attributes.grh.dgid.raw[15], 2);
  EXPECT_EQ(attributes.is_global, 1);
  EXPECT_EQ(attributes.dlid, 4);
  EXPECT_EQ(attributes.sl, 3);
  device->free_handle(handle);
}

TEST_F(RealDeviceTest, map__names_the_limit_of_locked_memory) {
  const auto device = open_fake();
  const std::uint64_t key = device->map(pages());
  device->unmap(pages(), key);
  verbs.memory_error = ENOMEM;
  EXPECT_THAT(message_of<RunError>([&] { device->map(pages()); }),
              HasSubstr("4 kB cannot be registered (Cannot allocate memory); raise the limit of locked memory"));
}

}  // namespace
}  // namespace mltcp::rdma
