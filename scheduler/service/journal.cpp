// Writes and reads the journal of the service (see journal.h).
#include "mltcp/scheduler/service/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/fingerprint.h"
#include "mltcp/base/json/json_fields.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/service/internal/service_fields.h"

namespace mltcp::service {

constexpr std::uint64_t kMaxPeriod = std::numeric_limits<std::int64_t>::max();

static void complete(const JsonObject& json, JobRequest& request) {
  if (!json.has("demand")) read(json, request.demand);  // only version 1 has no key "demand"
  scheduler::check(request.demand);
  if (request.demand.bursts.empty()) throw InputError("a job's demand has no bursts");
  request.workers = json.number("workers", kMaxWorkers, 1);
  request.flows = json.number("flows", kMaxFlows, 1);
}

static void complete(const JsonObject& json, StoredJob& job) {
  job.number = json.number("number", std::numeric_limits<std::uint32_t>::max(), 1);
  job.slot_period = Nanos(static_cast<std::int64_t>(json.whole("slot_period_ns", kMaxPeriod, 1)));
}

static void complete(const JsonObject& json, JournalEvent::Change& change) {
  change.slot_period = Nanos(static_cast<std::int64_t>(json.whole("slot_period_ns", kMaxPeriod, 1)));
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "mltcp.scheduler-journal/2";
constexpr std::string_view kOlderSchema = "mltcp.scheduler-journal/1";
constexpr TextFile kJournalFile{"a journal", std::size_t{1} << 32};
constexpr JsonLimits kLineLimits{8, std::size_t{1} << 24};
constexpr std::uint64_t kMinToRewrite = 1U << 20;  // minimum size of the events, in bytes, for a rewrite
constexpr std::string_view kSumKey = ",\"sum\":\"";
constexpr std::size_t kSumDigits = 32;
constexpr std::uint64_t kMaxStored = std::uint64_t{1} << 22;
const std::string kLine = "line";
const std::string kLineCure = "this line is not of this version";

// ---- Lines ----

/// Returns a line with the number of the line first, then `members`, and the checksum last.
std::string line_of(std::uint64_t number, const Json& members) {
  Json object{{"line", number}};
  object.update(members);
  std::string line = object.dump();
  line.pop_back();
  const std::string sum = Fingerprint().add(line).text();
  return fmt::format("{}{}{}\"}}\n", line, kSumKey, sum);
}

/// Returns whether the checksum of `line`, which is without its line end, is right.
bool checks(std::string_view line) {
  const std::size_t tail = kSumKey.size() + kSumDigits + 2;
  if (line.size() <= tail) return false;
  const std::string_view body = line.substr(0, line.size() - tail);
  return line.substr(body.size()) == fmt::format("{}{}\"}}", kSumKey, Fingerprint().add(body).text());
}

// ---- States ----

std::vector<StoredJob>::iterator find(ServiceState& state, std::string_view id) {
  return std::ranges::find_if(state.jobs, [&](const StoredJob& job) { return job.request.id == id; });
}

/// Throws InputError if the event contradicts the state, for example if an unknown job departs.
void check(const JournalEvent& event, ServiceState& state) {
  const auto listed = [](const auto& list, const std::string& id) { return std::ranges::find(list, id) != list.end(); };
  const auto arrives = [&](const std::string& id) {
    return std::ranges::any_of(event.arrived, [&](const StoredJob& job) { return job.request.id == id; });
  };
  if (event.revision <= state.revision) throw InputError("its revision is not above the one before");
  for (const std::string& id : event.departed)
    if (find(state, id) == state.jobs.end())
      throw InputError(fmt::format("job {} departs but does not exist", in_quotes(id)));
  for (const StoredJob& job : event.arrived)
    if (find(state, job.request.id) != state.jobs.end() && !listed(event.departed, job.request.id))
      throw InputError(fmt::format("job {} arrives but exists already", in_quotes(job.request.id)));
  for (const JournalEvent::Change& change : event.changed)
    if (!arrives(change.id) && (find(state, change.id) == state.jobs.end() || listed(event.departed, change.id)))
      throw InputError(fmt::format("job {} changes but does not exist", in_quotes(change.id)));
}

/// Applies an event that has passed check() to the state.
void apply(const JournalEvent& event, ServiceState& state) {
  for (const std::string& id : event.departed) state.jobs.erase(find(state, id));
  for (const StoredJob& job : event.arrived) {
    state.last_number = job.number;
    state.jobs.push_back(job);
  }
  for (const JournalEvent::Change& change : event.changed) {
    const auto job = find(state, change.id);
    job->slot_period = change.slot_period;
    job->time_shift = change.time_shift;
    job->revision = event.revision;
    job->slots = change.slots;
    job->reason = change.reason;
  }
  state.revision = event.revision;
}

// ---- Files ----

std::string why() { return std::strerror(errno); }

/// Synchronises the entries of `folder` with the disk. Returns an error text, or an empty string on success.
std::string sync_folder(const std::filesystem::path& folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return why();
  const std::string wrong = fsync(opened) != 0 ? why() : std::string();
  close(opened);
  return wrong;
}

constexpr std::string_view kCure = "give --state a folder that this user may write to, on a disk with free space";

}  // namespace

std::filesystem::path Journal::file() const { return folder_ / "journal.jsonl"; }

Journal::Journal(std::filesystem::path folder, std::int64_t epoch_if_new, Log log)
    : folder_(std::move(folder)), log_(std::move(log)) {
  state_.epoch_unix_ns = epoch_if_new;
  if (folder_.empty()) return;
  try {
    lock();
    load(epoch_if_new);
  } catch (...) {
    if (file_ >= 0) close(file_);
    if (lock_ >= 0) close(lock_);
    throw;
  }
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
  if (lock_ >= 0) close(lock_);
}

void Journal::lock() {
  refuse_planted_links(folder_);
  std::error_code error;
  std::filesystem::path parent = folder_.parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    throw RunError(fmt::format("{}: the folder can't be made ({}); {}", folder_.string(), why(), kCure));
  const std::filesystem::path name = folder_ / "lock";
  lock_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) throw RunError(fmt::format("{}: it can't be opened ({}); {}", name.string(), why(), kCure));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> holder{};
    const ssize_t length = pread(lock_, holder.data(), holder.size() - 1, 0);
    const std::string pid(trimmed({holder.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))}));
    throw InputError(fmt::format("{}: another service keeps its jobs here{}; give each service a --state of its own",
                                 folder_.string(), pid.empty() ? "" : fmt::format(", process {}", one_line(pid))));
  }
  // The process id in the lock file is only information for people. The lock on the file excludes other services.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(lock_, 0) != 0 || pwrite(lock_, pid.data(), pid.size(), 0) < 0)
    log_(fmt::format("warning: {}: it cannot be written ({}), so it does not name this process", name.string(), why()));
}

