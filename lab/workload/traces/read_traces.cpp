// Table of all trace formats, and reader of the inputs of a job (see read_traces.h).
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file_format.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/comm_groups.h"
#include "mltcp/lab/workload/traces/kineto_graph.h"
#include "mltcp/lab/workload/traces/libra.h"
#include "mltcp/lab/workload/traces/pickle.h"

namespace mltcp::workload {
namespace {

/// Returns the message about an input of unknown format. It states how the input begins and which formats are known.
/// `more` names formats that only the caller reads.
std::string unknown_format(const std::string& name, std::string_view beginning, std::string_view more) {
  constexpr std::size_t shown = 32;
  if (beginning.empty()) return fmt::format("{}: it is empty; give a trace that has been written to its end", name);
  std::vector<std::string_view> known;
  for (const TraceFormat& format : trace_formats()) known.push_back(format.name);
  if (!more.empty()) known.push_back(more);
  const FileFormat format = file_format(beginning);
  return fmt::format("{}: it {}begins with {}, which is not a known trace format; known are: {}{}{}", name,
                     format.name.empty() ? "" : fmt::format("is {} and ", format.name),
                     in_quotes(trimmed(beginning.substr(0, shown))), fmt::join(known, ", "),
                     format.cure.empty() ? "" : "; ", format.cure);
}

/// Returns the message of unknown_format(). For a pickle that calls something, returns a message about the call. The
/// call may be at any position in the file.
std::string unknown_input(TraceInput& input, std::string_view more) {
  constexpr std::size_t max = std::size_t{16} << 20;  // maximum number of bytes of the pickle in memory
  const std::string unknown = unknown_format(input.name(), input.beginning(), more);
  if (!is_pickle(input.beginning())) return unknown;
  std::size_t held = 0;
  try {
    const Pickle pickle(input, [&](std::size_t bytes) {
      if ((held += bytes) > max) throw InputError(unknown);
    });
  } catch (const CallInPickle& call) {
    return call.what();
  } catch (const InputError&) {
    return unknown;
  }
  return unknown;
}

/// Returns the memory budget for inputs of `bytes` in all. The budget grows with the size of the files, because a small
/// packed file may have large contents.
std::shared_ptr<TraceBudget> budget_for(std::uint64_t bytes) {
  constexpr std::uint64_t anyway = std::uint64_t{160} << 20;
  constexpr std::uint64_t times = 8;
  const std::uint64_t enough = TraceBudget::kMaxBytes / times;
  return std::make_shared<TraceBudget>(static_cast<std::size_t>(
      std::min<std::uint64_t>(TraceBudget::kMaxBytes, anyway + times * std::min(bytes, enough))));
}

/// Returns the total size of the files. A pipe, whose size is unknown, counts as a large file.
std::uint64_t bytes_of(std::span<const std::filesystem::path> paths) {
  std::uint64_t bytes = 0;
  const auto add = [&](const std::filesystem::path& file) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(file, error);
    bytes += std::min<std::uint64_t>(error ? TraceBudget::kMaxBytes : size, TraceBudget::kMaxBytes);
  };
  for (const std::filesystem::path& path : paths) {
    std::error_code error;
    std::filesystem::directory_iterator entry(path, error);
    if (error) add(path);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::error_code unknown;
      if (entry->is_regular_file(unknown)) add(entry->path());
    }
  }
  return bytes;
}

/// Collects the parts of a job from its inputs, one after the other, and joins them.
class Parts {
 public:
  /// `bytes` is the total size of all files, before they are unpacked.
  Parts(const TraceOptions& options, std::uint64_t bytes)
      : given_(options), options_(options), budget_(budget_for(bytes)) {}

  /// Reads settings that apply to the other files of the job. Must be called before add().
  void add_settings(TraceInput& input) {
    if (!is_libra(input.beginning())) return;
    const TraceOptions before = std::exchange(options_, given_);
    read_libra(input, options_);
    for (const auto which : {&TraceOptions::ranks, &TraceOptions::model_ranks, &TraceOptions::data_ranks}) {
      const std::uint32_t one = before.*which;
      std::uint32_t& other = options_.*which;
      if (one != given_.*which && other != given_.*which && one != other)
        throw InputError(fmt::format(
            "{}: it states {} ranks, but another file of LIBRA states {}; keep one of them next to the workload",
            input.name(), other, one));
      if (other == given_.*which) other = one;
    }
    settings_.push_back(input.name());
  }

  void add(TraceInput& input) {
    input.share(budget_);
    const std::string_view beginning = input.beginning();
    if (is_libra(beginning)) {
      // joined() names this file if no input is a trace.
      if (libra_.empty()) libra_ = input.name();
      if (std::ranges::find(settings_, input.name()) == settings_.end())
        unused_.push_back(
            fmt::format("{}: it describes the job for LIBRA or ASTRA-sim, and is not used; give it as a file of its "
                        "own that ends in .yml",
                        input.name()));
      return;
    }
    if (is_comm_groups(beginning)) {
      if (libra_.empty()) libra_ = input.name();
      groups_.read(input);
      return;
    }
    const TraceFormat* format = format_of(input.name(), beginning);
    if (format == nullptr) {
      unknown_.push_back(unknown_input(input, options_.also_known));
      return;
    }
    if (format_ != nullptr && format_ != format)
      throw InputError(fmt::format("{}: {}, but {} is {}; give traces of one format", input.name(), format->name,
                                   first_, format_->name));
    if (format_ == nullptr) first_ = input.name();
    format_ = format;
    parts_.push_back(format->read(input, options_));
  }

