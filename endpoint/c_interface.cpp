// The C interface over mltcp::endpoint::Endpoint, for endpoints, connections, messages, operations and queues.
// c_jobs.cpp contains jobs, reports and memory. internal/c_support.h contains code that both files use.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <mutex>
#include <string>

#include "mltcp/cc/registry.h"
#include "mltcp/endpoint/internal/c_support.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::endpoint::c {
namespace {

/// Maximum number of completions moved from a queue to the program in one step.
constexpr std::size_t kAtOnce = 16;
constexpr char kHex[] = "0123456789abcdef";

static_assert(static_cast<int>(Idle::spin) == MLTCP_IDLE_SPIN && static_cast<int>(Idle::pause) == MLTCP_IDLE_PAUSE &&
              static_cast<int>(Idle::sleep) == MLTCP_IDLE_SLEEP);
static_assert(static_cast<int>(Driving::threads) == MLTCP_DRIVEN_BY_THREADS &&
              static_cast<int>(Driving::caller) == MLTCP_DRIVEN_BY_CALLER);
static_assert(static_cast<int>(ConnectionKind::ordered) == MLTCP_ORDERED &&
              static_cast<int>(ConnectionKind::tagged) == MLTCP_TAGGED);
static_assert(static_cast<int>(Completion::Kind::connected) == MLTCP_CONNECTED &&
              static_cast<int>(Completion::Kind::closed) == MLTCP_ENDED);
static_assert(static_cast<int>(Code::failed) == MLTCP_FAILED && static_cast<int>(Code::destroyed) == MLTCP_DESTROYED &&
              static_cast<int>(Code::version) == MLTCP_WRONG_VERSION && kCodes == MLTCP_NO_KEY + 1);
static_assert(kAnyConnection == MLTCP_ANY_CONNECTION && kWholeTag == MLTCP_WHOLE_TAG);
static_assert(Nanos::never().count == MLTCP_FOREVER);
static_assert(MLTCP_ADDRESS_BYTES == EndpointAddress::kMaxBytes &&
              MLTCP_ADDRESS_HEX_BYTES == 2 * MLTCP_ADDRESS_BYTES + 1);
static_assert(MLTCP_KEY_BYTES == security::JobKey::kSize);
static_assert(sizeof(void*) == 8, "structs of mltcp.h are cut at multiples of 8 bytes, see read_struct()");

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): lists of objects that are never freed
std::atomic<mltcp_endpoint*> endpoints{nullptr};
std::atomic<mltcp_queue*> queues{nullptr};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

