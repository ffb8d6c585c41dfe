// Receives that are granted ahead. If a receive for a long message is already posted, the sender sends the message
// without an announcement. This saves the round trip of RTS and CTS. See worker.h; frames.h defines the frames.
//
// Receiver. A receive is granted when it is posted, under four conditions: it names a connection and a whole tag, it is
// the oldest receive that a message of its tag could match, and its buffer is longer than an EAGER message. The
// transport gets its buffer as the next buffer of the data connection, and the peer gets a GRANT. The receive stays
// posted. On the data connection, either the message arrives in the buffer, or a message of no bytes gives the grant
// back. If a message of the tag is announced or arrives as EAGER before that, it matches the receive. EAGER ends the
// receive at once, because the peer will not use the grant. The transport then no longer writes to the buffer, but the
// buffer still counts in the order of buffers. If the message is announced, the peer may still use the grant. The
// receive is then `reserved` until the grant is used or given back.
//
// Sender. Grants are used in the order of their arrival, because the n-th buffer takes the n-th message. Using a grant
// gives all earlier grants back. The receiver grants the receives of these grants again, a few times. A newly posted
// message uses a stored grant of its tag. When a GRANT arrives, the sender looks for the first message of this tag that
// the peer had not seen when it sent the GRANT, because this message matches the receive. The state of this message
// decides:
//
//   already announced     The grant is the message's CTS. The data waits until the RTS has arrived. Without this wait,
//                         the peer would take the data for another message, which is still to be announced.
//   sent as EAGER         The grant is given back. The same happens if the message was taken back, or was sent so long
//                         ago that it is no longer recorded.
//   held back here        The message is sent now, if it is among the first kMaxLookedAt held messages.
//   no such message       The grant is stored.
//
// A message on the control connection must not overtake a message of the same tag on the data connection. So after a
// message that used a grant, the sender sends USED before the next EAGER or RTS of the tag. When the peer gets USED, it
// takes the granted receive out of matching.
//
// A receive with a time limit is not granted, because the program must have its memory back at the end of the limit,
// whatever the peer does. If cancel() is called for a granted receive, WITHDRAW asks the peer for the grant. The grant
// comes back after all earlier messages on the data connection, and the receive is then cancelled. If nothing arrives
// on the data connection for peer_timeout, the connection ends.
//
// A peer that neither uses a grant nor gives it back blocks only the buffer of the granted receive. A peer that grants
// without having buffers gets none of the messages. At most kMaxAhead of its grants are stored here. They include the
// unused grants, and the grants that were given back but for which the peer's transport has no buffer.
#include <algorithm>
#include <cstring>

#include "mltcp/endpoint/internal/worker.h"

