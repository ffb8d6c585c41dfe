// Tests claims of interfaces. One process at a time can claim an interface; the tests show which claims are valid.
#include "mltcp/dpdk/interface_claim.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <string>

namespace mltcp::dpdk {
namespace {

// Binds a socket to the name of a claim on the loopback interface, as an impostor does. Returns the socket.
int impostor(bool listening) {
  const std::string name = "mltcp-interface-" + std::to_string(if_nametoindex("lo"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  if (listening) {
    EXPECT_EQ(listen(socket, 1), 0);
  }
  return socket;
}

TEST(InterfaceClaim, second_claim__is_told_who_has_the_first) {
  {
    const InterfaceClaim first("lo");
    EXPECT_TRUE(first.is_ours());
    const InterfaceClaim second("lo");
    EXPECT_FALSE(second.is_ours());
    EXPECT_EQ(second.holder(), getpid());
    EXPECT_THAT(second.holder_text(), ::testing::StartsWith("process " + std::to_string(getpid()) + " ("));
  }
  EXPECT_TRUE(InterfaceClaim("lo").is_ours()) << "it went with its owner";
}

TEST(InterfaceClaim, name_without_a_listener__is_ignored) {
  const int socket = impostor(false);
  EXPECT_TRUE(InterfaceClaim("lo").is_ours());
  close(socket);
}

TEST(InterfaceClaim, another_users_listener__is_ignored) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    const bool other = setuid(nobody) == 0;
    impostor(true);
    const char word = other ? 'y' : 'n';
    static_cast<void>(write(ready[1], &word, 1) == 1);
    pause();
    _exit(0);
  }
  char word = 0;
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  EXPECT_TRUE(InterfaceClaim("lo").is_ours());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace mltcp::dpdk