template <typename Handle>
void remember(std::atomic<Handle*>& all, Handle* handle) noexcept {
  handle->next = all.load(std::memory_order_relaxed);
  while (!all.compare_exchange_weak(handle->next, handle, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

mltcp_endpoint_options default_options() noexcept {
  const EndpointConfig config;
  mltcp_endpoint_options options;
  std::memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.driving = static_cast<std::int32_t>(config.driving);
  options.prefix_bits = config.prefix_bits;
  options.shards = config.shards;
  options.idle = static_cast<std::int32_t>(config.idle);
  options.accepts = config.accepts ? 1 : 0;
  options.queues = config.datapath.queues;
  options.peer_timeout_ns = config.peer_timeout.count;
  options.max_connections = config.max_connections;
  options.max_operations = config.max_operations;
  options.max_jobs = config.max_jobs;
  options.max_memory_regions = config.max_memory_regions;
  options.eager_limit = config.eager_limit;
  options.unexpected_messages = config.unexpected_messages;
  options.control_frames = config.control_frames;
  options.max_sends = config.connection.max_sends;
  options.max_receives = config.connection.max_receives;
  options.priority = config.connection.priority;
  return options;
}

void check_range(std::string_view key, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value < min || value > max)
    throw InputError(fmt::format("{} is {}; give a value from {} to {}", key, value, min, max));
}

/// Returns the endpoint's address, which is the option `address`, or else the address in the device's name.
Address address_of(const mltcp_endpoint_options& options, std::string_view device) {
  if (options.address != nullptr && *options.address != '\0') return Address::parse(options.address, 0);
  const std::size_t colon = device.find(':');
  try {
    return Address::parse(colon == std::string_view::npos ? device : device.substr(colon + 1), 0);
  } catch (const InputError&) {
    throw InputError("the endpoint has no address; give an address of this host that peers can reach, e.g. 10.0.0.1");
  }
}

/// Checks the options that the configuration stores in a narrower type. The endpoint checks the ranges of all other
/// options.
void check_options(const mltcp_endpoint_options& options) {
  check_range("driving", options.driving, MLTCP_DRIVEN_BY_THREADS, MLTCP_DRIVEN_BY_CALLER);
  check_range("idle", options.idle, MLTCP_IDLE_SPIN, MLTCP_IDLE_SLEEP);
  check_range("accepts", options.accepts, 0, 1);
  check_range("ecn", options.ecn, 0, 1);
  check_range("full_integrity", options.full_integrity, 0, 1);
  check_range("authenticate", options.authenticate, 0, 1);
  check_range("shards", options.shards, 1, 256);
  check_range("queues", options.queues, 1, 65'535);
  check_range("priority", options.priority, 0, kPriorities - 1);
  check_range("max_sends", options.max_sends, 1, 65'536);
  check_range("max_receives", options.max_receives, 1, 65'536);
}

EndpointConfig config_of(const mltcp_endpoint_options& options) {
  check_options(options);
  EndpointConfig config;
  config.datapath.device = options.device != nullptr && *options.device != '\0' ? options.device : "udp:";
  config.datapath.mtu = options.mtu;
  config.datapath.queues = static_cast<std::uint16_t>(options.queues);
  if (options.cores != nullptr) config.datapath.cores = options.cores;
  if (options.memory_mb != 0) config.datapath.memory_mb = options.memory_mb;
  config.address = address_of(options, config.datapath.device);
  if (options.gateway != nullptr && *options.gateway != '\0') config.gateway = Address::parse(options.gateway);
  config.prefix_bits = options.prefix_bits;
  config.shards = static_cast<std::uint16_t>(options.shards);
  config.driving = static_cast<Driving>(options.driving);
  config.idle = static_cast<Idle>(options.idle);
  config.accepts = options.accepts != 0;
  config.peer_timeout = Nanos(options.peer_timeout_ns);
  config.max_connections = options.max_connections;
  config.max_operations = options.max_operations;
  config.max_jobs = options.max_jobs;
  config.max_memory_regions = options.max_memory_regions;
  config.eager_limit = options.eager_limit;
  config.unexpected_messages = options.unexpected_messages;
  config.control_frames = options.control_frames;
  if (options.congestion_control != nullptr && *options.congestion_control != '\0')
    config.connection.congestion_control = cc::algorithm_from(options.congestion_control).name;
  if (options.parameters != nullptr) {
    cc::Parameters parameters;
    cc::set_from_text(parameters, options.parameters);
    config.connection.parameters = std::make_shared<const cc::Parameters>(std::move(parameters));
  }
  if (options.key != nullptr) {
    if (options.key_bytes != nullptr) throw InputError("key and key_bytes are both given; give one of them");
    if (*options.key == '\0') throw InputError("key is empty; give a key file or fd:N, or NULL for none");
    config.key = options.key;
  }
  if (options.key_bytes != nullptr) {
    const std::span bytes(static_cast<const std::byte*>(options.key_bytes), security::JobKey::kSize);
    const security::Secret<security::JobKey::kSize> secret(bytes.first<security::JobKey::kSize>());
    config.connection.keys = {security::packet_key(security::JobKey(secret), options.authenticate != 0
                                                                                 ? security::Protection::authenticate
                                                                                 : security::Protection::encrypt)};
  } else {
    config.authenticate = options.authenticate != 0;
  }
  config.connection.max_sends = options.max_sends;
  config.connection.max_receives = options.max_receives;
  config.connection.max_rate = Rate(options.max_rate_bps);
  config.connection.ecn = options.ecn != 0;
  config.connection.full_integrity = options.full_integrity != 0;
  config.connection.priority = static_cast<std::uint8_t>(options.priority);
  return config;
}

void on_event(void* context, const Completion& completion) noexcept {
  const auto* const handle = static_cast<const mltcp_endpoint*>(context);
  mltcp_completion reported = to_c(completion);
  reported.context = handle->event_context;
  handle->event_callback(handle->event_context, &reported);
}

mltcp_code open_endpoint(const mltcp_endpoint_options& options, mltcp_endpoint** result) {
  register_datapaths_once();
  EndpointConfig config = config_of(options);
  auto handle = std::make_unique<mltcp_endpoint>();
  if (options.event_callback != nullptr) {
    handle->event_callback = options.event_callback;
    handle->event_context = options.event_context;
    config.event_callback = on_event;
    config.event_context = handle.get();
  }
  // Events that name the handle may come as soon as the endpoint exists, so the handle must not be freed from now on.
  mltcp_endpoint* const kept = handle.release();
  remember(endpoints, kept);
  kept->endpoint = std::make_unique<Endpoint>(config);
  kept->callbacks = new CallbackPool(config.max_operations * config.shards);
  kept->events.owner = kept;
  kept->events.queue = &kept->endpoint->events();
  kept->events.alive.store(true, std::memory_order_release);
  kept->alive.store(true, std::memory_order_release);
  *result = kept;
  return MLTCP_OK;
}

mltcp_code write_blob(std::span<const std::byte> from, void* blob, std::size_t* size) noexcept {
  const std::size_t capacity = *size;
  *size = 0;
  if (capacity < from.size()) return fail(Code::too_long, "there is too little room for the address; give 64 bytes");
  std::memcpy(blob, from.data(), from.size());
  *size = from.size();
  return MLTCP_OK;
}

std::span<const std::byte> bytes_of(const void* data, std::size_t size) noexcept {
  return {static_cast<const std::byte*>(data), size};
}
std::span<std::byte> bytes_of(void* data, std::size_t size) noexcept { return {static_cast<std::byte*>(data), size}; }

// ---- Posting ----

/// Converts post options. If they contain a callback, reserves a place for the callback. post() frees the place if
/// posting fails.
mltcp_code read_options(mltcp_endpoint& handle, const mltcp_post_options* given, const mltcp_operation* operation,
                        PostOptions& options) noexcept {
  mltcp_post_options own;
  std::memset(&own, 0, sizeof own);
  if (const mltcp_code code = read_struct(given, own, "mltcp_post_options"); code != MLTCP_OK) return code;
  if (own.time_limit_ns < 0) return fail(Code::invalid, "time_limit_ns is negative; give 0 for no limit");
  if (own.time_limit_ns > 0) options.time_limit = Nanos(own.time_limit_ns);
  options.context = own.context;
  if (own.callback != nullptr) {
    options.callback = CallbackPool::call_back;
    options.context = handle.callbacks->take(own.callback, own.context);
    return options.context != nullptr ? MLTCP_OK : fail(Code::queue_full);
  }
  if (own.queue == nullptr) {
    return operation != nullptr ? MLTCP_OK
                                : fail(Code::invalid,
                                       "the operation's completion could not be reported; give an operation pointer, a "
                                       "queue or a callback");
  }
  if (!own.queue->alive.load(std::memory_order_acquire))
    return fail(Code::destroyed, "the queue was destroyed; create another");
  if (own.queue->owner != &handle)
    return fail(Code::invalid, "the queue belongs to another endpoint; create a queue of this endpoint");
  options.queue = own.queue->queue;
  return MLTCP_OK;
}

/// Returns the error of a failed post. If the connection has ended, the error text contains the cause.
mltcp_code keep_post_error(const mltcp_endpoint& handle, mltcp_connection connection, Code code) {
  Code end = Code::ok;
  Cause cause = Cause::none;
  if (code != Code::ok && connection != 0 && handle.endpoint->how_ended(connection, end, cause) == Code::ok &&
      end == code)
    return fail(code, to_text(code, cause));
  return keep_error(handle, code);
}

/// Calls `body` with the endpoint, the options and the operation handle to set. `connection` is the connection of the
/// operation; 0 if there is none.
template <typename Body>
mltcp_code post(mltcp_endpoint* handle, mltcp_connection connection, const mltcp_post_options* given,
                mltcp_operation* operation, Body body, bool needs_place = true) noexcept {
  if (operation != nullptr) *operation = 0;
  return with(handle, [&](Endpoint& endpoint) -> mltcp_code {
    PostOptions options;
    const mltcp_operation nobody = 0;
    const mltcp_code read = read_options(*handle, given, needs_place ? operation : &nobody, options);
    if (read != MLTCP_OK) return read;
    OperationHandle posted = 0;
    // A callback may use the handle before `body` returns, so `body` sets the program's variable directly.
    const Code code = body(endpoint, options, operation != nullptr ? *operation : posted);
    if (code != Code::ok && options.callback != nullptr) CallbackPool::give_back(options.context);
    return keep_post_error(*handle, connection, code);
  });
}

mltcp_code check_limit(std::int64_t limit_ns) noexcept {
  return limit_ns >= 0
             ? MLTCP_OK
             : fail(Code::invalid, "the limit is negative; give 0 to return at once, MLTCP_FOREVER for no limit");
}

/// Calls `take(endpoint, completion)`. If the result is Code::ok, writes the completion to `end`.
template <typename Take>
mltcp_code take_end(mltcp_endpoint* handle, mltcp_completion* end, Take take) noexcept {
  if (end != nullptr)
    if (const mltcp_code code = check_out(end, "the completion"); code != MLTCP_OK) return code;
  return with(handle, [&](Endpoint& endpoint) -> mltcp_code {
    Completion completion;
    const Code code = take(endpoint, completion);
    if (code == Code::ok && end != nullptr) {
      mltcp_completion own = to_c(completion);
      write_struct(end, end->struct_size, own);
    }
    return keep_error(*handle, code);
  });
}

// ---- Queues ----

/// Returns the entry at `index` of an array whose entries are `size` bytes long.
mltcp_completion* entry(mltcp_completion* ends, std::size_t index, std::uint32_t size) noexcept {
  return reinterpret_cast<mltcp_completion*>(reinterpret_cast<unsigned char*>(ends) + index * size);
}

/// Calls `first(out, count)` for the first completions, and then polls for more.
template <typename First>
mltcp_code drain(mltcp_queue* queue, mltcp_completion* ends, std::size_t capacity, std::size_t* count,
                 First first) noexcept {
  if (count == nullptr) return refuse_null("count");
  *count = 0;
  if (queue == nullptr) return refuse_null("the queue");
  if (!queue->alive.load(std::memory_order_acquire))
    return fail(Code::destroyed, "the queue was destroyed; create another");
  if (capacity == 0) return fail(Code::invalid, "there is room for no completion; give room for one or more");
  if (const mltcp_code code = check_out(ends, "the first completion"); code != MLTCP_OK) return code;
  const std::uint32_t size = ends->struct_size;
  std::array<Completion, kAtOnce> some;
  const auto next = [&] { return std::span(some).first(std::min(capacity - *count, kAtOnce)); };
  std::size_t got = 0;
  const Code code = first(next(), got);
  if (code != Code::ok) return fail(code);
  while (got > 0) {
    for (std::size_t i = 0; i < got; ++i) {
      mltcp_completion own = to_c(some[i]);
      write_struct(entry(ends, (*count)++, size), size, own);
    }
    got = *count < capacity ? queue->queue->poll(next()) : 0;
  }
  return MLTCP_OK;
}

}  // namespace
}  // namespace mltcp::endpoint::c

using namespace mltcp::endpoint;     // NOLINT(google-build-using-namespace): the rest is the C interface
using namespace mltcp::endpoint::c;  // NOLINT(google-build-using-namespace)
using mltcp::Nanos;

// ---- Version, codes ----

uint32_t mltcp_version() { return MLTCP_VERSION; }
const char* mltcp_version_text() { return MLTCP_VERSION_TEXT; }

const char* mltcp_device_forms() {
  static const std::string forms = []() -> std::string {
    try {
      register_datapaths_once();
      std::string all;
      for (const mltcp::HostDatapathKind& kind : mltcp::host_datapaths()) {
        if (!all.empty()) all += "; ";
        all += kind.forms;
      }
      return all;
    } catch (...) {
      return {};
    }
  }();
  return forms.c_str();
}

const char* mltcp_code_name(mltcp_code code) {
  return name_of(code >= 0 && code < kCodes ? static_cast<Code>(code) : Code{kCodes}).data();
}
const char* mltcp_code_text(mltcp_code code) {
  return to_text(code >= 0 && code < kCodes ? static_cast<Code>(code) : Code{kCodes}).data();
}

// ---- Endpoints ----

mltcp_code mltcp_endpoint_options_init_sized(mltcp_endpoint_options* options, size_t struct_size) {
  if (options == nullptr) return refuse_null("options");
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(struct_size, UINT32_MAX));
  if (!is_struct_size(size)) return refuse_struct_size("mltcp_endpoint_options", size);
  mltcp_endpoint_options own = default_options();
  write_struct(options, size, own);
  return MLTCP_OK;
}

mltcp_code mltcp_endpoint_open(const mltcp_endpoint_options* options, mltcp_endpoint** endpoint) {
  if (endpoint == nullptr) return refuse_null("endpoint");
  *endpoint = nullptr;
  mltcp_endpoint_options own = default_options();
  if (const mltcp_code code = read_struct(options, own, "mltcp_endpoint_options"); code != MLTCP_OK) return code;
  return guarded([&]() -> mltcp_code { return open_endpoint(own, endpoint); });
}

mltcp_code mltcp_endpoint_close(mltcp_endpoint* endpoint) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.close()); });
}

