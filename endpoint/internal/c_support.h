// Parts of the C interface (mltcp.h): handles whose memory stays valid after destruction, structs that contain their
// size, the last error of each thread, and callbacks that call a C function of the program.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/completion_queue.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/endpoint/internal/bounded_ring.h"
#include "mltcp/endpoint/mltcp.h"

namespace mltcp::endpoint::c {
class CallbackPool;
}

// Handles of the types mltcp_queue and mltcp_endpoint are never freed (about 100 bytes each). So a call with a
// destroyed handle detects this instead of reading freed memory. Lists link all handles, so that leak checkers find
// them reachable.
struct mltcp_queue {
  std::atomic<bool> alive{false};
  const mltcp_endpoint* owner = nullptr;
  mltcp::endpoint::CompletionQueue* queue = nullptr;
  std::unique_ptr<mltcp::endpoint::CompletionQueue> own;  ///< null for the endpoint's queue of events
  mltcp_queue* next = nullptr;
};

struct mltcp_endpoint {
  std::atomic<bool> alive{false};
  mltcp_callback event_callback = nullptr;
  void* event_context = nullptr;
  std::unique_ptr<mltcp::endpoint::Endpoint> endpoint;
  mltcp::endpoint::c::CallbackPool* callbacks = nullptr;
  mltcp_queue events;
  mltcp_endpoint* next = nullptr;
};

namespace mltcp::endpoint::c {

/// Registers the datapaths of this build, once per process. May be called from any thread.
void register_datapaths_once();

// ---- Errors ----

/// Sets the text of mltcp_last_error() to a copy of `text`, which is cut if it is too long. Returns `code`.
mltcp_code fail(Code code, std::string_view text) noexcept;
/// Sets the text of mltcp_last_error() to the general text of `code`. Returns `code`.
mltcp_code fail(Code code) noexcept;
/// Converts the code that a call of the endpoint has returned. Sets the error text if the code is an error.
mltcp_code keep_error(const mltcp_endpoint& handle, Code code) noexcept;
/// Sets the error text from the exception that is being handled. Returns a code for the exception.
mltcp_code fail_by_exception() noexcept;

/// Calls `body`. Converts an exception to a code and an error text.
template <typename Body>
mltcp_code guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return fail_by_exception();
  }
}

/// Calls `body` with the endpoint, unless the handle is null or destroyed.
template <typename Body>
mltcp_code with(mltcp_endpoint* handle, Body body) noexcept {
  if (handle == nullptr)
    return fail(Code::invalid, "the endpoint is a null pointer; open one by mltcp_endpoint_open()");
  if (!handle->alive.load(std::memory_order_acquire))
    return fail(Code::destroyed, "the endpoint was destroyed; open another");
  return guarded([&] { return body(*handle->endpoint); });
}

/// Reports that the argument `name` must not be null.
mltcp_code refuse_null(std::string_view name) noexcept;

// ---- Structs with their size ----

bool is_struct_size(std::uint32_t size) noexcept;
mltcp_code refuse_struct_size(std::string_view name, std::uint32_t size) noexcept;

/// Copies `in` over the defaults in `out`. A size that is a multiple of 8 cuts no member, because each member is
/// aligned by its own size.
template <typename Struct>
mltcp_code read_struct(const Struct* in, Struct& out, std::string_view name) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct> && std::is_standard_layout_v<Struct> && sizeof(Struct) % 8 == 0);
  if (in == nullptr) return MLTCP_OK;
  const std::uint32_t size = in->struct_size;
  if (!is_struct_size(size)) return refuse_struct_size(name, size);
  std::memcpy(&out, in, std::min<std::size_t>(size, sizeof(Struct)));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(in);
  for (std::size_t i = sizeof(Struct); i < size; ++i)
    if (bytes[i] != 0) return refuse_struct_size(name, size);
  return MLTCP_OK;
}

/// Checks whether write_struct() can be called with `out`.
template <typename Struct>
mltcp_code check_out(const Struct* out, std::string_view name) noexcept {
  if (out == nullptr) return refuse_null(name);
  return is_struct_size(out->struct_size) ? MLTCP_OK : refuse_struct_size(name, out->struct_size);
}

/// Copies `value` into `out`, which has `size` bytes, and sets all remaining bytes to zero.
template <typename Struct>
void write_struct(Struct* out, std::uint32_t size, Struct& value) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct> && std::is_standard_layout_v<Struct> && sizeof(Struct) % 8 == 0);
  value.struct_size = size;
  std::memcpy(out, &value, std::min<std::size_t>(size, sizeof(Struct)));
  if (size > sizeof(Struct))
    std::memset(reinterpret_cast<unsigned char*>(out) + sizeof(Struct), 0, size - sizeof(Struct));
}

mltcp_completion to_c(const Completion& completion) noexcept;
Completion from_c(const mltcp_completion& completion) noexcept;

/// Copies as much of `from` as fits, with a terminating zero. Returns MLTCP_TOO_LONG if the text was cut.
mltcp_code write_text(std::string_view from, char* text, std::size_t capacity) noexcept;

// ---- Callbacks ----

/// Stores the function and the context of each operation with a callback until the callback is called. This is
/// necessary because an endpoint passes back only one pointer, but a C callback needs two. The pool exists until the
/// last callback has been called. This may be after a callback has destroyed the endpoint.
class CallbackPool {
 public:
  explicit CallbackPool(std::uint32_t places);

  /// Stores a function and its context. Returns the context to give to an endpoint together with call_back(); null if
  /// there is no room.
  void* take(mltcp_callback function, void* context) noexcept;
  /// Frees the place of a callback that will not be called.
  static void give_back(void* context) noexcept;
  /// Releases the owner's reference. The owner must not use the pool afterwards.
  void drop() noexcept;

  static void call_back(void* context, const Completion& completion) noexcept;

 private:
  struct Site {
    CallbackPool* pool;
    mltcp_callback function;
    void* context;
  };
  ~CallbackPool() = default;

  std::vector<Site> sites_;
  BoundedRing<std::uint32_t> free_;
  std::atomic<std::uint64_t> users_{1};
};

}  // namespace mltcp::endpoint::c
