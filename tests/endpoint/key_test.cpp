// Tests endpoints of jobs with a key. Endpoints with the same key communicate. Without the key, the error is reported
// in time, and an attacker on the path cannot read any message.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "../message_of.h"
#include "../temporary_folder.h"
#include "endpoint_pair.h"
#include "mltcp/base/error.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::endpoint::key_test {
namespace {

using security::JobKey;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace testing_pair;

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Returns a file descriptor from which the key can be read.
int pipe_of(const JobKey& key) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const std::string text = key.to_text();
  EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  return ends[0];
}

class KeyTest : public EndpointPair {
 protected:
  std::string write_key(const std::string& file, const JobKey& key = JobKey::generate()) {
    const std::string path = folder_ / file;
    key.write_file(path);
    return path;
  }
  EndpointConfig keyed(std::uint32_t host, const std::string& key) const {
    EndpointConfig config = EndpointPair::config(host);
    config.key = key;
    return config;
  }
  /// Returns the error of an endpoint that is opened with `config`.
  static std::string refusal(const EndpointConfig& config) {
    return message_of<InputError>([&] { const Endpoint endpoint(config); });
  }

  /// Sends messages in both directions, ordered and tagged. Tagged messages are short and long.
  void exchange(const std::string& text) {
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    ByteVector message;
    for (int i = 0; i < 100; ++i) message.insert(message.end(), begin, begin + text.size());
    for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
      connect(kind);
      for (const std::size_t size : {text.size(), message.size()}) {
        const ByteVector sent(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
        ByteVector got(size);
        for (const bool back : {false, true}) {
          Endpoint& from = back ? *right : *left;
          Endpoint& to = back ? *left : *right;
          const ConnectionHandle out = back ? there : here;
          const ConnectionHandle in = back ? here : there;
          const OperationHandle receiving = receive_of(kind, to, in, got);
          const OperationHandle sending = send_of(kind, from, out, sent);
          EXPECT_EQ(end_of(to, receiving).code, Code::ok);
          EXPECT_EQ(end_of(from, sending).code, Code::ok);
          EXPECT_EQ(got, sent);
        }
      }
    }
  }

  TemporaryFolder folder_;
};

TEST_F(KeyTest, messages__are_found_in_a_capture_without_the_key_and_not_with_it) {
  const std::string marker = "what only the two of them may know";
  const std::string key = write_key("job.key");
  for (const bool sealed : {false, true}) {
    const std::string capture = folder_ / (sealed ? "sealed.pcapng" : "clear.pcapng");
    EndpointConfig a = sealed ? keyed(1, key) : config(1);
    a.capture = capture;
    open(a, sealed ? keyed(2, key) : config(2));
    exchange(marker);
    left.reset();
    right.reset();
    const std::string seen = text_of(capture);
    ASSERT_GT(seen.size(), 4 * 100 * marker.size());
    EXPECT_EQ(seen.find(marker) != std::string::npos, !sealed);
    EXPECT_EQ(seen.find(marker.substr(3, 8)) != std::string::npos, !sealed) << "in pieces";
  }
}

/// An endpoint connects with itself, like two devices of one process. The transport refuses a host's own CONNECT unless
/// own_address permits it.
TEST_F(KeyTest, endpoint_with_a_key__connects_with_itself) {
  open(keyed(1, write_key("job.key")), config(2));
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    OperationHandle connecting = 0;
    ASSERT_EQ(left->connect(left->address().bytes(), {.kind = kind, .post = {}}, here, &connecting), Code::ok);
    const Completion accepted = event(*left);
    ASSERT_EQ(accepted.kind, Completion::Kind::accepted);
    ASSERT_EQ(end_of(*left, connecting).code, Code::ok);
    const ByteVector sent = bytes_of(100);
    ByteVector got(sent.size());
    const OperationHandle receiving = receive_of(kind, *left, accepted.connection, got);
    const OperationHandle sending = send_of(kind, *left, here, sent);
    EXPECT_EQ(end_of(*left, receiving).code, Code::ok);
    EXPECT_EQ(end_of(*left, sending).code, Code::ok);
    EXPECT_EQ(got, sent);
  }
}

/// Endpoints with the same key connect, whether the key comes from a file, from a descriptor or from the program.
TEST_F(KeyTest, key__is_the_same_wherever_it_comes_from) {
  const JobKey key = JobKey::generate();
  const std::string path = write_key("one.key", key);
  const std::string copy = write_key("other.key", key);
  open(keyed(1, path), keyed(2, copy));
  exchange("text");
  const int pipe = pipe_of(key);
  EndpointConfig made = config(2);
  made.connection.keys = {security::packet_key(key)};
  left.reset();
  right.reset();
  open(keyed(1, "fd:" + std::to_string(pipe)), made);
  exchange("text");
  ::close(pipe);
}

TEST_F(KeyTest, peer_without_the_key__is_told_so_in_time) {
  const std::string key = write_key("job.key");
  const std::string other = write_key("other.key");
  struct Case {
    const char* what;
    EndpointConfig client;
    EndpointConfig server;
  };
  for (const Case& one :
       {Case{"the client has none", config(1), keyed(2, key)}, Case{"the server has none", keyed(1, key), config(2)},
        Case{"the client has another", keyed(1, other), keyed(2, key)}}) {
    open(one.client, one.server);
    for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
      const Nanos begun = left->now();
      const Completion end = connected(*left, right->address(), kind, here);
      EXPECT_EQ(end.code, Code::no_key) << one.what;
      EXPECT_THAT(to_text(end), AllOf(HasSubstr("connecting to 10.0.0.2:50000"), HasSubstr("no key in common"),
                                      HasSubstr("give both the same key file"), Not(HasSubstr("\n"))));
      EXPECT_LE(left->now() - begun, one.client.peer_timeout) << one.what;
      Code how = Code::ok;
      Cause cause = Cause::none;
      EXPECT_EQ(left->how_ended(here, how, cause), Code::ok);
      EXPECT_EQ(how, Code::no_key);
    }
    EndpointReport report;
    ASSERT_EQ(right->report(report), Code::ok);
    EXPECT_EQ(report.connections, 0U) << one.what;
    EXPECT_GE(report.packets.refused_connects, 3U) << one.what << ": of the ordered one, and of both of the tagged one";
    Completion event;
    EXPECT_EQ(right->events().poll({&event, 1}), 0U) << one.what;
    left.reset();
    right.reset();
  }
}