mltcp_code mltcp_endpoint_destroy(mltcp_endpoint* endpoint) {
  if (endpoint == nullptr) return MLTCP_OK;
  if (!endpoint->alive.exchange(false, std::memory_order_acq_rel))
    return fail(Code::destroyed, "the endpoint was destroyed before; destroy each once");
  endpoint->events.alive.store(false, std::memory_order_release);
  CallbackPool* const callbacks = endpoint->callbacks;
  return guarded([&]() -> mltcp_code {
    endpoint->endpoint.reset();
    callbacks->drop();
    return MLTCP_OK;
  });
}

mltcp_code mltcp_endpoint_address(mltcp_endpoint* endpoint, void* blob, size_t* size) {
  if (blob == nullptr || size == nullptr) return refuse_null(blob == nullptr ? "blob" : "size");
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return write_blob(one.address().bytes(), blob, size); });
}

mltcp_code mltcp_address_to_hex(const void* blob, size_t size, char* hex, size_t capacity) {
  if (blob == nullptr || hex == nullptr) return refuse_null(blob == nullptr ? "blob" : "hex");
  if (capacity > 0) *hex = '\0';
  if (size > MLTCP_ADDRESS_BYTES) return fail(Code::bad_address, "an address has 64 bytes at most; pass one address");
  if (capacity < 2 * size + 1) return fail(Code::too_long, "there is too little room for the address; give 129 bytes");
  const auto* const bytes = static_cast<const unsigned char*>(blob);
  for (std::size_t i = 0; i < size; ++i) {
    hex[2 * i] = kHex[bytes[i] >> 4];
    hex[2 * i + 1] = kHex[bytes[i] & 0xF];
  }
  hex[2 * size] = '\0';
  return MLTCP_OK;
}

