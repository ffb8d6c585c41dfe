// A communicator of NCCL's: one direction of one connection, with a place for each request that may be under way. An
// ordered connection does what NCCL wants by itself: messages land in the order in which both sides posted, and one for
// which there is no buffer yet waits at its sender.
//
// A request ends on the endpoint's thread, by a callback that writes to its place; test() reads that and asks nobody.
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
  endpoint::Completion end;  ///< once done; of ends that are ok, code and bytes alone
};

enum class Direction : std::uint8_t { send, receive };

/// Used by one thread at a time, as NCCL does.
class Comm {
 public:
  Comm(Device& device, endpoint::Endpoint& endpoint, Direction direction);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  /// Posts a message or a buffer of at most 2^31 - 1 bytes, which is NCCL's again when the request has ended. Null in
  /// `request`: as many are under way as may be, try again later. Success also where the connection has ended: then
  /// the request tells.
  Result post(std::span<std::byte> bytes, void** request) noexcept;
  /// Ends the connection, and waits until nothing of NCCL's memory is used any more, 5 s at most; where it isn't even
  /// then, false, and the object has to stay.
  bool close() noexcept;

  /// Whether the end is there. A failure is told in one line and by the return value; the request's place is free then.
  static Result test(Request& request, int* done, int* sizes) noexcept;

  [[nodiscard]] Device& device() noexcept { return device_; }
  [[nodiscard]] endpoint::ConnectionHandle connection() const noexcept { return connection_; }

  // ---- While it is being connected ----------------------------------------------------------------------------------

  /// Begins to connect to `peer` and to tell it `token`; connected() says what has become of it.
  void connect(const endpoint::EndpointAddress& peer, std::uint64_t token) noexcept;
  [[nodiscard]] bool is_to(const endpoint::EndpointAddress& peer, std::uint64_t token) const noexcept {
    return peer_ == peer && token_ == token;
  }
  /// How it ended that the listener named by the first message has answered; null: it has not. That the message has
  /// come says nothing of the listener, which may be gone.
  [[nodiscard]] const endpoint::Completion* connected() const noexcept;
  void accepted(endpoint::ConnectionHandle connection) noexcept { connection_ = connection; }

 private:
  static void on_end(void* context, const endpoint::Completion& end) noexcept;
  /// Of what can't be posted.
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
  std::uint32_t next_ = 0;  ///< place that is looked at first
  std::array<Request, kRequests> requests_;

  endpoint::EndpointAddress peer_;
  std::uint64_t token_ = 0;
  Hello hello_{};
  Request connecting_;  ///< the connection
  Request greeting_;    ///< its first message
  Request welcome_;     ///< the answer
  std::array<std::byte, 1> answer_{};
};

/// What NCCL is told of an end that is not ok.
Result result_of(endpoint::Code code) noexcept;

}  // namespace mltcp::nccl
