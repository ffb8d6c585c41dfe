// A recorded trace as a stream of bytes: a file as it is, or unpacked on the way from gzip, zstd or a tar archive's
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

/// Memory that what is kept of all inputs of a job may take, in which a small packed file would not be bounded.
class TraceBudget {
 public:
  explicit TraceBudget(std::size_t most = kMost) : max_(most) {}
  static constexpr std::size_t kMost = std::size_t{1} << 30;

  /// False if there is no more of it.
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

/// Gives up to `most` bytes, at least 1 unless it has ended (0). Throws InputError "NAME: cause; cure" if what is
/// packed is damaged or cut off, or can't be read.
using TraceSource = std::function<std::size_t(char* to, std::size_t most)>;

class TraceInput {
 public:
  /// `name` is for messages: "dir/trace.json.gz", or "dir/traces.tar.gz:rank0.json" for a member of an archive.
  TraceInput(std::string name, TraceSource source) : name_(std::move(name)), source_(std::move(source)) {}
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The first bytes without taking them, at least 64 KiB unless the input is shorter. Formats are recognised by it.
  std::string_view beginning();
  /// As of a TraceSource.
  std::size_t read(char* to, std::size_t most);
  /// What readers of this input share with those of others; one of its own if nobody has given it another.
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

/// Calls `each` with every input that a path stands for: a file, the members of an archive in their order, the files of
/// a folder (not of folders in it) in the order of their names; not what a name that begins with a dot hides. An input
/// is valid during the call only. Throws InputError.
void for_each_input(const std::filesystem::path& path, const std::function<void(TraceInput&)>& each);
/// The same for a file in memory, packed or not.
void for_each_input_in(std::string_view text, const std::string& name, const std::function<void(TraceInput&)>& each);

/// An input of the bytes as they are, for tests and fuzzers; `text` must outlive it.
std::unique_ptr<TraceInput> memory_input(std::string_view text, std::string name);

}  // namespace mltcp::workload
