// Emulated RDMA devices. A message posted at one device arrives at another one with a RoCEv2 (IPv4) or InfiniBand
// header. An Ethernet frame arrives at each queue pair that has a matching rule. The datapath uses these devices like
// real ones, through the operations of an ibv_context.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/mailbox.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::rdma {

class FakeQueuePair;
class FakeDevice;

/// Connects the devices, and can lose, mark or damage messages.
struct FakeFabric {
  std::mutex mutex;  ///< guards all members below
  std::map<std::uint32_t, FakeQueuePair*> pairs;
  std::map<std::array<std::uint8_t, 16>, FakeDevice*> devices;
  std::uint32_t next_number = 100;
  std::atomic<bool> marks{false};             ///< sets the ECN field of ECN-capable messages to CE
  std::atomic<bool> loses{false};             ///< loses all messages
  std::atomic<bool> leaves_out_route{false};  ///< delivers messages without a global route header
  std::atomic<bool> spoils_checksum{false};
  std::atomic<std::uint32_t> wrong_keys{0};
  // The following members apply to Ethernet frames.
  std::atomic<std::uint32_t> loses_one_of{0};  ///< loses one frame in `loses_one_of` at random; 0 loses none
  std::atomic<std::uint64_t> frames{0};        ///< number of frames sent
  /// Number of frames that matched no rule, which a real device gives to the kernel.
  std::atomic<std::uint64_t> frames_unmatched{0};
  std::atomic<bool> spoils_frames{false};  ///< changes a byte of each frame's payload
  Random random{5};
  /// If this function is set, it is called with each frame that matches no rule.
  std::function<void(const std::vector<std::byte>&)> wire;
  /// A message that arrived, with its route header. Stored only if `records` is set. Only the latest kMaxRecords
  /// messages are stored.
  struct Record {
    std::uint32_t to = 0;
    std::vector<std::byte> bytes;
  };
  static constexpr std::size_t kMaxRecords = 512;
  bool records = false;
  std::deque<Record> recorded;
};

struct FakeHandle {
  ibv_ah handle{};
  HandleConfig config;
};

class FakeQueuePair final : public QueuePair {
 public:
  FakeQueuePair(FakeFabric& fabric, FakeDevice& device, const QueuePairConfig& config, ibv_context& context)
      : fabric_(fabric), device_(device), config_(config) {
    channel_.context = sent_.context = received_.context = queue_.context = &context;
    channel_.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queue_.qp_context = sent_.cq_context = received_.cq_context = this;
    queue = &queue_;
    sent = &sent_;
    received = &received_;
    channel = &channel_;
    memory_key = 7;
    inline_bytes = std::min<std::uint32_t>(config.inline_bytes, 128);
    const std::lock_guard lock(fabric_.mutex);
    number = queue_.qp_num = fabric_.next_number++;
    fabric_.pairs[number] = this;
  }
  ~FakeQueuePair() override {
    {
      const std::lock_guard lock(fabric_.mutex);
      fabric_.pairs.erase(number);
    }
    close(channel_.fd);
  }

  bool take_event() override {
    std::uint64_t count = 0;
    return read(channel_.fd, &count, sizeof count) == sizeof count;
  }
  Recovery recover(bool must_reset) override;
  void stop() override {
    const std::lock_guard lock(fabric_.mutex);
    is_broken = is_stopped = true;
    posted.clear();
  }

  [[nodiscard]] std::uint32_t key() const { return config_.key; }
  [[nodiscard]] bool is_of_frames() const { return config_.kind == PairKind::frames; }

  int steer(const FrameRule& rule) noexcept override;
  void deliver_frame(const std::vector<std::byte>& frame);
  /// Delivers a frame to all queue pairs with a matching rule, as a real device does. Returns false if no rule matches.
  static bool arrive(FakeFabric& fabric, const std::vector<std::byte>& frame);

  static FakeQueuePair& of(ibv_cq* cq) { return *static_cast<FakeQueuePair*>(cq->cq_context); }
  static FakeQueuePair& of(ibv_qp* qp) { return *static_cast<FakeQueuePair*>(qp->qp_context); }

