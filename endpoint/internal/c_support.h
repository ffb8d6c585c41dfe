// Parts of the C interface (mltcp.h): handles that stay valid memory after destruction, structs that carry their size,
// the last error of each thread, and callbacks that call a C function of the program.
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

// Handles of these two types are never freed (about 100 bytes each), so that a call with a destroyed handle detects it
// instead of reading freed memory. They are linked in lists so that leak checkers find them reachable.
struct mltcp_queue {
  std::atomic<bool> alive{false};
  const mltcp_endpoint* owner = nullptr;
  mltcp::endpoint::CompletionQueue* queue = nullptr;
  std::unique_ptr<mltcp::endpoint::CompletionQueue> own;  ///< null: this is the endpoint's own queue of events
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

/// Registers the datapaths of this build, once per process. Any thread.
void register_datapaths_once();

// ---- Errors ---------------------------------------------------------------------------------------------------------

/// Sets the text of mltcp_last_error(): `text` is copied, and cut if it is long.
mltcp_code fail(Code code, std::string_view text) noexcept;
/// The same with the code's own text.
mltcp_code fail(Code code) noexcept;
/// Sets the text for a call of the endpoint that returned `code`.
mltcp_code told(const mltcp_endpoint& handle, Code code) noexcept;
/// Sets the text from the exception that is being handled.
mltcp_code fail_by_exception() noexcept;

/// Calls `body`; an exception becomes a code and an error text.
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

/// For arguments that must not be null.
mltcp_code refuse_null(std::string_view name) noexcept;

// ---- Structs with their size ----------------------------------------------------------------------------------------

bool is_struct_size(std::uint32_t size) noexcept;
mltcp_code refuse_struct_size(std::string_view name, std::uint32_t size) noexcept;

/// Copies `in` over the defaults in `out`. Members are aligned by their own size, so a size that is a multiple of 8
/// cuts no member.
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

/// Whether write_struct() can be called with `out`.
template <typename Struct>
mltcp_code check_out(const Struct* out, std::string_view name) noexcept {
  if (out == nullptr) return refuse_null(name);
  return is_struct_size(out->struct_size) ? MLTCP_OK : refuse_struct_size(name, out->struct_size);
}

/// Copies `value` into `out`, which has `size` bytes; sets all of them.
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

/// Copies what fits, with a terminating zero; MLTCP_TOO_LONG if it was cut.
mltcp_code write_text(std::string_view from, char* text, std::size_t room) noexcept;

// ---- Callbacks ------------------------------------------------------------------------------------------------------

/// Keeps the function and the context of each operation with a callback until the callback is called: an endpoint
/// passes only one pointer back, C needs two. Lives until the last callback has been called, which may be after the
/// endpoint was destroyed in a callback.
class CallbackPool {
 public:
  explicit CallbackPool(std::uint32_t places);

  /// Returns the context to give to an endpoint together with call_back(); null if there is no room.
  void* take(mltcp_callback function, void* context) noexcept;
  /// Frees the place of a callback that will not be called.
  static void give_back(void* context) noexcept;
  /// Called by the owner, which must not use the pool afterwards.
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
