// What the service has promised, on disk: an append-only journal of arrivals and departures, each on the disk before it
// is answered, so that the service may be killed at any time.
//
// One file, "journal.jsonl" in the state folder, a JSON object a line. The first line and as many lines as it says are
// a snapshot of all jobs; each line after it is an event. Every line has its number and a check sum. When events
// outgrow the snapshot, a new file is written beside, synchronised, and renamed over the old one.
//
// A process that is killed, or a machine that loses power, leaves at most an event that was never answered: a last line
// without its end, or with bytes that were never written. That is dropped, with a warning. Anything else that does not
// check is damage, and refused: nobody knows which jobs were there.
//
// A write that fails (a full disk) changes nothing. After a failed fsync(2) nothing is known of the file's end, so the
// next event first writes the file anew.
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

/// A running job as it is kept. What else a plan says follows from all of them.
struct StoredJob {
  JobRequest request;              ///< without what was for the choice of hosts alone
  std::vector<std::string> hosts;  ///< of the workers
  std::uint32_t number = 0;
  Nanos slot_period;
  Nanos time_shift;
  std::uint64_t revision = 0;  ///< of its plan
  // As its plan was told last, which follows from the topology besides:
  std::optional<bool> slots{};  ///< nothing: in a journal of a still older version
  std::string reason{};

  bool operator==(const StoredJob&) const = default;
};

struct ServiceState {
  std::int64_t epoch_unix_ns = 0;
  std::uint64_t revision = 0;
  std::uint32_t last_number = 0;  ///< given to a job last
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
  std::uint64_t revision = 0;  ///< of the service and of the plans of all jobs concerned
  std::vector<StoredJob> arrived;
  std::vector<std::string> departed;
  std::vector<Change> changed;
};

/// Not thread-safe.
class Journal {
 public:
  using Log = std::function<void(const std::string& line)>;

  /// Opens or creates the folder, locks it against other services, and reads what is there. With an empty path nothing
  /// is kept. Throws InputError for a folder in use or a damaged journal, RunError if it can't be read or written.
  Journal(std::filesystem::path folder, std::int64_t epoch_if_new, Log log);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] const ServiceState& state() const { return state_; }
  /// Writes the event and waits for the disk; then state() has changed. Throws Unavailable; then it has not.
  void append(const JournalEvent& event);
  /// Throws Unavailable if the last event could not be written and the disk still can't be, or if the files are no
  /// longer where they were.
  void check_writable();

 private:
  void lock();
  void load(std::int64_t epoch_if_new);
  /// Whether it is in the current version of the format.
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
  std::uint64_t size_ = 0;           ///< of the file, up to the last event that was answered
  std::uint64_t snapshot_size_ = 0;  ///< of that, the snapshot
  std::uint64_t lines_ = 0;
  bool broken_ = false;  ///< the file's end is not known
  bool failed_ = false;  ///< the last event could not be written
};

}  // namespace mltcp::service
