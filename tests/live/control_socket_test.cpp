// Tests control sockets: which processes a program finds through them, which users a process answers, and which files
// remain.
#include "mltcp/endpoint/live/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "mltcp/base/error.h"
#include "some_snapshot.h"

namespace mltcp::live {
namespace {

class ControlSocketTest : public testing::Test {
 protected:
  ControlSocketTest() {
    std::string name = (std::filesystem::temp_directory_path() / "mltcp-live-XXXXXX").string();
    base_ = mkdtemp(name.data());
    folder_ = base_ + "/run";
    setenv("MLTCP_RUN_DIR", folder_.c_str(), 1);
  }
  ~ControlSocketTest() override {
    unsetenv("MLTCP_RUN_DIR");
    std::filesystem::remove_all(base_);
  }
  static std::unique_ptr<ControlSocket> open(const std::string& kind = "gen") {
    return std::make_unique<ControlSocket>(kind, [] { return std::optional(test::some_snapshot()); });
  }
  static std::string complaint() {
    try {
      open();
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  }
  /// Connects without sending anything, and returns the file descriptor.
  static int connect_to(const std::string& path) {
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return file;
    close(file);
    return -1;
  }

  std::string base_;
  std::string folder_;
};

TEST_F(ControlSocketTest, no_process__nothing) { EXPECT_TRUE(ask_all().empty()); }

TEST_F(ControlSocketTest, processes__are_found_and_answer) {
  const auto one = open("gen");
  const auto two = open("switch");
  const auto three = open("gen");  // this process now has two "gen" sockets
  const auto all = ask_all();
  ASSERT_EQ(all.size(), 3U);
  for (const Asked& asked : all) {
    ASSERT_TRUE(asked.snapshot.has_value()) << asked.problem;
    EXPECT_EQ(to_json(*asked.snapshot), to_json(test::some_snapshot()));
  }
}

TEST_F(ControlSocketTest, folder_and_socket__are_the_users_alone_and_go) {
  std::string path;
  {
    const auto one = open();
    path = one->path();
    struct stat status {};
    ASSERT_EQ(stat(folder_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ControlSocketTest, folder_open_to_others__refused_with_the_cure) {
  std::filesystem::create_directory(folder_);
  chmod(folder_.c_str(), 0755);
  EXPECT_EQ(complaint(),
            folder_ + " is open to other users; run chmod 700 on it, or name another one in MLTCP_RUN_DIR");
  EXPECT_THROW(ask_all(), RunError);
}

TEST_F(ControlSocketTest, folder_is_a_link__refused) {
  std::filesystem::create_directory(base_ + "/elsewhere");
  std::filesystem::create_symlink(base_ + "/elsewhere", folder_);
  EXPECT_EQ(complaint(), folder_ + " is not a folder of this user's; remove it, or name another one in MLTCP_RUN_DIR");
}

TEST_F(ControlSocketTest, another_user__gets_no_answer) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const auto one = open();
  // The permissions of the folder let user 65534 connect, but the process behind the socket must refuse this user.
  chmod(base_.c_str(), 0755);
  chmod(folder_.c_str(), 0755);
  chmod(one->path().c_str(), 0777);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    const int file = connect_to(one->path());
    if (file < 0) _exit(2);
    char byte = 0;
    _exit(recv(file, &byte, 1, 0) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ControlSocketTest, process_that_is_gone__its_socket_goes) {
  std::string stale;
  {
    const auto one = open();
    stale = folder_ + "/gen-1.sock";
    std::filesystem::create_directory(folder_ + "/x");
    // Creates the socket of a process that was killed.
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    stale.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(file);
    EXPECT_EQ(ask_all().size(), 1U);
  }
  EXPECT_FALSE(std::filesystem::exists(stale));
}

TEST_F(ControlSocketTest, no_snapshot__is_a_problem_of_that_process_alone) {
  const auto one = open();
  const ControlSocket silent("switch", [] { return std::optional<Snapshot>(); });
  const auto all = ask_all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].snapshot.has_value());
  EXPECT_FALSE(all[1].snapshot.has_value());
  EXPECT_EQ(all[1].problem, "it did not answer in time: it hangs, or the machine is busy");
}

TEST_F(ControlSocketTest, client_that_reads_nothing__delays_no_other_client_for_long) {
  const auto one = open();
  const int idle = connect_to(one->path());
  ASSERT_GE(idle, 0);
  const auto all = ask_all();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].snapshot.has_value());
  close(idle);
}

}  // namespace
}  // namespace mltcp::live
