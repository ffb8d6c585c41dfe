// Tests the HTTP server on real sockets: valid and invalid behaviour of clients, and how long a client can delay
// others.
#include "mltcp/scheduler/service/http_server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "../damaged.h"
#include "../matchers.h"
#include "http_client.h"
#include "mltcp/base/clock.h"
#include "services.h"

namespace mltcp::service::http_server_test {
namespace {

using namespace testing_services;
using Json = nlohmann::json;

const std::string token = "0123456789abcdef0123456789abcdef";
const std::string profile = R"("profile": {"compute_ns": 60000000, "communicate_bytes": 50000000})";

/// A scheduler service, its HTTP server, and the thread that runs the server.
class http_server : public ::testing::Test {
 protected:
  http_server() {
    ServiceOptions options = options_in({});
    options.slots_per_host = 1000;
    service_ = std::make_unique<SchedulerService>(two_racks(), options);
    kubernetes_ = std::make_unique<KubernetesExtender>(*service_, KubernetesOptions{});
    api_ = std::make_unique<Api>(*service_, *kubernetes_);
    options_.socket = folder_ / "run" / "scheduler.sock";
  }
  ~http_server() override { stop(); }

  void start() {
    server_ = std::make_unique<HttpServer>(*api_, *service_, options_);
    thread_ = std::thread([this] { server_->run([this] { return ended_.load(); }, [this](Nanos) { ++ticks_; }); });
  }
  void stop() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  [[nodiscard]] std::string ask(const std::string& text) const {
    const Client client(server_->address());
    client.send(text);
    return client.answer();
  }
  [[nodiscard]] Json get(const std::string& target) const { return body_of(ask(request("GET", target))); }
  /// Expects that the server still answers a new client.
  void expect_alive() const { EXPECT_EQ(get("/v1/health")["status"], "ok"); }

