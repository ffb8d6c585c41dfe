// Tests how the names of RDMA ports are parsed.
#include "mltcp/rdma/verbs_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::rdma {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  return message_of<InputError>([&] { parse_verbs_name(text); });
}

TEST(VerbsName, parse__reads_device_port_and_gid) {
  EXPECT_EQ(parse_verbs_name("verbs:mlx5_0"), (VerbsName{.device = "mlx5_0"}));
  EXPECT_EQ(parse_verbs_name("verbs:mlx5_0:2"), (VerbsName{.device = "mlx5_0", .port = 2}));
  EXPECT_EQ(parse_verbs_name("verbs:rxe0:1:0"), (VerbsName{.device = "rxe0", .port = 1, .gid_index = 0}));
  EXPECT_EQ(parse_verbs_name("verbs:rxe0:1:raw"), (VerbsName{.device = "rxe0", .port = 1, .is_raw = true}));
  EXPECT_EQ(parse_verbs_name("verbs:rxe0:255:255"), (VerbsName{.device = "rxe0", .port = 255, .gid_index = 255}));
}

TEST(VerbsName, parse__says_what_is_wrong) {
  for (const char* const text : {"verbs", "verbs:", "verbs::1"})
    EXPECT_THAT(error_of(text), HasSubstr("the device is missing; write verbs:DEVICE")) << text;
  for (const char* const text : {"verbs:rxe0:0", "verbs:rxe0:", "verbs:rxe0:256", "verbs:rxe0:x", "verbs:rxe0:-1"})
    EXPECT_THAT(error_of(text), HasSubstr("a number from 1 to 255")) << text;
  for (const char* const text : {"verbs:rxe0:1:", "verbs:rxe0:1:256", "verbs:rxe0:1:fe80", "verbs:rxe0:1:raw2"})
    EXPECT_THAT(error_of(text), HasSubstr("the GID is given by its index, 0 to 255")) << text;
  EXPECT_THAT(error_of("verbs:rxe0:1:1:62400"), HasSubstr("too many colons"));
  EXPECT_THAT(error_of("verbs:../../etc"), HasSubstr("there is no device of that name"));
  EXPECT_THAT(error_of("verbs:" + std::string(64, 'a')), HasSubstr("there is no device of that name"));
}

TEST(VerbsName, is_verbs_name__goes_by_the_word_before_the_colon) {
  EXPECT_TRUE(is_verbs_name("verbs"));
  EXPECT_TRUE(is_verbs_name("verbs:x"));
  EXPECT_FALSE(is_verbs_name("verbsx:1"));
  EXPECT_FALSE(is_verbs_name("udp:"));
}

}  // namespace
}  // namespace mltcp::rdma
