// Receives that are granted ahead: a long message that its receiver waits for goes without being announced, and so
// without the round trip of RTS and CTS (see worker.h, and frames.h for what is said).
//
// Who receives. The oldest receive that a message of its tag could go to, if it names connection and whole tag and its
// buffer is longer than what comes as EAGER, is granted as it is posted: the transport gets its buffer as the next of
// the data connection, and the peer a GRANT. It stays posted. What the data connection then brings for it is its
// message, or nothing, which gives the grant back. The first message of the tag that is announced or comes as EAGER is
// its own as always. One that comes as EAGER ends it at once: the peer will not use the grant, and the transport, which
// keeps a place for what gives it back, leaves the buffer alone. For one that is announced the grant may be used yet:
// the receive is `reserved` until it has been, or has come back.
//
// Who sends. Grants are used in their order, since the n-th buffer takes the n-th message: who uses one gives those
// before it back, and their receives are granted anew, a few times. A message that is posted finds a grant of its tag
// at hand and goes. A GRANT that comes looks for the first message of its tag that the peer had not seen when it
// granted, which is the one that it matches there:
//
//   announced meanwhile   the grant is its CTS. Its bytes wait until the RTS has got there, or the peer would take them
//                         for a message of which it will hear again
//   EAGER meanwhile, or taken back, or too far back to be remembered: the grant is given back
//   held back here        goes now, if it is among the first that are
//   none                  the grant is kept at hand
//
// What could go wrong is that a message overtakes one of the same tag on the other connection. Of messages for a grant
// the next of the tag is sent, as EAGER or RTS, behind a USED, by which the peer takes the receive out of matching.
//
// A receive with a time limit is not granted, since its memory has to be the program's at that time, whatever the peer
// does. cancel() of a granted one asks the peer by WITHDRAW: it is cancelled when the grant has come back, behind all
// that the data connection brings before. A peer of which nothing comes there for peer_timeout loses the connection.
//
// A peer that never uses a grant nor gives it back keeps a buffer from that receive alone. A peer that grants what it
// has no buffer for gets none of the messages, and has no more than kMaxAhead grants remembered here: those at hand,
// and those that its transport has taken nothing for.
#include <algorithm>
#include <cstring>

#include "mltcp/endpoint/internal/worker.h"

namespace mltcp::endpoint {
namespace {

/// A receive whose grant has come back so often waits for its message to be announced.
constexpr std::uint8_t kMaxSkips = 4;

/// Of sends that are held back, so many are looked at for a message of the tag.
constexpr int kMaxLookedAt = 64;

/// Messages of no bytes give grants back; of one that is too long the peer learns the length by its RTS. A short one
/// does not queue up behind others on the data connection: it goes as EAGER, and the peer, which then has no use for
/// the grant, does not wait for that to come back.
bool fits(const Tagged& tagged, const Operation& send, Bytes granted) {
  const bool would_queue = send.length <= tagged.eager_limit && tagged.bytes_under_way > tagged.eager_limit;
  return send.length > 0 && send.length <= granted && !would_queue;
}

}  // namespace

// ---- who receives ---------------------------------------------------------------------------------------------------

/// If it may be.
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

/// A message has come for a receive that was granted, and is no longer posted.
void Worker::reserve(Link& link, Operation& receive, const Frame& frame, std::span<const std::byte> eager) noexcept {
  receive.link = &link;
  receive.stage = Operation::Stage::reserved;
  receive.message_tag = frame.tag;
  receive.message_bytes = frame.length;
  receive.peer_id = frame.id;
  if (receive.ahead.is_withdrawn) set_deadline(receive, Nanos::never());  // too late to cancel it
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

/// The transport has done with a receive's buffer.
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

/// What the transport kept the place of a buffer for, of which the receive has ended by EAGER: nothing, or a lie.
void Worker::on_discarded(Link& link, const mltcp::Completion& completion) noexcept {
  if (link.tagged == nullptr) return;
  --link.tagged->grants_open;
  if (link.state == Link::State::ended) return;
  if (completion.status == Status::truncated || (completion.status == Status::ok && completion.bytes > 0))
    break_off(link, Cause::wrong_length);
  else
    pump(link);
}

/// Its grant has not been used, and will not be.
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

/// By cancel().
void Worker::ask_back(Operation& receive) noexcept {
  if (receive.ahead.is_withdrawn) return;
  receive.ahead.is_withdrawn = true;
  receive.link->tagged->withdrawals.push(receive.grant);
  receive.peer_id = data_progress(*receive.link);
  set_deadline(receive, shared_.config->peer_timeout);
  pump(*receive.link);
}

/// Changes as long as messages come on the data connection, behind which a grant comes back.
std::uint64_t Worker::data_progress(const Link& link) const noexcept {
  const auto stats = shard_->stats(link.transport[Link::kData]);
  return stats ? stats->messages_received << 40 ^ stats->end_of_next : 0;
}

/// The grant has not come back: from a peer that is silent, though it may answer all that the transport asks.
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
    return Cause::none;  // its message is here
  unpost(*receive);
  reserve(link, *receive, frame, {});
  return Cause::none;
}

// ---- who sends ------------------------------------------------------------------------------------------------------

Cause Worker::on_grant(Link& link, const Frame& frame) noexcept {
  Tagged& tagged = *link.tagged;
  if (tagged.count_at_hand + tagged.given_back >= kMaxAhead) return Cause::beyond_credit;
  if (frame.length == 0 || frame.id > tagged.sent) return Cause::malformed_frame;
  // Of each tag there is one at a time. A send takes the first of its tag, and so would not find the second.
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
    send->ahead.waits_for_told = true;
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

/// For the grant of its tag, if there is one at hand that it fits: what else is at hand before that is given back.
/// Otherwise false, and none of its tag is at hand any more.
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

/// Before a message that could overtake another of its tag. False if there is no frame to say so.
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

/// The first `count` at hand.
void Worker::give_back_grants(Tagged& tagged, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) tagged.granted.push({.send = nullptr, .gives_back = true});
  tagged.given_back += count;
  std::copy(tagged.at_hand.begin() + count, tagged.at_hand.begin() + tagged.count_at_hand, tagged.at_hand.begin());
  tagged.count_at_hand -= count;
}

/// The peer has asked for it.
void Worker::obey(Tagged& tagged, Operation& send, Bytes wanted) noexcept {
  send.stage = Operation::Stage::granted;
  send.is_cancelled = false;  // too late
  send.message_bytes = wanted;
  tagged.granted.push({.send = &send, .gives_back = false});
  ++tagged.under_way;
  tagged.bytes_under_way += wanted;
}

}  // namespace mltcp::endpoint
