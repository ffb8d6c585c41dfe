// The tables that NCCL looks up, one for each version of the interface. All tables use the same functions as far as
// possible. In versions 10 and 11, init(), connect(), send() and receive() have other arguments than in older versions.
#include <fmt/format.h>

#include <climits>
#include <exception>

#include "mltcp/plugins/nccl/log.h"
#include "mltcp/plugins/nccl/plugin.h"

namespace mltcp::nccl {
namespace {

// The name by which NCCL_NET selects this network.
constexpr const char* kName = "MLTCP";

/// Calls `call`, and converts an exception to a Result.
template <typename Call>
Result guarded(Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    log_warning(error.what());
    return Result::system_error;
  }
}

// ---- Set-up ----

template <int version>
Result init(Logger logger) {
  return guarded([&] { return Plugin::of_process().init(logger, version); });
}
Result init_v10(Logger logger, ProfilerCallback /*profiler*/) { return init<10>(logger); }
/// Communicators need no context. This context serves finalize(), to which NCCL passes it.
Result init_v11(void** context, std::uint64_t /*comm*/, CommConfig* /*config*/, Logger logger,
                ProfilerCallback /*profiler*/) {
  const Result result = init<11>(logger);
  if (context != nullptr) *context = result == Result::success ? &Plugin::of_process() : nullptr;
  return result;
}
Result finalize(void* context) {
  if (context != nullptr) static_cast<Plugin*>(context)->finalize();
  return Result::success;
}
Result set_attributes(void* /*context*/, NetAttributes* /*attributes*/) { return Result::success; }

Result devices(int* count) {
  return guarded([&] { return Plugin::of_process().devices(count); });
}

template <typename Out>
Result properties(int device, Out* out) {
  return guarded([&] {
    Properties from;
    if (const Result result = Plugin::of_process().properties(device, from); result != Result::success) return result;
    *out = {};
    // The const_cast is safe, because NCCL does not write to the text.
    out->name = const_cast<char*>(from.name);
    out->pci_path = const_cast<char*>(from.pci_path);
    out->guid = static_cast<std::uint64_t>(from.number);
    out->pointers = kHostPointers;
    out->speed_mbps = from.speed_mbps;
    out->max_comms = from.max_comms;
    out->max_receives = 1;
    out->device_type = kHostDevice;
    if constexpr (requires { out->fused; }) {
      out->fused.count = 1;
      out->fused.devices[0] = device;
      out->max_p2p_bytes = from.max_bytes;
      out->max_coll_bytes = from.max_bytes;
    }
    if constexpr (requires { out->max_multi_requests; }) out->max_multi_requests = 1;
    return Result::success;
  });
}

// ---- Connections ----

std::span<std::byte, kHandleBytes> bytes_of(void* handle) {
  return std::span<std::byte, kHandleBytes>(static_cast<std::byte*>(handle), kHandleBytes);
}

Result listen(int number, void* handle, void** listen_comm) {
  return guarded([&] {
    *listen_comm = nullptr;
    Device* const device = Plugin::of_process().device(number);
    if (device == nullptr) return Result::invalid_usage;
    Listener* listener = nullptr;
    const Result result = device->listen(bytes_of(handle), &listener);
    *listen_comm = listener;
    return result;
  });
}
Result listen_v11(void* /*context*/, int number, void* handle, void** listen_comm) {
  return listen(number, handle, listen_comm);
}

Result connect(int number, void* handle, void** send_comm, DeviceHandle** /*device_comm*/) {
  return guarded([&] {
    *send_comm = nullptr;
    Device* const device = Plugin::of_process().device(number);
    if (device == nullptr) return Result::invalid_usage;
    Comm* comm = nullptr;
    const Result result = device->connect(bytes_of(handle), &comm);
    *send_comm = comm;
    return result;
  });
}
Result connect_v10(int number, CommConfig* /*config*/, void* handle, void** send_comm, DeviceHandle** device_comm) {
  return connect(number, handle, send_comm, device_comm);
}
Result connect_v11(void* /*context*/, int number, void* handle, void** send_comm, DeviceHandle** device_comm) {
  return connect(number, handle, send_comm, device_comm);
}

Result accept(void* listen_comm, void** receive_comm, DeviceHandle** /*device_comm*/) {
  return guarded([&] {
    Listener& listener = *static_cast<Listener*>(listen_comm);
    Comm* comm = nullptr;
    const Result result = listener.device->accept(listener, &comm);
    *receive_comm = comm;
    return result;
  });
}

Result close_comm(void* comm) {
  Comm* const one = static_cast<Comm*>(comm);
  one->device().close_comm(one);
  return Result::success;
}
Result close_listen(void* listen_comm) {
  Listener* const listener = static_cast<Listener*>(listen_comm);
  listener->device->close_listen(listener);
  return Result::success;
}

// ---- Data ----

/// Registers nothing, because datapaths read memory in place or copy it.
template <typename Size>
Result add_memory(void* /*comm*/, void* /*data*/, Size /*size*/, int type, void** memory) {
  *memory = nullptr;
  if (type == kHostPointers) return Result::success;
  log_warning("GPU memory cannot be sent directly; unset NCCL_NET_GDR_LEVEL, and report this error");
  return Result::internal_error;
}
Result remove_memory(void* /*comm*/, void* /*memory*/) { return Result::success; }

Result post(void* comm, void* data, std::size_t size, void** request) noexcept {
  *request = nullptr;
  if (size > INT_MAX) return Result::internal_error;
  return static_cast<Comm*>(comm)->post({static_cast<std::byte*>(data), size}, request);
}

template <typename Size>
Result send(void* comm, void* data, Size size, int /*tag*/, void* /*memory*/, void** request) {
  return post(comm, data, static_cast<std::size_t>(size), request);
}
Result send_profiled(void* comm, void* data, std::size_t size, int /*tag*/, void* /*memory*/, void* /*event*/,
                     void** request) {
  return post(comm, data, size, request);
}

template <typename Size>
Result receive(void* comm, int count, void** data, Size* sizes, int* /*tags*/, void** /*memory*/, void** request) {
  *request = nullptr;
  if (count != 1) return Result::internal_error;
  return post(comm, data[0], static_cast<std::size_t>(sizes[0]), request);
}
Result receive_profiled(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                        void** /*events*/, void** request) {
  return receive<std::size_t>(comm, count, data, sizes, tags, memory, request);
}

/// Flushes nothing, because the CPU has already written the data.
Result flush(void* /*comm*/, int /*count*/, void** /*data*/, int* /*sizes*/, void** /*memory*/, void** request) {
  *request = nullptr;
  return Result::success;
}

Result test(void* request, int* done, int* sizes) {
  *done = 0;
  return request == nullptr ? Result::internal_error : Comm::test(*static_cast<Request*>(request), done, sizes);
}

// ---- Tables ----

template <typename Size>
constexpr Registration<Size> kRegistration{&add_memory<Size>, nullptr, &remove_memory};
template <typename Size>
constexpr Transfer<Size> kTransfer{&send<Size>, &receive<Size>};
constexpr ProfiledTransfer kProfiledTransfer{&send_profiled, &receive_profiled};
constexpr Ends kEnds{&flush, &test, &close_comm, &close_comm, &close_listen, nullptr, nullptr};

}  // namespace
}  // namespace mltcp::nccl

