// Tests address resolution in virtual time: frames byte by byte as in RFC 826 and RFC 4861, which frames may change an
// entry, the times of questions, full tables, and hostile frames.
#include "mltcp/transport/ethernet/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "neighbour_frames.h"

namespace mltcp {
namespace {

using namespace neighbour_frames;

TEST(NeighboursArp, question_and_answer__byte_by_byte) {
  Neighbours end(config_v4());
  EXPECT_EQ(end.find(v4(2), 0_ns).state, State::asked);
  EXPECT_EQ(say_one(end, 0_ns), padded(hex("ffffffffffff 020000000001 0806"
                                           "0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002")));
  EXPECT_EQ(end.find(v4(2), 0_ns).state, State::asked);
  EXPECT_TRUE(hear(end,
                   padded(hex("020000000001 020000000002 0806"
                              "0001 0800 06 04 0002 020000000002 0a000002 020000000001 0a000001")),
                   1_ms));
  expect_known(end, v4(2), kMacB, 1_ms);
  EXPECT_EQ(end.counters().learnt, 1u);
  EXPECT_EQ(end.counters().questions, 1u);
}

TEST(NeighboursArp, requests_and_probes__are_answered_to_the_asker_alone) {
  Neighbours end(config_v4());
  EXPECT_TRUE(hear(end,
                   padded(hex("ffffffffffff 020000000002 0806"
                              "0001 0800 06 04 0001 020000000002 0a000002 000000000000 0a000001")),
                   0_ns));
  EXPECT_LE(end.deadline(), 0_ns);
  EXPECT_EQ(say_one(end, 0_ns), padded(hex("020000000002 020000000001 0806"
                                           "0001 0800 06 04 0002 020000000001 0a000001 020000000002 0a000002")));
  // A probe of RFC 5227 has the sender address 0.
  EXPECT_TRUE(hear(end,
                   padded(hex("ffffffffffff 020000000002 0806"
                              "0001 0800 06 04 0001 020000000002 00000000 000000000000 0a000001")),
                   0_ns));
  EXPECT_EQ(say_one(end, 0_ns), padded(hex("020000000002 020000000001 0806"
                                           "0001 0800 06 04 0002 020000000001 0a000001 020000000002 00000000")));
  EXPECT_EQ(end.counters().answers, 2u);
  EXPECT_EQ(end.counters().learnt, 0u);  // nothing is learnt without a question
  EXPECT_TRUE(end.deadline().is_never());
  // A request for another host is not answered.
  EXPECT_TRUE(hear(end, frame_of(Arp{.operation = 1, .target = v4(3), .to = kBroadcast}), 0_ns));
  EXPECT_TRUE(say(end, 0_ns).empty());
  EXPECT_EQ(end.counters().malformed, 0u);
}

TEST(NeighboursDiscovery, question_and_answer__byte_by_byte) {
  Neighbours end(config_v6());
  EXPECT_EQ(end.find(b6, 0_ns).state, State::asked);
  EXPECT_EQ(say_one(end, 0_ns),
            hex("3333ffabcdef 020000000001 86dd 60000000 0020 3a ff 20010db8000000000000000000000001"
                "ff0200000000000000000001ffabcdef 87 00 7ef5 00000000 20010db8000000000000000000abcdef"
                "01 01 020000000001"));
  EXPECT_TRUE(hear(end,
                   hex("020000000001 020000000002 86dd 60000000 0020 3a ff 20010db8000000000000000000abcdef"
                       "20010db8000000000000000000000001 88 00 ed3f 60000000 20010db8000000000000000000abcdef"
                       "02 01 020000000002"),
                   1_ms));
  expect_known(end, b6, kMacB, 1_ms);
}

TEST(NeighboursDiscovery, solicitations_and_probes__are_answered) {
  Neighbours end(config_v6());
  EXPECT_TRUE(hear(end, frame_of(solicitation(b6)), 0_ns));
  const auto to_b =
      hex("020000000002 020000000001 86dd 60000000 0020 3a ff 20010db8000000000000000000000001"
          "20010db8000000000000000000abcdef 88 00 bbda 60000000 20010db8000000000000000000000001 02 01 020000000001");
  EXPECT_EQ(say_one(end, 0_ns), to_b);
  // A unicast solicitation may omit its link-layer option. The host then uses the source address of the frame.
  auto direct = solicitation(b6, "");
  direct.destination = a6;
  direct.to = kMacA;
  EXPECT_TRUE(hear(end, frame_of(direct), 0_ns));
  EXPECT_EQ(say_one(end, 0_ns), to_b);
  // A solicitation of duplicate address detection has no source. The answer goes to all nodes, like the frames of
  // announce().
  EXPECT_TRUE(hear(end, frame_of(solicitation(Address{}, "")), 0_ns));
  const auto to_all =
      hex("333300000001 020000000001 86dd 60000000 0020 3a ff 20010db8000000000000000000000001"
          "ff020000000000000000000000000001 88 00 f92a 20000000 20010db8000000000000000000000001 02 01 020000000001");
  EXPECT_EQ(say_one(end, 0_ns), to_all);
  EXPECT_EQ(end.counters().answers, 3u);
  end.announce();
  EXPECT_EQ(say_one(end, 0_ns), to_all);
  EXPECT_EQ(end.counters().announcements, 1u);
  EXPECT_EQ(end.counters().learnt, 0u);
}

TEST(NeighboursArp, announce__is_a_request_for_the_own_address) {
  Neighbours end(config_v4());
  EXPECT_TRUE(end.deadline().is_never());
  end.announce();
  EXPECT_LE(end.deadline(), 0_ns);
  EXPECT_EQ(say_one(end, 5_s), padded(hex("ffffffffffff 020000000001 0806"
                                          "0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000001")));
  EXPECT_TRUE(end.deadline().is_never());
}

TEST(Neighbours, vlan__is_written_and_heard) {
  auto config = config_v4();
  config.vlan = 0x123;
  Neighbours tagged(config);
  (void)tagged.find(v4(2), 0_ns);
  EXPECT_EQ(say_one(tagged, 0_ns), padded(hex("ffffffffffff 020000000001 8100 0123 0806"
                                              "0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002")));
  const auto answer = frame_of(Arp{});
  for (const unsigned control : {0U, 0x124U, 0x0FFFU}) EXPECT_TRUE(hear(tagged, with_tag(answer, control), 0_ns));
  EXPECT_TRUE(hear(tagged, answer, 0_ns));
  EXPECT_FALSE(hear(tagged, with_tag(with_tag(answer, 0x123), 0x123), 0_ns));
  EXPECT_EQ(tagged.find(v4(2), 0_ns).state, State::asked);
  EXPECT_TRUE(hear(tagged, with_tag(answer, 0xE123), 0_ns));  // the priority of the tag does not matter
  expect_known(tagged, v4(2), kMacB, 0_ns);

  Neighbours untagged(config_v4());
  for (const std::uint8_t last : {std::uint8_t{2}, std::uint8_t{3}}) {
    (void)untagged.find(v4(last), 0_ns);
    const auto frame = frame_of(Arp{.sender = v4(last)});
    EXPECT_TRUE(hear(untagged, last == 2 ? frame : with_tag(frame, 77), 0_ns));
    expect_known(untagged, v4(last), kMacB, 0_ns);
  }

  auto config6 = config_v6();
  config6.vlan = 4094;
  Neighbours tagged6(config6);
  (void)tagged6.find(b6, 0_ns);
  const auto question = say_one(tagged6, 0_ns);
  EXPECT_EQ(question.size(), 90u);
  EXPECT_EQ(ByteVector(question.begin() + 12, question.begin() + 18), hex("8100 0ffe 86dd"));
  EXPECT_TRUE(hear(tagged6, with_tag(frame_of(Discovery{}), 4094), 0_ns));
  expect_known(tagged6, b6, kMacB, 0_ns);
}

// ---- Time ----

TEST(Neighbours, find__asks_then_gives_up_and_asks_again_later) {
  Neighbours end(config_v4());
  const auto generation = end.generation();
  EXPECT_EQ(end.find(v4(2), 5_s).state, State::asked);
  for (int question = 0; question < 3; ++question) {
    const Nanos now = 5_s + 1_s * question;
    EXPECT_EQ(end.deadline(), now);
    EXPECT_TRUE(say(end, now - 1_ns).empty());
    EXPECT_EQ(say(end, now).size(), 1u);
    // Frequent calls of find() do not cause more than one question a second.
    for (int i = 0; i < 10; ++i) EXPECT_EQ(end.find(v4(2), now + 1_ms * i).state, State::asked);
    EXPECT_TRUE(say(end, now + 10_ms).empty());
  }
  EXPECT_EQ(end.generation(), generation);
  EXPECT_EQ(end.deadline(), 8_s);
  EXPECT_TRUE(say(end, 8_s).empty());
  EXPECT_EQ(end.counters().unreachable, 1u);
  EXPECT_EQ(end.generation(), generation + 1);
  EXPECT_EQ(end.find(v4(2), 8_s).state, State::unreachable);
  EXPECT_EQ(end.find(v4(2), 9_s - 1_ns).state, State::unreachable);
  EXPECT_EQ(end.deadline(), 9_s);
  EXPECT_EQ(end.find(v4(2), 9_s).state, State::asked);
  EXPECT_EQ(say(end, 9_s).size(), 1u);
  EXPECT_EQ(end.counters().questions, 4u);
  // A late answer is still accepted.
  (void)say(end, 10_s);
  (void)say(end, 11_s);
  (void)say(end, 12_s);
  EXPECT_EQ(end.find(v4(2), 12_s).state, State::unreachable);
  EXPECT_TRUE(hear(end, frame_of(Arp{}), 12_s));
  expect_known(end, v4(2), kMacB, 12_s);
}

TEST(Neighbours, an_unreachable_one__is_forgotten_and_says_so) {
  Neighbours end(config_v4());
  (void)end.find(v4(2), 0_s);
  for (int i = 0; i <= 3; ++i) (void)say(end, 1_s * i);
  const auto generation = end.generation();
  EXPECT_EQ(end.deadline(), 4_s);
  EXPECT_TRUE(say(end, 4_s).empty());
  EXPECT_EQ(end.generation(), generation + 1);
  EXPECT_TRUE(end.deadline().is_never());
  EXPECT_TRUE(hear(end, frame_of(Arp{}), 4_s));  // not learnt, because no question is pending
  EXPECT_EQ(end.counters().learnt, 0u);
  EXPECT_EQ(end.find(v4(2), 4_s).state, State::asked);
}

TEST(Neighbours, known_one_no_longer_fresh__is_used_and_asked_first_directly) {
  Neighbours end(config_v4());
  teach(end, 2, 0_s);
  const auto generation = end.generation();
  expect_known(end, v4(2), kMacB, 30_s - 1_ns);
  EXPECT_EQ(end.deadline(), 30_s);
  EXPECT_TRUE(say(end, 30_s).empty());  // the new generation notifies users; a question is sent only after a look-up
  EXPECT_EQ(end.generation(), generation + 1);
  EXPECT_TRUE(end.deadline().is_never());

  expect_known(end, v4(2), kMacB, 40_s);
  const auto direct = say_one(end, 40_s);
  EXPECT_EQ(ByteVector(direct.begin(), direct.begin() + 6), hex("020000000002"));
  EXPECT_EQ(ByteVector(direct.begin() + 32, direct.begin() + 42), hex("000000000000 0a000002"));
  expect_known(end, v4(2), kMacB, 41_s);
  const auto second = say_one(end, 41_s);
  EXPECT_EQ(ByteVector(second.begin(), second.begin() + 6), hex("ffffffffffff"));
  EXPECT_TRUE(hear(end, frame_of(Arp{}), 41_s));
  EXPECT_EQ(end.deadline(), 71_s);
  EXPECT_EQ(end.counters().learnt, 1u);

  // The entry is no longer fresh at 71 s, but frame() is not called at that time. A later find() still causes the
  // questions.
  expect_known(end, v4(2), kMacB, 80_s);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(say(end, 80_s + 1_s * i).size(), 1u);
  expect_known(end, v4(2), kMacB, 83_s - 1_ns);
  EXPECT_TRUE(say(end, 83_s).empty());
  EXPECT_EQ(end.find(v4(2), 83_s).state, State::unreachable);
  EXPECT_EQ(end.counters().unreachable, 1u);
}

TEST(NeighboursDiscovery, a_known_one__is_asked_first_directly) {
  Neighbours end(config_v6());
  teach_v6(end, 0_s);
  expect_known(end, b6, kMacB, 31_s);
  const auto direct = say_one(end, 31_s);
  EXPECT_EQ(ByteVector(direct.begin(), direct.begin() + 6), hex("020000000002"));
  EXPECT_EQ(ByteVector(direct.begin() + 38, direct.begin() + 54), hex("20010db8000000000000000000abcdef"));
  EXPECT_TRUE(hear(end, frame_of(Discovery{.option = ""}), 31_s));  // a unicast answer may omit the option
  EXPECT_EQ(end.deadline(), 61_s);
}

// ---- Next hops ----

TEST(Neighbours, next_hop__is_the_neighbour_or_the_gateway) {
  auto config = config_v4();
  config.gateway = v4(254);
  Neighbours end(config);
  EXPECT_EQ(end.find(v4(7, 9), 0_ns).state, State::asked);
  EXPECT_EQ(end.find(v4(8, 9), 0_ns).state, State::asked);
  const auto question = say_one(end, 0_ns);  // one question, to the gateway, for both addresses
  EXPECT_EQ(ByteVector(question.begin() + 38, question.begin() + 42), hex("0a0000fe"));
  EXPECT_TRUE(hear(end, frame_of(Arp{.sender = v4(254)}), 0_ns));
  expect_known(end, v4(7, 9), kMacB, 0_ns);
  expect_known(end, Address::v4(0x08080808, 53), kMacB, 0_ns);

  auto config6 = config_v6();
  config6.gateway = v6("fe800000 00000000 00000000 00000001");
  Neighbours end6(config6);
  EXPECT_EQ(end6.find(v6("2a000000 00000000 00000000 00000001"), 0_ns).state, State::asked);
  EXPECT_EQ(end6.find(v6("fe800000 00000000 00000000 00000001"), 0_ns).state, State::asked);
  const auto question6 = say_one(end6, 0_ns);
  EXPECT_EQ(ByteVector(question6.begin(), question6.begin() + 6), hex("3333ff000001"));

  // This prefix does not end at a byte boundary.
  config = config_v4();
  config.prefix_bits = 20;
  Neighbours wide(config);
  EXPECT_EQ(wide.find(v4(1, 15), 0_ns).state, State::asked);
  EXPECT_EQ(wide.find(v4(1, 16), 0_ns).state, State::unreachable);
  // If the prefix contains only the own address, all questions are for the gateway, whatever its address is.
  config.prefix_bits = 32;
  config.gateway = v4(254, 99);
  Neighbours alone(config);
  EXPECT_EQ(alone.find(v4(2), 0_ns).state, State::asked);
  EXPECT_EQ(say_one(alone, 0_ns)[40], std::byte{99});
}

TEST(Neighbours, find__asks_for_nothing_that_no_host_has) {
  auto config = config_v4();
  config.gateway = v4(254);
  Neighbours end(config);
  for (const std::uint32_t ip :
       {0x0A000001U, 0x0A0000FFU, 0x0A000000U, 0xFFFFFFFFU, 0xE0000001U, 0xEFFFFFFFU, 0U, 0x7F000001U}) {
    EXPECT_EQ(end.find(Address::v4(ip, 1), 0_ns).state, State::unreachable) << std::hex << ip;
  }
  EXPECT_EQ(end.find(b6, 0_ns).state, State::unreachable);
  Neighbours end6(config_v6());
  for (const Address& address : {a6, all_nodes, Address{}, v6("00000000 00000000 00000000 00000001"), v4(2),
                                 v6("20010db8 00000001 00000000 00000001")}) {
    EXPECT_EQ(end6.find(address, 0_ns).state, State::unreachable) << to_text(address);
  }
  EXPECT_TRUE(say(end, 0_ns).empty());
  EXPECT_TRUE(say(end6, 0_ns).empty());
  // Link-local addresses are on the segment, whatever the prefix is.
  EXPECT_EQ(end6.find(v6("fe800000 00000000 00000000 00000009"), 0_ns).state, State::asked);
  // A link with two addresses (RFC 3021) has no broadcast address.
  config.prefix_bits = 31;
  config.own = v4(2);
  config.gateway = {};
  EXPECT_EQ(Neighbours(config).find(v4(3), 0_ns).state, State::asked);
}

// ---- Changes of entries ----

TEST(NeighboursArp, claims__change_only_what_was_asked_for) {
  Neighbours end(config_v4());
  for (const unsigned operation : {1U, 2U}) {
    EXPECT_TRUE(hear(end, frame_of(Arp{.operation = operation}), 0_ns));
    EXPECT_TRUE(hear(end, frame_of(Arp{.operation = operation, .target = v4(2), .to = kBroadcast}), 0_ns));
  }
  (void)say(end, 0_ns);
  EXPECT_EQ(end.counters().learnt, 0u);
  EXPECT_EQ(end.find(v4(2), 0_ns).state, State::asked);

  teach(end, 2, 0_s);
  const auto generation = end.generation();
  EXPECT_TRUE(hear(end, frame_of(Arp{}), 1_s));
  EXPECT_EQ(end.generation(), generation);  // the reply changes nothing
  // The sender of a request or a reply updates its own entry (RFC 826). A host that has moved or failed over depends on
  // this.
  for (const unsigned operation : {1U, 2U}) {
    const MacAddress mac = operation == 1 ? kMacC : kMacB;
    EXPECT_TRUE(
        hear(end, frame_of(Arp{.operation = operation, .sender_mac = mac, .target = v4(2), .to = kBroadcast}), 2_s));
    expect_known(end, v4(2), mac, 2_s);
    EXPECT_EQ(end.counters().changed, operation);
    EXPECT_EQ(end.generation(), generation + operation);
  }
}

TEST(NeighboursArp, frames_for_others_and_our_own__are_ignored) {
  Neighbours end(config_v4());
  (void)end.find(v4(2), 0_ns);
  (void)say(end, 0_ns);
  EXPECT_TRUE(hear(end, frame_of(Arp{.to = kMacC}), 0_ns));    // a switch has flooded this frame
  EXPECT_TRUE(hear(end, frame_of(Arp{.from = kMacA}), 0_ns));  // reflected
  EXPECT_TRUE(hear(end, frame_of(Arp{.operation = 1, .sender_mac = kMacA, .sender = v4(1)}), 0_ns));
  EXPECT_TRUE(hear(end, frame_of(Arp{.operation = 3}), 0_ns));  // reverse ARP
  EXPECT_TRUE(hear(end, frame_of(Discovery{}), 0_ns));          // a frame of IPv6, although the host uses IPv4
  EXPECT_EQ(end.find(v4(2), 0_ns).state, State::asked);
  EXPECT_TRUE(say(end, 0_ns).empty());
  EXPECT_EQ(end.counters().malformed, 0u);
  EXPECT_EQ(end.counters().conflicts, 0u);
}

TEST(NeighboursDiscovery, advertisements__change_what_their_flags_allow) {
  const std::string c_option = "0201 020000000003";
  Neighbours end(config_v6());
  EXPECT_TRUE(hear(end, frame_of(Discovery{}), 0_s));
  EXPECT_EQ(end.counters().learnt, 0u);
  teach_v6(end, 0_s);

  const auto generation = end.generation();
  // Without the override flag, a different MAC address is not accepted, but it causes a question about the entry.
  EXPECT_TRUE(hear(end, frame_of(Discovery{.flags = 0, .option = c_option}), 5_s));
  EXPECT_EQ(end.generation(), generation + 1);  // users of the entry look it up again, which sends the question
  expect_known(end, b6, kMacB, 5_s);
  EXPECT_EQ(end.counters().changed, 0u);
  EXPECT_EQ(say(end, 5_s).size(), 1u);
  // Without the override flag, a solicited advertisement is not accepted either.
  EXPECT_TRUE(hear(end, frame_of(Discovery{.flags = kSolicited, .option = c_option}), 5_s));
  expect_known(end, b6, kMacB, 5_s);
  EXPECT_TRUE(hear(end, frame_of(Discovery{.flags = kSolicited}), 5_s));
  EXPECT_EQ(end.deadline(), 35_s);

  // With the override flag, the new MAC address is accepted. If the advertisement was not solicited, the new address
  // causes a question.
  EXPECT_TRUE(
      hear(end, frame_of(Discovery{.flags = kOverrideKnown, .destination = all_nodes, .option = c_option}), 6_s));
  EXPECT_EQ(end.counters().changed, 1u);
  expect_known(end, b6, kMacC, 6_s);
  EXPECT_EQ(say(end, 6_s).size(), 1u);
  EXPECT_TRUE(hear(end, frame_of(Discovery{}), 7_s));
  expect_known(end, b6, kMacB, 7_s);
  EXPECT_EQ(end.deadline(), 37_s);

  // An unsolicited advertisement without a change confirms nothing.
  EXPECT_TRUE(hear(end, frame_of(Discovery{.flags = kOverrideKnown, .destination = all_nodes}), 8_s));
  EXPECT_EQ(end.deadline(), 37_s);
  EXPECT_EQ(end.counters().changed, 2u);
}

TEST(NeighboursDiscovery, an_unknown_one__is_learnt_from_any_advertisement_with_an_address) {
  Neighbours end(config_v6());
  (void)end.find(b6, 0_s);
  (void)say(end, 0_s);
  EXPECT_TRUE(hear(end, frame_of(Discovery{.option = ""}), 0_s));
  EXPECT_EQ(end.find(b6, 0_s).state, State::asked);
  EXPECT_TRUE(hear(end, frame_of(Discovery{.flags = 0, .destination = all_nodes}), 0_s));
  expect_known(end, b6, kMacB, 0_s);
  // The entry is not confirmed, so it causes a second question, after the usual interval.
  EXPECT_EQ(end.deadline(), 1_s);
  EXPECT_EQ(say(end, 1_s).size(), 1u);
}

TEST(NeighboursDiscovery, solicitations__update_their_sender_if_it_is_known) {
  Neighbours end(config_v6());
  teach_v6(end, 0_s);
  EXPECT_TRUE(hear(end, frame_of(solicitation(b6, "0101 020000000003")), 1_s));
  EXPECT_TRUE(hear(end, frame_of(solicitation(c6, "0101 020000000003")), 1_s));
  EXPECT_EQ(say(end, 1_s).size(), 2u);
  EXPECT_EQ(end.counters().learnt, 1u);
  EXPECT_EQ(end.counters().changed, 1u);
  expect_known(end, b6, kMacC, 1_s);
  EXPECT_EQ(say(end, 1_s).size(), 1u);  // a question confirms the change
}

TEST(Neighbours, stale_again_and_again__is_asked_once_a_retry) {
  Neighbours end(config_v6());
  teach_v6(end, 0_s);
  for (int i = 0; i < 1000; ++i) {
    const Nanos now = 10_s + 10_ms * i;
    EXPECT_TRUE(hear(end, frame_of(Discovery{.flags = 0, .option = "0201 020000000003"}), now));
    expect_known(end, b6, kMacB, now);
    (void)say(end, now);
    EXPECT_TRUE(hear(end, frame_of(Discovery{}), now));
  }
  EXPECT_EQ(end.counters().questions, 1u + 10u);
}

// ---- Conflicts ----

TEST(NeighboursArp, a_conflict__is_counted_and_defended_every_ten_seconds) {
  Neighbours end(config_v4());
  const auto claim = frame_of(Arp{.operation = 1, .sender = v4(1), .target = v4(1), .to = kBroadcast});
  const auto defence =
      padded(hex("ffffffffffff 020000000001 0806"
                 "0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000001"));
  std::size_t defences = 0;
  for (int i = 0; i <= 250; ++i) {
    EXPECT_TRUE(hear(end, claim, 100_s + 100_ms * i));
    for (const auto& frame : say(end, 100_s + 100_ms * i)) {
      EXPECT_EQ(frame, defence);
      ++defences;
    }
  }
  EXPECT_EQ(defences, 3u);
  EXPECT_EQ(end.counters().conflicts, 251u);
  EXPECT_EQ(end.counters().announcements, 3u);
  EXPECT_EQ(end.counters().answers, 0u);
}

TEST(NeighboursDiscovery, a_conflict__is_counted_and_defended) {
  Neighbours end(config_v6());
  EXPECT_TRUE(hear(
      end, frame_of(Discovery{.flags = kOverrideKnown, .source = b6, .destination = all_nodes, .target = a6}), 0_s));
  EXPECT_EQ(say(end, 0_s).size(), 1u);
  EXPECT_TRUE(hear(end, frame_of(solicitation(a6)), 5_s));
  EXPECT_TRUE(say(end, 5_s).empty());
  EXPECT_TRUE(hear(end, frame_of(solicitation(a6)), 10_s));
  EXPECT_EQ(say(end, 10_s).size(), 1u);
  EXPECT_EQ(end.counters().conflicts, 3u);
}

// ---- Hostile frames ----

TEST(NeighboursArp, impossible_frames__are_counted_and_change_nothing) {
  Neighbours end(config_v4());
  (void)end.find(v4(2), 0_ns);
  (void)say(end, 0_ns);
  std::vector<ByteVector> frames;
  const auto changed = [&](std::size_t at, unsigned value) {
    auto frame = frame_of(Arp{});
    frame[at] = static_cast<std::byte>(value);
    frames.push_back(frame);
  };
  changed(15, 6);  // the hardware type IEEE 802
  changed(17, 1);  // a protocol other than IPv4
  changed(18, 8);  // lengths
  changed(19, 16);
  for (const MacAddress& mac : {kNobody, kBroadcast, a6_group_mac}) {
    frames.push_back(frame_of(Arp{.sender_mac = mac}));
    frames.push_back(frame_of(Arp{.from = mac}));
  }
  for (const std::uint32_t ip : {0xE0000001U, 0xFFFFFFFFU, 0x7F000001U, 0U}) {
    frames.push_back(frame_of(Arp{.sender = Address::v4(ip, 0)}));
  }
  const auto good = frame_of(Arp{});
  for (std::size_t size = 14; size < good.size(); ++size) {
    frames.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
  }
  for (const auto& frame : frames) EXPECT_TRUE(hear(end, frame, 0_ns));
  EXPECT_EQ(end.counters().malformed, frames.size());
  EXPECT_EQ(end.find(v4(2), 0_ns).state, State::asked);
  EXPECT_TRUE(say(end, 0_ns).empty());
  for (std::size_t size = 0; size < 14; ++size) {
    EXPECT_FALSE(hear(end, ByteVector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), 0_ns));
  }
  EXPECT_TRUE(hear(end, good, 0_ns));
  expect_known(end, v4(2), kMacB, 0_ns);
}

TEST(NeighboursDiscovery, impossible_frames__are_counted_and_change_nothing) {
  Neighbours end(config_v6());
  (void)end.find(b6, 0_ns);
  (void)say(end, 0_ns);
  std::vector<ByteVector> frames;
  const auto changed = [&](std::size_t at, unsigned value, bool sealed) {
    auto frame = frame_of(Discovery{});
    frame[at] = static_cast<std::byte>(value);
    if (sealed) seal(frame);
    frames.push_back(frame);
  };
  changed(21, 254, false);  // this hop limit means that the frame comes from another segment
  changed(55, 1, true);     // code
  changed(57, 0, false);    // checksum
  changed(85, 9, false);
  changed(79, 0, true);    // an option of length 0
  changed(79, 2, true);    // an option that ends beyond the frame
  changed(19, 23, false);  // lengths
  changed(19, 33, false);
  for (const char* option :
       {"0201 000000000000", "0201 ffffffffffff", "0201 333300000001", "0202 0200000000020000 00000000 0000",
        "0201 0200000000", "0500 020000000002", "02", "0201020000000002 0e00 000000000000"}) {
    frames.push_back(frame_of(Discovery{.option = option}));
  }
  frames.push_back(frame_of(Discovery{.target = all_nodes}));
  frames.push_back(frame_of(Discovery{.source = all_nodes}));
  frames.push_back(frame_of(Discovery{.source = Address{}}));
  frames.push_back(frame_of(Discovery{.destination = all_nodes}));  // claims to be solicited, but goes to all nodes
  frames.push_back(frame_of(solicitation(Address{})));              // has an address option without a source address
  auto direct = solicitation(Address{}, "");
  direct.destination = a6;
  frames.push_back(frame_of(direct));
  for (const MacAddress& mac : {kNobody, kBroadcast}) frames.push_back(frame_of(Discovery{.from = mac}));
  for (const auto& frame : frames) EXPECT_TRUE(hear(end, frame, 0_ns)) << &frame - frames.data();
  EXPECT_EQ(end.counters().malformed, frames.size());
  EXPECT_EQ(end.find(b6, 0_ns).state, State::asked);
  EXPECT_TRUE(say(end, 0_ns).empty());

  const auto good = frame_of(Discovery{});
  for (std::size_t size = 0; size < good.size(); ++size) {
    // A frame that ends before the ICMPv6 type is of unknown kind, and is not handled.
    EXPECT_EQ(hear(end, ByteVector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), 0_ns), size > 54);
  }
  EXPECT_EQ(end.find(b6, 0_ns).state, State::asked);
  EXPECT_TRUE(hear(end, frame_of(Discovery{.destination = c6}), 0_ns));  // destined for another host
  EXPECT_EQ(end.find(b6, 0_ns).state, State::asked);
  auto other = good;
  other[54] = std::byte{128};  // echo
  EXPECT_FALSE(hear(end, other, 0_ns));
  EXPECT_TRUE(
      // The first option is of another type.
      hear(end, frame_of(Discovery{.option = "0501 000000000000 0201 020000000002"}), 0_ns));
  expect_known(end, b6, kMacB, 0_ns);
}

