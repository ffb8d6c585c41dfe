// Tests an all-reduce of three processes with a key. If one process is killed, the two others end with an exception
// that names the killed rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace mltcp::gloo_testing::processes {
namespace {

using testing::HasSubstr;

/// Returns the path of the key file, which must not be in the folder through which the ranks find each other.
std::string key_of(const std::string& folder) { return folder + ".key"; }

/// Writes a job's key in the format that all plug-ins accept.
void write_key(const std::string& folder) {
  const std::string file = key_of(folder);
  std::ofstream(file) << "mltcp-key-1 " << std::string(64, '5') << "\n";
  std::filesystem::permissions(file, std::filesystem::perms(0600));
}

class Rank {
 public:
  Rank(const std::string& folder, int rank) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      setenv("MLTCP_ADDRESS", "127.0.0.1", 1);
      setenv("MLTCP_PEER_TIMEOUT_MS", "1000", 1);
      setenv("MLTCP_KEY_FILE", key_of(folder).c_str(), 1);
      execl(MLTCP_GLOO_RANK, MLTCP_GLOO_RANK, folder.c_str(), std::to_string(rank).c_str(), "3", nullptr);
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Rank() {
    if (process_ > 0) kill();
    std::fclose(output_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  std::string line() {
    std::array<char, 2000> text{};
    return std::fgets(text.data(), text.size(), output_) != nullptr ? text.data() : "";
  }
  void kill() {
    ::kill(process_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = 0;
  FILE* output_ = nullptr;
};

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not support fork() of a process that had threads

TEST(GlooProcesses, rank_that_is_killed__is_named_by_all_others_in_time) {
  std::string folder = (std::filesystem::temp_directory_path() / "mltcp-gloo-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  write_key(folder);
  {
    std::array<Rank, 3> ranks{Rank(folder, 0), Rank(folder, 1), Rank(folder, 2)};
    for (Rank& rank : ranks) ASSERT_EQ(rank.line(), "running\n");
    const auto killed = std::chrono::steady_clock::now();
    ranks[2].kill();
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string text = ranks[i].line();
      EXPECT_THAT(text, HasSubstr("IoException: MLTCP, rank " + std::to_string(i) + ": "));
      EXPECT_THAT(text, HasSubstr("rank 2 (127.0.0.1:"));
      EXPECT_EQ(ranks[i].wait(), 3);
    }
    // The limit of 8 s is 1.5 times the time limit of a peer, plus a reserve for a busy machine. It is much less than
    // Gloo's time limit of 20 s.
    EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(8));
  }
  std::filesystem::remove_all(folder);
  std::filesystem::remove(key_of(folder));
}

#endif

}  // namespace
}  // namespace mltcp::gloo_testing::processes
