// The handle that listen() returns and NCCL carries to the peer's connect(), 128 bytes; and the first message on each
// connection, which names the listener.
//
// The handle, in network byte order:
//
//    0  4  magic "MLTN"          14  2  length of the endpoint's address, at most 64
//    4  1  format version, 1     16 64  address of the endpoint (endpoint/address.h), filled up with 0
//    5  1  0                     80  4  CRC-32C (RFC 3720 appendix B.4) of the 80 bytes before
//    6  8  token of the listener 84  4  0
//   88  8  0; the connecting process stores the number of its attempt here, while NCCL calls connect() again and
//          again with the handle
//
// The first message: "MLTN", the version, three zero bytes, the token: 16 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/endpoint/address.h"
#include "mltcp/plugins/nccl/net_api.h"

namespace mltcp::nccl {

inline constexpr std::size_t kHelloBytes = 16;
using Hello = std::array<std::byte, kHelloBytes>;

/// Fills all of `out`. `address` must not be empty.
void write_handle(std::span<std::byte, kHandleBytes> out, const endpoint::EndpointAddress& address,
                  std::uint64_t token) noexcept;
/// Null if `handle` is valid, else "cause; cure". Any bytes are safe to pass.
const char* read_handle(std::span<const std::byte, kHandleBytes> handle, endpoint::EndpointAddress& address,
                        std::uint64_t& token);

/// The number of the attempt that the connecting process has stored; 0: none. Not covered by the checksum: it only
/// finds an attempt, whose token and address are then compared.
std::uint64_t attempt_in(std::span<const std::byte, kHandleBytes> handle) noexcept;
void note_attempt(std::span<std::byte, kHandleBytes> handle, std::uint64_t attempt) noexcept;

void write_hello(Hello& out, std::uint64_t token) noexcept;
/// False if it is not a hello.
bool read_hello(std::span<const std::byte> hello, std::uint64_t& token) noexcept;

}  // namespace mltcp::nccl
