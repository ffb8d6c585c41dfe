// Reader of traces that PyTorch's profiler (Kineto) writes: the steps and communications of one worker as they were
// measured on a GPU. The format is Chrome's trace event format (JSON), plain; unpack .gz and .tar.gz first.
//
// What is read, of events with "ph": "X" ("ts" and "dur" in microseconds, whole or not):
//
//   steps           "ProfilerStep#N" of category user_annotation: `ts`, `dur`
//   communications  kernels (category kernel) named ncclKernel_... or ncclDevKernel_...: `ts`, `dur`
//   their sizes     args of the kernel itself, as PyTorch 2.3 and later write them: `Collective name`, `In msg nelems`,
//                   `Out msg nelems`, `dtype`, `Group size`. Without them, the launch (category cuda_runtime) is looked
//                   for that has the kernel's `correlation`, and the annotation ("nccl:all_reduce" and so on, category
//                   user_annotation) or the operation record_param_comms (category cpu_op) around it on its thread
//                   (`tid`): the same args, or `Input Dims` and `Input type` of an older PyTorch
//   workers         `Group size`, or `world_size` of the file's `distributedInfo`
//   computation     all other kernels: a communication overlaps if the GPU computes meanwhile, at least half as much as
//                   on average in its step
//
// A communication belongs to the step in which it was launched. Its kernel's duration counts the wait for slower
// workers too, so it says little about the network; its size does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/workload/collective.h"
#include "mltcp/workload/job.h"
#include "mltcp/workload/schedule.h"

namespace mltcp::workload {

struct KinetoCommunication {
  Nanos start;   ///< of the kernel, from the beginning of its step
  Nanos length;  ///< of the kernel, the wait for other workers included
  Collective collective = Collective::none;
  Bytes size = 0;             ///< as bytes_sent() means it (GatherSize::total)
  std::uint32_t workers = 1;  ///< among which it is
  bool overlaps = false;      ///< the GPU computes meanwhile
};

struct KinetoStep {
  std::string name;  ///< "ProfilerStep#10"
  Nanos start;       ///< from the beginning of the first step
  Nanos length;
  std::vector<KinetoCommunication> communications;  ///< by start
};

struct KinetoTrace {
  std::string file;
  std::uint32_t rank = 0;
  std::uint32_t workers = 1;      ///< of the whole job
  std::vector<KinetoStep> steps;  ///< by start; at least one
  /// What was left out, each one line that begins with the file.
  std::vector<std::string> warnings;

  /// The step of median length: what the others are taken to be like.
  [[nodiscard]] const KinetoStep& typical() const;
};

/// By its name: *.json.
bool is_kineto(const std::filesystem::path& path);

/// Reads a file. Throws InputError: "FILE: cause; cure" in one line.
KinetoTrace load_kineto(const std::filesystem::path& path);
/// The same from memory; `file` stands in messages.
KinetoTrace parse_kineto(std::string_view text, const std::string& file);

/// What one worker sends for it, scaled. Of `options`, `workers` (0: as in the trace) and bytes_scale count. Nothing
/// when it does not fit into 62 bits.
std::optional<Bytes> sent_bytes(const KinetoCommunication& communication, const MappingOptions& options);

/// The phases of a step: what lies between communications is compute time, and a communication that overlaps does not
/// hold up what follows. Of `options`, `workers` and the scales count: every collective of the trace crosses the link.
/// Throws InputError when options are out of range.
std::vector<Phase> to_phases(const KinetoTrace& trace, const KinetoStep& step, const MappingOptions& options = {});
/// A job of the typical step. Throws InputError also when it would send nothing.
Job to_job(const KinetoTrace& trace, const std::string& job_name, const MappingOptions& options = {});

/// What the trace holds, as lines of text for a terminal, with iteration time and duty cycle alone on a link of `link`.
std::string describe(const KinetoTrace& trace, const MappingOptions& options, Rate link);

}  // namespace mltcp::workload
