// Tests `mltcp perf` as users call it: two processes on the loopback, and the messages for errors.
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "../matchers.h"
#include "program_test.h"

namespace mltcp::tools {
namespace {

class PerfTest : public ProgramTest {
 protected:
  /// Runs a server in the background, and a client. The server's socket is in the folder. Returns the client's outcome.
  [[nodiscard]] Outcome pair(const std::string& client, const std::string& server = "") const {
    const std::string kept = "perf --listen unix:s " + server + " > server.log 2>&1 & server=$!; ";
    // A server with --once ends by itself after it has printed its result.
    const bool ends = server.find("--once") != std::string::npos;
    return run(kept + MLTCP_PROGRAM + " perf unix:s " + client + "; status=$?; " +
               (ends ? "" : "kill -TERM $server 2> /dev/null; ") + "wait $server; exit $status");
  }
};

TEST_F(PerfTest, a_sweep__has_a_row_for_each_length) {
  const Outcome outcome = pair("--for 20ms --max 300kB --factor 64 --connections 2 --json r.json", "--once");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err << content(folder_ / "server.log");
  EXPECT_THAT(outcome.out, HasAll("latency, one way", "1 B", "64 B", "4 KiB", "256 KiB", "300 kB"));
  EXPECT_THAT(content(folder_ / "server.log"), HasAll("listening on unix:s", "done"));
  const auto json = nlohmann::json::parse(content(folder_ / "r.json"));
  EXPECT_EQ(json["schema"], "mltcp.perf/1");
  ASSERT_EQ(json["points"].size(), 5U);
  EXPECT_FALSE(json.contains("left_out_bytes"));
  EXPECT_EQ(json["provenance"]["command"][1], "perf");
  EXPECT_GE(json["packet_bytes"], 472);
  EXPECT_LE(json["packet_bytes"], json["agreed_packet_bytes"]);
  EXPECT_TRUE(json["black_holes"].is_number_unsigned());
  for (const auto& point : json["points"]) {
    const auto& latency = point["latency"];
    EXPECT_GT(latency["min_ns"], 0);
    EXPECT_LE(latency["min_ns"], latency["p50_ns"]);
    EXPECT_LE(latency["p50_ns"], latency["p99_ns"]);
    EXPECT_LE(latency["p99_ns"], latency["p999_ns"]);
    EXPECT_LE(latency["p999_ns"], latency["max_ns"]);
    for (const char* const test : {"out", "both"}) {
      const auto& transfer = point[test];
      EXPECT_EQ(transfer["bytes"],
                transfer["messages"].get<std::uint64_t>() * point["message_bytes"].get<std::uint64_t>());
      EXPECT_NEAR(transfer["rate_bps"].get<double>(),
                  transfer["bytes"].get<double>() * 8e9 / transfer["time_ns"].get<double>(), 1);
    }
    EXPECT_FALSE(point.contains("in"));
  }
}

TEST_F(PerfTest, sealed__runs_with_the_key_at_both_ends_and_tells_who_lacks_it) {
  done("key job.key");
  done("key other.key");
  const std::string quick = " --tests out --min 1kB --max 1kB --for 10ms ";
  const Outcome sealed = pair("--key job.key --json -" + quick, "--once --key fd:3 3< job.key");
  ASSERT_EQ(sealed.status, 0) << sealed.err << content(folder_ / "server.log");
  EXPECT_EQ(nlohmann::json::parse(sealed.out)["sealed"], true);
  EXPECT_THAT(content(folder_ / "server.log"),
              HasSubstr("key " + nlohmann::json::parse(sealed.out)["key"].get<std::string>()));
  const auto refused = [&](const std::string& client, const std::string& server) {
    const Outcome outcome = pair(quick + client, server);
    EXPECT_EQ(outcome.status, 1) << client << " and " << server;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused("", "--key job.key"), HasSubstr("the server at unix:s has a key, but this end has none"));
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("refused a client: it uses no key: give it the key, too"));
  EXPECT_THAT(refused("--key job.key", ""), HasSubstr("the server at unix:s"));
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("refused a client: it has a key, but this end has none"));
  EXPECT_THAT(refused("--key other.key", "--key job.key"), HasSubstr("another key"));
}

