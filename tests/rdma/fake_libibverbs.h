// An emulated libibverbs. The test program defines those functions of the library that rdma/device.cpp calls, so that
// the linker does not use the real functions. The test sets the devices, their errors and their events. States of queue
// pairs change as the kernel permits (InfiniBand Architecture Specification, volume 1, section 10.3.1;
// ib_modify_qp(3)).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mltcp/transport/address.h"

namespace mltcp::rdma {

struct FakeVerbs {
  struct GidEntry {
    std::uint32_t index = 0;
    Address ip;
    bool is_v2 = true;
    std::uint32_t interface = 0;
    std::uint32_t port = 1;
  };

  // Emulated devices and their properties.
  std::vector<std::string> names{"fake0"};
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  ibv_port_state port_state = IBV_PORT_ACTIVE;
  std::uint32_t wrong_keys = 0;
  int max_sge = 4;
  std::uint32_t raw_packet_caps = 0;
  std::vector<GidEntry> gids{{.index = 0, .ip = Address::parse("10.0.0.1"), .is_v2 = false},
                             {.index = 1, .ip = Address::parse("10.0.0.1"), .is_v2 = true}};

  // Errors that the functions return: errno values, or 0 for success.
  int open_error = 0;
  int port_error = 0;
  int memory_error = 0;
  int flow_error = 0;
  int modify_error = 0;
  std::function<int(const ibv_qp_init_attr&)> queue_error = [](const ibv_qp_init_attr&) { return 0; };
  std::function<int(int)> completions_error = [](int) { return 0; };

  // Records of the calls.
  std::map<std::string, int> alive;  ///< number of objects that exist, by kind
  std::vector<ibv_ah_attr> handles;
  std::vector<std::vector<std::byte>> rules;  ///< bytes of each flow-steering rule
  int forks_prepared = 0;

  /// Raises an asynchronous event of type `type` for queue pair `of`, or for the device if `of` is nullptr.
  void happen(ibv_event_type type, ibv_qp* of = nullptr);
  /// Sets a queue pair's state, for example to the state after an error.
  static void set_state(ibv_qp* queue, ibv_qp_state state);
  static ibv_qp_state state_of(ibv_qp* queue);
  /// Completions that a poll of each completion queue returns.
  std::map<ibv_cq*, std::deque<ibv_wc>> completions;

  FakeVerbs();
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;
};

}  // namespace mltcp::rdma
