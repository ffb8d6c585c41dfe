// Requests as bytes: however they are cut into pieces, and whatever is wrong with them.
#include "mltcp/scheduler/service/internal/http_request.h"

#include <nlohmann/json.hpp>

#include "services.h"

namespace mltcp::service::http_request_test {
namespace {

using namespace testing_services;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using State = IncomingRequest::State;

const std::string post =
    "POST /v1/jobs?a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nRange: bytes=0-1\r\nAccept-Encoding: "
    "gzip\r\n"
    "content-length: 5\r\n\r\nhello";

TEST(http_request, in_any_pieces__is_the_same) {
  for (std::size_t cut = 1; cut < post.size(); ++cut) {
    IncomingRequest request({});
    EXPECT_EQ(request.add(post.substr(0, cut)), State::more) << cut;
    EXPECT_EQ(request.add(post.substr(cut)), State::whole) << cut;
    EXPECT_EQ(request.method(), "POST");
    EXPECT_EQ(request.authorization(), "Bearer secret");
  }
  IncomingRequest bytewise({});
  for (std::size_t i = 0; i + 1 < post.size(); ++i) ASSERT_EQ(bytewise.add(post.substr(i, 1)), State::more);
  EXPECT_EQ(bytewise.add("o"), State::whole);
}

TEST(http_request, headers__are_all_read_however_long_the_request_line_is) {
  for (const std::size_t length : {1U, 10U, 100U, 2000U}) {
    IncomingRequest request({});
    const std::string target = "/" + std::string(length - 1, 'x');
    EXPECT_EQ(request.add("POST " + target + " HTTP/1.1\r\nA: b\r\nContent-Length: 2\r\n\r\n{}"), State::whole);
    EXPECT_THAT(request.stripped(), ::testing::EndsWith("Content-Length: 2\r\n\r\n{}")) << length;
    IncomingRequest coded({});
    EXPECT_EQ(coded.add("POST " + target + " HTTP/1.1\r\nTransfer-Encoding: x\r\n\r\n"), State::refused) << length;
  }
}

TEST(http_request, stripped__has_nothing_in_it_that_the_service_does_not_need) {
  IncomingRequest request({});
  request.add(post + "GET /second HTTP/1.1\r\n\r\n");
  const std::string stripped = request.stripped();
  EXPECT_THAT(stripped, AllOf(StartsWith("POST /v1/jobs?a=b HTTP/1.1\r\n"), HasSubstr("Content-Length: 5\r\n"),
                              ::testing::EndsWith("\r\n\r\nhello")));
  EXPECT_THAT(stripped, Not(HasSubstr("secret")));
  EXPECT_THAT(stripped, Not(HasSubstr("gzip")));
  EXPECT_THAT(stripped, Not(HasSubstr("Range")));
  EXPECT_THAT(stripped, Not(HasSubstr("second")));
}

TEST(http_request, expectation__is_told_once_and_only_while_the_body_is_to_come) {
  IncomingRequest request({});
  request.add("POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n");
  EXPECT_FALSE(request.take_expectation());
  request.add("\r\n");
  EXPECT_TRUE(request.take_expectation());
  EXPECT_FALSE(request.take_expectation());
  EXPECT_EQ(request.add("ab"), State::whole);
}

TEST(http_request, bad_ones__are_refused_with_a_status_and_a_line) {
  const std::string long_text(20'000, 'x');
  struct Case {
    std::string text;
    int status;
    std::string says;
  };
  const std::vector<Case> cases{
      {"\r\n\r\n", 400, "the request line is none"},
      {"GET\r\n\r\n", 400, "the request line is none"},
      {"GET /\r\n\r\n", 400, "the request line is none"},
      {" GET / HTTP/1.1\r\n\r\n", 400, "the request line is none"},
      {"G\x01T / HTTP/1.1\r\n\r\n", 400, "the request line is none"},
      {"GET / HTTP/2\r\n\r\n", 505, "HTTP/1.1"},
      {"GET x HTTP/1.1\r\n\r\n", 400, "the target is no path"},
      {"GET http://x/ HTTP/1.1\r\n\r\n", 400, "the target is no path"},
      {"GET /a b HTTP/1.1\r\n\r\n", 400, "the target is no path"},
      {"GET /\x80 HTTP/1.1\r\n\r\n", 400, "the target is no path"},
      {"GET /" + std::string(2048, 'x') + " HTTP/1.1\r\n\r\n", 414, "2049 bytes"},
      {"HEAD / HTTP/1.1\r\n\r\n", 501, "\"HEAD\""},
      {"BREW / HTTP/1.1\r\n\r\n", 501, "\"BREW\""},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, "a header is none"},
      {"GET / HTTP/1.1\r\n: empty\r\n\r\n", 400, "a header is none"},
      {"GET / HTTP/1.1\r\nName : x\r\n\r\n", 400, "a header is none"},
      {"GET / HTTP/1.1\r\nA: b\r\n folded: x\r\n\r\n", 400, "a header is none"},
      {"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400, "Content-Length is no length"},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "Content-Length is no length"},
      {"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400, "Content-Length is no length"},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, "once"},
      {"POST / HTTP/1.1\r\nContent-Length: 4194305\r\n\r\n", 413, "send at most 4194304"},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n", 413, "send at most"},
      {"GET / HTTP/1.1\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n", 400, "stands there twice"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501, "transfer codings"},
      {"POST / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n", 415, "content codings"},
      {"POST / HTTP/1.1\r\nExpect: miracles\r\n\r\n", 417, "expectation"},
      {"GET / HTTP/1.1\r\nA: " + long_text, 431, "more than 16384 bytes"},
      {long_text, 431, "more than 16384 bytes"},
  };
  for (const Case& bad : cases) {
    IncomingRequest request({});
    EXPECT_EQ(request.add(bad.text), State::refused) << bad.text.substr(0, 80);
    EXPECT_EQ(request.status(), bad.status) << bad.text.substr(0, 80);
    EXPECT_THAT(request.error(), AllOf(HasSubstr(bad.says), HasSubstr(";"))) << bad.text.substr(0, 80);
    EXPECT_EQ(request.add("more"), State::refused);
  }
}

class responder : public ::testing::Test {
 protected:
  /// Status and body.
  std::pair<int, nlohmann::json> asked(const std::string& text) {
    IncomingRequest request({});
    if (request.add(text) != State::whole) return {0, request.error()};
    const std::string response = responder_.respond(request.stripped(), 0_ns, true).text;
    const std::size_t body = response.find("\r\n\r\n");
    EXPECT_THAT(response, StartsWith("HTTP/1.1 "));
    EXPECT_THAT(response, HasSubstr("Content-Type: application/json"));
    EXPECT_THAT(response, HasSubstr("Connection: close"));
    return {std::stoi(response.substr(9, 3)), nlohmann::json::parse(response.substr(body + 4))};
  }

  SchedulerService service_{two_racks(), options_in({})};
  KubernetesExtender kubernetes_{service_, {}};
  Api api_{service_, kubernetes_};
  Responder responder_{api_};
};

TEST_F(responder, respond__is_the_apis_answer) {
  EXPECT_EQ(asked("GET /v1/health HTTP/1.1\r\n\r\n").second["status"], "ok");
  EXPECT_EQ(asked("GET /nothing HTTP/1.1\r\n\r\n").first, 404);
  EXPECT_EQ(asked("PUT /v1/health HTTP/1.1\r\n\r\n").first, 405);
  EXPECT_EQ(asked("DELETE /v1/jobs/none HTTP/1.1\r\n\r\n").first, 404);
  EXPECT_EQ(asked("POST /v1/jobs HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]").first, 400);
  EXPECT_EQ(asked("POST /v1/jobs HTTP/1.1\r\n\r\n").first, 400) << "without a body";
}

TEST_F(responder, respond__decodes_each_part_of_a_path_by_itself) {
  service_.arrive(job("default/train"), {"a1", "b1"});
  EXPECT_EQ(asked("GET /v1/jobs/default%2Ftrain HTTP/1.1\r\n\r\n").second["id"], "default/train");
  EXPECT_EQ(asked("GET /v1/jobs/default%2Ftrain/plan?after=0 HTTP/1.1\r\n\r\n").second["number"], 1);
  EXPECT_EQ(asked("GET /v1/jobs/default/train HTTP/1.1\r\n\r\n").first, 404);
  EXPECT_EQ(asked("DELETE /v1/jobs/default%2Ftrain HTTP/1.1\r\n\r\n").first, 200);
  for (const std::string path : {"/%00", "/%", "/%zz", "/%ff%fe", "/v1/jobs/%0a%0d", "//", "/v1//jobs", "/../v1/jobs"})
    EXPECT_EQ(asked("GET " + path + " HTTP/1.1\r\n\r\n").first, 404) << path;
}

TEST_F(responder, respond__says_what_is_to_be_waited_for) {
  service_.arrive(job("one"), {"a1", "b1"});
  IncomingRequest request({});
  request.add("GET /v1/jobs/one/plan?after=1&wait_ms=250 HTTP/1.1\r\n\r\n");
  const Responder::Response response = responder_.respond(request.stripped(), 0_ns, true);
  ASSERT_TRUE(response.wait);
  EXPECT_EQ(response.wait->job, "one");
  EXPECT_EQ(response.wait->after, 1U);
  EXPECT_EQ(response.wait->timeout, 250_ms);
  EXPECT_FALSE(responder_.respond(request.stripped(), 0_ns, false).wait);
}

}  // namespace
}  // namespace mltcp::service::http_request_test
