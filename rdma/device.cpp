// RDMA devices through libibverbs; see device.h.
#include "mltcp/rdma/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

constexpr const char* kClass = "/sys/class/infiniband";
constexpr const char* kSoftDevice = "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev IFACE";

template <typename T, int (*kFree)(T*)>
struct Freeing {
  void operator()(T* object) const { kFree(object); }
};
using Context = std::unique_ptr<ibv_context, Freeing<ibv_context, ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Freeing<ibv_pd, ibv_dealloc_pd>>;
using Region = std::unique_ptr<ibv_mr, Freeing<ibv_mr, ibv_dereg_mr>>;
using Channel = std::unique_ptr<ibv_comp_channel, Freeing<ibv_comp_channel, ibv_destroy_comp_channel>>;
using Completions = std::unique_ptr<ibv_cq, Freeing<ibv_cq, ibv_destroy_cq>>;
using Queue = std::unique_ptr<ibv_qp, Freeing<ibv_qp, ibv_destroy_qp>>;
using Flow = std::unique_ptr<ibv_flow, Freeing<ibv_flow, ibv_destroy_flow>>;

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)), error_(list_ == nullptr ? errno : 0) {}
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  [[nodiscard]] std::span<ibv_device* const> all() const {
    return list_ == nullptr ? std::span<ibv_device* const>() : std::span(list_, static_cast<std::size_t>(count_));
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (ibv_device* const device : all()) names.emplace_back(ibv_get_device_name(device));
    std::sort(names.begin(), names.end());
    return names;
  }
  [[nodiscard]] int error() const { return error_; }

 private:
  int count_ = 0;
  ibv_device** list_;
  int error_;
};

/// Returns the names of the kernel's RDMA devices, including those that libibverbs cannot use.
std::vector<std::string> kernel_devices() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kClass, error)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns why libibverbs lists no device, and what to do. If `is_raw`, does not suggest a software device, because
/// software devices cannot carry Ethernet frames.
std::string why_no_devices(int error, bool is_raw = false) {
  const std::vector<std::string> known = kernel_devices();
  if (known.empty() && is_raw)
    return "this machine has no RDMA device: load its driver's module, or use another kind of port (af_xdp:IFACE, "
           "udp:)";
  if (known.empty())
    return fmt::format(
        "this machine has no RDMA device: load its driver's module, or let the kernel create one on an interface ({})",
        kSoftDevice);
  if (error != 0 || !std::filesystem::exists("/sys/class/infiniband_verbs"))
    return fmt::format("the kernel has {}, but programs can't use it: modprobe ib_uverbs", known.front());
  return fmt::format("the kernel has {}, but libibverbs has no driver for it: install ibverbs-providers",
                     known.front());
}

Address ip_of(const ibv_gid& gid) {
  Address address;
  std::memcpy(address.ip.data(), gid.raw, address.ip.size());
  return address;
}

std::uint32_t bytes_of(ibv_mtu mtu) { return 128U << static_cast<unsigned>(mtu); }

std::string locked_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{} kB", limit.rlim_cur / 1024);
}

bool is_refused(int error) { return error == EPERM || error == EACCES; }

/// Returns "WHAT (WHY)", where WHY describes `error`.
std::string no_raw(std::string_view what, int error) {
  return fmt::format("{} ({})", what,
                     is_refused(error) ? "they need root, or the capability CAP_NET_RAW" : std::strerror(error));
}

/// Returns the GIDs of all ports. `places` is the size of a port's table; 0 if it is not known.
std::vector<ibv_gid_entry> gid_table(ibv_context* context, std::size_t places) {
  // The kernel receives the buffer's size as a 16-bit number. It fills only as many entries as are in use.
  constexpr std::size_t max = 65535 / sizeof(ibv_gid_entry);
  std::vector<ibv_gid_entry> entries(std::min(std::max<std::size_t>(places, 256), max));
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  entries.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return entries;
}

