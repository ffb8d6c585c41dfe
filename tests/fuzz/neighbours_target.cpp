// Fuzzes address resolution: ARP and Neighbour Discovery with hosts that lie. Whatever these hosts send, the host under
// test must send well-formed frames, and must find a neighbour that answers.
//
// Input: a byte of settings, then operations. An operation advances the time, looks up an address, or receives a frame.
#include <algorithm>

#include "mltcp/transport/ethernet/neighbours.h"
#include "seal_discovery.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kMaxEntries = 8;  // low, so that a few look-ups fill the table

Address address_of(bool ipv4, std::uint8_t number) {
  if (ipv4) return Address::v4(0x0A000000U + number, 0);
  Address address;
  address.ip = {0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
  return address;
}

NeighbourConfig config_of(bool ipv4, std::uint8_t number, std::uint16_t vlan, bool has_gateway) {
  NeighbourConfig config;
  config.mac = {2, 0, 0, 0, 0, number};
  config.own = address_of(ipv4, number);
  config.prefix_bits = ipv4 ? 24 : 64;
  if (has_gateway) config.gateway = address_of(ipv4, 254);
  config.vlan = vlan;
  config.max_entries = kMaxEntries;
  return config;
}

/// Returns a frame that an honest host `from` sends to host `to`: if `answer`, the answer to a question of `to` for the
/// MAC address of `from`, and if not, a question for the MAC address of `to`.
Bytes honest_frame(bool ipv4, std::uint16_t vlan, std::uint8_t from, std::uint8_t to, bool answer) {
  Neighbours host(config_of(ipv4, from, vlan, false));
  Bytes out(Neighbours::kLongestFrame);
  if (answer) {
    Neighbours asking(config_of(ipv4, to, vlan, false));
    static_cast<void>(asking.find(address_of(ipv4, from), Nanos()));
    const std::size_t size = asking.frame(out, Nanos());
    static_cast<void>(host.receive(std::span(out).first(size), Nanos()));
  } else {
    static_cast<void>(host.find(address_of(ipv4, to), Nanos()));
  }
  out.resize(host.frame(out, Nanos()));
  return out;
}

/// Takes all frames that `end` has to send by `now`, and checks that a second Neighbours object accepts them.
void take_frames(Neighbours& end, bool ipv4, std::uint16_t vlan, Nanos now) {
  Bytes out(Neighbours::kLongestFrame);
  for (int count = 0;; ++count) {
    require(count < 200, "frames without an end");
    const std::size_t size = end.frame(out, now);
    if (size == 0) break;
    require(size <= out.size(), "a frame beyond its buffer");
    const Bytes frame(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size));
    Neighbours other(config_of(ipv4, 9, vlan, false));
    require(other.receive(frame, now) && other.counters().malformed == 0, "a malformed frame is sent");
  }
  require(end.deadline() > now, "due in the past");
}

}  // namespace

void fuzz_neighbours(Input input) {
  Program program(input);
  const std::uint8_t settings = program.byte();
  const bool ipv4 = (settings & 1) != 0;
  const std::uint16_t vlan = (settings & 2) != 0 ? 5 : 0;
  Neighbours end(config_of(ipv4, 1, vlan, (settings & 4) != 0));
  Nanos now;
  std::uint64_t asked = 0;
  for (int i = 0; i < 200 && !program.has_ended(); ++i) {
    const std::uint8_t operation = program.byte();
    switch (operation % 6) {
      case 0:
        now += Nanos(static_cast<std::int64_t>(program.number(2)) * 1'000'000);
        break;
      case 1: {
        Address address = address_of(ipv4, program.byte());
        if ((operation & 0x80) != 0) address.ip[operation >> 3 & 15] ^= program.byte();
        asked += static_cast<std::uint64_t>(end.find(address, now).state == Neighbours::State::asked);
        break;
      }
      case 2: {  // receives arbitrary bytes
        Bytes frame = program.bytes(program.byte());
        if ((operation & 0x80) != 0) seal_discovery(frame);
        static_cast<void>(end.receive(frame, now));
        break;
      }
      case 3:
      case 4: {  // receives an honest frame in which some bytes were changed
        Bytes frame =
            honest_frame((operation & 0x40) != 0 ? !ipv4 : ipv4, vlan, 2 + program.byte() % 200, 1, operation % 6 == 4);
        for (std::uint8_t change = program.byte() % 8; change > 0; --change) {
          const std::size_t at = program.byte() % frame.size();
          frame[at] = static_cast<std::byte>(program.byte());
        }
        frame.resize(frame.size() - std::min<std::size_t>(frame.size(), (operation & 0x20) != 0 ? program.byte() : 0));
        const Bytes exact(frame);
        if ((operation & 0x80) == 0) seal_discovery(frame);
        static_cast<void>(end.receive((operation & 0x80) == 0 ? frame : exact, now));
        break;
      }
      default:
        end.announce();
    }
    take_frames(end, ipv4, vlan, now);
  }
  require(end.counters().learnt <= asked, "learnt without having asked");

  // A full table accepts no new entry until entries that do not answer are given up. After that, the host under test
  // must find an honest neighbour.
  for (int second = 0; second < 100; ++second) {
    now += Nanos(1'000'000'000);
    take_frames(end, ipv4, vlan, now);
  }
  Neighbours neighbour(config_of(ipv4, 200, vlan, false));
  Bytes out(Neighbours::kLongestFrame);
  static_cast<void>(end.find(address_of(ipv4, 200), now));
  for (int round = 0; round < 4; ++round)
    for (const auto& [from, to] : {std::pair{&end, &neighbour}, std::pair{&neighbour, &end}})
      if (const std::size_t size = from->frame(out, now); size != 0)
        static_cast<void>(to->receive(std::span(out).first(size), now));
  const Neighbours::Found found = end.find(address_of(ipv4, 200), now);
  require(found.state == Neighbours::State::known && found.mac == encap::MacAddress{2, 0, 0, 0, 0, 200},
          "an honest neighbour is not found");
}

}  // namespace mltcp::fuzz
