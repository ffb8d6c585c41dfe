// How a pair posts operations to the endpoint and handles their ends, control messages and destroyed buffers.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include "mltcp/plugins/gloo/internal/buffers.h"
#include "mltcp/plugins/gloo/internal/open_device.h"
#include "mltcp/plugins/gloo/internal/pair.h"

namespace gloo::transport::mltcp {
namespace ep = ::mltcp::endpoint;

// ---- Operations ----

Op& Pair::take_op(Op::Kind kind) {
  if (spare_.empty()) {
    ops_.push_back(std::make_unique<Op>());
    spare_.push_back(ops_.back().get());
  }
  Op& op = *spare_.back();
  spare_.pop_back();
  op = Op{};
  op.kind = kind;
  op.pair = this;
  op.place = active_.size();
  active_.push_back(&op);
  return op;
}

void Pair::give_op(Op& op) {
  Op* const last = active_.back();
  active_[op.place] = last;
  last->place = op.place;
  active_.pop_back();
  spare_.push_back(&op);
}

ep::Code Pair::try_post(Op& op) {
  ep::PostOptions options;
  options.callback = &Pair::ended;
  options.context = &op;
  ep::Endpoint& endpoint = context_.device().endpoint();
  const std::span<std::byte> memory(op.data, op.bytes);
  switch (op.kind) {
    case Op::Kind::receive:
    case Op::Kind::orphan:
    case Op::Kind::control_receive:
    case Op::Kind::write_receive:
      return endpoint.receive_tagged(connection_, memory, op.tag, ep::kWholeTag, options, op.handle);
    default:
      return endpoint.send_tagged(connection_, memory, op.tag, options, op.handle);
  }
}

void Pair::post(Op& op) {
  const ep::Code code = backlog_.empty() ? try_post(op) : ep::Code::queue_full;
  if (code == ep::Code::ok) return;
  if (code == ep::Code::queue_full && !ended_) {
    backlog_.push_back(&op);
    return;
  }
  ep::Completion end;
  end.code = code;
  on_end(op, end);
}

void Pair::pump() {
  while (!backlog_.empty()) {
    Op& op = *backlog_.front();
    const ep::Code code = ended_ ? ep::Code::closed : try_post(op);
    if (code == ep::Code::queue_full) return;
    backlog_.pop_front();
    if (code == ep::Code::ok) continue;
    ep::Completion end;
    end.code = code;
    on_end(op, end);
  }
}

void Pair::settle(Context::Lock& lock) {
  while (!backlog_.empty()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
    pump();
  }
}

void Pair::ended(void* context, const ep::Completion& completion) noexcept {
  Op& op = *static_cast<Op*>(context);
  Pair& pair = *op.pair;
  const Context::Lock lock(pair.context_.mutex());
  const Context::Wakes wakes(pair.context_);
  pair.on_end(op, completion);
  pair.pump();
  pair.flush();
  if (pair.closing_) pair.close_if_flushed();
  pair.context_.wake(pair.context_.changed());
}

void Pair::on_end(Op& op, const ep::Completion& completion) {
  const Op was = op;
  if (op.kind != Op::Kind::receive && op.kind != Op::Kind::send) give_op(op);
  const bool ok = completion.code == ep::Code::ok;
  switch (was.kind) {
    case Op::Kind::connect:
      on_connected(completion);
      return;
    case Op::Kind::control_send:
      (*out_)[was.id % kControlFrames].busy = false;
      break;
    case Op::Kind::control_receive:
      if (!ok) break;
      (*in_)[was.id % kControlFrames].used = completion.bytes;
      (*in_)[was.id % kControlFrames].busy = true;
      take_frames();
      return;
    case Op::Kind::receive:
      on_received(op, completion);
      return;
    case Op::Kind::send:
      on_sent(op, completion);
      return;
    case Op::Kind::orphan:
      if (completion.code == ep::Code::truncated) return;
      break;
    case Op::Kind::write_send:
      if (ok && was.bound != nullptr) was.bound->on_sent(was.order);
      break;
    case Op::Kind::write_receive:
      on_write_received(was, completion);
      return;
    case Op::Kind::hello:
      break;
  }
  if (!ok && completion.code != ep::Code::cancelled) fail(cause_of(completion.code), Ending::at_once, true);
}

void Pair::on_connected(const ep::Completion& completion) {
  if (completion.code == ep::Code::ok) {
    if (state_ == State::connecting) state_ = State::connected;
  } else {
    ended_ = true;
    fail(cause_of(completion.code), Ending::at_once, false);
  }
  context_.changed().notify_all();
}

/// Handles the end of a receive. Frees `op`, or continues the receive without its buffer.
void Pair::on_received(Op& op, const ep::Completion& completion) {
  const std::uint64_t number = op.slot;
  const std::uint64_t order = op.order;
  UnboundBuffer* const buffer = op.unbound;
  switch (completion.code) {
    case ep::Code::ok:
      give_op(op);
      if (buffer != nullptr) buffer->on_received(rank_, order);
      break;
    case ep::Code::truncated: {
      const std::string text = context_.who() + ": " + name() + " sent " + std::to_string(completion.bytes) +
                               " bytes on slot " + std::to_string(number) + " for a receive of " +
                               std::to_string(op.bytes) + "; give both ends the same length";
      give_op(op);
      if (buffer != nullptr) buffer->fail(text);
      break;
    }
    case ep::Code::cancelled:
      // The peer knows of this receive, so it still sends a message. That message is dropped.
      op.kind = Op::Kind::orphan;
      op.unbound = nullptr;
      op.data = nullptr;
      op.bytes = 0;
      context_.changed().notify_all();
      post(op);
      return;
    default:
      if (buffer != nullptr && failed()) buffer->fail(error_);
      fail(cause_of(completion.code), Ending::at_once, true);
      give_op(op);
  }
}

/// Handles the end of a send, and frees `op`.
void Pair::on_sent(Op& op, const ep::Completion& completion) {
  UnboundBuffer* const buffer = op.unbound;
  if (completion.code == ep::Code::ok) {
    const std::uint64_t order = op.order;
    give_op(op);
    if (buffer != nullptr) buffer->on_sent(rank_, order);
    return;
  }
  if (completion.code != ep::Code::cancelled) {
    if (buffer != nullptr && failed()) buffer->fail(error_);
    fail(cause_of(completion.code), Ending::at_once, true);
    give_op(op);
    return;
  }
  // The peer's receive still waits, so it is matched with the next send on the slot.
  const Op was = op;
  give_op(op);
  context_.changed().notify_all();
  Record record;
  record.kind = Record::Kind::withdrawn;
  record.slot = was.slot;
  queue(record);
  Slot& here = slot(was.slot);
  here.granted.push_front(was.id);
  if (here.sends.empty()) return;
  here.granted.pop_front();
  on_receive_ready(was.slot, was.id);
}

void Pair::on_write_received(const Op& op, const ep::Completion& completion) {
  const auto found = std::find_if(incoming_.begin(), incoming_.end(), [&](const Incoming& write) {
    return write.id == op.id && write.state == Incoming::State::under_way;
  });
  const bool ok = completion.code == ep::Code::ok;
  if (found != incoming_.end()) {
    found->state = Incoming::State::done;
    if (op.bound == nullptr || !ok) found->buffer = nullptr;
  }
  if (!ok && completion.code != ep::Code::cancelled) {
    fail(cause_of(completion.code), Ending::at_once, true);
    return;
  }
  advance_writes();
}

// ---- Control messages ----

void Pair::queue(const Record& record, std::span<const std::byte> data) {
  append_record(outbox_, record, data);
  is_urgent_ = true;
}

void Pair::flush() {
  if (!is_urgent_ && outbox_.size() < kMaxIdle && !ended_) return;
  std::size_t at = 0;
  while (at < outbox_.size() && !ended_) {
    Frame& frame = (*out_)[next_out_ % kControlFrames];
    if (frame.busy) break;
    frame.used = whole_records(std::span(outbox_).subspan(at));
    if (frame.used == 0) break;
    std::memcpy(frame.bytes.data(), outbox_.data() + at, frame.used);
    at += frame.used;
    frame.busy = true;
    Op& op = take_op(Op::Kind::control_send);
    op.id = next_out_++;
    op.data = frame.bytes.data();
    op.bytes = frame.used;
    op.tag = kControlTag | op.id;
    post(op);
  }
  if (ended_) at = outbox_.size();
  outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<std::ptrdiff_t>(at));
  is_urgent_ = is_urgent_ && !outbox_.empty();
}