#define MLTCP_NCCL_EXPORT extern "C" [[gnu::visibility("default")]] constinit const

namespace nccl = mltcp::nccl;

MLTCP_NCCL_EXPORT nccl::NetV7 ncclNetPlugin_v7{
    nccl::kName,          &nccl::init<7>, &nccl::devices, &nccl::properties<nccl::PropertiesV7>,
    &nccl::listen,        &nccl::connect, &nccl::accept,  nccl::kRegistration<int>,
    nccl::kTransfer<int>, nccl::kEnds};
MLTCP_NCCL_EXPORT nccl::NetV8 ncclNetPlugin_v8{
    nccl::kName,          &nccl::init<8>, &nccl::devices, &nccl::properties<nccl::PropertiesV8>,
    &nccl::listen,        &nccl::connect, &nccl::accept,  nccl::kRegistration<std::size_t>,
    nccl::kTransfer<int>, nccl::kEnds};
MLTCP_NCCL_EXPORT nccl::NetV9 ncclNetPlugin_v9{nccl::kName,
                                               &nccl::init<9>,
                                               &nccl::devices,
                                               &nccl::properties<nccl::PropertiesV9>,
                                               &nccl::listen,
                                               &nccl::connect,
                                               &nccl::accept,
                                               nccl::kRegistration<std::size_t>,
                                               nccl::kTransfer<std::size_t>,
                                               nccl::kEnds,
                                               nullptr};
MLTCP_NCCL_EXPORT nccl::NetV10 ncclNetPlugin_v10{nccl::kName,
                                                 &nccl::init_v10,
                                                 &nccl::devices,
                                                 &nccl::properties<nccl::PropertiesV10>,
                                                 &nccl::listen,
                                                 &nccl::connect_v10,
                                                 &nccl::accept,
                                                 nccl::kRegistration<std::size_t>,
                                                 nccl::kProfiledTransfer,
                                                 nccl::kEnds,
                                                 nullptr};
MLTCP_NCCL_EXPORT nccl::NetV11 ncclNetPlugin_v11{nccl::kName,
                                                 &nccl::init_v11,
                                                 &nccl::devices,
                                                 &nccl::properties<nccl::PropertiesV11>,
                                                 &nccl::listen_v11,
                                                 &nccl::connect_v11,
                                                 &nccl::accept,
                                                 nccl::kRegistration<std::size_t>,
                                                 nccl::kProfiledTransfer,
                                                 nccl::kEnds,
                                                 nullptr,
                                                 &nccl::finalize,
                                                 &nccl::set_attributes};
