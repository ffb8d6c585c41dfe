// How a pair connects and ends, and how it matches sends and receives. pair_ops.cpp posts operations and handles their
// ends.
#include "mltcp/plugins/gloo/internal/pair.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "mltcp/plugins/gloo/internal/buffers.h"
#include "mltcp/plugins/gloo/internal/open_device.h"

namespace gloo::transport::mltcp {
namespace ep = ::mltcp::endpoint;
namespace {

/// How long a closed pair lets posted operations finish.
constexpr std::chrono::seconds kGrace{1};

std::uint64_t random_id() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

PairAddress address_of(OpenDevice& device, const Context& context, std::uint64_t id) {
  const auto blob = device.endpoint().address().bytes();
  return {id, static_cast<std::uint32_t>(context.rank), GLOO_VERSION, {blob.begin(), blob.end()}};
}

std::string text_of(std::span<const std::byte> blob) {
  ep::EndpointAddress address;
  std::string why;
  const ep::Code code = ep::EndpointAddress::parse(blob, address, &why);
  return code == ep::Code::ok ? to_text(address.base()) : std::string("address unknown");
}

}  // namespace

std::string cause_of(ep::Code code) {
  if (code == ep::Code::closed) return "it has ended, or left the group; for the reason, see its own log";
  if (code == ep::Code::aborted) return "it has aborted the connection; for the reason, see its own log";
  return std::string(to_text(code));
}

Address::Address(const PairAddress& address) : bytes_(to_bytes(address)) {
  text_ = "mltcp, rank " + std::to_string(address.rank) + " at " + text_of(address.endpoint);
}

Pair::Pair(Context& context, int peer)
    : context_(context),
      rank_(peer),
      id_(random_id()),
      address_(address_of(context.device(), context, id_)),
      out_(std::make_unique<std::array<Frame, kControlFrames>>()),
      in_(std::make_unique<std::array<Frame, kControlFrames>>()) {
  const std::lock_guard device_lock(context_.device().mutex());
  context_.device().add_pair(*this);
}

Pair::~Pair() {
  {
    Context::Lock lock(context_.mutex());
    begin_close();
    finish_close(lock);
  }
  context_.device().remove_pair(*this, connection_);
  // A callback that began before the removal held the device's lock, so it has returned by now.
  Context::Lock lock(context_.mutex());
  finish_close(lock);
}

std::string Pair::name() const {
  return "rank " + std::to_string(rank_) + (peer_text_.empty() ? std::string() : " (" + peer_text_ + ")");
}

void Pair::check_usable() const {
  if (failed()) throw IoException(error_);
  enforce(state_ == State::connected, context_.who() + " is not connected to " + name() + "; call connect() first");
}

// ---- Connecting ----

void Pair::connect(const std::vector<char>& bytes) {
  const PairAddress peer = parse_pair_address(bytes);
  if (peer.rank != static_cast<std::uint32_t>(rank_))
    throw InvalidOperationException(context_.who() + ": the address given for rank " + std::to_string(rank_) +
                                    " is that of rank " + std::to_string(peer.rank) +
                                    "; connect each pair with the address that its peer made for it");
  const std::vector<char> own = address_.bytes();
  if (own == bytes)
    throw InvalidOperationException(context_.who() + ": a pair was given its own address; give it its peer's");
  ep::ConnectionHandle connection = 0;
  {
    const std::lock_guard device_lock(context_.device().mutex());
    Context::Lock lock(context_.mutex());
    if (failed()) throw IoException(error_);
    if (is_connect_called_)
      throw InvalidOperationException(context_.who() + " was connected to " + name() + " before; connect a pair once");
    is_connect_called_ = true;
    peer_text_ = text_of(peer.endpoint);
    if (own < bytes) {
      call(peer);
    } else {
      accept_peer(peer);
    }
  }
  {
    Context::Lock lock(context_.mutex());
    wait_until_connected(lock);
    connection = connection_;
  }
  context_.device().attach(connection);
}

void Pair::call(const PairAddress& peer) {
  state_ = State::connecting;
  Op& op = take_op(Op::Kind::connect);
  ep::ConnectOptions options;
  options.kind = ep::ConnectionKind::tagged;
  options.post.callback = &Pair::ended;
  options.post.context = &op;
  ep::Endpoint& endpoint = context_.device().endpoint();
  const ep::Code code = endpoint.connect(peer.endpoint, options, connection_, &op.handle);
  if (code != ep::Code::ok) {
    give_op(op);
    const std::string why = code == ep::Code::bad_address ? ": " + endpoint.failure() : std::string();
    fail(std::string(to_text(code)) + why, Ending::at_once, false);
    return;
  }
  ended_ = false;
  context_.device().add_connection(connection_, *this);
  hello_ = to_bytes(Hello{peer.id, id_, static_cast<std::uint32_t>(context_.rank)});
  Op& hello = take_op(Op::Kind::hello);
  hello.data = hello_.data();
  hello.bytes = hello_.size();
  hello.tag = kHelloTag;
  post(hello);
  open();
}

void Pair::accept_peer(const PairAddress& peer) {
  state_ = State::connecting;
  if (!adopted_) {
    caller_ = peer.id;
    return;
  }
  if (caller_ != peer.id) {
    fail("a pair other than that of the given address has connected; give each address to one peer only",
         Ending::at_once, false);
    return;
  }
  state_ = State::connected;
}

bool Pair::adopt(ep::ConnectionHandle connection, const Hello& hello) {
  if (adopted_ || failed() || connection_ != 0 || hello.rank != static_cast<std::uint32_t>(rank_)) return false;
  if (is_connect_called_ && caller_ != hello.from) return false;
  adopted_ = true;
  caller_ = hello.from;
  connection_ = connection;
  ended_ = false;
  open();
  if (is_connect_called_) state_ = State::connected;
  context_.changed().notify_all();
  return true;
}

void Pair::open() {
  for (std::uint64_t number = 0; number < kControlFrames; ++number) post_control_receive(number);
}

void Pair::wait_until_connected(Context::Lock& lock) {
  const auto ready = [&] { return state_ == State::connected || failed(); };
  const auto timeout = context_.getTimeout();
  if (timeout == kNoTimeout) {
    context_.changed().wait(lock, ready);
  } else if (!context_.changed().wait_for(lock, timeout, ready)) {
    fail("Timed out waiting " + std::to_string(timeout.count()) +
             " ms for a connection; check that the rank runs and that packets can pass between the two, or raise the "
             "timeout",
         Ending::at_once, false);
  }
  if (failed()) throw IoException(error_);
}

void Pair::setSync(bool enable, bool busy_poll) {
  const Context::Lock lock(context_.mutex());
  polls_ = enable && busy_poll;
}

// ---- Closing and failing ----

void Pair::close() {
  Context::Lock lock(context_.mutex());
  begin_close();
  finish_close(lock);
}

void Pair::begin_close() {
  if (closing_) return;
  closing_ = true;
  if (!failed()) error_ = context_.who() + ": the pair with " + name() + " was closed here; make a new one";
  is_urgent_ = true;
  flush();
  close_if_flushed();
}

void Pair::close_if_flushed() {
  if (!closing_ || close_asked_ || ended_ || !outbox_.empty()) return;
  close_asked_ = true;
  context_.device().endpoint().close(connection_);
}

void Pair::abort() {
  if (ended_) return;
  close_asked_ = true;
  context_.device().endpoint().abort(connection_);
}

void Pair::finish_close(Context::Lock& lock) {
  const auto over = [&] { return ended_ && active_.empty(); };
  if (!context_.changed().wait_for(lock, kGrace, over)) {
    abort();
    context_.changed().wait(lock, over);
  }
  fail_waiters();
  context_.on_pair_failed(*this, false);
}

void Pair::on_closed(const ep::Completion& event) {
  if (ended_) return;
  ended_ = true;
  // A peer that closes the connection no longer needs this pair. This is a failure only for operations that wait here.
  const bool was_asked_to = event.code == ep::Code::closed;
  fail(cause_of(event.code), Ending::at_once, !was_asked_to);
  context_.device().endpoint().close(connection_);  // drops messages that may be stored for the connection
  context_.changed().notify_all();
}

void Pair::fail(const std::string& cause, Ending ending, bool notify_others) {
  if (!failed()) {
    // A cause that comes from a wait already begins with context_.who().
    const bool is_whole = cause.starts_with(context_.who());
    error_ = is_whole ? cause : context_.who() + ": " + name() + ": " + cause + context_.noted();
    fail_waiters();
    context_.on_pair_failed(*this, notify_others);
    context_.changed().notify_all();
  }
  if (ending == Ending::at_once) {
    abort();
  } else if (!closing_) {
    closing_ = true;
    Record record;
    record.kind = Record::Kind::failure;
    record.id = static_cast<std::uint64_t>(context_.rank);
    const std::string text = error_.substr(0, kMaxInline);
    queue(record, std::as_bytes(std::span(text)));
    flush();
    close_if_flushed();
  }
}

void Pair::fail_waiters() {
  for (const Op* const op : active_) {
    if (op->unbound != nullptr) op->unbound->fail(error_);
  }
  for (auto& [number, each] : slots_)
    for (const PendingSend& pending : each.sends) pending.buffer->fail(error_);
  slots_.clear();
  outgoing_.clear();
  for (Buffer* const buffer : buffers_) buffer->fail(error_);
}

// ---- Sends and receives ----

void Pair::send(::gloo::transport::UnboundBuffer* buffer, std::uint64_t tag, std::size_t offset, std::size_t bytes) {
  buffer->send(rank_, tag, offset, bytes);
}

void Pair::recv(::gloo::transport::UnboundBuffer* buffer, std::uint64_t tag, std::size_t offset, std::size_t bytes) {
  buffer->recv(rank_, tag, offset, bytes);
}

Pair::Slot& Pair::slot(std::uint64_t number) {
  if (const auto found = slots_.find(number); found != slots_.end()) return found->second;
  if (spare_slots_.empty()) return slots_[number];
  Slots::node_type node = std::move(spare_slots_.back());
  spare_slots_.pop_back();
  node.key() = number;
  return slots_.insert(std::move(node)).position->second;
}

void Pair::drop_if_empty(std::uint64_t number) {
  const auto found = slots_.find(number);
  if (found == slots_.end() || !found->second.empty()) return;
  spare_slots_.push_back(slots_.extract(found));
}

void Pair::start_send(UnboundBuffer& buffer, std::uint64_t number, std::size_t offset, std::size_t bytes) {
  const PendingSend send{&buffer, static_cast<std::byte*>(buffer.ptr) + offset, bytes,
                         buffer.begin_send(rank_, number)};
  Slot& here = slot(number);
  Record record;
  record.kind = Record::Kind::send_ready;
  record.slot = number;
  if (here.granted.empty()) {
    here.sends.push_back(send);
    queue(record);
  } else {
    const std::uint64_t id = here.granted.front();
    here.granted.pop_front();
    drop_if_empty(number);
    post_send(send, number, id);
    append_record(outbox_, record);
  }
  flush();
}

void Pair::post_send(const PendingSend& send, std::uint64_t number, std::uint64_t id) {
  Op& op = take_op(Op::Kind::send);
  op.unbound = send.buffer;
  op.data = send.data;
  op.bytes = send.bytes;
  op.order = send.order;
  op.slot = number;
  op.id = id;
  op.tag = kPayloadTag | id;
  post(op);
}

void Pair::start_receive(UnboundBuffer& buffer, std::uint64_t number, std::size_t offset, std::size_t bytes) {
  Op& op = take_op(Op::Kind::receive);
  op.unbound = &buffer;
  op.data = static_cast<std::byte*>(buffer.ptr) + offset;
  op.bytes = bytes;
  op.slot = number;
  op.id = next_id_++;
  op.tag = kPayloadTag | op.id;
  op.order = buffer.begin_receive(rank_, number);
  Record record;
  record.kind = Record::Kind::receive_ready;
  record.slot = number;
  record.id = op.id;
  record.length = bytes;
  count_waiting(number, -1);
  post(op);
  queue(record);
  flush();
}

void Pair::count_waiting(std::uint64_t number, int by) {
  Slot& here = slot(number);
  const bool was_waiting = here.waiting > 0;
  here.waiting += by;
  // After a receive took a send of this rank, the rank queues behind the other ranks.
  if (by < 0 || !was_waiting) here.since = context_.next_arrival();
  drop_if_empty(number);
}

std::uint64_t Pair::waiting_since(std::uint64_t number) const {
  const auto found = slots_.find(number);
  return found != slots_.end() && found->second.waiting > 0 ? found->second.since : 0;
}

void Pair::on_receive_ready(std::uint64_t number, std::uint64_t id) {
  Slot& here = slot(number);
  if (here.sends.empty()) {
    here.granted.push_back(id);
    return;
  }
  const PendingSend pending = here.sends.front();
  here.sends.pop_front();
  drop_if_empty(number);
  post_send(pending, number, id);
}

// ---- Bound buffers ----

std::unique_ptr<::gloo::transport::Buffer> Pair::createSendBuffer(int number, void* memory, std::size_t bytes) {
  const Context::Lock lock(context_.mutex());
  auto buffer = std::make_unique<Buffer>(*this, number, memory, bytes);
  buffers_.push_back(buffer.get());
  return buffer;
}

std::unique_ptr<::gloo::transport::Buffer> Pair::createRecvBuffer(int number, void* memory, std::size_t bytes) {
  Context::Lock lock(context_.mutex());
  enforce(!receive_buffers_.contains(static_cast<std::uint64_t>(number)),
          context_.who() + ": there is a receive buffer with " + name() + " on slot " + std::to_string(number) +
              " already; give each a slot of its own");
  auto buffer = std::make_unique<Buffer>(*this, number, memory, bytes);
  buffers_.push_back(buffer.get());
  receive_buffers_[static_cast<std::uint64_t>(number)] = buffer.get();
  if (!failed()) {
    advance_writes();
    flush();
  } else {
    buffer->fail(error_);
  }
  return buffer;
}

void Pair::write(Buffer& buffer, std::uint64_t number, std::byte* data, std::size_t bytes, std::size_t offset) {
  Record record;
  record.slot = number;
  record.length = bytes;
  record.offset = offset;
  const std::uint64_t order = buffer.begin_send();
  if (bytes <= kMaxInline) {
    record.kind = Record::Kind::write_inline;
    queue(record, std::span<const std::byte>(data, bytes));
    buffer.on_sent(order);
  } else {
    record.kind = Record::Kind::write;
    record.id = next_id_++;
    outgoing_[record.id] = {&buffer, data, bytes, order};
    queue(record);
  }
  flush();
}

bool Pair::on_write(const Record& record, std::span<const std::byte> data) {
  if (incoming_.size() >= kMaxWaiting) return false;
  Incoming write;
  write.id = record.id;
  write.slot = record.slot;
  write.offset = record.offset;
  write.bytes = record.length;
  write.is_inline = record.kind == Record::Kind::write_inline;
  if (write.is_inline) write.data.assign(data.begin(), data.end());
  incoming_.push_back(std::move(write));
  advance_writes();
  return true;
}

bool Pair::start_write(Incoming& write) {
  const auto found = receive_buffers_.find(write.slot);
  if (found == receive_buffers_.end()) return true;
  Buffer& buffer = *found->second;
  if (write.offset > buffer.size() || write.bytes > buffer.size() - write.offset) {
    fail("it sends " + std::to_string(write.bytes) + " bytes to offset " + std::to_string(write.offset) +
             " of the buffer on slot " + std::to_string(write.slot) + ", which has " + std::to_string(buffer.size()) +
             "; give both ends the same size",
         Ending::graceful, true);
    return false;
  }
  write.buffer = &buffer;
  if (write.is_inline) {
    if (!write.data.empty()) std::memcpy(buffer.data() + write.offset, write.data.data(), write.data.size());
    write.state = Incoming::State::done;
    return true;
  }
  write.state = Incoming::State::under_way;
  Op& op = take_op(Op::Kind::write_receive);
  op.bound = &buffer;
  op.data = buffer.data() + write.offset;
  op.bytes = write.bytes;
  op.id = write.id;
  op.tag = kWriteTag | write.id;
  post(op);
  Record record;
  record.kind = Record::Kind::write_ready;
  record.id = write.id;
  queue(record);
  return true;
}

void Pair::advance_writes() {
  while (!incoming_.empty()) {
    Incoming& first = incoming_.front();
    if (first.state == Incoming::State::waits && !start_write(first)) return;
    if (first.state != Incoming::State::done) break;
    if (first.buffer != nullptr) first.buffer->on_received();
    incoming_.pop_front();
  }
  // A long write begins while earlier writes are in progress. A short write waits until earlier writes are complete, so
  // that no earlier write can overwrite its data.
  for (Incoming& write : incoming_)
    if (write.state == Incoming::State::waits && !write.is_inline && !start_write(write)) return;
}

void Pair::on_write_ready(std::uint64_t id) {
  const auto found = outgoing_.find(id);
  if (found == outgoing_.end()) return;  // the buffer of this write was destroyed
  Op& op = take_op(Op::Kind::write_send);
  op.bound = found->second.buffer;
  op.data = found->second.data;
  op.bytes = found->second.bytes;
  op.order = found->second.order;
  op.id = id;
  op.tag = kWriteTag | id;
  outgoing_.erase(found);
  post(op);
}

}  // namespace gloo::transport::mltcp