  int post_send(ibv_send_wr* request, ibv_send_wr** refused);
  int post_receive(ibv_recv_wr* request, ibv_recv_wr** refused) {
    const std::lock_guard lock(fabric_.mutex);
    for (; request != nullptr; request = request->next) {
      if (posted.size() >= config_.receive_depth) {
        *refused = request;
        return ENOMEM;
      }
      if (request->num_sge < 1 || request->num_sge > static_cast<int>(config_.receive_pieces))
        throw std::logic_error("more pieces than the queue pair has");
      const std::vector<ibv_sge> pieces(request->sg_list, request->sg_list + request->num_sge);
      for (const ibv_sge& piece : pieces) check_local(piece);
      posted.push_back({request->wr_id, pieces});
    }
    return 0;
  }
  int poll(ibv_cq* cq, int max, ibv_wc* out) {
    const std::lock_guard lock(fabric_.mutex);
    auto& from = cq == &sent_ ? sends : receives;
    int count = 0;
    for (; count < max && !from.empty(); ++count, from.pop_front()) out[count] = from.front();
    return count;
  }
  int notify(ibv_cq* cq) {
    const std::lock_guard lock(fabric_.mutex);
    (cq == &sent_ ? is_sent_armed : is_received_armed) = true;
    return 0;
  }

  // The caller must hold the fabric's mutex.
  void complete(bool is_send, const ibv_wc& done) {
    (is_send ? sends : receives).push_back(done);
    bool& armed = is_send ? is_sent_armed : is_received_armed;
    if (!armed) return;
    armed = false;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(channel_.fd, &one, sizeof one);
  }
  /// Ends `withholds_completions`, and reports all sends up to number `request` as complete.
  void complete_up_to(std::uint64_t request) {
    withholds_completions = false;
    ibv_wc done{};
    done.wr_id = request;
    const std::lock_guard lock(fabric_.mutex);
    complete(true, done);
  }
  void deliver(const std::vector<std::byte>& bytes, std::uint32_t key, std::uint32_t from, bool has_route) {
    if (key != config_.key) {
      ++fabric_.wrong_keys;
      return;
    }
    if (posted.empty() || is_broken) return;
    if (fabric_.records) {
      fabric_.recorded.push_back({number, bytes});
      if (fabric_.recorded.size() > FakeFabric::kMaxRecords) fabric_.recorded.pop_front();
    }
    const auto [id, pieces] = posted.front();
    posted.pop_front();
    ibv_wc done{};
    std::size_t written = 0;
    for (const ibv_sge& piece : pieces) {
      const std::size_t count = std::min<std::size_t>(piece.length, bytes.size() - written);
      std::memcpy(reinterpret_cast<void*>(piece.addr), bytes.data() + written, count);
      written += count;
    }
    if (written < bytes.size()) {  // the buffer is too short: the receiving queue pair fails
      done.wr_id = id;
      done.status = IBV_WC_LOC_LEN_ERR;
      complete(false, done);
      fail();
      return;
    }
    done.wr_id = id;
    done.status = IBV_WC_SUCCESS;
    done.opcode = IBV_WC_RECV;
    done.byte_len = static_cast<std::uint32_t>(bytes.size());
    done.src_qp = from;
    done.wc_flags = has_route ? IBV_WC_GRH : 0;
    complete(false, done);
  }
  /// Breaks the queue pair without a completion for any posted request.
  void break_down_silently() {
    const std::lock_guard lock(fabric_.mutex);
    is_broken = true;
    posted.clear();
  }
  /// Breaks the queue pair as an error of the device does: all posted requests complete with a flush error.
  void break_down() {
    const std::lock_guard lock(fabric_.mutex);
    fail();
  }
  /// Does the work of break_down(). The caller must hold the fabric's mutex.
  void fail() {
    is_broken = true;
    for (const auto& [id, pieces] : posted) {
      ibv_wc done{};
      done.wr_id = id;
      done.status = IBV_WC_WR_FLUSH_ERR;
      complete(false, done);
    }
    posted.clear();
  }

