// Tests the plug-in with the calls of NCCL, over UDP on the loopback, with each version of the interface. Each test
// loads a copy of the shared object, so that tests have separate plug-ins with separate environments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "../../random_bytes.h"
#include "../../temporary_folder.h"
#include "loaded_plugin.h"
#include "mltcp/plugins/nccl/profiler_api.h"

namespace mltcp::nccl::harness {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Values = std::map<std::string, std::string>;

class Environment {
 public:
  explicit Environment(const Values& values) {
    for (const char* const name :
         {"MLTCP_DEVICE", "MLTCP_ADDRESS", "MLTCP_CC", "MLTCP_JOB", "MLTCP_JOB_FUNCTION", "MLTCP_PEER_TIMEOUT_MS",
          "MLTCP_REQUIRED", "MLTCP_DEBUG", "MLTCP_KEY_FILE", "MLTCP_AUTHENTICATE"})
      unsetenv(name);
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
    take_lines();
  }
};

/// Loads a copy of the shared object, because loading the same file twice has no effect.
class Copy {
 public:
  Copy() : file_(folder_ / "libnccl-net.so") {
    std::filesystem::copy_file(MLTCP_NCCL_PLUGIN, file_);
    library_ = std::make_unique<Library>(file_);
  }
  [[nodiscard]] const Library& object() const { return *library_; }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  TemporaryFolder folder_;
  std::string file_;
  std::unique_ptr<Library> library_;
};

const Values kLoopback{{"MLTCP_DEVICE", "udp:127.0.0.1"}, {"MLTCP_PEER_TIMEOUT_MS", "2000"}};

/// An initialised plug-in with one connection to itself.
class Loaded {
 public:
  explicit Loaded(int version = 8, const Values& environment = kLoopback)
      : environment_(environment), net_(copy_.object().net(version)) {
    if (net_->init(&log) != Result::success) throw std::runtime_error("init fails");
    pair = connect(*net_, *net_);
  }
  ~Loaded() {
    if (pair.send_comm != nullptr) net_->close_send(pair.send_comm);
    if (pair.receive_comm != nullptr) net_->close_receive(pair.receive_comm);
    if (pair.listen_comm != nullptr) net_->close_listen(pair.listen_comm);
    net_->finalize();
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  [[nodiscard]] Net& net() { return *net_; }
  [[nodiscard]] const Library& object() const { return copy_.object(); }
  void* send(std::vector<std::byte>& bytes) { return harness::send(*net_, pair.send_comm, bytes.data(), bytes.size()); }
  void* receive(std::vector<std::byte>& bytes) {
    return harness::receive(*net_, pair.receive_comm, bytes.data(), bytes.size());
  }
  void close_send() { EXPECT_EQ(net_->close_send(std::exchange(pair.send_comm, nullptr)), Result::success); }
  void close_receive() { EXPECT_EQ(net_->close_receive(std::exchange(pair.receive_comm, nullptr)), Result::success); }

  Pair pair;

 private:
  Environment environment_;
  Copy copy_;
  std::unique_ptr<Net> net_;
};

/// Transfers `size` bytes into a longer buffer, of `size` + 16 bytes.
void transfer(Loaded& loaded, std::size_t size) {
  SCOPED_TRACE(size);
  std::vector<std::byte> message = random_bytes(size);
  std::vector<std::byte> buffer(size + 16);
  void* const receiving = loaded.receive(buffer);
  void* const sending = loaded.send(message);
  int sent = -1;
  int received = -1;
  ASSERT_EQ(finish(loaded.net(), sending, &sent), Result::success);
  ASSERT_EQ(finish(loaded.net(), receiving, &received), Result::success);
  EXPECT_EQ(sent, static_cast<int>(size));
  EXPECT_EQ(received, static_cast<int>(size));
  EXPECT_TRUE(std::equal(message.begin(), message.end(), buffer.begin()));
  EXPECT_TRUE(std::all_of(buffer.begin() + static_cast<std::ptrdiff_t>(size), buffer.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

// ---- Every version ----

class Version : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Net, Version, testing::Values(7, 8, 9, 10, 11),
                         [](const auto& one) { return "v" + std::to_string(one.param); });

TEST_P(Version, properties__are_those_of_a_device_of_the_host) {
  Loaded loaded(GetParam());
  EXPECT_STREQ(loaded.net().name(), "MLTCP");
  int count = 0;
  ASSERT_EQ(loaded.net().devices(&count), Result::success);
  ASSERT_EQ(count, 1);
  Facts facts;
  ASSERT_EQ(loaded.net().properties(0, facts), Result::success);
  EXPECT_EQ(facts.name, "lo");
  EXPECT_EQ(facts.guid, 0U);
  EXPECT_EQ(facts.pointers, kHostPointers);
  EXPECT_GT(facts.speed_mbps, 0);
  EXPECT_EQ(facts.max_comms, 1024);
  EXPECT_EQ(facts.max_receives, 1);
  EXPECT_EQ(facts.device_type, 0);
  EXPECT_EQ(facts.max_bytes, GetParam() >= 9 ? std::size_t{1} << 30U : 0U);
  EXPECT_NE(loaded.net().properties(1, facts), Result::success);
}

TEST_P(Version, messages__arrive) {
  Loaded loaded(GetParam());
  std::vector<std::byte> memory(4096);
  void* registered = nullptr;
  EXPECT_EQ(loaded.net().add_memory(loaded.pair.send_comm, memory.data(), memory.size(), &registered), Result::success);
  EXPECT_EQ(loaded.net().remove_memory(loaded.pair.send_comm, registered), Result::success);
  for (const std::size_t size : {0UL, 1UL, 4096UL, 1'000'000UL}) transfer(loaded, size);
}

TEST_P(Version, init__writes_one_line) {
  Loaded loaded(GetParam());
  const std::vector<Line> lines = take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, LogLevel::info);
  EXPECT_THAT(lines[0].text, AllOf(HasSubstr("NET/MLTCP: version "), HasSubstr("udp:127.0.0.1"),
                                   HasSubstr("net API v" + std::to_string(GetParam())), HasSubstr("reno")));
}

TEST(Library, newest_table__is_found_first) {
  const Library library(MLTCP_NCCL_PLUGIN);
  EXPECT_EQ(library.symbol("ncclNetPlugin_v12"), nullptr);
  EXPECT_NE(library.newest_net(), nullptr);
  EXPECT_NE(library.newest_net(7), nullptr);
  EXPECT_EQ(library.newest_net(6), nullptr);
}

// ---- Messages ----

TEST(Messages, of_all_sizes__arrive) {
  Loaded loaded;
  for (const std::size_t size : {0UL, 1UL, 2UL, 1471UL, 4096UL, 65'536UL, 1UL << 20U, 64UL << 20U})
    transfer(loaded, size);
  if (std::getenv("MLTCP_NCCL_LONG") != nullptr) transfer(loaded, 1 << 30);
}

TEST(Messages, posted_before_their_buffers__wait) {
  Loaded loaded;
  std::vector<std::byte> message = random_bytes(100'000);
  void* const sending = loaded.send(message);
  int done = 1;
  EXPECT_EQ(loaded.net().test(sending, &done, nullptr), Result::success);
  EXPECT_EQ(done, 0);
  std::vector<std::byte> buffer(message.size());
  void* const receiving = loaded.receive(buffer);
  EXPECT_EQ(finish(loaded.net(), sending), Result::success);
  EXPECT_EQ(finish(loaded.net(), receiving), Result::success);
  EXPECT_EQ(buffer, message);
}

TEST(Messages, as_many_as_may_be_under_way__land_in_the_order_of_posts) {
  Loaded loaded(11);
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<void*> sending;
  std::vector<void*> receiving;
  for (std::size_t i = 0; i < kRequests; ++i) {
    messages.push_back(random_bytes(i * i * 1000, i));
    buffers.emplace_back(40 * 40 * 1000);
    sending.push_back(loaded.send(messages.back()));
  }
  void* more = &more;
  ASSERT_EQ(loaded.net().send(loaded.pair.send_comm, messages[0].data(), messages[0].size(), &more), Result::success);
  EXPECT_EQ(more, nullptr);
  for (auto& buffer : buffers) receiving.push_back(loaded.receive(buffer));
  // Waits for the latest request first, so that the plug-in must store the results of the earlier requests.
  for (std::size_t i = kRequests; i-- > 0;) {
    int size = 0;
    EXPECT_EQ(finish(loaded.net(), receiving[i], &size), Result::success);
    EXPECT_EQ(static_cast<std::size_t>(size), messages[i].size());
    EXPECT_TRUE(std::equal(messages[i].begin(), messages[i].end(), buffers[i].begin()));
    EXPECT_EQ(finish(loaded.net(), sending[i]), Result::success);
  }
  transfer(loaded, 1000);
}

TEST(Messages, both_ways_and_on_many_connections__arrive) {
  Loaded loaded;
  constexpr std::size_t count = 8;
  constexpr std::size_t size = 2'000'000;
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.push_back(connect(loaded.net(), loaded.net()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      std::vector<std::byte> message = random_bytes(size, i);
      std::vector<std::byte> buffer(size);
      for (int round = 0; round < 3; ++round) {
        void* const receiving = receive(loaded.net(), pairs[i].receive_comm, buffer.data(), size);
        void* const sending = send(loaded.net(), pairs[i].send_comm, message.data(), size);
        EXPECT_EQ(finish(loaded.net(), sending), Result::success);
        EXPECT_EQ(finish(loaded.net(), receiving), Result::success);
        EXPECT_EQ(buffer, message);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Pair& pair : pairs) close(loaded.net(), loaded.net(), pair);
}

TEST(Messages, longer_than_their_buffer__are_the_users_fault) {
  Loaded loaded;
  std::vector<std::byte> message = random_bytes(5000);
  std::vector<std::byte> buffer(4000);
  void* const receiving = loaded.receive(buffer);
  loaded.send(message);
  EXPECT_EQ(finish(loaded.net(), receiving), Result::invalid_usage);
}

// ---- Connections ----

TEST(Connections, of_one_listener__are_as_many_as_connect) {
  Loaded loaded;
  Handle handle;
  Pair first;
  ASSERT_EQ(loaded.net().listen(0, handle, &first.listen_comm), Result::success);
  std::vector<Pair> pairs(5, first);
  for (Pair& pair : pairs) connect_again(loaded.net(), loaded.net(), handle, pair);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::vector<std::byte> message = random_bytes(1000, i);
    std::vector<std::byte> buffer(1000);
    void* const sending = send(loaded.net(), pairs[i].send_comm, message.data(), message.size());
    void* const receiving = receive(loaded.net(), pairs[i].receive_comm, buffer.data(), buffer.size());
    EXPECT_EQ(finish(loaded.net(), sending), Result::success);
    EXPECT_EQ(finish(loaded.net(), receiving), Result::success);
    EXPECT_EQ(buffer, message);
  }
  for (Pair& pair : pairs) {
    pair.listen_comm = nullptr;
    close(loaded.net(), loaded.net(), pair);
  }
  EXPECT_EQ(loaded.net().close_listen(first.listen_comm), Result::success);
}

TEST(Connections, that_are_not_accepted__are_there_and_do_not_block) {
  Loaded loaded;
  Handle handle;
  void* listen_comm = nullptr;
  void* comm = &comm;
  ASSERT_EQ(loaded.net().listen(0, handle, &listen_comm), Result::success);
  EXPECT_EQ(loaded.net().accept(listen_comm, &comm), Result::success);
  EXPECT_EQ(comm, nullptr);
  while (comm == nullptr) ASSERT_EQ(loaded.net().connect(0, handle, &comm), Result::success);
  std::vector<std::byte> message = random_bytes(1000);
  void* const sending = send(loaded.net(), comm, message.data(), message.size());
  EXPECT_EQ(loaded.net().close_listen(listen_comm), Result::success);
  EXPECT_EQ(finish(loaded.net(), sending), Result::remote_error);
  EXPECT_EQ(loaded.net().close_send(comm), Result::success);
}

/// Repeats connect() until it returns an error or a connection.
Result connect_by(Net& net, Handle& handle) {
  void* comm = nullptr;
  for (;;) {
    const Result result = net.connect(0, handle, &comm);
    if (result != Result::success) return result;
    if (comm == nullptr) continue;
    net.close_send(comm);
    return result;
  }
}

TEST(Connections, to_a_listener_that_is_gone__end_with_an_error) {
  Loaded loaded;
  Handle handle;
  void* listen_comm = nullptr;
  ASSERT_EQ(loaded.net().listen(0, handle, &listen_comm), Result::success);
  ASSERT_EQ(loaded.net().close_listen(listen_comm), Result::success);
  EXPECT_EQ(connect_by(loaded.net(), handle), Result::remote_error);
}

TEST(Connections, by_damaged_or_foreign_handles__are_refused_with_a_line) {
  Loaded loaded;
  Handle good;
  void* listen_comm = nullptr;
  ASSERT_EQ(loaded.net().listen(0, good, &listen_comm), Result::success);
  for (std::size_t i = 0; i < 84; ++i) {
    Handle bad = good;
    bad.bytes[i] ^= 0x20U;
    take_lines();
    EXPECT_EQ(connect_by(loaded.net(), bad), Result::invalid_usage) << i;
    EXPECT_EQ(take_lines().size(), 1U);
  }
  Handle noted = good;  // the handle names a connection attempt that does not exist
  noted.bytes[95] = 77;
  EXPECT_EQ(connect_by(loaded.net(), noted), Result::success);
  EXPECT_EQ(loaded.net().close_listen(listen_comm), Result::success);
}

// ---- Ends ----

// Returns `count` messages or buffers of 1 MiB that contain only `value`. They are so long that some of them are partly
// in flight when a side closes.
std::vector<std::vector<std::byte>> filled(std::size_t count, std::byte value) {
  return std::vector<std::vector<std::byte>>(count, std::vector<std::byte>(1 << 20, value));
}

TEST(Ends, of_a_sender_with_requests_under_way__give_memory_back) {
  for (int round = 0; round < 5; ++round) {
    Loaded loaded;
    auto messages = filled(kRequests, std::byte{1});
    auto buffers = filled(kRequests / 2, std::byte{0});
    std::vector<void*> receiving;
    std::vector<void*> sending;
    for (auto& message : messages) sending.push_back(loaded.send(message));
    for (auto& buffer : buffers) receiving.push_back(loaded.receive(buffer));
    finish(loaded.net(), sending.front());
    loaded.close_send();
    for (auto& message : messages) std::ranges::fill(message, std::byte{2});
    // Each receive completes with the original bytes, or fails. It never delivers the bytes 2 that the sender wrote to
    // the same memory after the close.
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      finish(loaded.net(), receiving[i]);
      EXPECT_EQ(std::ranges::count(buffers[i], std::byte{2}), 0);
    }
    loaded.close_receive();
  }
}

TEST(Ends, of_a_receiver_with_requests_under_way__give_memory_back) {
  for (int round = 0; round < 5; ++round) {
    Loaded loaded;
    auto messages = filled(kRequests / 2, std::byte{1});
    auto buffers = filled(kRequests, std::byte{0});
    std::vector<void*> receiving;
    std::vector<void*> sending;
    for (auto& buffer : buffers) receiving.push_back(loaded.receive(buffer));
    for (auto& message : messages) sending.push_back(loaded.send(message));
    finish(loaded.net(), receiving.front());
    loaded.close_receive();
    for (auto& buffer : buffers) std::ranges::fill(buffer, std::byte{3});
    for (void* const request : sending) finish(loaded.net(), request);
    for (const auto& buffer : buffers) EXPECT_EQ(std::ranges::count(buffer, std::byte{1}), 0);
    loaded.close_send();
  }
}

TEST(Ends, of_a_receiver_after_the_last_message__leave_the_send_well) {
  for (int round = 0; round < 20; ++round) {
    Loaded loaded;
    std::vector<std::byte> message = random_bytes(200'000);
    std::vector<std::byte> buffer(message.size());
    void* const receiving = loaded.receive(buffer);
    void* const sending = loaded.send(message);
    ASSERT_EQ(finish(loaded.net(), receiving), Result::success);
    loaded.close_receive();
    EXPECT_EQ(finish(loaded.net(), sending), Result::success);
  }
}

TEST(Ends, of_the_peer_that_were_told__are_not_waited_for) {
  for (int round = 0; round < 5; ++round) {
    auto loaded = std::make_unique<Loaded>(11);
    loaded->close_receive();
    // Waits until the sender knows that the receiver has closed.
    std::vector<std::byte> message = random_bytes(1000);
    EXPECT_EQ(finish(loaded->net(), loaded->send(message)), Result::remote_error);
    loaded->close_send();
    const auto begun = std::chrono::steady_clock::now();
    loaded.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1)) << "what it waits at most";
  }
}

TEST(Ends, of_the_peer__are_no_error_of_isend) {
  Loaded loaded;
  loaded.close_receive();
  std::vector<std::byte> message = random_bytes(1000);
  take_lines();
  void* request = nullptr;
  EXPECT_EQ(loaded.net().send(loaded.pair.send_comm, message.data(), message.size(), &request), Result::success);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(finish(loaded.net(), request), Result::remote_error);
  // isend() must succeed even if the sender already knows that the receiver has closed.
  EXPECT_EQ(loaded.net().send(loaded.pair.send_comm, message.data(), message.size(), &request), Result::success);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(finish(loaded.net(), request), Result::remote_error);
  const std::vector<Line> lines = take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, LogLevel::warn);
  EXPECT_THAT(lines[0].text, HasSubstr("closed"));
}

// ---- Set-up ----

TEST(SetUp, wrong_interface__is_refused_and_named) {
  const Environment environment(Values{{"MLTCP_DEVICE", "udp:eth99"}});
  const Copy copy;
  const auto net = copy.object().newest_net();
  EXPECT_EQ(net->init(&log), Result::invalid_usage);
  const std::vector<Line> lines = take_lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, LogLevel::warn);
  EXPECT_THAT(lines[0].text, AllOf(HasSubstr("MLTCP_DEVICE"), HasSubstr("eth99"), HasSubstr("lo 127.0.0.1"),
                                   HasSubstr("NCCL continues without")));
}

TEST(SetUp, wrong_interface_where_mltcp_is_required__fails_the_job) {
  const Environment environment(Values{{"MLTCP_DEVICE", "udp:eth99"}, {"MLTCP_REQUIRED", "1"}});
  const Copy copy;
  const auto net = copy.object().newest_net();
  ASSERT_EQ(net->init(&log), Result::success);  // must succeed, because NCCL would otherwise choose another network
  int count = 0;
  ASSERT_EQ(net->devices(&count), Result::success);
  ASSERT_EQ(count, 1);
  Facts facts;
  ASSERT_EQ(net->properties(0, facts), Result::success);
  take_lines();
  Handle handle;
  void* comm = nullptr;
  EXPECT_EQ(net->listen(0, handle, &comm), Result::invalid_usage);
  EXPECT_EQ(net->connect(0, handle, &comm), Result::invalid_usage);
  const std::vector<Line> lines = take_lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0].text, AllOf(HasSubstr("eth99"), HasSubstr("MLTCP_REQUIRED")));
  EXPECT_EQ(net->finalize(), Result::success);
}

TEST(SetUp, wrong_settings__are_refused_and_named) {
  const Values wrong{{"MLTCP_CC", "rneo"},
                     {"MLTCP_JOB", "seven"},
                     {"MLTCP_JOB_FUNCTION", "F9"},
                     {"MLTCP_PEER_TIMEOUT_MS", "1"},
                     {"MLTCP_ADDRESS", "no.such.host.invalid"},
                     {"MLTCP_DEBUG", "yes"}};
  for (const auto& [name, value] : wrong) {
    const Environment environment(Values{{name, value}});
    const Copy copy;
    EXPECT_EQ(copy.object().newest_net()->init(&log), Result::invalid_usage) << name;
    const std::vector<Line> lines = take_lines();
    ASSERT_EQ(lines.size(), 1U) << name;
    EXPECT_THAT(lines[0].text, HasSubstr(name));
  }
}

TEST(SetUp, object_loaded_and_initialised_twice__is_one_plugin) {
  const Environment environment(kLoopback);
  const Copy copy;
  const Library again(copy.file());
  const auto first = copy.object().net(11);
  const auto second = again.net(11);
  ASSERT_EQ(first->init(&log), Result::success);
  ASSERT_EQ(second->init(&log), Result::success);
  EXPECT_EQ(take_lines().size(), 1U);
  const Pair pair = connect(*first, *second);
  close(*first, *second, pair);
  EXPECT_EQ(first->finalize(), Result::success);
  const Pair later = connect(*second, *second);
  close(*second, *second, later);
  EXPECT_EQ(second->finalize(), Result::success);
  // The plug-in can be initialised again after both uses have been released.
  ASSERT_EQ(first->init(&log), Result::success);
  close(*first, *first, connect(*first, *first));
  EXPECT_EQ(first->finalize(), Result::success);
}

TEST(SetUp, two_copies_in_a_process__talk_to_each_other) {
  Loaded one;
  Loaded other(11);
  const Pair pair = connect(one.net(), other.net());
  std::vector<std::byte> message = random_bytes(1 << 20);
  std::vector<std::byte> buffer(message.size());
  void* const sending = send(one.net(), pair.send_comm, message.data(), message.size());
  void* const receiving = receive(other.net(), pair.receive_comm, buffer.data(), buffer.size());
  EXPECT_EQ(finish(one.net(), sending), Result::success);
  EXPECT_EQ(finish(other.net(), receiving), Result::success);
  EXPECT_EQ(buffer, message);
  close(one.net(), other.net(), pair);
}

TEST(SetUp, without_settings__takes_interfaces_of_the_host) {
  const Environment environment(Values{});
  const Copy copy;
  const auto net = copy.object().newest_net();
  ASSERT_EQ(net->init(&log), Result::success);
  int count = 0;
  ASSERT_EQ(net->devices(&count), Result::success);
  EXPECT_GE(count, 1);
  close(*net, *net, connect(*net, *net));
  EXPECT_EQ(net->finalize(), Result::success);
}

// ---- Profiler ----

/// Makes the calls that NCCL makes to the profiler for a collective of a communicator and for its proxy operations.
void collective(const ProfilerV4& profiler, void* context, const char* function, std::size_t count) {
  ProfilerEvent called{};
  called.kind = kCollectiveEvent;
  called.collective = {.sequence = 0,
                       .function = function,
                       .send_buffer = nullptr,
                       .receive_buffer = nullptr,
                       .count = count,
                       .root = 0,
                       .type = "ncclFloat32",
                       .channels = 1,
                       .warps = 1,
                       .algorithm = "RING",
                       .protocol = "SIMPLE"};
  void* event = nullptr;
  ASSERT_EQ(profiler.start(context, &event, &called), Result::success);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(profiler.stop(event), Result::success);
  for (std::uint8_t channel = 0; channel < 2; ++channel) {
    ProfilerEvent operation{};
    operation.kind = kProxyOperationEvent;
    operation.parent = event;
    operation.proxy_operation = {
        .process = getpid(), .channel = channel, .peer = 1, .steps = 1, .chunk = 1, .sends = 1};
    void* unused = &unused;
    EXPECT_EQ(profiler.start(context, &unused, &operation), Result::success);
    EXPECT_EQ(unused, nullptr);
  }
}

TEST(Profiler, iterations_of_collectives__are_told_once_each) {
  Values verbose = kLoopback;
  verbose["MLTCP_DEBUG"] = "1";
  Loaded loaded(11, verbose);
  const void* const table = loaded.object().symbol("ncclProfiler_v4");
  ASSERT_NE(table, nullptr);
  const ProfilerV4& profiler = *static_cast<const ProfilerV4*>(table);
  void* context = nullptr;
  int events = 0;
  ASSERT_EQ(profiler.init(&context, &events, "job", 1, 2, 2, 0, &log), Result::success);
  EXPECT_EQ(events, kCollectiveEvent | kPointToPointEvent | kProxyOperationEvent);
  take_lines();
  for (int iteration = 0; iteration < 6; ++iteration) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    collective(profiler, context, "AllReduce", 1000);
    transfer(loaded, 3000);
    collective(profiler, context, "AllReduce", 2000);
    transfer(loaded, 4000);
  }
  // The plug-in logs nothing for the first three iterations. No pause precedes the first iteration, and the plug-in
  // must compare the next two before it logs any.
  const std::vector<Line> lines = take_lines();
  ASSERT_EQ(lines.size(), 3U);
  for (const Line& line : lines)
    EXPECT_THAT(line.text, HasSubstr("an iteration begins; the one before sent 7000 bytes"));
  collective(profiler, context, "AllReduce", 1);
  const std::vector<Line> lost = take_lines();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_THAT(lost[0].text, HasSubstr("iterations are not known any more"));
  EXPECT_EQ(profiler.finalize(context), Result::success);
}

}  // namespace
}  // namespace mltcp::nccl::harness