mltcp_code mltcp_address_from_hex(const char* hex, void* blob, size_t* size) {
  if (hex == nullptr) return refuse_null("hex");
  if (blob == nullptr || size == nullptr) return refuse_null(blob == nullptr ? "blob" : "size");
  const std::size_t capacity = *size;
  *size = 0;
  const std::size_t length = std::strlen(hex);
  if (length % 2 != 0 || length > std::size_t{2} * MLTCP_ADDRESS_BYTES)
    return fail(Code::bad_address, "the text is not a hexadecimal address; copy all of it, and nothing else");
  if (capacity < length / 2) return fail(Code::too_long, "there is too little room for the address; give 64 bytes");
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  auto* const bytes = static_cast<unsigned char*>(blob);
  for (std::size_t i = 0; i < length / 2; ++i) {
    const int high = digit(hex[2 * i]);
    const int low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      return fail(Code::bad_address,
                  "the text has characters other than 0-9 and a-f; copy the address as it was printed");
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  *size = length / 2;
  return MLTCP_OK;
}

mltcp_code mltcp_address_text(const void* blob, size_t size, char* text, size_t capacity) {
  if (blob == nullptr) return refuse_null("blob");
  return guarded([&]() -> mltcp_code {
    EndpointAddress address;
    std::string why;
    const Code code = EndpointAddress::parse(bytes_of(blob, size), address, &why);
    if (code != Code::ok) return fail(code, why);
    return write_text(to_text(address), text, capacity);
  });
}

mltcp_code mltcp_endpoint_description(mltcp_endpoint* endpoint, char* text, size_t capacity) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return write_text(one.description(), text, capacity); });
}
mltcp_code mltcp_endpoint_failure(mltcp_endpoint* endpoint, char* text, size_t capacity) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return write_text(one.failure(), text, capacity); });
}
mltcp_code mltcp_now(mltcp_endpoint* endpoint, int64_t* now_ns) {
  if (now_ns == nullptr) return refuse_null("now_ns");
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    *now_ns = one.now().count;
    return MLTCP_OK;
  });
}