/// Returns the device and port that have a GID on the kernel's interface `interface`; empty if there is none.
std::optional<VerbsName> port_of_interface(const DeviceList& list, const std::string& interface) {
  const std::uint32_t index = if_nametoindex(interface.c_str());
  if (index == 0) return std::nullopt;
  for (ibv_device* const device : list.all()) {
    const Context context(ibv_open_device(device));
    if (context == nullptr) continue;
    for (const ibv_gid_entry& entry : gid_table(context.get(), 0))
      if (entry.ndev_ifindex == index && entry.port_num <= 255)
        return VerbsName{.device = ibv_get_device_name(device), .port = static_cast<std::uint8_t>(entry.port_num)};
  }
  return std::nullopt;
}

/// Returns why no device in `list` has the name `name`, and what to write instead. `list` must not be empty.
std::string why_none_of_name(const DeviceList& list, const std::string& name) {
  if (const auto port = port_of_interface(list, name))
    return fmt::format("{} is an interface, whose RDMA device is {}; write {}", name, port->device, to_text(*port));
  const bool is_interface = if_nametoindex(name.c_str()) != 0;
  return fmt::format("{}; write verbs:DEVICE with one that there is: {}",
                     is_interface ? fmt::format("{} is an interface, and no RDMA device is on it", name)
                                  : "there is no such RDMA device",
                     fmt::join(list.names(), ", "));
}

class RealQueuePair final : public QueuePair {
 public:
  RealQueuePair(const std::string& label, const DeviceFacts& facts, ibv_context* context, ibv_pd* domain,
                const QueuePairConfig& config)
      : channel_(ibv_create_comp_channel(context)) {
    const auto refuse = [&](const std::string& what) { throw RunError(fmt::format("{}: {}", label, what)); };
    if (channel_ == nullptr)
      refuse(
          fmt::format("no completion channel ({}); raise the limit of open files (ulimit -n)", std::strerror(errno)));
    fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    constexpr int writes = IBV_ACCESS_LOCAL_WRITE;
    region_.reset(ibv_reg_mr(domain, config.memory.data(), config.memory.size(), writes));
    if (region_ == nullptr)
      refuse(
          fmt::format("{} kB of buffers can't be registered ({}); the limit of locked memory is {}: raise it "
                      "(ulimit -l unlimited), or ask for shorter queues",
                      config.memory.size() / 1024, std::strerror(errno), locked_limit()));
    sent_.reset(ibv_create_cq(context, static_cast<int>(config.send_depth), nullptr, channel_.get(), 0));
    received_.reset(ibv_create_cq(context, static_cast<int>(config.receive_depth), nullptr, channel_.get(), 0));
    if (sent_ == nullptr || received_ == nullptr)
      refuse(
          fmt::format("no completion queue of {} entries ({}); end other programs that use the device, or ask for "
                      "shorter queues or fewer shards",
                      sent_ == nullptr ? config.send_depth : config.receive_depth, std::strerror(errno)));
    ibv_qp_init_attr attributes{};
    attributes.send_cq = sent_.get();
    attributes.recv_cq = received_.get();
    attributes.qp_type = config.kind == PairKind::datagrams ? IBV_QPT_UD : IBV_QPT_RAW_PACKET;
    attributes.qp_context = this;
    attributes.cap.max_send_wr = config.send_depth;
    attributes.cap.max_recv_wr = config.receive_depth;
    attributes.cap.max_send_sge = config.pieces;
    attributes.cap.max_recv_sge = config.receive_pieces;
    int error = 0;
    // The device does not report its maximum for inline data, so try smaller and smaller sizes.
    for (std::uint32_t wanted = config.inline_bytes; queue_ == nullptr; wanted = wanted > 32 ? wanted / 2 : 0) {
      ibv_qp_init_attr asked = attributes;
      asked.cap.max_inline_data = wanted;
      queue_.reset(ibv_create_qp(domain, &asked));
      if (queue_ != nullptr) inline_bytes = std::min(asked.cap.max_inline_data, config.inline_bytes);
      if (queue_ == nullptr) error = errno;
      if (wanted == 0) break;
    }
    if (queue_ == nullptr) {
      if ((error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) && !has_any(domain, attributes))
        refuse(fmt::format(
            "it has no {} ({}); use another device, or its interface (udp:, af_xdp:)",
            config.kind == PairKind::datagrams ? "queue pairs for unreliable datagrams" : "raw-packet queue pairs",
            std::strerror(error)));
      refuse(
          fmt::format("no queue pair of {} sends and {} receives ({}); ask for shorter queues, end other programs that "
                      "use the device, or raise the limit of locked memory (ulimit -l unlimited)",
                      config.send_depth, config.receive_depth, std::strerror(error)));
    }
    queue = queue_.get();
    sent = sent_.get();
    received = received_.get();
    channel = channel_.get();
    number = queue->qp_num;
    memory_key = region_->lkey;
    kind_ = config.kind;
    port_ = facts.port;
    key_ = config.key;
    error = start();
    if (error != 0)
      refuse(fmt::format("its queue pair can't be made ready ({}); check that the port is up (rdma link)",
                         std::strerror(error)));
  }
  ~RealQueuePair() override {
    if (sent_events_ != 0) ibv_ack_cq_events(sent, sent_events_);
    if (received_events_ != 0) ibv_ack_cq_events(received, received_events_);
  }