void Journal::load(std::int64_t epoch_if_new) {
  const std::filesystem::path left_over = file().string() + ".new";
  if (unlink(left_over.c_str()) != 0 && errno != ENOENT)
    throw RunError(fmt::format("{}: it can't be removed ({}); {}", left_over.string(), why(), kCure));
  struct stat found {};
  const bool there = stat(file().c_str(), &found) == 0;
  if (!there && errno != ENOENT)
    throw RunError(fmt::format("{}: it can't be read ({}); {}", file().string(), why(), kCure));
  state_ = {};
  state_.epoch_unix_ns = epoch_if_new;
  const bool current = there && read(read_text_file(file(), file().string(), kJournalFile));
  if (!current) {
    try {
      rewrite();
    } catch (const Unavailable& error) {
      throw RunError(error.what());
    }
    return;
  }
  file_ = open(file().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) throw RunError(fmt::format("{}: it cannot be written ({}); {}", file().string(), why(), kCure));
  // Removes an unfinished line at the end, so that the next event does not follow this line.
  if (ftruncate(file_, static_cast<off_t>(size_)) != 0 || fsync(file_) != 0)
    throw RunError(fmt::format("{}: it cannot be written ({}); {}", file().string(), why(), kCure));
}

bool Journal::read(const std::string& text) {
  bool current = true;
  const std::string name = file().string();
  const auto damaged = [&](std::string_view what) {
    return InputError(fmt::format(
        "{}:{}: the journal is damaged: {}; put a good copy back, or move the file away to begin without jobs", name,
        lines_ + 1, one_line(what)));
  };
  std::uint64_t snapshot_lines = 1;
  for (std::size_t at = 0; at < text.size() || lines_ < snapshot_lines;) {
    const std::size_t end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, std::min(end, text.size()) - at);
    if (end == std::string::npos || !checks(line)) {
      const bool last = end == std::string::npos || end + 1 == text.size();
      const bool torn = last && (end == std::string::npos || line.find('\0') != std::string_view::npos);
      if (lines_ < snapshot_lines)
        throw damaged(torn && lines_ > 0 ? fmt::format("it ends after {} of its first {} lines", lines_, snapshot_lines)
                                         : "the checksum of a line is wrong");
      if (!torn) throw damaged("the checksum of a line is wrong");
      log_(
          fmt::format("{}:{}: warning: the last {} bytes are an event that was never finished, so no answer reported "
                      "it; they are dropped",
                      name, lines_ + 1, text.size() - at));
      break;
    }
    try {
      const nlohmann::json json = parsed(line, kLine, kLineCure, kLineLimits);
      const JsonObject object(json, kLine, kLineCure, "");
      if (object.whole("line") != lines_) throw InputError("a line is missing before it");
      if (lines_ == 0) {
        if (const std::string schema = object.text("schema"); schema != kSchema && schema != kOlderSchema)
          throw InputError(fmt::format("it has the schema {} and this version reads {}", in_quotes(schema), kSchema));
        else
          current = schema == kSchema;
        mltcp::read(object, state_);
        snapshot_lines += object.whole("jobs", kMaxStored);
      } else if (lines_ < snapshot_lines) {
        mltcp::read(object.object("job"), state_.jobs.emplace_back());
      } else {
        JournalEvent event;
        mltcp::read(object.object("event"), event);
        check(event, state_);
        apply(event, state_);
      }
    } catch (const InputError& error) {
      throw damaged(error.what());
    }
    ++lines_;
    at = end + 1;
    size_ = at;
    if (lines_ == snapshot_lines) snapshot_size_ = size_;
  }
  return current;
}