// ---- Driving ----

mltcp_code mltcp_progress(mltcp_endpoint* endpoint, size_t* ended) {
  if (ended != nullptr) *ended = 0;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    if (one.config().driving != Driving::caller) return fail(Code::unsupported);
    const std::size_t count = one.progress();
    if (ended != nullptr) *ended = count;
    return MLTCP_OK;
  });
}
mltcp_code mltcp_endpoint_file(mltcp_endpoint* endpoint, int* file) {
  if (file == nullptr) return refuse_null("file");
  *file = -1;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    *file = one.file();
    return *file >= 0 ? MLTCP_OK : fail(Code::unsupported);
  });
}
mltcp_code mltcp_endpoint_arm(mltcp_endpoint* endpoint) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.arm()); });
}

// ---- Connections ----

mltcp_code mltcp_connect(mltcp_endpoint* endpoint, const void* blob, size_t size, int32_t kind,
                         const mltcp_post_options* options, mltcp_connection* connection, mltcp_operation* operation) {
  if (connection != nullptr) *connection = 0;
  if (operation != nullptr) *operation = 0;
  if (blob == nullptr || connection == nullptr) return refuse_null(blob == nullptr ? "blob" : "connection");
  if (kind != MLTCP_ORDERED && kind != MLTCP_TAGGED)
    return fail(Code::invalid, "a connection is MLTCP_ORDERED or MLTCP_TAGGED; give one of the two");
  std::string why;
  const mltcp_code code = post(
      endpoint, 0, options, operation,
      [&](Endpoint& one, const PostOptions& post_options, OperationHandle& posted) {
        EndpointAddress checked;
        if (const Code parsed = EndpointAddress::parse(bytes_of(blob, size), checked, &why); parsed != Code::ok)
          return parsed;
        const ConnectOptions all{static_cast<ConnectionKind>(kind), post_options};
        return one.connect(bytes_of(blob, size), all, *connection, operation != nullptr ? &posted : nullptr);
      },
      false);
  return why.empty() ? code : fail(static_cast<Code>(code), why);
}