  bool take_event() override {
    ibv_cq* from = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel, &from, &context) != 0) return false;
    ++(from == sent ? sent_events_ : received_events_);
    return true;
  }

  Recovery recover(bool must_reset) override {
    ibv_qp_attr state{};
    ibv_qp_init_attr ignored{};
    if (ibv_query_qp(queue, &state, IBV_QP_STATE, &ignored) != 0) return Recovery::failed;
    if (!must_reset) {
      if (state.qp_state == IBV_QPS_RTS) return Recovery::none_needed;
      // The transition from SQE to RTS does not accept a first packet number (IBV_QP_SQ_PSN).
      if (state.qp_state == IBV_QPS_SQE && set_state(IBV_QPS_RTS, IBV_QP_STATE) == 0) return Recovery::resumed;
    }
    if (!reset() || start() != 0) return Recovery::failed;
    // Remove old completions, which would be mistaken for completions of later requests.
    ibv_wc old{};
    while (ibv_poll_cq(sent, 1, &old) > 0) {
    }
    while (ibv_poll_cq(received, 1, &old) > 0) {
    }
    return Recovery::reset;
  }

  void stop() override { reset(); }

  int steer(const FrameRule& rule) noexcept override {
    // The header fields that all frames to one UDP port share. EtherType and IP protocol follow from the types of the
    // structures.
    struct Eth {
      ibv_flow_attr head;
      ibv_flow_spec_eth frame;
    };
    struct V4 : Eth {
      ibv_flow_spec_ipv4 ip;
      ibv_flow_spec_tcp_udp udp;
    };
    struct V6 : Eth {
      ibv_flow_spec_ipv6 ip;
      ibv_flow_spec_tcp_udp udp;
    };
    const auto add = [&](auto& specs) {
      specs.head.type = IBV_FLOW_ATTR_NORMAL;
      specs.head.size = sizeof specs;
      specs.head.num_of_specs = 3;
      specs.head.port = port_;
      specs.frame.type = IBV_FLOW_SPEC_ETH;
      specs.frame.size = sizeof specs.frame;
      std::copy(rule.destination_mac.begin(), rule.destination_mac.end(), specs.frame.val.dst_mac);
      std::memset(specs.frame.mask.dst_mac, 0xFF, sizeof specs.frame.mask.dst_mac);
      specs.ip.size = sizeof specs.ip;
      specs.udp.type = IBV_FLOW_SPEC_UDP;
      specs.udp.size = sizeof specs.udp;
      specs.udp.val.dst_port = htons(rule.destination.port);
      specs.udp.mask.dst_port = 0xFFFF;
      errno = 0;
      Flow flow(ibv_create_flow(queue, &specs.head));
      if (flow == nullptr) return errno != 0 ? errno : EOPNOTSUPP;
      flows_.push_back(std::move(flow));
      return 0;
    };
    if (rule.destination.is_v4()) {
      V4 specs{};
      static_assert(sizeof specs == sizeof(Eth) + sizeof specs.ip + sizeof specs.udp, "one behind the other");
      specs.ip.type = IBV_FLOW_SPEC_IPV4;
      specs.ip.val.dst_ip = htonl(rule.destination.v4_ip());
      specs.ip.mask.dst_ip = 0xFFFFFFFF;
      return add(specs);
    }
    V6 specs{};
    static_assert(sizeof specs == sizeof(Eth) + sizeof specs.ip + sizeof specs.udp, "one behind the other");
    specs.ip.type = IBV_FLOW_SPEC_IPV6;
    std::copy(rule.destination.ip.begin(), rule.destination.ip.end(), specs.ip.val.dst_ip);
    std::memset(specs.ip.mask.dst_ip, 0xFF, sizeof specs.ip.mask.dst_ip);
    return add(specs);
  }

 private:
  int start() const {
    const bool has_key = kind_ == PairKind::datagrams;
    int error = set_state(IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT | (has_key ? IBV_QP_PKEY_INDEX | IBV_QP_QKEY : 0));
    if (error == 0) error = set_state(IBV_QPS_RTR, IBV_QP_STATE);
    return error != 0 ? error : set_state(IBV_QPS_RTS, IBV_QP_STATE | (has_key ? IBV_QP_SQ_PSN : 0));
  }
  int set_state(ibv_qp_state to, int given) const {
    ibv_qp_attr state{};
    state.qp_state = to;
    state.port_num = port_;
    state.qkey = key_;
    return ibv_modify_qp(queue, &state, given);
  }
  bool reset() const { return set_state(IBV_QPS_RESET, IBV_QP_STATE) == 0; }
  /// Returns whether the device can create at least a minimal queue pair. Called after the device has refused a larger
  /// queue pair.
  static bool has_any(ibv_pd* domain, ibv_qp_init_attr min) {
    min.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    return Queue(ibv_create_qp(domain, &min)) != nullptr;
  }

  // Members are in the order of creation, because destruction needs the reverse order.
  Channel channel_;
  Region region_;
  Completions sent_;
  Completions received_;
  Queue queue_;
  std::vector<Flow> flows_;
  PairKind kind_ = PairKind::datagrams;
  std::uint8_t port_ = 1;
  std::uint32_t key_ = 0;
  unsigned sent_events_ = 0;
  unsigned received_events_ = 0;
};

