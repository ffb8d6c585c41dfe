// The binary interface of NCCL's profiler plug-ins, version 4, as far as MLTCP uses it. Written from NVIDIA's
// documentation. Later versions of NCCL also accept this version.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

/// Kinds of events. They are bits of the mask that init() returns.
inline constexpr int kCollectiveEvent = 2;
inline constexpr int kPointToPointEvent = 4;
inline constexpr int kProxyOperationEvent = 8;

struct CollectiveEvent {
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct PointToPointEvent {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
/// Work of the proxy thread for one channel of a collective. The event of the collective is the parent.
struct ProxyOperationEvent {
  std::int32_t process;  ///< id of the process in whose memory the parent's address is valid
  std::uint8_t channel;
  int peer;
  int steps;
  int chunk;
  int sends;
};

struct ProfilerEvent {
  std::uint8_t kind;
  void* parent;
  int rank;
  union {
    CollectiveEvent collective;
    PointToPointEvent point_to_point;
    ProxyOperationEvent proxy_operation;
  };
};

struct ProfilerV4 {
  const char* name;
  Result (*init)(void** context, int* events, const char* comm_name, std::uint64_t comm, int nodes, int ranks, int rank,
                 Logger logger);
  Result (*start)(void* context, void** event, ProfilerEvent* description);
  Result (*stop)(void* event);
  Result (*record)(void* event, int state, void* arguments);
  Result (*finalize)(void* context);
};

static_assert(sizeof(ProfilerV4) == 6 * 8);
static_assert(offsetof(ProfilerEvent, parent) == 8 && offsetof(ProfilerEvent, collective) == 24 &&
              sizeof(ProfilerEvent) == 104);
static_assert(offsetof(CollectiveEvent, count) == 32 && offsetof(CollectiveEvent, type) == 48);
static_assert(offsetof(PointToPointEvent, count) == 24 && offsetof(PointToPointEvent, peer) == 32);
static_assert(offsetof(ProxyOperationEvent, sends) == 20);

}  // namespace mltcp::nccl
