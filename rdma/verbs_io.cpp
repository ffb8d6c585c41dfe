// Datapaths on queue pairs; see verbs_io.h.
#include "mltcp/rdma/verbs_io.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"

namespace mltcp::rdma {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
/// Before the route header, so that the packet begins on a line of the cache.
constexpr std::size_t kLead = kLine - (kGrhBytes + kShimBytes) % kLine;
/// Bursts without packets for the transport that one call of receive() passes over.
constexpr int kMostIdleBursts = 8;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t bytes_of(const TxPacket& packet) { return packet.header.size() + packet.payload.size(); }

KeyedHash random_hash() {
  SystemRandom random;
  const std::uint64_t start = random.next();
  return {start, random.next()};
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

// ---- Set-up ----

VerbsIo::VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config)
    : clock_(clock),
      device_(device),
      config_(config),
      receive_stride_(rounded_up(kLead + kGrhBytes + config.longest_message, kLine)),
      send_stride_(rounded_up(config.longest_message, kLine)),
      registered_(device),
      hash_(random_hash()),
      routes_(kRoutes),
      flights_(config.send_depth),
      waiting_(most_waiting) {
  limits_.max_packet_bytes = config.longest_message - static_cast<std::uint32_t>(kShimBytes);
  limits_.overhead_bytes = wire_overhead(config.network);
  limits_.burst = burst;
  limits_.ecn = config.network != Network::infiniband;
  limits_.hops = limits_.ecn;
  limits_.keeps_payload_from = config.most_pieces >= 2 ? config.zero_copy_from : 0;
  const std::uint32_t send_buffers = config.send_depth + most_waiting;
  const std::size_t bytes =
      rounded_up(config.receive_depth * receive_stride_ + send_buffers * send_stride_ + excess(), kPage);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
  if (memory_ == nullptr) throw RunError(fmt::format("no memory for {} kB of packets", bytes / 1024));
  std::memset(memory_.get(), 0, bytes);
  pair_ = device.make_queue_pair({.send_depth = config.send_depth,
                                  .receive_depth = config.receive_depth,
                                  .key = config.key,
                                  .pieces = std::min<std::uint32_t>(config.most_pieces, kPieces),
                                  .receive_pieces = excess() == 0 ? 1U : 2U,
                                  .inline_bytes = config.inline_bytes,
                                  .memory = {memory_.get(), bytes}});
  prepare_receives();
  free_buffers_.reserve(send_buffers);
  for (std::uint32_t i = send_buffers; i > 0; --i) free_buffers_.push_back(i - 1);
  handed_out_.reserve(burst);
  spent_.reserve(config.receive_depth);
  is_here_.reserve(config.receive_depth);
  for (std::uint32_t i = 0; i < config.receive_depth; ++i) spent_.push_back(i);
  post_receives(1);
  if (!spent_.empty())
    throw RunError(fmt::format("the device takes {} of {} receive buffers; ask for shorter queues",
                               config.receive_depth - spent_.size(), config.receive_depth));
  wait_file_ = epoll_create1(EPOLL_CLOEXEC);
  if (wait_file_ < 0)
    throw RunError(
        fmt::format("no epoll file can be had ({}); raise the limit of open files (ulimit -n)", std::strerror(errno)));
  wait_for(pair_->channel->fd);
}

/// Has who sleeps be woken by that file.
void VerbsIo::wait_for(int file) const {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(wait_file_, EPOLL_CTL_ADD, file, &event) != 0)
    throw RunError(fmt::format("a file can't be waited for ({}); raise /proc/sys/fs/epoll/max_user_watches",
                               std::strerror(errno)));
}

VerbsIo::~VerbsIo() {
  // What is in flight no longer reads the program's memory once the queue pair is gone.
  pair_.reset();
  finish_all();
  close(wait_file_);
}

void VerbsIo::attach(const Service& service, Mailbox& mailbox) {
  service_ = &service;
  mailbox_ = &mailbox;
  wait_for(mailbox.shard_wake.file());
}