/// Reasons why packets do not get through, in increasing severity.
enum class Trouble : std::uint8_t { none, port_down, gid_gone, completions_lost, device_gone };

class RealDevice final : public Device {
 public:
  explicit RealDevice(const VerbsName& name) : label_("port " + to_text(name)) {
    // With this call, pages in use by devices stay with the parent process after a fork. From Linux 5.12 on, the kernel
    // ensures this by itself, and the call does nothing.
    ibv_fork_init();
    const DeviceList list;
    const auto found = std::find_if(list.all().begin(), list.all().end(), [&](ibv_device* const device) {
      return ibv_get_device_name(device) == name.device;
    });
    if (found == list.all().end()) {
      if (list.all().empty())
        throw InputError(fmt::format("{}: {}", label_, why_no_devices(list.error(), name.is_raw)));
      throw InputError(fmt::format("{}: {}", label_, why_none_of_name(list, name.device)));
    }
    if ((*found)->transport_type == IBV_TRANSPORT_IWARP)
      throw InputError(fmt::format("{}: an iWARP device, which has no {}; use its interface instead, as with udp:",
                                   label_, name.is_raw ? "raw-packet queue pairs" : "datagrams (UD)"));
    context_.reset(ibv_open_device(*found));
    if (context_ == nullptr) {
      const int error = errno;
      throw RunError(fmt::format("{}: it can't be opened ({}); {}", label_, std::strerror(error),
                                 error == EACCES || error == EPERM
                                     ? "add this user to the group of /dev/infiniband/uverbs*, or run mltcp as root"
                                     : "check that /dev/infiniband/uverbs* exist (modprobe ib_uverbs, udev)"));
    }
    ibv_device_attr device{};
    if (const int error = ibv_query_device(context_.get(), &device); error != 0)
      throw RunError(
          fmt::format("{}: its attributes cannot be read ({}); reload its driver", label_, std::strerror(error)));
    if (name.port > device.phys_port_cnt)
      throw InputError(fmt::format(
          "{}: the device has {}; leave it out{}", label_, plural(device.phys_port_cnt, "port"),
          device.phys_port_cnt > 1 ? fmt::format(" for the first, or give 1 to {}", device.phys_port_cnt) : ""));
    ibv_port_attr port{};
    if (const int error = ibv_query_port(context_.get(), name.port, &port); error != 0)
      throw RunError(
          fmt::format("{}: its port's state cannot be read ({}); reload its driver", label_, std::strerror(error)));
    facts_.name = name.device;
    facts_.port = name.port;
    facts_.is_infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
    facts_.lid = port.lid;
    facts_.longest_message = bytes_of(port.active_mtu);
    facts_.max_requests = static_cast<std::uint32_t>(device.max_qp_wr);
    facts_.max_completions = static_cast<std::uint32_t>(device.max_cqe);
    facts_.max_pieces = static_cast<std::uint32_t>(device.max_sge);
    first_wrong_keys_ = port.qkey_viol_cntr;
    gid_places_ = static_cast<std::size_t>(port.gid_tbl_len);
    facts_.gids = read_gids();
    facts_.interfaces = interfaces();
    ibv_device_attr_ex more{};
    if (ibv_query_device_ex(context_.get(), nullptr, &more) == 0)
      facts_.has_frame_checksums = (more.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM) != 0 ||
                                   (more.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM) != 0;
    domain_.reset(ibv_alloc_pd(context_.get()));
    if (domain_ == nullptr)
      throw RunError(fmt::format("{}: no protection domain ({}); end other programs that use the device", label_,
                                 std::strerror(errno)));
    fcntl(context_->async_fd, F_SETFL, fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK);
    look_at_port();
  }
  ~RealDevice() override { mappings_.clear(); }

