// What the C interface (mltcp.h) is made of: handles that are remembered when they are gone, structs that carry their
// size, the last error of each thread, and callbacks with a function of the program's own.
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

// The two types of handles stay allocated for ever, a hundred bytes each, so that a call with one that was destroyed
// finds that out instead of reading freed memory. They are linked, for those who look for leaks.
struct mltcp_queue {
  std::atomic<bool> alive{false};
  const mltcp_endpoint* owner = nullptr;
  mltcp::endpoint::CompletionQueue* queue = nullptr;
  std::unique_ptr<mltcp::endpoint::CompletionQueue> own;  ///< null: the endpoint's own, of events
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

/// The datapaths of this build can be opened from here on. Any thread.
void register_datapaths_once();

// ---- Errors ---------------------------------------------------------------------------------------------------------

/// What mltcp_last_error() says: `text` is copied, and cut if it is long.
mltcp_code fail(Code code, std::string_view text) noexcept;
/// The same with the code's own text.
mltcp_code fail(Code code) noexcept;
/// Of what has returned `code`.
mltcp_code told(const mltcp_endpoint& handle, Code code) noexcept;
/// Of the exception that is being handled.
mltcp_code fail_by_exception() noexcept;

/// Nothing that `body` throws gets out of it.
template <typename Body>
mltcp_code guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return fail_by_exception();
  }
}

/// Calls `body` with the endpoint, if it is there.
template <typename Body>
mltcp_code with(mltcp_endpoint* handle, Body body) noexcept {
  if (handle == nullptr)
    return fail(Code::invalid, "the endpoint is a null pointer; open one by mltcp_endpoint_open()");
  if (!handle->alive.load(std::memory_order_acquire))
    return fail(Code::destroyed, "the endpoint was destroyed; open another");
  return guarded([&] { return body(*handle->endpoint); });
}

/// For arguments that may not be null.
mltcp_code refuse_null(std::string_view name) noexcept;

// ---- Structs with their size ----------------------------------------------------------------------------------------

bool is_struct_size(std::uint32_t size) noexcept;
mltcp_code refuse_struct_size(std::string_view name, std::uint32_t size) noexcept;

/// `in` over the defaults in `out`. Members are aligned by their own length, and so a multiple of 8 cuts none.
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

/// Whether write_struct() will do.
template <typename Struct>
mltcp_code check_out(const Struct* out, std::string_view name) noexcept {
  if (out == nullptr) return refuse_null(name);
  return is_struct_size(out->struct_size) ? MLTCP_OK : refuse_struct_size(name, out->struct_size);
}

/// `value` into `out`, which has `size` bytes, all of them set.
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

/// Copies what fits, with an end, and MLTCP_TOO_LONG if that is not all.
mltcp_code write_text(std::string_view from, char* text, std::size_t room) noexcept;

// ---- Callbacks ------------------------------------------------------------------------------------------------------

/// Where the function and the context of each operation with a callback are kept until it is called: an endpoint hands
/// back one pointer, and C has two. Lives until the last has been called, which may be after its endpoint was
/// destroyed, in a callback.
class CallbackPool {
 public:
  explicit CallbackPool(std::uint32_t places);

  /// What an endpoint is to be given as context, with call_back(); null if there is no room.
  void* take(mltcp_callback function, void* context) noexcept;
  /// Of what will not be called.
  static void give_back(void* context) noexcept;
  /// By who has made it, who doesn't use it from here on.
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
