// Tests the derivation of keys against values computed with Python's hmac and hashlib from the formulas in
// key_schedule.h.
#include "mltcp/transport/security/key_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

namespace mltcp::security {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

JobSecret job_key() {
  JobSecret key;
  for (std::size_t i = 0; i < 32; ++i) key.bytes()[i] = static_cast<std::byte>(i);
  return key;
}
EndRandom from(unsigned first) {
  EndRandom random{};
  for (std::size_t i = 0; i < random.size(); ++i) random[i] = static_cast<std::byte>(first + i);
  return random;
}

TEST(KeySchedule, secrets__are_those_of_hkdf) {
  const ExtractedKey extracted = extracted_key(job_key());
  EXPECT_EQ(key_id(extracted), 0x2a8c9f3143bc8afcU);
  EXPECT_EQ(hex(greeting_secret(extracted, from(0x40)).bytes()),
            "d1a259ad7bae313e6aec028a43403c4aa814de8f264b9bde73c514a4ece56f20");
  const ConnectionSecrets secrets = connection_secrets(extracted, from(0x40), from(0x80));
  EXPECT_EQ(hex(secrets.client.bytes()), "269934d3bb7fb517bbdeca3eed956e2f63301f94b7748054cac8022ab943bbf1");
  EXPECT_EQ(hex(secrets.server.bytes()), "d692f2fd50b1d226249fb6c50b7383042ce1f3fd0fe3fa4c00702f6c36ff79aa");
  EXPECT_EQ(hex(next_epoch(secrets.client).bytes()),
            "173fe499bef2da85248463fd70f4379b8505e15c7348090ffd5f24134c6ad142");
  const TrafficKey key = traffic_key(secrets.client);
  EXPECT_EQ(hex(key.key.bytes()), "25c2fad4f85da0c2f052f8232299aa78");
  EXPECT_EQ(hex(key.iv.bytes()), "d7b8cf703552d11e8852c041");
}

TEST(KeySchedule, any_other_input__yields_another_secret) {
  const ExtractedKey key = extracted_key(job_key());
  const ConnectionSecrets secrets = connection_secrets(key, from(0x40), from(0x80));
  JobSecret other_secret = job_key();
  other_secret.bytes()[31] ^= std::byte{1};
  const ExtractedKey other_key = extracted_key(other_secret);
  const ConnectionSecrets of_other_key = connection_secrets(other_key, from(0x40), from(0x80));
  const ConnectionSecrets of_other_client = connection_secrets(key, from(0x41), from(0x80));
  const ConnectionSecrets of_other_server = connection_secrets(key, from(0x40), from(0x81));
  const ConnectionSecrets swapped = connection_secrets(key, from(0x80), from(0x40));
  for (const ConnectionSecrets* other : {&of_other_key, &of_other_client, &of_other_server, &swapped}) {
    EXPECT_FALSE(secrets.client == other->client);
    EXPECT_FALSE(secrets.server == other->server);
    EXPECT_FALSE(secrets.client == other->server);
  }
  EXPECT_FALSE(secrets.client == secrets.server);
  EXPECT_NE(key_id(key), key_id(other_key));
  EXPECT_FALSE(greeting_secret(key, from(0x40)) == greeting_secret(key, from(0x41)));
}

TEST(KeySchedule, keys_that_only_authenticate__are_others) {
  const ExtractedKey key = extracted_key(job_key(), Protection::authenticate);
  EXPECT_EQ(key_id(key), 0x975dcf4c7d8682fcU);
  EXPECT_EQ(hex(greeting_secret(key, from(0x40)).bytes()),
            "7ccfdb6a4db79da2c1a33901ea9ec5dd295df3d756e7addf97f6a04d46376ca4");
  const ConnectionSecrets secrets = connection_secrets(key, from(0x40), from(0x80));
  EXPECT_EQ(hex(secrets.client.bytes()), "e02832694da32877f8fdaf0a8eed8fb1e31f68ebd772bac14d5eafe2e37f22fa");
}

TEST(Secret, wipe__leaves_nothing) {
  Secret<32> secret = job_key();
  wipe(secret.bytes().data(), secret.kSize);
  EXPECT_TRUE(secret == Secret<32>());
  EXPECT_FALSE(job_key() == Secret<32>());
}

}  // namespace
}  // namespace mltcp::security