  [[nodiscard]] const DeviceFacts& facts() const override { return facts_; }

  std::unique_ptr<QueuePair> make_queue_pair(const QueuePairConfig& config) override {
    return std::make_unique<RealQueuePair>(label_, facts_, context_.get(), domain_.get(), config);
  }

  RawPackets try_raw_packets() override {
    RawPackets found;
    if (facts_.is_infiniband) {
      found.why_not = "InfiniBand has no Ethernet frames";
      return found;
    }
    const Completions completions(ibv_create_cq(context_.get(), 2, nullptr, nullptr, 0));
    if (completions == nullptr) {
      found.why_not = fmt::format("no completion queue for them ({})", std::strerror(errno));
      return found;
    }
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions.get();
    wanted.qp_type = IBV_QPT_RAW_PACKET;
    wanted.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    const Queue queue(ibv_create_qp(domain_.get(), &wanted));
    if (queue == nullptr) {
      found.lacks_right = is_refused(errno);
      found.why_not = no_raw("no raw-packet queue pairs", errno);
      return found;
    }
    found.has_queue_pairs = true;
    ibv_qp_attr state{};
    state.qp_state = IBV_QPS_INIT;
    state.port_num = facts_.port;
    if (const int error = ibv_modify_qp(queue.get(), &state, IBV_QP_STATE | IBV_QP_PORT); error != 0) {
      found.why_not = no_raw("raw-packet queue pairs that can't be made ready", error);
      return found;
    }
    struct Rule {
      ibv_flow_attr head;
      ibv_flow_spec_eth frame;
    };
    static_assert(sizeof(Rule) == sizeof(ibv_flow_attr) + sizeof(ibv_flow_spec_eth));
    Rule rule{};
    rule.head.type = IBV_FLOW_ATTR_NORMAL;
    rule.head.size = sizeof rule;
    rule.head.num_of_specs = 1;
    rule.head.port = facts_.port;
    rule.frame.type = IBV_FLOW_SPEC_ETH;
    rule.frame.size = sizeof rule.frame;
    constexpr std::uint8_t local = 2;  // a MAC address that no host uses: only the "locally administered" bit is 1
    rule.frame.val.dst_mac[0] = local;
    std::memset(rule.frame.mask.dst_mac, 0xFF, sizeof rule.frame.mask.dst_mac);
    const Flow flow(ibv_create_flow(queue.get(), &rule.head));
    found.has_steering = flow != nullptr;
    if (flow == nullptr) {
      found.lacks_right = is_refused(errno);
      found.why_not = no_raw("raw-packet queue pairs, but no flow steering", errno);
    }
    return found;
  }

