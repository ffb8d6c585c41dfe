// The part of a worker that handles tagged messages (see worker.h and matcher.h; frames.h defines the frames).
//
// A sender may have up to `window` unexpected messages at its peer. It compares the number of messages that it has sent
// with the total credit that the peer has granted. So the receiver has a buffer for every frame: it handles frames at
// once and in order, and posts their buffers again. Answers (CTS, credit, CANCELLED) wait for a free send frame; some
// send frames are reserved for them.
//
// The worker checks everything that a peer sends. It ends the connection of a peer that sends something invalid.
#include <algorithm>
#include <cstring>

#include "mltcp/endpoint/internal/worker.h"

namespace mltcp::endpoint {
namespace {

/// Maximum number of announced sends that have ended here at their time limit and that the peer has neither requested
/// nor cancelled. A peer that exceeds this number does not answer, so its connection ends. The same limit holds for
/// ended sends that the peer has requested without posting buffers for the answers.
constexpr std::size_t kMaxZombies = 4096;

}  // namespace

Tagged::Tagged(const EndpointConfig& config, Link& link)
    : frame_bytes((Frame::kHeaderBytes + config.eager_limit + 63) / 64 * 64),
      eager_limit(std::min<Bytes>(config.eager_limit, link.peers_eager_limit)),
      peers_window(link.peers_window),
      credit(link.peers_window) {
  const std::uint32_t frames = config.control_frames;
  const std::uint32_t window = config.unexpected_messages;
  // The memory stays uninitialised, so that pages that no frame has used occupy no physical memory.
  receive_memory = std::make_unique_for_overwrite<std::byte[]>((std::size_t{frames} + window) * frame_bytes);
  send_memory = std::make_unique_for_overwrite<std::byte[]>(std::size_t{frames} * frame_bytes);
  for (std::uint32_t i = frames + window; i-- > 0;) free_receive_frames.push_back(i);
  for (std::uint32_t i = frames; i-- > 0;) free_send_frames.push_back(i);
  send_frame_of.resize(frames);
  announcement_of.resize(frames);
  posted.reserve(frames);
  entries.resize(window);
  for (std::uint32_t i = window; i-- > 0;) {
    entries[i].index = i;
    entries[i].link = &link;
    free_entries.push_back(i);
  }
  taken_back.reserve(window);
  granted.reserve(64);
  cancels.reserve(64);
  withdrawals.reserve(kMaxAhead);
  credit_sent = window;
}

void Worker::begin_tagged(Link& link) noexcept {
  try {
    link.tagged = std::make_unique<Tagged>(*shared_.config, link);
  } catch (const std::exception&) {
    end_link(link, Code::no_room, Cause::here, true);
    return;
  }
  post_receive_frames(link);
  // Sends that the program posted before the connection was ready wait in `link.sends`.
  while (Operation* const operation = link.sends.pop()) link.tagged->held.push(*operation);
  pump(link);
}

void Worker::post_receive_frames(Link& link) noexcept {
  Tagged& tagged = *link.tagged;
  while (tagged.posted.size() < shared_.config->control_frames && !tagged.free_receive_frames.empty()) {
    const std::uint32_t frame = tagged.free_receive_frames.back();
    const std::uint64_t position = tagged.posted.end();
    if (shard_->receive(link.transport[Link::kControl], tagged.receive_frame(frame),
                        cookie(Cookie::receive_frame, position & 0xFFFFFFFFU)) != PostResult::ok)
      return;
    tagged.free_receive_frames.pop_back();
    tagged.posted.push({frame, 0, false});
    posted_ = true;
  }
}

// ---- Operations that the program posts ----

void Worker::start_send_tagged(Operation& operation) noexcept {
  Link* const link = find(operation.connection);
  operation.link = link;
  if (link == nullptr || link->state == Link::State::ended || link->state == Link::State::closing) {
    end_posted_late(operation, link);
    return;
  }
  if (link->tagged != nullptr && send_ahead(*link->tagged, operation)) {
    pump_granted(*link);
    return;
  }
  operation.stage = Operation::Stage::held;
  (link->tagged != nullptr ? link->tagged->held : link->sends).push(operation);
  if (link->tagged != nullptr) pump_sends(*link);
}

void Worker::start_receive_tagged(Operation& operation) noexcept {
  const bool any = operation.connection == kAnyConnection;
  Link* const link = any ? nullptr : find(operation.connection);
  operation.message_tag = operation.tag;
  if (!any && link == nullptr) {
    end_posted_late(operation, link);
    return;
  }
  if (any || link->tagged != nullptr) {
    if (Unexpected* const message = matcher_.message_for(link, operation.tag, operation.mask); message != nullptr) {
      give(operation, *message);
      return;
    }
  }
  operation.link = link;
  if (!any && link->state == Link::State::ended) {
    end(operation, link->end_code, link->end_cause);
    return;
  }
  operation.stage = Operation::Stage::posted;
  matcher_.post(operation);
  if (any) return;
  ++link->posted_receives;
  if (link->tagged != nullptr) grant_ahead(*link, operation);
}

void Worker::unpost(Operation& receive) noexcept {
  matcher_.erase(receive);
  if (receive.link != nullptr) --receive.link->posted_receives;
}

/// Ends the receives that are posted to `link`. If `link` is null, ends the receives that accept messages from any
/// connection. Posted receives are in no list, because removing a matched receive from a list would touch its
/// neighbours in memory. So this function looks through all operations.
void Worker::end_posted(Link* link, Code code, Cause cause) noexcept {
  for (std::uint32_t slot = 0; slot < operations_.count(); ++slot) {
    Operation& operation = operations_.at(slot);
    if (operation.stage != Operation::Stage::posted || operation.link != link) continue;
    unpost(operation);
    operation.message_tag = operation.tag;
    if (operation.grant != 0)
      // the transport still uses the buffer, and reports when it releases the buffer
      operation.stage = Operation::Stage::flowing;
    else
      end(operation, code, cause);
  }
}

void Worker::start_peek(Operation& operation) noexcept {
  const bool any = operation.connection == kAnyConnection;
  Link* const link = any ? nullptr : find(operation.connection);
  operation.message_tag = operation.tag;
  if (!any && link == nullptr) {
    end_posted_late(operation, link);
    return;
  }
  Unexpected* const message =
      any || link->tagged != nullptr ? matcher_.message_for(link, operation.tag, operation.mask) : nullptr;
  operation.link = link;
  if (message == nullptr) {
    const bool over = link != nullptr && link->state == Link::State::ended;
    end(operation, over ? link->end_code : Code::nothing, over ? link->end_cause : Cause::none);
    return;
  }
  operation.link = message->link;
  operation.message_tag = message->tag;
  operation.message = 0;
  operation.message_bytes = message->length;
  if (operation.take == Take::yes) {
    matcher_.erase(*message);
    message->claimed = true;
    message->generation = ++claims_ == 0 ? ++claims_ : claims_;
    operation.message = handle_of_message(*message);
  }
  end(operation, Code::ok, Cause::none);
}

void Worker::start_receive_message(Operation& operation) noexcept {
  operation.connection = 0;
  operation.message_tag = 0;
  Unexpected* const message = find_message(operation.message);
  if (message == nullptr) {
    end(operation, Code::unknown, Cause::none);
    return;
  }
  message->claimed = false;
  operation.message_tag = operation.tag = message->tag;
  operation.connection = message->link->handle;
  give(operation, *message);
}

// A message handle contains the connection's slot in its 18 highest bits, the message's index in the next 14 bits, and
// a generation number in the lowest 32 bits.
MessageHandle Worker::handle_of_message(const Unexpected& message) const {
  return std::uint64_t{message.link->slot} << 46 | std::uint64_t{message.index} << 32 | message.generation;
}
Unexpected* Worker::find_message(MessageHandle handle) noexcept {
  const std::uint64_t slot = handle >> 46;
  const std::uint64_t index = (handle >> 32) & 0x3FFF;
  if (slot >= links_.size() || links_[slot].tagged == nullptr) return nullptr;
  auto& entries = links_[slot].tagged->entries;
  if (index >= entries.size()) return nullptr;
  Unexpected& message = entries[index];
  return message.used && message.claimed && message.generation == static_cast<std::uint32_t>(handle) ? &message
                                                                                                     : nullptr;
}

/// Gives an unexpected message to the receive that matches it.
void Worker::give(Operation& receive, Unexpected& message) noexcept {
  Link& link = *message.link;
  if (matcher_.holds(message)) matcher_.erase(message);
  if (message.announced) {
    receive.link = &link;
    receive.stage = Operation::Stage::matched;
    receive.message_tag = message.tag;
    receive.message_bytes = message.length;
    receive.peer_id = message.id;
    link.tagged->matched.push(receive);
  } else {
    const auto frame = link.tagged->receive_frame(message.frame);
    finish_eager(receive, link, message.tag,
                 frame.subspan(Frame::kHeaderBytes, static_cast<std::size_t>(message.length)));
  }
  release(message);
}

void Worker::finish_eager(Operation& receive, Link& link, std::uint64_t tag,
                          std::span<const std::byte> bytes) noexcept {
  const std::size_t fits = std::min<std::size_t>(bytes.size(), receive.length);
  if (fits > 0) std::memcpy(receive.data, bytes.data(), fits);
  receive.link = &link;
  receive.message_tag = tag;
  receive.message_bytes = bytes.size();
  end(receive, fits < bytes.size() ? Code::truncated : Code::ok, Cause::none);
}

/// Called when a message is no longer unexpected. Frees its entry, and lets the peer send another message.
void Worker::release(Unexpected& message) noexcept {
  Link& link = *message.link;
  Tagged& tagged = *link.tagged;
  tagged.unexpected.erase(message);
  if (!message.announced) tagged.free_receive_frames.push_back(message.frame);
  message.used = message.claimed = false;
  tagged.free_entries.push_back(message.index);
  ++tagged.released;
  if (link.state == Link::State::ended)
    settle_ended(link);
  else
    pump(link);
}

/// Drops unexpected messages of an ended connection. If `all` is false, drops only announced messages, whose bytes are
/// still at the sender.
void Worker::drop_messages(Link& link, bool all) noexcept {
  if (link.tagged == nullptr) return;
  Tagged& tagged = *link.tagged;
  for (Unexpected* at = tagged.unexpected.first(); at != nullptr;) {
    Unexpected& message = *at;
    at = tagged.unexpected.next(message);
    if (!all && !message.announced) continue;
    if (matcher_.holds(message)) matcher_.erase(message);
    tagged.unexpected.erase(message);
    message.used = message.claimed = false;
  }
  if (all) settle_ended(link);
}

// ---- Incoming frames ----

/// Prefetches the memory that matching needs. With many receives posted, each match is a chain of cache misses (bucket,
/// links, operation). Prefetching for a whole batch lets these misses overlap.
void Worker::prefetch_matches(std::span<const mltcp::Completion> completions) noexcept {
  std::array<std::size_t, kTaken> places;
  std::size_t count = 0;
  for (const mltcp::Completion& completion : completions) {
    if (static_cast<Cookie>(completion.tag >> 56) != Cookie::receive_frame) continue;
    const Route& route = routes_[completion.connection & route_mask_];
    if (route.id != completion.connection || links_[route.link].tagged == nullptr) continue;
    Tagged& tagged = *links_[route.link].tagged;
    const std::uint64_t position = tagged.position_of(completion.tag);
    if (position >= tagged.posted.end()) continue;
    const auto frame = tagged.receive_frame(tagged.posted[position].frame);
    places[count++] = matcher_.prefetch(links_[route.link].handle,
                                        peek_tag(frame.first(std::min<std::size_t>(completion.bytes, frame.size()))));
  }
  if (count < 2) return;
  for (std::size_t i = 0; i < count; ++i) matcher_.prefetch_hook(places[i]);
  for (std::size_t i = 0; i < count; ++i) matcher_.prefetch_receive(places[i]);
}

void Worker::on_frame_arrived(Link& link, const mltcp::Completion& completion) noexcept {
  if (link.tagged == nullptr || link.state == Link::State::ended) return;
  // the connection has ended, which the transport reports next
  if (completion.status != Status::ok && completion.status != Status::truncated) return;
  Tagged& tagged = *link.tagged;
  auto& posted = tagged.posted;
  const std::uint64_t position = tagged.position_of(completion.tag);
  if (position >= posted.end()) return;
  posted[position].arrived = true;
  posted[position].length =
      completion.status == Status::truncated ? ~std::uint32_t{0} : static_cast<std::uint32_t>(completion.bytes);
  while (!posted.empty() && posted.front().arrived) {
    const Tagged::Posted arrived = posted.front();
    posted.pop();
    Frame frame;
    Cause cause = Cause::malformed_frame;
    if (arrived.length <= tagged.frame_bytes && parse(tagged.receive_frame(arrived.frame).first(arrived.length), frame))
      cause = on_frame(link, frame, arrived.frame);
    if (link.state == Link::State::ended) return;
    if (cause != Cause::none) {
      break_off(link, cause);
      return;
    }
  }
  post_receive_frames(link);
  pump(link);
}

/// Handles a frame. Returns how the frame breaks the protocol, or Cause::none. Frees the receive frame unless it holds
/// an unexpected message.
Cause Worker::on_frame(Link& link, const Frame& frame, std::uint32_t index) noexcept {
  Tagged& tagged = *link.tagged;
  if (const Cause cause = on_credit(tagged, frame.credit); cause != Cause::none) return cause;
  if (frame.type == FrameType::eager || frame.type == FrameType::rts) return on_message(link, frame, index);
  tagged.free_receive_frames.push_back(index);
  switch (frame.type) {
    case FrameType::cts:
      return on_cts(link, frame);
    case FrameType::cancel:
      return on_cancel(link, frame);
    case FrameType::cancelled:
      return on_cancelled(link, frame);
    case FrameType::grant:
      return on_grant(link, frame);
    case FrameType::withdraw:
      return on_withdraw(link, frame);
    case FrameType::used:
      return on_used(link, frame);
    default:
      return Cause::none;
  }
}

Cause Worker::on_credit(Tagged& tagged, std::uint32_t credit) noexcept {
  // Frames arrive in order, so the total credit never decreases. The peer can only have released messages that were
  // sent to it.
  const std::uint32_t more = credit - static_cast<std::uint32_t>(tagged.credit);
  const std::uint64_t said = tagged.credit + more;
  if (more > tagged.peers_window || said > tagged.sent + tagged.peers_window) return Cause::beyond_credit;
  tagged.credit = said;
  return Cause::none;
}

Cause Worker::on_message(Link& link, const Frame& frame, std::uint32_t index) noexcept {
  Tagged& tagged = *link.tagged;
  const bool is_eager = frame.type == FrameType::eager;
  if (tagged.came >= tagged.credit_sent) return Cause::beyond_credit;
  if (is_eager && frame.length > shared_.config->eager_limit) return Cause::malformed_frame;
  ++tagged.came;
  const auto bytes = std::span<const std::byte>(tagged.receive_frame(index))
                         .subspan(Frame::kHeaderBytes, is_eager ? static_cast<std::size_t>(frame.length) : 0);
  if (Operation* const receive = matcher_.receive_for(link.handle, frame.tag); receive != nullptr) {
    unpost(*receive);
    ++tagged.released;
    tagged.free_receive_frames.push_back(index);
    if (receive->grant != 0) {
      reserve(link, *receive, frame, bytes);
      return Cause::none;
    }
    if (is_eager) {
      finish_eager(*receive, link, frame.tag, bytes);
      return Cause::none;
    }
    receive->link = &link;
    receive->stage = Operation::Stage::matched;
    receive->message_tag = frame.tag;
    receive->message_bytes = frame.length;
    receive->peer_id = frame.id;
    tagged.matched.push(*receive);
    return Cause::none;
  }
  // an entry is free, because the sender's credit was checked above
  Unexpected& message = tagged.entries[tagged.free_entries.back()];
  tagged.free_entries.pop_back();
  message.used = true;
  message.announced = !is_eager;
  message.frame = index;
  message.tag = frame.tag;
  message.id = frame.id;
  message.length = frame.length;
  if (!is_eager) tagged.free_receive_frames.push_back(index);
  tagged.unexpected.push(message);
  matcher_.hold(message, link.handle);
  return Cause::none;
}

/// Returns the announced send with the handle `id`, which the peer sent. Returns null if there is no such send.
Operation* Worker::announced(Link& link, std::uint64_t id) noexcept {
  const HandleParts parts = parts_of(id);
  Operation* const operation = parts.shard == number_ ? operations_.find(parts) : nullptr;
  const bool is_one =
      operation != nullptr && operation->link == &link &&
      (operation->stage == Operation::Stage::announced || operation->stage == Operation::Stage::taken_back);
  return is_one ? operation : nullptr;
}

Cause Worker::on_cts(Link& link, const Frame& frame) noexcept {
  Tagged& tagged = *link.tagged;
  if (Operation* const send = announced(link, frame.id); send != nullptr) {
    if (frame.length > send->length) return Cause::wrong_length;
    give_back_grants(tagged, tagged.count_at_hand);
    tagged.announced.erase(*send);
    obey(tagged, *send, frame.length);
    return Cause::none;
  }
  const auto zombie = std::find(tagged.zombies.begin(), tagged.zombies.end(), frame.id);
  if (zombie == tagged.zombies.end()) return Cause::unasked;
  tagged.zombies.erase(zombie);
  if (tagged.owed_nothing >= kMaxZombies) {
    end_link(link, Code::unreachable, Cause::silence, true);
    return Cause::none;
  }
  give_back_grants(tagged, tagged.count_at_hand);
  tagged.granted.push({});
  ++tagged.owed_nothing;
  return Cause::none;
}

Cause Worker::on_cancel(Link& link, const Frame& frame) noexcept {
  Tagged& tagged = *link.tagged;
  for (Unexpected* at = tagged.unexpected.first(); at != nullptr; at = tagged.unexpected.next(*at)) {
    if (!at->announced || at->claimed || at->id != frame.id) continue;
    matcher_.erase(*at);
    tagged.unexpected.erase(*at);
    at->used = false;
    tagged.free_entries.push_back(at->index);
    // counted as released only when CANCELLED is sent, so that `taken_back` stays within the window
    tagged.taken_back.push(frame.id);
    return Cause::none;
  }
  return Cause::none;  // the message is already matched, and its CTS informs the peer
}

Cause Worker::on_cancelled(Link& link, const Frame& frame) noexcept {
  Tagged& tagged = *link.tagged;
  if (Operation* const send = announced(link, frame.id); send != nullptr) {
    if (send->stage != Operation::Stage::taken_back) return Cause::unasked;
    tagged.announced.erase(*send);
    end(*send, Code::cancelled, Cause::here);
    if (link.state == Link::State::closing) close_when_flushed(link);
    return Cause::none;
  }
  const auto zombie = std::find(tagged.zombies.begin(), tagged.zombies.end(), frame.id);
  if (zombie == tagged.zombies.end()) return Cause::unasked;
  tagged.zombies.erase(zombie);
  return Cause::none;
}

/// Handles a completion of the data connection.
void Worker::on_flowed(Link& link, Operation& operation, const mltcp::Completion& completion) noexcept {
  if (operation.grant != 0) {
    if (operation.kind == Operation::Kind::receive_tagged) {
      on_ahead(link, operation, completion);
      return;
    }
    link.tagged->sent_ahead.erase(operation);
  }
  if (operation.kind == Operation::Kind::send_tagged) {
    --link.tagged->under_way;
    link.tagged->bytes_under_way -= operation.message_bytes;
  }
  Cause cause = Cause::none;
  Code code = Code::ok;
  bool is_false = false;
  if (operation.is_cancelled && completion.status != Status::ok) {
    code = Code::timed_out, cause = Cause::here;
  } else if (completion.status != Status::ok && completion.status != Status::truncated) {
    code = code_of(link, completion.status, cause);
  } else if (operation.kind != Operation::Kind::send_tagged) {
    const Bytes wanted = std::min<Bytes>(operation.message_bytes, operation.length);
    if (completion.status == Status::ok && completion.bytes == wanted) {
      if (operation.message_bytes > operation.length) code = Code::truncated;
    } else if (completion.status == Status::ok && completion.bytes == 0) {
      code = Code::cancelled, cause = Cause::peer;
    } else {
      code = Code::protocol, cause = Cause::wrong_length;
      is_false = true;
    }
  }
  operation.link = &link;
  end(operation, code, cause);
  if (link.state == Link::State::ended) return;
  if (is_false)
    break_off(link, Cause::wrong_length);
  else
    pump(link);
}

void Worker::break_off(Link& link, Cause cause) noexcept {
  ++counters_.broken_protocols;
  end_link(link, Code::protocol, cause, true);
}

// ---- Outgoing frames ----

void Worker::pump(Link& link) noexcept {
  if (link.tagged == nullptr || link.state == Link::State::ended) return;
  pump_granted(link);
  if (pump_replies(link)) pump_sends(link);
  if (link.state == Link::State::closing) close_when_flushed(link);
}

/// Sends the answers that wait, the requests to cancel, and credit. Returns false if no send frame is free or the
/// connection has ended.
bool Worker::pump_replies(Link& link) noexcept {
  Tagged& tagged = *link.tagged;
  while (!tagged.matched.empty()) {
    if (tagged.free_send_frames.empty()) return false;
    Operation& receive = *tagged.matched.first();
    const Bytes wanted = std::min<Bytes>(receive.message_bytes, receive.length);
    if (shard_->receive(link.transport[Link::kData], {receive.data, static_cast<std::size_t>(wanted)},
                        cookie(Cookie::operation, receive.slot)) != PostResult::ok)
      break;  // the transport accepts no more receives; the next completion calls this function again
    tagged.matched.erase(receive);
    receive.stage = Operation::Stage::flowing;
    if (!send_frame(link, {.type = FrameType::cts, .id = receive.peer_id, .length = wanted}, nullptr)) {
      end_unsaid(link);
      return false;
    }
  }
  for (; !tagged.taken_back.empty(); tagged.taken_back.pop()) {
    if (tagged.free_send_frames.empty()) return false;
    ++tagged.released;
    if (!send_frame(link, {.type = FrameType::cancelled, .id = tagged.taken_back.front()}, nullptr)) return false;
  }
  for (; !tagged.cancels.empty(); tagged.cancels.pop())
    if (!send_frame(link, {.type = FrameType::cancel, .id = tagged.cancels.front()}, nullptr)) return false;
  for (; !tagged.withdrawals.empty(); tagged.withdrawals.pop())
    if (!send_frame(link, {.type = FrameType::withdraw, .id = tagged.withdrawals.front()}, nullptr)) return false;
  // Every frame carries the current credit. A separate credit frame is sent in two cases: the peer has used all credit
  // that it knows of, or it does not yet know of credit for at least half of the window.
  const std::uint64_t window = shared_.config->unexpected_messages;
  const std::uint64_t news = window + tagged.released - tagged.credit_sent;
  if (news > 0 && (news * 2 >= window || tagged.came == tagged.credit_sent))
    return send_frame(link, {.type = FrameType::credit}, nullptr);
  return true;
}

void Worker::pump_sends(Link& link) noexcept {
  Tagged& tagged = *link.tagged;
  while (tagged.sent < tagged.credit && tagged.free_send_frames.size() > kKeptForAnswers) {
    Operation* const send = tagged.held.pop();
    if (send == nullptr) return;
    if (!mark_used(link, send->tag)) {
      tagged.held.push_front(*send);
      return;
    }
    const bool is_eager = send->length <= tagged.eager_limit;
    Frame frame;
    frame.type = is_eager ? FrameType::eager : FrameType::rts;
    frame.tag = send->tag;
    frame.id = is_eager ? 0 : operations_.handle(*send);
    frame.length = send->length;
    if (!send_frame(link, frame, is_eager ? send : nullptr)) {
      tagged.held.push_front(*send);  // the connection has ended, which the transport reports next
      return;
    }
    tagged.recent_of(++tagged.sent) = {send->tag, frame.id};
    if (is_eager) {
      send->stage = Operation::Stage::flowing;
    } else {
      send->stage = Operation::Stage::announced;
      tagged.announced.push(*send);
    }
  }
}

void Worker::pump_granted(Link& link) noexcept {
  Tagged& tagged = *link.tagged;
  for (; !tagged.granted.empty(); tagged.granted.pop()) {
    const auto [send, gives_back] = tagged.granted.front();
    if (send != nullptr && send->ahead.waits_for_rts_received && !send->ahead.is_rts_received) return;
    const std::span<const std::byte> bytes =
        send == nullptr ? std::span<const std::byte>()
                        : std::span<const std::byte>(send->data, static_cast<std::size_t>(send->message_bytes));
    const std::uint64_t tag = send == nullptr ? cookie(Cookie::none, 0) : cookie(Cookie::operation, send->slot);
    if (shard_->send(link.transport[Link::kData], bytes, tag) != PostResult::ok) return;
    posted_ = true;
    if (send != nullptr) send->stage = Operation::Stage::flowing;
    if (gives_back)
      --tagged.given_back;
    else if (send == nullptr)
      --tagged.owed_nothing;
  }
}

/// Sends a frame on the control connection. `eager` is the send whose bytes follow the header, or null. Returns false
/// if no send frame is free or the connection has ended.
bool Worker::send_frame(Link& link, const Frame& frame, Operation* eager) noexcept {
  Tagged& tagged = *link.tagged;
  if (tagged.free_send_frames.empty()) return false;
  const std::uint32_t index = tagged.free_send_frames.back();
  const auto memory = tagged.send_frame(index);
  Frame with_credit = frame;
  const std::uint64_t credit = shared_.config->unexpected_messages + tagged.released;
  with_credit.credit = static_cast<std::uint32_t>(credit);
  write(with_credit, memory.first<Frame::kHeaderBytes>());
  std::size_t size = Frame::kHeaderBytes;
  if (eager != nullptr && eager->length > 0) {
    std::memcpy(memory.data() + size, eager->data, eager->length);
    size += eager->length;
  }
  // The header does not count towards an iteration's bytes.
  if (shard_->send(link.transport[Link::kControl], memory.first(size), cookie(Cookie::send_frame, index),
                   Nanos::never(), Frame::kHeaderBytes) != PostResult::ok)
    return false;
  posted_ = true;
  tagged.free_send_frames.pop_back();
  tagged.send_frame_of[index] = eager;
  if (eager != nullptr) ++tagged.eager_under_way;
  tagged.announcement_of[index] = frame.type == FrameType::rts ? frame.id : 0;
  tagged.credit_sent = credit;
  return true;
}

/// Called if the transport has a buffer, but the frame that announces this buffer could not be sent. Buffers and
/// messages would no longer correspond, so the connection ends. If the connection has already ended, the transport
/// reports its end next.
void Worker::end_unsaid(Link& link) noexcept {
  if (shard_->stats(link.transport[Link::kControl])) end_link(link, Code::no_room, Cause::here, true);
}

void Worker::on_frame_sent(Link& link, const mltcp::Completion& completion) noexcept {
  if (link.tagged == nullptr) return;
  Tagged& tagged = *link.tagged;
  const auto index = static_cast<std::uint32_t>(completion.tag);
  tagged.free_send_frames.push_back(index);
  if (Operation* const send = tagged.send_frame_of[index]; send != nullptr) {
    tagged.send_frame_of[index] = nullptr;
    --tagged.eager_under_way;
    Cause cause = Cause::none;
    Code code = Code::ok;
    if (completion.status != Status::ok && send->is_cancelled)
      code = Code::timed_out, cause = Cause::here;
    else if (completion.status != Status::ok)
      code = code_of(link, completion.status, cause);
    send->link = &link;
    end(*send, code, cause);
  } else if (const OperationHandle announcement = tagged.announcement_of[index]; announcement != 0) {
    if (Operation* const announced = operations_.find(parts_of(announcement)); announced != nullptr)
      announced->ahead.is_rts_received = true;
  }
  pump(link);
}

/// Withdraws an announced send: asks the peer to forget the send. With Code::cancelled, the send ends when the peer
/// answers. With any other code, the send ends at once.
void Worker::take_back(Operation& send, Code code) noexcept {
  Link& link = *send.link;
  Tagged& tagged = *link.tagged;
  const OperationHandle id = operations_.handle(send);
  if (send.stage == Operation::Stage::announced) tagged.cancels.push(id);
  if (code == Code::cancelled) {
    send.stage = Operation::Stage::taken_back;
    send.is_cancelled = true;
  } else {
    tagged.announced.erase(send);
    end(send, code, Cause::here);
    if (tagged.zombies.size() >= kMaxZombies) {
      end_link(link, Code::unreachable, Cause::silence, true);
      return;
    }
    tagged.zombies.push_back(id);
  }
  pump(link);
}

}  // namespace mltcp::endpoint
