// Tests the journal file: cut at every byte, damaged, in use by another process, and on a full disk.
#include "mltcp/scheduler/service/journal.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <sstream>

#include "../matchers.h"
#include "mltcp/base/fingerprint.h"
#include "services.h"

namespace mltcp::service::journal_test {
namespace {

using namespace testing_services;

StoredJob stored(const std::string& id, std::uint32_t number, std::uint64_t revision) {
  StoredJob result;
  result.request = job(id);
  result.hosts = {"a1", "b1"};
  result.number = number;
  result.slot_period = 102_ms;
  result.time_shift = 33_ms;
  result.revision = revision;
  return result;
}

/// Returns a job whose journal line is so long that a few hundred of them cause the file to be rewritten.
StoredJob long_job(const std::string& id, std::uint64_t revision) {
  StoredJob result = stored(id, static_cast<std::uint32_t>(revision), revision);
  result.hosts.assign(500, "some-host-of-many");
  return result;
}

/// Returns events with arrivals, with a departure, and with changed plans of jobs that stay.
std::vector<JournalEvent> events() {
  return {{1, {stored("one", 1, 1)}, {}, {}},
          {2, {stored("two \"quoted\" \xc3\xa4", 2, 2)}, {}, {{"one", 103_ms, 1_ms}}},
          {3, {stored("three", 3, 3)}, {}, {}},
          {4, {}, {"one"}, {{"three", 102_ms, 7_ms}}}};
}

std::vector<std::string> logged;
void keep(const std::string& line) { logged.push_back(line); }

class journal : public ::testing::Test {
 protected:
  void SetUp() override { logged.clear(); }
  [[nodiscard]] std::filesystem::path state() const { return folder_ / "state"; }
  [[nodiscard]] std::filesystem::path file() const { return state() / "journal.jsonl"; }
  [[nodiscard]] Journal opened() const { return {state(), kEpoch, keep}; }
  [[nodiscard]] std::string refusal() const {
    return refusal_of([&] { return opened(); });
  }

  TemporaryFolder folder_;
};

TEST_F(journal, state__is_as_it_was_left) {
  ServiceState before;
  {
    Journal written = opened();
    EXPECT_EQ(written.state().epoch_unix_ns, kEpoch);
    for (const JournalEvent& event : events()) written.append(event);
    before = written.state();
  }
  EXPECT_THAT(before.jobs, SizeIs(2));
  EXPECT_EQ(before.jobs[1].time_shift, 7_ms);
  EXPECT_EQ(before.jobs[1].revision, 4U);
  EXPECT_EQ(before.last_number, 3U);
  EXPECT_EQ(before.revision, 4U);
  const Journal again(state(), kEpoch + 1, keep);
  EXPECT_EQ(again.state(), before);
  EXPECT_THAT(logged, IsEmpty());
}

TEST_F(journal, cut_at_any_byte__it_holds_what_was_whole_or_is_refused) {
  std::string text;
  std::vector<std::size_t> ends;     // size of the file after each event
  std::vector<ServiceState> states;  // state after each event
  {
    Journal written = opened();
    ends.push_back(content(file()).size());
    states.push_back(written.state());
    for (const JournalEvent& event : events()) {
      written.append(event);
      ends.push_back(content(file()).size());
      states.push_back(written.state());
    }
    text = content(file());
  }
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::ofstream(file(), std::ios::binary) << text.substr(0, cut);
    logged.clear();
    if (cut < ends.front()) {
      EXPECT_THAT(refusal(), HasAll("journal.jsonl:1: the journal is damaged", "put a good copy back"));
      EXPECT_EQ(content(file()).size(), cut) << "it is left for whoever has to look at it";
      continue;
    }
    std::size_t whole = 0;
    while (whole + 1 < ends.size() && ends[whole + 1] <= cut) ++whole;
    {
      Journal after = opened();
      EXPECT_EQ(after.state(), states[whole]) << "cut at " << cut;
      EXPECT_EQ(logged.size(), cut == ends[whole] ? 0U : 1U);
      EXPECT_THAT(logged, ::testing::Each(HasSubstr("never finished")));
      JournalEvent next;
      next.revision = after.state().revision + 1;
      next.arrived = {stored("later", 9, next.revision)};
      after.append(next);
    }
    // The unfinished event is removed from the file, and the later event is stored completely.
    EXPECT_EQ(opened().state().jobs.back().request.id, "later");
  }
}

TEST_F(journal, cut_in_its_snapshot__is_refused) {
  {
    // Appends so many events that the journal is rewritten with a snapshot.
    Journal written = opened();
    for (std::uint64_t i = 1; i <= 300; ++i)
      written.append(
          {i, {long_job("job", i)}, i == 1 ? std::vector<std::string>() : std::vector<std::string>{"job"}, {}});
  }
  const std::string text = content(file());
  EXPECT_LT(text.size(), 1'300'000U) << "it was written anew";
  EXPECT_THAT(text.substr(0, 200), HasSubstr("\"jobs\":1"));
  const std::size_t first = text.find('\n');
  for (const std::size_t cut : {first, first + 1, first + 20, text.find('\n', first + 1)}) {
    std::ofstream(file(), std::ios::binary) << text.substr(0, cut);
    EXPECT_THAT(refusal(), HasSubstr("the journal is damaged")) << cut;
  }
}

TEST_F(journal, snapshot__keeps_what_there_was) {
  ServiceState before;
  {
    Journal written = opened();
    for (const JournalEvent& event : events()) written.append(event);
    std::uint64_t revision = 4;
    for (int i = 0; i < 300; ++i) {
      ++revision;
      written.append({revision, {long_job("x", revision)}, {}, {}});
      ++revision;
      written.append({revision, {}, {"x"}, {}});
    }
    before = written.state();
  }
  EXPECT_THAT(content(file()).substr(0, 300), Not(HasSubstr("\"jobs\":0")));
  EXPECT_EQ(opened().state(), before);
  EXPECT_THAT(logged, IsEmpty());
}

TEST_F(journal, any_byte_changed__is_noticed) {
  {
    Journal written = opened();
    for (const JournalEvent& event : events()) written.append(event);
  }
  const std::string text = content(file());
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = bad[at] == 'x' ? 'y' : 'x';
    std::ofstream(file(), std::ios::binary) << bad;
    if (at == text.size() - 1) {
      // Without its line end, the last line counts as unfinished.
      static_cast<void>(opened());
      continue;
    }
    const std::string says = refusal();
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    EXPECT_THAT(says, HasSubstr("journal.jsonl:" + std::to_string(line) + ": the journal is damaged")) << at;
  }
  // A page of the last line was never written to disk.
  std::string torn = text;
  torn.replace(last + 10, 20, std::string(20, '\0'));
  std::ofstream(file(), std::ios::binary) << torn;
  logged.clear();
  EXPECT_EQ(opened().state().revision, 3U);
  EXPECT_THAT(logged, ElementsAre(HasSubstr("never finished")));
}