void Journal::rewrite() {
  const std::string name = file().string() + ".new";
  const auto fail = [&](std::string_view what, const std::string& because) {
    throw Unavailable(fmt::format("{}: {} ({}); nothing has changed: {}", name, what, because, kCure));
  };
  Json head{{"schema", kSchema}, {"jobs", state_.jobs.size()}};
  head.update(written(state_));
  std::string text = line_of(0, head);
  std::uint64_t lines = 1;
  for (const StoredJob& job : state_.jobs) text += line_of(lines++, {{"job", written(job)}});
  const int opened = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (opened < 0) fail("it can't be opened", why());
  errno = write_all(opened, text);
  if (errno != 0 || fsync(opened) != 0 || rename(name.c_str(), file().c_str()) != 0) {
    const std::string wrong = why();
    close(opened);
    unlink(name.c_str());
    fail("it cannot be written", wrong);
  }
  if (file_ >= 0) close(file_);
  file_ = opened;
  size_ = snapshot_size_ = text.size();
  lines_ = lines;
  // Until the new name is on disk, a power failure may bring back the old file, which lacks later events.
  const std::string wrong = sync_folder(folder_);
  broken_ = !wrong.empty();
  if (broken_) fail("its folder can't be synchronised", wrong);
}

void Journal::write_event(const std::string& line) {
  const int wrong = write_all(file_, line);
  if (wrong == 0 && fdatasync(file_) == 0) return;
  const std::string because = std::strerror(wrong == 0 ? errno : wrong);
  // After a failed synchronisation the contents of the disk are unknown (fsync(2), "Errors").
  broken_ = wrong == 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0;
  throw Unavailable(
      fmt::format("{}: it cannot be written ({}); nothing has changed: {}", file().string(), because, kCure));
}

void Journal::check_place() const {
  for (const auto& [opened, name] : {std::pair(file_, file()), std::pair(lock_, folder_ / "lock")}) {
    struct stat own {};
    struct stat there {};
    if (fstat(opened, &own) == 0 && own.st_nlink > 0 && stat(name.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
        own.st_ino == there.st_ino)
      continue;
    throw Unavailable(
        fmt::format("{}: the file was removed or replaced while the service runs; nothing has changed: put it back, or "
                    "restart the service",
                    name.string()));
  }
}

void Journal::check_writable() {
  if (folder_.empty()) return;
  check_place();
  if (failed_ || broken_) rewrite();
  failed_ = false;
}

void Journal::append(const JournalEvent& event) {
  check(event, state_);
  if (!folder_.empty()) {
    failed_ = true;
    check_place();
    if (broken_) rewrite();
    const std::string line = line_of(lines_, {{"event", written(event)}});
    write_event(line);
    failed_ = false;
    size_ += line.size();
    ++lines_;
  }
  apply(event, state_);
  const std::uint64_t events = size_ - snapshot_size_;
  if (folder_.empty() || events < kMinToRewrite || events < 4 * snapshot_size_) return;
  try {
    rewrite();
  } catch (const Unavailable& error) {
    log_(fmt::format("warning: {}", error.what()));
  }
}

}  // namespace mltcp::service