RemoteQueue VerbsIo::own_queue() const {
  return {.number = pair_->number,
          .key = config_.key,
          .lid = device_.facts().lid,
          .longest = static_cast<std::uint16_t>(config_.longest_message)};
}

std::byte* VerbsIo::receive_buffer(std::uint32_t number) const { return memory_.get() + number * receive_stride_; }
std::byte* VerbsIo::send_buffer(std::uint32_t number) const {
  return memory_.get() + config_.receive_depth * receive_stride_ + number * send_stride_;
}

/// Bytes of the longest message there is that a buffer of ours has no room for.
std::uint32_t VerbsIo::excess() const {
  return config_.most_pieces < 2 || config_.longest_message >= kMostMessage ? 0
                                                                            : kMostMessage - config_.longest_message;
}

/// What all requests to receive have in common.
void VerbsIo::prepare_receives() {
  const std::byte* const scrap = send_buffer(config_.send_depth + most_waiting);
  for (std::size_t i = 0; i < kRepost; ++i) {
    receive_pieces_[i] = {
        ibv_sge{0, static_cast<std::uint32_t>(kGrhBytes) + config_.longest_message, pair_->memory_key},
        ibv_sge{address_of(scrap), excess(), pair_->memory_key}};
    receives_[i].sg_list = receive_pieces_[i].data();
    receives_[i].num_sge = excess() == 0 ? 1 : 2;
  }
}

void VerbsIo::arm() {
  ibv_req_notify_cq(pair_->received, 0);
  if (holds_ != 0 || blocked_) ibv_req_notify_cq(pair_->sent, 0);
}

void VerbsIo::disarm() {
  while (pair_->take_event()) {
  }
  mailbox_->shard_wake.reset();
}

// ---- Routes ----

/// Null: all places are busy, the service does not keep up, or nobody can have that address.
VerbsIo::Route* VerbsIo::route_to(const Address& destination, std::uint8_t traffic_class, Nanos now) {
  // Most packets of a burst go where the one before them went.
  if (Route& last = routes_[last_route_]; last.traffic_class == traffic_class && last.destination == destination &&
                                          last.is_used && now < last.ask_at) [[likely]] {
    last.used_at = now;
    return &last;
  }
  const auto set = static_cast<std::uint32_t>(hash_.of(destination, traffic_class) % kSets);
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Route& route = routes_[set * kWays + way];
    if (route.destination != destination || route.traffic_class != traffic_class || !route.is_used) continue;
    route.used_at = now;
    if (now >= route.ask_at) [[unlikely]]
      refresh(route, now);
    last_route_ = number_of(route);
    return &route;
  }
  if (!is_host(destination, config_.address)) return nullptr;
  Route* const place = find_place(set);
  if (place == nullptr) return nullptr;
  *place = {.destination = destination,
            .traffic_class = traffic_class,
            .shim = make_shim(config_.address.port, destination.port),
            .used_at = now};
  // One that the service does not know of would have packets wait for nothing.
  if (!request(*place, now)) return nullptr;
  place->is_used = true;
  return place;
}

/// Of its set the place that is free, or was not used for longest. Null: all are busy.
VerbsIo::Route* VerbsIo::find_place(std::uint32_t set) {
  Route* oldest = nullptr;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Route& route = routes_[set * kWays + way];
    if (!route.is_used) return &route;
    if (route.busy == 0 && (oldest == nullptr || route.used_at < oldest->used_at)) oldest = &route;
  }
  if (oldest == nullptr) {
    // Those that have left need not be seen to have.
    reap();
    return nullptr;
  }
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::release,
                                .route = number_of(*oldest),
                                .generation = oldest->generation,
                                .destination = {}}))
    return nullptr;
  oldest->is_used = false;
  return oldest;
}

