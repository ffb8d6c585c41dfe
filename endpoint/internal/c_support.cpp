// Code that c_interface.cpp and c_jobs.cpp share; see c_support.h.
#include "mltcp/endpoint/internal/c_support.h"

#include <array>
#include <exception>

namespace mltcp::endpoint::c {
namespace {

/// The last error of a thread, in a fixed buffer. Reporting an error allocates nothing, because the error may be lack
/// of memory.
struct LastError {
  const char* text = "";
  std::array<char, 512> buffer;
};
thread_local LastError last_error;

}  // namespace

mltcp_code fail(Code code, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), last_error.buffer.size() - 1);
  std::memcpy(last_error.buffer.data(), text.data(), length);
  last_error.buffer[length] = '\0';
  last_error.text = last_error.buffer.data();
  return static_cast<mltcp_code>(code);
}

mltcp_code fail(Code code) noexcept {
  last_error.text = to_text(code).data();  // the text is a literal, so it stays valid
  return static_cast<mltcp_code>(code);
}

mltcp_code keep_error(const mltcp_endpoint& handle, Code code) noexcept {
  if (code == Code::ok) [[likely]]
    return MLTCP_OK;
  if (code == Code::failed) {
    try {
      if (const std::string why = handle.endpoint->failure(); !why.empty()) return fail(code, why);
    } catch (...) {
      // The general text of the code is used instead.
    }
  }
  return fail(code);
}

mltcp_code fail_by_exception() noexcept {
  try {
    throw;
  } catch (const InputError& error) {
    return fail(Code::invalid, error.what());
  } catch (const std::bad_alloc&) {
    return fail(Code::failed, "out of memory; lower max_connections, max_operations or the sizes of messages by tag");
  } catch (const std::exception& error) {
    return fail(Code::failed, error.what());
  } catch (...) {
    return fail(Code::failed, "an unknown error occurred; report it with the function that was called");
  }
}

mltcp_code refuse_null(std::string_view name) noexcept {
  std::array<char, 128> text{};
  const std::string_view is_null = " is a null pointer; give a valid pointer";
  const std::size_t length = std::min(name.size(), text.size() - is_null.size());
  std::memcpy(text.data(), name.data(), length);
  std::memcpy(&text[length], is_null.data(), is_null.size());
  return fail(Code::invalid, {text.data(), length + is_null.size()});
}

bool is_struct_size(std::uint32_t size) noexcept { return size >= 8 && size <= 4096 && size % 8 == 0; }

mltcp_code refuse_struct_size(std::string_view name, std::uint32_t size) noexcept {
  return guarded([&] {
    const bool sized = is_struct_size(size);
    return fail(Code::invalid,
                std::string(name) +
                    (sized ? " have values that this library does not support; use a newer library"
                           : ": struct_size is " + std::to_string(size) + "; set it by the struct's _init function"));
  });
}

mltcp_completion to_c(const Completion& completion) noexcept {
  mltcp_completion result;
  std::memset(&result, 0, sizeof result);
  result.struct_size = sizeof result;
  result.kind = static_cast<std::int32_t>(completion.kind);
  result.code = static_cast<mltcp_code>(completion.code);
  result.connection_kind = static_cast<std::int32_t>(completion.connection_kind);
  result.operation = completion.operation;
  result.connection = completion.connection;
  result.tag = completion.tag;
  result.bytes = completion.bytes;
  result.message = completion.message;
  result.context = completion.context;
  result.job = completion.job;
  result.iteration = completion.iteration;
  result.has_job = completion.has_job ? 1 : 0;
  result.cause = static_cast<std::uint8_t>(completion.cause);
  std::memcpy(result.peer_ip, completion.peer.ip.data(), sizeof result.peer_ip);
  result.peer_port = completion.peer.port;
  return result;
}

Completion from_c(const mltcp_completion& completion) noexcept {
  Completion result;
  result.kind = static_cast<Completion::Kind>(completion.kind);
  result.code = completion.code >= 0 && completion.code < kCodes ? static_cast<Code>(completion.code) : Code::failed;
  result.cause = static_cast<Cause>(completion.cause);
  result.connection = completion.connection;
  result.tag = completion.tag;
  result.bytes = completion.bytes;
  std::memcpy(result.peer.ip.data(), completion.peer_ip, sizeof completion.peer_ip);
  result.peer.port = completion.peer_port;
  return result;
}

mltcp_code write_text(std::string_view from, char* text, std::size_t capacity) noexcept {
  if (text == nullptr) return refuse_null("text");
  if (capacity == 0) return fail(Code::too_long, "there is no buffer for the text; give one");
  const std::size_t length = std::min(from.size(), capacity - 1);
  std::memcpy(text, from.data(), length);
  text[length] = '\0';
  return length == from.size()
             ? MLTCP_OK
             : fail(Code::too_long, "the text does not fit into the buffer and is cut; give a larger buffer");
}

CallbackPool::CallbackPool(std::uint32_t places) : sites_(places, Site{this, nullptr, nullptr}), free_(places) {
  for (std::uint32_t i = 0; i < places; ++i) free_.push(i);
}

void* CallbackPool::take(mltcp_callback function, void* context) noexcept {
  std::uint32_t index = 0;
  if (!free_.pop(index)) return nullptr;
  users_.fetch_add(1, std::memory_order_relaxed);
  sites_[index].function = function;
  sites_[index].context = context;
  return &sites_[index];
}

void CallbackPool::give_back(void* context) noexcept {
  Site* const site = static_cast<Site*>(context);
  CallbackPool* const pool = site->pool;
  pool->free_.push(static_cast<std::uint32_t>(site - pool->sites_.data()));
  pool->drop();
}

void CallbackPool::drop() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void CallbackPool::call_back(void* context, const Completion& completion) noexcept {
  const Site site = *static_cast<Site*>(context);
  give_back(context);  // frees the place before the callback, which may post the next operation
  mltcp_completion reported = to_c(completion);
  reported.context = site.context;
  site.function(site.context, &reported);
}

}  // namespace mltcp::endpoint::c

const char* mltcp_last_error() { return mltcp::endpoint::c::last_error.text; }