TEST_F(PerfTest, authenticated__is_sealed_and_not_encrypted_at_both_ends_or_told) {
  done("key job.key");
  const std::string quick = " --tests out --min 1kB --max 1kB --for 10ms --key job.key ";
  const Outcome read = pair("--authenticate --json -" + quick, "--once --key job.key --authenticate");
  ASSERT_EQ(read.status, 0) << read.err << content(folder_ / "server.log");
  const auto json = nlohmann::json::parse(read.out);
  EXPECT_EQ(json["sealed"], true);
  EXPECT_EQ(json["encrypted"], false);
  EXPECT_THAT(read.err, HasSubstr("authenticated with key "));
  const Outcome encrypted = pair("--json -" + quick, "--once --key job.key");
  ASSERT_EQ(encrypted.status, 0) << encrypted.err;
  EXPECT_FALSE(nlohmann::json::parse(encrypted.out).contains("encrypted"));
  const Outcome mixed = pair(quick, "--once --key job.key --authenticate");
  EXPECT_EQ(mixed.status, 1);
  EXPECT_THAT(mixed.err,
              HasSubstr("the client encrypts, but the server authenticates only (--authenticate, MLTCP_AUTHENTICATE)"));
  EXPECT_THAT(refusal("perf host --authenticate"), HasSubstr("--authenticate: there is no key; give --key FILE"));
}

TEST_F(PerfTest, latency__is_of_questions_and_answers_that_carry_acknowledgements) {
  const Outcome outcome = pair("--tests latency --min 64B --max 64B --for 100ms --json -", "--once");
  ASSERT_EQ(outcome.status, 0) << outcome.err << content(folder_ / "server.log");
  const auto json = nlohmann::json::parse(outcome.out);
  // If each acknowledgement were a separate packet, the client would send at least two packets per round.
  EXPECT_LT(json["packets_sent"].get<std::uint64_t>() - json["retransmitted_packets"].get<std::uint64_t>(),
            2 * json["points"][0]["latency"]["rounds"].get<std::uint64_t>());
}

TEST_F(PerfTest, intervals__add_up_and_results_on_standard_output_are_alone) {
  const Outcome outcome = pair("--tests in --min 1MB --max 1MB --for 200ms --every 20ms --json -");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& in = json["points"][0]["in"];
  ASSERT_GT(in["intervals"].size(), 2U);
  std::uint64_t bytes = 0;
  std::uint64_t ended = 0;
  for (const auto& one : in["intervals"]) {
    EXPECT_EQ(one["begun_ns"], ended);
    ended = one["ended_ns"];
    bytes += one["bytes"].get<std::uint64_t>();
  }
  EXPECT_EQ(bytes, in["bytes"]);
  EXPECT_THAT(outcome.err, HasSubstr("Gbps"));
}

TEST_F(PerfTest, what_would_take_too_long__is_left_out) {
  // A message of 200 MB takes longer than the limit of 40 ms.
  const Outcome outcome = pair("--tests out --min 1kB --max 200MB --factor 1024 --for 10ms --limit 40ms --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasAll("200 MB are left out", "--limit 40ms"));
  EXPECT_EQ(nlohmann::json::parse(content(folder_ / "r.json"))["left_out_bytes"].back(), 200'000'000);
}

TEST_F(PerfTest, a_message_that_takes_too_long__ends_the_run) {
  const Outcome outcome = pair("--tests out --min 200MB --max 200MB --limit 10ms", "--once");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasAll("did not arrive within 10 ms", "--limit"));
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("mltcp: "));
}

TEST_F(PerfTest, bad_words__are_refused_in_a_line) {
  EXPECT_THAT(refusal("perf"), HasSubstr("mltcp perf --listen"));
  EXPECT_THAT(refusal("perf host --once"), HasSubstr("--once"));
  EXPECT_THAT(refusal("perf --listen --max 1MB"), HasSubstr("--max"));
  EXPECT_THAT(refusal("perf host --tests speed"), HasSubstr("speed"));
  EXPECT_THAT(refusal("perf host --min 2MB --max 1MB"), HasSubstr("the shorter first"));
  EXPECT_THAT(refusal("perf host --min 0B"), HasSubstr("messages of 0"));
  EXPECT_THAT(refusal("perf host --max 5GB"), HasSubstr("messages of 5000000000"));
  EXPECT_THAT(refusal("perf host --max much"), HasSubstr("--max"));
  EXPECT_THAT(refusal("perf host --for 1ns"), HasSubstr("10 ms"));
  EXPECT_THAT(refusal("perf host --every 1ns"), HasSubstr("1 ms"));
  EXPECT_THAT(refusal("perf host --cc hope"), HasSubstr("hope"));
  EXPECT_THAT(refusal("perf host --connections 65"), HasSubstr("--connections"));
  EXPECT_THAT(refusal("perf host --connections 64 --depth 1024"), HasSubstr("4096"));
  EXPECT_THAT(refusal("perf host --json /nowhere/r.json"), HasSubstr("/nowhere"));
  EXPECT_THAT(refusal("perf host:port"), HasSubstr("port"));
  EXPECT_THAT(refusal("perf host --key none.key"), HasSubstr("--key: none.key: the key file cannot be opened"));
  put("open.key", "");
  std::filesystem::permissions(folder_ / "open.key", std::filesystem::perms(0644));
  EXPECT_THAT(refusal("perf host --key open.key"), HasSubstr("--key: open.key: users other than its owner may use"));
  EXPECT_THAT(refusal("perf --listen unix:s --key -"), HasSubstr("--key: \"-\" is no key file"));
}