  std::deque<std::pair<std::uint64_t, std::vector<ibv_sge>>> posted;
  std::deque<ibv_wc> sends;
  std::deque<ibv_wc> receives;
  bool is_sent_armed = false;
  bool is_received_armed = false;
  bool is_broken = false;
  bool is_stopped = false;
  int refuses_recoveries = 0;
  bool withholds_completions = false;
  int refuses_after = -1;         ///< number of send requests accepted before one is refused; -1 if none is refused
  bool refuses_silently = false;  ///< the device does not report which request it refused
  bool takes_late = false;        ///< the device reads and sends posted requests only when the queue pair is reset
  std::uint64_t recoveries = 0;
  std::uint64_t posts = 0;
  std::uint64_t signalled = 0;
  std::uint64_t requests = 0;
  std::uint64_t from_elsewhere = 0;  ///< number of payload pieces outside the queue pair's own memory
  std::uint64_t inlined = 0;
  std::vector<FrameRule> rules;

 private:
  struct Late {
    ibv_send_wr request;
    std::vector<ibv_sge> pieces;
  };

  void send(const ibv_send_wr& request);
  void send_frame(const ibv_send_wr& request);
  void complete_send(const ibv_send_wr& request);
  void check_local(const ibv_sge& piece) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(config_.memory.data());
    if (piece.lkey != memory_key || piece.addr < begin || piece.addr + piece.length > begin + config_.memory.size())
      throw std::logic_error("a buffer outside of the registered memory");
  }

  FakeFabric& fabric_;
  FakeDevice& device_;
  const QueuePairConfig config_;
  std::vector<Late> late_;
  ibv_qp queue_{};
  ibv_cq sent_{};
  ibv_cq received_{};
  ibv_comp_channel channel_{};
};

class FakeDevice final : public Device {
 public:
  FakeDevice(FakeFabric& fabric, const std::string& ip, std::uint32_t longest = 1024, bool infiniband = false)
      : fabric_(fabric) {
    context_.ops.post_send = [](ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
      return FakeQueuePair::of(qp).post_send(wr, bad);
    };
    context_.ops.post_recv = [](ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
      return FakeQueuePair::of(qp).post_receive(wr, bad);
    };
    context_.ops.poll_cq = [](ibv_cq* cq, int max, ibv_wc* out) { return FakeQueuePair::of(cq).poll(cq, max, out); };
    context_.ops.req_notify_cq = [](ibv_cq* cq, int) { return FakeQueuePair::of(cq).notify(cq); };
    facts_.name = "fake0";
    facts_.is_infiniband = infiniband;
    facts_.longest_message = longest;
    facts_.max_requests = 4096;
    facts_.max_completions = 4096;
    facts_.max_pieces = 4;
    facts_.gids = {{.index = 0, .ip = Address::parse("fe80::1"), .is_roce_v2 = false},
                   {.index = 1, .ip = Address::parse(ip), .is_roce_v2 = true}};
    const std::lock_guard lock(fabric_.mutex);
    fabric_.devices[facts_.gids[1].ip.ip] = this;
  }
  ~FakeDevice() override {
    const std::lock_guard lock(fabric_.mutex);
    fabric_.devices.erase(facts_.gids[1].ip.ip);
    if (!handles.empty() || !keys.empty()) std::abort();  // the test leaks an address handle or a memory registration
  }

