// Emulated functions of libibverbs; see fake_libibverbs.h.
#include "fake_libibverbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#undef ibv_query_port
#undef ibv_reg_mr

namespace mltcp::rdma {
namespace {

/// The test's only FakeVerbs object. It is global because the functions of libibverbs have no parameter for it.
FakeVerbs* fake = nullptr;

struct QueueState {
  ibv_qp queue{};
  ibv_qp_state state = IBV_QPS_RESET;
};
struct Context {
  verbs_context extended{};
  std::array<int, 2> events{-1, -1};
};

std::vector<std::unique_ptr<ibv_device>> devices;

/// Creates an object and counts it in `alive` under `kind`.
template <typename T>
T* made(const char* kind) {
  ++fake->alive[kind];
  return new T{};
}
template <typename T>
int freed(T* object, const char* kind) {
  --fake->alive[kind];
  delete object;
  return 0;
}
std::nullptr_t refused(int error) {
  errno = error;
  return nullptr;
}

/// Returns whether `given` includes all attributes that the kernel requires for this change of state, and only
/// attributes that the kernel permits.
bool is_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int given) {
  int wanted = IBV_QP_STATE;
  int taken = 0;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
    taken = 0;
  else if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
    wanted |= type == IBV_QPT_RAW_PACKET ? IBV_QP_PORT : IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  else if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
    taken = IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
  else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
    wanted |= type == IBV_QPT_RAW_PACKET ? 0 : IBV_QP_SQ_PSN, taken = IBV_QP_CUR_STATE | IBV_QP_QKEY;
  else if (from == IBV_QPS_SQE && to == IBV_QPS_RTS)
    taken = IBV_QP_CUR_STATE | IBV_QP_QKEY;
  else
    return false;
  return (given & wanted) == wanted && (given & ~(wanted | taken)) == 0;
}

ibv_port_attr port_now() {
  ibv_port_attr port{};
  port.state = fake->port_state;
  port.active_mtu = IBV_MTU_1024;
  port.max_mtu = IBV_MTU_4096;
  port.gid_tbl_len = 16;
  port.qkey_viol_cntr = fake->wrong_keys;
  port.link_layer = fake->link_layer;
  port.lid = 7;
  return port;
}

ibv_gid_entry entry_of(const FakeVerbs::GidEntry& one) {
  ibv_gid_entry entry{};
  std::memcpy(entry.gid.raw, one.ip.ip.data(), 16);
  entry.gid_index = one.index;
  entry.port_num = one.port;
  entry.ndev_ifindex = one.interface;
  entry.gid_type = one.is_v2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
  return entry;
}

}  // namespace

FakeVerbs::FakeVerbs() { fake = this; }
FakeVerbs::~FakeVerbs() {
  for (const auto& [kind, count] : alive)
    if (count != 0) std::abort();  // an object leaks, or was freed twice
  fake = nullptr;
  devices.clear();
}
void FakeVerbs::set_state(ibv_qp* queue, ibv_qp_state state) { reinterpret_cast<QueueState*>(queue)->state = state; }
ibv_qp_state FakeVerbs::state_of(ibv_qp* queue) { return reinterpret_cast<QueueState*>(queue)->state; }

namespace {
std::array<int, 2> event_ends{-1, -1};
}

void FakeVerbs::happen(ibv_event_type type, ibv_qp* of) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = of;
  if (write(event_ends[1], &event, sizeof event) != sizeof event) std::abort();
}

}  // namespace mltcp::rdma

using namespace mltcp::rdma;

