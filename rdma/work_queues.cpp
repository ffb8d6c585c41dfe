// Work requests of a queue pair; see internal/work_queues.h.
#include "mltcp/rdma/internal/work_queues.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "mltcp/base/error.h"

namespace mltcp::rdma {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

// ---- Set-up ----

WorkQueues::WorkQueues(Device& device, const WorkConfig& config, WorkCounters& counters)
    : config_(config),
      counters_(counters),
      receive_stride_(rounded_up(config.lead_bytes + config.receive_bytes, kLine)),
      send_stride_(rounded_up(config.send_bytes, kLine)),
      registered_(device),
      flights_(config.send_depth),
      waiting_(kMaxWaiting) {
  const std::uint32_t send_buffers = config.send_depth + kMaxWaiting;
  const std::size_t bytes =
      rounded_up(config.receive_depth * receive_stride_ + send_buffers * send_stride_ + excess(), kPage);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
  if (memory_ == nullptr) throw RunError(fmt::format("no memory for {} kB of packets", bytes / 1024));
  std::memset(memory_.get(), 0, bytes);
  pair_ = device.make_queue_pair({.kind = config.kind,
                                  .send_depth = config.send_depth,
                                  .receive_depth = config.receive_depth,
                                  .key = config.key,
                                  .pieces = std::min<std::uint32_t>(config.pieces, kMaxPieces),
                                  .receive_pieces = excess() == 0 ? 1U : 2U,
                                  .inline_bytes = config.inline_bytes,
                                  .memory = {memory_.get(), bytes}});
  prepare_receives();
  free_buffers_.reserve(send_buffers);
  for (std::uint32_t i = send_buffers; i > 0; --i) free_buffers_.push_back(i - 1);
  handed_out_.reserve(kBurst);
  spent_.reserve(config.receive_depth);
  is_here_.reserve(config.receive_depth);
  for (std::uint32_t i = 0; i < config.receive_depth; ++i) spent_.push_back(i);
  post_receives(1);
  if (!spent_.empty())
    throw RunError(fmt::format("the device accepts only {} of {} receive buffers; use shorter queues",
                               config.receive_depth - spent_.size(), config.receive_depth));
  wait_file_ = epoll_create1(EPOLL_CLOEXEC);
  if (wait_file_ < 0)
    throw RunError(fmt::format("cannot create an epoll file ({}); raise the limit of open files (ulimit -n)",
                               std::strerror(errno)));
  wait_for(pair_->channel->fd);
}

void WorkQueues::wait_for(int file) const {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(wait_file_, EPOLL_CTL_ADD, file, &event) != 0)
    throw RunError(
        fmt::format("cannot wait for a file ({}); raise /proc/sys/fs/epoll/max_user_watches", std::strerror(errno)));
}

WorkQueues::~WorkQueues() {
  // After the queue pair is destroyed, requests in flight no longer read the program's memory.
  pair_.reset();
  finish_all();
  close(wait_file_);
}

/// Returns the number of bytes by which the longest possible message exceeds a receive buffer.
std::uint32_t WorkQueues::excess() const {
  return config_.pieces < 2 || config_.receive_bytes >= config_.longest_bytes
             ? 0
             : config_.longest_bytes - config_.receive_bytes;
}

/// Prepares the fields that all receive requests have in common.
void WorkQueues::prepare_receives() {
  const std::byte* const scrap = send_buffer(config_.send_depth + kMaxWaiting);
  for (std::size_t i = 0; i < kRepost; ++i) {
    receive_pieces_[i] = {ibv_sge{0, config_.receive_bytes, pair_->memory_key},
                          ibv_sge{address_of(scrap), excess(), pair_->memory_key}};
    receives_[i].sg_list = receive_pieces_[i].data();
    receives_[i].num_sge = excess() == 0 ? 1 : 2;
  }
}

void WorkQueues::arm(bool is_blocked) {
  ibv_req_notify_cq(pair_->received, 0);
  if (holds_ != 0 || is_blocked) ibv_req_notify_cq(pair_->sent, 0);
}

void WorkQueues::disarm() {
  while (pair_->take_event()) {
  }
}

// ---- Sending ----

std::optional<std::uint32_t> WorkQueues::key_of(const TxPacket& packet) {
  if (packet.hold == nullptr || config_.zero_copy_from == 0 || packet.payload.size() < config_.zero_copy_from)
    return std::nullopt;
  const auto key = registered_.find(packet.payload);
  if (!key) return std::nullopt;
  return static_cast<std::uint32_t>(*key);
}

void WorkQueues::post() {
  if (request_count_ == 0) return;
  ibv_send_wr& last = requests_[request_count_ - 1];
  last.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  ++counters_.posts;
  counters_.sent_packets += request_count_;
  if (ibv_post_send(pair_->queue, requests_.data(), &refused) != 0) [[unlikely]]
    on_refused(refused);
  request_count_ = 0;
}