TEST_F(journal, lines_missing_or_twice__are_noticed) {
  {
    Journal written = opened();
    for (const JournalEvent& event : events()) written.append(event);
  }
  const std::string text = content(file());
  std::vector<std::size_t> begins{0};
  for (std::size_t at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1)) begins.push_back(at + 1);
  const std::string second = text.substr(begins[1], begins[2] - begins[1]);
  std::ofstream(file(), std::ios::binary) << text.substr(0, begins[1]) + text.substr(begins[2]);
  EXPECT_THAT(refusal(), HasAll(":2: ", "a line is missing"));
  std::ofstream(file(), std::ios::binary) << text.substr(0, begins[2]) + second + text.substr(begins[2]);
  EXPECT_THAT(refusal(), HasSubstr(":3: "));
}

/// Replaces texts in all lines of a journal, and computes the checksums again.
std::string replaced(const std::string& text, const std::vector<std::pair<std::string, std::string>>& replacements) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(line.rfind(",\"sum\""));
    for (const auto& [now, then] : replacements)
      if (const std::size_t at = line.find(now); at != std::string::npos) line.replace(at, now.size(), then);
    result += line + ",\"sum\":\"" + Fingerprint().add(line).text() + "\"}\n";
  }
  return result;
}

TEST_F(journal, of_version_1__is_read_and_written_anew) {
  {
    Journal written = opened();
    written.append(events()[0]);
  }
  // In version 1, the members of "demand" were members of the job itself, in events and in snapshots.
  const std::vector<std::pair<std::string, std::string>> older{
      {"journal/2", "journal/1"}, {"\"demand\":{", ""}, {"}]}", "}]"}};
  const auto make_older = [&] {
    const std::string text = replaced(content(file()), older);
    EXPECT_THAT(text, AllOf(HasSubstr("journal/1"), ::testing::Not(HasSubstr("demand"))));
    std::ofstream(file(), std::ios::binary) << text;
  };
  ServiceState before;
  // in the first round, the file of version 1 contains events; in the second round, it contains a snapshot
  for (std::size_t event = 1; event < 3; ++event) {
    make_older();
    Journal again = opened();
    EXPECT_THAT(content(file()), HasSubstr("journal/2"));
    again.append(events()[event]);
    before = again.state();
  }
  EXPECT_EQ(opened().state(), before);
  EXPECT_THAT(before.jobs, SizeIs(3));
}

TEST_F(journal, numbers_that_no_job_has__are_refused) {
  {
    Journal written = opened();
    written.append(events()[0]);
  }
  const std::string good = content(file());
  const std::string bursts = good.substr(good.find("\"bursts\":["), good.find(']') + 1 - good.find("\"bursts\":["));
  for (const auto& [now, then] : {std::pair<std::string, std::string>{"\"flows\":1", "\"flows\":0"},
                                  {"\"workers\":2", "\"workers\":0"},
                                  {"\"number\":1", "\"number\":0"},
                                  {"\"slot_period_ns\":102000000", "\"slot_period_ns\":0"},
                                  {bursts, "\"bursts\":[]"}}) {
    const std::string text = replaced(good, {{now, then}});
    ASSERT_NE(text, good) << now;
    std::ofstream(file(), std::ios::binary) << text;
    EXPECT_THAT(refusal(), AllOf(HasSubstr("journal.jsonl:2: the journal is damaged"),
                                 HasSubstr(then.substr(1, then.find('"', 1) - 1))));
  }
}

