// The service's state on disk: an append-only journal of arrivals and departures. Each event is on the disk before it
// is answered, so the service may be killed at any time.
//
// One file, "journal.jsonl" in the state folder, with one JSON object per line. The first line, and as many lines as it
// says, are a snapshot of all jobs; each later line is an event. Every line has its number and a checksum. When events
// outgrow the snapshot, a new file is written, synchronised, and renamed over the old one.
//
// If the process is killed or the machine loses power, at most one event that was never answered is damaged: a last
// line that is incomplete, or with bytes that were never written. It is dropped, with a warning. Any other wrong
// checksum is refused as damage, since the jobs are unknown.
//
// A failed write (a full disk) changes nothing. After a failed fsync(2) the end of the file is unknown, so the next
// event first writes a new file.
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

/// A running job as stored. The rest of its plan follows from all jobs together.
struct StoredJob {
  JobRequest request;              ///< without the members that are only for the choice of hosts
  std::vector<std::string> hosts;  ///< of the workers
  std::uint32_t number = 0;
  Nanos slot_period;
  Nanos time_shift;
  std::uint64_t revision = 0;  ///< of its plan
  // From the plan as last published, which also depends on the topology:
  std::optional<bool> slots{};  ///< empty: from a journal of an older version
  std::string reason{};

  bool operator==(const StoredJob&) const = default;
};

struct ServiceState {
  std::int64_t epoch_unix_ns = 0;
  std::uint64_t revision = 0;
  std::uint32_t last_number = 0;  ///< the last number given to a job
  std::vector<StoredJob> jobs;    ///< in the order of their arrivals

  bool operator==(const ServiceState&) const = default;
};

/// An arrival or a departure, with its consequences for others.
struct JournalEvent {
  struct Change {
    std::string id;
    Nanos slot_period;
    Nanos time_shift;
    std::optional<bool> slots{};
    std::string reason{};
  };
  std::uint64_t revision = 0;  ///< of the service, and of the plans of all jobs in the event
  std::vector<StoredJob> arrived;
  std::vector<std::string> departed;
  std::vector<Change> changed;
};

/// Not thread-safe.
class Journal {
 public:
  using Log = std::function<void(const std::string& line)>;

  /// Opens or creates the folder, locks it against other services, and reads the journal. With an empty path nothing is
  /// stored. Throws InputError for a folder in use or a damaged journal, RunError if it cannot be read or written.
  Journal(std::filesystem::path folder, std::int64_t epoch_if_new, Log log);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] const ServiceState& state() const { return state_; }
  /// Writes the event, waits for the disk and changes state(). Throws Unavailable; then state() has not changed.
  void append(const JournalEvent& event);
  /// Throws Unavailable if the last event could not be written and the disk still cannot, or if the files were moved.
  void check_writable();

 private:
  void lock();
  void load(std::int64_t epoch_if_new);
  /// Reads the state; false if it is not in the current version of the format.
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
  std::uint64_t size_ = 0;           ///< of the file up to the last answered event
  std::uint64_t snapshot_size_ = 0;  ///< of the snapshot
  std::uint64_t lines_ = 0;
  bool broken_ = false;  ///< the end of the file is unknown
  bool failed_ = false;  ///< the last event could not be written
};

}  // namespace mltcp::service
