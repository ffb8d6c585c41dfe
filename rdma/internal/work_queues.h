// A shard's work requests on a queue pair, whose messages are datagrams (verbs_io.h) or Ethernet frames (raw_io.h).
//
// Sending: each packet is one request. All requests of a burst are posted at once, and only the last is signalled. A
// packet's bytes are in a buffer of this object, or inline. The device reads the payload in place if the packet has a
// hold and the payload is in registered memory.
//
// Waiting: packets whose peer is not known yet wait in buffers. If too many packets wait, the oldest is dropped,
// because its peer has had the longest time to answer. ARP drops packets in this order, too (RFC 1122 section 2.3.2.2).
//
// Receiving: each message has its own buffer in registered memory. After their messages are read, buffers are posted
// again, many at a time. A message longer than any buffer would make the queue pair fail, so the excess goes to a
// common area that is never read.
//
// Sleeping: one epoll(7) file covers the completion channel and all other files that can wake the thread.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/rdma/device.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp::rdma {

/// Returns the address as a number, in the form that scatter-gather elements need.
inline std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

struct WorkCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t posts = 0;         ///< calls that posted send requests
  std::uint64_t inlined = 0;       ///< sent packets whose bytes were inline
  std::uint64_t by_reference = 0;  ///< packets whose payload the device read in place
  std::uint64_t full = 0;          ///< calls of send() that could not send all packets
  std::uint64_t waited = 0;        ///< packets that had to wait for their peer to be found
  std::uint64_t waiting_full = 0;  ///< packets dropped because too many were waiting
  std::uint64_t unreachable = 0;   ///< packets dropped because no host answers at their address
  std::uint64_t unsendable = 0;    ///< packets with the wrong IP version, no port, or too many bytes
  std::uint64_t no_route = 0;      ///< packets dropped because the table of routes had no free entry
  std::uint64_t over_long = 0;     ///< received messages that were longer than any buffer
  std::uint64_t send_errors = 0;
  std::uint64_t receive_errors = 0;
  std::uint64_t recoveries = 0;  ///< times that a failed queue pair was made ready again
};

struct WorkConfig {
  PairKind kind = PairKind::datagrams;
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t send_bytes = 0;  ///< size of a send buffer
  /// Maximum length of a received message, including bytes that the device writes before the packet.
  std::uint32_t receive_bytes = 0;
  /// Unused bytes before a received message, so that the packet begins on a cache line.
  std::uint32_t lead_bytes = 0;
  std::uint32_t longest_bytes = 0;  ///< length of the longest message that other hosts may send
  std::uint32_t pieces = 1;         ///< maximum number of pieces that the device gathers
  std::uint32_t key = 0;            ///< Q_Key of the queue pair
  std::uint32_t inline_bytes = 0;
  std::uint32_t zero_copy_from = 0;  ///< Limits::keeps_payload_from; 0 if all payload is copied
};

class WorkQueues {
 public:
  static constexpr std::uint32_t kBurst = 64;
  static constexpr std::uint32_t kMaxWaiting = 256;
  static constexpr std::uint32_t kNoBuffer = ~std::uint32_t{0};
  /// Minimum time between recoveries of a queue pair that fails repeatedly.
  static constexpr Nanos kRecoverAfter{100'000'000};
  /// Maximum number of pieces in a request. A datagram has a shim, a header and a payload.
  static constexpr std::size_t kMaxPieces = 3;

  struct Flight {
    std::uint32_t buffer = kNoBuffer;
    std::uint32_t* busy = nullptr;  ///< the route's number of packets; null if packets are not counted
    PayloadHold* hold = nullptr;
  };
  struct Waiting {
    std::uint32_t buffer = 0;
    std::uint32_t route = 0;
    std::uint32_t bytes = 0;
    std::uint32_t* busy = nullptr;
  };
  enum class Verdict : std::uint8_t { send, wait, drop };

  /// Creates the queue pair. Throws RunError if the device refuses.
  WorkQueues(Device& device, const WorkConfig& config, WorkCounters& counters);
  ~WorkQueues();
  WorkQueues(const WorkQueues&) = delete;
  WorkQueues& operator=(const WorkQueues&) = delete;

  [[nodiscard]] QueuePair& pair() const { return *pair_; }
  [[nodiscard]] std::uint32_t memory_key() const { return pair_->memory_key; }

  // Sleeping.

  /// Adds a file that wakes the sleeping thread. Call it only during set-up.
  void wait_for(int file) const;
  [[nodiscard]] int wait_file() const { return wait_file_; }
  /// Prepares for sleeping. `is_blocked` states whether packets wait for room in the send queue.
  void arm(bool is_blocked);
  void disarm();

