// Tests how a program reports that it is ready.
#include "mltcp/lab/testbed/readiness.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "mltcp/base/error.h"

namespace mltcp::testbed {
namespace {

using testing::HasSubstr;

/// Returns a name with the number of this process, because tests may run in parallel.
std::string own_name() { return "mltcp-test/ready-" + std::to_string(getpid()); }

/// Sets NOTIFY_SOCKET, as a service manager does, and removes it on destruction.
class Variable {
 public:
  explicit Variable(const std::string& value) { setenv("NOTIFY_SOCKET", value.c_str(), 1); }
  ~Variable() { unsetenv("NOTIFY_SOCKET"); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

void send(const std::string& name, std::string_view message) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(&address.sun_path[1], name.size());
  const int file = socket(AF_UNIX, SOCK_DGRAM, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(sendto(file, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&address), size),
            static_cast<ssize_t>(message.size()));
  close(file);
}

TEST(readiness, told__once_a_program_has_said_so) {
  Readiness readiness(own_name());
  EXPECT_FALSE(readiness.reported());
  const auto [name, value] = readiness.environment();
  EXPECT_EQ(name, "NOTIFY_SOCKET");
  const Variable variable(value);
  EXPECT_EQ(report_ready(), "");
  EXPECT_TRUE(readiness.reported());
  EXPECT_TRUE(readiness.reported());
}

TEST(readiness, told__other_messages_are_not_that) {
  Readiness readiness(own_name());
  send(own_name(), "STATUS=opens ports");
  send(own_name(), "READY=10");
  send(own_name(), "");
  EXPECT_FALSE(readiness.reported());
  send(own_name(), "STATUS=forwards\nREADY=1\n");
  EXPECT_TRUE(readiness.reported());
}

TEST(readiness, name__is_refused_where_it_is_too_long_or_taken) {
  EXPECT_THROW(Readiness(std::string(200, 'x')), RunError);
  const Readiness first(own_name());
  EXPECT_THROW(Readiness{own_name()}, RunError);
}

TEST(report_ready, no_socket_variable__nothing_is_sent) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(report_ready(), "");
}

TEST(report_ready, no_listener__says_why) {
  {
    const Variable variable("@" + own_name());
    EXPECT_THAT(report_ready(), HasSubstr("cannot be notified that this program is ready: Connection refused"));
  }
  const Variable variable("vsock:2:1234");
  EXPECT_THAT(report_ready(), HasSubstr("neither /PATH nor @NAME"));
}

}  // namespace
}  // namespace mltcp::testbed
