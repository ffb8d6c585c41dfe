// Tests a host whose coordinator does not exist yet, stops sending, or ends.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../../message_of.h"
#include "../../own_loopback.h"
#include "../../temporary_folder.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/hosts/hosts.h"
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using protocol::Json;

/// Returns the next message of the host, or nothing if none arrives within 30 s.
std::optional<Json> next(MessageStream& stream) {
  for (const Nanos give_up = wall_now() + 30_s; wall_now() < give_up;) {
    if (auto message = protocol::receive(stream)) return message;
    stream.wait(100_ms);
  }
  return std::nullopt;
}

/// Acts as a coordinator that welcomes a host, sends signs of life for the time `words`, and then sends nothing. If
/// `words` is negative, ends as soon as the host is ready. Returns the failure that the host reports last.
std::string fall_silent(const std::string& address, Nanos words) {
  StreamListener listener(parse_stream_address(address));
  std::unique_ptr<MessageStream> stream;
  while (!(stream = listener.accept())) wait_for({listener.file()}, 100_ms);
  if (const auto join = next(*stream); !join || join->at("type") != "join") return "no join";
  protocol::send(*stream, {{"type", "welcome"}, {"version", protocol::kVersion}, {"host", 0}, {"ranks", 1}});
  if (const auto ready = next(*stream); !ready || ready->at("type") != "ready") return "not ready";
  if (words.count < 0) return "ended";
  for (const Nanos end = wall_now() + words; wall_now() < end;) {
    protocol::send(*stream, {{"type", "alive"}});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto last = next(*stream);
  return last && last->at("type") == "failed" ? last->at("message").get<std::string>() : "nothing";
}

HostOptions options_in(const TemporaryFolder& folder) {
  HostOptions options;
  options.coordinator = "unix:" + (folder / "socket").string();
  options.device = "udp:";
  options.ip = own_loopback() + "/8";
  options.idle = "sleep";
  return options;
}

/// Returns a job of 200 ranks. The first `here` ranks are on host 0, and each rank sends to all others.
protocol::RunSetup large_setup(std::uint32_t here) {
  std::string hosts;
  for (int rank = 0; rank < 200; ++rank) hosts += std::to_string(rank) + ", ";
  const Experiment experiment = parse_experiment(
      "[topology]\nkind = \"single-switch\"\nhosts = 200\nhost_rate = \"1 Gbps\"\n[[job]]\nname = \"a\"\n"
      "pattern = \"all-to-all\"\nsize = \"1 MB\"\ncompute = \"1 ms\"\nhosts = [" +
          hosts + "]\n",
      "x.toml");
  RunPlan plan;
  plan.policy = "fair";
  plan.jobs = experiment.jobs;
  plan.iterations = 5;
  protocol::RunSetup setup;
  setup.policy = plan.policy;
  protocol::JobSetup& job = setup.jobs.emplace_back();
  job.spec = job_specs(experiment, plan, true, true).front();
  for (std::uint32_t rank = 0; rank < 200; ++rank) {
    job.addresses.push_back(Address::v4(0x7F000001, static_cast<std::uint16_t>(40'000 + rank)));
    job.ports.push_back(rank < here ? rank : 0);
    job.hosts.push_back(rank < here ? 0 : rank);
  }
  return setup;
}

TEST(host_process, coordinator_that_asks_for_more_than_a_host_has_memory_for__is_refused) {
  const TemporaryFolder folder;
  HostOptions options = options_in(folder);
  const auto refusal = [&](std::uint32_t ranks, const std::function<void(protocol::JobSetup & job)>& change) {
    std::string reported;
    std::thread coordinator([&] {
      StreamListener listener(parse_stream_address(options.coordinator));
      std::unique_ptr<MessageStream> stream;
      while (!(stream = listener.accept())) wait_for({listener.file()}, 100_ms);
      if (!next(*stream)) return;
      protocol::send(*stream, {{"type", "welcome"}, {"version", protocol::kVersion}, {"host", 0}, {"ranks", ranks}});
      if (!next(*stream)) return;
      protocol::RunSetup setup = large_setup(ranks);
      change(setup.jobs.front());
      Json message = protocol::to_json(setup);
      message["run"] = 1;
      protocol::send(*stream, message);
      if (const auto last = next(*stream)) reported = last->value("message", "");
    });
    const std::string failure = message_of<RunError>([&] { run_host(options); });
    coordinator.join();
    EXPECT_EQ(failure, reported);
    return failure;
  };
  EXPECT_THAT(refusal(2, [](protocol::JobSetup& job) { job.spec.job.flows = 1000; }),
              HasSubstr("requests 199000 connections on this host, but the maximum is 131072; "));
  EXPECT_THAT(refusal(20, [](protocol::JobSetup& job) { job.spec.iterations = 1'000'000; }),
              HasSubstr("requests 17000000 recorded iterations on this host, but the maximum is 16000000; "));
  EXPECT_THAT(refusal(1, [](protocol::JobSetup& job) { job.spec.iterations = 4'294'967'295; }),
              HasSubstr("\"iterations\" is \"4294967295\", which is out of range for a job"));
}

TEST(host_process, coordinator_that_comes_later__is_waited_for_and_whoever_ends_is_named) {
  const TemporaryFolder folder;
  HostOptions options = options_in(folder);
  options.connect_limit = 60_s;
  std::vector<std::string> reported;
  std::thread coordinator;
  options.tell = [&](const std::string& line) {
    reported.push_back(line);
    // The coordinator starts after the host has begun to wait.
    if (reported.size() == 1) coordinator = std::thread([&] { fall_silent(options.coordinator, Nanos(-1)); });
  };
  const std::string failure = message_of<RunError>([&] { run_host(options); });
  coordinator.join();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0], "waiting for a coordinator at " + options.coordinator + ", for at most 60 s");
  EXPECT_THAT(reported[1], HasSubstr("joined the experiment"));
  EXPECT_EQ(failure, "the coordinator at " + options.coordinator +
                         " closed the connection before the experiment ended; read its output");
}

TEST(host_process, coordinator_that_says_nothing__ends_it_with_who_and_for_how_long) {
  const TemporaryFolder folder;
  HostOptions options = options_in(folder);
  options.silence_limit = 2_s;
  std::string reported;
  std::thread coordinator([&] {
    try {
      reported = fall_silent(options.coordinator, 3_s);
    } catch (const std::exception& error) {  // the host has ended before the coordinator
      reported = error.what();
    }
  });
  const Nanos began = wall_now();
  const std::string failure = message_of<RunError>([&] { run_host(options); });
  EXPECT_GE(wall_now() - began, 5_s) << "while it hears something, it waits";
  coordinator.join();
  EXPECT_THAT(failure, HasAll("the coordinator at " + options.coordinator, "has sent nothing for 2 s"));
  EXPECT_EQ(reported, failure);
}

}  // namespace
}  // namespace mltcp::experiment