/// False if the mailbox is full; the next packet tries again.
bool VerbsIo::request(Route& route, Nanos now) {
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::want,
                                .traffic_class = route.traffic_class,
                                .service_level = static_cast<std::uint8_t>(route.traffic_class >> 5),
                                .route = number_of(route),
                                .generation = generation_ + 1,
                                .destination = route.destination}))
    return false;
  route.generation = ++generation_;
  route.state = Resolution::State::asked;
  route.handle = nullptr;
  route.ask_at = now + refresh_after;
  service_->wake();
  return true;
}

/// A route that is known, or being asked for, is asked for anew; one to a peer that was unreachable begins again.
void VerbsIo::refresh(Route& route, Nanos now) {
  if (route.state == Resolution::State::unreachable) {
    if (route.busy == 0) request(route, now);
    return;
  }
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::refresh,
                                .route = number_of(route),
                                .generation = route.generation,
                                .destination = {},
                                .settled = flights_.begin() >= route.handle_from ? route.handle : nullptr}))
    return;
  route.ask_at = now + refresh_after;
  service_->wake();
}

void VerbsIo::take_news() {
  const Nanos now = clock_.now();
  while (const auto news = mailbox_->news.pop()) {
    ++news_;
    Route& route = routes_[news->route];
    if (!route.is_used || route.generation != news->generation) continue;
    route.state = news->state;
    route.queue = news->queue;
    if (route.handle != news->handle) route.handle_from = flights_.end();
    route.handle = news->handle;
    route.ask_at = now + refresh_after;
  }
  send_waiting();
}

/// Those whose route is decided, in order.
void VerbsIo::send_waiting() {
  is_waiting_for_room_ = false;
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    const Waiting next = waiting_.front();
    Route& route = routes_[next.route];
    if (route.state == Resolution::State::known && !has_room()) {
      is_waiting_for_room_ = true;
      break;
    }
    waiting_.pop();
    if (route.state == Resolution::State::asked) {
      waiting_.push(next);
      continue;
    }
    --route.busy;
    if (route.state == Resolution::State::unreachable || next.bytes > route.queue.longest) {
      if (route.state == Resolution::State::unreachable)
        ++counters_.unreachable;
      else
        note_narrow(route);
      free_buffers_.push_back(next.buffer);
      continue;
    }
    ibv_send_wr& request = add_request(route, {.buffer = next.buffer, .route = next.route});
    *request.sg_list = {address_of(send_buffer(next.buffer)), next.bytes, pair_->memory_key};
    request.num_sge = 1;
    if (request_count_ == burst) post_requests();
  }
  post_requests();
}

void VerbsIo::drop_oldest_waiting() {
  const Waiting oldest = waiting_.front();
  waiting_.pop();
  --routes_[oldest.route].busy;
  free_buffers_.push_back(oldest.buffer);
  ++counters_.waiting_full;
}

/// A message is too long for that peer.
void VerbsIo::note_narrow(const Route& route) {
  ++counters_.too_long;
  narrow_.store({route.destination, clock_.now() + narrow_for});
}

std::optional<Address> VerbsIo::narrow_peer() const {
  const Narrow narrow = narrow_.load();
  if (clock_.now() >= narrow.until) return std::nullopt;
  return narrow.peer;
}

bool VerbsIo::resolve(const Address& destination) {
  if (!mailbox_->news.is_empty()) take_news();
  const Route* const route = route_to(destination, 0, clock_.now());
  return route != nullptr && route->state == Resolution::State::known;
}

// ---- Sending ----

bool VerbsIo::is_sendable(const TxPacket& packet) const {
  return (config_.network == Network::infiniband || packet.destination->is_v4() == config_.address.is_v4()) &&
         packet.destination->port != 0 && packet.priority < kPriorities &&
         bytes_of(packet) <= limits_.max_packet_bytes && (packet.payload.data() != nullptr || packet.payload.empty());
}

/// Whether another request fits the send queue.
bool VerbsIo::has_room() {
  if (flights_.size() < config_.send_depth) [[likely]]
    return true;
  post_requests();
  reap();
  return flights_.size() < config_.send_depth;
}

