// A communicator of NCCL: one direction of one connection, with a fixed number of requests in progress. An ordered
// connection already does what NCCL needs: messages arrive in the order in which both sides posted, and a message
// without a buffer waits at its sender.
//
// A request ends on the endpoint's thread, in a callback that writes to the Request. test() only reads the Request.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/endpoint/endpoint.h"
#include "mltcp/plugins/nccl/handle.h"
#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

class Comm;
class Device;

struct Request {
  enum class State : std::uint8_t { free, pending, done };
  std::atomic<State> state{State::free};
  Comm* comm = nullptr;
  endpoint::Completion end;  ///< valid in state done; if the code is ok, only code and bytes are set
};

enum class Direction : std::uint8_t { send, receive };

/// A communicator is used by one thread at a time, as NCCL guarantees.
class Comm {
 public:
  Comm(Device& device, endpoint::Endpoint& endpoint, Direction direction);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  /// Posts a message or a buffer of at most 2^31 - 1 bytes. NCCL may reuse this memory when the request has ended.
  /// `request` is null if the maximum number of requests is in progress; NCCL then tries again later. Returns success
  /// even if the connection has ended; in that case the request reports it.
  Result post(std::span<std::byte> bytes, void** request) noexcept;
  /// Ends the connection and waits at most about 5 s until NCCL's memory is no longer used. Returns false if this
  /// memory is still used; in that case do not destroy the communicator.
  bool close() noexcept;

  /// Sets `done` to 1 if the request has succeeded, and to 0 if not. Returns the failure if the request has failed, and
  /// logs the communicator's first failure. Frees an ended request for reuse.
  static Result test(Request& request, int* done, int* sizes) noexcept;

  [[nodiscard]] Device& device() noexcept { return device_; }
  [[nodiscard]] endpoint::ConnectionHandle connection() const noexcept { return connection_; }

  // ---- Setting up a connection ----

  /// Begins to connect to `peer` and to send it `token`. connected() reports the result.
  void connect(const endpoint::EndpointAddress& peer, std::uint64_t token) noexcept;
  [[nodiscard]] bool is_to(const endpoint::EndpointAddress& peer, std::uint64_t token) const noexcept {
    return peer_ == peer && token_ == token;
  }
  /// Returns the result of connect() when the listener that the first message names has answered, and null until then.
  /// The arrival of the first message is no proof of success, because the listener may be gone.
  [[nodiscard]] const endpoint::Completion* connected() const noexcept;
  void accepted(endpoint::ConnectionHandle connection) noexcept { connection_ = connection; }

 private:
  static void on_end(void* context, const endpoint::Completion& end) noexcept;
  /// Ends a request that cannot be posted.
  void end_at_once(Request& request, endpoint::Code code, Bytes bytes) const noexcept;
  [[nodiscard]] bool any_pending() const noexcept;
  /// Waits until no request is pending. Returns false after `limit`.
  [[nodiscard]] bool wait_for_ends(Nanos limit) const noexcept;
  void fail(const Request& request) noexcept;

  Device& device_;
  endpoint::Endpoint& endpoint_;
  const Direction direction_;
  endpoint::ConnectionHandle connection_ = 0;
  bool reported_failure_ = false;
  std::uint32_t next_ = 0;  ///< index of the request to try first
  std::array<Request, kRequests> requests_;

  endpoint::EndpointAddress peer_;
  std::uint64_t token_ = 0;
  Hello hello_{};
  Request connecting_;  ///< request for the connection
  Request greeting_;    ///< request for the first message on the connection
  Request welcome_;     ///< request for the listener's answer
  std::array<std::byte, 1> answer_{};
};

/// Returns the result that NCCL gets for an operation that ended with `code`.
Result result_of(endpoint::Code code) noexcept;

}  // namespace mltcp::nccl