  ibv_ah* make_handle(const HandleConfig& config) noexcept override {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;  // on InfiniBand, too: the receiver identifies the sender by the route header
    attributes.dlid = config.lid;
    attributes.sl = config.service_level;
    attributes.port_num = facts_.port;
    std::memcpy(attributes.grh.dgid.raw, config.destination.ip.data(), config.destination.ip.size());
    attributes.grh.sgid_index = config.gid_index;
    attributes.grh.hop_limit = 64;
    attributes.grh.flow_label = config.flow_label;
    attributes.grh.traffic_class = config.traffic_class;
    return ibv_create_ah(domain_.get(), &attributes);
  }
  void free_handle(ibv_ah* handle) noexcept override { ibv_destroy_ah(handle); }

  [[nodiscard]] int event_file() const override { return context_->async_fd; }
  bool take_events() override {
    const bool was_gone = is_gone();
    bool has_failed = false;
    ibv_async_event event{};
    // The event file of a removed device stays readable, but contains no events.
    for (int left = 64; left > 0 && !is_gone() && ibv_get_async_event(context_.get(), &event) == 0; --left) {
      has_failed = on_event(event) || has_failed;
      ibv_ack_async_event(&event);
    }
    look_at_port();
    return has_failed || is_gone() != was_gone;
  }