mltcp_code mltcp_accept(mltcp_endpoint* endpoint, mltcp_connection* connection, mltcp_completion* end,
                        int64_t limit_ns) {
  if (connection == nullptr) return refuse_null("connection");
  *connection = 0;
  if (const mltcp_code code = check_limit(limit_ns); code != MLTCP_OK) return code;
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  return take_end(endpoint, end, [&](Endpoint& one, Completion& event) {
    if (one.config().event_callback != nullptr || !one.config().accepts) return Code::unsupported;
    for (;;) {
      const std::int64_t passed = std::chrono::nanoseconds(Clock::now() - begun).count();
      const Nanos left =
          limit_ns == MLTCP_FOREVER ? Nanos::never() : Nanos(std::max<std::int64_t>(limit_ns - passed, 0));
      std::size_t count = 0;
      if (const Code code = one.events().wait({&event, 1}, count, left); code != Code::ok) return code;
      if (event.kind != Completion::Kind::accepted) continue;
      *connection = event.connection;
      return Code::ok;
    }
  });
}

mltcp_code mltcp_close(mltcp_endpoint* endpoint, mltcp_connection connection) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.close(connection)); });
}
mltcp_code mltcp_abort(mltcp_endpoint* endpoint, mltcp_connection connection) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.abort(connection)); });
}
mltcp_code mltcp_peer(mltcp_endpoint* endpoint, mltcp_connection connection, void* blob, size_t* size) {
  if (blob == nullptr || size == nullptr) return refuse_null(blob == nullptr ? "blob" : "size");
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    EndpointAddress peer;
    const Code code = one.peer(connection, peer);
    if (code == Code::ok) return write_blob(peer.bytes(), blob, size);
    *size = 0;
    return keep_error(*endpoint, code);
  });
}

