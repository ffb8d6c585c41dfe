// Reads traces of PyTorch's profiler (Kineto, in Chrome's trace event format, JSON) as a stream. A SAX parser stores
// only the events needed for steps, communications and GPU computation: about 40 bytes per event, which has about 400
// bytes in the file. A trace of a gigabyte needs a few dozen megabytes of memory.
//
// These parts of events with "ph": "X" are read ("ts" and "dur" are in microseconds, with or without a fraction):
//
//   steps           "ProfilerStep#N" of category user_annotation: `ts`, `dur`
//   communications  kernels of communication libraries, found by their names (ncclDevKernel_..., mscclKernel_...,
//                   hcom_allReduce_... and so on) or by their `Collective name`: `ts`, `dur`
//   their sizes     args of the kernel itself, as PyTorch 2.3 and later write them: `Collective name`, `In msg nelems`,
//                   `Out msg nelems`, `dtype`, `Group size`. If a kernel has no such args, its `correlation` identifies
//                   the launch (category cuda_runtime, or the equivalent category of another kind of device). A record
//                   around the launch on the same thread (`tid`) then has the args, or `Input Dims` and `Input type` of
//                   an older PyTorch. The record is an annotation ("nccl:all_reduce" and so on, category
//                   user_annotation) or the operation record_param_comms (category cpu_op). Operations that are
//                   launched together are recorded before "nccl:coalesced". If no kernel communicates (Gloo), the
//                   operations are used as the communications
//   workers         `Group size`, or `world_size` of the file's `distributedInfo`
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

inline constexpr Bytes kMaxKinetoBytes = 1'000'000'000'000'000'000;  ///< maximum size of one communication: 1 EB

struct KinetoSpan {
  Nanos start;  ///< on the clock of the file
  Nanos length;
  [[nodiscard]] Nanos end() const { return start + length; }
};

/// Details of a communication from an annotation, an operation or a kernel. Each detail may be missing.
struct KinetoDetails {
  enum class Kind : std::uint8_t { unknown, collective, send, receive, barrier };
  Kind kind = Kind::unknown;
  Collective collective = Collective::none;
  /// nullptr if the collective is supported. If not, a message about the collective that replaces it in the graph. The
  /// message is a string constant.
  const char* instead = nullptr;
  std::optional<Bytes> in;
  std::optional<Bytes> out;
  std::uint32_t workers = 0;  ///< number of ranks of the group; 0 if unknown
  std::int32_t group = -1;    ///< index in KinetoEvents::groups; -1 if unknown
  /// The peer of a message; -1 if unknown. The number is a rank of the group if `peer_of_group` is true (PyTorch before
  /// 2.4), and a rank of the job if not.
  std::int64_t peer = -1;
  bool peer_of_group = false;
};

struct KinetoEvents {
  struct Step : KinetoSpan {
    std::string name;
  };
  /// Work of a GPU: a kernel, a copy or a memset.
  struct Kernel : KinetoSpan {
    /// States which call of the host is used as the launch.
    enum class Call : std::uint8_t {
      none,     ///< no call: the kernel has no correlation, or the recording of calls ended before its launch
      own,      ///< the recorded call with the kernel's correlation
      nearest,  ///< the last recorded call before the kernel's own call, which was not recorded
      earlier,  ///< no call: the kernel was launched before the recording
    };
    std::int64_t correlation = -1;
    Nanos call;  ///< when the call described by `known` began
    std::uint32_t stream = 0;
    Call known = Call::none;
    bool copies = false;  ///< true for a copy or a memset, false for a kernel

    /// Returns when the kernel was launched, as far as is known. Returns an empty value if the kernel was launched
    /// before the recording.
    [[nodiscard]] std::optional<Nanos> launch() const {
      if (known == Call::earlier) return std::nullopt;
      return known == Call::none ? start : known == Call::own ? call : std::min(call, start);
    }
  };
  struct Communication : Kernel {
    std::uint32_t name = 0;   ///< index in `names`
    std::uint64_t event = 0;  ///< number of the event in the file, from 1
    KinetoDetails details;
  };
  /// A call by which the host launches a kernel.
  struct Launch {
    std::int64_t correlation = -1;
    Nanos start;
    std::uint32_t thread = 0;
  };
  /// A record of the host around or before launches: the operation record_param_comms, or an annotation such as
  /// "nccl:all_reduce".
  struct Around : KinetoSpan {
    KinetoDetails details;
    bool operation = false;  ///< true for an operation (record_param_comms), false for an annotation
    /// True for "nccl:coalesced", which launches the operations recorded before it on its thread.
    bool coalesced = false;
    bool used = false;  ///< whether a kernel has been matched to the record
  };
  /// A stream waits for another stream. Kernels of `stream` launched after `correlation` begin when all kernels of
  /// `of_stream` launched before `of_correlation` have ended. Profilers record "Stream Wait Event" only if asked to.
  struct StreamWait {
    std::int64_t correlation = -1;
    std::int64_t of_correlation = -1;
    std::uint32_t stream = 0;
    std::uint32_t of_stream = 0;
  };
  /// A call by which the host lets a stream wait for an event of another stream. The record names neither stream.
  struct WaitCall {
    Nanos start;
    std::uint32_t thread = 0;
  };
  /// A group of ranks, with the name and the list of ranks that communications state.
  struct Group {
    std::string name;
    std::vector<std::uint32_t> ranks;  ///< empty if unknown or incomplete
  };

  std::string file;
  std::optional<std::uint32_t> rank;
  std::uint32_t workers = 0;                  ///< number of ranks of the job; 0 if unknown
  Nanos clock;                                ///< origin of all other times, since 1970
  std::vector<Step> steps;                    ///< sorted by start
  std::vector<Kernel> kernels;                ///< sorted by start; without kernels that communicate
  std::vector<Communication> communications;  ///< sorted by start
  std::vector<Launch> launches;               ///< sorted by correlation, which is unique
  std::vector<KinetoSpan> synchronisations;   ///< sorted by start; calls in which the host waits for the GPU
  std::vector<StreamWait> waits;              ///< sorted by correlation
  std::vector<WaitCall> wait_calls;           ///< sorted by start
  std::vector<std::vector<Around>> around;    ///< one list per thread, sorted by start
  std::vector<Group> groups;
  std::vector<std::string> names;  ///< names of kernels that communicate, without parameter types
  /// Message about the first unknown element type; communications of unknown types have no size.
  std::string unknown_type;
  std::uint64_t count = 0;            ///< number of events in the file
  std::uint32_t devices = 0;          ///< number of GPUs that ran kernels
  bool of_host = false;               ///< true if no kernel communicates; `communications` are then the host's records
  std::vector<std::string> warnings;  ///< one line each, about events with wrong times

  /// Returns the launch with this correlation, or nullptr if there is none.
  [[nodiscard]] const Launch* launch(std::int64_t correlation) const;
};

/// Reads up to `max` bytes of a trace. Returns their number, or 0 at the end of the trace.
using KinetoSource = std::function<std::size_t(char* to, std::size_t max)>;

/// Called with a number of bytes that stay in memory from now on. May throw to limit the memory.
using KinetoKeep = std::function<void(std::size_t bytes)>;

/// Reads a trace. `file` is used in messages. `keep` limits the memory; if it is empty, the limit is 1 GiB. Throws
/// InputError "FILE: cause; cure" in one line.
KinetoEvents read_kineto_events(const KinetoSource& source, const std::string& file, const KinetoKeep& keep = {});

}  // namespace mltcp::workload
