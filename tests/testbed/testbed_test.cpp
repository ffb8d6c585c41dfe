// The processes of a testbed: what needs no privileges. The rest is tested by the command
// (tests/tools/testbed_test.cpp).
#include "mltcp/testbed/testbed.h"
#include "../temporary_folder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mltcp::testbed {
namespace {

using testing::HasSubstr;

TEST(enter_script, hosts__have_the_files_of_their_namespaces) {
  TestbedLayout layout;
  layout.hosts = {0, 7};
  const std::string script = enter_script(layout, "4711");
  EXPECT_THAT(script, HasSubstr("  0) file=101 ;;\n  7) file=102 ;;\n  switch) file=100 ;;\n"));
  EXPECT_THAT(script, HasSubstr("exec nsenter $user --net=/proc/4711/fd/$file \"${@:-${SHELL:-/bin/sh}}\"\n"));
}

TEST(enter_script, no_such_host__is_wrong_usage) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "on";
  TestbedLayout layout;
  layout.hosts = {0};
  std::ofstream(file) << enter_script(layout, "1");
  for (const char* const arguments : {"", " 3 true"}) {
    const int status = std::system(("sh " + file.string() + arguments + " 2>/dev/null").c_str());  // NOLINT(cert-*)
    EXPECT_EQ(WEXITSTATUS(status), 2) << arguments;
  }
}

}  // namespace
}  // namespace mltcp::testbed