TEST_F(PerfTest, a_port_beyond_the_last__is_told_with_its_bounds) {
  EXPECT_THAT(refusal("perf host --udp-port 70000"),
              HasSubstr("--udp-port: \"70000\" is not a whole number from 0 to 65535"));
}

TEST_F(PerfTest, help_and_page__tell_every_option_and_its_default) {
  const std::string help = run("perf --help").out;
  const std::string page = content(std::filesystem::path(MLTCP_PAGES) / "how-to/perf.md");
  std::size_t options = 0;
  for (std::size_t at = help.find("  --"); at != std::string::npos; at = help.find("\n  --", at + 1)) {
    const std::size_t begin = help.find("--", at);
    const std::string name = help.substr(begin, help.find_first_of(" \n", begin) - begin);
    const std::string text = help.substr(begin, help.find("\n  --", begin) - begin);
    EXPECT_THAT(page, HasSubstr("`" + name)) << "docs/how-to/perf.md";
    if (name != "--listen" && name != "--once" && name != "--json") {
      EXPECT_THAT(text, HasSubstr("default")) << "mltcp perf --help";
    }
    ++options;
  }
  EXPECT_GT(options, 15U) << help;
}

TEST_F(PerfTest, no_server__is_reported) {
  const Outcome outcome = run("perf unix:s --wait 50ms");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("unix:s"));

  // A client whose port is outside of the kernel still reaches the server through the kernel.
  const std::string hint = "check that this host reaches it through the kernel: HOST is an address of its kernel";
  EXPECT_THAT(run("perf 127.0.0.1:1 --wait 50ms --port memif:/nowhere/s --ip 10.0.0.2/24").err, HasSubstr(hint));
  EXPECT_THAT(run("perf 127.0.0.1:1 --wait 50ms").err, AllOf(HasSubstr("reaches it\n"), Not(HasSubstr(hint))));
}

TEST_F(PerfTest, the_servers_refusal__is_told_at_both_ends) {
  // Another program has bound the server's UDP port. The server notices this when a client connects.
  const Outcome outcome =
      run("--version; python3 -c \"import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
          "s.bind((\\\"127.0.0.1\\\", 27821)); print(1, flush=True); time.sleep(60)\" > taken & other=$!; "
          "while ! [ -s taken ]; do sleep 0.05; done; " MLTCP_PROGRAM
          " perf --listen unix:s --once --udp-port 27821 > server.log 2>&1 & server=$!; " MLTCP_PROGRAM
          " perf unix:s --tests out; status=$?; wait $server; kill $other; exit $status");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasAll("the server at unix:s: ", "27821"));
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("27821"));
}

TEST_F(PerfTest, what_the_environment_asks_for__is_seen_to_before_anybody_is_waited_for) {
  for (const std::string who : {"perf --listen unix:s", "perf unix:s --wait 1min"}) {
    const auto refused = [&](const std::string& variable) {
      const Outcome outcome = run("--version > /dev/null; env " + variable + " " MLTCP_PROGRAM " " + who);
      EXPECT_NE(outcome.status, 0);
      EXPECT_THAT(outcome.out, Not(HasSubstr("listening")));
      return outcome.err;
    };
    EXPECT_THAT(refused("MLTCP_METRICS=abc"), HasSubstr("MLTCP_METRICS"));
    EXPECT_THAT(refused("MLTCP_METRICS=192.0.2.77:9471"), HasSubstr("MLTCP_METRICS"));
    EXPECT_THAT(refused("MLTCP_PCAP=none/run.pcapng"), HasSubstr("MLTCP_PCAP: none/run.pcapng: the folder"));
    EXPECT_THAT(refused("MLTCP_PCAP=run.pcapng,snap=x"), HasSubstr("MLTCP_PCAP"));
  }
}

