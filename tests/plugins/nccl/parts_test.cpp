// Tests the parts of the plug-in that need no network: settings, the choice of devices, handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "../../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/plugins/nccl/environment.h"
#include "mltcp/plugins/nccl/handle.h"
#include "mltcp/plugins/nccl/interfaces.h"

namespace mltcp::nccl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

std::map<std::string, std::string> variables;

const char* get(const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

Settings settings_of(const std::map<std::string, std::string>& values) {
  variables = values;
  return read_environment(&get);
}

template <typename Call>
std::string refusal(Call call) {
  return message_of<InputError>(call);
}

TEST(Environment, own_variables__are_flags_beside_those_of_all_plugins) {
  Settings settings = settings_of({{"MLTCP_JOB", "7"}});
  EXPECT_FALSE(settings.required);
  EXPECT_FALSE(settings.verbose);
  EXPECT_EQ(settings.job, 7U);
  settings = settings_of({{"MLTCP_REQUIRED", "1"}, {"MLTCP_DEBUG", "1"}});
  EXPECT_TRUE(settings.required);
  EXPECT_TRUE(settings.verbose);
  EXPECT_THAT(refusal([] {
                settings_of({{"MLTCP_REQUIRED", "on"}});
              }),
              AllOf(HasSubstr("MLTCP_REQUIRED"), HasSubstr("on")));
}

TEST(Environment, required__is_known_where_the_rest_is_wrong) {
  variables = {{"MLTCP_JOB", "x"}, {"MLTCP_REQUIRED", "1"}};
  EXPECT_TRUE(is_required(&get));
  variables = {{"MLTCP_REQUIRED", "0"}};
  EXPECT_FALSE(is_required(&get));
  variables = {};
  EXPECT_FALSE(is_required(&get));
  // If a key is set, even a wrong one, NCCL must not fall back to another network, which would send unencrypted data.
  variables = {{"MLTCP_KEY_FILE", "/nowhere/job.key"}, {"MLTCP_REQUIRED", "0"}};
  EXPECT_TRUE(is_required(&get));
  EXPECT_THAT(refusal([] { read_environment(&get); }), HasSubstr("MLTCP_KEY_FILE: /nowhere/job.key"));
  variables = {{"MLTCP_AUTHENTICATE", "1"}};
  EXPECT_TRUE(is_required(&get));
  EXPECT_THAT(refusal([] { read_environment(&get); }), HasSubstr("MLTCP_KEY_FILE is not set"));
}

// ---- Devices ----

const std::vector<Interface> kHost{{"lo", Address::v4(0x7F000001, 0), true},
                                   {"docker0", Address::v4(0xAC110001, 0)},
                                   {"eth0", Address::v4(0x0A000001, 0)},
                                   {"eth1", Address::v4(0x0A010001, 0)},
                                   {"eth0", Address::parse("fd00::1")}};

Settings setting(const std::string& device, const std::string& address = "") {
  Settings settings;
  settings.device = device;
  settings.address = address;
  return settings;
}

auto named(const std::string& name, const std::string& device, const std::string& address) {
  return AllOf(Field(&DevicePlan::name, name), Field(&DevicePlan::device, device),
               Field(&DevicePlan::address, Address::parse(address)));
}

TEST(Devices, without_settings__are_the_interfaces_of_networks) {
  EXPECT_THAT(choose_devices({}, kHost),
              ElementsAre(named("eth0", "udp:eth0", "10.0.0.1"), named("eth1", "udp:eth1", "10.1.0.1")));
  EXPECT_THAT(choose_devices(setting("udp:"), kHost).size(), 2);
  EXPECT_THAT(choose_devices({}, {kHost[0]}), ElementsAre(named("lo", "udp:lo", "127.0.0.1")));
  EXPECT_THAT(refusal([] { choose_devices({}, {}); }), HasSubstr("MLTCP_DEVICE"));
}

TEST(Devices, named__are_one) {
  EXPECT_THAT(choose_devices(setting("udp:eth1"), kHost), ElementsAre(named("eth1", "udp:eth1", "10.1.0.1")));
  EXPECT_THAT(choose_devices(setting("udp:10.0.0.1"), kHost), ElementsAre(named("eth0", "udp:10.0.0.1", "10.0.0.1")));
  EXPECT_THAT(choose_devices(setting("", "fd00::1"), kHost), ElementsAre(named("eth0", "udp:", "fd00::1")));
  EXPECT_THAT(choose_devices(setting("af_packet:eth0", "10.0.0.9"), kHost),
              ElementsAre(named("mltcp", "af_packet:eth0", "10.0.0.9")));
}

TEST(Devices, that_are_not_there__are_refused_with_those_that_are) {
  EXPECT_THAT(refusal([] { choose_devices(setting("udp:eth7"), kHost); }),
              AllOf(HasSubstr("eth7"), HasSubstr("eth0 10.0.0.1"), HasSubstr("eth0 [fd00:")));
  EXPECT_THAT(refusal([] { choose_devices(setting("af_packet:eth0"), kHost); }), HasSubstr("MLTCP_ADDRESS"));
  EXPECT_THAT(refusal([] { choose_devices(setting("eth0"), kHost); }), HasSubstr("write udp:IFACE"));
}

TEST(Devices, of_many_interfaces__are_sixteen) {
  std::vector<Interface> many;
  for (std::uint32_t i = 0; i < 20; ++i) many.push_back({"eth" + std::to_string(i), Address::v4(0x0A000001 + i, 0)});
  EXPECT_EQ(choose_devices({}, many).size(), 16U);
}

TEST(Devices, unknown_interfaces__have_a_usual_speed_and_no_path) {
  EXPECT_EQ(speed_mbps("nonesuch"), 10'000);
  EXPECT_EQ(speed_mbps(""), 10'000);
  EXPECT_EQ(pci_path("lo"), "");
  EXPECT_EQ(pci_path(""), "");
}

// ---- Handles ----

using Bytes = std::array<std::byte, kHandleBytes>;

endpoint::EndpointAddress some_address() {
  return {Address::v4(0x0A000001, 50'000), 1, endpoint::EndpointAddress::Id{1, 2, 3}};
}

TEST(Handle, written__is_read) {
  Bytes bytes;
  bytes.fill(std::byte{0xFF});
  write_handle(bytes, some_address(), 0x0123'4567'89AB'CDEF);
  endpoint::EndpointAddress address;
  std::uint64_t token = 0;
  EXPECT_EQ(read_handle(bytes, address, token), nullptr);
  EXPECT_EQ(address, some_address());
  EXPECT_EQ(token, 0x0123'4567'89AB'CDEFU);
  EXPECT_EQ(attempt_in(bytes), 0U);
  note_attempt(bytes, 7);
  EXPECT_EQ(attempt_in(bytes), 7U);
  EXPECT_EQ(read_handle(bytes, address, token), nullptr);
  // Other programs rely on this layout.
  EXPECT_EQ(std::memcmp(bytes.data(), "MLTN\x01\x00\x01\x23", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 16, "MLTA", 4), 0);
  EXPECT_TRUE(std::all_of(bytes.begin() + 96, bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(Handle, damaged_or_foreign__is_refused_with_the_reason) {
  Bytes bytes;
  write_handle(bytes, some_address(), 1);
  endpoint::EndpointAddress address;
  std::uint64_t token = 0;
  for (std::size_t i = 0; i < 84; ++i) {
    Bytes bad = bytes;
    bad[i] ^= std::byte{1};
    const char* const why = read_handle(bad, address, token);
    ASSERT_NE(why, nullptr) << i;
    EXPECT_THAT(why, HasSubstr(i < 4 ? "not from MLTCP" : i == 4 ? "another version" : "damaged"));
  }
  EXPECT_NE(read_handle(Bytes{}, address, token), nullptr);
}

TEST(Hello, written__is_read_and_others_are_not) {
  Hello hello;
  write_hello(hello, 99);
  std::uint64_t token = 0;
  EXPECT_TRUE(read_hello(hello, token));
  EXPECT_EQ(token, 99U);
  EXPECT_FALSE(read_hello(std::span(hello).first(15), token));
  for (std::size_t i = 0; i < 5; ++i) {
    Hello bad = hello;
    bad[i] ^= std::byte{1};
    EXPECT_FALSE(read_hello(bad, token));
  }
}

}  // namespace
}  // namespace mltcp::nccl