/// Writes shim and header, and the payload if it is wanted, into a buffer; returns the bytes written.
std::uint32_t VerbsIo::copy(const TxPacket& packet, const Route& route, bool with_payload, std::uint32_t buffer) const {
  std::byte* const begin = send_buffer(buffer);
  std::byte* out = std::copy(route.shim.begin(), route.shim.end(), begin);
  out = std::copy(packet.header.begin(), packet.header.end(), out);
  if (with_payload && !packet.payload.empty()) {
    std::memcpy(out, packet.payload.data(), packet.payload.size());
    out += packet.payload.size();
  }
  return static_cast<std::uint32_t>(out - begin);
}

/// Its pieces are filled in by the caller.
ibv_send_wr& VerbsIo::add_request(Route& route, const InFlight& flight) {
  const std::uint64_t position = flights_.push(flight);
  ++route.busy;
  ibv_send_wr& request = requests_[request_count_];
  request.wr_id = position;
  request.sg_list = pieces_[request_count_].data();
  request.opcode = IBV_WR_SEND;
  request.send_flags = 0;
  request.wr.ud.ah = route.handle;
  request.wr.ud.remote_qpn = route.queue.number;
  request.wr.ud.remote_qkey = route.queue.key;
  request.next = nullptr;
  if (request_count_ > 0) requests_[request_count_ - 1].next = &request;
  ++request_count_;
  return request;
}

void VerbsIo::wait(const TxPacket& packet, Route& route) {
  if (waiting_.size() >= most_waiting) drop_oldest_waiting();
  const std::uint32_t buffer = free_buffers_.back();
  free_buffers_.pop_back();
  waiting_.push({buffer, number_of(route), copy(packet, route, true, buffer)});
  ++route.busy;
  ++counters_.waited;
}

VerbsIo::Fate VerbsIo::send_one(const TxPacket& packet, Nanos now) {
  if (!is_sendable(packet)) [[unlikely]] {
    ++counters_.unsendable;
    return Fate::taken;
  }
  Route* const found = route_to(*packet.destination, traffic_class(packet), now);
  if (found == nullptr) [[unlikely]] {
    ++(is_host(*packet.destination, config_.address) ? counters_.no_route : counters_.unsendable);
    return Fate::taken;
  }
  Route& route = *found;
  if (route.state != Resolution::State::known) [[unlikely]] {
    if (route.state == Resolution::State::asked)
      wait(packet, route);
    else
      ++counters_.unreachable;
    return Fate::taken;
  }
  const std::size_t bytes = kShimBytes + bytes_of(packet);
  if (bytes > route.queue.longest) [[unlikely]] {
    note_narrow(route);
    return Fate::taken;
  }
  if (!has_room()) return Fate::blocked;
  if (bytes <= pair_->inline_bytes && config_.most_pieces >= kPieces) {
    ibv_send_wr& request = add_request(route, {.route = number_of(route)});
    ibv_sge* piece = request.sg_list;
    *piece++ = {address_of(route.shim.data()), static_cast<std::uint32_t>(kShimBytes), 0};
    *piece++ = {address_of(packet.header.data()), static_cast<std::uint32_t>(packet.header.size()), 0};
    if (!packet.payload.empty())
      *piece++ = {address_of(packet.payload.data()), static_cast<std::uint32_t>(packet.payload.size()), 0};
    request.num_sge = static_cast<int>(piece - request.sg_list);
    request.send_flags = IBV_SEND_INLINE;
    ++counters_.inlined;
    return Fate::taken;
  }
  // There are more buffers than requests can be in flight and packets can wait.
  const std::uint32_t buffer = free_buffers_.back();
  free_buffers_.pop_back();
  std::optional<std::uint64_t> key;
  if (packet.hold != nullptr && limits_.keeps_payload_from != 0 && packet.payload.size() >= limits_.keeps_payload_from)
    key = registered_.find(packet.payload);
  PayloadHold* const hold = key ? packet.hold : nullptr;
  if (hold != nullptr) {
    hold->packets.fetch_add(1, std::memory_order_relaxed);
    ++holds_;
    ++counters_.by_reference;
  }
  ibv_send_wr& request = add_request(route, {.buffer = buffer, .route = number_of(route), .hold = hold});
  const std::uint32_t copied = copy(packet, route, hold == nullptr, buffer);
  request.sg_list[0] = {address_of(send_buffer(buffer)), copied, pair_->memory_key};
  request.num_sge = 1;
  if (hold != nullptr) {
    request.sg_list[1] = {address_of(packet.payload.data()), static_cast<std::uint32_t>(packet.payload.size()),
                          static_cast<std::uint32_t>(*key)};
    request.num_sge = 2;
  }
  return Fate::taken;
}