TEST_F(PerfTest, paths_of_the_server__are_not_told_to_clients) {
  const Outcome outcome =
      run("--version > /dev/null; mkdir hidden; env MLTCP_METRICS=0.0.0.0:27822 "
          "MLTCP_PCAP=$PWD/hidden/run.pcapng " MLTCP_PROGRAM
          " perf --listen unix:s --once > server.log 2>&1 & server=$!; while ! grep -q listening server.log; do sleep "
          "0.05; "
          "done; rm -r hidden; " MLTCP_PROGRAM " perf unix:s --tests out; status=$?; wait $server; exit $status");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("it cannot open its endpoint"), Not(HasSubstr("hidden"))));
  EXPECT_THAT(content(folder_ / "server.log"),
              HasAll("hidden/run", "MLTCP_METRICS: every program that reaches 0.0.0.0:27822 can read the metrics"));
}

TEST_F(PerfTest, a_place_that_can_not_be__is_refused_before_anybody_is_waited_for) {
  for (const std::string who : {"perf unix:s --wait 1min ", "perf --listen unix:s "}) {
    EXPECT_THAT(refusal(who + "--port carrier-pigeon:7"), HasSubstr("carrier-pigeon"));
    EXPECT_THAT(refusal(who + "--port udp:nowhere0"), HasSubstr("nowhere0"));
    EXPECT_THAT(refusal(who + "--ip 192.0.2.77"), HasSubstr("this machine does not have 192.0.2.77"));
    EXPECT_THAT(refusal(who + "--ip elsewhere"), HasSubstr("elsewhere"));
    EXPECT_THAT(refusal(who + "--cores first"), HasSubstr("cores \"first\""));
    EXPECT_THAT(refusal(who + "--gateway 10.0.0.1"), HasSubstr("10.0.0.1"));
  }
}

#ifdef MLTCP_HAS_DPDK
TEST_F(PerfTest, a_port_with_an_address_of_its_own__has_to_be_given_it) {
  for (const std::string who : {"perf unix:s --wait 1min ", "perf --listen unix:s "}) {
    EXPECT_THAT(
        refusal(who + "--port ring:a"),
        HasSubstr("port \"ring:a\" does not use an address of the kernel; give it one, such as --ip 10.0.0.1/24"));
    EXPECT_THAT(refusal(who + "--port ring:a --ip 10.0.0.1"), HasSubstr("no prefix length"));
  }
}

TEST_F(PerfTest, a_server_whose_port_can_not_be_opened__ends_at_once) {
  // The name of the port is valid. The error is found only when the port is opened.
  const Outcome outcome = run("perf --listen unix:s --port memif:/nowhere/s --ip 10.0.0.1/24");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("port \"memif:/nowhere/s\": the folder of /nowhere/s does not exist"));
  EXPECT_EQ(outcome.out, "");
}
#endif

TEST_F(PerfTest, unknown_peers__do_not_end_the_server) {
  // Sends bytes that any program may send to the server's socket, and then runs a client.
  const Outcome outcome =
      run("perf --listen unix:s > server.log 2>&1 & server=$!; while ! [ -e s ]; do sleep 0.05; done; for words in "
          "'GET / HTTP/1.0' '{}' ''; do "
          "python3 -c \"import socket, struct, sys; s = socket.socket(socket.AF_UNIX); s.connect(\\\"s\\\"); t = "
          "sys.argv[1].encode(); s.sendall(struct.pack(\\\">I\\\", len(t)) + t); s.settimeout(5); s.recv(1000)\" "
          "\"$words\" "
          "|| true; done; " MLTCP_PROGRAM
          " perf unix:s --tests out --max 1kB --for 10ms; status=$?; kill -TERM $server; wait $server; exit $status");
  EXPECT_EQ(outcome.status, 0) << outcome.err << content(folder_ / "server.log");
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("failed: "));
}

