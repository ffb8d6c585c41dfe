// Tests inputs of traces: plain and compressed files, archives, folders, and damaged files.
#include "mltcp/lab/workload/traces/trace_input.h"

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <utility>
#include <vector>

#include "../../message_of.h"
#include "../../temporary_folder.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload::trace_input_test {
namespace {

using ::testing::Pair;

using Files = std::vector<std::pair<std::string, std::string>>;

std::string packed(const Files& files, int (*filter)(archive*), bool tar) {
  std::string result(std::size_t{4} << 20, '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  filter(writer);
  if (tar)
    archive_write_set_format_pax_restricted(writer);
  else
    archive_write_set_format_raw(writer);
  archive_write_open_memory(writer, result.data(), result.size(), &used);
  for (const auto& [name, text] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, text.data(), text.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  result.resize(used);
  return result;
}
std::string gzip(const std::string& text) { return packed({{"x", text}}, archive_write_add_filter_gzip, false); }
std::string zstd(const std::string& text) { return packed({{"x", text}}, archive_write_add_filter_zstd, false); }

std::string all_of(TraceInput& input) {
  std::string text;
  std::vector<char> part(1000);
  for (std::size_t count = 0; (count = input.read(part.data(), part.size())) > 0;) text.append(part.data(), count);
  return text;
}

Files read(const std::string& bytes) {
  Files files;
  for_each_input_in(bytes, "t", [&](TraceInput& input) { files.emplace_back(input.name(), all_of(input)); });
  return files;
}
std::string refusal(const std::string& bytes) {
  return refusal_of([&] { read(bytes); });
}

/// Returns a text that hardly compresses, so that its parts are far apart in a compressed file.
std::string long_text() {
  std::string text;
  std::uint32_t state = 1;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + ((state = state * 1664525 + 1013904223) >> 28U));
  return text;
}

TEST(TraceInput, unpacks__by_what_it_holds_whatever_it_is_called) {
  const std::string text = long_text();
  EXPECT_THAT(read(text), ElementsAre(Pair("t", text)));
  EXPECT_THAT(read(gzip(text)), ElementsAre(Pair("t", text)));
  EXPECT_THAT(read(zstd(text)), ElementsAre(Pair("t", text)));
}

TEST(TraceInput, archives__have_their_members_read_one_after_the_other) {
  const std::string text = long_text();
  const Files files{{"d/b", "one"}, {"a", text}, {"c.gz", gzip(text)}, {"._b", "hidden"}, {"e.zst", zstd("two")}};
  for (const auto filter :
       {archive_write_add_filter_none, archive_write_add_filter_gzip, archive_write_add_filter_zstd})
    EXPECT_THAT(read(packed(files, filter, true)),
                ElementsAre(Pair("t:d/b", "one"), Pair("t:a", text), Pair("t:c.gz", text), Pair("t:e.zst", "two")));
}

TEST(TraceInput, archives__are_read_on_when_a_member_was_not_read_to_its_end) {
  const std::string tar = packed({{"a", long_text()}, {"b", "two"}}, archive_write_add_filter_gzip, true);
  std::vector<std::string> beginnings;
  for_each_input_in(tar, "t", [&](TraceInput& input) { beginnings.emplace_back(input.beginning().substr(0, 3)); });
  EXPECT_THAT(beginnings, ElementsAre(long_text().substr(0, 3), "two"));
}

TEST(TraceInput, byte_order_mark__is_skipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_THAT(read(mark + "{}"), ElementsAre(Pair("t", "{}")));
  EXPECT_THAT(read(gzip(mark + "{}")), ElementsAre(Pair("t", "{}")));
  const auto input = memory_input("\xEF\xBB\xBF{}", "m");
  EXPECT_EQ(all_of(*input), "{}") << "without a look at its beginning";
}

TEST(TraceInput, beginning__takes_nothing) {
  const std::string text = long_text();
  const auto input = memory_input(text, "m");
  EXPECT_EQ(input->beginning(), text.substr(0, 65536));
  EXPECT_EQ(input->beginning(), text.substr(0, 65536));
  EXPECT_EQ(all_of(*input), text);
  EXPECT_EQ(input->beginning(), "");
}

TEST(TraceInput, damage__is_one_line_that_names_the_input) {
  const std::string text = long_text();
  for (const std::string& bytes : {gzip(text), zstd(text)})
    for (const std::size_t size : {bytes.size() - 1, bytes.size() / 2, std::size_t{100'000}})
      EXPECT_THAT(refusal(bytes.substr(0, size)), HasSubstr("t: its compressed content is damaged or cut off")) << size;
  const std::string tar = packed({{"a", text}}, archive_write_add_filter_none, true);
  EXPECT_THAT(refusal(tar.substr(0, 100'000)), HasSubstr("t:a: its compressed content is damaged or cut off"));
  std::string changed = gzip(text);
  changed[10] |= 6;  // sets a block type that does not exist
  EXPECT_THAT(refusal(changed), HasSubstr("damaged"));
  EXPECT_THAT(refusal(""), HasSubstr("t: it holds nothing"));
  EXPECT_THAT(refusal(std::string(1000, '\0')), HasSubstr("t: it is an archive without files, or nothing but zeros"));
  EXPECT_THAT(refusal(packed({{"in.tar", tar}}, archive_write_add_filter_none, true)), "no error")
      << "what it is, its reader says";
  EXPECT_THAT(refusal(packed({{"in.tgz", packed({{"a", "x"}}, archive_write_add_filter_gzip, true)}},
                             archive_write_add_filter_none, true)),
              HasSubstr("t:in.tgz: this is an archive within an archive"));
}

std::string sparse_tar(std::uint64_t size) {
  std::string result(std::size_t{1} << 20, '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_set_format_pax(writer);
  archive_write_open_memory(writer, result.data(), result.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, "holes");
  archive_entry_set_size(entry, static_cast<la_int64_t>(size));
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_sparse_add_entry(entry, 0, 1);
  archive_write_header(writer, entry);
  archive_write_data(writer, "x", 1);
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  result.resize(used);
  return result;
}
/// Returns the error of a reader that reads to the end, and the number of bytes read.
std::pair<std::string, std::uint64_t> refusal_after(const std::string& bytes, bool reads = true) {
  std::uint64_t all = 0;
  std::vector<char> part(std::size_t{1} << 20);
  try {
    for_each_input_in(bytes, "t", [&](TraceInput& input) {
      for (std::size_t count = 1; reads && count > 0; all += count) count = input.read(part.data(), part.size());
    });
  } catch (const InputError& error) {
    return {error.what(), all};
  }
  return {"no error", all};
}

TEST(TraceInput, bombs__are_unpacked_only_as_far_as_their_size_is_worth) {
  constexpr std::uint64_t mebi = 1 << 20;
  const std::string part = gzip(std::string(mebi, '\n'));
  const auto times = [&](int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += part;
    return all;
  };
  const std::string bomb = times(300);
  const auto more = HasSubstr("t: it unpacks to more than 256 MiB, and more than 40 times its size; unpack it, and");
  const auto few = ::testing::Le(257 * mebi);
  EXPECT_THAT(refusal_after(bomb), Pair(more, few));
  EXPECT_THAT(refusal_after(bomb, false), Pair(more, 0)) << "what nobody reads";
  EXPECT_THAT(refusal_after(sparse_tar(std::uint64_t{1} << 30)), Pair(more, few)) << "holes";
  // Each member is small enough, but both together are too large.
  const std::string half = times(150);
  EXPECT_THAT(refusal_after(packed({{"a", half}}, archive_write_add_filter_gzip, true)), Pair("no error", 150 * mebi));
  EXPECT_THAT(refusal_after(packed({{"a", half}, {"b", half}}, archive_write_add_filter_gzip, true)), Pair(more, few));
}

TEST(TraceInput, small_files__may_keep_less_than_large_ones) {
  constexpr std::size_t flows = 2'000'000;
  std::string text = std::to_string(flows) + "\n";
  for (std::size_t i = 0; i < flows; ++i) text += "0 1 3 1 1 2\n";
  const auto refused = [](const std::string& bytes) -> std::string {
    return refusal_of([&] { parse_trace_graph(bytes, "t", {.as_recorded = true}); });
  };
  EXPECT_EQ(refused(text), "no error");
  EXPECT_THAT(refused(gzip(text)), HasSubstr("need more than 160 MiB"));
}

TEST(TraceInput, what_is_packed_twice__is_refused) {
  for (const std::string& twice : {gzip(gzip("x")), zstd(zstd(zstd("x"))), gzip(zstd("x")),
                                   packed({{"a", gzip(gzip("x"))}}, archive_write_add_filter_none, true)})
    EXPECT_THAT(refusal(twice),
                HasSubstr(": its compressed content is compressed again; unpack it once, and give the result"));
}

TEST(TraceInput, folders__are_read_in_the_order_of_names) {
  const TemporaryFolder folder;
  folder.write("b.gz", gzip("two"));
  folder.write("a", "one");
  folder.write(".hidden", "x");
  std::filesystem::create_directory(folder / "c");
  Files files;
  for_each_input(folder, [&](TraceInput& input) { files.emplace_back(input.name(), all_of(input)); });
  EXPECT_THAT(files, ElementsAre(Pair(folder.string() + "/a", "one"), Pair(folder.string() + "/b.gz", "two")));
  const auto of = [&](const std::filesystem::path& path) {
    return refusal_of([&] { for_each_input(path, [](TraceInput&) {}); });
  };
  EXPECT_THAT(of(folder / "d"), HasSubstr("no such file"));
  EXPECT_THAT(of(folder / "c"), HasSubstr("the folder has no files"));
  EXPECT_THAT(of("/dev/null"), HasSubstr("device"));
}

}  // namespace
}  // namespace mltcp::workload::trace_input_test
