// A communicator of NCCL: one direction of one connection, with a place for each request in progress. An ordered
// connection already does what NCCL needs: messages arrive in the order in which both sides posted, and a message
// without a buffer waits at its sender.
//
// A request ends on the endpoint's thread, by a callback that writes to its place; test() only reads the place.
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
  endpoint::Completion end;  ///< once done; if the code is ok, only code and bytes are set
};

enum class Direction : std::uint8_t { send, receive };

/// Used by one thread at a time, as NCCL guarantees.
class Comm {
 public:
  Comm(Device& device, endpoint::Endpoint& endpoint, Direction direction);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  /// Posts a message or a buffer of at most 2^31 - 1 bytes, which NCCL may reuse when the request has ended. Null in
  /// `request`: the maximum is in progress; try again later. Returns success also if the connection has ended; then the
  /// request reports it.
  Result post(std::span<std::byte> bytes, void** request) noexcept;
  /// Ends the connection and waits until NCCL's memory is no longer used, at most 5 s. False if it still is: then the
  /// object must stay.
  bool close() noexcept;

  /// Whether the request has ended. A failure is logged in one line and returned; the request's place is then free.
  static Result test(Request& request, int* done, int* sizes) noexcept;

  [[nodiscard]] Device& device() noexcept { return device_; }
  [[nodiscard]] endpoint::ConnectionHandle connection() const noexcept { return connection_; }

  // ---- During connection set-up -------------------------------------------------------------------------------------

  /// Begins to connect to `peer` and to send it `token`; connected() reports the result.
  void connect(const endpoint::EndpointAddress& peer, std::uint64_t token) noexcept;
  [[nodiscard]] bool is_to(const endpoint::EndpointAddress& peer, std::uint64_t token) const noexcept {
    return peer_ == peer && token_ == token;
  }
  /// The result once the listener named by the first message has answered; null before. Arrival of that message alone
  /// proves nothing, as the listener may be gone.
  [[nodiscard]] const endpoint::Completion* connected() const noexcept;
  void accepted(endpoint::ConnectionHandle connection) noexcept { connection_ = connection; }

 private:
  static void on_end(void* context, const endpoint::Completion& end) noexcept;
  /// For a request that cannot be posted.
  void end_at_once(Request& request, endpoint::Code code, Bytes bytes) const noexcept;
  [[nodiscard]] bool any_pending() const noexcept;
  /// False after `limit`.
  [[nodiscard]] bool wait_for_ends(Nanos limit) const noexcept;
  void fail(const Request& request) noexcept;

  Device& device_;
  endpoint::Endpoint& endpoint_;
  const Direction direction_;
  endpoint::ConnectionHandle connection_ = 0;
  bool told_failure_ = false;
  std::uint32_t next_ = 0;  ///< place to look at first
  std::array<Request, kRequests> requests_;

  endpoint::EndpointAddress peer_;
  std::uint64_t token_ = 0;
  Hello hello_{};
  Request connecting_;  ///< the connection
  Request greeting_;    ///< its first message
  Request welcome_;     ///< the answer
  std::array<std::byte, 1> answer_{};
};

/// The result that NCCL gets for an end that is not ok.
Result result_of(endpoint::Code code) noexcept;

}  // namespace mltcp::nccl