void Pair::post_control_receive(std::uint64_t number) {
  Op& op = take_op(Op::Kind::control_receive);
  op.id = number;
  op.data = (*in_)[number % kControlFrames].bytes.data();
  op.bytes = kFrameBytes;
  op.tag = kControlTag | number;
  post(op);
}

void Pair::take_frames() {
  for (;;) {
    Frame& frame = (*in_)[next_in_ % kControlFrames];
    if (!frame.busy) return;
    frame.busy = false;
    std::span<const std::byte> records(frame.bytes.data(), frame.used);
    while (!records.empty()) {
      Record record;
      std::span<const std::byte> data;
      if (take_record(records, record, data) && take(record, data)) continue;
      fail("it sent a malformed control message; install the same MLTCP on all hosts", Ending::at_once, true);
      return;
    }
    post_control_receive(kControlFrames + next_in_++);
  }
}

bool Pair::take(const Record& record, std::span<const std::byte> data) {
  switch (record.kind) {
    case Record::Kind::receive_ready:
      if (record.id == 0 || record.id > kIdMask) return false;
      on_receive_ready(record.slot, record.id);
      return true;
    case Record::Kind::send_ready:
      count_waiting(record.slot, 1);
      if (waiting_since(record.slot) > 0) context_.on_available(*this, record.slot);
      return true;
    case Record::Kind::withdrawn:
      count_waiting(record.slot, -1);
      return true;
    case Record::Kind::write:
      if (record.id == 0 || record.id > kIdMask) return false;
      return on_write(record, data);
    case Record::Kind::write_inline:
      return on_write(record, data);
    case Record::Kind::write_ready:
      on_write_ready(record.id);
      return true;
    case Record::Kind::failure: {
      const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
      const bool is_own = record.id == static_cast<std::uint64_t>(rank_);
      context_.note(is_own ? "it said \"" + text + "\"" : name() + " said \"" + text + "\"");
      return true;
    }
  }
  return false;
}