  TemporaryFolder folder_;
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<KubernetesExtender> kubernetes_;
  std::unique_ptr<Api> api_;
  HttpOptions options_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::atomic<bool> ended_ = false;
  std::atomic<int> ticks_ = 0;
};

TEST_F(http_server, socket__serves_and_is_for_owner_and_group) {
  start();
  struct stat found {};
  ASSERT_EQ(stat(options_.socket.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0660U);
  const std::string response =
      ask(request("POST", "/v1/jobs", R"({"id": "j1", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}"));
  EXPECT_EQ(status_of(response), 201) << response;
  EXPECT_EQ(body_of(response)["plan"]["number"], 1);
  EXPECT_EQ(get("/v1/jobs/j1/plan")["hosts"], (Json{"a1", "b1"}));
  stop();
  EXPECT_FALSE(std::filesystem::exists(options_.socket)) << "it is removed";
  EXPECT_GE(ticks_, 1);
}

TEST_F(http_server, stale_socket__is_replaced_and_a_live_one_is_not) {
  start();
  EXPECT_THAT(refusal_of([&] { const HttpServer second(*api_, *service_, options_); }),
              HasSubstr("another service answers there"));
  stop();
  // Leaves a socket in the file system, as a killed service does.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = options_.socket.string();
  std::copy(path.begin(), path.end(), address.sun_path);
  const int dead = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(dead);
  ended_ = false;
  start();
  expect_alive();
  stop();
  folder_.write("run/scheduler.sock", "a file");
  EXPECT_THAT(refusal_of([&] { const HttpServer third(*api_, *service_, options_); }), HasSubstr("this is no socket"));
  EXPECT_TRUE(std::filesystem::exists(options_.socket));
  options_.socket = std::string(200, 'x');
  EXPECT_THAT(refusal_of([&] { const HttpServer fourth(*api_, *service_, options_); }), HasSubstr("200 bytes"));
}

TEST_F(http_server, port__wants_the_token) {
  options_.listen = "127.0.0.1:0";
  options_.token = token;
  start();
  EXPECT_THAT(server_->address(), StartsWith("127.0.0.1:"));
  const std::string good = "Authorization: Bearer " + token + "\r\n";
  EXPECT_EQ(status_of(ask(request("GET", "/v1/health", "", good))), 200);
  EXPECT_EQ(status_of(ask(request("GET", "/v1/health", "", "authorization: bEARER " + token + "\r\n"))), 200);
  // HTTP basic authentication with user "mltcp" and the token as password: `printf mltcp:$token | base64`.
  EXPECT_EQ(status_of(ask(request("GET", "/v1/health", "",
                                  "Authorization: Basic bWx0Y3A6MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\r\n"))),
            200);
  for (const std::string& header :
       {std::string(), "Authorization: Bearer " + token.substr(1) + "\r\n", "Authorization: Bearer " + token + "x\r\n",
        "Authorization: Bearer x" + token.substr(1) + "\r\n", "Authorization: Basic " + token + "\r\n",
        "Authorization: " + token + "\r\n", std::string("Authorization: Bearer \r\n")}) {
    const std::string response = ask(request("GET", "/v1/health", "", header));
    EXPECT_EQ(status_of(response), 401) << header;
    EXPECT_THAT(response, HasSubstr("WWW-Authenticate: Bearer"));
    EXPECT_THAT(body_of(response)["error"].get<std::string>(), HasSubstr("the token is missing or wrong"));
  }
  // The server rejects a request without a token before it reads the body.
  const Client client(server_->address());
  client.send(request("POST", "/v1/jobs", "", "Content-Length: 1000000\r\n"));
  EXPECT_EQ(status_of(client.answer()), 401);
}

TEST_F(http_server, address_that_is_not_loopback__is_refused) {
  options_.token = token;
  for (const auto& [listen, says] :
       std::vector<std::pair<std::string, std::string>>{{"0.0.0.0:80", "for this machine alone"},
                                                        {"192.0.2.1:80", "for this machine alone"},
                                                        {"[::]:80", "for this machine alone"},
                                                        {"::1:80", "there is no port"},
                                                        {"localhost:80", "no IP address"},
                                                        {"127.0.0.1", "there is no port"},
                                                        {"127.0.0.1:", "is no port"},
                                                        {"127.0.0.1:65536", "is no port"},
                                                        {"127.0.0.1:x", "is no port"}}) {
    options_.listen = listen;
    EXPECT_THAT(refusal_of([&] { const HttpServer server(*api_, *service_, options_); }), HasSubstr(says));
  }
  options_.listen = "127.0.0.1:0";
  options_.token = "short";
  EXPECT_THAT(refusal_of([&] { const HttpServer server(*api_, *service_, options_); }), HasSubstr("--token-file"));
}

TEST_F(http_server, token_file__is_for_its_owner) {
  folder_.write("token", token + "\n");
  const auto mode = [&](mode_t bits) { ASSERT_EQ(chmod((folder_ / "token").c_str(), bits), 0); };
  for (const mode_t good : {0600U, 0640U, 0400U}) {
    mode(good);
    EXPECT_EQ(read_token(folder_ / "token"), token);
  }
  const auto refused = [&] { return refusal_of([&] { read_token(folder_ / "token"); }); };
  for (const mode_t bad : {0644U, 0660U, 0604U, 0700U, 0777U}) {
    mode(bad);
    EXPECT_THAT(refused(), HasAll("others may read or change", "chmod 0600"));
  }
  mode(0600);
  for (const std::string& text : {std::string(), std::string("short"), std::string(40, ' '), token + "\n" + token,
                                  std::string(5000, 'x'), token + "\xc3\xa4"}) {
    folder_.write("token", text);
    EXPECT_THAT(refused(), HasSubstr("this is no token"));
  }
  EXPECT_THAT(refusal_of([&] { read_token(folder_.path()); }), HasSubstr("this is no file"));
  EXPECT_THAT(refusal_of([&] { read_token(folder_ / "none"); }), HasSubstr("can't be opened"));
}

TEST_F(http_server, plan__is_told_when_it_changes) {
  start();
  service_->arrive(job("one"), {"a1", "b1"});
  const Client waiting(server_->address());
  waiting.send(request("GET", "/v1/jobs/one/plan?after=1&wait_ms=60000"));
  // There are more waiting connections than worker threads.
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 0; i < 50; ++i) {
    others.push_back(std::make_unique<Client>(server_->address()));
    others.back()->send(request("GET", "/v1/jobs/one/plan?after=1&wait_ms=60000"));
  }
  expect_alive();
  EXPECT_FALSE(waiting.readable());
  service_->arrive(job("elsewhere"), {"a3", "a4"});
  expect_alive();
  EXPECT_FALSE(waiting.readable()) << "another job's arrival is no news";
  service_->arrive(job("two"), {"a2", "b2"});
  EXPECT_EQ(body_of(waiting.answer())["revision"], 3);
  for (const auto& other : others) EXPECT_EQ(body_of(other->answer())["slots"], true);

  const Client departing(server_->address());
  departing.send(request("GET", "/v1/jobs/two/plan?after=3&wait_ms=60000"));
  expect_alive();
  service_->depart("two");
  EXPECT_EQ(status_of(departing.answer()), 404);
  const Client in_vain(server_->address());
  in_vain.send(request("GET", "/v1/jobs/one/plan?after=99&wait_ms=20"));
  EXPECT_EQ(status_of(in_vain.answer()), 200) << "as it is, when the time is over";
}

TEST_F(http_server, end__answers_who_waits_and_what_has_come) {
  start();
  service_->arrive(job("one"), {"a1", "b1"});
  const Client waiting(server_->address());
  waiting.send(request("GET", "/v1/jobs/one/plan?after=1&wait_ms=300000"));
  const Client idle(server_->address());
  expect_alive();
  stop();
  EXPECT_EQ(status_of(waiting.answer()), 200);
  EXPECT_EQ(idle.answer(), "");
}

TEST_F(http_server, bad_requests__are_refused_before_their_body_comes) {
  start();
  const std::string body_to_come = "Content-Length: 4000000\r\n";
  for (const auto& [text, status, says] : std::vector<std::tuple<std::string, int, std::string>>{
           {request("POST", "/v1/jobs", "", "Content-Length: 4194305\r\n"), 413, "send at most 4194304"},
           {request("POST", "/v1/jobs", "", "Expect: 100-continue\r\nContent-Length: 4194305\r\n"), 413, "at most"},
           {request("POST", "/v1/jobs", "", "Transfer-Encoding: chunked\r\n"), 501, "transfer codings"},
           {request("POST", "/v1/jobs", "", "Content-Encoding: gzip\r\n" + body_to_come), 415, "content codings"},
           {request("POST", "/v1/jobs", "", "A: " + std::string(16'400, 'x') + "\r\n" + body_to_come), 431,
            "more than 16384 bytes"},
           {request("GET", "/" + std::string(17'000, 'x')), 431, "more than 16384 bytes"},
           {request("PUT", "/v1/health"), 405, "use GET"},
           {request("BREW", "/v1/health"), 405, "\"BREW\""},
           {request("GET", "/v1/jobs/a/b"), 404, "\"/v1/jobs/a/b\""},
           {request("GET", "http://x/v1/health"), 404, "there is nothing at"}}) {
    const std::string response = ask(text);
    EXPECT_EQ(status_of(response), status) << text.substr(0, 100) << response;
    EXPECT_THAT(response, HasAll("Content-Type: application/json", "Connection: close"));
    EXPECT_THAT(body_of(response)["error"].get<std::string>(), HasAll(says, ";"));
  }
  EXPECT_EQ(status_of(ask(request("HEAD", "/v1/health"))), 405);
  EXPECT_EQ(status_of(ask(request("GET", "/" + std::string(100'000, 'x')))), 414) << "in the library's words";
}

TEST_F(http_server, request_in_pieces__is_served) {
  start();
  const Client client(server_->address());
  const std::string whole =
      request("POST", "/v1/jobs", R"({"id": "j1", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}",
              "Expect: 100-continue\r\n");
  const std::size_t head = whole.find("\r\n\r\n") + 4;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i == head) {
      EXPECT_EQ(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    }
    ASSERT_TRUE(client.send(whole.substr(i, 1)));
  }
  EXPECT_THAT(client.answer(), StartsWith("HTTP/1.1 201 Created\r\n"));
}

TEST_F(http_server, whatever_is_sent__others_are_served) {
  options_.request_time = 300_ms;  // how long the server waits for the rest of an incomplete request
  start();
  const std::string body = R"({"id": "j1", "workers": 2, )" + profile + "}";
  const std::vector<std::string> all{
      "",
      "\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/2\r\n\r\n",
      "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
      request("GET", "/v1/health", "", "no colon\r\n"),
      request("GET", "/v1/health", "", ": empty\r\n"),
      request("GET", "/v1/health", "", " folded: x\r\n"),
      request("POST", "/v1/jobs", "", "Content-Length: -1\r\n"),
      request("POST", "/v1/jobs", "", "Content-Length: 99999999999999999999999999\r\n"),
      std::string(100'000, '\0'),
      std::string(100'000, 'A'),
      "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(100'000, 'a') + ": b\r\n\r\n",
      request("POST", "/v1/jobs", std::string(200'000, '[')),
      request("POST", "/v1/jobs", "{\"a\":" + std::string(100'000, '{')),
      request("POST", "/v1/jobs", "\xff\xfe\xfd"),
      request("POST", "/v1/jobs", R"({"id": "\ud800", "workers": 2, )" + profile + "}"),
      request("POST", "/v1/jobs", R"({"id": "\u0000", "workers": 2, )" + profile + "}"),
      request("POST", "/v1/jobs", body, "Content-Length: 3\r\n"),
      request("POST", "/v1/jobs", body, "Transfer-Encoding: chunked\r\n"),
      request("POST", "/v1/jobs", body, "Content-Encoding: gzip\r\n"),
      request("POST", "/v1/jobs", "", "Content-Length: 999999999999\r\n"),
      request("GET", "/" + std::string(8000, '%')),
      request("GET", "/v1/jobs?" + std::string(1000, '&')),
      request("GET", "/v1/health", "", "Range: bytes=0-1,2-3,4-5\r\n"),
      request("POST", "/kubernetes/filter", R"({"Pod": null, "NodeNames": null})"),
      request("DELETE", "/v1/jobs/%00"),
  };
  for (const std::string& text : all) {
    const Client client(server_->address());
    client.send(text);
    if (text.empty()) continue;  // the client closes the connection
    const std::string response = client.answer();
    expect_alive();
    if (response.empty()) continue;  // the library closes the connection if it gets too few or too many bytes
    ASSERT_GE(status_of(response), 200) << text.substr(0, 100) << response;
    if (text.size() == 100'000) {
      EXPECT_EQ(status_of(response), 414);
    }
    // The library itself answers invalid HTTP: with status 4xx, or with 301 for a space in the target (RFC 9112, 3.2).
    if (status_of(response) >= 300 && response.find("<html>") != std::string::npos) continue;
    const Json answered = body_of(response);
    ASSERT_FALSE(answered.is_discarded()) << text.substr(0, 100) << response.substr(0, 300);
    EXPECT_TRUE(status_of(response) < 400 || answered["error"].is_string());
  }
  EXPECT_THAT(service_->jobs(), SizeIs(0));
}

TEST_F(http_server, requests_changed_at_random__are_answered_or_refused) {
  options_.request_time = 20_ms;  // limits how long the server waits for the rest of a truncated request
  start();
  service_->arrive(job("there"), {"a1", "b1"});
  Random random(20261125);
  const std::vector<std::string> seeds{
      request("POST", "/v1/jobs", R"({"id": "there", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}"),
      request("POST", "/v1/placements",
              R"({"id": "x", "workers": 2, "placements": [{"hosts": ["a1", "b1"]}], )" + profile + "}"),
      request(
          "POST", "/kubernetes/filter",
          R"({"Pod": {"metadata": {"uid": "u", "annotations": {"mltcp.dev/job": "j", )"
          R"("mltcp.dev/workers": "2", "mltcp.dev/profile": "communicate = \"1 MB\""}}}, "NodeNames": ["a1", "b1"]})"),
      request("GET", "/v1/jobs/there/plan?after=0&wait_ms=1", "",
              "Expect: 100-continue\r\nAuthorization: Bearer x\r\n"),
      request("DELETE", "/v1/jobs/there%2f", "{}"),
  };
  for (int i = 0; i < 400; ++i) {
    std::string text = seeds[random.below(seeds.size())];
    if (random.chance(0.75)) text = damaged(text, random, 3);
    const Client client(server_->address());
    client.send(text);
    if (text.empty() || random.chance(0.3)) continue;  // the client closes the connection
    const std::string response = client.answer();
    const int status = status_of(response);
    EXPECT_TRUE((status >= 200 && status < 300) || status == 301 || (status >= 400 && status <= 417) || status == 431 ||
                status == 501 || status == 505 || response.empty() || response.starts_with("HTTP/1.1 100"))
        << status << " " << text;
  }
  expect_alive();
}

TEST_F(http_server, slow_client__gets_an_error_and_delays_no_other_client) {
  options_.request_time = 300_ms;
  start();
  const Client slow(server_->address());
  const Nanos begun = monotonic_now();
  std::string sent = request("GET", "/v1/health", "", "X-Padding: " + std::string(10'000, 'x') + "\r\n");
  std::size_t at = 0;
  for (; at < sent.size() && !slow.readable(); ++at) {
    slow.send(sent.substr(at, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_LT(at, sent.size());
  EXPECT_GE(monotonic_now() - begun, 300_ms);
  EXPECT_EQ(status_of(slow.answer()), 408);
  expect_alive();
}

TEST_F(http_server, client_that_reads_nothing__is_dropped) {
  options_.request_time = 300_ms;
  start();
  for (int i = 0; i < 300; ++i) service_->arrive(job("job-" + std::to_string(i), 100_ms, 1_ms, 2), {"a1", "a2"});
  std::vector<std::unique_ptr<Client>> lazy;
  for (int i = 0; i < 4; ++i) {
    lazy.push_back(std::make_unique<Client>(server_->address()));
    lazy.back()->send(request("GET", "/v1/jobs"));
  }
  expect_alive();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  expect_alive();
}

TEST_F(http_server, flood_of_connections__leaves_room_for_who_has_something_to_say) {
  options_.connections = 64;
  start();
  std::vector<std::unique_ptr<Client>> flood;
  for (int i = 0; i < 400; ++i) {
    flood.push_back(std::make_unique<Client>(server_->address()));
    if (!flood.back()->connected()) break;
    flood.back()->send("GET /v1/he");
    if (i % 50 == 49) expect_alive();
  }
  expect_alive();
}

TEST_F(http_server, flood_of_waits_for_plans__leaves_room_for_others) {
  options_.connections = 16;
  start();
  service_->arrive(job("one"), {"a1", "b1"});
  std::vector<std::unique_ptr<Client>> flood;
  for (int i = 0; i < 40; ++i) {
    flood.push_back(std::make_unique<Client>(server_->address()));
    flood.back()->send(request("GET", "/v1/jobs/one/plan?after=1&wait_ms=60000"));
    if (i % 8 == 7) expect_alive();
  }
  expect_alive();
  const std::string answer = flood.front()->answer();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(body_of(answer)["revision"], 1) << "as it is";
  EXPECT_FALSE(flood.back()->readable()) << flood.back()->answer();
}

TEST_F(http_server, bytes_of_all__are_bounded) {
  options_.max_buffered_bytes = 1'000'000;
  start();
  std::vector<std::unique_ptr<Client>> clients;
  const std::string part(900'000, ' ');
  clients.push_back(std::make_unique<Client>(server_->address()));
  clients[0]->send("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n" + part);
  clients.push_back(std::make_unique<Client>(server_->address()));
  clients[1]->send("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n" + part);
  EXPECT_EQ(status_of(clients[1]->answer()), 503);
  expect_alive();
  clients.clear();
  const Client again(server_->address());
  again.send(request("POST", "/v1/jobs", part));
  EXPECT_EQ(status_of(again.answer()), 400) << "an empty body";
}

TEST_F(http_server, bytes_of_answers__are_bounded_and_short_ones_are_given_nevertheless) {
  options_.max_buffered_bytes = 6'000'000;
  options_.request_time = 300_s;  // building these long responses is slow with a sanitizer
  start();
  // All workers of each job are on one host, so that planning is cheap. The list of jobs has a few million bytes.
  for (int i = 0; i < 40; ++i)
    service_->arrive(job("job-" + std::to_string(i), 100_ms, 1_ms, 20'000), std::vector<std::string>(20'000, "a1"),
                     SchedulerService::Capacity::assumed);
  const std::size_t length = ask(request("GET", "/v1/jobs")).size();
  ASSERT_GT(length, 3'100'000U);
  ASSERT_LT(length, 6'000'000U);
  std::vector<std::unique_ptr<Client>> lazy;
  for (int i = 0; i < 4; ++i) {
    lazy.push_back(std::make_unique<Client>(server_->address()));
    lazy.back()->send(request("GET", "/v1/jobs"));
  }
  while (!std::all_of(lazy.begin(), lazy.end(), [](const auto& client) { return client->readable(); })) expect_alive();
  EXPECT_EQ(status_of(ask(request("GET", "/v1/jobs"))), 503);
  EXPECT_EQ(status_of(ask(request("POST", "/v1/jobs", R"({"id": "one more", )" + profile + "}"))), 400);
  int whole = 0;
  for (const auto& client : lazy) {
    const std::string answer = client->answer();
    if (status_of(answer) == 200) {
      ++whole;
      EXPECT_EQ(answer.size(), length);
    } else {
      EXPECT_EQ(status_of(answer), 503);
      EXPECT_THAT(body_of(answer)["error"].get<std::string>(), HasSubstr("try again later"));
    }
  }
  EXPECT_EQ(whole, 1);
  lazy.clear();
  EXPECT_EQ(ask(request("GET", "/v1/jobs")).size(), length);
}

/// Returns the resident memory of this process in bytes.
std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(http_server, thousands_of_hostile_connections__cost_bounded_memory_and_block_no_other_client) {
  constexpr std::size_t kMany = 3000;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlim_t wanted = std::min<rlim_t>(files.rlim_max, kMany + 1200);
  if (wanted < kMany + 1200) GTEST_SKIP() << "the limit of open files is " << files.rlim_max;
  files.rlim_cur = std::max(files.rlim_cur, wanted);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  options_.listen = "127.0.0.1:0";
  options_.token = token;
  start();
  const std::string shown = "Authorization: Bearer " + token + "\r\n";
  const auto expect_served = [&] { EXPECT_EQ(status_of(ask(request("GET", "/v1/health", "", shown))), 200); };
  expect_served();
  const std::size_t before = resident_bytes();
  const std::string pipelined = request("GET", "/v1/health", "", "Authorization: Bearer " + token + "\r\n");
  const std::vector<std::string> openings{
      "GET /v1/he",
      "GET /v1/health HTTP/1.1\r\nHost: x\r\nX: " + std::string(16'000, 'x'),
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n{",  // this request has no token
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\n" + shown + "Expect: 100-continue\r\nContent-Length: 4000000\r\n\r\n",
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\n" + shown + "Content-Length: 4000000\r\n\r\n" + std::string(100'000, ' '),
      pipelined + pipelined + pipelined,
      "",
  };
  std::vector<std::unique_ptr<Client>> all;
  for (std::size_t i = 0; i < kMany; ++i) {
    all.push_back(std::make_unique<Client>(server_->address()));
    ASSERT_TRUE(all.back()->connected()) << i;
    all.back()->send(openings[i % openings.size()]);
    if (i % 300 == 299) expect_served();
  }
  expect_served();
  EXPECT_LT(resident_bytes() - std::min(before, resident_bytes()), 200U << 20);
  // Only the first of several pipelined requests gets an answer.
  const Client three(server_->address());
  three.send(pipelined + pipelined + pipelined);
  const std::string answer = three.answer();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
}

TEST_F(http_server, eight_clients__change_and_read_at_once) {
  start();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const std::string id = "j" + std::to_string(t) + "-" + std::to_string(i);
        const std::string body = R"({"id": ")" + id + R"(", "workers": 2, "hosts": ["a1", "b)" +
                                 std::to_string(1 + t % 4) +
                                 R"("], "profile": {"compute_ns": 90000000, "communicate_bytes": 5000000}})";
        if (status_of(ask(request("POST", "/v1/jobs", body))) != 201) ++wrong;
        if (get("/v1/jobs/" + id + "/plan")["id"] != id) ++wrong;
        if (i % 2 == 0 && status_of(ask(request("DELETE", "/v1/jobs/" + id))) != 200) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(get("/v1/health")["jobs"], 16);
}

}  // namespace
}  // namespace mltcp::service::http_server_test