ibv_device** ibv_get_device_list(int* count) {
  devices.clear();
  for (const std::string& name : fake->names) {
    devices.push_back(std::make_unique<ibv_device>());
    std::snprintf(devices.back()->name, sizeof devices.back()->name, "%s", name.c_str());
    devices.back()->transport_type = fake->transport;
  }
  auto* const list = new ibv_device*[devices.size() + 1]();
  for (std::size_t i = 0; i < devices.size(); ++i) list[i] = devices[i].get();
  *count = static_cast<int>(devices.size());
  return list;
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
int ibv_fork_init() {
  ++fake->forks_prepared;
  return 0;
}

ibv_context* ibv_open_device(ibv_device* device) {
  if (fake->open_error != 0) return refused(fake->open_error);
  auto* const context = made<Context>("context");
  if (pipe2(event_ends.data(), O_CLOEXEC) != 0) std::abort();
  context->events = event_ends;
  verbs_context& extended = context->extended;
  extended.sz = sizeof extended;
  extended.context.device = device;
  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  extended.context.async_fd = event_ends[0];
  extended.ibv_create_flow = [](ibv_qp* queue, ibv_flow_attr* rule) -> ibv_flow* {
    if (fake->flow_error != 0) return refused(fake->flow_error);
    const auto* const bytes = reinterpret_cast<const std::byte*>(rule);
    fake->rules.emplace_back(bytes, bytes + rule->size);
    auto* const flow = made<ibv_flow>("flow");
    flow->context = queue->context;
    return flow;
  };
  extended.query_device_ex = [](ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* out, std::size_t) {
    *out = {};
    out->raw_packet_caps = fake->raw_packet_caps;
    return 0;
  };
  extended.ibv_destroy_flow = [](ibv_flow* flow) { return freed(flow, "flow"); };
  extended.context.ops.poll_cq = [](ibv_cq* queue, int max, ibv_wc* out) {
    auto& from = fake->completions[queue];
    int count = 0;
    for (; count < max && !from.empty(); ++count, from.pop_front()) out[count] = from.front();
    return count;
  };
  return &extended.context;
}
int ibv_close_device(ibv_context* context) {
  auto* const mine =
      reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context));
  for (const int end : mine->events) close(end);
  return freed(mine, "context");
}
int ibv_query_device(ibv_context*, ibv_device_attr* device) {
  *device = {};
  device->phys_port_cnt = 1;
  device->max_qp_wr = 4096;
  device->max_cqe = 4096;
  device->max_sge = fake->max_sge;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* port) {
  if (fake->port_error != 0) return fake->port_error;
  const ibv_port_attr now = port_now();
  std::memcpy(static_cast<void*>(port), &now, sizeof now);
  return 0;
}
int _ibv_query_gid_ex(ibv_context*, std::uint32_t, std::uint32_t index, ibv_gid_entry* entry, std::uint32_t,
                      std::size_t) {
  for (const FakeVerbs::GidEntry& one : fake->gids)
    if (one.index == index) return *entry = entry_of(one), 0;
  return ENODATA;
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t max, std::uint32_t, std::size_t) {
  const std::size_t count = std::min(max, fake->gids.size());
  for (std::size_t i = 0; i < count; ++i) entries[i] = entry_of(fake->gids[i]);
  return static_cast<ssize_t>(count);
}
ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const domain = made<ibv_pd>("domain");
  domain->context = context;
  return domain;
}
int ibv_dealloc_pd(ibv_pd* domain) { return freed(domain, "domain"); }
ibv_mr* ibv_reg_mr(ibv_pd*, void*, std::size_t, int) {
  if (fake->memory_error != 0) return refused(fake->memory_error);
  static std::uint32_t key = 0;
  auto* const region = made<ibv_mr>("region");
  region->lkey = ++key;
  return region;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* memory, std::size_t bytes, std::uint64_t, unsigned access) {
  return (ibv_reg_mr)(domain, memory, bytes, static_cast<int>(access));
}
int ibv_dereg_mr(ibv_mr* region) { return freed(region, "region"); }
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = made<ibv_comp_channel>("channel");
  channel->context = context;
  channel->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  return freed(channel, "channel");
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  if (const int error = fake->completions_error(entries); error != 0) return refused(error);
  auto* const queue = made<ibv_cq>("completions");
  queue->context = context;
  queue->channel = channel;
  return queue;
}
int ibv_destroy_cq(ibv_cq* queue) { return freed(queue, "completions"); }
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) { return -1; }
void ibv_ack_cq_events(ibv_cq*, unsigned) {}
ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  if (const int error = fake->queue_error(*wanted); error != 0) return refused(error);
  auto* const made_one = made<QueueState>("queue");
  made_one->queue.context = domain->context;
  made_one->queue.qp_context = wanted->qp_context;
  made_one->queue.qp_num = 42;
  made_one->queue.qp_type = wanted->qp_type;
  return &made_one->queue;
}
int ibv_destroy_qp(ibv_qp* queue) { return freed(reinterpret_cast<QueueState*>(queue), "queue"); }
int ibv_modify_qp(ibv_qp* queue, ibv_qp_attr* wanted, int given) {
  if (fake->modify_error != 0) return fake->modify_error;
  ibv_qp_state& state = reinterpret_cast<QueueState*>(queue)->state;
  if (!is_allowed(queue->qp_type, state, wanted->qp_state, given)) return EINVAL;
  state = wanted->qp_state;
  return 0;
}
int ibv_query_qp(ibv_qp* queue, ibv_qp_attr* out, int, ibv_qp_init_attr*) {
  out->qp_state = FakeVerbs::state_of(queue);
  return 0;
}
ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr* wanted) {
  fake->handles.push_back(*wanted);
  return made<ibv_ah>("handle");
}
int ibv_destroy_ah(ibv_ah* handle) { return freed(handle, "handle"); }
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return read(context->async_fd, event, sizeof *event) == sizeof *event ? 0 : -1;
}
void ibv_ack_async_event(ibv_async_event*) {}
