// Tests reading and writing of whole files. Reads are bounded, do not wait, and open only regular files. Writes refuse
// links and files of other users.
#include "mltcp/base/file.h"
#include "../temporary_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "../message_of.h"

namespace mltcp {
namespace {

namespace fs = std::filesystem;

constexpr TextFile kSmall{"a small file", 1U << 20};

class ReadTextFile : public ::testing::Test {
 protected:
  static std::string refusal(const fs::path& path) {
    return refusal_of([&] { return read_text_file(path, "NAME", kSmall); });
  }

  TemporaryFolder folder_;
};

TEST_F(ReadTextFile, file__every_byte) {
  const std::string text("a\0\r\n\xff", 5);
  std::ofstream(folder_ / "f", std::ios::binary) << text;
  EXPECT_EQ(read_text_file(folder_ / "f", "f", kSmall), text);
  const std::string most(kSmall.max_bytes, 'x');
  std::ofstream(folder_ / "f", std::ios::binary) << most;
  EXPECT_EQ(read_text_file(folder_ / "f", "f", kSmall), most);
}

TEST_F(ReadTextFile, byte_order_mark__skipped) {
  std::ofstream(folder_ / "f", std::ios::binary) << "\xEF\xBB\xBF{}";
  EXPECT_EQ(read_text_file(folder_ / "f", "f", kSmall), "{}");
}

TEST_F(ReadTextFile, too_large__refused) {
  std::ofstream(folder_ / "f") << std::string(kSmall.max_bytes + 1, 'x');
  EXPECT_EQ(refusal(folder_ / "f"), "NAME: the file is larger than 1 MiB; give the path of a small file");
}

TEST_F(ReadTextFile, no_file__refused) {
  EXPECT_EQ(refusal(folder_ / "f"), "NAME: there is no such file; give the path of a small file");
  EXPECT_EQ(refusal(folder_), "NAME: this is a directory; give the path of a small file");
  std::ofstream(folder_ / "f") << "x";
  EXPECT_THAT(refusal(folder_ / "f/f"), HasSubstr("there is no such file"));
  fs::permissions(folder_ / "f", fs::perms::none);
  if (geteuid() != 0) {
    EXPECT_THAT(refusal(folder_ / "f"), HasSubstr("can't be opened (Permission denied)"));
  }
}

TEST_F(ReadTextFile, no_file__the_nearest_beside_it_is_named) {
  for (const char* name : {"two-jobs.toml", "three-jobs.toml", "a.csv"}) std::ofstream(folder_ / name) << "x";
  fs::create_directory(folder_ / "two-jobs");
  const auto meant = [&](const char* name) {
    return "NAME: there is no such file; did you mean \"" + (folder_ / name).string() + "\"?";
  };
  EXPECT_EQ(refusal(folder_ / "two-job.toml"), meant("two-jobs.toml"));
  EXPECT_EQ(refusal(folder_ / "three-jobs"), meant("three-jobs.toml")) << "all but the ending";
  EXPECT_EQ(refusal(folder_ / "two-jobz"), "NAME: there is no such file; give the path of a small file") << "a folder";
  EXPECT_THAT(refusal(folder_ / "b.csv"), HasSubstr("give the path of"))
      << "two edits make any short name of any other";
  EXPECT_THAT(refusal(folder_ / "something-else.toml"), HasSubstr("give the path of"));
  EXPECT_THAT(refusal(folder_ / "none/two-jobs.toml"), HasSubstr("give the path of"));
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(refusal("two-job.toml"), "NAME: there is no such file; did you mean \"two-jobs.toml\"?");
  fs::current_path(before);
}

TEST_F(ReadTextFile, device__refused_without_reading) {
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("this is a device or socket"));
}

TEST_F(ReadTextFile, pipe__read_as_far_as_it_should_be) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], "text", 4), 4);
  close(ends[1]);
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(ends[0]), "pipe", kSmall), "text");
  close(ends[0]);
}

TEST_F(ReadTextFile, pipe_without_writer__not_waited_for) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_text_file(folder_ / "pipe", "pipe", kSmall), "");
}

TEST_F(ReadTextFile, observer__is_told_of_what_is_read_while_it_lives) {
  std::ofstream(folder_ / "a") << "one";
  std::ofstream(folder_ / "b") << "two";
  std::vector<std::pair<std::string, std::string>> seen;
  {
    const FileObserver observer(
        [&](const fs::path& path, const std::string& text) { seen.emplace_back(path.filename().string(), text); });
    for (const char* name : {"b", "a"}) static_cast<void>(read_text_file(folder_ / name, name, kSmall));
    EXPECT_NE(refusal(folder_ / "c"), "no error");
  }
  EXPECT_EQ(read_text_file(folder_ / "a", "a", kSmall), "one");
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::string>>{{"b", "two"}, {"a", "one"}}));
}