// ---- Destroyed buffers ----

bool Pair::refers_to(const UnboundBuffer& buffer) const {
  return std::any_of(active_.begin(), active_.end(), [&](const Op* op) { return op->unbound == &buffer; });
}

bool Pair::awaited_by(const UnboundBuffer& buffer, std::uint64_t& number) const {
  for (const Op* const op : active_) {
    if (op->unbound != &buffer) continue;
    number = op->slot;
    return true;
  }
  for (const auto& [each, here] : slots_)
    for (const PendingSend& pending : here.sends) {
      if (pending.buffer != &buffer) continue;
      number = each;
      return true;
    }
  return false;
}

void Pair::cancel_of(const UnboundBuffer& buffer) {
  std::vector<std::uint64_t> numbers;
  for (auto& [number, here] : slots_) {
    const auto gone = [&](const PendingSend& pending) { return pending.buffer == &buffer; };
    for (auto count = std::count_if(here.sends.begin(), here.sends.end(), gone); count > 0; --count) {
      Record record;
      record.kind = Record::Kind::withdrawn;
      record.slot = number;
      queue(record);
    }
    std::erase_if(here.sends, gone);
    numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) drop_if_empty(number);
  for (const Op* const op : active_)
    if (op->unbound == &buffer && op->handle != 0) context_.device().endpoint().cancel(op->handle);
  flush();
}

void Pair::release(Buffer& buffer, Context::Lock& lock) {
  std::erase(buffers_, &buffer);
  if (const auto found = receive_buffers_.find(static_cast<std::uint64_t>(buffer.slot()));
      found != receive_buffers_.end() && found->second == &buffer)
    receive_buffers_.erase(found);
  std::erase_if(outgoing_, [&](const auto& entry) { return entry.second.buffer == &buffer; });
  for (Incoming& write : incoming_)
    if (write.buffer == &buffer) write.buffer = nullptr;
  for (Op* const op : active_)
    if (op->bound == &buffer && op->handle != 0) context_.device().endpoint().cancel(op->handle);
  const auto free = [&] {
    return std::none_of(active_.begin(), active_.end(), [&](const Op* op) { return op->bound == &buffer; });
  };
  if (context_.changed().wait_for(lock, std::chrono::seconds(1), free)) return;
  abort();
  context_.changed().wait(lock, free);
}

}  // namespace gloo::transport::mltcp
