// Uses the plug-in as NCCL does: loads the shared object with RTLD_NOW and RTLD_LOCAL, and chooses the newest of its
// tables that this version of NCCL knows. The calls in this header are the same for all versions.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl::harness {

struct Handle {
  alignas(8) unsigned char bytes[kHandleBytes] = {};
};

/// Properties of a device. Fields that a version of the interface does not contain are 0.
struct Facts {
  std::string name;
  std::uint64_t guid = 0;
  int pointers = 0;
  int speed_mbps = 0;
  int max_comms = 0;
  int max_receives = 0;
  int device_type = 0;
  std::size_t max_bytes = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  virtual const char* name() = 0;
  virtual Result init(Logger logger) = 0;
  virtual Result devices(int* count) = 0;
  virtual Result properties(int device, Facts& out) = 0;
  virtual Result listen(int device, Handle& handle, void** comm) = 0;
  virtual Result connect(int device, Handle& handle, void** comm) = 0;
  virtual Result accept(void* listen_comm, void** comm) = 0;
  virtual Result add_memory(void* comm, void* data, std::size_t size, void** memory) = 0;
  virtual Result remove_memory(void* comm, void* memory) = 0;
  virtual Result send(void* comm, void* data, std::size_t size, void** request) = 0;
  virtual Result receive(void* comm, void* data, std::size_t size, void** request) = 0;
  virtual Result test(void* request, int* done, int* size) = 0;
  virtual Result close_send(void* comm) = 0;
  virtual Result close_receive(void* comm) = 0;
  virtual Result close_listen(void* comm) = 0;
  virtual Result finalize() = 0;
};

template <typename Table, typename Properties, typename Size>
class NetOf final : public Net {
 public:
  explicit NetOf(const Table& table) : table_(table) {}

  const char* name() override { return table_.name; }
  Result init(Logger logger) override {
    if constexpr (requires { table_.finalize; }) {
      CommConfig config{kNoTrafficClass};
      return table_.init(&context_, 42, &config, logger, nullptr);
    } else if constexpr (requires { table_.init(logger, nullptr); }) {
      return table_.init(logger, nullptr);
    } else {
      return table_.init(logger);
    }
  }
  Result devices(int* count) override { return table_.devices(count); }
  Result properties(int device, Facts& out) override {
    Properties from{};
    const Result result = table_.properties(device, &from);
    if (result != Result::success) return result;
    out = {.name = from.name,
           .guid = from.guid,
           .pointers = from.pointers,
           .speed_mbps = from.speed_mbps,
           .max_comms = from.max_comms,
           .max_receives = from.max_receives,
           .device_type = from.device_type};
    if constexpr (requires { from.max_p2p_bytes; }) out.max_bytes = from.max_p2p_bytes;
    return result;
  }
  Result listen(int device, Handle& handle, void** comm) override {
    if constexpr (requires { table_.finalize; }) {
      return table_.listen(context_, device, handle.bytes, comm);
    } else {
      return table_.listen(device, handle.bytes, comm);
    }
  }
  Result connect(int device, Handle& handle, void** comm) override {
    DeviceHandle* on_device = nullptr;
    if constexpr (requires { table_.finalize; }) {
      return table_.connect(context_, device, handle.bytes, comm, &on_device);
    } else if constexpr (requires { table_.init(nullptr, nullptr); }) {
      CommConfig config{kNoTrafficClass};
      return table_.connect(device, &config, handle.bytes, comm, &on_device);
    } else {
      return table_.connect(device, handle.bytes, comm, &on_device);
    }
  }
  Result accept(void* listen_comm, void** comm) override {
    DeviceHandle* on_device = nullptr;
    return table_.accept(listen_comm, comm, &on_device);
  }
  Result add_memory(void* comm, void* data, std::size_t size, void** memory) override {
    if constexpr (std::is_same_v<Table, NetV7>) {
      return table_.registration.add(comm, data, static_cast<int>(size), kHostPointers, memory);
    } else {
      return table_.registration.add(comm, data, size, kHostPointers, memory);
    }
  }
  Result remove_memory(void* comm, void* memory) override { return table_.registration.remove(comm, memory); }
  Result send(void* comm, void* data, std::size_t size, void** request) override {
    if constexpr (requires { table_.transfer.send(comm, data, size, 0, nullptr, nullptr, request); }) {
      return table_.transfer.send(comm, data, size, 7, nullptr, nullptr, request);
    } else {
      return table_.transfer.send(comm, data, static_cast<Size>(size), 7, nullptr, request);
    }
  }
  Result receive(void* comm, void* data, std::size_t size, void** request) override {
    Size sizes = static_cast<Size>(size);
    int tags = 7;
    void* memory = nullptr;
    if constexpr (requires { table_.transfer.receive(comm, 1, &data, &sizes, &tags, &memory, &memory, request); }) {
      return table_.transfer.receive(comm, 1, &data, &sizes, &tags, &memory, &memory, request);
    } else {
      return table_.transfer.receive(comm, 1, &data, &sizes, &tags, &memory, request);
    }
  }
  Result test(void* request, int* done, int* size) override { return table_.ends.test(request, done, size); }
  Result close_send(void* comm) override { return table_.ends.close_send(comm); }
  Result close_receive(void* comm) override { return table_.ends.close_receive(comm); }
  Result close_listen(void* comm) override { return table_.ends.close_listen(comm); }
  Result finalize() override {
    if constexpr (requires { table_.finalize; }) return table_.finalize(context_);
    return Result::success;
  }

