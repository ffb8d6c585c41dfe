// A recorded trace as a stream of bytes: a plain file, or unpacked on the fly from gzip, zstd or a tar archive's
// member, so that a trace of many gigabytes is read in bounded memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mltcp::workload {

/// The memory for data kept of all inputs of a job together. Without it a small packed file could take any amount.
class TraceBudget {
 public:
  explicit TraceBudget(std::size_t most = kMost) : max_(most) {}
  static constexpr std::size_t kMost = std::size_t{1} << 30;

  /// Counts bytes; false if the budget is exceeded.
  [[nodiscard]] bool take(std::size_t bytes) {
    taken_ += bytes;
    return taken_ <= max_;
  }
  void give_back(std::size_t bytes) { taken_ -= bytes; }
  [[nodiscard]] std::size_t most() const { return max_; }

 private:
  std::size_t max_;
  std::size_t taken_ = 0;
};

/// Reads up to `most` bytes, at least 1; 0 at the end. Throws InputError "NAME: cause; cure" if the packed data are
/// damaged or cut off, or cannot be read.
using TraceSource = std::function<std::size_t(char* to, std::size_t most)>;

class TraceInput {
 public:
  /// `name` is for messages: "dir/trace.json.gz", or "dir/traces.tar.gz:rank0.json" for a member of an archive.
  TraceInput(std::string name, TraceSource source) : name_(std::move(name)), source_(std::move(source)) {}
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The first bytes, without consuming them: at least 64 KiB unless the input is shorter. Used to recognise formats.
  std::string_view beginning();
  /// Reads like a TraceSource.
  std::size_t read(char* to, std::size_t most);
  /// The budget shared with other inputs; one of its own unless share() was called.
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
/// (not of folders in it) in the order of their names. Names that begin with a dot are left out. An input is valid only
/// during the call. Throws InputError.
void for_each_input(const std::filesystem::path& path, const std::function<void(TraceInput&)>& each);
/// The same for a file in memory, packed or not.
void for_each_input_in(std::string_view text, const std::string& name, const std::function<void(TraceInput&)>& each);

/// An input of these bytes without unpacking, for tests and fuzzers; `text` must outlive it.
std::unique_ptr<TraceInput> memory_input(std::string_view text, std::string name);

}  // namespace mltcp::workload