TEST_F(journal, two_services__do_not_share_a_folder) {
  const Journal first = opened();
  EXPECT_THAT(refusal(), HasAll("another service keeps its jobs here, process " + std::to_string(getpid()), "--state"));
}

TEST_F(journal, folder_that_cannot_be__is_refused) {
  folder_.write("file", "");
  EXPECT_THAT(refusal_of<RunError>([&] { const Journal none(folder_ / "file" / "state", kEpoch, keep); }),
              HasSubstr("the folder can't be made"));
  EXPECT_THAT(refusal_of<RunError>([&] { const Journal none(folder_ / "file", kEpoch, keep); }),
              HasSubstr("can't be opened"));
}

TEST_F(journal, folder_that_another_user_has_planted__is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "files of another user are root's to make";
  static_cast<void>(opened());
  ASSERT_EQ(chmod(folder_.string().c_str(), 01777), 0);
  ASSERT_EQ(chown(state().c_str(), 65'534, 65'534), 0);
  EXPECT_THAT(refusal(), HasSubstr("the folder belongs to another user, in a folder that all users may write to"));
  std::filesystem::create_directory(folder_ / "victim");
  std::filesystem::create_symlink("victim", folder_ / "way");
  ASSERT_EQ(lchown((folder_ / "way").c_str(), 65'534, 65'534), 0);
  EXPECT_THAT(refusal_of([&] { const Journal none(folder_ / "way" / "a" / "state", kEpoch, keep); }),
              HasSubstr("way: the link belongs to another user"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "victim"));
}

TEST_F(journal, left_over_of_a_killed_rewrite__is_removed) {
  {
    Journal written = opened();
    written.append(events()[0]);
  }
  std::ofstream(file().string() + ".new") << "half of a snaps";
  EXPECT_THAT(opened().state().jobs, SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(file().string() + ".new"));
}

TEST_F(journal, files__are_for_their_owner_alone) {
  static_cast<void>(opened());
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(state()).permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(file()).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(journal, full_disk__changes_nothing_and_is_got_over) {
  Journal written = opened();
  written.append(events()[0]);
  const std::string before = content(file());
  // A limit on the file size simulates a full disk.
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{before.size() + 100, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::string says = refusal_of<Unavailable>([&] { written.append(events()[1]); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_THAT(says, HasAll("journal.jsonl: it cannot be written", "nothing has changed"));
  EXPECT_EQ(content(file()), before) << "nothing is left of it";
  EXPECT_EQ(written.state().revision, 1U);
  written.append(events()[1]);
  EXPECT_EQ(written.state().revision, 2U);
}

TEST_F(journal, files_that_are_removed_or_replaced__take_no_more_events) {
  Journal written = opened();
  written.append(events()[0]);
  written.check_writable();
  for (const std::filesystem::path& name : {file(), state() / "lock"}) {
    std::filesystem::rename(name, folder_ / "elsewhere");
    EXPECT_THAT(refusal_of<Unavailable>([&] { written.append(events()[1]); }), HasSubstr("removed or replaced"));
    std::ofstream(name) << "another one";
    EXPECT_THAT(refusal_of<Unavailable>([&] { written.check_writable(); }), HasSubstr("removed or replaced"));
    std::filesystem::rename(folder_ / "elsewhere", name);
  }
  EXPECT_EQ(written.state().revision, 1U);
  written.check_writable();
  written.append(events()[1]);
  EXPECT_EQ(written.state().revision, 2U);
  std::filesystem::remove_all(state());
  EXPECT_THROW(written.append(events()[2]), Unavailable);
}

TEST_F(journal, event_that_does_not_fit__is_refused_before_it_is_written) {
  Journal written = opened();
  written.append(events()[0]);
  const std::string before = content(file());
  EXPECT_THROW(written.append(events()[0]), InputError);
  EXPECT_THROW(written.append({2, {stored("one", 2, 2)}, {}, {}}), InputError);
  EXPECT_THROW(written.append({2, {}, {"nobody"}, {}}), InputError);
  EXPECT_THROW(written.append({2, {}, {"one"}, {{"one", 1_ms, 0_ms}}}), InputError);
  EXPECT_EQ(content(file()), before);
}

TEST(journal_in_memory, without_a_folder__nothing_is_kept) {
  Journal one({}, kEpoch, keep);
  one.append(events()[0]);
  EXPECT_THAT(one.state().jobs, SizeIs(1));
  EXPECT_THAT(Journal({}, kEpoch, keep).state().jobs, IsEmpty());
}

}  // namespace
}  // namespace mltcp::service::journal_test
