// Tests sealed streams: two peers with the key can communicate, and the stream ends if anybody else interferes.
#include "mltcp/transport/security/sealed_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mltcp::security {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class SealedMessagesTest : public ::testing::Test {
 protected:
  void introduce() {
    client_.meet(server_.greeting());
    server_.meet(client_.greeting());
  }
  static std::string refusal(SealedMessages& end, const std::string& greeting) {
    try {
      end.meet(greeting);
    } catch (const GreetingError& error) {
      return error.what();
    }
    return "met";
  }

  JobKey key_ = JobKey::generate();
  SealedMessages client_{key_, true};
  SealedMessages server_{key_, false};
};

TEST_F(SealedMessagesTest, messages__arrive_as_they_were_both_ways) {
  introduce();
  EXPECT_TRUE(client_.has_met());
  for (const std::string& text :
       {std::string("first"), std::string(), std::string(100'000, 'x'), std::string("\0\n", 2)}) {
    const std::string sealed = client_.seal(text);
    EXPECT_EQ(sealed.size(), text.size() + SealedMessages::kOverhead);
    EXPECT_EQ(server_.open(sealed), text);
    EXPECT_EQ(client_.open(server_.seal(text)), text);
  }
}

TEST_F(SealedMessagesTest, greeting__tells_the_id_and_is_another_one_each_time) {
  EXPECT_THAT(client_.greeting(), MatchesRegex("mltcp-sealed/1 [0-9a-f]{16} [0-9a-f]{32}"));
  EXPECT_LE(client_.greeting().size(), SealedMessages::kLongestGreeting);
  EXPECT_NE(client_.greeting(), SealedMessages(key_, true).greeting());
  EXPECT_TRUE(SealedMessages::is_greeting(client_.greeting()));
  EXPECT_FALSE(SealedMessages::is_greeting("{\"type\":\"hello\"}"));
}

TEST_F(SealedMessagesTest, nothing_readable__is_on_the_stream) {
  introduce();
  EXPECT_EQ(client_.seal("the same words").find("same"), std::string::npos);
  EXPECT_NE(client_.seal("the same words"), client_.seal("the same words"));
}

TEST_F(SealedMessagesTest, repeated_left_out_reordered_or_changed__does_not_open) {
  introduce();
  const std::string first = client_.seal("first");
  const std::string second = client_.seal("second");
  EXPECT_EQ(server_.open(second), std::nullopt);  // the server has not received the first message
  EXPECT_EQ(server_.open(first), "first");
  EXPECT_EQ(server_.open(first), std::nullopt);
  std::string changed = second;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  EXPECT_EQ(server_.open(changed), std::nullopt);
  EXPECT_EQ(server_.open(second.substr(0, second.size() - 1)), std::nullopt);
  EXPECT_EQ(server_.open(second.substr(0, 11)), std::nullopt);
  EXPECT_EQ(server_.open(""), std::nullopt);
  EXPECT_EQ(client_.open(second), std::nullopt);  // the client's own message, as if an attacker had sent it back
  EXPECT_EQ(server_.open(second), "second");
}

TEST_F(SealedMessagesTest, what_one_stream_carried__means_nothing_to_another) {
  introduce();
  const std::string sealed = client_.seal("recorded");
  SealedMessages again(key_, false);
  again.meet(client_.greeting());
  EXPECT_EQ(again.open(sealed), std::nullopt);
}

TEST_F(SealedMessagesTest, other_key__is_told_by_its_id) {
  SealedMessages other(JobKey::generate(), true);
  EXPECT_THAT(refusal(server_, other.greeting()), HasSubstr("has another key"));
  EXPECT_FALSE(server_.has_met());
}

TEST_F(SealedMessagesTest, client_with_another_key__can_neither_send_nor_receive) {
  SealedMessages attacker(JobKey::generate(), true);
  std::string greeting = attacker.greeting();
  greeting.replace(15, 16, server_.greeting().substr(15, 16));
  server_.meet(greeting);
  std::string answer = server_.greeting();
  answer.replace(15, 16, attacker.greeting().substr(15, 16));
  attacker.meet(answer);
  EXPECT_EQ(server_.open(attacker.seal("let me in")), std::nullopt);
  EXPECT_EQ(attacker.open(server_.seal("secret")), std::nullopt);
}

TEST_F(SealedMessagesTest, greeting_that_is_none__is_refused) {
  EXPECT_THAT(refusal(server_, "{\"type\":\"hello\"}"), HasSubstr("uses no key"));
  const std::string good = client_.greeting();
  std::string spaced = good;
  spaced[31] = '-';
  std::string letters = good;
  letters[40] = 'g';
  std::string sign = good;
  sign[15] = '-';
  for (const std::string& bad :
       {good.substr(0, good.size() - 1), good + "0", spaced, letters, sign, std::string("mltcp-sealed/1 ")})
    EXPECT_THAT(refusal(server_, bad), HasSubstr("sends an invalid greeting")) << bad;
  EXPECT_THAT(refusal(server_, server_.greeting()), HasSubstr("own greeting"));
  EXPECT_FALSE(server_.has_met());
}

}  // namespace
}  // namespace mltcp::security
