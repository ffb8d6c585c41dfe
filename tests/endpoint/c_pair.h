// Two endpoints of the C interface on this machine's loopback, for tests with real sockets and real threads.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/mltcp.h"

namespace mltcp::c_test {

inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kPatience = 20'000 * kMillisecond;

struct Blob {
  unsigned char bytes[MLTCP_ADDRESS_BYTES] = {};
  std::size_t size = sizeof bytes;
  [[nodiscard]] std::span<const unsigned char> span() const { return std::span(bytes).first(size); }
};

inline mltcp_endpoint_options options_of(int driving = MLTCP_DRIVEN_BY_THREADS) {
  mltcp_endpoint_options options;
  EXPECT_EQ(mltcp_endpoint_options_init(&options), MLTCP_OK);
  options.address = "127.0.0.1";
  options.driving = driving;
  options.peer_timeout_ns = 400 * kMillisecond;
  options.max_connections = 16;
  options.max_operations = 64;
  options.unexpected_messages = 8;
  return options;
}

inline mltcp_endpoint* open(const mltcp_endpoint_options& options) {
  mltcp_endpoint* endpoint = nullptr;
  EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_OK) << mltcp_last_error();
  return endpoint;
}

inline void expect_opens(const mltcp_endpoint_options& options) {
  EXPECT_EQ(mltcp_endpoint_destroy(open(options)), MLTCP_OK);
}
inline mltcp_post_options post_options() {
  mltcp_post_options options;
  mltcp_post_options_init(&options);
  return options;
}
inline Blob blob_of(mltcp_endpoint* endpoint) {
  Blob blob;
  EXPECT_EQ(mltcp_endpoint_address(endpoint, blob.bytes, &blob.size), MLTCP_OK) << mltcp_last_error();
  return blob;
}

inline mltcp_completion empty_completion() {
  mltcp_completion completion;
  mltcp_completion_init(&completion);
  return completion;
}

inline std::string text_of(const mltcp_completion& completion) {
  char text[256];
  mltcp_completion_text(&completion, text, sizeof text);
  return text;
}

/// Waits for the operation and returns how it ended. The code is -1 if it has not ended within `limit` ns.
inline mltcp_completion end_of(mltcp_endpoint* endpoint, mltcp_operation operation, std::int64_t limit = kPatience) {
  mltcp_completion end = empty_completion();
  end.code = -1;
  EXPECT_EQ(mltcp_wait(endpoint, operation, &end, limit), MLTCP_OK) << mltcp_last_error();
  return end;
}

/// Connects to the endpoint with the address `blob` and returns the completion.
inline mltcp_completion connect_to(mltcp_endpoint* endpoint, std::span<const unsigned char> blob,
                                   std::int32_t kind = MLTCP_TAGGED) {
  mltcp_connection connection = 0;
  mltcp_operation operation = 0;
  EXPECT_EQ(mltcp_connect(endpoint, blob.data(), blob.size(), kind, nullptr, &connection, &operation), MLTCP_OK);
  return end_of(endpoint, operation);
}

class CInterface : public testing::Test {
 protected:
  ~CInterface() override {
    mltcp_endpoint_destroy(left);
    mltcp_endpoint_destroy(right);
  }
  void open_both(const mltcp_endpoint_options& options) {
    left = c_test::open(options);
    right = c_test::open(options);
    ASSERT_TRUE(left != nullptr && right != nullptr);
  }
  void connect(std::int32_t kind) {
    const Blob blob = blob_of(right);
    mltcp_operation operation = 0;
    ASSERT_EQ(mltcp_connect(left, blob.bytes, blob.size, kind, nullptr, &here, &operation), MLTCP_OK)
        << mltcp_last_error();
    ASSERT_EQ(mltcp_accept(right, &there, nullptr, kPatience), MLTCP_OK) << mltcp_last_error();
    const mltcp_completion end = end_of(left, operation);
    ASSERT_EQ(end.code, MLTCP_OK) << text_of(end);
    ASSERT_EQ(end.kind, MLTCP_CONNECTED);
  }
  void open_and_connect(std::int32_t kind) {
    open_both(options_of());
    connect(kind);
  }

  mltcp_endpoint* left = nullptr;
  mltcp_endpoint* right = nullptr;
  mltcp_connection here = 0;
  mltcp_connection there = 0;
};

inline std::vector<unsigned char> bytes_of(std::size_t size, unsigned seed = 1) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>((i * 131 + seed * 29) >> (i % 3));
  return bytes;
}

}  // namespace mltcp::c_test