  [[nodiscard]] std::string why_down() const override {
    const std::string port = label_.substr(label_.find(' ') + 1);
    switch (trouble_.load(std::memory_order_relaxed)) {
      case Trouble::none:
        return "";
      case Trouble::port_down:
        return facts_.is_infiniband
                   ? fmt::format("{} is down; check its cable, and that a subnet manager runs", port)
                   : fmt::format("{} is down; bring its interface up: ip link set dev {} up", port, interface_name());
      case Trouble::gid_gone:
        return fmt::format("{} has lost the address {}; give it back: ip addr add {}/{} dev {}", port,
                           ip_text(watched_.ip), ip_text(watched_.ip), watched_.ip.is_v4() ? 24 : 64, interface_name());
      case Trouble::completions_lost:
        return fmt::format("{} has lost a completion queue; start the program again", port);
      case Trouble::device_gone:
        return fmt::format("{}: the device is gone; bring it back, and start the program again", port);
    }
    return "";
  }
  [[nodiscard]] bool is_gone() const override {
    return trouble_.load(std::memory_order_relaxed) >= Trouble::completions_lost;
  }
  void watch(const Gid& gid) override {
    watched_ = gid;
    gid_index_ = gid.index;
    is_watching_ = true;
    look_at_port();
  }
  [[nodiscard]] std::uint8_t gid_index() const override { return gid_index_; }
  [[nodiscard]] std::uint64_t wrong_keys() const override {
    ibv_port_attr port{};
    if (!is_gone() && ibv_query_port(context_.get(), facts_.port, &port) == 0)
      wrong_keys_.store(std::uint32_t{port.qkey_viol_cntr - first_wrong_keys_}, std::memory_order_relaxed);
    return wrong_keys_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool needs_mapping() const override { return true; }
  std::uint64_t map(std::span<std::byte> memory) override {
    Region region(ibv_reg_mr(domain_.get(), memory.data(), memory.size(), 0));
    if (region == nullptr)
      throw RunError(
          fmt::format("{} cannot read the program's memory: {} kB cannot be registered ({}); raise the limit of locked "
                      "memory, now {} (ulimit -l unlimited), or send from unregistered memory, which is copied",
                      label_, memory.size() / 1024, std::strerror(errno), locked_limit()));
    const std::uint64_t key = region->lkey;
    const std::lock_guard lock(mappings_mutex_);
    mappings_[key] = std::move(region);
    return key;
  }
  void unmap(std::span<std::byte> /*memory*/, std::uint64_t key) noexcept override {
    const std::lock_guard lock(mappings_mutex_);
    mappings_.erase(key);
  }

 private:
  [[nodiscard]] std::vector<Gid> read_gids() const {
    std::vector<Gid> gids;
    for (const ibv_gid_entry& entry : gid_table(context_.get(), gid_places_)) {
      if (entry.port_num != facts_.port || entry.gid_index > 255) continue;
      gids.push_back({.index = static_cast<std::uint8_t>(entry.gid_index),
                      .ip = ip_of(entry.gid),
                      .is_roce_v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2,
                      .interface = facts_.is_infiniband ? interface_of_port() : entry.ndev_ifindex});
    }
    return gids;
  }

  /// Returns the interfaces of the port's GIDs. If the port has no GIDs, e.g. because RoCE is switched off, returns the
  /// port's own interface.
  [[nodiscard]] std::vector<std::uint32_t> interfaces() const {
    std::vector<std::uint32_t> all;
    for (const Gid& gid : facts_.gids)
      if (gid.interface != 0 && std::find(all.begin(), all.end(), gid.interface) == all.end())
        all.push_back(gid.interface);
    if (all.empty())
      if (const std::uint32_t one = interface_of_port(); one != 0) all.push_back(one);
    return all;
  }

  /// Returns the port's interface from the kernel's device class. It is an Ethernet interface, or IP over InfiniBand.
  [[nodiscard]] std::uint32_t interface_of_port() const {
    std::error_code error;
    const std::filesystem::path folder = fmt::format("{}/{}/device/net", kClass, facts_.name);
    std::uint32_t any = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::uint32_t index = if_nametoindex(entry.path().filename().c_str());
      unsigned port = 0;  // dev_port counts from 0, `facts_.port` counts from 1
      std::ifstream(entry.path() / "dev_port") >> port;
      if (port + 1 == facts_.port) return index;
      if (any == 0) any = index;
    }
    return any;
  }
  [[nodiscard]] std::string interface_name() const {
    std::array<char, IF_NAMESIZE> name{};
    const std::uint32_t index =
        is_watching_ || facts_.gids.empty() ? watched_.interface : facts_.gids.front().interface;
    return index != 0 && if_indextoname(index, name.data()) != nullptr ? name.data() : "IFACE";
  }

  /// Returns whether a shard must check its queue pair.
  bool on_event(const ibv_async_event& event) {
    switch (event.event_type) {
      case IBV_EVENT_DEVICE_FATAL:
        worsen(Trouble::device_gone);
        return true;
      case IBV_EVENT_CQ_ERR:
        worsen(Trouble::completions_lost);
        return true;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        // The queue pair exists until the event is acknowledged.
        static_cast<RealQueuePair*>(event.element.qp->qp_context)->has_failed.store(true, std::memory_order_release);
        return true;
      default:  // an event of the port; take_events() checks the port afterwards
        return false;
    }
  }
  void worsen(Trouble trouble) {
    if (trouble > trouble_.load(std::memory_order_relaxed)) trouble_.store(trouble, std::memory_order_relaxed);
  }

  void look_at_port() {
    if (trouble_.load(std::memory_order_relaxed) == Trouble::device_gone) return;
    ibv_port_attr port{};
    const int error = ibv_query_port(context_.get(), facts_.port, &port);
    if (error == EIO || error == ENODEV) worsen(Trouble::device_gone);
    if (is_gone()) return;
    Trouble now = Trouble::none;
    if (error != 0 || port.state != IBV_PORT_ACTIVE)
      now = Trouble::port_down;
    else if (is_watching_ && !find_watched())
      now = Trouble::gid_gone;
    trouble_.store(now, std::memory_order_relaxed);
  }

