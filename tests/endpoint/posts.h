// Functions that tests use to post operations for either kind of connection. Some also wait for operations of endpoints
// that have their own threads.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>
#include <span>
#include <vector>

#include "mltcp/endpoint/endpoint.h"

namespace mltcp::endpoint {

inline std::ostream& operator<<(std::ostream& out, Code code) { return out << name_of(code); }
inline std::ostream& operator<<(std::ostream& out, Completion::Kind kind) { return out << static_cast<int>(kind); }
inline std::ostream& operator<<(std::ostream& out, Cause cause) { return out << "cause " << static_cast<int>(cause); }

namespace testing_pair {

using namespace mltcp::literals;
using ByteVector = std::vector<std::byte>;

inline OperationHandle send(Endpoint& endpoint, ConnectionHandle connection, const ByteVector& message,
                            std::uint64_t tag = 0, const PostOptions& options = {}) {
  OperationHandle operation = 0;
  EXPECT_EQ(endpoint.send(connection, message, tag, options, operation), Code::ok);
  return operation;
}
inline OperationHandle receive(Endpoint& endpoint, ConnectionHandle connection, std::span<std::byte> buffer,
                               std::uint64_t tag = 0, const PostOptions& options = {}) {
  OperationHandle operation = 0;
  EXPECT_EQ(endpoint.receive(connection, buffer, tag, options, operation), Code::ok);
  return operation;
}
inline OperationHandle send_tagged(Endpoint& endpoint, ConnectionHandle connection, const ByteVector& message,
                                   std::uint64_t tag, const PostOptions& options = {}) {
  OperationHandle operation = 0;
  EXPECT_EQ(endpoint.send_tagged(connection, message, tag, options, operation), Code::ok);
  return operation;
}
inline OperationHandle receive_tagged(Endpoint& endpoint, ConnectionHandle connection, std::span<std::byte> buffer,
                                      std::uint64_t tag, std::uint64_t mask = kWholeTag,
                                      const PostOptions& options = {}) {
  OperationHandle operation = 0;
  EXPECT_EQ(endpoint.receive_tagged(connection, buffer, tag, mask, options, operation), Code::ok);
  return operation;
}
/// Sends on a connection of the given kind. Tagged messages have tag 1.
inline OperationHandle send_of(ConnectionKind kind, Endpoint& endpoint, ConnectionHandle connection,
                               const ByteVector& message) {
  return kind == ConnectionKind::ordered ? send(endpoint, connection, message)
                                         : send_tagged(endpoint, connection, message, 1);
}
inline OperationHandle receive_of(ConnectionKind kind, Endpoint& endpoint, ConnectionHandle connection,
                                  std::span<std::byte> buffer, const PostOptions& options = {}) {
  return kind == ConnectionKind::ordered ? receive(endpoint, connection, buffer, 0, options)
                                         : receive_tagged(endpoint, connection, buffer, 1, kWholeTag, options);
}

// ---- In real time ----

constexpr Nanos kPatience{30'000'000'000};

inline Completion awaited(Endpoint& endpoint, OperationHandle operation) {
  Completion end;
  EXPECT_EQ(endpoint.wait(operation, end, kPatience), Code::ok);
  return end;
}
inline Completion next_event(Endpoint& endpoint) {
  Completion event{};
  std::size_t count = 0;
  EXPECT_EQ(endpoint.events().wait({&event, 1}, count, kPatience), Code::ok);
  return event;
}
inline ConnectionHandle connection_to(std::span<const std::byte> blob, Endpoint& from, ConnectionKind kind) {
  ConnectionHandle handle = 0;
  OperationHandle operation = 0;
  EXPECT_EQ(from.connect(blob, {.kind = kind, .post = {}}, handle, &operation), Code::ok);
  const Completion end = awaited(from, operation);
  EXPECT_EQ(end.code, Code::ok) << to_text(end);
  return handle;
}

}  // namespace testing_pair
}  // namespace mltcp::endpoint