  [[nodiscard]] const DeviceFacts& facts() const override { return facts_; }
  std::unique_ptr<QueuePair> make_queue_pair(const QueuePairConfig& config) override {
    auto pair = std::make_unique<FakeQueuePair>(fabric_, *this, config, context_);
    pairs.push_back(pair.get());
    return pair;
  }
  RawPackets try_raw_packets() override { return raw; }
  ibv_ah* make_handle(const HandleConfig& config) noexcept override {
    const std::lock_guard lock(fabric_.mutex);
    ++handles_wanted;
    if (has_no_handles) {
      errno = EHOSTUNREACH;
      return nullptr;
    }
    auto* const made = new FakeHandle{.config = config};
    handles.insert(made);
    ++handles_made;
    max_handles = std::max(max_handles, handles.size());
    return &made->handle;
  }
  void free_handle(ibv_ah* handle) noexcept override {
    const std::lock_guard lock(fabric_.mutex);
    auto* const made = reinterpret_cast<FakeHandle*>(handle);
    if (handles.erase(made) != 1) std::abort();
    delete made;
  }
  [[nodiscard]] int event_file() const override { return events_.file(); }
  bool take_events() override {
    events_.reset();
    return true;
  }
  /// Wakes the service, as an asynchronous event of the device does.
  void tell() const { events_.wake(); }
  [[nodiscard]] std::string why_down() const override { return down; }
  [[nodiscard]] bool is_gone() const override { return gone; }
  void watch(const Gid& gid) override { gid_at = gid.index; }
  [[nodiscard]] std::uint8_t gid_index() const override { return gid_at; }
  [[nodiscard]] std::uint64_t wrong_keys() const override { return fabric_.wrong_keys; }
  [[nodiscard]] bool needs_mapping() const override { return true; }
  std::uint64_t map(std::span<std::byte> memory) override {
    const std::uint64_t key = 1000 + keys.size();
    keys[key] = memory;
    return key;
  }
  void unmap(std::span<std::byte> /*memory*/, std::uint64_t key) noexcept override { keys.erase(key); }

  /// Returns the bytes of a request's pieces. Throws std::logic_error if a piece is neither registered nor inline.
  std::vector<std::byte> gather(const ibv_send_wr& request, FakeQueuePair& pair) const {
    std::vector<std::byte> bytes;
    for (int i = 0; i < request.num_sge; ++i) {
      const ibv_sge& piece = request.sg_list[i];
      const auto* const begin = reinterpret_cast<const std::byte*>(piece.addr);
      if ((request.send_flags & IBV_SEND_INLINE) == 0 && piece.lkey != pair.memory_key) {
        const auto found = keys.find(piece.lkey);
        if (found == keys.end() || begin < found->second.data() ||
            begin + piece.length > found->second.data() + found->second.size())
          throw std::logic_error("a piece that is not registered");
        ++pair.from_elsewhere;
      }
      bytes.insert(bytes.end(), begin, begin + piece.length);
    }
    return bytes;
  }

  FakeFabric& fabric_;
  ibv_context context_{};
  DeviceFacts facts_;
  std::set<FakeHandle*> handles;
  std::uint64_t handles_wanted = 0;
  std::uint64_t handles_made = 0;
  std::size_t max_handles = 0;  ///< largest number of handles at one time
  std::atomic<bool> has_no_handles{false};
  std::map<std::uint64_t, std::span<std::byte>> keys;
  std::vector<FakeQueuePair*> pairs;
  RawPackets raw{.why_not = "no raw-packet queue pairs"};
  int rule_error = 0;  ///< errno with which the device refuses frame rules; 0 if it accepts them
  std::string down;
  std::atomic<bool> gone{false};
  std::atomic<std::uint8_t> gid_at{0};
  WakeFile events_;
};

inline QueuePair::Recovery FakeQueuePair::recover(bool must_reset) {
  const std::lock_guard lock(fabric_.mutex);
  if (refuses_recoveries > 0) {
    --refuses_recoveries;
    return Recovery::failed;
  }
  if (!is_broken && !must_reset) return Recovery::none_needed;
  for (Late& late : late_) {
    late.request.sg_list = late.pieces.data();
    send(late.request);
  }
  late_.clear();
  is_broken = false;
  posted.clear();
  sends.clear();
  receives.clear();
  ++recoveries;
  return Recovery::reset;
}

inline int FakeQueuePair::post_send(ibv_send_wr* request, ibv_send_wr** refused) {
  const std::lock_guard lock(fabric_.mutex);
  ++posts;
  for (; request != nullptr; request = request->next) {
    if (device_.gone || refuses_after-- == 0) {
      if (!refuses_silently) *refused = request;
      return EIO;
    }
    ++requests;
    if (takes_late)
      late_.push_back({*request, {request->sg_list, request->sg_list + request->num_sge}});
    else
      send(*request);
  }
  return 0;
}