/// Handles requests that the device refused. The requests from `from` on were not posted and count as lost. If `from`
/// is null, the device does not report which ones were posted. An event reports whether the queue pair has failed or
/// the device is gone.
void WorkQueues::on_refused(const ibv_send_wr* from) {
  has_failed_ = true;
  if (from == nullptr) {
    // The device may have accepted some requests, which read their buffers and payloads until recover() resets the
    // queue pair.
    must_reset_ = true;
    failed_from_ = std::min(failed_from_, requests_[0].wr_id);
    return;
  }
  const std::uint64_t first = from->wr_id;
  const std::uint64_t end = flights_.end();
  for (std::uint64_t position = first; position < end; ++position) finish(flights_[position]);
  flights_.truncate(first);
  counters_.send_errors += end - first;
  counters_.sent_packets -= end - first;
  // Only the last request of a burst is signalled. It was refused, so no completion reports the accepted requests.
  must_reset_ = must_reset_ || first != requests_[0].wr_id;
}

void WorkQueues::finish(const Flight& flight) {
  if (flight.busy != nullptr) --*flight.busy;
  if (flight.buffer != kNoBuffer) free_buffers_.push_back(flight.buffer);
  if (flight.hold != nullptr) {
    flight.hold->packets.fetch_sub(1, std::memory_order_release);
    --holds_;
  }
}

void WorkQueues::reap() {
  std::array<ibv_wc, 16> done;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
  for (;;) {
    const int count = ibv_poll_cq(pair_->sent, static_cast<int>(done.size()), done.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = done[static_cast<std::size_t>(i)];
      for (; !flights_.empty() && flights_.begin() <= one.wr_id; flights_.pop()) finish(flights_.front());
      if (one.status != IBV_WC_SUCCESS) [[unlikely]] {
        ++counters_.send_errors;
        has_failed_ = true;
      }
    }
    if (count < static_cast<int>(done.size())) return;
  }
}

/// Ends all requests in flight. No completions will come, and the device reads no payloads any more.
void WorkQueues::finish_all() {
  for (; !flights_.empty(); flights_.pop()) finish(flights_.front());
}

void WorkQueues::drop_oldest_waiting() {
  const Waiting oldest = waiting_.front();
  waiting_.pop();
  if (oldest.busy != nullptr) --*oldest.busy;
  free_buffers_.push_back(oldest.buffer);
  ++counters_.waiting_full;
}

// ---- Errors ----

void WorkQueues::recover(Nanos now) {
  if (now - recovered_at_ < kRecoverAfter) return;
  recovered_at_ = now;
  if (!flights_.empty()) reap();
  const QueuePair::Recovery how = pair_->recover(must_reset_);
  has_failed_ = how == QueuePair::Recovery::failed;
  if (how == QueuePair::Recovery::resumed || how == QueuePair::Recovery::reset) ++counters_.recoveries;
  if (how != QueuePair::Recovery::reset) return;
  must_reset_ = false;
  if (failed_from_ < flights_.end()) {
    const std::uint64_t lost = flights_.end() - std::max(failed_from_, flights_.begin());
    counters_.send_errors += lost;
    counters_.sent_packets -= lost;
  }
  failed_from_ = kNoPosition;
  finish_all();
  is_here_.assign(config_.receive_depth, false);
  for (const std::uint32_t buffer : handed_out_) is_here_[buffer] = true;
  spent_.clear();
  for (std::uint32_t buffer = 0; buffer < config_.receive_depth; ++buffer)
    if (!is_here_[buffer]) spent_.push_back(buffer);
  post_receives(1);
}

void WorkQueues::finish_for_good() {
  if (std::exchange(has_ended_, true)) return;
  has_failed_ = false;
  pair_->stop();
  counters_.send_errors += flights_.size() + waiting_.size();
  finish_all();
  for (; !waiting_.empty(); waiting_.pop()) {
    if (waiting_.front().busy != nullptr) --*waiting_.front().busy;
    free_buffers_.push_back(waiting_.front().buffer);
  }
  is_waiting_for_space_ = false;
}

// ---- Receiving ----

void WorkQueues::post_receives(std::size_t min) {
  while (spent_.size() >= min) {
    const std::size_t count = std::min<std::size_t>(spent_.size(), kRepost);
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t buffer = spent_[spent_.size() - 1 - i];
      receive_pieces_[i][0].addr = address_of(receive_buffer(buffer) + config_.lead_bytes);
      receives_[i].wr_id = buffer;
      receives_[i].next = i + 1 < count ? &receives_[i + 1] : nullptr;
    }
    ibv_recv_wr* refused = nullptr;
    std::size_t posted = count;
    if (ibv_post_recv(pair_->queue, receives_.data(), &refused) != 0) [[unlikely]]
      posted = refused == nullptr ? 0 : static_cast<std::size_t>(refused - receives_.data());
    spent_.resize(spent_.size() - posted);
    if (posted < count) return;
  }
}

}  // namespace mltcp::rdma
