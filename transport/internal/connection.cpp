// Connections: set-up, the user's operations, closing, and time limits (see connection.h). See connection_packets.cpp
// for receiving and sending packets, and connection_size.cpp for the packet size.
#include "mltcp/transport/internal/connection.h"

#include <algorithm>
#include <utility>

#include "mltcp/transport/requirements.h"

namespace mltcp::transport {
namespace {

// Number of copies of CLOSE after abort(). One copy is sent per probe timeout, because CLOSE is not acknowledged.
constexpr std::uint8_t kAbortCopies = 3;

// Number of PINGs after a RESET of a sealed connection, and the minimum time between two of them. If the probe timeout
// is longer than this minimum, the PINGs are one probe timeout apart.
constexpr std::int64_t kQuestionsAfterReset = 3;
constexpr Nanos kMinBetweenQuestions{100'000'000};

// Maximum number of times that the end of a silent connection is postponed while received packets wait.
constexpr std::uint8_t kMaxLooksPutOff = 8;

// These limits of the receiving end and the sending end must match.
static_assert(ReceivedPackets::kMaxJump == SentPackets::kRecordsPerPacketInFlight << 20);
static_assert(MessageReceiver::kPatience * 2 == SentPackets::kMaxProbeInterval, "what a peer waits between questions");

}  // namespace

Connection::Connection(ConnectionId id, const Address& remote, std::shared_ptr<const ConnectionConfig> config,
                       const cc::AlgorithmTable& algorithm, const ShardLinks& links, Nanos now)
    : links_(&links),
      config_(std::move(config)),
      id_(id),
      max_packet_(std::min<std::uint32_t>(links.limits.max_packet_bytes, 65'535)),
      remote_(remote),
      needs_timer_(algorithm.capabilities.needs_timer),
      controller_(algorithm, path()),
      sent_(config_->initial_rtt, now, links.random != nullptr, config_->check_peer),
      heard_(now) {
  mtu_.agree(max_packet_);
  update_pacing();
  look_for_peer(now);
}

// Puts the congestion controller into the state that it has after persistent losses.
void Connection::start_at_min_window(Nanos now) {
  starts_at_min_window_ = true;
  controller_.on_congestion({now, cc::CongestionEvent::Cause::loss, 0});
  controller_.on_timeout(now);
  update_pacing();
}

void Connection::set_seal(std::unique_ptr<PacketSeal> seal) {
  sealing_ = std::make_unique<Sealing>();
  sealing_->seal = std::move(seal);
  is_sealed_ = true;
  sent_.trust_numbers();
}

bool Connection::is_answer_of_restarted(const PacketSeal::Tag& tag) const {
  return is_sealed_ && state_ != State::connecting &&
         sealing_->seal->answer_of_restarted(sealing_->last, peer_connection_) == tag;
}

void Connection::start_connect(std::uint64_t tag) {
  tag_ = tag;
  state_ = State::connecting;
  due_.connect = true;
}

Nanos Connection::half_open_time() const {
  return std::max(std::min(kHalfOpenLimit, config_->give_up_after), sent_.probe_timeout(*config_));
}

void Connection::start_accept(const wire::ConnectFrame& peer, std::uint64_t tag, bool is_proven, Nanos now) {
  tag_ = tag;
  peer_tag_ = peer.tag;
  was_accepted_ = true;
  is_proven_ = is_proven;
  is_half_open_ = true;
  ends_at_ = now + half_open_time();
  peer_connection_ = peer.source_connection;
  sends_.begin_credit(peer.credit);
  agree_on_max_packet(peer.max_packet);
  agree_on_paths(wire::chosen_version(peer), peer.paths);
  state_ = State::open;
  due_.accept = true;
}

cc::PathInfo Connection::path() const {
  return {
      .max_packet_bytes = max_packet_,
      .max_rate = config_->max_rate,
      .parameters = config_->parameters != nullptr ? config_->parameters.get() : &cc::default_parameters,
  };
}

void Connection::agree_on_max_packet(std::uint32_t peers) {
  if (peers >= max_packet_) return;
  max_packet_ = peers;
  mtu_.agree(peers);
  // The controller's window is in units of the packet size. The controller may be restarted, because no data has been
  // sent yet.
  controller_ = cc::Controller(controller_.algorithm(), path());
  if (starts_at_min_window_) start_at_min_window(heard_);
  update_pacing();
}

void Connection::agree_on_paths(std::uint8_t version, std::uint32_t peers) {
  version_ = version;
  if (version < wire::kVersionWithPaths) return;
  peer_has_paths_ = peers > 1;
  const std::uint32_t own = paths_of(*config_, links_->limits);
  own_has_paths_ = own > 1;
  has_paths_ = peer_has_paths_ || own_has_paths_;
  if (!has_paths_) return;
  const std::uint64_t seed = links_->random != nullptr ? links_->random->next() : id_;
  paths_ = std::make_unique<Paths>(own, find_balancer(config_->balance), !config_->ecn, seed);
}

void Connection::attach(std::uint32_t job) {
  if (job == job_) return;  // removing the open messages and adding them again would end the job's burst
  if (job_ != kNoJob) links_->jobs[job_].on_messages(-sends_.open());
  job_ = job;
  if (job_ == kNoJob) return;
  JobState& state = links_->jobs[job_];
  state.on_messages(sends_.open());
  ack_ratio_flags_ = 0;
  if (ForwardDelay* const forward = forward_delay(); forward != nullptr) forward->reset();
  // The messages posted so far belong to rounds of another job's phase gate. A past round of this job's gate lets them
  // be sent without waiting for a slot.
  sends_.set_rounds(state.gate.round() - 1);
}

PostResult Connection::send(const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline,
                            std::uint8_t uncharged) {
  if (state_ != State::open && state_ != State::connecting) return PostResult::closed;
  if (length > wire::kMaxMessageBytes) return PostResult::too_long;
  if (sends_.size() >= config_->max_sends) return PostResult::queue_full;
  sends_.post(data, length, tag, job_ == kNoJob ? 0 : links_->jobs[job_].gate.round(), uncharged);
  if (job_ != kNoJob) links_->jobs[job_].on_messages(1);
  if (sends_.credit_ended()) [[unlikely]]
    drop_unsendable();
  if (has_deadlines_ || !deadline.is_never()) [[unlikely]] {
    need_deadlines();
    deadlines_->heap.set(deadlines_->of_send(sends_.end() - 1), deadline);
  }
  return PostResult::ok;
}

PostResult Connection::receive(std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline) {
  if (state_ != State::open && state_ != State::connecting) return PostResult::closed;
  if (receives_.size() >= config_->max_receives) return PostResult::queue_full;
  receives_.post(buffer, capacity, tag);
  if (has_deadlines_ || !deadline.is_never()) [[unlikely]] {
    need_deadlines();
    deadlines_->heap.set(deadlines_->of_receive(receives_.posted() - 1), deadline);
  }
  return PostResult::ok;
}

void Connection::close() {
  if (state_ != State::open && state_ != State::connecting) return;
  if (state_ == State::connecting) {
    fail(Status::closed);
    return;
  }
  state_ = State::flushing;
  drop_unsendable();
  maybe_close();
}

void Connection::drop_unsendable() {
  if (!sends_.credit_ended() || (state_ != State::flushing && !sends_.has_begun_beyond_credit())) return;
  // Some bytes of these messages may have been sent, if the peer has withdrawn buffers that it had announced.
  sends_.end_beyond_credit([this](std::uint64_t number, const MessageSender::Message& message) {
    if (message.data != nullptr) links_->tx->drop_message(&remote_, number);
    push_sent(message, Status::closed);
  });
}

void Connection::fail(Status status) {
  if (state_ == State::dead) return;
  if (state_ == State::draining) {  // both ends already know that the connection has ended
    state_ = State::dead;
    return;
  }
  complete_all(status == Status::ok ? Status::closed : status);
  push({.kind = Completion::Kind::closed, .status = status, .connection = id_});
  state_ = State::dead;
}

void Connection::end(Status status, wire::CloseReason reason, Nanos now) {
  if (state_ == State::draining && ((aborted_ && !close_built_) || links_->tx->has_destination(&remote_)))
    return;  // the peer must still be notified
  if (state_ == State::connecting || state_ == State::draining) {
    fail(status);
    return;
  }
  if (state_ == State::dead) return;
  complete_all(status);
  push({.kind = Completion::Kind::closed, .status = status, .connection = id_});
  if (is_half_open_ && packet_limit() == 0) {  // the peer cannot be notified
    state_ = State::dead;
    return;
  }
  drain(now);
  aborted_ = true;
  abort_reason_ = reason;
  // A peer that has not answered may not exist, so it is notified only once; see write_close().
  abort_copies_left_ = is_half_open_ ? 1 : kAbortCopies;
  abort_copy_at_ = now;
}

// If somebody redirects a packet of a sealed connection to another host that has the key, this host answers with RESET,
// because it does not have the connection. So ask the peer before ending the connection.
void Connection::on_reset(Nanos now) {
  if (!is_sealed_) {
    on_forgotten();
    return;
  }
  if (state_ == State::draining || state_ == State::dead || !sealing_->reset_believed_at.is_never()) return;
  const Nanos between = std::max(sent_.probe_timeout(*config_), kMinBetweenQuestions);
  sealing_->reset_believed_at =
      now + std::min(SentPackets::bounded(between * kQuestionsAfterReset, *config_), config_->give_up_after);
  look_into_reset(now);
}

void Connection::on_forgotten() {
  if (state_ != State::closing) {
    fail(Status::unreachable);
    return;
  }
  // All data was acknowledged before the peer forgot the connection, so end it as if the peer had sent CLOSE.
  complete_all(Status::closed);
  push({.kind = Completion::Kind::closed, .connection = id_});
  state_ = State::dead;
}

void Connection::drain(Nanos now) {
  state_ = State::draining;
  ends_at_ = now + SentPackets::bounded(sent_.probe_timeout(*config_) * kDrainTimeouts, *config_);
  sent_.give_up(*config_, now);
}

void Connection::complete_all(Status status) {
  sends_.end_all([&](std::uint64_t number, const MessageSender::Message& message) {
    if (message.data != nullptr) links_->tx->drop_message(&remote_, number);
    push_sent(message, status);
  });
  receives_.end_all(
      {links_->stats->hole_bytes, links_->reassembly_bytes, hole_bytes_}, [&](const MessageReceiver::Message& message) {
        push({.kind = Completion::Kind::received, .status = status, .connection = id_, .tag = message.tag});
      });
}

ConnectionStats Connection::stats() const {
  ConnectionStats all;
  static_cast<ConnectionCounters&>(all) = stats_;
  all.packets_sent = sent_.packets_sent();
  all.bytes_sent = bytes_sent_;
  all.packets_received = packets_received_;
  all.messages_received = receives_.whole();
  all.end_of_next = receives_.end_of_oldest();
  all.lost_packets = sent_.lost_packets();
  all.spurious_losses = sent_.spurious_losses();
  all.delivery_rate = delivery_rate_;
  all.app_limited = app_limited_;
  all.packet_bytes = max_packet_;
  all.agreed_packet_bytes = mtu_.agreed();
  all.in_flight = sent_.in_flight();
  all.cwnd_bytes = controller_.output().cwnd_bytes;
  all.pacing_rate = pacer_.rate();
  all.smoothed_rtt = sent_.rtt().smoothed();
  all.min_rtt = sent_.rtt().minimum();
  all.held_until = held_until_;
  all.due = next_deadline();
  return all;
}

// ---- Time limits ----

Nanos Connection::next_deadline() const {
  if (state_ == State::dead) return Nanos(0);
  // Before the peer's address is proven, an ACK is sent only together with ACCEPT, because few bytes may be sent.
  const Nanos ack_at = is_proven_ ? received_.ack_deadline() : Nanos::never();
  if (state_ == State::draining) return std::min({ends_at_, ack_at, abort_copy_at_});
  Nanos next = std::min({sent_.loss_time(), sent_.probe_deadline(*config_), held_until_});
  if (needs_timer_) next = std::min(next, controller_.output().timer);
  if (received_.owes_ack()) next = std::min(next, ack_at);
  if (sent_.in_flight_packets() == 0) next = std::min(next, credit_probe_);
  return next;
}

void Connection::on_timer(Nanos now) {
  if (state_ == State::draining) {
    if (now < ends_at_) return;  // build() sends the copies of CLOSE
    // The only CLOSE of a half-open connection may still be waiting for room in the datapath. Wait once more, for
    // kTimeForClose.
    if (ends_at_ == Nanos(0) && links_->tx->has_destination(&remote_))
      ends_at_ = now + kTimeForClose;
    else
      state_ = State::dead;
    return;
  }
  if (now >= sent_.loss_time()) {
    detect_losses(now, 0);
    update_pacing();
    sent_.forget_finished(*config_, now);
  }
  if (now >= sent_.probe_deadline(*config_)) {
    on_probe_timeout(now);
    if (state_ == State::draining || state_ == State::dead) return;
  }
  if (now >= credit_probe_ && sent_.in_flight_packets() == 0) {
    // The peer has granted no credit for a long time and may be gone, so send a PING.
    due_.ping = true;
    credit_probe_ = now + SentPackets::kMaxProbeInterval;
  }
  if (needs_timer_ && now >= controller_.output().timer) {
    controller_.on_timer(now);
    update_pacing();
  }
}

void Connection::on_probe_timeout(Nanos now) {
  if (!sent_.on_probe_timeout(*config_, now)) {
    end(Status::unreachable, wire::CloseReason::idle, now);  // the CLOSE may still arrive
    return;
  }
  if (state_ == State::connecting) {
    due_.connect = true;
    return;
  }
  if (suspects_size(now)) return;
  // While the peer waits for this end's final credit, it may refuse the oldest packet in flight. So send the credit
  // again.
  if (state_ == State::flushing && receives_.credit_in_flight()) receives_.on_credit_lost();
  // If the peer is known to accept data, new data serves as a probe. A client accepts data only after ACCEPT. After
  // kProbesInVain probe timeouts, new data is no longer a probe, because it may belong to a message that the peer
  // refuses.
  if (has_data() && sent_.any_acked() && sent_.probe_timeouts() < kProbesInVain) return;
  sent_.for_oldest_in_flight([this](const Chunk& chunk) { requeue(chunk); });
  due_.ping = true;
}

void Connection::need_deadlines() {
  if (has_deadlines_) return;
  has_deadlines_ = true;
  deadlines_ = std::make_unique<OperationDeadlines>(config_->max_sends, config_->max_receives);
}

Nanos Connection::watch_deadline() const {
  if (state_ == State::draining || state_ == State::dead) return Nanos::never();
  Nanos next = std::min(look_at_, ends_at_);
  if (is_sealed_) next = std::min(next, sealing_->ask_at);
  return deadlines_ == nullptr ? next : std::min(next, deadlines_->heap.next());
}

void Connection::on_watch(Nanos now) {
  if (state_ == State::draining || state_ == State::dead) return;
  if (state_ == State::connecting && now >= ends_at_) {
    fail(sealing_->refused_as);  // no packet sealed with the key has contradicted the refusal in time
    return;
  }
  if (is_half_open_ && now >= ends_at_ && !puts_off(half_open_time(), ends_at_, now)) {
    ++links_->stats->unproven_ended;
    fail(Status::unreachable);
    return;
  }
  if (is_sealed_ && now >= sealing_->ask_at) {
    look_into_reset(now);
    if (state_ == State::dead) return;
  }
  if (has_deadlines_) expire_operations(now);
  if (now >= look_at_ && state_ != State::draining && state_ != State::dead) look_for_peer(now);
}

// If no byte of an operation's message has been sent or received, the operation ends as if it had never been posted.
// The operations posted after it move up, which the peer does not notice. If bytes have been sent or received, the
// connection must end: the protocol cannot cancel part of a message, and the peer's operation must end as well.
void Connection::expire_operations(Nanos now) {
  constexpr std::uint64_t not_looked_for = ~std::uint64_t{0};
  DeadlineHeap& heap = deadlines_->heap;
  const std::uint64_t unsent = sends_.unsent_from();
  std::uint64_t untouched = not_looked_for;
  bool begun = false;
  bool unsent_ended = false;
  bool untouched_ended = false;
  while (heap.next() <= now) {
    const std::uint32_t slot = heap.top();
    heap.set(slot, Nanos::never());
    if (deadlines_->is_send(slot)) {
      const std::uint64_t number = deadlines_->send_of(slot, sends_.begin());
      if (!sends_.outstanding(number)) continue;  // the operation completed in time
      const MessageSender::Message& message = sends_.finish(number);
      if (message.data != nullptr) links_->tx->drop_message(&remote_, number);
      push_sent(message, Status::timed_out);
      (number < unsent ? begun : unsent_ended) = true;
    } else {
      const std::uint64_t number = deadlines_->receive_of(slot, receives_.whole());
      if (!receives_.outstanding(number)) continue;
      if (untouched == not_looked_for) untouched = receives_.untouched_from();
      const std::uint64_t tag = receives_.finish(number).tag;
      push({.kind = Completion::Kind::received, .status = Status::timed_out, .connection = id_, .tag = tag});
      (number < untouched ? begun : untouched_ended) = true;
    }
  }
  if (begun) {
    abort(now);
    return;
  }
  if (unsent_ended) {
    sends_.close_up(unsent, *deadlines_);
    maybe_close();
  }
  if (untouched_ended) receives_.close_up(untouched, *deadlines_);
}

bool Connection::cancel_send(std::uint64_t tag) {
  const std::uint64_t unsent = sends_.unsent_from();
  for (std::uint64_t number = unsent; number < sends_.end(); ++number) {
    if (!sends_.outstanding(number) || sends_[number].tag != tag) continue;
    need_deadlines();
    push_sent(sends_.finish(number), Status::timed_out);
    sends_.close_up(unsent, *deadlines_);
    maybe_close();
    return true;
  }
  return false;
}

bool Connection::cancel_receive(std::uint64_t tag) {
  const std::uint64_t untouched = receives_.untouched_from();
  for (std::uint64_t number = untouched; number < receives_.posted(); ++number) {
    if (!receives_.outstanding(number) || receives_.tag(number) != tag) continue;
    need_deadlines();
    receives_.finish(number);
    push({.kind = Completion::Kind::received, .status = Status::timed_out, .connection = id_, .tag = tag});
    receives_.close_up(untouched, *deadlines_);
    return true;
  }
  return false;
}

bool Connection::discard_receive(std::uint64_t tag, std::uint64_t new_tag) {
  for (std::uint64_t number = receives_.whole(); number < receives_.posted(); ++number)
    if (receives_.outstanding(number) && receives_.tag(number) == tag) return receives_.discard(number, new_tag);
  return false;
}

void Connection::look_into_reset(Nanos now) {
  if (now >= sealing_->reset_believed_at) {
    ++links_->stats->resets_taken;
    on_forgotten();
    return;
  }
  // Send a PING even if packets are in flight, because their probe timeout may expire too late.
  due_.ping = true;
  const Nanos between = std::max(sent_.probe_timeout(*config_), kMinBetweenQuestions);
  sealing_->ask_at = std::min(now + between, sealing_->reset_believed_at);
}

// The waiting packets may include packets from the peer. A flood of packets from other senders postpones the end by at
// most `limit`.
bool Connection::puts_off(Nanos limit, Nanos& end, Nanos now) {
  if (!links_->packets_wait || looks_put_off_ == kMaxLooksPutOff) return false;
  ++looks_put_off_;
  end = now + std::max(limit / kMaxLooksPutOff, Nanos(1));
  return true;
}

void Connection::look_for_peer(Nanos now) {
  const Nanos keep_alive = config_->keep_alive;
  const Nanos limit = config_->idle_limit;
  const Nanos heard = std::max(heard_, received_.highest_time());
  look_at_ = limit.count > 0 ? heard + limit : Nanos::never();
  if (state_ == State::connecting) {  // the limit for connecting is give_up_after
    heard_ = now;
  } else if (look_at_ > now) {
    looks_put_off_ = 0;
  } else if (puts_off(limit, look_at_, now)) {
    return;  // the next PING may not be due yet
  } else {
    end(Status::unreachable, wire::CloseReason::idle, now);
    return;
  }
  if (keep_alive.count == 0) return;
  Nanos ask_at = heard + keep_alive;
  if (ask_at <= now) {
    // No PING is needed while packets are in flight, because the peer must acknowledge these packets anyway.
    due_.ping = due_.ping || (state_ != State::connecting && sent_.in_flight_packets() == 0);
    ask_at = now + keep_alive;
  }
  look_at_ = std::min(look_at_, ask_at);
}

}  // namespace mltcp::transport