  ExecutionGraph joined() {
    if (parts_.empty() && !libra_.empty())
      throw InputError(
          fmt::format("{}: it is a file of LIBRA or ASTRA-sim about groups of ranks, a network or costs, and has no "
                      "work; give it together with the workload: text in 12 columns, or Chakra's traces",
                      libra_));
    if (parts_.empty())
      throw InputError(unknown_.empty() ? "a trace: none was given; give the path of one" : unknown_.front());
    auto& warnings = parts_.front().graph.warnings;
    warnings.insert(warnings.end(), unknown_.begin(), unknown_.end());
    warnings.insert(warnings.end(), unused_.begin(), unused_.end());
    if (!groups_.empty())
      for (PartialGraph& part : parts_) groups_.apply(part);
    return join(std::move(parts_), options_);
  }

  /// If `alone` is true, throws InputError for an input of unknown format that was added since the last call. `alone`
  /// means that the path contains only one input.
  void refuse_unknown(bool alone) {
    if (alone && unknown_.size() > reported_) throw InputError(unknown_[reported_]);
    reported_ = unknown_.size();
  }

 private:
  TraceOptions given_;
  TraceOptions options_;  ///< options with the settings of the job
  std::shared_ptr<TraceBudget> budget_;
  std::vector<std::string> settings_;  ///< names of the inputs with settings
  std::vector<std::string> unused_;    ///< one warning per file of settings that was not used
  std::vector<PartialGraph> parts_;
  std::vector<std::string> unknown_;
  std::size_t reported_ = 0;
  const TraceFormat* format_ = nullptr;
  std::string first_;
  std::string libra_;  ///< the first file of settings that describes the job
  CommGroups groups_;
};

/// Returns the files that may contain settings: given files, and files in given folders. Archives are not searched,
/// because they would have to be unpacked first.
std::vector<std::filesystem::path> settings_among(std::span<const std::filesystem::path> paths) {
  const auto may_be = [](const std::filesystem::path& path) {
    return path.extension() == ".yml" || path.extension() == ".yaml";
  };
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      if (may_be(path)) found.push_back(path);
      continue;
    }
    // Ignores errors here. They are reported when the traces are read.
    const std::size_t first = found.size();
    std::filesystem::directory_iterator entry(path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::error_code unknown;
      if (may_be(entry->path()) && entry->path().filename().string().front() != '.' && entry->is_regular_file(unknown))
        found.push_back(entry->path());
    }
    std::sort(found.begin() + static_cast<std::ptrdiff_t>(first), found.end());
  }
  return found;
}

}  // namespace

std::span<const TraceFormat> trace_formats() {
  // Formats that are recognised by few bytes come last.
  static const std::array formats{kKinetoFormat,        kFlightRecorder,  kNsightSqlite, kPytorchEt,   kParam,
                                  kNcclInspectorFormat, kNcclLogFormat,   kAicbFormat,   kHtsimFormat, kHpccFlows,
                                  kChakraJson,          kAstraTextFormat, kChakra};
  return formats;
}

const TraceFormat* format_of(const std::string& name, std::string_view beginning) {
  for (const TraceFormat& format : trace_formats())
    if (format.recognise(name, beginning)) return &format;
  return nullptr;
}

const TraceFormat* format_of(const std::filesystem::path& path) {
  struct Seen {
    const TraceFormat* format;
  };
  // The exception ends the reading after the first input.
  try {
    for_each_input(path, [](TraceInput& input) { throw Seen{format_of(input.name(), input.beginning())}; });
  } catch (const Seen& seen) {
    return seen.format;
  }
  return nullptr;
}

ExecutionGraph read_traces(std::span<const std::filesystem::path> paths, const TraceOptions& options) {
  Parts parts(options, bytes_of(paths));
  for (const std::filesystem::path& path : settings_among(paths))
    for_each_input(path, [&](TraceInput& input) { parts.add_settings(input); });
  for (const std::filesystem::path& path : paths) {
    std::size_t inputs = 0;
    for_each_input(path, [&](TraceInput& input) {
      ++inputs;
      parts.add(input);
    });
    parts.refuse_unknown(inputs == 1);
  }
  return parts.joined();
}

ExecutionGraph parse_trace_graph(std::string_view text, const std::string& name, const TraceOptions& options) {
  Parts parts(options, text.size());
  for_each_input_in(text, name, [&](TraceInput& input) { parts.add(input); });
  return parts.joined();
}

}  // namespace mltcp::workload
