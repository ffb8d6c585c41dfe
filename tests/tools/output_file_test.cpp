// Tests how commands write output files. A command replaces the target as a whole, keeps it if writing fails, and never
// replaces anything that is not a regular file.
#include "output_file.h"
#include "../temporary_folder.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

mode_t mode_of(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
  return found.st_mode;
}

class OutputFile : public ::testing::Test {
 protected:
  // Checks the path first and writes later, as the commands do.
  static void write_checked(const fs::path& path, const std::string& text) {
    check_writable(path.string(), "");
    write_file(path.string(), text);
  }
  static std::string refusal(const fs::path& path, const std::string& input = "") {
    return refusal_of([&] { check_writable(path.string(), input); });
  }
  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFile, new_file__with_the_permissions_of_one) {
  const mode_t before = umask(027);
  write_checked(folder_ / "o", "text");
  umask(before);
  EXPECT_EQ(content(folder_ / "o"), "text");
  EXPECT_EQ(mode_of(folder_ / "o") & 07777U, 0640U);
  EXPECT_EQ(entries(), 1);
}

TEST_F(OutputFile, existing_file__replaced_with_its_permissions) {
  put(folder_ / "o", "long before");
  chmod((folder_ / "o").c_str(), 0604);
  write_checked(folder_ / "o", "new");
  EXPECT_EQ(content(folder_ / "o"), "new");
  EXPECT_EQ(mode_of(folder_ / "o") & 07777U, 0604U);
}

TEST_F(OutputFile, check__leaves_everything_as_it_was) {
  put(folder_ / "o.json.part", "mine");
  EXPECT_EQ(refusal(folder_ / "o.json"), "no error");
  EXPECT_EQ(content(folder_ / "o.json.part"), "mine");
  EXPECT_EQ(entries(), 1);
  write_checked(folder_ / "o.json", "text");
  EXPECT_EQ(content(folder_ / "o.json.part"), "mine");
}

TEST_F(OutputFile, link__stays_and_its_file_is_replaced) {
  fs::create_directory(folder_ / "far");
  put(folder_ / "far/file", "before");
  fs::create_symlink("far/file", folder_ / "near");
  fs::create_symlink("near", folder_ / "link");
  write_checked(folder_ / "link", "after");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "near"));
  EXPECT_EQ(content(folder_ / "far/file"), "after");

  fs::create_symlink("far/new", folder_ / "dangling");
  write_checked(folder_ / "dangling", "made");
  EXPECT_EQ(content(folder_ / "far/new"), "made");

  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(refusal(folder_ / "loop"), HasSubstr("a symbolic link that points to itself; "));
}

TEST_F(OutputFile, device__stays_a_device) {
  const fs::path device = folder_ / "null";
  if (mknod(device.c_str(), S_IFCHR | 0666U, makedev(1, 3)) != 0) GTEST_SKIP() << "only root can make a device";
  if (const int opened = open(device.c_str(), O_WRONLY | O_CLOEXEC); opened >= 0)
    close(opened);
  else
    GTEST_SKIP() << "devices don't work in " << folder_.path();
  write_checked(device, "text");
  EXPECT_TRUE(S_ISCHR(mode_of(device)));
  EXPECT_EQ(entries(), 1);
}

TEST_F(OutputFile, fifo__its_reader_gets_the_text) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = content(fifo); });
  write_checked(fifo, "text");
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(S_ISFIFO(mode_of(fifo)));
}

TEST_F(OutputFile, descriptor__written_where_it_stands) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  write_checked("/dev/fd/" + std::to_string(ends[1]), "text");
  std::array<char, 10> got{};
  EXPECT_EQ(read(ends[0], got.data(), got.size()), 4);
  EXPECT_THAT(refusal("/dev/fd/" + std::to_string(ends[0])), HasSubstr("is not open for writing; "));
  close(ends[0]);
  close(ends[1]);

  put(folder_ / "log", "before ");
  const int log = open((folder_ / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  write_checked("/proc/self/fd/" + std::to_string(log), "after");
  close(log);
  EXPECT_EQ(content(folder_ / "log"), "before after");
}

TEST_F(OutputFile, check__refuses_what_is_bound_to_fail) {
  EXPECT_THAT(refusal(folder_), HasSubstr("is a folder; name a file in it"));
  EXPECT_THAT(refusal(folder_ / "none/o"), HasSubstr("none does not exist; make it"));
  put(folder_ / "in", "read");
  fs::create_symlink("in", folder_ / "link");
  EXPECT_THAT(refusal(folder_ / "link", (folder_ / "in").string()), HasSubstr("is also the input file; "));
  if (geteuid() == 0) return;  // root may write everywhere
  fs::permissions(folder_ / "in", fs::perms::owner_read);
  EXPECT_THAT(refusal(folder_ / "in"), HasSubstr("in: cannot be written (Permission denied); "));
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(refusal(folder_ / "o"), HasSubstr("o: cannot be written (Permission denied); check the permissions of "));
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(OutputFile, failure__keeps_what_was_there_and_leaves_nothing) {
  put(folder_ / "o", "before");
  // Writing a file with a size limit fails like writing to a full disk.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{10, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string problem;
  try {
    write_file((folder_ / "o").string(), std::string(100, 'x'));
  } catch (const RunError& error) {
    problem = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(problem, HasSubstr("o: cannot be written: File too large"));
  EXPECT_EQ(content(folder_ / "o"), "before");
  EXPECT_EQ(entries(), 1);
}

}  // namespace
}  // namespace mltcp::tools