TEST_F(PerfTest, a_client_that_opens_its_port__says_so_and_is_waited_for) {
  // The script is a server that prints the first two messages that it receives, or a client that sends the messages of
  // a slow client.
  const std::string unknown_peer =
      "import json, socket, struct, sys\n"
      "s = socket.socket(socket.AF_UNIX)\n"
      "def put(m): t = json.dumps(m).encode(); c.sendall(struct.pack('>I', len(t)) + t)\n"
      "def get(): n = struct.unpack('>I', c.recv(4, socket.MSG_WAITALL))[0]; return json.loads(c.recv(n, "
      "socket.MSG_WAITALL))\n"
      "if sys.argv[1] == 'server':\n"
      "  s.bind('t'); s.listen(); open('is_there', 'w').close(); c, _ = s.accept(); print(get(), get(), flush=True)\n"
      "else:\n"
      "  c = s; c.connect('s'); put({'opening': True}); put({'hello': 'mltcp.perf/0', 'cc': 'reno'}); print(get())\n";
  std::ofstream(folder_ / "unknown_peer.py") << unknown_peer;
  Outcome outcome =
      run("--version > /dev/null; python3 unknown_peer.py server > heard & other=$!; while ! [ -e is_there ]; do "
          "sleep 0.05; done; timeout 20 " MLTCP_PROGRAM " perf unix:t > /dev/null 2>&1; wait $other");
  EXPECT_THAT(content(folder_ / "heard"), MatchesRegex(".'opening': True. .*'hello': 'mltcp.perf/1'.*\n"))
      << outcome.err;
  outcome =
      run("perf --listen unix:s > server.log 2>&1 & server=$!; while ! [ -e s ]; do sleep 0.05; done; "
          "python3 unknown_peer.py client; kill -TERM $server; wait $server");
  EXPECT_THAT(outcome.out, HasSubstr("the client uses protocol mltcp.perf/0")) << outcome.err;
}

TEST_F(PerfTest, a_client_that_is_killed__ends_alone) {
  const Outcome outcome =
      run("perf --listen unix:s > server.log 2>&1 & server=$!; timeout -s KILL 0.7 " MLTCP_PROGRAM
          " perf unix:s --tests out --min 1kB --max 1kB --for 60s > /dev/null 2>&1; " MLTCP_PROGRAM
          " perf unix:s --tests out --max 1kB --for 10ms; status=$?; kill -TERM $server; wait $server; exit $status");
  EXPECT_EQ(outcome.status, 0) << outcome.err << content(folder_ / "server.log");
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("the client closed the connection"));
}

TEST_F(PerfTest, an_interface_that_goes_down_meanwhile__is_named_by_the_end_that_has_it) {
  // Runs client and server in two connected network namespaces. The control connection is a Unix socket in the folder.
  if (run("--version > /dev/null; unshare -rn unshare -n true").status != 0)
    GTEST_SKIP() << "no network namespaces here: unshare -rn fails";
  std::ofstream(folder_ / "cable.sh")
      << "unshare -n sleep 100 & other=$!\n"
         "until [ \"$(readlink /proc/$other/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.05; done\n"
         "set -e\n"
         "there=\"nsenter -t $other -n\"\n"
         "ip link add v0 type veth peer name v1 netns $other\n"
         "ip addr add 10.9.0.1/24 dev v0\nip link set v0 up\n"
         "$there ip addr add 10.9.0.2/24 dev v1\n$there ip link set v1 up\n"
         "$there " MLTCP_PROGRAM
         " perf --listen unix:s --once --ip 10.9.0.2 > server.log 2>&1 & server=$!\n" MLTCP_PROGRAM
         " perf unix:s --ip 10.9.0.1 --tests out --min 1kB --max 1kB --for 50s > client.log 2>&1 & client=$!\n"
         "until grep -q there: client.log || ! kill -0 $client; do sleep 0.05; done\n"
         "ip link set v0 down\nwait $client || true\nwait $server || true\nkill $other\n";
  const Outcome outcome = run("--version > /dev/null; unshare -rn sh cable.sh");
  EXPECT_THAT(content(folder_ / "client.log"),
              HasAll("nothing was received from the other end, 10.9.0.2:",
                     ", for 10 s: interface v0 is down; bring it up: ip link set dev v0 up\n"))
      << outcome.out << outcome.err;
  EXPECT_THAT(content(folder_ / "server.log"), HasSubstr("v1 has no carrier")) << outcome.err;
}

TEST_F(PerfTest, a_server_that_is_killed__is_told) {
  const Outcome outcome =
      run("perf --listen unix:s > server.log 2>&1 & server=$!; (sleep 0.7; kill -KILL $server) & " MLTCP_PROGRAM
          " perf unix:s --tests out --min 1kB --max 1kB --for 60s > /dev/null");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the server at unix:s closed the connection"));
}

}  // namespace
}  // namespace mltcp::tools
