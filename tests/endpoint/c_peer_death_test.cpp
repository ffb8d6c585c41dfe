// Tests a peer that dies at various points without closing. All operations with this peer end within its peer_timeout.
// The peer is a process that kills itself.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "c_pair.h"

namespace mltcp::c_test {
namespace {

/// The point at which the peer dies.
enum class Death {
  after_opening,
  after_accepting,
  with_a_receive_posted,
  within_a_long_message,
  with_a_message_unread,
  after_taking_a_message,
  while_it_sends,
  while_it_closes,
};
std::string name_of(const testing::TestParamInfo<Death>& info) {
  const char* const names[] = {"after_opening",         "after_accepting",       "with_a_receive_posted",
                               "within_a_long_message", "with_a_message_unread", "after_taking_a_message",
                               "while_it_sends",        "while_it_closes"};
  return names[static_cast<int>(info.param)];
}

constexpr std::size_t kLong = 64 << 20;

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/// Reads a byte of the buffer of a pending receive, which programs must not do.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize_thread))
#endif
bool is_set(const volatile unsigned char* byte) {
  return *byte != 0;
}

[[noreturn]] void be_the_peer(Death death, int out) {
  alarm(60);
  mltcp_endpoint* const endpoint = open(options_of());
  const Blob blob = blob_of(endpoint);
  if (write(out, blob.bytes, blob.size) != static_cast<ssize_t>(blob.size)) die();
  if (death == Death::after_opening) die();
  mltcp_connection connection = 0;
  if (mltcp_accept(endpoint, &connection, nullptr, kPatience) != MLTCP_OK) die();
  if (death == Death::after_accepting) die();
  std::vector<unsigned char> buffer(kLong);
  mltcp_operation operation = 0;
  if (death == Death::with_a_receive_posted || death == Death::within_a_long_message) {
    mltcp_receive_tagged(endpoint, connection, buffer.data(), buffer.size(), 2, MLTCP_WHOLE_TAG, nullptr, &operation);
    if (death == Death::within_a_long_message) {
      // Waits until a part of the message has arrived. No byte of the message is 0.
      while (!is_set(buffer.data() + (64 << 10))) usleep(10);
    }
    die();
  }
  for (mltcp_completion end = empty_completion(); end.kind == 0 || end.code == MLTCP_NOTHING;) {
    const std::int32_t take = death == Death::after_taking_a_message ? 1 : 0;
    mltcp_peek(endpoint, connection, 1, MLTCP_WHOLE_TAG, take, nullptr, &operation);
    mltcp_wait(endpoint, operation, &end, kPatience);
  }
  if (death == Death::while_it_sends)
    mltcp_send_tagged(endpoint, connection, buffer.data(), buffer.size(), 3, nullptr, &operation);
  if (death == Death::while_it_closes) mltcp_close(endpoint, connection);
  die();
}

class CPeerDeath : public testing::TestWithParam<Death> {};

TEST_P(CPeerDeath, whatever_waits__ends) {
  int pipes[2] = {-1, -1};
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) be_the_peer(GetParam(), pipes[1]);
  close(pipes[1]);
  Blob blob;
  const ssize_t size = read(pipes[0], blob.bytes, sizeof blob.bytes);
  ASSERT_GT(size, 0);
  mltcp_endpoint* const endpoint = open(options_of());
  std::vector<unsigned char> message(kLong, 7);
  std::vector<unsigned char> buffer(kLong);
  mltcp_connection connection = 0;
  std::vector<mltcp_operation> operations(6);
  // A post fails at once if the endpoint already knows that the peer is dead.
  std::vector<mltcp_code> posted(6, MLTCP_OK);
  ASSERT_EQ(mltcp_connect(endpoint, blob.bytes, static_cast<std::size_t>(size), MLTCP_TAGGED, nullptr, &connection,
                          &operations[0]),
            MLTCP_OK);
  posted[1] = mltcp_send_tagged(endpoint, connection, message.data(), 10, 1, nullptr, &operations[1]);
  posted[2] = mltcp_send_tagged(endpoint, connection, message.data(), message.size(), 2, nullptr, &operations[2]);
  posted[3] = mltcp_receive_tagged(endpoint, connection, buffer.data(), buffer.size(), 3, MLTCP_WHOLE_TAG, nullptr,
                                   &operations[3]);
  posted[4] = mltcp_receive_tagged(endpoint, connection, buffer.data(), 8, 4, MLTCP_WHOLE_TAG, nullptr, &operations[4]);
  posted[5] = mltcp_receive_tagged(endpoint, connection, buffer.data(), 8, 5, MLTCP_WHOLE_TAG, nullptr, &operations[5]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    mltcp_completion end = empty_completion();
    if (posted[i] == MLTCP_OK)
      end = end_of(endpoint, operations[i], 10'000 * kMillisecond);
    else
      end.code = posted[i];
    const bool was_known = i == 0 && GetParam() >= Death::within_a_long_message;
    const bool was_taken = i == 1 && GetParam() >= Death::with_a_message_unread;
    const bool may_be = i <= 1;  // success and failure are both right, depending on timing
    if (was_known || was_taken) {
      EXPECT_EQ(end.code, MLTCP_OK) << i << " " << text_of(end);
    } else if (GetParam() == Death::while_it_closes) {
      EXPECT_TRUE(end.code == MLTCP_UNREACHABLE || end.code == MLTCP_CLOSED || end.code == MLTCP_ABORTED)
          << i << " " << text_of(end);
    } else {
      EXPECT_TRUE(end.code == MLTCP_UNREACHABLE || (may_be && end.code == MLTCP_OK)) << i << " " << text_of(end);
    }
  }
  // The limit is 1.5 times the peer's timeout plus a margin for a busy machine.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
  EXPECT_EQ(mltcp_endpoint_destroy(endpoint), MLTCP_OK);
  close(pipes[0]);
}

INSTANTIATE_TEST_SUITE_P(Points, CPeerDeath,
                         testing::Values(Death::after_opening, Death::after_accepting, Death::with_a_receive_posted,
                                         Death::within_a_long_message, Death::with_a_message_unread,
                                         Death::after_taking_a_message, Death::while_it_sends, Death::while_it_closes),
                         name_of);

}  // namespace
}  // namespace mltcp::c_test
