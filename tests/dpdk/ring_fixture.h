// Shared parts of tests of the ring dumbbell: one Eal for the process, networks, packets and an independent checksum.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../random_bytes.h"
#include "mltcp/base/error.h"
#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/lab/realtime/ring_dumbbell.h"

namespace mltcp::dpdk {

using namespace realtime;  // NOLINT(google-build-using-namespace): the tests use most of this namespace

using ByteVector = std::vector<std::byte>;

/// Returns the process's only Eal, on as many cores as the first call requests. It is stopped before the process ends.
/// Returns null and sets `reason` if DPDK cannot start here.
inline const Eal* shared_eal(std::string& reason, std::size_t cores = 1) {
  static std::unique_ptr<Eal> eal;
  static std::string why;
  static bool tried = false;
  if (!tried) {
    tried = true;
    struct Stop final : testing::Environment {
      void TearDown() override { eal.reset(); }
    };
    try {
      const auto cpus = usable_cpus();
      EalOptions options;
      options.memory_mb = 160;
      options.cores = std::to_string(cpus.at(0));
      if (cores > 1 && cpus.size() > 1) options.cores += "," + std::to_string(cpus[1]);
      eal = std::make_unique<Eal>(options);
      testing::AddGlobalTestEnvironment(new Stop);
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  reason = why;
  return eal.get();
}

inline fabric::DumbbellConfig gigabit(std::uint32_t pairs = 1) {
  using namespace mltcp::literals;
  fabric::DumbbellConfig config;
  config.pairs = pairs;
  config.bottleneck.rate = Rate(1'000'000'000);
  config.bottleneck.delay = 10_us;
  config.bottleneck.buffer_bytes = 250'000;
  config.reverse = config.bottleneck;
  config.access_delay = 1_us;
  return config;
}

/// Returns the sum of RFC 1071 section 4.1, computed byte by byte.
inline std::uint16_t slow_sum(std::span<const std::byte> data, std::uint32_t start = 0) {
  std::uint32_t total = start;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto value = std::to_integer<std::uint32_t>(data[i]);
    total += i % 2 == 0 ? value << 8 : value;
    total = (total & 0xFFFF) + (total >> 16);
  }
  return static_cast<std::uint16_t>(total);
}

/// Returns whether both checksums of an IPv4 frame are right.
inline bool checksums_are_right(std::span<const std::byte> frame) {
  const auto udp = frame.subspan(34);
  const std::uint32_t pseudo =
      std::uint32_t{slow_sum(frame.subspan(26, 8))} + 17 + static_cast<std::uint32_t>(udp.size());
  return slow_sum(frame.subspan(14, 20)) == 0xFFFF && slow_sum(udp, pseudo) == 0xFFFF;
}

/// Returns a whole frame from one host to another, in the form in which hosts write it.
inline ByteVector frame_between(const RingHost& from, const RingHost& to, std::span<const std::byte> payload,
                                Ecn ecn = Ecn::not_ect) {
  encap::Headers headers;
  headers.source = from.address();
  headers.destination = to.address();
  const auto mac = [](const Address& address) {
    return encap::MacAddress{2, 0, address.ip[12], address.ip[13], address.ip[14], address.ip[15]};
  };
  headers.source_mac = mac(headers.source);
  headers.destination_mac = mac(headers.destination);
  headers.ecn = ecn;
  ByteVector frame(encap::kIpv4OverheadBytes + payload.size());
  encap::write_headers(headers, payload.size(), encap::sum(payload.data(), payload.size()), frame.data());
  std::copy(payload.begin(), payload.end(), frame.begin() + encap::kIpv4OverheadBytes);
  return frame;
}

/// Recomputes the IPv4 header checksum after a test changed the header.
inline void reseal_ipv4(ByteVector& frame) {
  frame[24] = frame[25] = std::byte{0};
  const auto checksum = static_cast<std::uint16_t>(~slow_sum(std::span(frame).subspan(14, 20)));
  frame[24] = static_cast<std::byte>(checksum >> 8);
  frame[25] = static_cast<std::byte>(checksum);
}

inline bool send_one(RingHost& from, const Address& to, std::span<const std::byte> header,
                     std::span<const std::byte> payload = {}, Ecn ecn = Ecn::not_ect) {
  const TxPacket packet{&to, header, payload, ecn};
  return from.send({&packet, 1}) == 1;
}

inline std::uint64_t rejected(const RejectCounters& counters, encap::Reject reason) {
  return counters[static_cast<std::size_t>(reason)];
}

inline std::uint64_t all_rejected(const RejectCounters& counters) {
  std::uint64_t total = 0;
  for (const auto count : counters) total += count;
  return total;
}

}  // namespace mltcp::dpdk