TEST(Neighbours, a_full_table__gives_up_who_was_not_used_for_longest) {
  auto config = config_v4();
  config.max_entries = 3;
  Neighbours end(config);
  for (const std::uint8_t last : {std::uint8_t{2}, std::uint8_t{3}, std::uint8_t{4}}) {
    teach(end, last, 0_s);
    expect_known(end, v4(last), kMacB, 0_s);
  }
  expect_known(end, v4(2), kMacB, 1_s);  // entry 3 is now the least recently used
  expect_known(end, v4(2), kMacB, 1_s);
  EXPECT_EQ(end.counters().table_full, 0u);
  EXPECT_EQ(end.find(v4(5), 1_s).state, State::asked);
  EXPECT_EQ(end.counters().table_full, 1u);
  expect_known(end, v4(4), kMacB, 1_s);
  expect_known(end, v4(2), kMacB, 1_s);
  EXPECT_EQ(end.find(v4(3), 1_s).state, State::asked);  // replaces entry 4
  EXPECT_EQ(end.find(v4(6), 1_s).state, State::asked);  // replaces entry 2
  // Questions about all three entries are pending, so no entry is removed or added.
  EXPECT_EQ(end.find(v4(2), 1_s).state, State::unreachable);
  EXPECT_EQ(end.counters().table_full, 4u);
  EXPECT_EQ(say(end, 1_s).size(), 3u);
  EXPECT_TRUE(hear(end, frame_of(Arp{.sender = v4(5)}), 1_s));
  expect_known(end, v4(5), kMacB, 1_s);
  for (int i = 2; i <= 4; ++i) (void)say(end, 1_s * i);
  // Entries without an answer are removed before the entry with an answer.
  EXPECT_EQ(end.find(v4(3), 4_s).state, State::unreachable);
  EXPECT_EQ(end.find(v4(2), 4_s).state, State::asked);
  EXPECT_EQ(end.find(v4(7), 4_s).state, State::asked);
  expect_known(end, v4(5), kMacB, 4_s);
}

