// Tests `mltcp key` as users call it.
#include <sys/stat.h>

#include <string>

#include "../matchers.h"
#include "program_test.h"

namespace mltcp::tools {
namespace {

class KeyCommand : public ProgramTest {};

TEST_F(KeyCommand, new_key__is_in_a_file_of_its_owner_s_and_tells_its_id_alone) {
  const Outcome made = done("key job.key");
  EXPECT_THAT(made.out, MatchesRegex("[0-9a-f]{16}\n"));
  const std::string text = content(folder_ / "job.key");
  EXPECT_THAT(text, HasSubstr("mltcp-key-1 "));
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "job.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(run("key --show job.key").out, made.out);
  EXPECT_EQ(run("key --show fd:3 3< job.key").out, made.out);
  EXPECT_NE(run("key other.key").out, made.out);
}

TEST_F(KeyCommand, file_that_is_there__is_not_replaced) {
  done("key job.key");
  const std::string before = content(folder_ / "job.key");
  EXPECT_THAT(refusal("key job.key"), HasSubstr("job.key: exists, and keys are not replaced by mistake; name another"));
  EXPECT_EQ(content(folder_ / "job.key"), before);
}

TEST_F(KeyCommand, what_is_no_key_file__is_refused_in_a_line) {
  EXPECT_THAT(refusal("key"), HasSubstr("FILE is required"));
  EXPECT_THAT(refusal("key -"), HasAll("\"-\" is not a valid name for a key file", "\"./-\""));
  EXPECT_THAT(refusal("key fd:3"), HasSubstr("\"./fd:3\""));
  EXPECT_THAT(refusal("key none/job.key"), HasSubstr("none/job.key: the key file cannot be made"));
  EXPECT_THAT(refusal("key --show none.key"), HasSubstr("none.key: the key file cannot be opened"));
  done("key job.key");
  ASSERT_EQ(::chmod((folder_ / "job.key").c_str(), 0644), 0);
  EXPECT_THAT(refusal("key --show job.key"), HasAll("job.key: users other than its owner", "0644"));
  const std::string secret(64, 'a');
  EXPECT_THAT(refusal("key --show " + secret), AllOf(HasSubstr("may be a key"), Not(HasSubstr(secret))));
}

}  // namespace
}  // namespace mltcp::tools
