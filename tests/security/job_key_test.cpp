// Tests job keys and their files: which keys are accepted, that errors name cause and remedy, and that no message
// contains a key.
#include "mltcp/transport/security/job_key.h"
#include "../temporary_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp::security {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

class JobKeyTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& text, mode_t mode = 0600) {
    const fs::path path = folder_.path() / "job.key";
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  template <typename Call>
  static std::string refusal(Call call) {
    try {
      static_cast<void>(call());
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string refused_text(const std::string& text) {
    return refusal([&] { return JobKey::from_text(text, "NAME"); });
  }

  TemporaryFolder folder_;
};

TEST_F(JobKeyTest, generated__differ_and_read_back_from_their_text) {
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 50; ++i) {
    const JobKey key = JobKey::generate();
    ids.insert(key.id());
    EXPECT_TRUE(JobKey::from_text(key.to_text(), "NAME") == key);
    EXPECT_EQ(JobKey::from_text(key.to_text(), "NAME").id(), key.id());
  }
  EXPECT_EQ(ids.size(), 50U);
}

TEST_F(JobKeyTest, text__is_a_line_among_comments) {
  const JobKey key = JobKey::from_text("# one\n\n  mltcp-key-1   " + kDigits + "\r\n# two", "NAME");
  EXPECT_EQ(key.id(), 0x2a8c9f3143bc8afcU);
  EXPECT_EQ(key.secret().bytes()[31], std::byte{31});
  EXPECT_TRUE(key ==
              JobKey::from_text("mltcp-key-1 000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", ""));
}

TEST_F(JobKeyTest, text_that_is_no_key__is_refused_with_its_line_and_without_its_contents) {
  EXPECT_THAT(refused_text(""), AllOf(HasSubstr("NAME: there is no key in it"), HasSubstr("mltcp key FILE")));
  EXPECT_THAT(refused_text("# nothing\n"), HasSubstr("there is no key"));
  for (const std::string& line :
       {"mltcp-key-1 " + kDigits.substr(2), "mltcp-key-1 " + kDigits + "00", kDigits, "mltcp-key-1" + kDigits,
        "mltcp-key-2 " + kDigits, "mltcp-key-1 g" + kDigits.substr(1), std::string("mltcp-key-1 "),
        std::string("mltcp-key-1")})
    EXPECT_THAT(refused_text("# comment\n" + line),
                AllOf(HasSubstr("NAME, line 2: no key: expected"), Not(HasSubstr("0405060708"))))
        << line;
  EXPECT_THAT(refused_text("mltcp-key-1 " + kDigits + "\nmltcp-key-1 " + kDigits), HasSubstr("line 2: a second key"));
  EXPECT_THAT(refused_text("mltcp-key-1 " + std::string(64, '0')), HasSubstr("NAME: the key is all zeros"));
}

TEST_F(JobKeyTest, file__is_written_for_its_owner_alone_and_not_over_another) {
  const JobKey key = JobKey::generate();
  const fs::path path = folder_.path() / "new.key";
  const mode_t before = ::umask(0);
  key.write_file(path);
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_TRUE(JobKey::from_file(path) == key);
  EXPECT_THAT(refusal([&] {
                JobKey::generate().write_file(path);
                return 0;
              }),
              HasSubstr("not replaced by mistake"));
  EXPECT_TRUE(JobKey::from_file(path) == key);
  EXPECT_THAT(refusal([&] {
                key.write_file(folder_.path() / "none" / "new.key");
                return 0;
              }),
              HasSubstr("cannot be made"));
}

TEST_F(JobKeyTest, file__is_not_written_where_another_user_leads) {
  if (::geteuid() != 0) GTEST_SKIP() << "files of another user are root's to make";
  const fs::path shared = folder_.path() / "shared";
  fs::create_directories(folder_.path() / "victim");
  fs::create_directory(shared);
  fs::create_symlink("../victim", shared / "way");
  ASSERT_EQ(::lchown((shared / "way").c_str(), 65'534, 65'534), 0);
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  EXPECT_THAT(refusal([&] {
                JobKey::generate().write_file(shared / "way" / "new.key");
                return 0;
              }),
              HasSubstr("way: the link belongs to another user"));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "victim"));
}

