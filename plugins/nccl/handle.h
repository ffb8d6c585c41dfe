// The handle that listen() returns and that NCCL passes to the peer's connect(), and the first message on each
// connection, which names the listener.
//
// The handle has 128 bytes, in network byte order (offset, length, content):
//
//    0  4  magic "MLTN"          14  2  length of the endpoint's address, at most 64
//    4  1  format version, 1     16 64  address of the endpoint (endpoint/address.h), padded with 0
//    5  1  0                     80  4  CRC-32C (RFC 3720 appendix B.4) of the first 80 bytes
//    6  8  token of the listener 84  4  0
//   88  8  0; the connecting process stores the number of its attempt here, while NCCL calls connect() repeatedly
//          with the handle
//
// The first message has 16 bytes: "MLTN", the version, three zero bytes, and the token.
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

/// Fills all bytes of `out`. `address` must not be empty.
void write_handle(std::span<std::byte, kHandleBytes> out, const endpoint::EndpointAddress& address,
                  std::uint64_t token) noexcept;
/// Reads a handle. Returns null if it is valid, and "cause; cure" if not. Any bytes are safe to pass.
const char* read_handle(std::span<const std::byte, kHandleBytes> handle, endpoint::EndpointAddress& address,
                        std::uint64_t& token);

/// Returns the number of the attempt that the connecting process has stored, or 0 if there is none. The checksum does
/// not cover this number. It only serves to find an attempt, whose token and address are then compared.
std::uint64_t attempt_in(std::span<const std::byte, kHandleBytes> handle) noexcept;
void note_attempt(std::span<std::byte, kHandleBytes> handle, std::uint64_t attempt) noexcept;

void write_hello(Hello& out, std::uint64_t token) noexcept;
/// Returns false if the bytes are not a valid first message.
bool read_hello(std::span<const std::byte> hello, std::uint64_t& token) noexcept;

}  // namespace mltcp::nccl