// ---- Messages ----

mltcp_code mltcp_send(mltcp_endpoint* endpoint, mltcp_connection connection, const void* message, size_t size,
                      uint64_t tag, const mltcp_post_options* options, mltcp_operation* operation) {
  return post(endpoint, connection, options, operation,
              [&](Endpoint& one, const PostOptions& given, OperationHandle& posted) {
                return one.send(connection, bytes_of(message, size), tag, given, posted);
              });
}
mltcp_code mltcp_receive(mltcp_endpoint* endpoint, mltcp_connection connection, void* buffer, size_t size, uint64_t tag,
                         const mltcp_post_options* options, mltcp_operation* operation) {
  return post(endpoint, connection, options, operation,
              [&](Endpoint& one, const PostOptions& given, OperationHandle& posted) {
                return one.receive(connection, bytes_of(buffer, size), tag, given, posted);
              });
}
mltcp_code mltcp_send_tagged(mltcp_endpoint* endpoint, mltcp_connection connection, const void* message, size_t size,
                             uint64_t tag, const mltcp_post_options* options, mltcp_operation* operation) {
  return post(endpoint, connection, options, operation,
              [&](Endpoint& one, const PostOptions& given, OperationHandle& posted) {
                return one.send_tagged(connection, bytes_of(message, size), tag, given, posted);
              });
}
mltcp_code mltcp_receive_tagged(mltcp_endpoint* endpoint, mltcp_connection connection, void* buffer, size_t size,
                                uint64_t tag, uint64_t mask, const mltcp_post_options* options,
                                mltcp_operation* operation) {
  return post(endpoint, connection, options, operation,
              [&](Endpoint& one, const PostOptions& given, OperationHandle& posted) {
                return one.receive_tagged(connection, bytes_of(buffer, size), tag, mask, given, posted);
              });
}
mltcp_code mltcp_peek(mltcp_endpoint* endpoint, mltcp_connection connection, uint64_t tag, uint64_t mask, int32_t take,
                      const mltcp_post_options* options, mltcp_operation* operation) {
  if (take != 0 && take != 1) return fail(Code::invalid, "take is 0 or 1; give one of the two");
  return post(endpoint, connection, options, operation,
              [&](Endpoint& one, const PostOptions& given, OperationHandle& posted) {
                return one.peek(connection, tag, mask, static_cast<Take>(take), given, posted);
              });
}
mltcp_code mltcp_receive_message(mltcp_endpoint* endpoint, mltcp_message message, void* buffer, size_t size,
                                 const mltcp_post_options* options, mltcp_operation* operation) {
  return post(endpoint, 0, options, operation, [&](Endpoint& one, const PostOptions& given, OperationHandle& posted) {
    return one.receive_message(message, bytes_of(buffer, size), given, posted);
  });
}

// ---- Operations ----

