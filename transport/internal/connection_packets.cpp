// Packets of a connection: receiving, acknowledgement processing and building (see connection.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "mltcp/transport/internal/ack_ratio.h"
#include "mltcp/transport/internal/connection.h"
#include "mltcp/transport/internal/violators.h"
#include "mltcp/transport/internal/work_budget.h"
#include "mltcp/transport/job_claims.h"
#include "mltcp/transport/requirements.h"

namespace mltcp::transport {
namespace {

// MLTCP's shares of bandwidth settle fast only if packets are evenly spaced. This was measured in
// examples/two-vgg19.toml with a second job that starts 2 to 4.1 ms later than the first, in 20 runs. The jobs'
// communication no longer overlapped from iteration 8 at the latest with bursts of 1 packet, from iteration 11 with
// bursts of 4, and from iteration 20 with bursts of 10. With practically no pacing (twice the window per round trip)
// this took 60 iterations, or never happened.
constexpr std::uint32_t kPacingBurstPackets = 1;

// If a packet costs less as part of a batch (PacketIo::Limits::batch), packets are gathered until their transmission
// time at the pacing rate reaches this value. At 20 Gbit/s this is a whole batch of 64 kB. Up to 500 Mbit/s per
// connection, packets are sent one by one, evenly spaced.
constexpr Nanos kBatchTime{25'000};
// Maximum time between copies of CLOSE after abort(), so that all copies are sent before the slot is free.
constexpr Nanos kLongestBetweenCopies = SentPackets::kMaxPatience / 3;

// Maximum size of a batch as a share of the window. The rest of the window stays in flight while a batch is gathered,
// so that acknowledgements keep arriving.
constexpr double kBatchShare = 0.25;

// If ECN seems not to work, packets count as marked when the average round trip exceeds both this multiple of the
// minimum round trip and the minimum plus kWokenUp.
constexpr std::int64_t kRoundTripsOfQueue = 3;
constexpr Nanos kWokenUp{100'000};  // time that a sleeping thread may take to wake up

/// Returns the status that a client reports if CLOSE arrives in place of ACCEPT.
Status refusal_of(wire::CloseReason reason) {
  switch (reason) {
    case wire::CloseReason::full:
      return Status::full;
    case wire::CloseReason::version:
      return Status::version;
    case wire::CloseReason::aborted:
      return Status::aborted;
    case wire::CloseReason::idle:
      return Status::unreachable;
    case wire::CloseReason::key:
      return Status::no_key;
    default:
      return Status::refused;
  }
}

/// Returns whether a packet contains ACCEPT, which is always the first frame. A packet with ACCEPT is not encrypted.
bool is_accept(wire::Reader look) {
  wire::Frame frame;
  return look.next(frame) && frame.type == wire::FrameType::accept;
}

}  // namespace

// ---- Receiving ----

void Connection::on_packet(const wire::Header& header, wire::Reader& reader, const RxPacket& packet, Nanos now) {
  // Check this first, because the tag of a sealed connection is not secret and proves nothing.
  if (is_sealed_ && (header.flags & wire::sealed) == 0 && state_ != State::connecting) [[unlikely]] {
    ++links_->stats->forged_packets;
    return;
  }
  if (is_half_open_) [[unlikely]]
    on_half_open(header, packet);
  const std::uint64_t number = wire::widen(static_cast<std::uint32_t>(header.packet_number), received_.next());
  if (!received_.believable(number)) [[unlikely]] {
    ++links_->stats->malformed_packets;
    return;
  }
  if (is_sealed_ && (header.flags & wire::sealed) != 0) {
    sealing_->window.add(number);
    if (!sealing_->ask_at.is_never()) [[unlikely]]
      refute_reset();
  }
  // If a packet with this number has arrived before, the earlier packet may have been forged, or sent in an earlier
  // connection. So this packet is processed as well. A true duplicate changes nothing, because its data is written to
  // the same position and its control frames repeat the current state.
  const bool known = received_.contains(number);
  if (known) [[unlikely]]
    ++stats_.duplicate_packets;
  const std::uint64_t credit_before = sends_.credit();
  const State state_before = state_;
  Arrival arrival{.at_once = (header.flags & wire::ack_now) != 0};
  if (!take_frames(reader, header, arrival, now)) {
    if (arrival.refused) heard_ = now;
    return;
  }
  if (arrival.question && !arrival.data) [[unlikely]]
    receives_.on_question(now);
  if (known) [[unlikely]] {
    heard_ = now;
    if (!arrival.news && sends_.credit() == credit_before && state_ == state_before) return;
    ++stats_.conflicting_packets;
    received_.owe_ack_now();
    return;
  }

  if (has_paths_) [[unlikely]]
    paths_->on_received(number, received_.next(), packet.ecn == Ecn::ce);
  const ReceivedPackets::Place place = received_.add(number, header.span, packet.hops, now);
  if (place == ReceivedPackets::Place::behind) heard_ = now;
  ++packets_received_;
  if (arrival.data && (header.flags & wire::has_job) != 0 && links_->claims != nullptr)
    links_->claims->add(header.job,
                        packet.bytes.size() + packet.tail.size() + packet.virtual_bytes - wire::kHeaderBytes);
  if (packet.ecn != Ecn::not_ect &&
      received_.count_ecn(packet.ecn, packet.bytes.size() + packet.tail.size() + packet.virtual_bytes))
    arrival.at_once = true;
  if (!arrival.eliciting) return;
  finished_message_ = finished_message_ || (arrival.finished && config_->await_answer);
  received_.owe_ack(number, header.flags, arrival.at_once || place != ReceivedPackets::Place::next, arrival.finished,
                    *config_, now);
}

void Connection::on_trimmed_packet(const wire::Header& header) {
  if (is_sealed_ || version_ < wire::kVersionWithTrimming || state_ == State::connecting) return;
  const std::uint64_t number = wire::widen(static_cast<std::uint32_t>(header.packet_number), received_.next());
  if (!received_.believable(number) || received_.contains(number)) return;
  constexpr std::uint64_t bits = 64;
  if (!has_trimmed_ || number >= trimmed_.largest) {
    const std::uint64_t shift = has_trimmed_ ? number - trimmed_.largest : bits;
    trimmed_ = {number, (shift < bits ? trimmed_.map << shift : 0) | 1};
  } else if (trimmed_.largest - number < bits) {
    trimmed_.map |= std::uint64_t{1} << (trimmed_.largest - number);
  }
  has_trimmed_ = true;
  received_.owe_ack_now();
}

bool Connection::take_frames(wire::Reader& reader, const wire::Header& header, Arrival& arrival, Nanos now) {
  wire::Frame& frame = *links_->frame;
  while (!arrival.refused && state_ != State::dead && reader.next(frame)) {
    // Before ACCEPT has brought the peer's connection id, nothing can be acknowledged. So packets other than ACCEPT,
    // CLOSE and RETRY are ignored, and the peer retransmits them.
    if (state_ == State::connecting && !opens(frame, header, now)) [[unlikely]]
      return false;
    if (frame.type == wire::FrameType::data) {
      on_data(frame.data, header, arrival);
    } else if (frame.type == wire::FrameType::ack) {
      // An honest peer puts at most one ACK into a packet. Processing many ACKs in a packet would take too much time.
      if (std::exchange(arrival.acknowledges, true)) [[unlikely]] {
        ++links_->stats->malformed_packets;
        return false;
      }
      if (!on_ack(frame.ack, header, now)) return false;
    } else if (!on_control(frame, header, arrival, now)) {
      return false;
    }
  }
  if (reader.error() != wire::ParseError::none) {
    ++links_->stats->malformed_packets;
    return false;
  }
  return !arrival.refused && state_ != State::dead;
}

bool Connection::open(const RxPacket& packet, const wire::Header& header, std::span<std::byte> out,
                      wire::Reader& reader, Nanos now) {
  if (!is_sealed_) return false;
  const std::uint64_t number = wire::widen(static_cast<std::uint32_t>(header.packet_number), received_.next());
  const bool clear = (header.flags & wire::clear) != 0;
  const std::span<const std::byte> body = packet.bytes.subspan(wire::kHeaderBytes);
  reader.begin_opened(body, packet.tail, packet.virtual_bytes);
  if (state_ == State::connecting) {
    // The keys depend on the server's random bytes in ACCEPT. Whether the server sent these bytes is only known when
    // the packet opens. Each attempt takes time, so a budget limits attempts with forged ACCEPTs. The server repeats
    // the genuine ACCEPT.
    wire::Reader look = reader;
    wire::Frame frame;
    if (!clear || !look.next(frame) || frame.type != wire::FrameType::accept || !look.next(frame) ||
        frame.type != wire::FrameType::key)
      return false;
    if (frame.key.id != sealing_->seal->key_id() || sealing_->failed_accepts.is_spent(now)) {
      ++links_->stats->forged_packets;
      return false;
    }
    sealing_->seal->meet(frame.key.random);
  } else if (clear && sealing_->seal->encrypts() && !is_accept(reader)) [[unlikely]] {
    ++links_->stats->forged_packets;
    return false;
  }
  const SealedPacket sealed{
      number, (header.flags & wire::epoch) != 0, clear, wire::sealed_parts(packet.bytes), {body, packet.tail}};
  if (!sealing_->seal->open(sealed, wire::seal_of(packet.bytes), out.data())) {
    ++links_->stats->forged_packets;
    if (state_ == State::connecting) [[unlikely]]
      sealing_->failed_accepts.pay(now);
    return false;
  }
  if (is_replay(header)) return false;
  if (!clear) reader.begin_opened(out.first(body.size() + packet.tail.size()), {}, packet.virtual_bytes);
  return true;
}

void Connection::refute_reset() {
  ++links_->stats->forged_resets;
  sealing_->reset_believed_at = sealing_->ask_at = Nanos::never();
}

bool Connection::is_replay(const wire::Header& header) {
  if (!is_sealed_) return false;
  const std::uint64_t number = wire::widen(static_cast<std::uint32_t>(header.packet_number), received_.next());
  if (!sealing_->window.contains(number)) return false;
  ++links_->stats->replayed_packets;
  ++stats_.duplicate_packets;
  return true;
}

bool Connection::opens(const wire::Frame& frame, const wire::Header& header, Nanos now) {
  if (frame.type == wire::FrameType::close && is_sealed_ && (header.flags & wire::sealed) == 0) {
    // Anybody on the path can send this CLOSE. It takes effect at ends_at_, unless a packet that is sealed with the key
    // arrives before that time.
    if (sealing_->refused_as == Status::ok && frame.close != wire::CloseReason::done) {
      sealing_->refused_as = refusal_of(frame.close);
      // The refusal must take effect before the connection is given up for lack of answers.
      ends_at_ = now + std::min(kHalfOpenLimit, config_->give_up_after / 2);
    }
    return false;
  }
  if (frame.type == wire::FrameType::close) return frame.close != wire::CloseReason::done;
  if (frame.type == wire::FrameType::retry) {
    on_retry(frame.cookie, now);
    return false;
  }
  if (frame.type != wire::FrameType::accept) return false;
  if (is_sealed_ && (header.flags & wire::sealed) == 0) {
    ++links_->stats->forged_packets;
    return false;
  }
  if (frame.connect.source_connection == 0 || frame.connect.max_packet < wire::kSmallestPacket) {
    ++links_->stats->malformed_packets;
    return false;
  }
  if (!wire::is_right_choice(frame.connect)) {
    ++links_->stats->downgrades;
    fail(Status::version);
    return false;
  }
  return true;
}

void Connection::on_half_open(const wire::Header& header, const RxPacket& packet) {
  if (header.connection != 0) {  // the packet has the tag from ACCEPT, or is sealed with keys derived from ACCEPT
    is_half_open_ = false;
    if (!is_proven_) --links_->stats->half_open;
    is_proven_ = true;
    ends_at_ = state_ == State::draining ? ends_at_ : Nanos::never();
    return;
  }
  const auto bytes = packet.bytes.size() + packet.tail.size() + packet.virtual_bytes;
  constexpr std::uint32_t max = 1U << 20;
  allowance_ = std::min(allowance_ + kBytesPerUnprovenByte * static_cast<std::uint32_t>(bytes), max);
}

// RETRY shows that the peer has received CONNECT but stored nothing about it. So CONNECT is sent again, with the
// cookie. Packets sent so far are no longer tracked, and do not count as lost.
void Connection::on_retry(std::uint64_t cookie, Nanos now) {
  if (has_cookie_ && cookie == cookie_) return;
  cookie_ = cookie;
  has_cookie_ = true;
  // Forged RETRYs must neither cause CONNECT to be sent again and again, nor suppress the server's cookie. After the
  // first few RETRYs, the latest cookie is sent with the CONNECT that the probe timeout repeats.
  if (retries_left_ == 0) return;
  --retries_left_;
  due_.connect = true;
  sent_.give_up(*config_, now);
}

bool Connection::on_control(const wire::Frame& frame, const wire::Header& header, Arrival& arrival, Nanos now) {
  arrival.eliciting = true;
  switch (frame.type) {
    case wire::FrameType::data:
    case wire::FrameType::ack:
      break;  // handled by take_frames()
    case wire::FrameType::credit:
      if (!frame.credit.final)
        raise_credit(frame.credit.messages);
      else if (!sends_.end_credit(frame.credit.messages))
        ++links_->stats->malformed_packets;
      drop_unsendable();
      maybe_close();
      break;
    case wire::FrameType::trimmed:
      arrival.eliciting = false;
      if (state_ != State::connecting) on_trimmed(frame.trimmed, now);
      break;
    case wire::FrameType::ping:
      arrival.question = true;
      break;
    case wire::FrameType::connect:  // the peer has repeated its CONNECT, perhaps with more credit
    case wire::FrameType::token:    // follows CONNECT; the shard has checked the cookie
      if (header.connection != 0) {
        ++links_->stats->malformed_packets;
        return false;
      }
      if (frame.type == wire::FrameType::token) break;
      raise_credit(frame.connect.credit);
      due_.accept = true;  // the peer has not received ACCEPT, even if packets were acknowledged
      break;
    case wire::FrameType::accept:
      on_accepted(frame.connect);
      break;
    case wire::FrameType::key:  // open() has processed this frame
    case wire::FrameType::padding:
      break;
    case wire::FrameType::retry:  // a late RETRY: ACCEPT has already arrived
      return false;
    case wire::FrameType::reset:  // never valid in a packet to a connection
      ++links_->stats->malformed_packets;
      return false;
    case wire::FrameType::close:
      arrival.at_once = true;
      return on_close(frame.close, now);
  }
  return true;
}

void Connection::on_accepted(const wire::ConnectFrame& peer) {
  if (state_ == State::connecting) {
    state_ = State::open;
    ends_at_ = Nanos::never();
    due_.connect = false;
    peer_connection_ = peer.source_connection;
    peer_tag_ = peer.tag;
    agree_on_max_packet(peer.max_packet);
    agree_on_paths(peer.version, peer.paths);
    push({.kind = Completion::Kind::connected, .connection = id_});
    // Until the server knows that its ACCEPT has arrived, it may send very little. So the client sends a PING, repeated
    // until acknowledged, even if it has nothing else to send.
    due_.ping = true;
  }
  raise_credit(peer.credit);
}

bool Connection::on_close(wire::CloseReason reason, Nanos now) {
  if (state_ == State::connecting) {
    fail(refusal_of(reason));
    return false;
  }
  if (state_ == State::draining) return true;
  if (reason == wire::CloseReason::aborted || reason == wire::CloseReason::idle ||
      reason == wire::CloseReason::violation) {
    fail(reason == wire::CloseReason::aborted ? Status::aborted
         : reason == wire::CloseReason::idle  ? Status::unreachable
                                              : Status::violation);
    return false;
  }
  // The peer has sent its last acknowledgement, with this CLOSE or before it. So messages that the peer reported as
  // whole are complete.
  complete_whole();
  complete_all(Status::closed);
  // Simultaneous close by both ends is a normal close.
  push({.kind = Completion::Kind::closed, .status = Status::ok, .connection = id_});
  drain(now);
  return true;
}

void Connection::raise_credit(std::uint32_t messages) {
  if (!sends_.raise_credit(messages, state_ == State::open)) ++links_->stats->malformed_packets;
}

void Connection::on_data(const wire::DataFrame& frame, const wire::Header& header, Arrival& arrival) {
  arrival.eliciting = true;
  arrival.data = true;
  if (state_ == State::closing) [[unlikely]] {
    // Our CLOSE already reported what we received; accepting more now would make the two ends disagree.
    arrival.refused = true;
    return;
  }
  HoleLedger holes{links_->stats->hole_bytes, links_->reassembly_bytes, hole_bytes_};
  const MessageReceiver::Taken taken = receives_.on_data(
      frame, holes, [&](const MessageReceiver::Message& message) { complete_receive(message, header); });
  if (MessageReceiver::refused(taken)) [[unlikely]] {
    arrival.refused = true;
    count_refused(taken);
    return;
  }
  arrival.news = arrival.news || taken != MessageReceiver::Taken::nothing_new;
  arrival.finished = arrival.finished || taken == MessageReceiver::Taken::oldest_whole;
}

void Connection::count_refused(MessageReceiver::Taken why) {
  if (why == MessageReceiver::Taken::beyond_credit) {
    ++links_->stats->beyond_credit;
    // A buffer that was announced to the peer has been withdrawn, and no other buffer will replace it. So send the
    // final credit again.
    if (state_ == State::flushing && !receives_.credit_in_flight()) receives_.on_credit_lost();
  }
  if (why == MessageReceiver::Taken::malformed) ++links_->stats->malformed_packets;
  if (why == MessageReceiver::Taken::too_many_holes) ++links_->stats->beyond_holes;
}

void Connection::complete_receive(const MessageReceiver::Message& message, const wire::Header& header) {
  Completion completion{.kind = Completion::Kind::received,
                        .status = message.total > message.capacity ? Status::truncated : Status::ok,
                        .connection = id_,
                        .tag = message.tag,
                        .bytes = message.total};
  if ((header.flags & wire::has_job) != 0) {
    completion.has_job = true;
    completion.job = header.job.job;
    completion.iteration = header.job.iteration;
  }
  push(completion);
}

// ---- Acknowledgements ----

bool Connection::on_ack(const wire::AckFrame& frame, const wire::Header& header, Nanos now) {
  if (sent_.is_false_ack(frame, acks_ahead_, [this](const Chunk& chunk) { requeue(chunk); })) [[unlikely]] {
    on_violation(now);
    return false;
  }
  if (frame.has_credit) raise_credit(frame.credit);
  if (batch_ == nullptr) batch_ = links_->acks->take();
  if (frame.has_whole) sends_.on_whole(frame.whole);
  cc::AckSample& sample = batch_->sample;
  const std::uint32_t packets_before = sample.acked_packets;
  const Bytes bytes_before = sample.acked_bytes;
  batch_->rtt_bytes = 0;
  const bool honest = sent_.on_ack(
      frame, *batch_, links_->acks->news, own_paths(), now, [&](const Chunk& chunk) { on_acked_chunk(chunk, now); },
      [this] { return state_ == State::dead; });
  if (!honest) [[unlikely]] {
    on_violation(now);
    return false;
  }
  if (state_ == State::dead) return true;
  if (sample.acked_packets > packets_before) {
    batch_->has_acks = true;
    if (sample.acked_bytes > bytes_before) [[likely]]  // an acknowledged size probe is not progress
      sent_.on_progress(now);
    sample.hops = frame.hops;
    if (ForwardDelay* const forward = forward_delay();
        forward != nullptr && header.arrival() != 0 && batch_->rtt_bytes > 0) {
      constexpr std::uint32_t almost_full = 64;  // what the last frame of a full packet may leave free
      batch_->forward_queue =
          forward->queue(header.arrival(), now - sample.latest_rtt, batch_->rtt_bytes + almost_full >= max_packet_,
                         links_->jobs[job_].turns->measurement());
    }
    if (config_->check_peer) sample.endpoint_delay = Nanos(0);
    if (config_->ecn)
      count_marks(frame, sample.acked_packets - packets_before, sample.acked_bytes - bytes_before, sample);
  }
  complete_sends(now);  // messages complete in order, although an ACK's ranges are processed in descending order
  return true;
}

void Connection::count_marks(const wire::AckFrame& frame, std::uint32_t newly_acked, Bytes newly_acked_bytes,
                             cc::AckSample& sample) {
  const std::uint64_t largest = frame.ranges[0].last;
  if (ecn_.awaits_test()) [[unlikely]]
    ecn_.on_acks(sent_, largest);
  // If a newer acknowledgement has already arrived, the counts of this one are outdated. `largest` is above
  // largest_acked() if it is the number of a packet that requests no acknowledgement.
  const EcnFeedback::Acknowledged acked{newly_acked, newly_acked_bytes, largest, sent_.next_number()};
  if (largest == sent_.largest_acked() || (config_->check_peer && largest > sent_.largest_acked()))
    stats_.ce_packets += ecn_.on_counts(frame.ecn, acked, config_->check_peer, sample);
  else if (config_->check_peer)
    stats_.ce_packets += ecn_.on_older(acked, sample);
  // A peer may hide marks, or pretend that the path carries none. Then only losses would show the queue on the path,
  // much later than marks show the queue to other connections. So a long round trip, which the peer cannot hide, counts
  // as a mark. kWokenUp allows for the time to wake up a sleeping thread, which is not time in a queue.
  if (ecn_.works() || !config_->check_peer || !controller_.algorithm().capabilities.needs_ecn) [[likely]]
    return;
  const Nanos min = sent_.rtt().minimum();
  if (ecn_.average_round_trip(sent_.rtt().latest()) > std::max(min * kRoundTripsOfQueue, min + kWokenUp)) {
    sample.ce_packets = sample.acked_packets;
    sample.ce_bytes = sample.acked_bytes;
  }
}

// An honest peer never acknowledges a packet that it cannot have received. A peer that does so would get more and more
// bandwidth, at the expense of all other connections on its path.
void Connection::on_violation(Nanos now) {
  if (state_ == State::draining) return;  // the connection is already ending
  ++links_->stats->violations;
  if (links_->violators != nullptr) links_->violators->add(remote_, now);
  end(Status::violation, wire::CloseReason::violation, now);
}

void Connection::on_acked_chunk(const Chunk& chunk, Nanos now) {
  if (chunk.kind == ChunkKind::data) [[likely]] {
    if (!sends_.outstanding(chunk.message)) return;
    const Bytes newly = sends_.on_acked(chunk);
    if (job_ != kNoJob) links_->jobs[job_].on_delivered(now, newly);
  } else if (chunk.kind == ChunkKind::close && state_ == State::closing) {
    complete_all(Status::closed);
    push({.kind = Completion::Kind::closed, .connection = id_});
    state_ = State::dead;
  } else if (chunk.kind == ChunkKind::credit) {
    receives_.on_credit_acked();
  } else if (chunk.kind == ChunkKind::size_probe) {
    on_size_verdict(mtu_.on_probe_acked(chunk.length, now));
  }
}

void Connection::complete_sends(Nanos now) {
  while (sends_.front_acked()) {
    if (!sends_.front_whole()) [[unlikely]] {
      check_front(now);
      return;
    }
    const MessageSender::Message& message = sends_.front();
    if (message.data != nullptr && !links_->tx->empty()) links_->tx->drop_message(&remote_, sends_.begin());
    push_sent(message, Status::ok);
    sends_.pop_front();
    maybe_close();
  }
}

void Connection::complete_whole() {
  while (sends_.front_reported()) {
    const MessageSender::Message& message = sends_.front();
    if (message.data != nullptr && !links_->tx->empty()) links_->tx->drop_message(&remote_, sends_.begin());
    push_sent(message, Status::ok);
    sends_.pop_front();
  }
}

void Connection::check_front(Nanos now) {
  switch (sends_.check_front(sent_.next_number(), sent_.largest_acked())) {
    case MessageSender::FrontStep::ask:
      due_.ping = true;
      break;
    case MessageSender::FrontStep::wait:
      break;
    case MessageSender::FrontStep::repaired:
      ++stats_.repaired_messages;
      break;
    case MessageSender::FrontStep::failed:
      abort(now);
      break;
  }
}

void Connection::end_of_batch(Nanos now) {
  const AckBatch* const batch = std::exchange(batch_, nullptr);
  if (batch == nullptr || !batch->has_acks || state_ == State::dead) return;
  cc::AckSample sample = batch->sample;
  // Responses to spurious losses are undone before new losses are detected.
  if (sent_.undo_losses()) controller_.on_spurious_congestion(now);
  const bool persistent = detect_losses(now, sample.ce_packets);
  // CE marks that arrive together with persistent congestion belong to the same event, which has already reduced the
  // window to its minimum.
  if (sample.ce_packets > 0 && sent_.responds_to(batch->largest_acked) && !persistent) {
    sent_.begin_recovery();
    on_congestion(cc::CongestionEvent::Cause::ecn, now);
  }
  sample.now = now;
  if (may_raise_size_) [[unlikely]] {
    mtu_.look(now);
    on_size_verdict(PathMtu::Verdict::nothing);
  }
  if (sample.acked_bytes == 0) [[unlikely]] {  // only a size probe was acknowledged
    sent_.forget_finished(*config_, now);
    return;
  }
  sent_.complete(sample, batch->largest_acked);
  if (job_ != kNoJob) {
    JobState& job = links_->jobs[job_];
    if (job.turns != nullptr && job.turns->on_queue({.now = now,
                                                     .delay = batch->forward_queue,
                                                     .min_rtt = sample.min_rtt,
                                                     .packets = sample.acked_packets,
                                                     .packet_bytes = max_packet_ + links_->limits.overhead_bytes,
                                                     .is_marked = sample.ce_packets > 0}))
      job.pace();
    add_gain(sample, job);
  }
  controller_.on_ack(sample);
  if (!sample.delivery_rate.is_zero()) {
    delivery_rate_ = sample.delivery_rate;
    app_limited_ = sample.app_limited;
  }
  if (config_->adapt_ack_ratio && job_ == kNoJob)
    ack_ratio_flags_ = wire::ask_ack_ratio(ack_ratio(
        delivery_rate_, std::min(sample.bytes_in_flight_before, static_cast<Bytes>(controller_.output().cwnd_bytes)),
        max_packet_));
  update_pacing();
  sent_.forget_finished(*config_, now);
}

void Connection::add_gain(cc::AckSample& sample, const JobState& job) const {
  sample.gain = job.gain();
  if (job.turns != nullptr && job.turns->is_short()) return;
  const cc::Augmentation& augmentation = job.augmentation;
  sample.decrease_gain = augmentation.decrease_gain();
  if (!controller_.algorithm().capabilities.timed_increase) return;
  if (job.turns != nullptr && job.turns->meets_steady_traffic()) {
    sample.gain = 1;  // larger steps would take a share from traffic that never waits
    return;
  }
  sample.gain = job.overtakes() ? augmentation.over_min(sample.gain) : augmentation.gain_over_min();
  // Waiting separates bursts soon enough without steps that grow with the line rate, which harm other traffic.
  if (!augmentation.takes_turns()) sample.iteration_bytes = augmentation.known_iteration_bytes();
}

void Connection::update_pacing() {
  const cc::Output& output = controller_.output();
  const RttEstimator& rtt = sent_.rtt();
  Rate rate = output.pacing_rate;
  if (rate.is_zero() && rtt.has_sample())
    rate = Rate(static_cast<std::uint64_t>(1.25 * output.cwnd_bytes * 8e9 /
                                           static_cast<double>(std::max<std::int64_t>(rtt.smoothed().count, 1))));
  const bool at_most = !config_->max_rate.is_zero() && (rate.is_zero() || config_->max_rate < rate);
  if (at_most) rate = config_->max_rate;
  // A rate computed from the window counts UDP payload bytes. max_rate, and the rate of a rate-based algorithm, count
  // bytes on the wire.
  const bool of_wire = at_most || controller_.algorithm().capabilities.rate_based;
  paced_overhead_ = of_wire ? links_->limits.overhead_bytes : 0;
  const Nanos quantum =
      links_->limits.batch > 1 ? std::max(config_->pacing_quantum, kBatchTime) : config_->pacing_quantum;
  pacer_.set(rate, Bytes{kPacingBurstPackets} * max_packet_, quantum);
}

void Connection::on_trimmed(const wire::TrimmedFrame& frame, Nanos now) {
  const SentPackets::Losses losses =
      sent_.on_trimmed(frame, own_paths(), [&](const Chunk& chunk) { on_lost_chunk(chunk, now); });
  if (losses.packets == 0) return;
  sent_.on_progress(now);
  respond(losses, 0, now);
}

bool Connection::detect_losses(Nanos now, std::uint32_t ce_packets) {
  const SentPackets::Losses losses =
      sent_.detect_losses(*config_, own_paths(), now, [&](const Chunk& chunk) { on_lost_chunk(chunk, now); });
  if (size_changed_ && change_size(losses)) [[unlikely]]
    return false;
  if (losses.packets == 0) return false;
  if (sent_.long_lost() >= kSuspiciousLosses) [[unlikely]]
    check_size(now);
  return respond(losses, ce_packets, now);
}

bool Connection::respond(const SentPackets::Losses& losses, std::uint32_t ce_packets, Nanos now) {
  const bool congestion =
      losses.by_paths < losses.packets && controller_.is_congestion({.now = now,
                                                                     .packets = losses.packets - losses.by_paths,
                                                                     .ce_packets = ce_packets,
                                                                     .smoothed_rtt = sent_.rtt().smoothed(),
                                                                     .min_rtt = sent_.rtt().minimum(),
                                                                     .ecn_works = config_->ecn && ecn_.works()});
  const SentPackets::Verdict verdict = sent_.judge(losses, congestion, *config_);
  if (verdict.congestion) on_congestion(cc::CongestionEvent::Cause::loss, now);
  if (verdict.persistent) {
    ++stats_.persistent_congestions;
    controller_.on_timeout(now);
  }
  return verdict.persistent;
}

void Connection::on_congestion(cc::CongestionEvent::Cause cause, Nanos now) {
  ++stats_.congestion_events;
  const double decrease_gain = job_ == kNoJob ? 1.0 : links_->jobs[job_].decrease_gain();
  controller_.on_congestion({now, cause, sent_.in_flight(), decrease_gain});
}

void Connection::requeue(const Chunk& chunk) {
  switch (chunk.kind) {
    case ChunkKind::data:
      sends_.on_lost(chunk);
      break;
    case ChunkKind::connect:
      due_.connect = state_ == State::connecting;
      break;
    case ChunkKind::accept:
      due_.accept = state_ != State::draining;
      break;
    case ChunkKind::credit:
      receives_.on_credit_lost();
      break;
    case ChunkKind::close:
      due_.close = state_ == State::closing;
      break;
    case ChunkKind::ping:
    case ChunkKind::size_probe:
      break;
  }
}

void Connection::on_lost_chunk(const Chunk& chunk, Nanos now) {
  if (chunk.kind != ChunkKind::size_probe) [[likely]] {
    requeue(chunk);
    return;
  }
  ++links_->stats->size_probes_lost;
  if (mtu_.is_suspect() && sent_.longest_acked() >= mtu_.size()) mtu_.on_carried(now);
  on_size_verdict(mtu_.on_probe_lost(chunk.length, static_cast<std::uint8_t>(chunk.offset), now));
}

// ---- Sending ----

Connection::Blocked Connection::build(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet) {
  if (state_ == State::dead) return Blocked::nothing;
  held_until_ = Nanos::never();
  if (size_probe_due_ && may_probe_size() && build_size_probe(now, buffer, packet)) [[unlikely]]
    return Blocked::no;
  const bool ack_due = received_.ack_due(now);
  const bool probing = sent_.probing();
  const Blocked blocked = data_blocked(now);
  // ACCEPT is not encrypted, because the peers need its contents to derive the keys. So encrypted frames cannot share a
  // packet with ACCEPT.
  bool greets = is_sealed_ && greets_next();
  bool with_data = blocked == Blocked::no && !greets;
  if (aborted_) [[unlikely]]
    repeat_close(now);
  if (!with_data && !ack_due && !control_due()) return blocked == Blocked::no ? Blocked::nothing : blocked;
  if (state_ == State::connecting && (!due_.connect || is_held_off(now))) return Blocked::nothing;
  if (sent_.full(*config_)) [[unlikely]] {
    sent_.make_room([&](const Chunk& chunk) { on_lost_chunk(chunk, now); });
    greets = is_sealed_ && greets_next();  // make_room() may have requeued ACCEPT
    with_data = with_data && !greets;
  }

  const std::size_t max = packet_limit();
  if (max == 0) [[unlikely]]
    return Blocked::nothing;
  bool withheld = false;
  if (sent_.skip_is_due()) [[unlikely]] {
    withheld = with_data && !probing && may_withhold();
    if (!withheld) sent_.skip_number(*links_->random);
  }

  Draft draft{.writer = wire::Writer(buffer.first(max))};
  wire::Header header = next_header();
  // ACCEPT comes first, because a client ignores everything before it. CLOSE comes after an ACK that covers all packets
  // received so far, because data that arrives later is refused.
  const bool closes = due_.close;
  write_control(draft, with_data);
  if (has_trimmed_ && draft.writer.free_bytes() >= wire::kTrimmedFrameBytes) [[unlikely]] {
    draft.writer.trimmed(trimmed_);
    has_trimmed_ = false;
  }
  if ((received_.owes_ack() || (closes && !aborted_)) && state_ != State::connecting)
    write_ack(draft.writer, closes ? wire::kCloseFrameBytes : 0, withheld, now);
  if (closes) write_close(draft);
  if (with_data) write_data(draft, packet, now);
  const bool eliciting = draft.chunks > 0;
  if (!eliciting && draft.writer.used() == wire::kHeaderBytes) return Blocked::nothing;

  const auto bytes = static_cast<std::uint32_t>(draft.writer.used() + packet.payload.size());
  if (own_has_paths_) [[unlikely]]
    packet.path = choose_path(eliciting);
  if (eliciting) {
    const bool more = has_data();
    // With a window below two packets, the peer would delay its acknowledgement to wait for a packet that cannot be
    // sent. Before the peer's address is proven, packet_limit() may prevent the next packet in the same way.
    if (!more || probing || !is_proven_ || controller_.output().cwnd_bytes < 2.0 * max_packet_ || needs_ack_now())
      header.flags |= wire::ack_now;
    if (probing) sent_.on_probe_sent();
    if (withheld) [[unlikely]]
      sent_.on_withheld(draft.chunks, *links_->random, now);
    else
      sent_.on_sent(bytes, draft.chunks, packet.path, now);
    if (!more) sent_.on_app_limited();
  } else {
    sent_.on_sent_bare(*config_, now);
  }
  header.span = sent_.span();
  if (with_data)
    mark_data(header, bytes, now);
  else if (received_.next() > 0)
    header.set_arrival(received_.highest_time());
  if (withheld && eliciting) [[unlikely]] {
    packet = {};
    return build(now, buffer, packet);
  }
  bytes_sent_ += bytes;
  if (!is_proven_) allowance_ -= std::min(allowance_, bytes);
  if (draft.retransmission) ++stats_.retransmitted_packets;
  finish(draft, header, buffer, packet, greets);
  packet.ecn = config_->ecn && ecn_.is_used() && eliciting ? Ecn::ect0 : Ecn::not_ect;
  // Sealed connections are not tested, because the ECN field is not sealed. An attacker on the path could change it and
  // so make an honest peer with the key look like a violator.
  if (packet.ecn != Ecn::not_ect && config_->check_peer && !is_sealed_ && with_data && links_->random != nullptr &&
      ecn_.is_test(header.packet_number, sent_, *links_->random))
    packet.ecn = Ecn::ce;
  return Blocked::no;
}

// A peer that has restarted answers to the packet's source port, at which this end hears only with path value 0. So
// some probes have this value.
std::uint8_t Connection::choose_path(bool eliciting) {
  if (is_half_open_ || (sent_.probe_timeouts() % 2 == 1)) return 0;
  return eliciting ? paths_->next(sent_) : paths_->next_unacknowledged();
}

// If the peer is not trusted (check_peer), the acknowledgement delay that it reports is not used. So an acknowledgement
// must not wait for the next packets of a slow flow.
bool Connection::needs_ack_now() const {
  return config_->check_peer && controller_.algorithm().capabilities.by_delay &&
         sent_.rtt().smoothed().seconds() * max_packet_ >
             controller_.output().cwnd_bytes * (config_->max_ack_delay / 4).seconds();
}

// A packet is withheld only while other packets are in flight and more of its message will follow, so that later
// packets reveal the loss at once.
bool Connection::may_withhold() const {
  constexpr Bytes packets_behind = 4;
  return config_->check_peer && state_ == State::open && is_proven_ && sent_.in_flight_packets() > 0 &&
         !sends_.has_lost() && has_new_data() && sends_.next_unsent() > packets_behind * max_packet_ &&
         sent_.may_withhold(*links_->random);
}

void Connection::seal(Draft& draft, wire::Header& header, std::span<std::byte> buffer, BuiltPacket& packet,
                      bool greets) {
  PacketSeal& seal = *sealing_->seal;
  const bool greeting = state_ == State::connecting;
  const bool clear = greets || !seal.encrypts();
  PacketSeal::Epoch epoch;
  if (!greeting)
    epoch = seal.next_epoch(header.packet_number, sent_.any_acked() ? sent_.largest_acked() : ~std::uint64_t{0});
  // A new epoch of the traffic key can begin only after an acknowledgement. The peer does not acknowledge pure
  // acknowledgements, so send a PING.
  if (epoch.overdue && sent_.in_flight_packets() == 0 && may_send_messages()) [[unlikely]]
    due_.ping = true;
  header.flags |= static_cast<std::uint8_t>(wire::sealed | (clear ? wire::clear : 0) | (epoch.bit ? wire::epoch : 0));
  const std::span<std::byte> bytes = draft.writer.finish_unsealed(header);
  const std::span<std::byte> frames = bytes.subspan(wire::kHeaderBytes);
  const bool is_real = packet.payload.data() != nullptr;
  const SealedPacket sealed{header.packet_number,
                            epoch.bit,
                            clear,
                            wire::sealed_parts(bytes),
                            {frames, is_real ? packet.payload : std::span<const std::byte>()}};
  sealing_->last = greeting ? seal.seal_greeting(sealed) : seal.seal(sealed, frames.data());
  std::memcpy(bytes.data() + wire::kSealOffset, sealing_->last.data(), sealing_->last.size());
  packet.header = bytes;
  if (clear || !is_real) return;
  packet.header = buffer.first(bytes.size() + packet.payload.size());
  packet.payload = {};
}

std::size_t Connection::unproven_packet_limit() const {
  // Control frames are written without a check for room, so the packet must have room for all of them. ACK and DATA
  // check for room themselves.
  constexpr std::size_t control =
      wire::kHeaderBytes + wire::kCreditFrameBytes + wire::kPingFrameBytes + wire::kCloseFrameBytes;
  const std::size_t accept = wire::kAcceptFrameBytes + (!is_sealed_ ? 0 : wire::kKeyFrameBytes);
  const std::size_t min = due_.accept ? control + accept : control;
  return allowance_ < min ? 0 : std::min<std::size_t>(max_packet_, allowance_);
}

bool Connection::is_held_off(Nanos now) {
  if (links_->violators == nullptr || !links_->violators->holds_off(remote_, now)) return false;
  const Nanos left = config_->give_up_after - sent_.silence(now);
  if (left <= Nanos()) fail(Status::violation);
  held_until_ = std::min(links_->violators->until(remote_), now + left);
  return true;
}

Connection::Blocked Connection::data_blocked(Nanos now) {
  const Blocked gate = gate_blocked(now);
  if (has_data()) {
    credit_probe_ = Nanos::never();
    return sent_.probing() ? Blocked::no : window_blocked(now);
  }
  if (!may_send_messages() || !sends_.waits_for_credit())
    credit_probe_ = Nanos::never();
  else if (credit_probe_.is_never())
    credit_probe_ = now + SentPackets::kMaxProbeInterval;
  return gate;
}

Connection::Blocked Connection::gate_blocked(Nanos now) {
  if (job_ == kNoJob || !links_->jobs[job_].gate.pending()) return Blocked::nothing;
  PhaseGate& gate = links_->jobs[job_].gate;
  if (!may_send_messages() || !sends_.has_credited() || sends_.next_round() != gate.round()) return Blocked::nothing;
  const Nanos opens = gate.opens_at(now);
  if (opens <= now) return Blocked::nothing;
  held_until_ = opens;
  return Blocked::gate;
}

Connection::Blocked Connection::window_blocked(Nanos now) {
  const Bytes in_flight = sent_.in_flight();
  double window = controller_.output().cwnd_bytes;
  // The window of a rate-based algorithm is only an upper bound of several round trips of data. Packets that reordering
  // delays are in flight in addition to this data.
  if (sent_.reordering_window() > Nanos(0) && controller_.algorithm().capabilities.rate_based) [[unlikely]]
    window += static_cast<double>(controller_.output().pacing_rate.bytes_in(sent_.reordering_window()));
  const bool full = static_cast<double>(in_flight + max_packet_) > window;
  const bool reducing = full && sent_.reduction_allows(max_packet_, window);
  if (in_flight > 0 && !reducing &&
      (full || (links_->limits.batch > 1 && gathers(static_cast<Bytes>(window) - in_flight)))) {
    in_batch_ = false;
    sent_.on_window_limited();
    return Blocked::window;
  }
  if (sent_.in_flight_packets() >= config_->max_packets_in_flight) return Blocked::window;
  if (const Nanos ready = pacer_.ready_at(now); ready > now) {
    held_until_ = std::min(held_until_, ready);
    return Blocked::pacing;
  }
  if (job_ != kNoJob && links_->jobs[job_].pacer.ready_at(now) > now) return Blocked::job_pacing;
  return Blocked::no;
}

// Defers data until a batch can be sent at once, as TCP does for segmentation offload. Batches also make
// acknowledgements arrive in larger steps, because the receiver acknowledges a received batch at once.
bool Connection::gathers(Bytes free_bytes) {
  if (in_batch_ || sends_.has_lost() || sends_.next_unsent() <= free_bytes) return false;
  const double paced = pacer_.rate().is_zero() ? 0
                                               : static_cast<double>(kBatchTime.count) * 1e-9 / 8 *
                                                     static_cast<double>(pacer_.rate().bits_per_second);
  const double batch = std::min(
      {static_cast<double>(links_->limits.batch) * max_packet_, paced, kBatchShare * controller_.output().cwnd_bytes});
  in_batch_ = static_cast<double>(free_bytes) >= batch;
  return !in_batch_;
}

void Connection::repeat_close(Nanos now) {
  if (now < abort_copy_at_) return;
  due_.close = true;
  abort_copy_at_ =
      --abort_copies_left_ > 0 ? now + std::min(sent_.probe_timeout(*config_), kLongestBetweenCopies) : Nanos::never();
}

void Connection::write_ack(wire::Writer& writer, std::size_t reserved, bool withheld, Nanos now) {
  // Before the peer's address is proven, the packet may be too short for an ACK.
  const std::size_t min = wire::kAckFrameBytes + wire::kAckCreditBytes + (has_paths_ ? wire::kAckMarksBytes : 0);
  if (writer.free_bytes() < min + reserved) return;
  wire::AckFrame frame;
  received_.fill(frame, now);
  const std::size_t ranges = 1 + (writer.free_bytes() - min - reserved) / wire::kAckRangeBytes;
  frame.range_count = static_cast<std::uint32_t>(std::min<std::size_t>(frame.range_count, ranges));
  if (has_paths_) [[unlikely]]
    frame.marks = paths_->marks();
  frame.has_whole = true;
  frame.whole = static_cast<std::uint32_t>(receives_.whole());
  // Credit in an ACK is sent unreliably, but a lost ACK never leaves the sender waiting for ever:
  // - An ACK is written only if eliciting packets have arrived since the last ACK. These packets stay in flight at the
  //   sender until it receives this ACK or a later one, which has at least as much credit. If it receives neither, its
  //   probe timeout sends a packet that elicits another ACK.
  // - Credit for buffers posted after the last ACK is sent in a CREDIT frame as soon as the earlier credit is used up
  //   or half of the buffers are new. The CREDIT frame is repeated until acknowledged.
  // - A sender that has a message, no credit and nothing in flight sends a PING every second.
  //
  // The ACK contains no credit if the peer certainly knows the current credit, for example in the middle of a long
  // message. An earlier ACK with this credit is no proof, because it may be lost.
  if (acks_carry_credit()) {
    frame.has_credit = !receives_.credit_known();
    frame.credit = static_cast<std::uint32_t>(receives_.posted());
    receives_.on_sent_in_ack();
  }
  if (frame.range_count > 0) writer.ack(frame);
  if (!withheld) [[likely]]
    received_.on_ack_sent();
}

void Connection::write_control(Draft& draft, bool with_data) {
  const auto greeting = [this] {
    return wire::ConnectFrame{.version = version_,
                              .max_packet = static_cast<std::uint16_t>(mtu_.agreed()),
                              .source_connection = id_,
                              .credit = static_cast<std::uint32_t>(receives_.posted()),
                              .tag = tag_,
                              .paths = version_ < wire::kVersionWithPaths ? 1 : paths_of(*config_, links_->limits)};
  };
  if (due_.connect) {
    draft.writer.connect(greeting());
    if (is_sealed_) draft.writer.key({sealing_->seal->key_id(), sealing_->seal->own()});
    if (has_cookie_) draft.writer.token(cookie_);
    carry(draft, {.kind = ChunkKind::connect});
    due_.connect = false;
    receives_.on_sent_in_greeting();
  }
  if (due_.accept && state_ != State::draining) {
    draft.writer.accept(greeting());
    if (is_sealed_) draft.writer.key({sealing_->seal->key_id(), sealing_->seal->own()});
    carry(draft, {.kind = ChunkKind::accept});
    due_.accept = false;
    receives_.on_sent_in_greeting();
  }
  // Credit that is not urgent waits for a packet with data, because a packet that contains only credit would need an
  // acknowledgement of its own. If an ACK is due, it carries the credit instead, see write_ack().
  const bool ack_takes_it = received_.owes_ack() && acks_carry_credit();
  if (may_send_messages() && !ack_takes_it && (credit_urgent() || (receives_.credit_due() && with_data))) {
    const bool final = state_ == State::flushing;
    draft.writer.credit({.messages = static_cast<std::uint32_t>(receives_.posted()), .final = final});
    carry(draft, {.kind = ChunkKind::credit});
    receives_.on_sent_in_credit(final);
  }
  if (due_.ping) {
    draft.writer.ping();
    carry(draft, {.kind = ChunkKind::ping});
    due_.ping = false;
  }
}

void Connection::write_close(Draft& draft) {
  draft.writer.close(aborted_ ? abort_reason_ : wire::CloseReason::done);
  carry(draft, {.kind = ChunkKind::close});
  due_.close = false;
  close_built_ = aborted_;
  if (aborted_ && is_half_open_) ends_at_ = Nanos(0);  // the slot is free once this packet has been sent
}

void Connection::write_data(Draft& draft, BuiltPacket& packet, Nanos now) {
  if (sent_.end_idle(*config_, now)) [[unlikely]] {
    controller_.on_idle_restart(now);
    update_pacing();
    ack_ratio_flags_ = 0;  // the restart after an idle period has reduced the window
  }
  fill_data(draft, packet);
  const std::uint32_t kept_from = links_->limits.keeps_payload_from;
  const bool is_copied = is_sealed_ && sealing_->seal->encrypts();
  if (kept_from > 0 && packet.payload.size() >= kept_from && packet.payload.data() != nullptr && !is_copied) {
    PayloadHolds::Number& hold = sends_[packet.message].hold;
    if (hold == PayloadHolds::kNone) hold = links_->holds->take();
    packet.hold = (*links_->holds)[hold];
  }
  if (job_ != kNoJob) links_->jobs[job_].on_send(now);
}

// A message is not cut into pieces shorter than smallest_piece. But a shorter message, or the rest of a message, may
// fill up the packet.
bool Connection::has_space_for_data(std::size_t free_bytes) const {
  constexpr std::size_t smallest_piece = 64;
  if (free_bytes >= wire::kDataFrameBytes + smallest_piece) return true;
  return !sends_.has_lost() && has_new_data() && free_bytes >= wire::kDataFrameBytes + sends_.next_unsent();
}

void Connection::fill_data(Draft& draft, BuiltPacket& packet) {
  // Short pieces are copied one after the other into a packet. A longer piece ends the packet and is gathered from the
  // user's memory. Short pieces of virtual payloads are written as zeros, so that packets have the same sizes as with
  // real bytes.
  constexpr std::size_t copy_limit = 256;
  wire::Writer& writer = draft.writer;
  while (has_space_for_data(writer.free_bytes())) {
    const std::size_t free_bytes = writer.free_bytes() - wire::kDataFrameBytes;
    Chunk chunk;
    if (sends_.take_lost(free_bytes, chunk)) {
      draft.retransmission = true;
    } else {
      if (!has_new_data()) return;
      chunk = sends_.take_new(free_bytes);
    }
    const MessageSender::Message& message = sends_[chunk.message];
    const bool last = Bytes{chunk.offset} + chunk.length == message.length;
    writer.data({.last = last,
                 .message = static_cast<std::uint32_t>(chunk.message),
                 .offset = chunk.offset,
                 .length = chunk.length});
    carry(draft, chunk);
    const std::span<const std::byte> bytes(message.data == nullptr ? nullptr : message.data + chunk.offset,
                                           chunk.length);
    if (chunk.length > copy_limit) {
      packet.message = chunk.message;
      packet.payload = bytes;
      return;
    }
    if (message.data == nullptr)
      writer.zeros(bytes.size());
    else
      writer.copy(bytes.data(), bytes.size());
    if (!config_->pack_messages) return;
    // After many unanswered probes a packet contains only one of the pieces that seem lost. The peer may refuse one of
    // the pieces, and with it the whole packet.
    if (draft.retransmission && sends_.has_lost() && sent_.probe_timeouts() >= kProbesInVain) return;
  }
}

void Connection::mark_data(wire::Header& header, std::uint32_t bytes, Nanos now) {
  header.flags |= ack_ratio_flags_;
  // After a late poll, pacing may catch up on the delay that this poll caused, by at most one round trip. Without this,
  // late polls could reduce the pacing rate below window / RTT. The window would then never be filled, and would not
  // grow at any gain.
  pacer_.on_sent(now, bytes + paced_overhead_, std::min(links_->late, sent_.rtt().smoothed()));
  if (job_ == kNoJob) return;
  JobState& job = links_->jobs[job_];
  header.flags |= wire::has_job;
  header.job = {job.number, static_cast<std::uint16_t>(job.augmentation.tracker.iteration()),
                static_cast<std::uint16_t>(job.augmentation.tracker.bytes_ratio() * 65'535)};
  job.pacer.on_sent(now, bytes + links_->limits.overhead_bytes, std::min(links_->late, job.catch_up));
}

}  // namespace mltcp::transport
