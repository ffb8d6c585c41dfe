// Connections: set-up, the user's operations, timers, and what arrives (see connection.h).
#include "mltcp/transport/connection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "mltcp/transport/ack_ratio.h"

namespace mltcp {
namespace {

// Packet-number ranges remembered for acknowledgements, and so no more than one names: what is remembered is told.
constexpr std::size_t max_received_ranges = wire::max_ack_ranges;
constexpr std::size_t max_reassembly_ranges = 1024;  // holes + 1 in a message that is being received
constexpr std::uint32_t first_packet_threshold = 3;  // RFC 9002 section 6.1.1
constexpr std::uint32_t max_packet_threshold = 64;   // reordering, in packets, that is told from loss
constexpr Nanos max_probe_interval{1'000'000'000};
// Even spacing is what lets MLTCP's shares settle: in examples/two-vgg19.toml with the second job 2 to 4.1 ms later (20
// starts), the jobs interleaved by iteration 8 at the latest with 1 packet, 11 with 4, 20 with 10, and after 60 or
// never when pacing was as good as off (twice the window per round trip).
constexpr std::uint32_t pacing_burst_packets = 1;
// Records of packets that are lost or carried only acknowledgements lie between those in flight.
constexpr std::size_t records_per_packet_in_flight = 4;
constexpr std::int64_t drain_timeouts = 8;  // how long a closed connection answers its peer, in probe timeouts
constexpr std::uint32_t abort_copies = 3;   // of an abort's CLOSE, one per probe timeout: nobody acknowledges it
// A packet is not believed whose number is further ahead of all that came before. What a sender may have used since a
// packet of it arrived: records_per_packet_in_flight records of as many packets in flight as a peer may have set at
// most, 2^20.
constexpr std::uint64_t max_number_jump = records_per_packet_in_flight << 20;
// So many packets below the highest numbers received, while those don't go on: they were not the peer's, but forged or
// of an earlier connection. No network reorders as deeply; and if one did, what is forgotten is sent again.
constexpr std::uint32_t max_behind_top = 1024;
// Of packet numbers acknowledged before they were used, so many are passed over for a packet that is sent. Those
// further ahead the peer forgets by max_behind_top before they are reached.
constexpr std::uint32_t max_skipped = max_behind_top;
constexpr std::uint64_t most_receives = 65'536;  // that a peer may have posted at once
constexpr std::uint32_t max_repairs = 8;         // of one message
// Ranges of acknowledged packet numbers that are remembered; a peer that makes more has its packets looked at again.
constexpr std::size_t max_acked_ranges = 1024;

}  // namespace

Connection::Connection(ConnectionId id, const Address& remote, std::shared_ptr<const ConnectionConfig> config,
                       const cc::AlgorithmTable& algorithm, const PacketIo::Limits& limits, const ShardLinks& links,
                       Nanos now)
    : links_(&links),
      config_(std::move(config)),
      id_(id),
      remote_(remote),
      needs_timer_(algorithm.capabilities.needs_timer),
      max_packet_(std::min<std::uint32_t>(limits.max_packet_bytes, 65'535)),
      keeps_payload_from_(limits.keeps_payload_from),
      rtt_(config_->initial_rtt),
      last_eliciting_sent_(now),
      last_progress_(now),
      overhead_(static_cast<std::uint16_t>(std::min<std::uint32_t>(limits.overhead_bytes, 65'535))),
      controller_(algorithm, path()),
      heard_(now) {
  update_pacing();
  look_for_peer(now);
}

void Connection::start_connect(std::uint64_t nonce) {
  nonce_ = nonce;
  state_ = State::connecting;
  connect_due_ = true;
}

void Connection::start_accept(const wire::ConnectFrame& peer) {
  nonce_ = peer.nonce;
  peer_connection_ = peer.source_connection;
  credit_ = std::min<std::uint64_t>(peer.credit, most_credit());
  agree_on_max_packet(peer.max_packet);
  state_ = State::open;
  accept_due_ = true;
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
  // The window counts in packets of this size. Nothing has been sent yet that it would have to remember.
  controller_ = cc::Controller(controller_.algorithm(), path());
  update_pacing();
}

void Connection::attach(std::uint32_t job) {
  if (job == job_) return;  // to take the open messages off and put them back would end the job's burst
  const std::int64_t open = open_sends_;
  count_open_sends(-open);
  job_ = job;
  count_open_sends(open);
  if (job_ != no_job) ack_ratio_flags_ = 0;
  // Rounds are the job's own: what has been posted waits for no slot of this one.
  if (job_ != no_job)
    for (auto number = next_message_; number < sends_.end(); ++number)
      sends_[number].round = links_->jobs[job_].gate.round() - 1;
}

void Connection::count_open_sends(std::int64_t more) {
  open_sends_ += more;
  if (job_ != no_job) links_->jobs[job_].on_messages(more);
}

PostResult Connection::send(const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline) {
  if (state_ != State::open && state_ != State::connecting) return PostResult::closed;
  if (length > wire::max_message_bytes) return PostResult::too_long;
  if (sends_.size() >= config_->max_sends) return PostResult::queue_full;
  SendMessage& message = sends_.push_reused();
  message.data = data;
  message.length = length;
  message.next_offset = 0;
  message.done = false;
  message.all_acked = false;
  message.hold = PayloadHolds::none;
  message.round = job_ == no_job ? 0 : links_->jobs[job_].gate.round();
  message.tag = tag;
  message.acked.clear();
  count_open_sends(1);
  if (has_deadlines_ || !deadline.is_never()) [[unlikely]] {
    need_deadlines();
    deadlines_->heap.set(deadlines_->of_send(sends_.end() - 1), deadline);
  }
  return PostResult::ok;
}

PostResult Connection::receive(std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline) {
  if (state_ != State::open && state_ != State::connecting) return PostResult::closed;
  if (receives_.size() >= config_->max_receives) return PostResult::queue_full;
  ReceiveMessage& message = receives_.push_reused();
  message.buffer = buffer;
  message.capacity = capacity;
  message.total = 0;
  message.total_known = false;
  message.done = false;
  message.tag = tag;
  message.received.clear();
  credit_due_ = true;
  credit_known_ = false;
  if (has_deadlines_ || !deadline.is_never()) [[unlikely]] {
    need_deadlines();
    deadlines_->heap.set(deadlines_->of_receive(receives_.end() - 1), deadline);
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

void Connection::raise_credit(std::uint32_t messages) {
  const std::uint64_t said = wire::widen(messages, credit_);
  if (said > most_credit()) {
    ++links_->stats->malformed_packets;
    return;
  }
  // After the peer's last word, it says no more: that word was somebody else's. Once it has been acted on, it stays the
  // last, as messages beyond may have been given up.
  if (said > credit_ && state_ == State::open) peer_credit_final_ = false;
  if (!peer_credit_final_) credit_ = std::max(credit_, said);
}

std::uint64_t Connection::most_credit() const {
  // The peer can't have more whole messages than were sent, nor more buffers beyond them than any end may post.
  return next_message_ + most_receives;
}

void Connection::drop_unsendable() {
  if (state_ != State::flushing || !peer_credit_final_) return;
  for (std::uint64_t number = std::max(credit_, sends_.begin()); number < sends_.end(); ++number) {
    SendMessage& message = sends_[number];
    if (message.done) continue;
    message.done = true;
    push_sent(message, Status::closed);
  }
  while (!sends_.empty() && sends_.front().done) sends_.pop();
  next_message_ = std::max(next_message_, sends_.begin());
}

void Connection::maybe_close() {
  if (state_ == State::flushing && sends_.empty()) {
    state_ = State::closing;
    close_due_ = true;
  }
}

void Connection::fail(Status status) {
  if (state_ == State::dead) return;
  if (state_ == State::draining) {  // everything has been told
    state_ = State::dead;
    return;
  }
  complete_all(status == Status::ok ? Status::closed : status);
  push({.kind = Completion::Kind::closed, .status = status, .connection = id_});
  state_ = State::dead;
}

void Connection::abort(Nanos now) { end(Status::aborted, wire::CloseReason::aborted, now); }

void Connection::end(Status status, wire::CloseReason reason, Nanos now) {
  if (state_ == State::connecting || state_ == State::draining) {
    fail(status);
    return;
  }
  if (state_ == State::dead) return;
  complete_all(status);
  push({.kind = Completion::Kind::closed, .status = status, .connection = id_});
  drain(now);
  aborted_ = true;
  abort_reason_ = reason;
  abort_copies_left_ = abort_copies;
  abort_copy_at_ = now;
}

void Connection::drain(Nanos now) {
  state_ = State::draining;
  drain_until_ = now + probe_timeout() * drain_timeouts;
  in_flight_ = 0;
  in_flight_packets_ = 0;
  loss_time_ = Nanos::never();
  for (std::uint64_t p = sent_.begin(); p != sent_.end(); ++p) sent_[p].state = PacketState::ignored;
  forget_finished(now);
}

void Connection::complete_all(Status status) {
  for (; !sends_.empty(); sends_.pop()) {
    const SendMessage& message = sends_.front();
    if (message.done) continue;
    if (message.data != nullptr) links_->tx->drop_message(&remote_, sends_.begin());
    push_sent(message, status);
  }
  for (std::uint64_t number = receives_.begin(); number != receives_.end(); ++number) {
    const ReceiveMessage& message = receives_[number];
    if (message.done) continue;
    push({.kind = Completion::Kind::received, .status = status, .connection = id_, .tag = message.tag});
  }
  // As if they had never been posted: what still comes for them is not taken, and so not acknowledged either.
  receives_.truncate(receives_.begin());
  retransmit_.clear();
  next_message_ = sends_.end();
}

ConnectionStats Connection::stats() const {
  ConnectionStats all;
  all.packets_sent = packets_sent_;
  all.bytes_sent = bytes_sent_;
  all.packets_received = packets_received_;
  all.retransmitted_packets = stats_.retransmitted_packets;
  all.lost_packets = stats_.lost_packets;
  all.spurious_losses = stats_.spurious_losses;
  all.duplicate_packets = stats_.duplicate_packets;
  all.conflicting_packets = stats_.conflicting_packets;
  all.repaired_messages = stats_.repaired_messages;
  all.congestion_events = stats_.congestion_events;
  all.persistent_congestions = stats_.persistent_congestions;
  all.ce_packets = stats_.ce_packets;
  all.delivery_rate = delivery_rate_;
  all.app_limited = app_limited_;
  all.in_flight = in_flight_;
  all.cwnd_bytes = controller_.output().cwnd_bytes;
  all.pacing_rate = pacer_.rate();
  all.smoothed_rtt = rtt_.smoothed();
  all.min_rtt = rtt_.minimum();
  return all;
}

// ---- what arrives ---------------------------------------------------------------------------------------------------

void Connection::on_packet(const wire::Header& header, wire::Reader& reader, const RxPacket& packet, Nanos now) {
  const std::uint64_t number = header.packet_number;
  const std::uint64_t next = received_.back().end;
  if (number > next && number - next > max_number_jump) [[unlikely]] {
    ++links_->stats->malformed_packets;
    return;
  }
  // A number that has come before may have been another packet's: forged, or of an earlier connection. So what this one
  // carries is taken all the same. That changes nothing if it is the same packet again: bytes go to the same place, and
  // credit and state say what they said.
  const bool known = received_.contains(number);
  if (known) [[unlikely]]
    ++stats_.duplicate_packets;
  const std::uint64_t credit_before = credit_;
  const State state_before = state_;
  wire::Frame frame;
  bool news = false;
  bool eliciting = false;
  bool data = false;
  bool pinged = false;
  bool take = true;
  bool at_once = (header.flags & wire::ack_now) != 0;
  bool finished = false;
  while (take && state_ != State::dead && reader.next(frame)) {
    // Until ACCEPT has told the peer's connection id nothing can be acknowledged, so a packet counts for nothing
    // before: the peer sends it again. A peer that refuses says so at once.
    if (state_ == State::connecting && !opens(frame)) {
      if (frame.type == wire::FrameType::accept) ++links_->stats->malformed_packets;
      return;
    }
    switch (frame.type) {
      case wire::FrameType::data: {
        eliciting = true;
        data = true;
        const std::uint64_t done_before = receives_.begin();
        const Taken taken = on_data(frame.data, header);
        take = taken != Taken::refused;
        news = news || taken == Taken::news;
        finished = finished || receives_.begin() != done_before;
        break;
      }
      case wire::FrameType::ack:
        on_ack(frame.ack, now);
        break;
      case wire::FrameType::credit:
        eliciting = true;
        raise_credit(frame.credit.messages);
        peer_credit_final_ = peer_credit_final_ || frame.credit.final;
        drop_unsendable();
        maybe_close();
        break;
      case wire::FrameType::ping:
        eliciting = true;
        pinged = true;
        break;
      case wire::FrameType::connect:  // a repeated CONNECT reaches the connection that it made, with newer credit
        eliciting = true;
        raise_credit(frame.connect.credit);
        accept_due_ = true;  // the peer has none, whatever has been acknowledged
        break;
      case wire::FrameType::accept:
        eliciting = true;
        if (state_ == State::connecting) {
          state_ = State::open;
          peer_connection_ = frame.connect.source_connection;
          agree_on_max_packet(frame.connect.max_packet);
          push({.kind = Completion::Kind::connected, .connection = id_});
        }
        raise_credit(frame.connect.credit);
        break;
      case wire::FrameType::close:
        eliciting = true;
        at_once = true;
        if (state_ == State::connecting) {
          fail(frame.close == wire::CloseReason::full      ? Status::full
               : frame.close == wire::CloseReason::version ? Status::version
               : frame.close == wire::CloseReason::aborted ? Status::aborted
               : frame.close == wire::CloseReason::idle    ? Status::unreachable
                                                           : Status::refused);
          return;
        }
        if (frame.close == wire::CloseReason::aborted && state_ != State::draining) {
          fail(Status::aborted);
          return;
        }
        if (frame.close == wire::CloseReason::idle && state_ != State::draining) {
          fail(Status::unreachable);
          return;
        }
        on_close(now);
        break;
    }
  }
  if (reader.error() != wire::ParseError::none) {
    ++links_->stats->malformed_packets;
    return;
  }
  // What was not taken is not acknowledged: to the sender it is a lost packet.
  if (!take || state_ == State::dead) return;
  if (pinged && !data) [[unlikely]]
    on_question(now);
  if (known) [[unlikely]] {
    heard_ = now;
    if (!news && credit_ == credit_before && state_ == state_before) return;
    ++stats_.conflicting_packets;
    ++unacknowledged_;
    ack_at_once_ = true;
    return;
  }

  const bool in_order = received_.empty() || number == received_.back().end;
  const bool highest = received_.empty() || number >= received_.back().end;
  received_.add(number, number + 1);
  if (highest) {
    largest_received_time_ = now;
    received_hops_ = packet.hops;
  } else {
    heard_ = now;
    count_behind_top(number);
  }
  // Forgotten are numbers whose acknowledgement the peer has no use for. Should such a packet come late, it is taken as
  // any: a floor below which nothing counts could be forged.
  const std::uint64_t oldest_kept = number - std::min<std::uint64_t>(header.span, number);
  if (received_[0].begin < oldest_kept) received_.remove_below(oldest_kept);
  // The range of this packet stays, however many lie above: they may be forged, and all the peer's packets below.
  if (received_.size() > max_received_ranges) received_.remove_lowest_range_but(number);
  ++packets_received_;
  if (packet.ecn != Ecn::not_ect) {
    const bool marked = packet.ecn == Ecn::ce;
    counts_.ect0_packets += packet.ecn == Ecn::ect0 ? 1 : 0;
    if (marked) {
      ++counts_.ce_packets;
      counts_.ce_bytes += static_cast<std::uint32_t>(packet.bytes.size() + packet.tail.size() + packet.virtual_bytes);
    }
    // The sender hears of congestion, and of its end, without delay (RFC 8257 section 3.2).
    at_once = at_once || marked != last_was_marked_;
    last_was_marked_ = marked;
  }
  if (!eliciting) return;
  ++unacknowledged_;
  finished_message_ = finished_message_ || (finished && config_->await_answer);
  if (at_once || !in_order || asks_for_ack(header, finished))
    ack_at_once_ = true;
  else if (ack_deadline_.is_never())
    ack_deadline_ = now + config_->max_ack_delay;
}

// A PING without data. Again and again, with no message in between although there is a buffer: the peer waits for
// something, perhaps for credit that I took for told.
void Connection::on_question(Nanos now) {
  if (receives_.empty()) return;
  if (asked_by_peer_ != receives_.begin()) {
    asked_by_peer_ = receives_.begin();
    asked_since_ = now;
  }
  if (now - asked_since_ >= max_probe_interval / 2) credit_known_ = false;
}

void Connection::count_behind_top(std::uint64_t number) {
  // Numbers that lead up to the highest are the peer's, and so is that.
  if (number >= received_.back().begin) {
    behind_top_ = 0;
    return;
  }
  const auto top = static_cast<std::uint32_t>(received_.back().end);
  if (top != top_) {
    top_ = top;
    behind_top_ = 0;
  }
  if (++behind_top_ < max_behind_top) return;
  received_.remove_highest_range();  // what is then the highest is counted anew, above
}

bool Connection::asks_for_ack(const wire::Header& header, bool finished) const {
  const std::uint32_t ratio = wire::asked_ack_ratio(header.flags);
  if (unacknowledged_ >= std::max(config_->ack_every, ratio)) return true;
  if (ratio == 1) return finished;
  // A sender that asks for few has much more under way: it need not hear of a message's end at once. But of the packets
  // behind a gap, by which it finds a loss.
  return received_.size() > 1 && header.packet_number - received_.back().begin < first_packet_threshold;
}

bool Connection::opens(const wire::Frame& frame) {
  if (frame.type == wire::FrameType::close) return frame.close != wire::CloseReason::done;
  return frame.type == wire::FrameType::accept && frame.connect.source_connection != 0 &&
         frame.connect.max_packet >= wire::smallest_packet;
}

Connection::Taken Connection::on_data(const wire::DataFrame& frame, const wire::Header& header) {
  const std::uint64_t number = wire::widen(frame.message, receives_.begin());
  if (number < receives_.begin()) return Taken::nothing_new;  // completed long ago: acknowledge once more
  if (number >= receives_.end()) {                            // there is no buffer
    ++links_->stats->beyond_credit;
    return Taken::refused;
  }
  if (number + 1 == receives_.end()) credit_known_ = true;  // the peer uses the last of it
  ReceiveMessage& message = receives_[number];
  if (message.done) return Taken::nothing_new;
  const Bytes begin = frame.offset;
  const Bytes end = begin + frame.length;
  const bool possible = end <= wire::max_message_bytes && (frame.length > 0 || (frame.last && begin == 0));
  const bool consistent = (!message.total_known || (frame.last ? end == message.total : end < message.total)) &&
                          (!frame.last || message.received.empty() || message.received.back().end <= end);
  if (!possible || !consistent) [[unlikely]] {
    ++links_->stats->malformed_packets;
    // A peer says one thing of a message's end. What was taken for its may be a lie as well as this: neither counts. It
    // sends again what is not acknowledged, this, and what it sees to be missing at the end, the whole message.
    if (possible) {
      message.received.clear();
      message.total_known = false;
    }
    return Taken::refused;
  }
  if (message.received.size() >= max_reassembly_ranges && message.received.would_grow(begin, end))
    return Taken::refused;
  if (frame.last) {
    message.total = end;
    message.total_known = true;
  }
  if (frame.bytes != nullptr && message.buffer != nullptr && begin < message.capacity)
    std::memcpy(message.buffer + begin, frame.bytes, std::min<Bytes>(frame.length, message.capacity - begin));
  const Bytes added = message.received.add(begin, end);
  if (message.total_known && (message.total == 0 || message.received.is(0, message.total))) {
    complete_receive(message, header);
    while (!receives_.empty() && receives_.front().done) receives_.pop();
    credit_due_ = credit_due_ || advertised_credit_ != receives_.end();
    return Taken::news;
  }
  return added > 0 ? Taken::news : Taken::nothing_new;
}

void Connection::complete_receive(ReceiveMessage& message, const wire::Header& header) {
  message.done = true;
  Completion completion{.kind = Completion::Kind::received,
                        .status = message.total > message.capacity ? Status::truncated : Status::ok,
                        .connection = id_,
                        .tag = message.tag,
                        .bytes = message.total};
  if ((header.flags & wire::has_job) != 0) {
    completion.has_job = true;
    completion.job = header.tag.job;
    completion.iteration = header.tag.iteration;
  }
  push(completion);
}

void Connection::on_close(Nanos now) {
  if (state_ == State::draining) return;
  complete_all(Status::closed);
  // Both sides closing at once is a close like any other.
  push({.kind = Completion::Kind::closed, .status = Status::ok, .connection = id_});
  drain(now);
}

void Connection::on_ack(const wire::AckFrame& frame, Nanos now) {
  const std::uint64_t largest = frame.ranges[0].last;
  if (largest >= sent_.end()) [[unlikely]]
    skip_numbers(largest);
  const std::uint64_t sent_end = sent_.end();
  if (frame.has_credit) raise_credit(frame.credit);
  if (batch_ == nullptr) batch_ = links_->acks->take();
  tells_whole_ = tells_whole_ || frame.has_whole;
  if (const std::uint64_t whole = wire::widen(frame.whole, whole_);
      frame.has_whole && whole > whole_ && whole <= std::max(credit_, next_message_))
    whole_ = std::min(whole, next_message_);  // beyond, in buffers that it told of, are somebody else's messages
  cc::AckSample& sample = batch_->sample;
  std::vector<RangeSet::Range>& news = links_->acks->news;
  if (!batch_->has_acks) sample.bytes_in_flight_before = in_flight_;
  const std::uint32_t packets_before = sample.acked_packets;
  for (std::uint32_t i = 0; i < frame.range_count; ++i) {
    const wire::PacketRange& range = frame.ranges[i];
    if (range.last < sent_.begin()) break;
    if (range.first >= sent_end) continue;
    // Behind a lost packet the same packets are acknowledged again and again: only those that are news are looked at.
    news.clear();
    acked_.for_gaps(std::max(range.first, sent_.begin()), std::min(range.last, sent_end - 1) + 1,
                    [&](std::uint64_t begin, std::uint64_t end) {
                      news.push_back({begin, end});
                    });
    if (acked_.size() < max_acked_ranges)
      for (const RangeSet::Range& fresh : news) acked_.add(fresh.begin, fresh.end);
    std::uint64_t number = news.empty() ? 0 : news.back().end;
    while (!news.empty()) {
      if (number == news.back().begin) {
        news.pop_back();
        if (!news.empty()) number = news.back().end;
        continue;
      }
      SentPacket& packet = sent_[--number];
      if (packet.state == PacketState::in_flight) {
        if (number >= largest_acked_ || !any_acked_) {
          largest_acked_ = number;
          any_acked_ = true;
          // Only the largest newly acknowledged packet of a frame gives an RTT sample (RFC 9002 section 5.1).
          if (number == largest) {
            if (!rtt_.has_sample()) first_sample_ = now;
            rtt_.add(now - packet.sent, Nanos(frame.delay_ns));
            sample.latest_rtt = rtt_.latest();
            sample.endpoint_delay = std::min(Nanos(frame.delay_ns), rtt_.latest());
          }
        }
        batch_->largest_acked = std::max(batch_->largest_acked, number);
        on_acked_packet(packet, now);
        if (number < cwnd_limited_until_) sample.cwnd_limited = true;
      } else if (packet.state == PacketState::lost) {
        on_late_ack(number, now);
        if (largest_acked_ > number)
          packet_threshold_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(
              std::max<std::uint64_t>(packet_threshold_, largest_acked_ - number + 1), max_packet_threshold));
      }
      if (state_ == State::dead) return;
    }
  }
  if (sample.acked_packets > packets_before) {
    batch_->has_acks = true;
    probe_count_ = 0;
    probes_due_ = 0;
    last_progress_ = now;
    sample.hops = frame.hops;
    if (largest == largest_acked_) on_ecn_counts(frame.ecn, sample.acked_packets - packets_before);
  }
  // In order, while the ranges have been gone through from above. An end that never tells is believed as it is.
  const std::uint64_t whole = tells_whole_ ? whole_ : ~std::uint64_t{0};
  while (!sends_.empty() && sends_.front().all_acked) {
    if (sends_.begin() >= whole) [[unlikely]] {
      doubt_front(now);
      return;
    }
    complete_front();
  }
}

void Connection::skip_numbers(std::uint64_t last) {
  // The peer counts packets as received that were never sent: somebody else's. The numbers are not used, so that no
  // packet of ours is taken for one of them: neither by the peer, nor here when they are acknowledged.
  ++links_->stats->malformed_packets;
  if (skipped_at_ != packets_sent_) {
    skipped_at_ = packets_sent_;
    skipped_ = 0;
  }
  const std::uint64_t more = last - sent_.end();  // and one
  if (more >= max_skipped - skipped_ ||
      sent_.size() + more >= records_per_packet_in_flight * std::size_t{config_->max_packets_in_flight})
    return;
  skipped_ += static_cast<std::uint32_t>(more) + 1;
  while (sent_.end() <= last) {
    if (sent_.empty())
      sent_.skip();
    else
      sent_.push(SentPacket());
  }
}

// Every byte of the oldest message has been acknowledged, but the peer does not have them all: it took another's packet
// for one of ours. Which, nobody knows. What was under way may still bring the missing bytes; when a packet that left
// after it has been acknowledged, that has not, and the whole message goes once more.
void Connection::doubt_front(Nanos now) {
  const std::uint64_t number = sends_.begin();
  if (doubted_ != number) {
    doubted_ = number;
    repairs_ = 0;
    asked_at_ = not_asked;
  }
  if (asked_at_ == not_asked) {
    asked_at_ = sent_.end();
    ping_due_ = true;
    return;
  }
  if (largest_acked_ < asked_at_) return;
  asked_at_ = not_asked;
  if (++repairs_ > max_repairs) {  // it says so whatever it gets
    abort(now);
    return;
  }
  ++stats_.repaired_messages;
  SendMessage& message = sends_.front();
  message.all_acked = false;
  message.acked.clear();
  Bytes offset = 0;
  do {
    const Bytes length = std::min<Bytes>(message.length - offset, std::numeric_limits<std::uint16_t>::max());
    retransmit_.push({.message = number,
                      .offset = static_cast<std::uint32_t>(offset),
                      .length = static_cast<std::uint16_t>(length)});
    offset += length;
  } while (offset < message.length);
}

void Connection::on_acked_packet(SentPacket& packet, Nanos now) {
  in_flight_ -= packet.bytes;
  --in_flight_packets_;
  packet.state = PacketState::acked;
  ++batch_->sample.acked_packets;
  batch_->sample.acked_bytes += packet.bytes;
  delivered_ += packet.bytes;
  delivered_time_ = now;
  // The rate between this packet's sending and its acknowledgement, over the longer of the two intervals so that
  // neither a burst of packets nor one of acknowledgements inflates it.
  const Nanos interval = std::max(packet.sent - packet.first_sent, now - packet.delivered_time);
  if (interval.count > 0) {
    const double rate = static_cast<double>(delivered_ - packet.delivered) * 8e9 / static_cast<double>(interval.count);
    batch_->sample.delivery_rate = Rate(static_cast<std::uint64_t>(rate));
    batch_->sample.app_limited = packet.app_limited;
  }
  first_sent_ = packet.sent;
  for (std::uint32_t i = 0; i < packet.chunk_count; ++i) on_acked_chunk(chunk_of(packet, i), now);
}

void Connection::on_late_ack(std::uint64_t number, Nanos now) {
  SentPacket& packet = sent_[number];
  packet.state = PacketState::acked;
  ++stats_.spurious_losses;
  if (number >= episode_begin_) ++episode_spurious_;  // a late packet of an earlier episode proves nothing of this one
  for (std::uint32_t i = 0; i < packet.chunk_count; ++i) on_acked_chunk(chunk_of(packet, i), now);
}

void Connection::on_acked_chunk(const Chunk& chunk, Nanos now) {
  if (chunk.kind == ChunkKind::close) {
    if (state_ == State::closing) {
      complete_all(Status::closed);
      push({.kind = Completion::Kind::closed, .connection = id_});
      state_ = State::dead;
    }
    return;
  }
  if (chunk.kind != ChunkKind::data || chunk.message < sends_.begin() || chunk.message >= sends_.end()) return;
  SendMessage& message = sends_[chunk.message];
  if (message.done) return;
  const Bytes newly = message.acked.add(chunk.offset, Bytes{chunk.offset} + chunk.length);
  if (job_ != no_job) links_->jobs[job_].on_delivered(now, newly);
  message.all_acked = message.length == 0 || message.acked.is(0, message.length);
}

void Connection::complete_front() {
  const SendMessage& message = sends_.front();
  if (message.data != nullptr && !links_->tx->empty()) links_->tx->drop_message(&remote_, sends_.begin());
  push_sent(message, Status::ok);
  sends_.pop();
  while (!sends_.empty() && sends_.front().done) sends_.pop();
  next_message_ = std::max(next_message_, sends_.begin());
  maybe_close();
}

void Connection::on_ecn_counts(const wire::EcnCounts& counts, std::uint32_t newly_acked_packets) {
  if (!config_->ecn || !ecn_works_) return;
  const std::uint32_t ect0 = counts.ect0_packets - peer_counts_.ect0_packets;
  const std::uint32_t ce = counts.ce_packets - peer_counts_.ce_packets;
  // Counts that fell, or that miss packets which were sent ECN-capable, mean that something on the path rewrites the
  // field (RFC 9000 section 13.4.2.1). Reordered acknowledgements never get here. Then ECN is not used any more.
  if (ect0 > (1U << 31) || ce > (1U << 31) || counts.ect1_packets != 0 || ect0 + ce < newly_acked_packets) {
    ecn_works_ = false;
    return;
  }
  batch_->sample.ce_packets += ce;
  const Bytes ce_bytes = ce == 0 ? 0 : counts.ce_bytes - peer_counts_.ce_bytes;
  batch_->sample.ce_bytes =
      std::min(batch_->sample.ce_bytes + ce_bytes, batch_->sample.acked_bytes);  // what the peer says has no bound
  stats_.ce_packets += ce;
  peer_counts_ = counts;
}

void Connection::end_of_batch(Nanos now) {
  const AckBatch* const batch = std::exchange(batch_, nullptr);
  if (batch == nullptr || !batch->has_acks || state_ == State::dead) return;
  cc::AckSample sample = batch->sample;
  const std::uint64_t largest_acked = batch->largest_acked;
  // A loss that turned out to be none is undone before anything else is judged.
  if (episode_lost_ > 0 && episode_spurious_ >= episode_lost_) {
    controller_.on_spurious_congestion(now);
    episode_lost_ = episode_spurious_ = 0;
    recovery_until_ = 0;
  }
  const bool persistent = detect_losses(now);
  // Marks that come with persistent congestion are of the same episode, which has left nothing to take.
  if (sample.ce_packets > 0 && largest_acked >= recovery_until_ && !persistent)
    on_congestion(cc::CongestionEvent::Cause::ecn, now);
  if (largest_acked >= round_end_) {
    ++rounds_;
    round_end_ = sent_.end();
  }
  sample.now = now;
  sample.lost_packets = std::exchange(lost_packets_, 0);
  sample.lost_bytes = std::exchange(lost_bytes_, 0);
  sample.min_rtt = rtt_.minimum();
  sample.smoothed_rtt = rtt_.smoothed();
  sample.round_count = rounds_;
  const SentPacket& newest = sent_[largest_acked];
  sample.in_flight_when_sent = newest.in_flight;
  sample.delivered_since_sent = delivered_ - newest.delivered;
  sample.lost_since_sent = lost_total_ - newest.lost;
  sample.in_recovery = largest_acked < recovery_until_;
  if (job_ != no_job) {
    const cc::Augmentation& augmentation = links_->jobs[job_].augmentation;
    if (controller_.algorithm().capabilities.timed_increase) {
      sample.gain = augmentation.gain_over_least();
      sample.iteration_bytes = augmentation.known_iteration_bytes();
    } else {
      sample.gain = augmentation.gain();
    }
    sample.decrease_gain = augmentation.decrease_gain();
  }
  controller_.on_ack(sample);
  if (!sample.delivery_rate.is_zero()) {
    delivery_rate_ = sample.delivery_rate;
    app_limited_ = sample.app_limited;
  }
  if (config_->adapt_ack_ratio && job_ == no_job)
    ack_ratio_flags_ = wire::ask_ack_ratio(ack_ratio(
        delivery_rate_, std::min(sample.bytes_in_flight_before, static_cast<Bytes>(controller_.output().cwnd_bytes)),
        max_packet_));
  update_pacing();
  forget_finished(now);
}

// ---- loss recovery --------------------------------------------------------------------------------------------------

bool Connection::detect_losses(Nanos now) {
  loss_time_ = Nanos::never();
  if (!any_acked_) return false;
  const Nanos delay = rtt_.loss_delay(config_->timer_granularity);
  const Nanos late = now - delay;
  Nanos run_begin = Nanos::never();  // of losses with nothing acknowledged in between
  Nanos longest_run;
  std::uint64_t largest_lost = 0;
  std::uint32_t lost = 0;
  std::uint64_t number = std::max(loss_cursor_, sent_.begin());
  for (; number < largest_acked_; ++number) {
    SentPacket& packet = sent_[number];
    if (packet.state == PacketState::acked) run_begin = Nanos::never();
    if (packet.state != PacketState::in_flight) continue;
    if (largest_acked_ - number < packet_threshold_ && packet.sent > late) {
      // Sent in order: all that follow are younger and closer.
      loss_time_ = packet.sent + delay;
      break;
    }
    // Before the first RTT sample a silence says nothing (RFC 9002 section 7.6.2): the peer may not have been there.
    if (packet.sent >= first_sample_) {
      if (run_begin.is_never()) run_begin = packet.sent;
      longest_run = std::max(longest_run, packet.sent - run_begin);
    }
    on_lost_packet(packet);
    largest_lost = number;
    ++lost;
  }
  loss_cursor_ = std::min(number, sent_.end());
  if (lost == 0) return false;
  stats_.lost_packets += lost;
  if (largest_lost >= recovery_until_) {
    episode_begin_ = recovery_until_;
    on_congestion(cc::CongestionEvent::Cause::loss, now);
    episode_lost_ = lost;
    episode_spurious_ = 0;
  } else if (episode_lost_ > 0) {
    episode_lost_ += lost;
  }
  // Persistent congestion (RFC 9002 section 7.6): nothing got through for three probe timeouts.
  if (longest_run <= probe_timeout() * 3) return false;
  ++stats_.persistent_congestions;
  controller_.on_timeout(now);
  episode_lost_ = 0;
  recovery_until_ = 0;
  return true;
}

void Connection::on_lost_packet(SentPacket& packet) {
  packet.state = PacketState::lost;
  in_flight_ -= packet.bytes;
  --in_flight_packets_;
  ++lost_packets_;
  lost_bytes_ += packet.bytes;
  lost_total_ += packet.bytes;
  for (std::uint32_t i = 0; i < packet.chunk_count; ++i) requeue(chunk_of(packet, i));
}

void Connection::requeue(const Chunk& chunk) {
  switch (chunk.kind) {
    case ChunkKind::data:
      if (chunk.message >= sends_.begin() && chunk.message < sends_.end() && !sends_[chunk.message].done)
        retransmit_.push(chunk);
      break;
    case ChunkKind::connect:
      connect_due_ = state_ == State::connecting;
      break;
    case ChunkKind::accept:
      accept_due_ = state_ != State::draining;
      break;
    case ChunkKind::credit:
      credit_due_ = credit_lost_ = true;
      credit_known_ = false;
      credit_final_told_ = false;
      break;
    case ChunkKind::close:
      close_due_ = state_ == State::closing;
      break;
    case ChunkKind::ping:
      break;
  }
}

void Connection::on_congestion(cc::CongestionEvent::Cause cause, Nanos now) {
  ++stats_.congestion_events;
  recovery_until_ = sent_.end();
  episode_lost_ = 0;  // only a response to losses can be undone when they turn out to be none
  const double decrease_gain = job_ == no_job ? 1.0 : links_->jobs[job_].augmentation.decrease_gain();
  controller_.on_congestion({now, cause, in_flight_, decrease_gain});
}

void Connection::forget_finished(Nanos now) {
  // Lost packets are kept for as long as their acknowledgement may still come in.
  const Nanos keep = rtt_.smoothed() * 2 + config_->timer_granularity;
  while (!sent_.empty()) {
    const SentPacket& packet = sent_.front();
    if (packet.state == PacketState::in_flight) break;
    if (packet.state == PacketState::lost && now - packet.sent < keep) break;
    forget_oldest();
  }
  acked_.remove_below(sent_.begin());
}

void Connection::make_room() {
  // The oldest record goes. If its packet is in flight still, so many have been sent after it that it is lost.
  if (sent_.front().state == PacketState::in_flight) {
    on_lost_packet(sent_.front());
    ++stats_.lost_packets;
  }
  forget_oldest();
  acked_.remove_below(sent_.begin());
}

void Connection::forget_oldest() {
  for (std::uint32_t i = 0; i < sent_.front().chunk_count; ++i) chunks_.pop();
  sent_.pop();
}

Nanos Connection::probe_timeout() const {
  return rtt_.probe_timeout(config_->timer_granularity, config_->max_ack_delay);
}

Nanos Connection::probe_deadline() const {
  if (in_flight_packets_ == 0 || !loss_time_.is_never()) return Nanos::never();
  const Nanos timeout = probe_timeout();
  const Nanos longest = std::max(max_probe_interval, timeout);
  const std::uint32_t doublings = std::min(probe_count_, 20U);
  return last_eliciting_sent_ +
         (timeout.count > longest.count >> doublings ? longest : timeout * (std::int64_t{1} << doublings));
}

void Connection::on_timer(Nanos now) {
  if (state_ == State::draining) {
    if (now >= drain_until_) state_ = State::dead;
    return;  // an abort's CLOSE goes out in build()
  }
  if (now >= loss_time_) {
    detect_losses(now);
    update_pacing();
    forget_finished(now);
  }
  if (now >= probe_deadline()) {
    on_probe_timeout(now);
    if (state_ == State::draining || state_ == State::dead) return;
  }
  if (now >= credit_probe_ && in_flight_packets_ == 0) {
    // The peer owes credit, or is gone: ask.
    ping_due_ = true;
    credit_probe_ = now + max_probe_interval;
  }
  if (needs_timer_ && now >= controller_.output().timer) {
    controller_.on_timer(now);
    update_pacing();
  }
}

// ---- time limits ----------------------------------------------------------------------------------------------------

void Connection::need_deadlines() {
  if (has_deadlines_) return;
  has_deadlines_ = true;
  deadlines_ = std::make_unique<OperationDeadlines>(config_->max_sends, config_->max_receives);
}

Nanos Connection::watch_deadline() const {
  if (state_ == State::draining || state_ == State::dead) return Nanos::never();
  return deadlines_ == nullptr ? look_at_ : std::min(look_at_, deadlines_->heap.next());
}

void Connection::on_watch(Nanos now) {
  if (state_ == State::draining || state_ == State::dead) return;
  if (has_deadlines_) expire_operations(now);
  if (now >= look_at_ && state_ != State::draining && state_ != State::dead) look_for_peer(now);
}

// An operation of whose message nothing has been sent, or has arrived, ends as if it had never been posted: those
// behind it take its place, and the peer sees nothing of it. Of another the peer has, or wants, the rest, and no packet
// of this protocol takes a message back: the connection ends, so that the peer's operation ends too.
void Connection::expire_operations(Nanos now) {
  DeadlineHeap& heap = deadlines_->heap;
  const bool sending = next_message_ < sends_.end() && sends_[next_message_].next_offset > 0;
  const std::uint64_t unsent = next_message_ + (sending ? 1 : 0);
  std::uint64_t untouched = ~std::uint64_t{0};  // not looked for yet
  const auto find_untouched = [&] {
    const auto fresh = [](const ReceiveMessage& message) { return !message.done && message.received.empty(); };
    for (untouched = receives_.end(); untouched > receives_.begin() && fresh(receives_[untouched - 1]);) --untouched;
  };
  bool begun = false;
  bool unsent_ended = false;
  bool untouched_ended = false;
  while (heap.next() <= now) {
    const std::uint32_t slot = heap.top();
    heap.set(slot, Nanos::never());
    if (slot < deadlines_->sends) {
      const std::uint64_t number = sends_.begin() + deadlines_->of_send(slot - sends_.begin());
      if (number >= sends_.end() || sends_[number].done) continue;  // had completed
      SendMessage& message = sends_[number];
      message.done = true;
      if (message.data != nullptr) links_->tx->drop_message(&remote_, number);
      push_sent(message, Status::timed_out);
      (number < unsent ? begun : unsent_ended) = true;
    } else {
      const std::uint64_t number =
          receives_.begin() + ((slot - deadlines_->sends - receives_.begin()) & (deadlines_->receives - 1));
      if (number >= receives_.end() || receives_[number].done) continue;
      if (untouched == ~std::uint64_t{0}) find_untouched();
      ReceiveMessage& message = receives_[number];
      message.done = true;
      push({.kind = Completion::Kind::received, .status = Status::timed_out, .connection = id_, .tag = message.tag});
      (number < untouched ? begun : untouched_ended) = true;
    }
  }
  if (begun) {
    abort(now);
    return;
  }
  if (unsent_ended) {
    close_up(sends_, unsent, [this](std::uint64_t number) { return deadlines_->of_send(number); });
    maybe_close();
  }
  if (untouched_ended)
    close_up(receives_, untouched, [this](std::uint64_t number) { return deadlines_->of_receive(number); });
}

template <typename Message, typename Slot>
void Connection::close_up(GrowableRing<Message>& ring, std::uint64_t from, Slot slot) {
  DeadlineHeap& heap = deadlines_->heap;
  std::uint64_t to = from;
  for (std::uint64_t number = from; number != ring.end(); ++number) {
    if (ring[number].done) continue;
    if (number != to) {
      std::swap(ring[to], ring[number]);  // both keep the memory that they hold
      heap.set(slot(to), heap.at(slot(number)));
      heap.set(slot(number), Nanos::never());
    }
    ++to;
  }
  ring.truncate(to);
}

void Connection::look_for_peer(Nanos now) {
  const Nanos keep_alive = config_->keep_alive;
  const Nanos limit = config_->idle_limit;
  const Nanos heard = std::max(heard_, largest_received_time_);
  if (state_ == State::connecting) {  // that has a limit of its own
    heard_ = now;
  } else if (limit.count > 0 && now - heard >= limit) {
    end(Status::unreachable, wire::CloseReason::idle, now);
    return;
  }
  look_at_ = limit.count > 0 ? heard + limit : Nanos::never();
  if (keep_alive.count == 0) return;
  Nanos ask_at = heard + keep_alive;
  if (ask_at <= now) {
    // What is in flight asks as well.
    ping_due_ = ping_due_ || (state_ != State::connecting && in_flight_packets_ == 0);
    ask_at = now + keep_alive;
  }
  look_at_ = std::min(look_at_, ask_at);
}

void Connection::on_probe_timeout(Nanos now) {
  if (probe_count_ >= 2 && now - last_progress_ >= config_->give_up_after) {
    end(Status::unreachable, wire::CloseReason::idle, now);  // what we send may still get there
    return;
  }
  ++probe_count_;
  probes_due_ = 2;
  last_eliciting_sent_ = now;  // the next timeout counts from here even if the datapath is full
  if (state_ == State::connecting) {
    connect_due_ = true;
    return;
  }
  // New data probes as well as any, once the peer has shown that it takes data: a client does so after ACCEPT only.
  if (has_data() && any_acked_) return;
  // Nothing new to probe with: what the oldest packet in flight carried goes out once more.
  for (std::uint64_t number = std::max(loss_cursor_, sent_.begin()); number < sent_.end(); ++number) {
    const SentPacket& packet = sent_[number];
    if (packet.state != PacketState::in_flight) continue;
    for (std::uint32_t i = 0; i < packet.chunk_count; ++i) requeue(chunk_of(packet, i));
    break;
  }
  ping_due_ = true;
}

Nanos Connection::next_deadline() const {
  if (state_ == State::dead) return Nanos(0);
  if (state_ == State::draining) return std::min({drain_until_, ack_deadline_, abort_copy_at_});
  Nanos next = std::min({loss_time_, probe_deadline(), held_until_});
  if (needs_timer_) next = std::min(next, controller_.output().timer);
  if (unacknowledged_ > 0) next = std::min(next, ack_deadline_);
  if (in_flight_packets_ == 0) next = std::min(next, credit_probe_);
  return next;
}

void Connection::update_pacing() {
  const cc::Output& output = controller_.output();
  Rate rate = output.pacing_rate;
  if (rate.is_zero() && rtt_.has_sample())
    rate = Rate(static_cast<std::uint64_t>(1.25 * output.cwnd_bytes * 8e9 /
                                           static_cast<double>(std::max<std::int64_t>(rtt_.smoothed().count, 1))));
  const bool at_most = !config_->max_rate.is_zero() && (rate.is_zero() || config_->max_rate < rate);
  if (at_most) rate = config_->max_rate;
  // The window counts UDP payloads, max_rate counts what is on the wire, and so do the rates that begin with it.
  paced_overhead_ = at_most || controller_.algorithm().capabilities.rate_based ? overhead_ : std::uint16_t{0};
  pacer_.set(rate, Bytes{pacing_burst_packets} * max_packet_, config_->pacing_quantum);
}

// ---- what is sent ---------------------------------------------------------------------------------------------------

bool Connection::has_data() const {
  if (!may_send_messages()) return false;
  return !retransmit_.empty() || has_new_data();
}

bool Connection::has_new_data() const {
  return has_credited_data() && (job_ == no_job || !links_->jobs[job_].gate.holds(sends_[next_message_].round));
}

bool Connection::credit_urgent() const {
  if (credit_final_due()) return true;
  if (!credit_due_ || !may_send_messages()) return false;
  // The peer is told at once when it has nothing left to send into, and otherwise when half of the buffers are news.
  const std::uint64_t news = receives_.end() - std::min(advertised_credit_, receives_.end());
  return credit_lost_ || advertised_credit_ <= receives_.begin() || news * 2 >= receives_.size();
}

bool Connection::credit_final_due() const {
  return state_ == State::flushing && !credit_final_told_ && next_message_ < sends_.end() && next_message_ >= credit_;
}

Connection::Blocked Connection::blocked(Nanos now) {
  if (in_flight_ > 0 && static_cast<double>(in_flight_ + max_packet_) > controller_.output().cwnd_bytes) {
    cwnd_limited_until_ = sent_.end();
    return Blocked::window;
  }
  if (in_flight_packets_ >= config_->max_packets_in_flight) return Blocked::window;
  if (const Nanos ready = pacer_.ready_at(now); ready > now) {
    held_until_ = std::min(held_until_, ready);
    return Blocked::pacing;
  }
  if (job_ != no_job && links_->jobs[job_].pacer.ready_at(now) > now) return Blocked::job_pacing;
  return Blocked::no;
}

Connection::Blocked Connection::build(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet) {
  if (state_ == State::dead) return Blocked::nothing;
  held_until_ = Nanos::never();
  const bool ack_due = unacknowledged_ > 0 && (ack_at_once_ || now >= ack_deadline_);
  const bool probing = probes_due_ > 0;
  Blocked data_blocked = Blocked::nothing;
  if (job_ != no_job && links_->jobs[job_].gate.pending() && may_send_messages() && has_credited_data()) {
    PhaseGate& gate = links_->jobs[job_].gate;
    if (sends_[next_message_].round == gate.round()) {
      const Nanos opens = gate.opens_at(now);
      if (opens > now) {
        held_until_ = opens;
        data_blocked = Blocked::gate;
      }
    }
  }
  if (has_data()) {
    data_blocked = probing ? Blocked::no : blocked(now);
    credit_probe_ = Nanos::never();
  } else if (may_send_messages() && next_message_ < sends_.end() && next_message_ >= credit_) {
    if (credit_probe_.is_never()) credit_probe_ = now + max_probe_interval;
  } else {
    credit_probe_ = Nanos::never();
  }
  if (aborted_) [[unlikely]] {
    if (now >= abort_copy_at_) {
      close_due_ = true;
      abort_copy_at_ = --abort_copies_left_ > 0 ? now + probe_timeout() : Nanos::never();
    }
  }
  const bool control =
      connect_due_ || (accept_due_ && state_ != State::draining) || close_due_ || ping_due_ || credit_urgent();
  if (data_blocked != Blocked::no && !control && !ack_due) return data_blocked;
  if (state_ == State::connecting && !connect_due_) return Blocked::nothing;
  if (sent_.size() >= records_per_packet_in_flight * std::size_t{config_->max_packets_in_flight}) make_room();

  wire::Writer writer(buffer.first(max_packet_));
  wire::Header header;
  if (config_->full_integrity) header.flags |= wire::full_integrity;
  header.connection = peer_connection_;
  header.packet_number = sent_.end();
  const std::uint64_t first_chunk = chunks_.end();
  // ACCEPT comes first: without it a client takes nothing.
  write_control(writer, data_blocked == Blocked::no);
  if (unacknowledged_ > 0 && state_ != State::connecting) write_ack(writer, now);
  std::span<const std::byte> payload;
  bool retransmission = false;
  if (data_blocked == Blocked::no) {
    if (in_flight_packets_ == 0 && was_idle_) {
      if (any_acked_ && now - last_eliciting_sent_ > probe_timeout()) {
        controller_.on_idle_restart(now);
        update_pacing();
        ack_ratio_flags_ = 0;  // as the window is smaller now
      }
      was_idle_ = false;
    }
    payload = fill_data(writer, retransmission, packet.message);
    if (keeps_payload_from_ > 0 && payload.size() >= keeps_payload_from_ && payload.data() != nullptr) {
      SendMessage& message = sends_[packet.message];
      if (message.hold == PayloadHolds::none) message.hold = links_->holds->take();
      packet.hold = (*links_->holds)[message.hold];
    }
  }
  if (job_ != no_job && data_blocked == Blocked::no) links_->jobs[job_].on_send(now);
  const std::uint64_t chunk_count = chunks_.end() - first_chunk;
  if (chunk_count == 0 && writer.used() == wire::header_bytes) return Blocked::nothing;

  const bool eliciting = chunk_count > 0;
  if (eliciting) {
    // A window of hardly a packet would wait for an acknowledgement that waits for another packet.
    if (!has_data() || probing || controller_.output().cwnd_bytes < 2.0 * max_packet_) header.flags |= wire::ack_now;
    if (probing) --probes_due_;
  }
  if (job_ != no_job && data_blocked == Blocked::no) {
    const JobState& job = links_->jobs[job_];
    header.flags |= wire::has_job;
    header.tag = {job.number, static_cast<std::uint16_t>(job.augmentation.tracker.iteration()),
                  static_cast<std::uint16_t>(job.augmentation.tracker.bytes_ratio() * 65'535)};
  }
  const auto bytes = static_cast<std::uint32_t>(writer.used() + payload.size());
  if (eliciting) {
    if (in_flight_packets_ == 0) {
      first_sent_ = delivered_time_ = now;
      last_progress_ = now;
    }
    // Written where it stays: what is put together first and copied then waits for its own stores.
    SentPacket& record = sent_.push_reused();
    record.sent = now;
    record.first_sent = first_sent_;
    record.delivered_time = delivered_time_;
    record.delivered = delivered_;
    record.first_chunk = static_cast<std::uint32_t>(first_chunk);
    record.in_flight =
        static_cast<std::uint32_t>(std::min<Bytes>(in_flight_ + bytes, std::numeric_limits<std::uint32_t>::max()));
    record.lost = lost_total_;
    record.bytes = static_cast<std::uint16_t>(bytes);
    record.chunk_count = static_cast<std::uint16_t>(chunk_count & 0x1FFFU);
    record.state = PacketState::in_flight;
    record.app_limited = delivered_ < app_limited_until_;
    in_flight_ += bytes;
    ++in_flight_packets_;
    last_eliciting_sent_ = now;
    if (!has_data()) {
      app_limited_until_ = delivered_ + in_flight_;
      was_idle_ = true;
    }
  }
  // A packet that nobody acknowledges needs no record, except to keep the numbers of those around it.
  if (!eliciting && sent_.empty()) {
    sent_.skip();
  } else if (!eliciting) {
    sent_.push(SentPacket());
    forget_finished(now);
  }
  const std::uint64_t span = sent_.end() - 1 - std::min(sent_.begin(), sent_.end() - 1);
  header.span = static_cast<std::uint32_t>(std::min<std::uint64_t>(span, ~std::uint32_t{0}));
  if (data_blocked == Blocked::no) {
    header.flags |= ack_ratio_flags_;
    // What a late poll has kept back goes now, or a window that is paced below its size would not grow, whatever its
    // gain. More than a round trip's worth there never is.
    pacer_.on_sent(now, bytes + paced_overhead_, std::min(links_->late, rtt_.smoothed()));
    if (job_ != no_job) {
      JobState& job = links_->jobs[job_];
      job.pacer.on_sent(now, bytes + overhead_, std::min(links_->late, job.catch_up));
    }
  }
  ++packets_sent_;
  bytes_sent_ += bytes;
  if (retransmission) ++stats_.retransmitted_packets;
  packet.header = writer.finish(header, payload);
  packet.payload = payload;
  packet.ecn = config_->ecn && ecn_works_ && eliciting ? Ecn::ect0 : Ecn::not_ect;
  return Blocked::no;
}

void Connection::write_ack(wire::Writer& writer, Nanos now) {
  wire::AckFrame frame;
  frame.delay_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>((now - largest_received_time_).count, 4'000'000'000));
  frame.hops = received_hops_;
  frame.ecn = counts_;
  frame.has_whole = true;
  frame.whole = static_cast<std::uint32_t>(receives_.begin());
  // Credit in an ACK needs no acknowledgement of its own, since no loss of ACKs leaves the sender waiting for ever:
  // - An ACK is written only when packets that ask for one have come since the last. They are in flight at the sender
  //   until it has this ACK, or a later one, which says at least as much. Without either its probe timeout makes it
  //   send again, and that packet is answered with an ACK.
  // - Buffers posted after the last ACK are in none. They go in a CREDIT, which is repeated until acknowledged, as soon
  //   as what was told before is used up or half of the buffers are news.
  // - Whatever else: a sender that has a message, no credit and nothing in flight asks with a PING every second.
  // It is left out when the peer certainly knows it, in the middle of a long message for one. That an earlier ACK said
  // it is not enough.
  if (acks_carry_credit()) {
    frame.has_credit = !credit_known_;
    frame.credit = static_cast<std::uint32_t>(receives_.end());
    advertised_credit_ = receives_.end();
    credit_due_ = credit_lost_ = false;
  }
  for (std::size_t i = received_.size(); i-- > 0 && frame.range_count < wire::max_ack_ranges;)
    frame.ranges[frame.range_count++] = {received_[i].begin, received_[i].end - 1};
  if (frame.range_count > 0) writer.ack(frame);
  unacknowledged_ = 0;
  ack_at_once_ = false;
  ack_deadline_ = Nanos::never();
}

void Connection::write_control(wire::Writer& writer, bool with_data) {
  wire::ConnectFrame greeting{.max_packet = static_cast<std::uint16_t>(max_packet_),
                              .source_connection = id_,
                              .credit = static_cast<std::uint32_t>(receives_.end()),
                              .nonce = nonce_};
  if (connect_due_) {
    writer.connect(greeting);
    chunks_.push({.kind = ChunkKind::connect});
    connect_due_ = false;
    advertised_credit_ = receives_.end();
  }
  if (accept_due_ && state_ != State::draining) {
    writer.accept(greeting);
    chunks_.push({.kind = ChunkKind::accept});
    accept_due_ = false;
    advertised_credit_ = receives_.end();
  }
  // News that can wait go with data, or when they have become urgent: alone they would ask for an acknowledgement. But
  // an acknowledgement takes them along for nothing, as write_ack() says.
  const bool ack_takes_it = unacknowledged_ > 0 && acks_carry_credit();
  if (may_send_messages() && !ack_takes_it && (credit_urgent() || (credit_due_ && with_data))) {
    credit_final_told_ = state_ == State::flushing;
    writer.credit({.messages = static_cast<std::uint32_t>(receives_.end()), .final = credit_final_told_});
    chunks_.push({.kind = ChunkKind::credit});
    credit_due_ = credit_lost_ = false;
    credit_known_ = true;
    advertised_credit_ = receives_.end();
  }
  if (close_due_) {
    writer.close(aborted_ ? abort_reason_ : wire::CloseReason::done);
    chunks_.push({.kind = ChunkKind::close});
    close_due_ = false;
  }
  if (ping_due_) {
    writer.ping();
    chunks_.push({.kind = ChunkKind::ping});
    ping_due_ = false;
  }
}

bool Connection::next_retransmission(Chunk& chunk) {
  for (; !retransmit_.empty(); retransmit_.pop()) {
    chunk = retransmit_.front();
    if (chunk.message < sends_.begin() || chunk.message >= sends_.end()) continue;
    const SendMessage& message = sends_[chunk.message];
    if (message.done) continue;
    if (chunk.length == 0) return true;  // an empty message
    bool found = false;
    Chunk missing = chunk;
    message.acked.for_gaps(chunk.offset, Bytes{chunk.offset} + chunk.length, [&](Bytes begin, Bytes end) {
      if (found) return;
      found = true;
      missing.offset = static_cast<std::uint32_t>(begin);
      missing.length = static_cast<std::uint16_t>(end - begin);
    });
    if (found) {
      chunk = missing;
      return true;
    }
  }
  return false;
}

std::span<const std::byte> Connection::fill_data(wire::Writer& writer, bool& retransmission, std::uint64_t& gathered) {
  // Short pieces are copied next to each other into one packet. A longer one ends the packet and is gathered from
  // the user's memory.
  constexpr std::size_t copy_limit = 256;
  constexpr std::size_t smallest_piece = 64;
  for (;;) {
    if (writer.room() < wire::data_frame_bytes + smallest_piece) return {};
    const std::size_t room = writer.room() - wire::data_frame_bytes;
    Chunk chunk;
    const bool again = next_retransmission(chunk);
    if (again) {
      const std::uint32_t whole_end = retransmit_.front().offset + retransmit_.front().length;
      chunk.length = static_cast<std::uint16_t>(std::min<std::size_t>(chunk.length, room));
      const std::uint32_t sent_end = chunk.offset + chunk.length;
      // Offsets may wrap only in the last chunk of a 4 GiB message, where both ends wrap alike.
      const std::uint32_t rest = whole_end - sent_end;
      if (rest == 0) {
        retransmit_.pop();
      } else {
        retransmit_.front().offset = sent_end;
        retransmit_.front().length = static_cast<std::uint16_t>(rest);
      }
      retransmission = true;
    } else {
      if (!has_new_data()) return {};
      SendMessage& message = sends_[next_message_];
      chunk.message = next_message_;
      chunk.offset = static_cast<std::uint32_t>(message.next_offset);
      chunk.length = static_cast<std::uint16_t>(std::min<Bytes>(message.length - message.next_offset, room));
      message.next_offset += chunk.length;
      if (message.next_offset == message.length) ++next_message_;
    }
    const SendMessage& message = sends_[chunk.message];
    const bool last = Bytes{chunk.offset} + chunk.length == message.length;
    writer.data({.last = last,
                 .message = static_cast<std::uint32_t>(chunk.message),
                 .offset = chunk.offset,
                 .length = chunk.length});
    chunks_.push(chunk);
    const std::span<const std::byte> bytes(message.data == nullptr ? nullptr : message.data + chunk.offset,
                                           chunk.length);
    if (chunk.length > 0 && (message.data == nullptr || chunk.length > copy_limit)) {
      gathered = chunk.message;
      return bytes;
    }
    writer.copy(bytes.data(), bytes.size());
    if (!config_->pack_messages) return {};
  }
}

}  // namespace mltcp
