// Tests the selection of datapaths by name: which kind opens a name, and the errors if no kind does.
#include "mltcp/transport/host_datapath.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp {
namespace {

using testing::HasSubstr;

/// Returns a kind of datapath that opens nothing. Its error names the kind.
HostDatapathKind kind(std::string_view name) {
  HostDatapathKind one;
  one.name = name;
  if (name == "letters") {
    one.forms = "letter:X";
    one.takes = [](std::string_view device) { return device.starts_with("letter:"); };
    one.open = [](const HostDatapathConfig& config) -> std::unique_ptr<HostDatapath> {
      throw RunError("letters opens " + config.device);
    };
  } else {
    one.forms = "digit:N";
    one.takes = [](std::string_view device) { return device.starts_with("digit:"); };
    one.open = [](const HostDatapathConfig& config) -> std::unique_ptr<HostDatapath> {
      throw RunError("digits opens " + config.device);
    };
  }
  one.check = [](const HostDatapathConfig& config, const HostPlace& place) {
    throw InputError("checked " + config.device + " at " + to_text(place.address));
  };
  return one;
}

TEST(HostDatapath, open__asks_the_kind_that_takes_the_name) {
  const auto error_of = [](const std::string& device) {
    return message_of<std::exception>([&] { open_host_datapath({.device = device}); });
  };
  ASSERT_TRUE(host_datapaths().empty());
  EXPECT_THAT(error_of("digit:1"), HasSubstr("built without any datapath"));
  register_host_datapath(kind("letters"));
  register_host_datapath(kind("digits"));
  register_host_datapath(kind("digits"));
  EXPECT_EQ(host_datapaths().size(), 2u) << "a name is there once";
  EXPECT_EQ(error_of("digit:1"), "digits opens digit:1");
  EXPECT_EQ(error_of("letter:a"), "letters opens letter:a");
  EXPECT_EQ(error_of("roman:IV"), "port \"roman:IV\": \"roman\" is no kind of port; write letter:X, digit:N");
  EXPECT_THAT(error_of(""), HasSubstr("it is empty; write"));
  EXPECT_EQ(message_of<InputError>(
                [] { check_host_datapath({.device = "letter:b"}, {.address = Address::v4(0x0A000001, 7)}); }),
            "checked letter:b at 10.0.0.1:7");
}

}  // namespace
}  // namespace mltcp