  /// Returns whether the port has the watched GID, and updates the GID's index. If an address is removed and added
  /// again, its GID gets another index. Existing handles use the old index.
  bool find_watched() {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_.get(), facts_.port, gid_index_, &entry, 0) == 0 &&
        ip_of(entry.gid).ip == watched_.ip.ip && (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == watched_.is_roce_v2)
      return true;
    for (const Gid& one : read_gids()) {
      if (one.ip.ip != watched_.ip.ip || one.is_roce_v2 != watched_.is_roce_v2) continue;
      gid_index_ = one.index;
      return true;
    }
    return false;
  }

  const std::string label_;
  DeviceFacts facts_;
  Context context_;
  Domain domain_;
  std::size_t gid_places_ = 0;
  std::uint32_t first_wrong_keys_ = 0;
  mutable std::atomic<std::uint64_t> wrong_keys_{0};
  Gid watched_;
  std::uint8_t gid_index_ = 0;
  bool is_watching_ = false;
  std::atomic<Trouble> trouble_{Trouble::none};
  std::mutex mappings_mutex_;
  std::map<std::uint64_t, Region> mappings_;
};

std::string list_gids(const DeviceFacts& facts) {
  std::vector<std::string> texts;
  for (const Gid& gid : facts.gids)
    if (facts.is_infiniband || gid.is_roce_v2) texts.push_back(fmt::format("{} {}", gid.index, ip_text(gid.ip)));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::unique_ptr<Device> open_device(const VerbsName& name) { return std::make_unique<RealDevice>(name); }

std::vector<std::string> device_names() {
  const DeviceList list;
  if (list.all().empty()) throw RunError(why_no_devices(list.error()));
  return list.names();
}

Gid choose_gid(const DeviceFacts& facts, const Address& address, std::optional<std::uint8_t> index) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(fmt::format("port {}: {}", to_text({.device = facts.name, .port = facts.port}), what));
  };
  const auto usable = [&](const Gid& gid) { return facts.is_infiniband || gid.is_roce_v2; };
  if (index) {
    const auto found =
        std::find_if(facts.gids.begin(), facts.gids.end(), [&](const Gid& gid) { return gid.index == *index; });
    if (found == facts.gids.end()) refuse(fmt::format("no GID of index {}; the port has {}", *index, list_gids(facts)));
    if (!usable(*found))
      refuse(fmt::format("GID {} is of RoCE version 1, which has no IP header; take one of version 2: {}", *index,
                         list_gids(facts)));
    if (!is_unspecified(address) && address.ip != found->ip.ip)
      refuse(fmt::format("GID {} is {}, but the host's address is {}; give the same in both, or leave the index out",
                         *index, ip_text(found->ip), ip_text(address)));
    return *found;
  }
  const Gid* chosen = nullptr;
  for (const Gid& gid : facts.gids) {
    if (!usable(gid)) continue;
    if (is_unspecified(address) ? facts.is_infiniband || gid.ip.is_v4() == address.is_v4() : gid.ip.ip == address.ip) {
      // Prefer other addresses to link-local ones, which cannot reach hosts through routers.
      if (chosen == nullptr || (is_link_local(chosen->ip) && !is_link_local(gid.ip))) chosen = &gid;
    }
  }
  if (chosen == nullptr) {
    if (is_unspecified(address))
      refuse(fmt::format("it has no IPv{} GID, but {}; give its interface an address: ip addr add {} dev IFACE",
                         address.is_v4() ? 4 : 6, list_gids(facts), address.is_v4() ? "10.0.0.1/24" : "fd00::1/64"));
    refuse(fmt::format(
        "none of its GIDs is {0}, but {1}; give the host one that it has{2}", ip_text(address), list_gids(facts),
        facts.is_infiniband
            ? std::string()
            : fmt::format(", or add it: ip addr add {}/{} dev IFACE", ip_text(address), address.is_v4() ? 24 : 64)));
  }
  return *chosen;
}

Network network_of(const DeviceFacts& facts, const Gid& gid) {
  if (facts.is_infiniband) return Network::infiniband;
  return gid.ip.is_v4() ? Network::roce_v4 : Network::roce_v6;
}

}  // namespace mltcp::rdma
