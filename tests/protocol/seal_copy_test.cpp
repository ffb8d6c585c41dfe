// Tests copies of a process: by a fork, which the process notices, and by a virtual machine that is resumed twice from
// one snapshot. The system call clone() imitates the virtual machine: unlike fork(), it runs no code that would notice
// the copy.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "../transport/test_network.h"
#include "mltcp/base/system_random.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::seal_copy_test {
namespace {

using namespace testing_network;
using security::JobKey;
using security::packet_key;

pid_t resume_twice() {
  return static_cast<pid_t>(
      syscall(SYS_clone, static_cast<unsigned long>(SIGCHLD), nullptr, nullptr, nullptr, nullptr));
}

/// Results of both copies of the process. The child sends its result to this process through a pipe.
struct Both {
  ByteVector here;
  ByteVector there;
};
template <typename Copy, typename Body>
Both in_both(Copy copy, Body body) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = copy();
  Both both;
  both.here = body(child == 0);
  if (child == 0) {
    const bool wrote = ::write(pipe[1], both.here.data(), both.here.size()) == static_cast<ssize_t>(both.here.size());
    ::_exit(wrote ? 0 : 1);
  }
  ::close(pipe[1]);
  ByteVector part(65'536);
  for (ssize_t got = 0; (got = ::read(pipe[0], part.data(), part.size())) > 0;)
    both.there.insert(both.there.end(), part.begin(), part.begin() + got);
  ::close(pipe[0]);
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return both;
}

class SealCopy : public ::testing::Test {
 protected:
  SealCopy() {
    pair_.raw = [this](std::size_t from, const ByteVector& bytes) {
      if (from == 0) sent_.insert(sent_.end(), bytes.begin(), bytes.end());
    };
  }
  /// Opens a connection, and posts a receive at the server.
  ConnectionId open() {
    const auto [c, s] = pair_.connect();
    static_cast<void>(pair_.s().receive(s, buffer_, 1));
    pair_.run_for(20_ms);
    return c;
  }
  /// Returns all bytes that the client sends for one message. The child sends a message with other content than its
  /// parent.
  ByteVector sent_with(ConnectionId id, bool is_child) {
    message_.assign(152, is_child ? std::byte{'A'} : std::byte{'B'});
    sent_.clear();
    static_cast<void>(pair_.c().send(id, message_, 1));
    pair_.run_for(20_ms);
    return sent_;
  }
  ConnectionConfig config_ = keyed({packet_key(JobKey::generate())});
  Pair pair_{config_, config_};
  ByteVector sent_;
  ByteVector message_;
  ByteVector buffer_ = ByteVector(1000);
};

/// Returns the number of bytes in which two ciphertexts differ by the same bits as their messages. If both packets have
/// the same key and packet number, these are all bytes of the message.
std::size_t cancelled(const ByteVector& a, const ByteVector& b) {
  constexpr std::byte difference{'A' ^ 'B'};
  std::size_t count = 0;
  for (std::size_t i = wire::kHeaderBytes; i < std::min(a.size(), b.size()); ++i)
    if ((a[i] ^ b[i]) == difference) ++count;
  return count;
}

TEST_F(SealCopy, unnoticed_copy__draws_tags_and_keys_of_its_own) {
  pair_.connect();  // so that the shard has drawn random numbers before the copy
  const Both both = in_both(resume_twice, [&](bool) {
    sent_.clear();
    static_cast<void>(pair_.c().connect(pair_.server().address, config_, pair_.now()));
    pair_.run_for(1_us);
    return sent_;
  });
  constexpr std::size_t size = wire::kHeaderBytes + wire::kConnectFrameBytes + wire::kKeyFrameBytes;
  ASSERT_EQ(both.here.size(), size);
  ASSERT_EQ(both.there.size(), size);
  constexpr auto random_at = static_cast<std::ptrdiff_t>(size - sizeof(EndRandom));  // position of the last field
  EXPECT_FALSE(std::equal(both.here.begin() + random_at, both.here.end(), both.there.begin() + random_at));
}

TEST_F(SealCopy, connections_that_copies_make__have_different_keys) {
  const Both both = in_both(resume_twice, [&](bool is_child) { return sent_with(open(), is_child); });
  ASSERT_GE(both.here.size(), 188U);
  EXPECT_LT(cancelled(both.here, both.there), 20U);
}

// Shows the weakness that remains if neither the kernel nor the program reports the copy.
TEST_F(SealCopy, connection_that_a_copy_has_without_knowing__is_sealed_alike) {
  const ConnectionId id = open();
  const Both both = in_both(resume_twice, [&](bool is_child) { return sent_with(id, is_child); });
  EXPECT_GE(cancelled(both.here, both.there), 152U);
}

TEST_F(SealCopy, connection_of_a_copy_that_is_told__ends_in_both_without_a_packet) {
  const ConnectionId id = open();
  const Both both = in_both(resume_twice, [&](bool is_child) {
    note_process_copy();
    const ByteVector sent = sent_with(id, is_child);
    const auto ended = pair_.client().of(Kind::closed);
    EXPECT_EQ(ended.size(), 1U);
    EXPECT_TRUE(!ended.empty() && ended.front().status == Status::aborted);
    EXPECT_EQ(pair_.client().of(Kind::sent).size(), 1U);
    EXPECT_EQ(pair_.c().stats().connections, 0U);
    // A connection that each copy opens now must have other keys in each copy.
    const ByteVector later = sent_with(open(), is_child);
    return sent.empty() ? later : ByteVector();
  });
  ASSERT_GE(both.here.size(), 188U);
  ASSERT_GE(both.there.size(), 188U);
  EXPECT_LT(cancelled(both.here, both.there), 20U);
}

TEST_F(SealCopy, child_of_a_fork__sends_nothing_and_its_parent_goes_on) {
  const ConnectionId id = open();
  const Both both = in_both(fork, [&](bool is_child) { return sent_with(id, is_child); });
  EXPECT_TRUE(both.there.empty());
  EXPECT_GE(both.here.size(), 188U);
  EXPECT_EQ(pair_.server().of(Kind::received).size(), 1U);
  EXPECT_TRUE(pair_.client().of(Kind::closed).empty());
}

TEST_F(SealCopy, opening_that_a_copy_takes_part_in__ends) {
  const ConnectionId id = pair_.c().connect(pair_.server().address, config_, pair_.now());
  pair_.run_for(1_us);  // CONNECT is in flight after this
  note_process_copy();
  pair_.run_for(1_s);
  const auto ended = pair_.client().of(Kind::closed);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended.front().connection, id);
  EXPECT_EQ(ended.front().status, Status::aborted);
  EXPECT_TRUE(pair_.client().of(Kind::connected).empty());
}

TEST(UnsealedCopy, connection_without_keys__goes_on) {
  Pair pair;
  pair.connect();
  note_process_copy();
  pair.run_for(1_s);
  EXPECT_TRUE(pair.client().of(Kind::closed).empty());
}

}  // namespace
}  // namespace mltcp::seal_copy_test