TEST(Neighbours, one_asked_for_again__stays_in_a_full_table) {
  auto config = config_v4();
  config.max_entries = 2;
  Neighbours end(config);
  (void)end.find(v4(2), 0_s);
  for (int i = 0; i <= 3; ++i) (void)say(end, 1_s * i);
  EXPECT_EQ(end.find(v4(2), 3_s).state, State::unreachable);
  EXPECT_EQ(end.find(v4(2), 4_s).state, State::asked);
  teach(end, 3, 4_s);
  EXPECT_EQ(end.find(v4(4), 4_s).state, State::asked);  // replaces entry 3
  EXPECT_EQ(end.find(v4(5), 4_s).state, State::unreachable);
  EXPECT_TRUE(hear(end, frame_of(Arp{}), 4_s));
  expect_known(end, v4(2), kMacB, 4_s);
}

TEST(Neighbours, floods__neither_evict_nor_change_nor_grow) {
  auto config = config_v4();
  config.max_entries = 8;
  Neighbours end(config);
  for (std::uint8_t last = 2; last < 10; ++last) teach(end, last, 0_s);
  const auto generation = end.generation();
  Random random(1);
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  for (int i = 0; i < 20'000; ++i) {
    Arp arp{.operation = static_cast<unsigned>(1 + random.below(2)),
            .sender_mac = kMacC,
            .sender = Address::v4(static_cast<std::uint32_t>(0x0A000010 + random.below(200)), 0),
            .to = kBroadcast,
            .from = kMacC};
    for (auto& byte : arp.sender_mac) byte = static_cast<std::uint8_t>(random.next() & 0xFE);
    arp.sender_mac[0] = 6;
    asked += arp.operation & 1;
    EXPECT_TRUE(hear(end, frame_of(arp), 1_s));
    if (i % 100 == 0) answered += say(end, 1_s).size();
  }
  answered += say(end, 1_s).size();
  EXPECT_EQ(answered, end.counters().answers);
  // Answers for which there is no space are counted.
  EXPECT_EQ(end.counters().answers + end.counters().table_full, asked);
  EXPECT_EQ(end.generation(), generation);
  EXPECT_EQ(end.counters().learnt, 8u);
  EXPECT_EQ(end.counters().changed, 0u);
  for (std::uint8_t last = 2; last < 10; ++last) expect_known(end, v4(last), kMacB, 1_s);
  // Answers are sent in the order of their questions. Answers beyond the limit of 32 are dropped.
  for (std::uint8_t last = 100; last < 140; ++last) {
    EXPECT_TRUE(hear(end, frame_of(Arp{.operation = 1, .sender = v4(last), .to = kBroadcast}), 1_s));
  }
  const auto answers = say(end, 1_s);
  ASSERT_EQ(answers.size(), 32u);
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(std::to_integer<std::size_t>(answers[i][41]), 100 + i);
  // A host that asks repeatedly gets one answer.
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(hear(end, frame_of(Arp{.operation = 1, .to = kBroadcast}), 1_s));
  EXPECT_EQ(say(end, 1_s).size(), 1u);
}