  // Sending: buffers, requests and their completions.

  /// Always finds a buffer, because there are more buffers than requests in flight and waiting packets together.
  std::uint32_t take_buffer() {
    const std::uint32_t buffer = free_buffers_.back();
    free_buffers_.pop_back();
    return buffer;
  }
  [[nodiscard]] std::byte* send_buffer(std::uint32_t number) const {
    return memory_.get() + config_.receive_depth * receive_stride_ + number * send_stride_;
  }
  /// Returns the device's key for the payload. Returns empty if the payload is too short to be worth it, or if the
  /// device cannot read the payload in place.
  std::optional<std::uint32_t> key_of(const TxPacket& packet);
  /// Increases the number of packets in flight that read the payload of `hold`.
  void hold(PayloadHold& hold) {
    hold.packets.fetch_add(1, std::memory_order_relaxed);
    ++holds_;
    ++counters_.by_reference;
  }
  /// Returns whether the send queue has room for another request.
  bool has_space() {
    if (flights_.size() < config_.send_depth) [[likely]]
      return true;
    post();
    reap();
    return flights_.size() < config_.send_depth;
  }
  /// Adds a request. The caller fills in its pieces and other members. At most `kBurst` requests may be added before
  /// post().
  ibv_send_wr& add(const Flight& flight) {
    const std::uint64_t position = flights_.push(flight);
    if (flight.busy != nullptr) ++*flight.busy;
    ibv_send_wr& request = requests_[request_count_];
    request.wr_id = position;
    request.sg_list = pieces_[request_count_].data();
    request.opcode = IBV_WR_SEND;
    request.send_flags = 0;
    request.next = nullptr;
    if (request_count_ > 0) requests_[request_count_ - 1].next = &request;
    ++request_count_;
    return request;
  }
  /// Adds a request with one piece: the first `bytes` bytes of the flight's buffer.
  ibv_send_wr& add(const Flight& flight, std::uint32_t bytes) {
    ibv_send_wr& request = add(flight);
    request.sg_list[0] = {reinterpret_cast<std::uintptr_t>(send_buffer(flight.buffer)), bytes, pair_->memory_key};
    request.num_sge = 1;
    return request;
  }
  /// Adds the payload as second piece, which the device gathers after the first.
  static void add_payload(ibv_send_wr& request, std::span<const std::byte> payload, std::uint32_t key) {
    request.sg_list[1] = {reinterpret_cast<std::uintptr_t>(payload.data()), static_cast<std::uint32_t>(payload.size()),
                          key};
    request.num_sge = 2;
  }
  /// Posts all added requests. The last request is signalled.
  void post();
  /// Takes completions of sends. Each completion covers all earlier requests as well.
  void reap();
  /// Takes completions if the send queue is more than half full. reap_holds() takes completions if the device reads
  /// payloads in place, because only a completion shows that the device has read a payload.
  void reap_if_half_full() {
    if (flights_.size() > config_.send_depth / 2) reap();
  }
  void reap_holds() {
    if (holds_ != 0) reap();
  }
  /// Positions of the first request in flight and of the next request to be added.
  [[nodiscard]] std::uint64_t begin() const { return flights_.begin(); }
  [[nodiscard]] std::uint64_t end() const { return flights_.end(); }
  [[nodiscard]] bool is_idle() const { return flights_.empty(); }

  // Packets whose peer is not known yet.

  /// Drops the oldest waiting packet if too many wait. Call before take_buffer().
  void limit_waiting() {
    if (waiting_.size() >= kMaxWaiting) drop_oldest_waiting();
  }
  void wait(const Waiting& packet) {
    waiting_.push(packet);
    if (packet.busy != nullptr) ++*packet.busy;
    ++counters_.waited;
  }
  /// Handles the waiting packets in order. `verdict(packet)` returns whether to send, drop or keep a packet.
  /// `send(packet)` adds a request. Stops when the send queue is full.
  template <typename Decide, typename Send>
  void settle_waiting(Decide verdict, Send send) {
    is_waiting_for_space_ = false;
    for (std::size_t left = waiting_.size(); left > 0; --left) {
      const Waiting next = waiting_.front();
      const Verdict found = verdict(next);
      if (found == Verdict::send && !has_space()) {
        is_waiting_for_space_ = true;
        break;
      }
      waiting_.pop();
      if (found == Verdict::wait) {
        waiting_.push(next);
        continue;
      }
      if (next.busy != nullptr) --*next.busy;
      if (found == Verdict::drop) {
        free_buffers_.push_back(next.buffer);
        continue;
      }
      send(next);
      if (request_count_ == kBurst) post();
    }
    post();
  }
  [[nodiscard]] bool is_waiting_for_space() const { return is_waiting_for_space_; }