TEST_F(JobKeyTest, file_that_others_may_use__is_refused_with_the_cure) {
  const std::string text = JobKey::generate().to_text();
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0644U, 0610U})
    EXPECT_THAT(refusal([&] { return JobKey::from_file(write(text, mode)); }),
                AllOf(HasSubstr("users other than its owner may use this key file"), HasSubstr("chmod 600")))
        << mode;
  for (const mode_t mode : {0600U, 0400U}) EXPECT_NO_THROW(JobKey::from_file(write(text, mode))) << mode;
}

TEST_F(JobKeyTest, file_of_somebody_else__is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const fs::path path = write(JobKey::generate().to_text());
  ASSERT_EQ(::chown(path.c_str(), 65'534, 65'534), 0);
  EXPECT_THAT(refusal([&] { return JobKey::from_file(path); }), HasSubstr("belongs to user 65534"));
}

TEST_F(JobKeyTest, path_that_is_no_file__is_refused_without_waiting) {
  EXPECT_THAT(refusal([&] { return JobKey::from_file(folder_.path() / "none"); }),
              AllOf(HasSubstr("cannot be opened: No such file"), HasSubstr("mltcp key FILE")));
  EXPECT_THAT(refusal([&] { return JobKey::from_file(folder_.path()); }), HasSubstr("is a folder"));
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal([&] { return JobKey::from_file(pipe); }), HasSubstr("by its descriptor"));
  EXPECT_THAT(refusal([&] { return JobKey::from_file("/dev/zero"); }), HasSubstr("no regular file"));
  EXPECT_THAT(refusal([&] { return JobKey::from_file(write(std::string(5000, '#'))); }), HasSubstr("longer than 4096"));
}

TEST_F(JobKeyTest, link_to_a_file__is_followed) {
  const JobKey key = JobKey::generate();
  const fs::path link = folder_.path() / "link";
  fs::create_symlink(write(key.to_text()), link);
  EXPECT_TRUE(JobKey::from_file(link) == key);
}

TEST_F(JobKeyTest, descriptor__is_read_to_its_end_and_stays_open) {
  const JobKey key = JobKey::generate();
  const std::string text = key.to_text();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::write(pipe[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(pipe[1]);
  EXPECT_TRUE(JobKey::from_descriptor(pipe[0]) == key);
  EXPECT_GE(::fcntl(pipe[0], F_GETFD), 0);
  ::close(pipe[0]);
  EXPECT_THAT(refusal([&] { return JobKey::from_descriptor(pipe[0]); }), EndsWith("Bad file descriptor"));
  const int file = ::open(write(text, 0644).c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_THAT(refusal([&] { return JobKey::from_descriptor(file); }), HasSubstr("chmod 600"));
  ::close(file);
}

TEST_F(JobKeyTest, source__is_a_file_or_a_descriptor) {
  const JobKey key = JobKey::generate();
  const fs::path path = write(key.to_text());
  EXPECT_TRUE(JobKey::from_source(path.string()) == key);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  for (int reader = 0; reader < 3; ++reader)
    EXPECT_TRUE(JobKey::from_source("fd:" + std::to_string(file)) == key) << "as of processes that have inherited it";
  ::close(file);
  const auto refused = [](const std::string& source) { return refusal([&] { return JobKey::from_source(source); }); };
  EXPECT_THAT(refused("fd:" + std::to_string(file)), HasSubstr("Bad file descriptor"));
  for (const std::string& none : std::vector<std::string>{"fd:", "fd:x", "fd:-1", "fd:3 ", "fd:99999999999"})
    EXPECT_EQ(refused(none), "\"" + none + "\" names no descriptor; give fd:N with its number, such as fd:3");
  EXPECT_THAT(refused(""), HasSubstr("no key is named"));
  EXPECT_THAT(refused("-"), HasSubstr("fd:0 for standard input"));
  EXPECT_THAT(refused("none.key"), HasSubstr("none.key: the key file cannot be opened"));
}

TEST_F(JobKeyTest, source_that_is_a_key_itself__is_refused_and_not_repeated) {
  for (const std::string& key : {kDigits, "mltcp-key-1 " + kDigits, std::string("mltcp-key-1 abc")})
    EXPECT_THAT(refusal([&] { return JobKey::from_source(key); }),
                AllOf(HasSubstr("may be a key, which others can see"), Not(HasSubstr("abc")), Not(HasSubstr("0405"))));
  // The name of an existing key file is accepted, even if the name looks like a key.
  const fs::path path = folder_.path() / kDigits;
  const JobKey key = JobKey::generate();
  key.write_file(path);
  EXPECT_TRUE(JobKey::from_source(path.string()) == key);
}

}  // namespace
}  // namespace mltcp::security