inline int FakeQueuePair::steer(const FrameRule& rule) noexcept {
  const std::lock_guard lock(fabric_.mutex);
  if (device_.rule_error == 0) rules.push_back(rule);
  return device_.rule_error;
}

/// Computes the IP and UDP checksums of a frame over IPv4 without options.
inline void fill_checksums(std::span<std::byte> frame) {
  std::byte* const ip = frame.data() + encap::kEthernetBytes;
  std::byte* const udp = ip + encap::kIpv4Bytes;
  const std::size_t udp_bytes = frame.size() - encap::kEthernetBytes - encap::kIpv4Bytes;
  std::memset(ip + 10, 0, 2);
  const auto of_ip = static_cast<std::uint16_t>(~encap::sum(ip, encap::kIpv4Bytes));
  std::memcpy(ip + 10, &of_ip, sizeof of_ip);
  std::memset(udp + 6, 0, 2);
  const unsigned char rest[4] = {0, 17, static_cast<unsigned char>(udp_bytes >> 8),
                                 static_cast<unsigned char>(udp_bytes)};
  const auto of_udp = static_cast<std::uint16_t>(~encap::join(
      encap::join(encap::sum(ip + 12, 8), encap::sum(rest, sizeof rest), 0), encap::sum(udp, udp_bytes), 0));
  std::memcpy(udp + 6, &of_udp, sizeof of_udp);
}

/// The caller must hold the fabric's mutex. Like a real device, reads addresses and port at fixed offsets, which are
/// right only for frames without VLAN tags and IP options.
inline bool FakeQueuePair::arrive(FakeFabric& fabric, const std::vector<std::byte>& frame) {
  const auto fits = [&](const FrameRule& rule) {
    const bool v4 = rule.destination.is_v4();
    const std::size_t ip = encap::kEthernetBytes + (v4 ? 16 : 24);
    const std::size_t port = encap::kEthernetBytes + (v4 ? encap::kIpv4Bytes : encap::kIpv6Bytes) + 2;
    const unsigned wanted[4] = {v4 ? 0x08U : 0x86U, v4 ? 0x00U : 0xDDU, unsigned{rule.destination.port} >> 8,
                                rule.destination.port & 0xFFU};
    return frame.size() >= port + 2 && std::memcmp(frame.data(), rule.destination_mac.data(), 6) == 0 &&
           std::to_integer<unsigned>(frame[12]) == wanted[0] && std::to_integer<unsigned>(frame[13]) == wanted[1] &&
           std::memcmp(&frame[ip], rule.destination.ip.data() + (v4 ? 12 : 0), v4 ? 4 : 16) == 0 &&
           std::to_integer<unsigned>(frame[port]) == wanted[2] &&
           std::to_integer<unsigned>(frame[port + 1]) == wanted[3];
  };
  bool is_taken = false;
  for (const auto& [number, pair] : fabric.pairs)
    if (std::any_of(pair->rules.begin(), pair->rules.end(), fits)) {
      is_taken = true;
      pair->deliver_frame(frame);
    }
  return is_taken;
}

/// The caller must hold the fabric's mutex.
inline void FakeQueuePair::deliver_frame(const std::vector<std::byte>& frame) {
  if (posted.empty() || is_broken) return;
  const auto [id, pieces] = posted.front();
  posted.pop_front();
  ibv_wc done{};
  done.wr_id = id;
  std::size_t written = 0;
  for (const ibv_sge& piece : pieces) {
    const std::size_t count = std::min<std::size_t>(piece.length, frame.size() - written);
    std::memcpy(reinterpret_cast<void*>(piece.addr), frame.data() + written, count);
    written += count;
  }
  if (written < frame.size()) {
    done.status = IBV_WC_LOC_LEN_ERR;
    complete(false, done);
    fail();
    return;
  }
  done.status = IBV_WC_SUCCESS;
  done.opcode = IBV_WC_RECV;
  done.byte_len = static_cast<std::uint32_t>(frame.size());
  encap::Frame parsed;
  if (device_.facts_.has_frame_checksums && encap::parse(frame, encap::VerifyUdp::yes, parsed) == encap::Reject::none &&
      parsed.headers.source.is_v4())
    done.wc_flags |= IBV_WC_IP_CSUM_OK;
  complete(false, done);
}

