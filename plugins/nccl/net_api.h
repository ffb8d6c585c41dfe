// The binary interface of NCCL's network plug-ins, versions 7 to 11: the tables of functions that NCCL looks up in the
// shared object, and their arguments. Written from NVIDIA's documentation of the interface. The names are this
// project's; the layouts are the interface's. Consecutive pointers that several versions have in common form a struct
// here, with the same layout.
//
// Releases of NCCL and the versions that they use: 2.19 to 2.21 use version 7 or 8, 2.22 and 2.23 use version 8, 2.24
// and 2.25 use version 9, 2.26 and 2.27 use version 10, 2.28 and later use version 11. Later releases also accept
// earlier versions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mltcp::nccl {

/// Return value of every function.
enum class Result : std::int32_t {
  success = 0,
  system_error = 2,    ///< the system or the network failed
  internal_error = 3,  ///< NCCL broke the rules of the interface
  invalid_argument = 4,
  invalid_usage = 5,  ///< the user's settings are wrong, or sizes do not match
  remote_error = 6,   ///< the peer is gone
};

enum class LogLevel : std::int32_t { version = 1, warn = 2, info = 3 };
inline constexpr unsigned long kLogInit = 1;
inline constexpr unsigned long kLogNet = 16;
inline constexpr unsigned long kLogAll = ~0UL;
/// A function like printf. `where` is the name of a file or a function.
using Logger = void (*)(LogLevel level, unsigned long flags, const char* where, int line, const char* format, ...);

/// Adds events of the plug-in to those of a profiler.
using ProfilerCallback = Result (*)(void** event, int type, void* parent, std::int64_t plugin, void* data);

inline constexpr std::size_t kHandleBytes = 128;  ///< maximum size of listen()'s handle
inline constexpr int kRequests = 32;              ///< maximum number of requests in progress on a communicator
inline constexpr int kHostPointers = 1;
inline constexpr int kHostDevice = 0;    ///< the CPU moves the data, not code on a GPU
inline constexpr int kFusedDevices = 4;  ///< maximum number of fused devices
inline constexpr int kNoTrafficClass = -1;

struct DeviceHandle {
  std::int32_t device_type;
  std::int32_t device_version;
  void* handle;
  std::size_t size;
  int needs_proxy_progress;
};

struct FusedDevices {
  int count;
  int devices[kFusedDevices];
};

struct CommConfig {
  int traffic_class;
};

struct PropertiesV7 {
  char* name;
  char* pci_path;      ///< path below /sys; null if it is not a PCI device
  std::uint64_t guid;  ///< devices with the same value are one device
  int pointers;        ///< kinds of memory that the plug-in can use: kHostPointers
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;  ///< maximum receives in one grouped request
  std::int32_t device_type;
  int device_version;
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointers;
  int registration_is_global;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  std::int32_t device_type;
  int device_version;
};

struct PropertiesV9 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointers;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  std::int32_t device_type;
  int device_version;
  FusedDevices fused;
  std::size_t max_p2p_bytes;  ///< maximum length of a message, in bytes
  std::size_t max_coll_bytes;
};
using PropertiesV10 = PropertiesV9;

struct PropertiesV11 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointers;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  std::int32_t device_type;
  int device_version;
  FusedDevices fused;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
  int max_multi_requests;
};

struct PeerAttributes {
  std::int32_t max_peers;
  std::int32_t min_peers;
  std::int32_t max_flows;
  std::int32_t min_flows;
};
struct NetAttributes {
  PeerAttributes send;
  PeerAttributes receive;
  std::uint32_t operation;
  std::uint32_t algorithm;
  std::uint32_t protocol;
};

// Parts of the tables that several versions have in common, in the order of the tables.