mltcp_code mltcp_cancel(mltcp_endpoint* endpoint, mltcp_operation operation) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.cancel(operation)); });
}
mltcp_code mltcp_wait(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end, int64_t limit_ns) {
  if (const mltcp_code code = check_limit(limit_ns); code != MLTCP_OK) return code;
  return take_end(endpoint, end,
                  [&](Endpoint& one, Completion& out) { return one.wait(operation, out, Nanos(limit_ns)); });
}
mltcp_code mltcp_test(mltcp_endpoint* endpoint, mltcp_operation operation, mltcp_completion* end) {
  return take_end(endpoint, end, [&](Endpoint& one, Completion& out) { return one.test(operation, out); });
}
mltcp_code mltcp_forget(mltcp_endpoint* endpoint, mltcp_operation operation) {
  return with(endpoint, [&](Endpoint& one) -> mltcp_code { return keep_error(*endpoint, one.forget(operation)); });
}
mltcp_code mltcp_completion_text(const mltcp_completion* completion, char* text, size_t capacity) {
  if (completion == nullptr) return refuse_null("the completion");
  mltcp_completion own;
  std::memset(&own, 0, sizeof own);
  if (const mltcp_code code = read_struct(completion, own, "mltcp_completion"); code != MLTCP_OK) return code;
  return guarded([&]() -> mltcp_code { return write_text(to_text(from_c(own)), text, capacity); });
}

// ---- Queues ----

mltcp_code mltcp_queue_create(mltcp_endpoint* endpoint, uint32_t places, mltcp_queue** queue) {
  if (queue == nullptr) return refuse_null("queue");
  *queue = nullptr;
  return with(endpoint, [&](Endpoint& one) -> mltcp_code {
    auto handle = std::make_unique<mltcp_queue>();
    handle->own = one.make_queue(places);
    handle->queue = handle->own.get();
    handle->owner = endpoint;
    handle->alive.store(true, std::memory_order_release);
    *queue = handle.release();
    remember(queues, *queue);
    return MLTCP_OK;
  });
}
mltcp_code mltcp_endpoint_events(mltcp_endpoint* endpoint, mltcp_queue** queue) {
  if (queue == nullptr) return refuse_null("queue");
  *queue = nullptr;
  return with(endpoint, [&](Endpoint&) -> mltcp_code {
    *queue = &endpoint->events;
    return MLTCP_OK;
  });
}
mltcp_code mltcp_queue_destroy(mltcp_queue* queue) {
  if (queue == nullptr) return MLTCP_OK;
  if (queue == &queue->owner->events)
    return fail(Code::invalid, "the queue of events belongs to its endpoint; do not destroy it");
  if (!queue->alive.exchange(false, std::memory_order_acq_rel))
    return fail(Code::destroyed, "the queue was destroyed before; destroy each once");
  queue->own.reset();
  return MLTCP_OK;
}
mltcp_code mltcp_queue_poll(mltcp_queue* queue, mltcp_completion* ends, size_t capacity, size_t* count) {
  return drain(queue, ends, capacity, count, [&](std::span<Completion> out, std::size_t& got) {
    got = queue->queue->poll(out);
    return Code::ok;
  });
}
mltcp_code mltcp_queue_wait(mltcp_queue* queue, mltcp_completion* ends, size_t capacity, size_t* count,
                            int64_t limit_ns) {
  if (count != nullptr) *count = 0;
  if (const mltcp_code code = check_limit(limit_ns); code != MLTCP_OK) return code;
  return drain(queue, ends, capacity, count, [&](std::span<Completion> out, std::size_t& got) {
    return queue->queue->wait(out, got, Nanos(limit_ns));
  });
}
mltcp_code mltcp_queue_file(mltcp_queue* queue, int* file) {
  if (queue == nullptr || file == nullptr) return refuse_null(queue == nullptr ? "the queue" : "file");
  *file = -1;
  if (!queue->alive.load(std::memory_order_acquire))
    return fail(Code::destroyed, "the queue was destroyed; create another");
  *file = queue->queue->file();
  return MLTCP_OK;
}
mltcp_code mltcp_queue_arm(mltcp_queue* queue) {
  if (queue == nullptr) return refuse_null("the queue");
  if (!queue->alive.load(std::memory_order_acquire))
    return fail(Code::destroyed, "the queue was destroyed; create another");
  const Code code = queue->queue->arm();
  return code == Code::ok ? MLTCP_OK : fail(code);
}