/// The caller must hold the fabric's mutex.
inline void FakeQueuePair::send_frame(const ibv_send_wr& request) {
  std::vector<std::byte> frame = device_.gather(request, *this);
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    ++inlined;
    if (frame.size() > inline_bytes) throw std::logic_error("more goes inline than the queue pair takes");
  }
  if ((request.send_flags & IBV_SEND_IP_CSUM) != 0) {
    if (!device_.facts_.has_frame_checksums) throw std::logic_error("the device has no checksums");
    fill_checksums(frame);
  }
  ++fabric_.frames;
  if (fabric_.spoils_frames) frame.back() ^= std::byte{0x10};
  if (fabric_.marks && frame[12] == std::byte{0x08}) encap::mark_congestion(frame);
  const std::uint32_t one_of = fabric_.loses_one_of;
  const bool is_lost = fabric_.loses || is_broken || (one_of != 0 && fabric_.random.below(one_of) == 0);
  if (!is_lost && !arrive(fabric_, frame)) {
    ++fabric_.frames_unmatched;
    if (fabric_.wire) fabric_.wire(frame);
  }
  complete_send(request);
}

/// The caller must hold the fabric's mutex.
inline void FakeQueuePair::send(const ibv_send_wr& request) {
  if (is_of_frames()) {
    send_frame(request);
    return;
  }
  const auto& handle = *reinterpret_cast<FakeHandle*>(request.wr.ud.ah);
  if (!device_.handles.contains(reinterpret_cast<FakeHandle*>(request.wr.ud.ah)))
    throw std::logic_error("a handle that is not there");
  std::vector<std::byte> bytes(kGrhBytes, std::byte{0xEE});
  const std::vector<std::byte> message = device_.gather(request, *this);
  if (message.size() > device_.facts_.longest_message) throw std::logic_error("a message is longer than the MTU");
  std::uint8_t traffic = handle.config.traffic_class;
  if (fabric_.marks && (traffic & 3) != 0) traffic |= 3;
  unsigned char ip[20] = {0x45, traffic, 0, 0, 0, 0, 0x40, 0, 64, 17};
  std::memcpy(ip + 12, device_.facts_.gids[1].ip.ip.data() + 12, 4);
  std::memcpy(ip + 16, handle.config.destination.ip.data() + 12, 4);
  const auto sum = static_cast<std::uint16_t>(~encap::sum(ip, sizeof ip) ^ (fabric_.spoils_checksum ? 1 : 0));
  std::memcpy(ip + 10, &sum, sizeof sum);
  std::memcpy(&bytes[kGrhBytes - sizeof ip], ip, sizeof ip);
  bytes.insert(bytes.end(), message.begin(), message.end());
  const auto to = fabric_.pairs.find(request.wr.ud.remote_qpn);
  const auto at = fabric_.devices.find(handle.config.destination.ip);
  if (!fabric_.loses && !is_broken && to != fabric_.pairs.end() && at != fabric_.devices.end() &&
      std::count(at->second->pairs.begin(), at->second->pairs.end(), to->second) != 0)
    to->second->deliver(bytes, request.wr.ud.remote_qkey, number, !fabric_.leaves_out_route);
  complete_send(request);
}

/// The caller must hold the fabric's mutex.
inline void FakeQueuePair::complete_send(const ibv_send_wr& request) {
  if ((request.send_flags & IBV_SEND_SIGNALED) != 0 || is_broken) {
    ++signalled;
    ibv_wc done{};
    done.wr_id = request.wr_id;
    done.status = is_broken ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
    if (!withholds_completions) complete(true, done);
  }
}

}  // namespace mltcp::rdma