class WriteFile : public ::testing::Test {
 protected:
  std::string content(const fs::path& name) {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string refusal(const fs::path& name) const {
    return refusal_of([&] { refuse_planted_links(folder_ / name); });
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat found {};
    return lstat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
  }

  TemporaryFolder folder_;
};

TEST_F(WriteFile, replace_file__writes_to_no_name_that_can_be_foreseen) {
  folder_.write("mine", "mine");
  for (const std::string& name : {std::string("plan.json.new"), std::string("plan.json.tmp"),
                                  "plan.json." + std::to_string(getpid()), std::string("plan.json")})
    fs::create_symlink("mine", folder_ / name);
  ASSERT_EQ(replace_file(folder_ / "plan.json", "text"), 0);
  EXPECT_EQ(content("mine"), "mine");
  EXPECT_EQ(content("plan.json"), "text");
  EXPECT_FALSE(fs::is_symlink(folder_ / "plan.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 5) << "nothing is left beside";
}

TEST_F(WriteFile, replace_file__keeps_the_permissions_and_tells_why_it_can_not) {
  const mode_t before = umask(027);
  EXPECT_EQ(replace_file(folder_ / "new", "text"), 0);
  umask(before);
  EXPECT_EQ(mode_of(folder_ / "new"), 0640U);
  chmod((folder_ / "new").c_str(), 0604);
  EXPECT_EQ(replace_file(folder_ / "new", "again"), 0);
  EXPECT_EQ(mode_of(folder_ / "new"), 0604U);
  EXPECT_EQ(replace_file(folder_ / "none" / "new", "text"), ENOENT);
  fs::create_directory(folder_ / "folder");
  EXPECT_EQ(replace_file(folder_ / "folder", "text"), EISDIR);
}

TEST_F(WriteFile, output_target__follows_own_links_and_takes_descriptors_for_what_they_are) {
  fs::create_symlink("far", folder_ / "near");
  EXPECT_EQ(output_target(folder_ / "near").path, folder_ / "far");
  EXPECT_EQ(output_target(folder_ / "none").path, folder_ / "none");
  EXPECT_EQ(output_target("/dev/stderr").descriptor, 2);
  EXPECT_EQ(output_target("/dev/fd/17").descriptor, 17);
  fs::create_symlink("/dev/stdout", folder_ / "out");
  EXPECT_EQ(output_target(folder_ / "out").descriptor, 1);
}

TEST_F(WriteFile, output_target__is_a_path_without_links) {
  fs::create_directories(folder_ / "a/b");
  fs::create_symlink("a/b/", folder_ / "near");
  fs::create_symlink((folder_ / "near").string(), folder_ / "far");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(output_target(folder_ / "far/../c").path, folder_ / "a/c") << "as the kernel goes, not as it is written";
  EXPECT_EQ(output_target(folder_ / "far/./b/c").path, folder_ / "a/b/b/c") << "what does not exist";
  EXPECT_EQ(output_target(folder_ / "far/").path, folder_ / "a/b/");
  EXPECT_EQ(output_target(folder_ / "loop/c").path, folder_ / "loop/c");
  EXPECT_EQ(output_target("/proc/self/cwd/c").path, "/proc/self/cwd/c") << "which may be in another root";
  EXPECT_EQ(replace_file(folder_ / "far/c", "text"), 0);
  EXPECT_EQ(content("a/b/c"), "text");
}

TEST_F(WriteFile, output_target__refuses_what_another_user_has_planted) {
  if (geteuid() != 0) GTEST_SKIP() << "files of another user are root's to make";
  constexpr uid_t other_user = 65'534;
  fs::create_directory(folder_ / "shared");
  folder_.write("mine", "mine");
  folder_.write("shared/file", "");
  fs::create_symlink("../mine", folder_ / "shared/link");
  fs::create_symlink("shared/link", folder_ / "to link");
  fs::create_symlink("../mine", folder_ / "shared/own");
  for (const char* const name : {"shared/file", "shared/link"})
    ASSERT_EQ(lchown((folder_ / name).c_str(), other_user, other_user), 0);
  EXPECT_EQ(refusal("shared/link"), "no error") << "a folder that is not for all";
  chmod((folder_ / "shared").c_str(), 01777);
  EXPECT_THAT(refusal("shared/link"),
              HasSubstr("shared/link: the link belongs to another user, in a folder that all users may"));
  EXPECT_THAT(refusal("shared/file"),
              HasSubstr("shared/file: the file belongs to another user, in a folder that all users may"));
  EXPECT_THAT(refusal("to link"), HasSubstr("shared/link: the link belongs to another user"));
  EXPECT_EQ(refusal("shared/own"), "no error");
  EXPECT_EQ(refusal("shared/new"), "no error");
  // A path is refused if it leads through a link of another user, even if the rest of the path does not exist.
  fs::create_directory(folder_ / "victim");
  folder_.write("victim/file", "precious");
  fs::create_symlink("../victim", folder_ / "shared/out");
  fs::create_symlink("../victim", folder_ / "shared/own folder");
  fs::create_symlink("shared/out/.", folder_ / "to out");
  ASSERT_EQ(lchown((folder_ / "shared/out").c_str(), other_user, other_user), 0);
  for (const char* const name :
       {"shared/out/file", "shared/out/none/new", "to out/file", "victim/../shared/out/file"}) {
    EXPECT_THAT(refusal(name), HasSubstr("shared/out: the link belongs to another user")) << name;
    EXPECT_EQ(replace_file(folder_ / name, "text"), EACCES) << name;
  }
  EXPECT_EQ(content("victim/file"), "precious");
  EXPECT_EQ(output_target(folder_ / "shared/own folder/file").path, folder_ / "victim/file");
  ASSERT_EQ(lchown((folder_ / "shared").c_str(), other_user, other_user), 0);
  EXPECT_EQ(refusal("shared/link"), "no error") << "the owner of the folder may have what he likes there";
}

}  // namespace
}  // namespace mltcp