TEST(Neighbours, a_table_of_thousands__keeps_its_order) {
  // Compares the table with a plain model under random use: the answers, the chains of the hash table, and both lists.
  auto config = config_v4();
  config.prefix_bits = 8;
  config.max_entries = 100;
  Neighbours end(config);
  Random random(2);
  std::vector<std::uint32_t> model;  // known entries; the most recently used entry is the last
  for (int i = 0; i < 50'000; ++i) {
    const auto ip = static_cast<std::uint32_t>(0x0A010000 + random.below(150));
    const auto address = Address::v4(ip, 0);
    const Nanos now = 1_us * i;
    const auto place = std::find(model.begin(), model.end(), ip);
    const auto found = end.find(address, now);
    if (place != model.end()) {
      ASSERT_EQ(found.state, State::known) << i;
      ASSERT_EQ(found.mac[5], ip & 0xFF);
      model.erase(place);
    } else {
      ASSERT_EQ(found.state, State::asked) << i;
      ASSERT_EQ(say(end, now).size(), 1u);
      MacAddress mac = kMacB;
      mac[4] = 1;
      mac[5] = static_cast<std::uint8_t>(ip);
      ASSERT_TRUE(hear(end, frame_of(Arp{.sender_mac = mac, .sender = address}), now));
      if (model.size() == 100) model.erase(model.begin());
    }
    model.push_back(ip);
  }
  EXPECT_EQ(end.counters().unreachable, 0u);
}

}  // namespace
}  // namespace mltcp
