// Reads traces of PyTorch's profiler (Kineto, in Chrome's trace event format, JSON) as a stream. A SAX parser keeps
// only the events needed for steps, communications and GPU computation, about 40 bytes of the 400 that an event takes
// in the file. A trace of a gigabyte needs a few dozen megabytes of memory.
//
// These parts of events with "ph": "X" are read ("ts" and "dur" are in microseconds, with or without a fraction):
//
//   steps           "ProfilerStep#N" of category user_annotation: `ts`, `dur`
//   communications  kernels of communication libraries, found by their names (ncclDevKernel_..., mscclKernel_...,
//                   hcom_allReduce_... and so on) or by their `Collective name`: `ts`, `dur`
//   their sizes     args of the kernel itself, as PyTorch 2.3 and later write them: `Collective name`, `In msg nelems`,
//                   `Out msg nelems`, `dtype`, `Group size`. Without them, the launch (category cuda_runtime and those
//                   of other devices) with the kernel's `correlation` leads to the annotation ("nccl:all_reduce" and so
//                   on, category user_annotation) or the operation record_param_comms (category cpu_op) around it on
//                   its thread (`tid`), with the same args, or `Input Dims` and `Input type` of an older PyTorch.
//                   Operations that are launched together are described before "nccl:coalesced". If no kernel
//                   communicates (Gloo), the operations are the communications
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

inline constexpr Bytes kMaxKinetoBytes = 1'000'000'000'000'000'000;  ///< of a communication: 1 EB

struct KinetoSpan {
  Nanos start;  ///< as in the file, in its clock
  Nanos length;
  [[nodiscard]] Nanos end() const { return start + length; }
};

/// Details of a communication from an annotation, an operation or a kernel; each may be missing.
struct KinetoDetails {
  enum class Kind : std::uint8_t { unknown, collective, send, receive, barrier };
  Kind kind = Kind::unknown;
  Collective collective = Collective::none;
  const char* instead = nullptr;  ///< if there is no kind for it: what it is taken as, for messages; a constant
  std::optional<Bytes> in;
  std::optional<Bytes> out;
  std::uint32_t workers = 0;  ///< of the group; 0 if unknown
  std::int32_t group = -1;    ///< index in KinetoEvents::groups; -1 if unknown
  /// The other rank of a message: a rank of the job; in traces before PyTorch 2.4, a rank of the group.
  std::int64_t peer = -1;
  bool peer_of_group = false;
};

struct KinetoEvents {
  struct Step : KinetoSpan {
    std::string name;
  };
  /// Work of a GPU.
  struct Kernel : KinetoSpan {
    /// Which call of the host launched it, as far as is known.
    enum class Call : std::uint8_t {
      none,     ///< it has no correlation, or recording of calls had ended
      own,      ///< the call of its correlation
      nearest,  ///< its own call was not recorded: the last call before it
      earlier,  ///< its own call was before the recording
    };
    std::int64_t correlation = -1;
    Nanos call;  ///< when that call began
    std::uint32_t stream = 0;
    Call known = Call::none;
    bool copies = false;  ///< a copy or a memset, not a kernel

    /// When it was launched, as far as is known; empty if before the recording.
    [[nodiscard]] std::optional<Nanos> launch() const {
      if (known == Call::earlier) return std::nullopt;
      return known == Call::none ? start : known == Call::own ? call : std::min(call, start);
    }
  };
  struct Communication : Kernel {
    std::uint32_t name = 0;   ///< index in `names`
    std::uint64_t event = 0;  ///< its number in the file, from 1
    KinetoDetails details;
  };
  /// The call by which the host launches a kernel.
  struct Launch {
    std::int64_t correlation = -1;
    Nanos start;
    std::uint32_t thread = 0;
  };
  /// A record of the host around launches, or before them: record_param_comms, or an annotation ("nccl:all_reduce").
  struct Around : KinetoSpan {
    KinetoDetails details;
    bool operation = false;  ///< record_param_comms
    bool coalesced = false;  ///< launches the operations recorded before it on its thread ("nccl:coalesced")
    bool used = false;       ///< belongs to a kernel
  };
  /// A stream waits for another ("Stream Wait Event", which profilers record if asked to): kernels of `stream` launched
  /// after `correlation` begin when those of `of_stream` launched before `of_correlation` have ended.
  struct StreamWait {
    std::int64_t correlation = -1;
    std::int64_t of_correlation = -1;
    std::uint32_t stream = 0;
    std::uint32_t of_stream = 0;
  };
  /// A call by which the host lets a stream wait for an event of another stream; both streams are unknown.
  struct WaitCall {
    Nanos start;
    std::uint32_t thread = 0;
  };
  /// A group of ranks, with the name or the list from communications.
  struct Group {
    std::string name;
    std::vector<std::uint32_t> ranks;  ///< empty if unknown or incomplete
  };

  std::string file;
  std::optional<std::uint32_t> rank;
  std::uint32_t workers = 0;                  ///< of the whole job; 0 if unknown
  Nanos clock;                                ///< origin of all times, since 1970
  std::vector<Step> steps;                    ///< by start
  std::vector<Kernel> kernels;                ///< by start; without those that communicate
  std::vector<Communication> communications;  ///< by start
  std::vector<Launch> launches;               ///< by correlation, which are unique
  std::vector<KinetoSpan> synchronisations;   ///< by start: calls in which the host waits for the GPU
  std::vector<StreamWait> waits;              ///< by correlation
  std::vector<WaitCall> wait_calls;           ///< by start
  std::vector<std::vector<Around>> around;    ///< by thread, then by start
  std::vector<Group> groups;
  std::vector<std::string> names;     ///< of kernels that communicate, up to their arguments
  std::string unknown_type;           ///< first unknown element type, and its place; its communications have no size
  std::uint64_t count = 0;            ///< events in the file
  std::uint32_t devices = 0;          ///< GPUs that kernels ran on
  bool of_host = false;               ///< no kernel communicates: `communications` are from the host's records
  std::vector<std::string> warnings;  ///< on events left out because of wrong times

  /// The launch of a correlation; nullptr if there is none.
  [[nodiscard]] const Launch* launch(std::int64_t correlation) const;
};

/// Reads up to `most` bytes of a trace; returns 0 at its end.
using KinetoSource = std::function<std::size_t(char* to, std::size_t most)>;

/// Called with the number of bytes that are kept in memory from now on. May throw.
using KinetoKeep = std::function<void(std::size_t bytes)>;

/// Reads a trace. `file` is used in messages. `keep` bounds the memory; without it, the limit is 1 GiB. Throws
/// InputError "FILE: cause; cure" in one line.
KinetoEvents read_kineto_events(const KinetoSource& source, const std::string& file, const KinetoKeep& keep = {});

}  // namespace mltcp::workload
