// Reads a recorded trace as a stream of bytes. The trace is a plain file, or is unpacked on the fly from gzip, zstd or
// a member of a tar archive. So a trace of many gigabytes is read in bounded memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mltcp::workload {

/// Memory budget for data kept from all inputs of a job. Without a budget, a small packed file could use any amount of
/// memory.
class TraceBudget {
 public:
  explicit TraceBudget(std::size_t max = kMaxBytes) : max_(max) {}
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  /// Charges bytes to the budget. Returns false if the budget is exceeded.
  [[nodiscard]] bool take(std::size_t bytes) {
    taken_ += bytes;
    return taken_ <= max_;
  }
  void give_back(std::size_t bytes) { taken_ -= bytes; }
  [[nodiscard]] std::size_t max() const { return max_; }

 private:
  std::size_t max_;
  std::size_t taken_ = 0;
};

/// Reads up to `max` bytes, which must be at least 1. Returns the number of bytes read, or 0 at the end. Throws
/// InputError "NAME: cause; cure" if the data are damaged or cut off, or cannot be read.
using TraceSource = std::function<std::size_t(char* to, std::size_t max)>;

class TraceInput {
 public:
  /// `name` is used in messages: "dir/trace.json.gz", or "dir/traces.tar.gz:rank0.json" for a member of an archive.
  TraceInput(std::string name, TraceSource source) : name_(std::move(name)), source_(std::move(source)) {}
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the first bytes without consuming them: 64 KiB, or all if the input is shorter. Used to recognise formats.
  std::string_view beginning();
  /// Reads like a TraceSource.
  std::size_t read(char* to, std::size_t max);
  /// Returns the memory budget that was given to share(). If share() has not been called, returns a budget that no
  /// other input uses.
  [[nodiscard]] const std::shared_ptr<TraceBudget>& budget() const { return budget_; }
  void share(std::shared_ptr<TraceBudget> budget) { budget_ = std::move(budget); }

 private:
  std::string name_;
  TraceSource source_;
  std::string beginning_;
  std::size_t taken_ = 0;
  bool begun_ = false;
  std::shared_ptr<TraceBudget> budget_ = std::make_shared<TraceBudget>();
};

/// Calls `each` with every input of a path: a file, the members of an archive in their order, or the files of a folder
/// in the order of their names. Subfolders and names that begin with a dot are left out. An input is valid only during
/// the call. Throws InputError.
void for_each_input(const std::filesystem::path& path, const std::function<void(TraceInput&)>& each);
/// Calls `each` with every input of a file in memory. The file may be packed. Throws InputError.
void for_each_input_in(std::string_view text, const std::string& name, const std::function<void(TraceInput&)>& each);

/// Returns an input of the bytes of `text`, without unpacking them, for tests and fuzzers. `text` must outlive the
/// input.
std::unique_ptr<TraceInput> memory_input(std::string_view text, std::string name);

}  // namespace mltcp::workload
