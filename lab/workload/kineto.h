// Reader of traces of PyTorch's profiler (Kineto): a worker's steps and communications as measured on a GPU. The format
// is Chrome's trace event format (JSON), uncompressed.
//
// What is read, of events with "ph": "X" ("ts" and "dur" in microseconds, whole or not):
//
//   steps           "ProfilerStep#N" of category user_annotation: `ts`, `dur`
//   communications  kernels of libraries that communicate, by their names (ncclDevKernel_..., mscclKernel_...,
//                   hcom_allReduce_... and so on) or because they have `Collective name`: `ts`, `dur`
//   their sizes     args of the kernel itself, as PyTorch 2.3 and later write them: `Collective name`, `In msg nelems`,
//                   `Out msg nelems`, `dtype`, `Group size`. Without them, the launch (category cuda_runtime and those
//                   of other devices) is looked for that has the kernel's `correlation`, and the annotation
//                   ("nccl:all_reduce" and so on, category user_annotation) or the operation record_param_comms
//                   (category cpu_op) around it on its thread (`tid`): the same args, or `Input Dims` and `Input type`
//                   of an older PyTorch. Operations that are launched together are described before "nccl:coalesced".
//                   Where no kernel communicates (Gloo), the operations are the communications
//   workers         `Group size`, or `world_size` of the file's `distributedInfo`
//   computation     all other kernels: a communication overlaps if the GPU computes meanwhile, at least half as much as
//                   on average in its step
//
// A communication belongs to the step in which it was launched, and steps are as long as the GPU needs
// (kineto_steps.h). A kernel's duration includes the wait for slower workers and so says little about the
// network; its size is reliable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/schedule.h"

namespace mltcp::workload {

struct KinetoCommunication {
  Nanos start;   ///< of the kernel, relative to the start of its step
  Nanos length;  ///< duration of the kernel, including the wait for other workers
  Collective collective = Collective::none;
  Bytes size = 0;             ///< as for bytes_sent() with GatherSize::total
  std::uint32_t workers = 1;  ///< number of participants
  bool overlaps = false;      ///< the GPU computes at the same time
};

struct KinetoStep {
  std::string name;  ///< "ProfilerStep#10"
  Nanos start;       ///< on the GPU, relative to the start of the first step
  Nanos length;
  std::vector<KinetoCommunication> communications;  ///< by start
};

struct KinetoTrace {
  std::string file;
  std::uint32_t rank = 0;
  std::uint32_t workers = 1;      ///< of the whole job
  std::vector<KinetoStep> steps;  ///< by start; at least one
  /// What was ignored: one line each, beginning with the file.
  std::vector<std::string> warnings;

  /// The step of median length, taken as representative.
  [[nodiscard]] const KinetoStep& typical() const;
};

/// Judged by the name: *.json.
bool is_kineto(const std::filesystem::path& path);

/// Reads a file. Throws InputError: "FILE: cause; cure" in one line.
KinetoTrace load_kineto(const std::filesystem::path& path);
/// The same from memory; `file` is used in messages.
KinetoTrace parse_kineto(std::string_view text, const std::string& file);

/// Bytes that one worker sends for the communication, scaled. Uses `workers` (0: as in the trace) and bytes_scale of
/// `options`. Empty if the result does not fit into 62 bits.
std::optional<Bytes> sent_bytes(const KinetoCommunication& communication, const MappingOptions& options);

/// The phases of a step: time between communications is compute time; overlapping communications do not delay what
/// follows. Uses `workers` and the scales of `options`: all collectives of the trace cross the link. Throws InputError
/// if options are out of range.
std::vector<Phase> to_phases(const KinetoTrace& trace, const KinetoStep& step, const MappingOptions& options = {});
/// A job of the typical step. Throws InputError, also if it would send nothing.
Job to_job(const KinetoTrace& trace, const std::string& job_name, const MappingOptions& options = {});

}  // namespace mltcp::workload