TEST_F(KeyTest, what_is_no_key_for_an_endpoint__is_refused_by_name) {
  const std::string key = write_key("job.key");
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  EXPECT_THAT(refusal(keyed(1, key)),
              AllOf(HasSubstr("key: " + key + ": users other than its owner may use this key file"), HasSubstr("0644"),
                    HasSubstr("chmod 600")));
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  EXPECT_THAT(refusal(keyed(1, folder_ / "none.key")), HasSubstr("none.key: the key file cannot be opened"));
  EndpointConfig both = keyed(1, key);
  both.connection.keys = {security::packet_key(JobKey::generate())};
  EXPECT_THAT(refusal(both), HasSubstr("key and connection.keys are both given; give one of them"));
  EndpointConfig two = config(1);
  two.connection.keys = {security::packet_key(JobKey::generate()), security::packet_key(JobKey::generate())};
  EXPECT_THAT(refusal(two), HasSubstr("connection.keys: 2 keys; an endpoint has one at most"));
}

TEST_F(KeyTest, key_that_authenticates_only__lets_messages_be_read) {
  const std::string marker = "what all may know";
  const std::string key = write_key("job.key");
  EndpointConfig a = keyed(1, key);
  EndpointConfig b = keyed(2, key);
  a.authenticate = b.authenticate = true;
  const std::string capture = folder_ / "read.pcapng";
  a.capture = capture;
  open(a, b);
  exchange(marker);
  // An endpoint that encrypts cannot connect with these endpoints.
  third = std::make_unique<Endpoint>(keyed(3, key));
  const Completion end = connected(*third, right->address(), ConnectionKind::ordered, here);
  EXPECT_EQ(end.code, Code::no_key);
  EXPECT_THAT(to_text(end), HasSubstr("or only one encrypts"));
  left.reset();
  EXPECT_NE(text_of(capture).find(marker), std::string::npos);
}

TEST_F(KeyTest, authenticate__is_refused_where_no_key_is_named) {
  EndpointConfig none = config(1);
  none.authenticate = true;
  EXPECT_EQ(refusal(none), "authenticate: there is no key; give key, or name its file in MLTCP_KEY_FILE");
  none.connection.keys = {security::packet_key(JobKey::generate())};
  EXPECT_THAT(refusal(none), HasSubstr("authenticate is for a named key, but connection.keys is given"));
}

/// Endpoints that read the key from the environment, as in plug-ins and in programs without support for keys.
class KeyOfEnvironment : public KeyTest {
 protected:
  ~KeyOfEnvironment() override {
    ::unsetenv("MLTCP_KEY_FILE");
    ::unsetenv("MLTCP_AUTHENTICATE");
  }
  static void set(const std::string& value) { ::setenv("MLTCP_KEY_FILE", value.c_str(), 1); }
};

TEST_F(KeyOfEnvironment, endpoint_that_names_no_key__takes_that) {
  const std::string key = write_key("job.key");
  const std::string other = write_key("other.key");
  set(key);
  left = std::make_unique<Endpoint>(config(1));
  set(other);
  // A key in the endpoint's configuration takes precedence over the environment.
  right = std::make_unique<Endpoint>(keyed(2, key));
  exchange("text");
  third = std::make_unique<Endpoint>(config(3));
  EXPECT_EQ(connected(*third, right->address(), ConnectionKind::ordered, here).code, Code::no_key);
  set(folder_ / "none");
  EXPECT_THAT(refusal(config(4)), AllOf(testing::StartsWith("MLTCP_KEY_FILE: "), HasSubstr("cannot be opened")));
}

TEST_F(KeyOfEnvironment, authenticate__is_what_all_of_them_do_with_it) {
  const std::string key = write_key("job.key");
  set(key);
  ::setenv("MLTCP_AUTHENTICATE", "1", 1);
  left = std::make_unique<Endpoint>(config(1));
  // With a configured key, an endpoint encrypts unless its configuration requests authentication only.
  third = std::make_unique<Endpoint>(keyed(3, key));
  EndpointConfig own = keyed(2, key);
  own.authenticate = true;
  right = std::make_unique<Endpoint>(own);
  exchange("text");
  EXPECT_EQ(connected(*third, right->address(), ConnectionKind::ordered, here).code, Code::no_key);
  ::unsetenv("MLTCP_KEY_FILE");
  EXPECT_EQ(refusal(config(4)), "MLTCP_AUTHENTICATE is 1 and MLTCP_KEY_FILE is not set; set both, or neither");
}

TEST_F(KeyOfEnvironment, pipe__is_read_once_for_all_endpoints) {
  const JobKey key = JobKey::generate();
  const int pipe = pipe_of(key);
  set("fd:" + std::to_string(pipe));
  open();
  exchange("text");
  ASSERT_TRUE(read_environment(&process_variable).key.has_value());
  EXPECT_TRUE(*read_environment(&process_variable).key == key);
  ::close(pipe);
}

}  // namespace
}  // namespace mltcp::endpoint::key_test