 private:
  const Table& table_;
  void* context_ = nullptr;
};

class Library {
 public:
  explicit Library(const std::string& file) : library_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~Library() { dlclose(library_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] const void* symbol(const std::string& name) const { return dlsym(library_, name.c_str()); }
  /// Returns the table of this version, or null if the shared object has no such table.
  [[nodiscard]] std::unique_ptr<Net> net(int version) const {
    const void* const table = symbol("ncclNetPlugin_v" + std::to_string(version));
    if (table == nullptr) return nullptr;
    switch (version) {
      case 7:
        return of<NetV7, PropertiesV7, int>(table);
      case 8:
        return of<NetV8, PropertiesV8, int>(table);
      case 9:
        return of<NetV9, PropertiesV9, std::size_t>(table);
      case 10:
        return of<NetV10, PropertiesV10, std::size_t>(table);
      case 11:
        return of<NetV11, PropertiesV11, std::size_t>(table);
      default:
        return nullptr;
    }
  }
  /// Returns the table that NCCL chooses if it knows versions up to `newest`, or null.
  [[nodiscard]] std::unique_ptr<Net> newest_net(int newest = 12) const {
    for (int version = newest; version > 5; --version)
      if (auto found = net(version)) return found;
    return nullptr;
  }

 private:
  template <typename Table, typename Properties, typename Size>
  static std::unique_ptr<Net> of(const void* table) {
    return std::make_unique<NetOf<Table, Properties, Size>>(*static_cast<const Table*>(table));
  }
  void* library_;
};

struct Line {
  LogLevel level;
  std::string text;
};

/// Returns the lines that the plug-in has logged through log() since the last call.
std::vector<Line> take_lines();
[[gnu::format(printf, 5, 6)]] void log(LogLevel level, unsigned long flags, const char* where, int line,
                                       const char* format, ...);

/// Calls test() until the request has ended, for at most 20 s. Sets `size` unless it is null.
Result finish(Net& net, void* request, int* size = nullptr);
/// send() and receive() post an operation again until they get a request, for at most 20 s.
void* send(Net& net, void* comm, void* data, std::size_t size);
void* receive(Net& net, void* comm, void* data, std::size_t size);

/// Both sides of a connection within this process.
struct Pair {
  void* listen_comm = nullptr;
  void* send_comm = nullptr;
  void* receive_comm = nullptr;
};
/// Opens a connection. Throws std::runtime_error after 20 s, or with the error of connect() or accept().
Pair connect(Net& from, Net& to);
/// Opens another connection through the listener in `pair` and its `handle`. Overwrites the connection in `pair`.
void connect_again(Net& from, Net& to, Handle handle, Pair& pair);
void close(Net& from, Net& to, const Pair& pair);

}  // namespace mltcp::nccl::harness
