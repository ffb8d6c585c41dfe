// Resolves addresses on a segment; see neighbours.h.
//
// The table is a hash table with chains of indices into a fixed array. One heap stores all timers. There are two LRU
// lists, one for resolved and one for unreachable entries. A full table evicts unreachable entries first, then the
// least recently used resolved entry. Entries being resolved are never evicted. So this host sends at most
// `max_entries` requests per `retry`, whatever causes the requests.
#include "mltcp/transport/ethernet/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/transport/network_order.h"

namespace mltcp {
namespace {

using encap::load;
using encap::load_network;
using encap::MacAddress;
using encap::store_network;
using encap::to_network;
using Ip = std::array<std::uint8_t, 16>;

constexpr std::uint16_t kEtherTypeArp = 0x0806;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
/// Shorter frames are padded to this length, because not every virtual port pads them.
constexpr std::size_t kMinFrameBytes = 60;

// Constants of ARP (RFC 826).
constexpr std::size_t kArpBytes = 28;
constexpr std::uint16_t kArpEthernet = 1;
constexpr std::uint16_t kArpRequest = 1;
constexpr std::uint16_t kArpReply = 2;

// Constants of Neighbour Discovery (RFC 4861 section 4).
constexpr std::uint8_t kProtocolIcmpv6 = 58;
constexpr std::uint8_t kHopLimit = 255;
constexpr std::uint8_t kNeighbourSolicitation = 135;
constexpr std::uint8_t kNeighbourAdvertisement = 136;
constexpr std::size_t kDiscoveryBytes = 24;  // length of a message without options
constexpr std::size_t kLinkLayerOptionBytes = 8;
constexpr std::uint8_t kSourceLinkLayer = 1;
constexpr std::uint8_t kTargetLinkLayer = 2;
constexpr std::uint8_t kSolicitedFlag = 0x40;
constexpr std::uint8_t kOverrideFlag = 0x20;

/// Minimum time between two defences of this host's address (RFC 5227 section 1.1, DEFEND_INTERVAL).
constexpr Nanos kDefendInterval{10'000'000'000};
constexpr Nanos kDay{86'400'000'000'000};

constexpr MacAddress kNoMac{};
constexpr MacAddress kBroadcast{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
constexpr Ip kUnspecified{};
constexpr Ip kAllNodes{0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

constexpr bool is_group(const MacAddress& mac) { return (mac[0] & 1) != 0; }
/// Returns whether `mac` is a valid unicast source address.
constexpr bool is_station(const MacAddress& mac) { return !is_group(mac) && mac != kNoMac; }
constexpr bool is_multicast(const Ip& ip) { return ip[0] == 0xFF; }

constexpr Ip solicited_node(const Ip& ip) {
  return {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, ip[13], ip[14], ip[15]};
}
/// Returns the MAC address for a multicast IP address (RFC 2464 section 7).
constexpr MacAddress multicast_mac(const Ip& ip) { return {0x33, 0x33, ip[12], ip[13], ip[14], ip[15]}; }

MacAddress mac_at(const std::byte* from) { return load<MacAddress>(from); }
Ip ip_at(const std::byte* from) { return load<Ip>(from); }
Ip v4_at(const std::byte* from) {
  Ip ip = Address::v4(0, 0).ip;
  std::memcpy(&ip[12], from, 4);
  return ip;
}

Ip mask_of(std::size_t bits) {
  Ip mask{};
  for (std::size_t i = 0; i < bits; ++i) mask[i / 8] = static_cast<std::uint8_t>(mask[i / 8] | 0x80U >> i % 8);
  return mask;
}

bool same_prefix(const Ip& a, const Ip& b, const Ip& mask) {
  using Words = std::array<std::uint64_t, 2>;
  const auto x = std::bit_cast<Words>(a);
  const auto y = std::bit_cast<Words>(b);
  const auto m = std::bit_cast<Words>(mask);
  return (((x[0] ^ y[0]) & m[0]) | ((x[1] ^ y[1]) & m[1])) == 0;
}

/// Returns whether a single host can have this address on some segment.
bool is_host(const Address& address) {
  if (address.is_v4()) {
    const std::uint32_t ip = address.v4_ip();
    return ip >> 24 != 0 && ip >> 24 != 127 && ip >> 28 != 14 && ip != 0xFFFF'FFFF;
  }
  constexpr Ip loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return !is_multicast(address.ip) && address.ip != kUnspecified && address.ip != loopback;
}

/// Returns whether `ip` is the address of its network, or the network's broadcast address (RFC 1122 section 3.2.1.3). A
/// prefix of 31 bits has neither (RFC 3021).
bool is_network_or_broadcast(std::uint32_t ip, std::uint32_t prefix_bits) {
  if (prefix_bits > 30) return false;
  const std::uint32_t host = 0xFFFF'FFFF >> prefix_bits;
  return (ip & host) == 0 || (ip & host) == host;
}

bool is_link_local(const Ip& ip) { return ip[0] == 0xFE && (ip[1] & 0xC0) == 0x80; }

std::string text_of(const Address& address) {
  const std::string text = to_text(address);
  return text.substr(0, text.rfind(':'));
}

void check(bool good, const std::string& message) {
  if (!good) throw InputError(message);
}

/// Returns the sum over all bytes that the ICMPv6 checksum covers, including the checksum itself. The sum is 0xFFFF if
/// the checksum is correct. `packet` is the IPv6 packet with a message of `size` bytes.
std::uint16_t icmp_sum(const std::byte* packet, std::size_t size) {
  const std::uint16_t covered = encap::sum(packet + 8, 32 + size);
  return encap::join(encap::join(covered, to_network(static_cast<std::uint16_t>(size)), 0), to_network(kProtocolIcmpv6),
                     0);
}

/// Returns whether an IPv6 packet is a neighbour solicitation or advertisement.
bool is_discovery(std::span<const std::byte> packet) {
  if (packet.size() <= encap::kIpv6Bytes || std::to_integer<unsigned>(packet[0]) >> 4 != 6) return false;
  const auto type = std::to_integer<std::uint8_t>(packet[encap::kIpv6Bytes]);
  return std::to_integer<std::uint8_t>(packet[6]) == kProtocolIcmpv6 &&
         (type == kNeighbourSolicitation || type == kNeighbourAdvertisement);
}

}  // namespace

Neighbours::Neighbours(const NeighbourConfig& config) : config_(config) {
  SystemRandom random;
  key_ = {random.next(), random.next()};
  config_.own.port = 0;
  config_.gateway.port = 0;
  own_ = config_.own.ip;
  v4_ = config_.own.is_v4();
  const std::uint32_t max_bits = v4_ ? 32 : 128;
  check(is_station(config_.mac), "the MAC address of an Ethernet end is zero or a group address; give the port's own");
  check(config_.prefix_bits >= 1 && config_.prefix_bits <= max_bits,
        fmt::format("the prefix length {} of {} is out of range; give 1 to {}", config_.prefix_bits,
                    text_of(config_.own), max_bits));
  mask_ = mask_of(config_.prefix_bits + 128 - max_bits);
  check(is_host(config_.own) && !(v4_ && is_network_or_broadcast(config_.own.v4_ip(), config_.prefix_bits)),
        fmt::format("{}/{} is not the address of a host; give a host's address", text_of(config_.own),
                    config_.prefix_bits));
  if (config_.gateway == Address::v4(0, 0)) config_.gateway = {};
  if (config_.gateway != Address{}) {
    const Address& gateway = config_.gateway;
    // In many clouds a host's prefix contains only the host's own address. The gateway is then outside the prefix, but
    // on the segment.
    const bool on_segment =
        gateway.is_v4() == v4_ && (same_prefix(gateway.ip, own_, mask_) || config_.prefix_bits == max_bits ||
                                   (!v4_ && is_link_local(gateway.ip)));
    check(on_segment && is_host(gateway) && gateway != config_.own &&
              !(v4_ && is_network_or_broadcast(gateway.v4_ip(), config_.prefix_bits)),
          fmt::format("the gateway {} is not another host on the segment of {}/{}; give one that is, or none",
                      text_of(gateway), text_of(config_.own), config_.prefix_bits));
  }
  check(config_.vlan <= encap::kMaxVlan,
        fmt::format("the VLAN {} is out of range; give 1 to {}, or 0 for none", config_.vlan, encap::kMaxVlan));
  check(config_.max_entries >= 1 && config_.max_entries <= 1U << 20,
        fmt::format("a table of {} neighbours is out of range; give 1 to {}", config_.max_entries, 1U << 20));
  check(config_.max_questions >= 1 && config_.max_questions <= 255,
        fmt::format("{} requests to a neighbour are out of range; give 1 to 255", config_.max_questions));
  check(config_.retry > Nanos(0) && config_.retry <= kDay && config_.fresh_for > Nanos(0) && config_.fresh_for <= kDay,
        "the times of neighbours are out of range; give more than 0 and at most a day");

  entries_.resize(config_.max_entries + 2);
  buckets_.assign(std::bit_ceil(config_.max_entries), kNone);
  timers_.reserve(config_.max_entries);
  for (std::uint32_t id = config_.max_entries; id-- > 0;) {
    entries_[id].next = free_;
    free_ = id;
  }
  for (const std::uint32_t head : {known_list(), unreachable_list()}) {
    entries_[head].newer = entries_[head].older = head;
  }
}

// The table

std::size_t Neighbours::bucket_of(const Ip& ip) const {
  return siphash(key_, std::as_bytes(std::span(ip))) & (buckets_.size() - 1);
}

std::uint32_t Neighbours::lookup(const Ip& ip) const {
  std::uint32_t id = buckets_[bucket_of(ip)];
  while (id != kNone && entries_[id].ip != ip) id = entries_[id].next;
  return id;
}

std::uint32_t Neighbours::insert(const Ip& ip) {
  if (free_ == kNone) {
    ++counters_.table_full;
    for (const std::uint32_t list : {unreachable_list(), known_list()}) {
      if (free_ == kNone && entries_[list].newer != list) erase(entries_[list].newer);
    }
    if (free_ == kNone) return kNone;
  }
  const std::uint32_t id = free_;
  free_ = entries_[id].next;
  std::uint32_t& bucket = buckets_[bucket_of(ip)];
  entries_[id] = {};
  entries_[id].ip = ip;
  entries_[id].next = bucket;
  bucket = id;
  return id;
}

void Neighbours::erase(std::uint32_t id) {
  unlink(id);
  timers_.set(id, Nanos::never());
  std::uint32_t* from = &buckets_[bucket_of(entries_[id].ip)];
  while (*from != id) from = &entries_[*from].next;
  *from = entries_[id].next;
  entries_[id].next = free_;
  free_ = id;
}

void Neighbours::unlink(std::uint32_t id) {
  Entry& entry = entries_[id];
  if (entry.newer == kNone) return;
  entries_[entry.newer].older = entry.older;
  entries_[entry.older].newer = entry.newer;
  entry.newer = entry.older = kNone;
}

void Neighbours::link(std::uint32_t id, std::uint32_t list) {
  // The list is circular. The sentinel's `older` is the most recently used entry. The sentinel's `newer` is the next
  // entry to be evicted.
  if (entries_[list].older == id) return;
  unlink(id);
  Entry& entry = entries_[id];
  entry.newer = list;
  entry.older = entries_[list].older;
  entries_[entry.older].newer = id;
  entries_[list].older = id;
}

void Neighbours::schedule(std::uint32_t id, Nanos at) {
  entries_[id].at = at;
  timers_.set(id, at);
}

void Neighbours::ask(std::uint32_t id, Phase phase, Nanos now) {
  Entry& entry = entries_[id];
  entry.phase = phase;
  entry.questions = 0;
  if (phase == Phase::incomplete) unlink(id);
  // Limits the rate of requests, no matter how often the entry becomes stale.
  schedule(id, entry.was_asked ? std::max(now, entry.asked_at + config_.retry) : now);
}

void Neighbours::set_fresh(std::uint32_t id, bool fresh, Nanos now) {
  entries_[id].phase = fresh ? Phase::reachable : Phase::stale;
  schedule(id, fresh ? now + config_.fresh_for : Nanos::never());
}

// Look-up

std::optional<Ip> Neighbours::next_hop(const Address& destination) const {
  if (destination.is_v4() != v4_ || !is_host(destination) || destination.ip == own_) return std::nullopt;
  if (same_prefix(destination.ip, own_, mask_)) {
    if (v4_ && is_network_or_broadcast(destination.v4_ip(), config_.prefix_bits)) return std::nullopt;
    return destination.ip;
  }
  if (!v4_ && is_link_local(destination.ip)) return destination.ip;
  if (config_.gateway == Address{}) return std::nullopt;
  return config_.gateway.ip;
}

Neighbours::Found Neighbours::find(const Address& destination, Nanos now) {
  latest_ = now;
  const std::optional<Ip> ip = next_hop(destination);
  if (!ip) return {};
  std::uint32_t id = lookup(*ip);
  if (id == kNone) {
    id = insert(*ip);
    if (id == kNone) return {};
    ask(id, Phase::incomplete, now);
  }
  Entry& entry = entries_[id];
  switch (entry.phase) {
    case Phase::incomplete:
      return {State::asked, {}};
    case Phase::unreachable:
      if (now < entry.at) return {};
      ask(id, Phase::incomplete, now);
      return {State::asked, {}};
    case Phase::reachable:
      if (now >= entry.at) ask(id, Phase::probe, now);
      break;
    case Phase::stale:
      ask(id, Phase::probe, now);
      break;
    case Phase::probe:
      break;
  }
  link(id, known_list());
  return {State::known, entry.mac};
}

void Neighbours::announce() { announce_ = true; }

Nanos Neighbours::deadline() const {
  return announce_ || answer_count_ != 0 ? std::min(latest_, timers_.next()) : timers_.next();
}

// Receiving

void Neighbours::learn(const Ip& ip, const MacAddress* mac, bool override_known, bool confirmed, Nanos now) {
  const std::uint32_t id = lookup(ip);
  if (id == kNone) return;
  Entry& entry = entries_[id];
  if (entry.phase == Phase::incomplete || entry.phase == Phase::unreachable) {
    if (mac == nullptr) return;
    entry.mac = *mac;
    link(id, known_list());
    set_fresh(id, confirmed, now);
    ++counters_.learnt;
    ++generation_;
    return;
  }
  const bool differs = mac != nullptr && *mac != entry.mac;
  if (differs && !override_known) {
    // The new MAC address is not trusted, but it is a reason to send a request.
    if (entry.phase == Phase::reachable) {
      set_fresh(id, false, now);
      ++generation_;
    }
    return;
  }
  if (differs) {
    entry.mac = *mac;
    ++counters_.changed;
    ++generation_;
  }
  if (confirmed || differs) set_fresh(id, confirmed, now);
}

void Neighbours::answer(const Ip& ip, const MacAddress& mac) {
  for (std::size_t i = 0; i < answer_count_; ++i) {
    const Answer& waiting = answers_[(first_answer_ + i) % answers_.size()];
    if (waiting.ip == ip && waiting.mac == mac) return;
  }
  if (answer_count_ == answers_.size()) {
    ++counters_.table_full;
    return;
  }
  answers_[(first_answer_ + answer_count_) % answers_.size()] = {ip, mac};
  ++answer_count_;
}

void Neighbours::on_conflict(Nanos now) {
  ++counters_.conflicts;
  // Prevents two hosts that defend one address from replying to each other endlessly (RFC 5227 section 2.4).
  if (defended_ && now < defended_at_ + kDefendInterval) return;
  defended_ = true;
  defended_at_ = now;
  announce_ = true;
}

bool Neighbours::receive_arp(std::span<const std::byte> packet, Nanos now) {
  if (packet.size() < kArpBytes) return false;
  const std::byte* arp = packet.data();
  if (load_network(arp) != kArpEthernet || load_network(arp + 2) != kEtherTypeIpv4 || arp[4] != std::byte{6} ||
      arp[5] != std::byte{4}) {
    return false;
  }
  const std::uint16_t operation = load_network(arp + 6);
  if (operation != kArpRequest && operation != kArpReply) return true;  // reverse or inverse ARP
  const MacAddress sender_mac = mac_at(arp + 8);
  const Address sender{v4_at(arp + 14), 0};
  const bool probe = sender.v4_ip() == 0 && operation == kArpRequest;
  if (!is_station(sender_mac) || !(probe || is_host(sender))) return false;
  if (sender_mac == config_.mac) return true;
  if (sender.ip == own_) {
    on_conflict(now);
    return true;
  }
  learn(sender.ip, &sender_mac, true, true, now);
  if (operation == kArpRequest && v4_at(arp + 24) == own_) answer(sender.ip, sender_mac);
  return true;
}

bool Neighbours::receive_discovery(std::span<const std::byte> packet, const MacAddress& source_mac, Nanos now) {
  const std::byte* ip = packet.data();
  const std::size_t size = load_network(ip + 4);
  if (size < kDiscoveryBytes || size > packet.size() - encap::kIpv6Bytes) return false;
  const std::byte* message = ip + encap::kIpv6Bytes;
  const bool solicitation = message[0] == std::byte{kNeighbourSolicitation};
  if (ip[7] != std::byte{kHopLimit} || message[1] != std::byte{0} || icmp_sum(ip, size) != 0xFFFF) return false;
  const Ip source = ip_at(ip + 8);
  const Ip destination = ip_at(ip + 24);
  const Ip target = ip_at(message + 8);
  if (is_multicast(source) || is_multicast(target)) return false;

  std::optional<MacAddress> mac;
  const std::byte wanted{solicitation ? kSourceLinkLayer : kTargetLinkLayer};
  for (std::size_t at = kDiscoveryBytes; at < size;) {
    if (size - at < 8) return false;
    const std::size_t option_bytes = std::to_integer<std::size_t>(message[at + 1]) * 8;
    if (option_bytes == 0 || option_bytes > size - at) return false;
    if (message[at] == wanted) {
      if (option_bytes != kLinkLayerOptionBytes) return false;
      mac = mac_at(message + at + 2);
      if (!is_station(*mac)) return false;
    }
    at += option_bytes;
  }

  const bool detection = solicitation && source == kUnspecified;  // duplicate address detection, RFC 4862 section 5.4
  const auto flags = std::to_integer<std::uint8_t>(message[4]);
  const bool solicited = !solicitation && (flags & kSolicitedFlag) != 0;
  if (detection && (destination != solicited_node(target) || mac)) return false;
  if (!solicitation && (source == kUnspecified || (solicited && is_multicast(destination)))) return false;

  if (destination != own_ && destination != kAllNodes && destination != solicited_node(own_)) return true;
  if (mac && *mac == config_.mac) return true;
  const MacAddress* const stated = mac ? &*mac : nullptr;
  if (source == own_ || (!solicitation && target == own_)) {
    on_conflict(now);
  } else if (!solicitation) {
    learn(target, stated, (flags & kOverrideFlag) != 0, solicited, now);
  } else if (target == own_) {
    if (stated != nullptr) learn(source, stated, true, false, now);
    answer(source, mac.value_or(source_mac));
  }
  return true;
}

bool Neighbours::receive(std::span<const std::byte> frame, Nanos now) {
  latest_ = now;
  if (frame.size() < encap::kEthernetBytes) return false;
  std::size_t at = encap::kEthernetBytes;
  std::uint16_t ether_type = load_network(frame.data() + 12);
  unsigned vlan = 0;
  if (ether_type == kEtherTypeVlan) {
    at += encap::kVlanBytes;
    if (frame.size() < at) return false;
    vlan = load_network(frame.data() + 14) & 0xFFFU;
    ether_type = load_network(frame.data() + 16);
  }
  const auto packet = frame.subspan(at);
  const bool arp = ether_type == kEtherTypeArp;
  if (!arp && !(ether_type == kEtherTypeIpv6 && is_discovery(packet))) return false;
  if (arp != v4_ || (config_.vlan != 0 && vlan != config_.vlan)) return true;
  const MacAddress destination = mac_at(frame.data());
  const MacAddress source = mac_at(frame.data() + 6);
  // Frames of this host may come back, for example from a hub.
  if (source == config_.mac || !(is_group(destination) || destination == config_.mac)) return true;
  const bool good = is_station(source) && (arp ? receive_arp(packet, now) : receive_discovery(packet, source, now));
  if (!good) ++counters_.malformed;
  return true;
}

// Sending

std::byte* Neighbours::write_ethernet(std::byte* out, const MacAddress& destination, std::uint16_t ether_type) const {
  std::memset(out, 0, kMinFrameBytes);
  std::memcpy(out, destination.data(), 6);
  std::memcpy(out + 6, config_.mac.data(), 6);
  out += 12;
  if (config_.vlan != 0) {
    store_network(out, kEtherTypeVlan);
    store_network(out + 2, config_.vlan);
    out += encap::kVlanBytes;
  }
  store_network(out, ether_type);
  return out + 2;
}

std::size_t Neighbours::write_arp(std::byte* out, const MacAddress& destination, std::uint16_t operation,
                                  const MacAddress& target_mac, const Ip& target) const {
  std::byte* arp = write_ethernet(out, destination, kEtherTypeArp);
  store_network(arp, kArpEthernet);
  store_network(arp + 2, kEtherTypeIpv4);
  arp[4] = std::byte{6};
  arp[5] = std::byte{4};
  store_network(arp + 6, operation);
  std::memcpy(arp + 8, config_.mac.data(), 6);
  std::memcpy(arp + 14, &own_[12], 4);
  std::memcpy(arp + 18, target_mac.data(), 6);
  std::memcpy(arp + 24, &target[12], 4);
  return kMinFrameBytes;
}

std::size_t Neighbours::write_discovery(std::byte* out, const MacAddress& destination_mac, const Ip& destination,
                                        bool advertisement, bool solicited, const Ip& target) const {
  constexpr std::size_t size = kDiscoveryBytes + kLinkLayerOptionBytes;
  std::byte* ip = write_ethernet(out, destination_mac, kEtherTypeIpv6);
  std::memset(ip, 0, encap::kIpv6Bytes + size);
  ip[0] = std::byte{0x60};
  store_network(ip + 4, static_cast<std::uint16_t>(size));
  ip[6] = std::byte{kProtocolIcmpv6};
  ip[7] = std::byte{kHopLimit};
  std::memcpy(ip + 8, own_.data(), 16);
  std::memcpy(ip + 24, destination.data(), 16);
  std::byte* message = ip + encap::kIpv6Bytes;
  message[0] = std::byte{advertisement ? kNeighbourAdvertisement : kNeighbourSolicitation};
  if (advertisement) message[4] = std::byte{kOverrideFlag} | (solicited ? std::byte{kSolicitedFlag} : std::byte{0});
  std::memcpy(message + 8, target.data(), 16);
  std::byte* option = message + kDiscoveryBytes;
  option[0] = std::byte{advertisement ? kTargetLinkLayer : kSourceLinkLayer};
  option[1] = std::byte{1};
  std::memcpy(option + 2, config_.mac.data(), 6);
  encap::store(message + 2, static_cast<std::uint16_t>(~icmp_sum(ip, size)));
  return static_cast<std::size_t>(message - out) + size;
}

std::size_t Neighbours::frame(std::span<std::byte> out, Nanos now) {
  latest_ = now;
  if (announce_) {
    announce_ = false;
    ++counters_.announcements;
    if (v4_) return write_arp(out.data(), kBroadcast, kArpRequest, kNoMac, own_);
    return write_discovery(out.data(), multicast_mac(kAllNodes), kAllNodes, true, false, own_);
  }
  if (answer_count_ != 0) {
    const Answer to = answers_[first_answer_];
    first_answer_ = (first_answer_ + 1) % answers_.size();
    --answer_count_;
    ++counters_.answers;
    if (v4_) return write_arp(out.data(), to.mac, kArpReply, to.mac, to.ip);
    if (to.ip == kUnspecified)
      return write_discovery(out.data(), multicast_mac(kAllNodes), kAllNodes, true, false, own_);
    return write_discovery(out.data(), to.mac, to.ip, true, true, own_);
  }
  while (timers_.next() <= now) {
    const std::uint32_t id = timers_.top();
    Entry& entry = entries_[id];
    const bool asking = entry.phase == Phase::incomplete || entry.phase == Phase::probe;
    if (asking && entry.questions < config_.max_questions) {
      // The first request for a stale entry is sent only to the entry's last MAC address, so that it disturbs no other
      // host.
      const bool direct = entry.phase == Phase::probe && entry.questions == 0;
      ++entry.questions;
      entry.was_asked = true;
      entry.asked_at = now;
      schedule(id, now + config_.retry);
      ++counters_.questions;
      if (v4_) return write_arp(out.data(), direct ? entry.mac : kBroadcast, kArpRequest, kNoMac, entry.ip);
      const Ip group = solicited_node(entry.ip);
      return write_discovery(out.data(), direct ? entry.mac : multicast_mac(group), direct ? entry.ip : group, false,
                             false, entry.ip);
    }
    ++generation_;
    if (asking) {
      entry.phase = Phase::unreachable;
      ++counters_.unreachable;
      link(id, unreachable_list());
      schedule(id, now + config_.retry);
    } else if (entry.phase == Phase::reachable) {
      set_fresh(id, false, now);
    } else {
      erase(id);  // the entry has been unreachable for the time `retry`
    }
  }
  return 0;
}

}  // namespace mltcp
