// Tests whether a process notices that it is a copy: after a fork, after a call by the program, and by kernel events.
#include "mltcp/transport/security/copy_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/transport/security/sealed_messages.h"

namespace mltcp::security {
namespace {

using namespace std::string_literals;

TEST(CopyWatch, event_of_the_kernel__says_that_the_machine_was_resumed) {
  const std::string begins = "change@/devices/platform/VMGENCTR:00\0ACTION=change\0SUBSYSTEM=platform\0"s;
  EXPECT_EQ(resumption_in(begins + "NEW_VMGENID=1\0SEQNUM=4711\0"s), 4711);
  EXPECT_EQ(resumption_in(begins + "SEQNUM=4711\0NEW_VMGENID=1"s), 4711);
  EXPECT_EQ(resumption_in(begins + "SEQNUM=4711\0"s), std::nullopt);
  EXPECT_EQ(resumption_in(begins + "NEW_VMGENID=1\0"s), std::nullopt) << "nothing to tell it from another by";
  EXPECT_EQ(resumption_in(begins + "SYNTH_ARG_NEW_VMGENID=1\0SEQNUM=4711\0"s), std::nullopt) << "somebody's own";
  EXPECT_EQ(resumption_in("add@/devices/x\0NEW_VMGENID=1\0SEQNUM=4711\0"s), std::nullopt);
  EXPECT_EQ(resumption_in(""), std::nullopt);
}

TEST(CopyWatch, fork__is_noticed_by_the_child_once_and_by_the_parent_never) {
  CopyWatch watch;
  const pid_t child = fork();
  if (child == 0) _exit(watch.was_copied() && !watch.was_copied() ? 0 : 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(watch.was_copied());
}

/// Returns the number of files that this process has open.
std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(CopyWatch, watches__share_a_socket_also_in_a_child) {
  const CopyWatch first;
  const std::ptrdiff_t before = open_files();
  const std::vector<CopyWatch> others(100);
  EXPECT_EQ(open_files(), before);
  const pid_t child = fork();
  if (child == 0) _exit(open_files() == before ? 0 : 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CopyWatch, whoever_says_so__is_heard_by_all_watches) {
  CopyWatch one;
  CopyWatch other;
  note_process_copy();
  EXPECT_TRUE(one.was_copied());
  EXPECT_TRUE(other.was_copied());
  EXPECT_FALSE(one.was_copied());
  EXPECT_FALSE(CopyWatch().was_copied());
}

TEST(CopyWatch, stream__seals_nothing_more_in_a_copy) {
  const JobKey key = JobKey::generate();
  SealedMessages client(key, true);
  SealedMessages server(key, false);
  client.meet(server.greeting());
  server.meet(client.greeting());
  EXPECT_EQ(server.open(client.seal("before")), "before");
  const std::string from_server = server.seal("under way");
  note_process_copy();
  EXPECT_THROW(client.seal("after"), RunError);
  EXPECT_THROW(client.seal("after"), RunError);
  EXPECT_EQ(client.open(from_server), "under way");
  SealedMessages anew(key, true);
  anew.meet(server.greeting());
  EXPECT_NO_THROW(anew.seal("of another stream"));
}

}  // namespace
}  // namespace mltcp::security
