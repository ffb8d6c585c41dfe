// Stores the state of the service on disk, in an append-only journal of arrivals and departures. Each event is on disk
// before the service answers the request, so the service may be killed at any time.
//
// The journal is the file "journal.jsonl" in the state folder, with one JSON object per line. The first line states the
// number of jobs in the snapshot. The snapshot follows, with one line per job. Each later line is an event. Every line
// contains its number and a checksum. When the events have at least 1 MiB, and at least four times the size of the
// snapshot, the service writes a new file, synchronises it, and renames it over the old file.
//
// If the process is killed or the machine loses power, at most the last line is damaged: it is incomplete, or contains
// bytes that were never written. The service has not answered the request of that event, so at the next start it drops
// the line with a warning. If any other line has a wrong checksum, the service refuses the journal, because it cannot
// know which jobs run.
//
// A failed write, for example on a full disk, changes nothing. After a failed fsync(2) the end of the file is unknown,
// so the service writes a new file before the next event.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

/// The stored part of a running job. The service computes the rest of the job's plan from the stored parts of all jobs.
struct StoredJob {
  JobRequest request;              ///< without allowed_hosts and max_per_host
  std::vector<std::string> hosts;  ///< host of each worker
  std::uint32_t number = 0;
  Nanos slot_period;
  Nanos time_shift;
  std::uint64_t revision = 0;  ///< revision of the plan of the job
  // The next two members are those of the last published plan. A restart with another topology or other options may
  // change them.
  std::optional<bool> slots{};  ///< JobPlan::slots; no value if an older version wrote the journal
  std::string reason{};

  bool operator==(const StoredJob&) const = default;
};

struct ServiceState {
  std::int64_t epoch_unix_ns = 0;
  std::uint64_t revision = 0;
  std::uint32_t last_number = 0;  ///< the number of the last job that arrived
  std::vector<StoredJob> jobs;    ///< in the order of arrival

  bool operator==(const ServiceState&) const = default;
};

/// An arrival or a departure, with the changes that it causes for other jobs.
struct JournalEvent {
  struct Change {
    std::string id;
    Nanos slot_period;
    Nanos time_shift;
    std::optional<bool> slots{};
    std::string reason{};
  };
  std::uint64_t revision = 0;  ///< new revision of the service and of all plans in this event
  std::vector<StoredJob> arrived;
  std::vector<std::string> departed;
  std::vector<Change> changed;
};

/// The journal file. Not thread-safe.
class Journal {
 public:
  using Log = std::function<void(const std::string& line)>;

  /// Opens or creates the folder, locks it against other services, and reads the journal. If `folder` is empty, nothing
  /// is stored. Throws InputError if another service uses the folder or the journal is damaged, RunError if the journal
  /// cannot be read or written.
  Journal(std::filesystem::path folder, std::int64_t epoch_if_new, Log log);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] const ServiceState& state() const { return state_; }
  /// Writes the event, waits until it is on disk, and changes state(). Throws Unavailable if the event cannot be
  /// written; then state() has not changed.
  void append(const JournalEvent& event);
  /// Throws Unavailable if the last event could not be written and a new attempt to write fails, or if the files were
  /// moved.
  void check_writable();

 private:
  void lock();
  void load(std::int64_t epoch_if_new);
  /// Reads the state from the text of a journal. Returns false if the text has an older version of the format.
  bool read(const std::string& text);
  void rewrite();
  void write_event(const std::string& line);
  void check_place() const;
  [[nodiscard]] std::filesystem::path file() const;

  std::filesystem::path folder_;
  Log log_;
  ServiceState state_;
  int lock_ = -1;
  int file_ = -1;
  std::uint64_t size_ = 0;           ///< size of the file up to the last answered event, in bytes
  std::uint64_t snapshot_size_ = 0;  ///< size of the snapshot, in bytes
  std::uint64_t lines_ = 0;
  bool broken_ = false;  ///< true if the end of the file is unknown
  bool failed_ = false;  ///< true if the last event could not be written
};

}  // namespace mltcp::service