  // Receiving.

  /// Returns at most `max` new completions, and frees the messages of the previous call.
  std::span<const ibv_wc> poll(std::size_t max) {
    give_back();
    const int got = ibv_poll_cq(pair_->received, static_cast<int>(max), done_.data());
    return {done_.data(), static_cast<std::size_t>(got < 0 ? 0 : got)};
  }
  /// Returns the message of a completion from poll(). Returns empty if the message is unusable. Call once per
  /// completion.
  std::span<const std::byte> take(const ibv_wc& done) {
    const auto buffer = static_cast<std::uint32_t>(done.wr_id);
    handed_out_.push_back(buffer);
    if (done.status != IBV_WC_SUCCESS) [[unlikely]] {
      ++counters_.receive_errors;
      has_failed_ = true;
      return {};
    }
    if (done.byte_len > config_.receive_bytes) [[unlikely]] {
      ++counters_.over_long;
      return {};
    }
    return {receive_buffer(buffer) + config_.lead_bytes, done.byte_len};
  }

  // Errors.

  /// Makes the queue pair ready again if an error has stopped it, at most once per kRecoverAfter.
  void recover_if_failed(const Clock& clock) {
    if (pair_->has_failed.load(std::memory_order_relaxed)) [[unlikely]]
      has_failed_ = pair_->has_failed.exchange(false, std::memory_order_acquire) || has_failed_;
    if (has_failed_) [[unlikely]]
      recover(clock.now());
  }
  /// Returns the time at which recovery is due, or never() if the queue pair works. Without this deadline, a thread
  /// that waits for packets would not wake up for the recovery.
  [[nodiscard]] Nanos deadline() const { return has_failed_ ? recovered_at_ + kRecoverAfter : Nanos::never(); }
  /// Ends all sends, and releases their payloads. Call when the device is gone.
  void finish_for_good();

 private:
  static constexpr std::uint64_t kNoPosition = ~std::uint64_t{0};
  static constexpr std::uint32_t kRepost = 32;

  [[nodiscard]] std::byte* receive_buffer(std::uint32_t number) const {
    return memory_.get() + number * receive_stride_;
  }
  [[nodiscard]] std::uint32_t excess() const;
  void prepare_receives();
  void post_receives(std::size_t min);
  void give_back() {
    spent_.insert(spent_.end(), handed_out_.begin(), handed_out_.end());
    handed_out_.clear();
    post_receives(kRepost);
  }
  void drop_oldest_waiting();
  void on_refused(const ibv_send_wr* from);
  void finish(const Flight& flight);
  void finish_all();
  void recover(Nanos now);

  const WorkConfig config_;
  WorkCounters& counters_;
  const std::size_t receive_stride_;
  const std::size_t send_stride_;
  struct FreePages {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, FreePages> memory_;
  std::unique_ptr<QueuePair> pair_;
  RegisteredRanges registered_;
  int wait_file_ = -1;
  bool has_failed_ = false;  ///< whether the queue pair has failed and recover() is due
  bool must_reset_ = false;  ///< whether some posted requests will never be completed
  bool has_ended_ = false;   ///< whether the device is gone
  Nanos recovered_at_{};

  // Sending.
  std::vector<std::uint32_t> free_buffers_;  ///< last in, first out, because the buffer freed last is in the cache
  GrowableRing<Flight> flights_;             ///< requests in flight; never grows
  GrowableRing<Waiting> waiting_;            ///< packets whose peer is not known yet; never grows
  /// Whether packets whose peer is now known wait for room in the send queue.
  bool is_waiting_for_space_ = false;
  std::uint32_t holds_ = 0;  ///< number of payloads that requests in flight read in place
  /// Position of the first request in flight that the device may or may not have accepted; kNoPosition if there is
  /// none.
  std::uint64_t failed_from_ = kNoPosition;
  std::array<ibv_send_wr, kBurst> requests_{};
  std::array<std::array<ibv_sge, kMaxPieces>, kBurst> pieces_{};
  std::size_t request_count_ = 0;

  // Receiving.
  std::vector<std::uint32_t> handed_out_;  ///< buffers of the messages that the latest poll() returned
  std::vector<std::uint32_t> spent_;       ///< receive buffers to be posted again
  std::vector<bool> is_here_;              ///< scratch of recover(): marks buffers that the transport is using
  std::array<ibv_recv_wr, kRepost> receives_{};
  std::array<std::array<ibv_sge, 2>, kRepost> receive_pieces_{};
  std::array<ibv_wc, kBurst> done_{};
};

}  // namespace mltcp::rdma
