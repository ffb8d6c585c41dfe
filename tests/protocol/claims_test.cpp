// Tests what a switch and a receiver observe of jobs that state correct or false sizes (transport/job_claims.h), with
// the real transport in virtual time.
#include <gtest/gtest.h>

#include <optional>

#include "../transport/test_network.h"
#include "claims_scene.h"
#include "mltcp/transport/job_claims.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::claims_test {
namespace {

using namespace testing_network;

TEST(Claims, verdict__passes_honest_jobs) {
  for (const ClaimsScene& scene : honest_scenes()) {
    const ClaimsSeen seen = look_at(scene);
    for (const JobClaim* const claim : {&seen.link, &seen.receiver}) {
      EXPECT_FALSE(claim->is_overstated())
          << scene.name << ", " << (claim == &seen.link ? "link: " : "receiver: ") << to_text(claim->verdict()) << ", "
          << claim->share_at_end() << " at the end, mean " << claim->mean_progress();
      EXPECT_GE(claim->iterations, 45U) << scene.name;
      EXPECT_LE(claim->iterations, 60U) << scene.name;
    }
  }
}

TEST(Claims, verdict__finds_jobs_that_overstate_their_progress) {
  for (const ClaimsScene& scene : overstating_scenes()) {
    const ClaimsSeen seen = look_at(scene);
    EXPECT_EQ(seen.link.verdict(), ClaimVerdict::understated) << scene.name;
    EXPECT_EQ(seen.receiver.verdict(), ClaimVerdict::understated) << scene.name;
  }
}

TEST(Claims, verdict__does_not_call_a_job_understated_of_which_half_passes_elsewhere) {
  ClaimsScene scene;
  scene.elsewhere = 0.5;
  EXPECT_EQ(look_at(scene).link.verdict(), ClaimVerdict::ahead);
  EXPECT_EQ(look_at(scene).link.bytes_at_end, 0U);
  scene.stated = 0.5;
  EXPECT_EQ(look_at(scene).link.verdict(), ClaimVerdict::understated);
}

/// A connection of a job to a server that counts the claims of packets.
class Counting : public Pair {
 public:
  explicit Counting(const ConnectionConfig& config = {}, bool counts = true)
      : Pair(config, config, kDefaultDelay, {}, {.count_job_claims = counts}) {
    std::tie(client_id, server_id) = connect();
    job = c().add_job({.number = 77, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
    EXPECT_TRUE(c().attach(client_id, job));
    log.clear();
  }
  void iterate(Bytes bytes, Bytes stated) {
    EXPECT_TRUE(c().begin_iteration(job, stated));
    ByteVector buffer(bytes);
    ASSERT_EQ(s().receive(server_id, buffer, 0), PostResult::ok);
    ASSERT_EQ(c().send(client_id, message_.emplace(random_bytes(bytes)), 0), PostResult::ok);
    ASSERT_TRUE(transfer(1, 1));
  }
  [[nodiscard]] JobClaim seen() {
    const auto all = s().job_claims()->report();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? JobClaim{} : all.front();
  }
  ConnectionId client_id = 0;
  ConnectionId server_id = 0;
  JobId job = 0;

 private:
  std::optional<ByteVector> message_;
};

TEST(Claims, receiver__counts_each_packet_with_data_once) {
  Counting pair;
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.copies = packet.from == 0 ? 3 : 1; };
  for (int i = 0; i < 3; ++i) pair.iterate(100'000, 50'000);
  Bytes sent = 0;
  Bytes at_end = 0;
  std::uint64_t packets = 0;
  for (const Parsed& packet : pair.log) {
    if (packet.from != 0 || !is_data(packet)) continue;
    ++packets;
    sent += packet.size - wire::kHeaderBytes;
    if (packet.header.job.progress == 65'535) at_end += packet.size - wire::kHeaderBytes;
  }
  const JobClaim seen = pair.seen();
  EXPECT_EQ(seen.job, 77U);
  EXPECT_EQ(seen.iterations, 3U);
  EXPECT_EQ(seen.packets, packets);
  EXPECT_EQ(seen.bytes, sent);
  EXPECT_EQ(seen.bytes_at_end, at_end);
  EXPECT_GT(at_end, 0U);
  EXPECT_TRUE(pair.c().job_claims()->report().empty()) << "the sender has received nothing of a job";
}

TEST(Claims, receiver__ignores_unknown_peers) {
  Counting pair;
  pair.iterate(100'000, 100'000);
  const JobClaim before = pair.seen();
  wire::Header header = header_for(pair.server_id, 1000);
  header.flags = wire::has_job;
  header.job = {77, 2, 65'535};
  header.tag = 12345;
  const auto data = [](wire::Writer& writer) {
    writer.data({.last = false, .message = 1, .offset = 0, .length = 200});
    writer.zeros(200);
  };
  ByteVector buffer(10'000);
  ASSERT_EQ(pair.s().receive(pair.server_id, buffer, 0), PostResult::ok);
  pair.inject_as_it_is(pair.server(), pair.client().address, forge(header, data));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.s().stats().forged_packets, 1U);
  EXPECT_EQ(pair.seen().packets, before.packets);
  EXPECT_EQ(pair.seen().bytes_at_end, 0U);
  // This packet has the right tag, but its message has no posted buffer, so it must not count as received.
  header.tag = 0;
  pair.inject(pair.server(), pair.client().address, forge(header, [](wire::Writer& writer) {
                writer.data({.last = false, .message = 9, .offset = 0, .length = 200});
                writer.zeros(200);
              }));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.s().stats().beyond_credit, 1U);
  EXPECT_EQ(pair.seen().packets, before.packets);
  // An attacker on the path can add packets to the count. This is accepted, because such an attacker can change packets
  // as well.
  pair.inject(pair.server(), pair.client().address, forge(header, data));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.seen().packets, before.packets + 1);
}

TEST(Claims, receiver__reads_sealed_packets) {
  const auto key = security::packet_key(security::JobKey::generate());
  Counting pair(config_with([&](ConnectionConfig& config) {
    config.keys = {key};
    config.max_rate = Rate(500'000'000);
  }));
  JobClaims link;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    const auto tag = wire::peek_job_tag(bytes);
    if (from == 0 && tag) link.add(*tag, bytes.size() - wire::kHeaderBytes);
  };
  for (int i = 0; i < 10; ++i) pair.iterate(400'000, 200'000);
  EXPECT_EQ(pair.seen().verdict(), ClaimVerdict::understated);
  ASSERT_EQ(link.report().size(), 1U) << "a switch has no key, and needs none";
  EXPECT_EQ(link.report()[0].bytes_at_end, pair.seen().bytes_at_end);
}

TEST(Claims, receiver__counts_nothing_unless_asked) {
  Counting pair({}, false);
  pair.iterate(100'000, 100'000);
  EXPECT_EQ(pair.s().job_claims(), nullptr);
}

}  // namespace
}  // namespace mltcp::claims_test
