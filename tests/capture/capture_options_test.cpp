// Tests the options of a capture as users write them.
#include "mltcp/transport/capture/capture_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "mltcp/base/error.h"

namespace mltcp::capture {
namespace {

std::string complaint(const std::string& text) {
  try {
    parse_capture("--pcap", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CaptureOptions, a_name_alone__whole_packets_in_one_file) {
  const CaptureOptions options = parse_capture("--pcap", "run.pcapng");
  EXPECT_EQ(options.file, "run.pcapng");
  EXPECT_EQ(options.snap_bytes, 65535U);
  EXPECT_EQ(options.file_bytes, 0U);
  EXPECT_EQ(options.files, 1U);
}

TEST(CaptureOptions, all_words__in_any_order) {
  const CaptureOptions options = parse_capture("--pcap", "x/run-%p.pcapng,files=4,snap=128,size=2MB");
  EXPECT_EQ(options.file, "x/run-" + std::to_string(getpid()) + ".pcapng");
  EXPECT_EQ(options.snap_bytes, 128U);
  EXPECT_EQ(options.file_bytes, 2'000'000U);
  EXPECT_EQ(options.files, 4U);
}

TEST(CaptureOptions, wrong__one_line_with_the_cure) {
  EXPECT_EQ(complaint(""), "--pcap: the name of the file is empty; write FILE[,snap=BYTES][,size=BYTES][,files=N]");
  EXPECT_EQ(complaint("a,snap=10"), "--pcap: snap is \"10\"; give a whole number from 64 to 65535");
  EXPECT_EQ(complaint("a,snap=70000"), "--pcap: snap is \"70000\"; give a whole number from 64 to 65535");
  EXPECT_EQ(complaint("a,snap"), "--pcap: snap is \"\"; give a whole number from 64 to 65535");
  EXPECT_EQ(complaint("a,size=1kB"), "--pcap: size is \"1kB\"; give at least 64 kB");
  EXPECT_EQ(complaint("a,files=3"), "--pcap: files=3 needs the size of a file; add size=, such as size=100MB");
  EXPECT_EQ(complaint("a,size=1MB,files=1"), "--pcap: files is \"1\"; give a whole number from 2 to 10000");
  EXPECT_EQ(complaint("a,b=1"), "--pcap: \"b=1\" is not known; write FILE[,snap=BYTES][,size=BYTES][,files=N]");
  EXPECT_EQ(complaint("a,size=much").substr(0, 14), "--pcap: size: ");
}

TEST(CaptureOptions, suffix__before_the_ending_of_the_name) {
  const auto with = [](const std::string& file) { return with_suffix({.file = file}, "mltcp").file; };
  EXPECT_EQ(with("run.pcapng"), "run-mltcp.pcapng");
  EXPECT_EQ(with("a.b/run"), "a.b/run-mltcp");
  EXPECT_EQ(with(".hidden"), ".hidden-mltcp");
}

}  // namespace
}  // namespace mltcp::capture