namespace mltcp::endpoint {
namespace {

/// Maximum number of times that a receive's grant is given back. After that, the receive is not granted ahead again,
/// and waits for its message to be announced.
constexpr std::uint8_t kMaxSkips = 4;

/// Maximum number of held sends that are searched for a message of the granted tag.
constexpr int kMaxLookedAt = 64;

/// Returns whether a send uses the grant. A message of no bytes does not use it, because such a message would give the
/// grant back. If a message is too long, the RTS tells the peer the length of the message. A short message that would
/// queue behind others on the data connection is sent as EAGER instead, so that the peer need not wait until the grant
/// comes back.
bool fits(const Tagged& tagged, const Operation& send, Bytes granted) {
  const bool would_queue = send.length <= tagged.eager_limit && tagged.bytes_under_way > tagged.eager_limit;
  return send.length > 0 && send.length <= granted && !would_queue;
}

}  // namespace

// ---- The receiver ----

/// Grants the receive ahead, if it meets the conditions at the top of this file.
void Worker::grant_ahead(Link& link, Operation& receive) noexcept {
  Tagged& tagged = *link.tagged;
  const bool may_be = link.state == Link::State::open && receive.length > tagged.eager_limit &&
                      receive.mask == kWholeTag && receive.connection == link.handle && !receive.has_deadline &&
                      receive.grant == 0 && !receive.ahead.is_withdrawn && receive.ahead.skips < kMaxSkips;
  if (!may_be || tagged.grants_open == kMaxAhead || tagged.free_send_frames.size() <= kKeptForAnswers) return;
  if (matcher_.receive_for(link.handle, receive.tag) != &receive) return;
  if (shard_->receive(link.transport[Link::kData], {receive.data, static_cast<std::size_t>(receive.length)},
                      cookie(Cookie::operation, receive.slot)) != PostResult::ok)
    return;
  receive.grant = ++tagged.grants_given;
  ++tagged.grants_open;
  if (!send_frame(link, {.type = FrameType::grant, .tag = receive.tag, .id = tagged.came, .length = receive.length},
                  nullptr))
    end_unsaid(link);
}

/// Handles a granted receive whose message has arrived or was announced. The receive is no longer posted.
void Worker::reserve(Link& link, Operation& receive, const Frame& frame, std::span<const std::byte> eager) noexcept {
  receive.link = &link;
  receive.stage = Operation::Stage::reserved;
  receive.message_tag = frame.tag;
  receive.message_bytes = frame.length;
  receive.peer_id = frame.id;
  if (receive.ahead.is_withdrawn) set_deadline(receive, Nanos::never());  // too late to cancel the receive
  const bool is_here = frame.type == FrameType::eager;
  if (is_here && shard_->discard_receive(link.transport[Link::kData], cookie(Cookie::operation, receive.slot),
                                         cookie(Cookie::discarded, 0))) {
    receive.grant = 0;
    finish_eager(receive, link, frame.tag, eager);
    return;
  }
  receive.ahead.is_here = is_here;
  const std::size_t fits = std::min<std::size_t>(eager.size(), receive.length);
  if (fits > 0) std::memcpy(receive.data, eager.data(), fits);
}

/// Handles the transport's completion for the buffer of a granted receive.
void Worker::on_ahead(Link& link, Operation& receive, const mltcp::Completion& completion) noexcept {
  Tagged& tagged = *link.tagged;
  const std::uint64_t tag = receive.tag;
  receive.grant = 0;
  --tagged.grants_open;
  receive.link = &link;
  const bool has_come = completion.status == Status::ok || completion.status == Status::truncated;
  if (!has_come || completion.bytes == 0) {
    receive.has_job = false;
    if (link.state != Link::State::ended || receive.ahead.is_here) {
      on_given_back(link, receive);
    } else {
      Cause cause = Cause::none;
      const Code code = code_of(link, completion.status, cause);
      end(receive, receive.ahead.is_withdrawn ? Code::cancelled : code,
          receive.ahead.is_withdrawn ? Cause::here : cause);
    }
    return;
  }
  if (receive.stage == Operation::Stage::posted) unpost(receive);
  if (receive.stage != Operation::Stage::reserved) {
    receive.message_tag = tag;
    receive.message_bytes = completion.bytes;
  }
  const bool is_right = completion.status == Status::ok && !receive.ahead.is_here &&
                        completion.bytes == std::min<Bytes>(receive.message_bytes, receive.length);
  if (!is_right) {
    end(receive, Code::protocol, Cause::wrong_length);
    break_off(link, Cause::wrong_length);
    return;
  }
  end(receive, receive.message_bytes > receive.length ? Code::truncated : Code::ok, Cause::none);
  if (Operation* const next = matcher_.receive_for(link.handle, tag); next != nullptr) grant_ahead(link, *next);
  pump(link);
}

/// Handles the transport's completion for a buffer whose receive was ended by EAGER. Anything but an empty message is
/// an error.
void Worker::on_discarded(Link& link, const mltcp::Completion& completion) noexcept {
  if (link.tagged == nullptr) return;
  --link.tagged->grants_open;
  if (link.state == Link::State::ended) return;
  if (completion.status == Status::truncated || (completion.status == Status::ok && completion.bytes > 0))
    break_off(link, Cause::wrong_length);
  else
    pump(link);
}

/// Handles the end of a grant that was not used.
void Worker::on_given_back(Link& link, Operation& receive) noexcept {
  if (receive.ahead.is_here) {
    end(receive, receive.message_bytes > receive.length ? Code::truncated : Code::ok, Cause::none);
  } else if (receive.stage == Operation::Stage::reserved) {
    receive.stage = Operation::Stage::matched;
    link.tagged->matched.push(receive);
  } else if (receive.ahead.is_withdrawn) {
    unpost(receive);
    receive.message_tag = receive.tag;
    end(receive, Code::cancelled, Cause::here);
  } else {
    ++receive.ahead.skips;
    grant_ahead(link, receive);
  }
  pump(link);
}

/// Asks the peer for the grant of a receive. Used by cancel().
void Worker::ask_back(Operation& receive) noexcept {
  if (receive.ahead.is_withdrawn) return;
  receive.ahead.is_withdrawn = true;
  receive.link->tagged->withdrawals.push(receive.grant);
  receive.peer_id = data_progress(*receive.link);
  set_deadline(receive, shared_.config->peer_timeout);
  pump(*receive.link);
}

/// Returns a number that changes while messages arrive on the data connection. The peer may return a grant only after
/// these messages, so expire_withdrawal() extends the deadline while the number changes.
std::uint64_t Worker::data_progress(const Link& link) const noexcept {
  const auto stats = shard_->stats(link.transport[Link::kData]);
  return stats ? stats->messages_received << 40 ^ stats->end_of_next : 0;
}

/// Handles a grant that has not come back in time. If no data arrives either, the peer's endpoint is silent, even if
/// its transport still answers, and the connection ends.
void Worker::expire_withdrawal(Operation& receive) noexcept {
  if (receive.grant == 0 || receive.link == nullptr || receive.link->state == Link::State::ended) return;
  const std::uint64_t progress = data_progress(*receive.link);
  if (progress != receive.peer_id) {
    receive.peer_id = progress;
    set_deadline(receive, shared_.config->peer_timeout);
    return;
  }
  end_link(*receive.link, Code::unreachable, Cause::silence, true);
}

Cause Worker::on_used(Link& link, const Frame& frame) noexcept {
  if (frame.id == 0 || frame.id > link.tagged->grants_given || frame.length == 0) return Cause::unasked;
  Operation* const receive = matcher_.receive_for(link.handle, frame.tag);
  if (receive == nullptr || receive->grant != frame.id || receive->link != &link)
    return Cause::none;  // the receive's message has already arrived
  unpost(*receive);
  reserve(link, *receive, frame, {});
  return Cause::none;
}

// ---- The sender ----

Cause Worker::on_grant(Link& link, const Frame& frame) noexcept {
  Tagged& tagged = *link.tagged;
  if (tagged.count_at_hand + tagged.given_back >= kMaxAhead) return Cause::beyond_credit;
  if (frame.length == 0 || frame.id > tagged.sent) return Cause::malformed_frame;
  // Each tag may have one grant at most. A send takes the first grant of its tag, and so would not find a second one.
  for (std::uint32_t i = 0; i < tagged.count_at_hand; ++i)
    if (tagged.at_hand[i].tag == frame.tag) return Cause::malformed_frame;
  const std::uint64_t seen = frame.id;
  tagged.at_hand[tagged.count_at_hand++] = {++tagged.grants_got, frame.tag, frame.length};
  if (tagged.sent - seen > Tagged::kRecent) {
    give_back_grants(tagged, tagged.count_at_hand);
    return Cause::none;
  }
  for (std::uint64_t number = seen + 1; number <= tagged.sent; ++number) {
    const Tagged::Recent& recent = tagged.recent_of(number);
    if (recent.tag != frame.tag) continue;
    Operation* const send = recent.announced != 0 ? announced(link, recent.announced) : nullptr;
    give_back_grants(tagged, tagged.count_at_hand - (send != nullptr ? 1 : 0));
    if (send == nullptr) return Cause::none;
    tagged.count_at_hand = 0;
    tagged.announced.erase(*send);
    send->ahead.waits_for_rts_received = true;
    obey(tagged, *send, std::min(send->length, frame.length));
    return Cause::none;
  }
  int looked_at = 0;
  for (Operation* send = tagged.held.first(); send != nullptr; send = tagged.held.next(*send)) {
    if (++looked_at > kMaxLookedAt) {
      give_back_grants(tagged, tagged.count_at_hand);
      return Cause::none;
    }
    if (send->tag != frame.tag) continue;
    if (fits(tagged, *send, frame.length)) {
      tagged.held.erase(*send);
      send_ahead(tagged, *send);
    } else {
      give_back_grants(tagged, tagged.count_at_hand);
    }
    return Cause::none;
  }
  return Cause::none;
}

Cause Worker::on_withdraw(Link& link, const Frame& frame) noexcept {
  Tagged& tagged = *link.tagged;
  if (frame.id == 0 || frame.id > tagged.grants_got) return Cause::unasked;
  for (std::uint32_t i = 0; i < tagged.count_at_hand; ++i)
    if (tagged.at_hand[i].number == frame.id) {
      give_back_grants(tagged, i + 1);
      break;
    }
  return Cause::none;
}

/// Sends a message with the stored grant of its tag, and gives back earlier grants. If the message does not fit this
/// grant, gives back the grants up to and including this one, and returns false. Returns false if no grant of the tag
/// is stored.
bool Worker::send_ahead(Tagged& tagged, Operation& send) noexcept {
  for (std::uint32_t i = 0; i < tagged.count_at_hand; ++i) {
    const Tagged::Ahead grant = tagged.at_hand[i];
    if (grant.tag != send.tag) continue;
    const bool is_used = fits(tagged, send, grant.length);
    give_back_grants(tagged, is_used ? i : i + 1);
    if (!is_used) return false;
    std::copy(tagged.at_hand.begin() + 1, tagged.at_hand.begin() + tagged.count_at_hand, tagged.at_hand.begin());
    --tagged.count_at_hand;
    send.grant = grant.number;
    tagged.sent_ahead.push(send);
    obey(tagged, send, send.length);
    return true;
  }
  return false;
}

/// Must be called before sending a message that could overtake another message of its tag. Returns false if too few
/// frames are free.
bool Worker::mark_used(Link& link, std::uint64_t tag) noexcept {
  Tagged& tagged = *link.tagged;
  for (Operation* at = tagged.sent_ahead.first(); at != nullptr; at = tagged.sent_ahead.next(*at)) {
    if (at->tag != tag || at->ahead.is_marked) continue;
    if (tagged.free_send_frames.size() <= kKeptForAnswers) return false;
    const Frame used{.type = FrameType::used, .tag = tag, .id = at->grant, .length = at->length};
    if (!send_frame(link, used, nullptr)) return false;
    at->ahead.is_marked = true;
  }
  return tagged.free_send_frames.size() > kKeptForAnswers;
}

/// Gives back the first `count` unused grants.
void Worker::give_back_grants(Tagged& tagged, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) tagged.granted.push({.send = nullptr, .gives_back = true});
  tagged.given_back += count;
  std::copy(tagged.at_hand.begin() + count, tagged.at_hand.begin() + tagged.count_at_hand, tagged.at_hand.begin());
  tagged.count_at_hand -= count;
}

/// Queues a send that the peer has requested.
void Worker::obey(Tagged& tagged, Operation& send, Bytes wanted) noexcept {
  send.stage = Operation::Stage::granted;
  send.is_cancelled = false;  // too late to cancel the send
  send.message_bytes = wanted;
  tagged.granted.push({.send = &send, .gives_back = false});
  ++tagged.under_way;
  tagged.bytes_under_way += wanted;
}

}  // namespace mltcp::endpoint