/// All requests that have been added, the last of them signalled.
void VerbsIo::post_requests() {
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

/// Requests from `from` on have not been posted: as if they were lost on the way. Null: the device does not say which.
/// The queue pair has failed, or the device is gone; its event tells which.
void VerbsIo::on_refused(const ibv_send_wr* from) {
  has_failed_ = true;
  if (from == nullptr) {
    // It may have taken some, which read their buffers and payloads until recover() resets the queue pair.
    must_reset_ = true;
    doubtful_from_ = std::min(doubtful_from_, requests_[0].wr_id);
    return;
  }
  const std::uint64_t first = from->wr_id;
  const std::uint64_t end = flights_.end();
  for (std::uint64_t position = first; position < end; ++position) finish(flights_[position]);
  flights_.truncate(first);
  counters_.send_errors += end - first;
  counters_.sent_packets -= end - first;
  // Of those before it the last of the list would have told, which is among the refused.
  must_reset_ = must_reset_ || first != requests_[0].wr_id;
}

void VerbsIo::finish(const InFlight& flight) {
  --routes_[flight.route].busy;
  if (flight.buffer != kNone) free_buffers_.push_back(flight.buffer);
  if (flight.hold != nullptr) {
    flight.hold->packets.fetch_sub(1, std::memory_order_release);
    --holds_;
  }
}

/// Takes completions of sends. A completion of one request tells that those before it are complete, too.
void VerbsIo::reap() {
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

/// Of those in flight there will be no completions, and nothing reads their payloads any more.
void VerbsIo::finish_all() {
  for (; !flights_.empty(); flights_.pop()) finish(flights_.front());
}

/// Makes a queue pair ready again that has failed, by an error of one request.
void VerbsIo::recover() {
  const Nanos now = clock_.now();
  if (now - recovered_at_ < recover_after) return;
  recovered_at_ = now;
  if (!flights_.empty()) reap();
  const QueuePair::Recovery how = pair_->recover(must_reset_);
  has_failed_ = how == QueuePair::Recovery::failed;
  if (how == QueuePair::Recovery::resumed || how == QueuePair::Recovery::reset) ++counters_.recoveries;
  if (how != QueuePair::Recovery::reset) return;
  must_reset_ = false;
  if (doubtful_from_ < flights_.end()) {
    const std::uint64_t lost = flights_.end() - std::max(doubtful_from_, flights_.begin());
    counters_.send_errors += lost;
    counters_.sent_packets -= lost;
  }
  doubtful_from_ = kNoPosition;
  finish_all();
  is_here_.assign(config_.receive_depth, false);
  for (const std::uint32_t buffer : handed_out_) is_here_[buffer] = true;
  spent_.clear();
  for (std::uint32_t buffer = 0; buffer < config_.receive_depth; ++buffer)
    if (!is_here_[buffer]) spent_.push_back(buffer);
  post_receives(1);
}

/// The device is gone: nothing is sent any more, and who waits for what was need not wait.
void VerbsIo::end() {
  if (std::exchange(has_ended_, true)) return;
  has_failed_ = false;
  pair_->stop();
  counters_.send_errors += flights_.size() + waiting_.size();
  finish_all();
  for (; !waiting_.empty(); waiting_.pop()) {
    --routes_[waiting_.front().route].busy;
    free_buffers_.push_back(waiting_.front().buffer);
  }
  is_waiting_for_room_ = false;
}

std::size_t VerbsIo::send(std::span<const TxPacket> packets) {
  packets = packets.first(std::min<std::size_t>(packets.size(), burst));
  blocked_ = false;
  if (device_.is_gone()) [[unlikely]] {
    end();
    counters_.send_errors += packets.size();
    return packets.size();
  }
  if (flights_.size() > config_.send_depth / 2) reap();
  const Nanos now = clock_.now();
  std::size_t done = 0;
  while (done < packets.size() && send_one(packets[done], now) == Fate::taken) ++done;
  post_requests();
  if (done < packets.size()) {
    blocked_ = true;
    ++counters_.full;
  }
  return done;
}

// ---- Receiving ----

void VerbsIo::post_receives(std::size_t least) {
  while (spent_.size() >= least) {
    const std::size_t count = std::min<std::size_t>(spent_.size(), kRepost);
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t buffer = spent_[spent_.size() - 1 - i];
      receive_pieces_[i][0].addr = address_of(receive_buffer(buffer) + kLead);
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

void VerbsIo::give_back() {
  spent_.insert(spent_.end(), handed_out_.begin(), handed_out_.end());
  handed_out_.clear();
  post_receives(kRepost);
}

/// Whether the message is a packet for the transport, which is then in `out`.
bool VerbsIo::accept(const ibv_wc& done, RxPacket& out) {
  const auto buffer = static_cast<std::uint32_t>(done.wr_id);
  handed_out_.push_back(buffer);
  if (done.status != IBV_WC_SUCCESS) [[unlikely]] {
    ++counters_.receive_errors;
    has_failed_ = true;
    return false;
  }
  if ((done.wc_flags & IBV_WC_GRH) == 0) [[unlikely]] {
    ++counters_.no_header;
    return false;
  }
  if (done.byte_len > kGrhBytes + config_.longest_message) [[unlikely]] {
    ++counters_.over_long;
    return false;
  }
  const std::span<const std::byte> message(receive_buffer(buffer) + kLead, done.byte_len);
  Arrival arrival;
  if (!read_arrival(message, config_.network, config_.address, arrival)) [[unlikely]] {
    ++counters_.bad_header;
    return false;
  }
  if (arrival.destination_port != config_.address.port) [[unlikely]] {
    ++counters_.not_for_us;
    return false;
  }
  out.source = arrival.source;
  out.bytes = message.subspan(kGrhBytes + kShimBytes);
  out.virtual_bytes = 0;
  out.ecn = arrival.ecn;
  out.priority = arrival.priority;
  out.hops = arrival.hops;
  out.tail = {};
  return true;
}

std::size_t VerbsIo::receive(std::span<RxPacket> out) {
  blocked_ = false;
  if (device_.is_gone()) [[unlikely]] {
    end();
    return 0;
  }
  if (!mailbox_->news.is_empty()) [[unlikely]]
    take_news();
  else if (is_waiting_for_room_) [[unlikely]]
    send_waiting();
  if (holds_ != 0) reap();
  if (pair_->has_failed.load(std::memory_order_relaxed)) [[unlikely]]
    has_failed_ = pair_->has_failed.exchange(false, std::memory_order_acquire) || has_failed_;
  if (has_failed_) [[unlikely]]
    recover();
  const std::size_t most = std::min<std::size_t>(out.size(), burst);
  std::size_t count = 0;
  for (int bursts = 0; bursts < kMostIdleBursts && count == 0; ++bursts) {
    give_back();
    const int got = ibv_poll_cq(pair_->received, static_cast<int>(most), done_.data());
    if (got <= 0) break;
    for (int i = 0; i < got; ++i) count += accept(done_[static_cast<std::size_t>(i)], out[count]) ? 1U : 0U;
  }
  // Nothing tells of what has been sent; but where there is time to look, an error is seen soon.
  if (count == 0 && !flights_.empty()) reap();
  counters_.received_packets += count;
  return count;
}

}  // namespace mltcp::rdma