using Devices = Result (*)(int* count);
using Listen = Result (*)(int device, void* handle, void** listen_comm);
using Connect = Result (*)(int device, void* handle, void** send_comm, DeviceHandle** device_comm);
using Accept = Result (*)(void* listen_comm, void** receive_comm, DeviceHandle** device_comm);
template <typename Size>
struct Registration {
  Result (*add)(void* comm, void* data, Size size, int type, void** memory);
  Result (*add_dma_buf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int file,
                        void** memory);
  Result (*remove)(void* comm, void* memory);
};
template <typename Size>
struct Transfer {
  Result (*send)(void* comm, void* data, Size size, int tag, void* memory, void** request);
  Result (*receive)(void* comm, int count, void** data, Size* sizes, int* tags, void** memory, void** request);
};
/// Functions that also get the profiler's parent events.
struct ProfiledTransfer {
  Result (*send)(void* comm, void* data, std::size_t size, int tag, void* memory, void* event, void** request);
  Result (*receive)(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory, void** events,
                    void** request);
};
struct Ends {
  Result (*flush)(void* comm, int count, void** data, int* sizes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
  Result (*device_memory)(void* comm, void* memory, void** pointer);  ///< may be null
  Result (*consumed)(void* comm, int count, void* request);           ///< may be null
};
using FuseDevices = Result (*)(int* device, FusedDevices* devices);

struct NetV7 {
  const char* name;
  Result (*init)(Logger logger);
  Devices devices;
  Result (*properties)(int device, PropertiesV7* out);
  Listen listen;
  Connect connect;
  Accept accept;
  Registration<int> registration;
  Transfer<int> transfer;
  Ends ends;
};

struct NetV8 {
  const char* name;
  Result (*init)(Logger logger);
  Devices devices;
  Result (*properties)(int device, PropertiesV8* out);
  Listen listen;
  Connect connect;
  Accept accept;
  Registration<std::size_t> registration;
  Transfer<int> transfer;
  Ends ends;
};

struct NetV9 {
  const char* name;
  Result (*init)(Logger logger);
  Devices devices;
  Result (*properties)(int device, PropertiesV9* out);
  Listen listen;
  Connect connect;
  Accept accept;
  Registration<std::size_t> registration;
  Transfer<std::size_t> transfer;
  Ends ends;
  FuseDevices fuse;  ///< may be null
};

struct NetV10 {
  const char* name;
  Result (*init)(Logger logger, ProfilerCallback profiler);
  Devices devices;
  Result (*properties)(int device, PropertiesV10* out);
  Listen listen;
  Result (*connect)(int device, CommConfig* config, void* handle, void** send_comm, DeviceHandle** device_comm);
  Accept accept;
  Registration<std::size_t> registration;
  ProfiledTransfer transfer;
  Ends ends;
  FuseDevices fuse;
};

/// NCCL calls init() for each of its communicators, and passes the context from init() to the other functions.
struct NetV11 {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm, CommConfig* config, Logger logger, ProfilerCallback profiler);
  Devices devices;
  Result (*properties)(int device, PropertiesV11* out);
  Result (*listen)(void* context, int device, void* handle, void** listen_comm);
  Result (*connect)(void* context, int device, void* handle, void** send_comm, DeviceHandle** device_comm);
  Accept accept;
  Registration<std::size_t> registration;
  ProfiledTransfer transfer;
  Ends ends;
  FuseDevices fuse;
  Result (*finalize)(void* context);
  Result (*set_attributes)(void* context, NetAttributes* attributes);  ///< may be null
};

// Layout that NCCL's compiler uses.
static_assert(sizeof(void*) == 8 && sizeof(int) == 4 && sizeof(std::size_t) == 8);
static_assert(sizeof(DeviceHandle) == 32 && offsetof(DeviceHandle, needs_proxy_progress) == 24);
static_assert(sizeof(PropertiesV7) == 56 && offsetof(PropertiesV7, speed_mbps) == 28 &&
              offsetof(PropertiesV7, device_version) == 52);
static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, speed_mbps) == 32 &&
              offsetof(PropertiesV8, device_version) == 56);
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, speed_mbps) == 36 &&
              offsetof(PropertiesV9, fused) == 64 && offsetof(PropertiesV9, max_p2p_bytes) == 88);
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, max_multi_requests) == 104);
static_assert(sizeof(NetAttributes) == 44 && offsetof(NetAttributes, operation) == 32);
static_assert(sizeof(NetV7) == 19 * 8 && offsetof(NetV7, transfer) == 10 * 8 && offsetof(NetV7, ends) == 12 * 8);
static_assert(sizeof(NetV8) == 19 * 8 && offsetof(NetV8, transfer) == 10 * 8 && offsetof(NetV8, ends) == 12 * 8);
static_assert(sizeof(NetV9) == 20 * 8 && offsetof(NetV9, fuse) == 19 * 8);
static_assert(sizeof(NetV10) == 20 * 8 && offsetof(NetV10, transfer) == 10 * 8 && offsetof(NetV10, fuse) == 19 * 8);
static_assert(sizeof(NetV11) == 22 * 8 && offsetof(NetV11, finalize) == 20 * 8);

}  // namespace mltcp::nccl
