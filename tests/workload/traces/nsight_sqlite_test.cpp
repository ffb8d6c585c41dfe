// Tests SQLite exports of Nsight Systems: the data read, and that the reader uses nothing else of a database.

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../graph_text.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload::nsight_sqlite_test {
namespace {

using namespace mltcp::literals;
using Kind = GraphNode::Kind;

constexpr std::int64_t kThread = 5LL << 24 | 7;  // thread 7 of process 5
const std::string kSchema = R"(
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT);
  CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER,
                            domainId INTEGER, jsonText TEXT, binaryData BLOB);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                            correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
                            nameId INTEGER);
  CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
  INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1724781437000000000);
  INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)'),
    (3, 'ncclDevKernel_AllGather_RING_LL(args)'), (4, 'ncclDevKernel_SendRecv(args)'), (5, 'ncclAllReduce'),
    (6, 'cudaLaunchKernelExC_v11060');
)";

std::string serialized(const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &database), SQLITE_OK);
  char* why = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string text(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return text;
}

/// Builds an export with the events of one process. Times are in microseconds.
class Export {
 public:
  explicit Export(std::int64_t thread = kThread, int device = 0) : thread_(thread), device_(device) {}

  void range(const std::string& name, std::int64_t from, std::int64_t to, const std::string& payload = "") {
    sql_ += fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', NULL, {}, 0, {}, NULL);", from * 1000,
                        to * 1000, name, thread_, payload.empty() ? "NULL" : "'" + payload + "'");
  }
  void kernel(int name, std::int64_t launch, std::int64_t from, std::int64_t to, int stream = 7) {
    sql_ += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, {}, {}, {}, {}, {});", from * 1000,
                        to * 1000, device_, stream, ++correlation_, thread_ & ~0xFFFFFFLL, name, name);
    sql_ += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, 6);", launch * 1000,
                        launch * 1000 + 500, thread_, correlation_);
  }
  void init(std::int64_t id, int ranks, int rank) {
    range("ncclCommInitRank", 1, 2,
          fmt::format(R"({{"NCCL communicator ID": {}, "No. of ranks": {}, "Rank": {}, "CUDA device": 0}})", id, ranks,
                      rank));
  }
  void call(const std::string& name, std::int64_t at, std::int64_t id, std::int64_t bytes, int peer = -1) {
    range(name, at, at + 1,
          fmt::format(R"({{"NCCL communicator ID": {}, "Message size [bytes]": {}{}}})", id, bytes,
                      peer < 0 ? "" : fmt::format(R"(, "Peer rank": {})", peer)));
  }
  [[nodiscard]] const std::string& sql() const { return sql_; }
  [[nodiscard]] std::string bytes() const { return serialized(kSchema + sql_); }

 private:
  std::string sql_;
  std::int64_t thread_;
  int device_;
  int correlation_ = 0;
};

ExecutionGraph graph_of(const std::string& bytes, const std::string& name = "report.sqlite") {
  return parse_trace_graph(bytes, name, {.as_recorded = true});
}
std::string refusal(const std::string& bytes) {
  return refusal_of([&] { parse_trace_graph(bytes, "r.sqlite"); }, "r.sqlite: ");
}

/// Returns an export with steps of 10 ms. Each step begins with 4 ms of computation. An all-reduce of 2 ms overlaps
/// this computation for 1 ms. Then follow an all-gather of 1 ms in a group of two, and 3 ms of computation.
Export training(int rank = 2) {
  Export one;
  one.init(77, 4, rank);
  one.init(78, 2, rank / 2);
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = 1000 + 10'000 * step;
    one.range(fmt::format("iteration {}", step), at, at + 10'000);
    one.range("Optimizer.step", at + 8000, at + 9000);
    one.kernel(1, at + 10, at + 100, at + 4000);
    // The call is in a group. The host launches the kernels of a group when the group ends.
    one.range("ncclGroupStart", at + 20, at + 21);
    one.call("ncclAllReduce", at + 25, 77, 4096);
    one.range("ncclGroupEnd", at + 30, at + 40);
    one.kernel(2, at + 35, at + 3000, at + 5000, 20);
    one.call("ncclAllGather", at + 50, 78, 1000);
    one.kernel(3, at + 50, at + 5000, at + 6000, 20);
    one.kernel(1, at + 60, at + 6000, at + 9000);
  }
  return one;
}

TEST(NsightSqlite, kernels__get_their_sizes_from_the_calls_that_launched_them) {
  const ExecutionGraph graph = graph_of(training().bytes());
  EXPECT_EQ(graph.format, "Nsight Systems (SQLite)");
  ASSERT_EQ(graph.ranks.size(), 4u);
  const RankGraph& rank = graph.ranks[2];
  EXPECT_THAT(bytes_of(rank), ElementsAre(4096u, 2000u, 4096u, 2000u, 4096u, 2000u, 4096u, 2000u));
  EXPECT_THAT(nodes_of(graph, 2), AllOf(Contains(StartsWith("all-reduce 4096 B for 2 ms")),
                                        Contains(StartsWith("all-gather 2000 B of 2 3 for 1 ms"))));
  ASSERT_EQ(graph.steps.size(), 4u);
  EXPECT_EQ(graph.steps[3].name, "iteration 3");
  const GraphSummary summary = summarise(graph, {.rank = 2});
  EXPECT_EQ(summary.steps.at(1).length, 10_ms);
  EXPECT_EQ(summary.steps.at(1).sent, 6144u + 1000u);
  EXPECT_EQ(summary.steps.at(1).communicate, 3_ms);
  EXPECT_THAT(graph.warnings, Not(Contains(HasSubstr("have no size"))));
}

TEST(NsightSqlite, payloads__are_read_from_bytes_with_their_schema) {
  Export one;
  one.init(77, 4, 1);
  one.kernel(2, 25, 30, 40);
  const auto hex = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += fmt::format("{:02x}", value >> (8 * i) & 0xff);
    return text;
  };
  const std::string head = hex(3, 4) + hex(0, 4) + hex(100, 4) + hex(0, 4) + hex(24, 8) + hex(56, 8);
  const std::string sql =
      kSchema + one.sql() +
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, type INT, name TEXT, offset INT);"
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (3, 100, 0, 18, 'NCCL communicator ID', NULL),"
      "(3, 100, 1, 22, 'Message size [bytes]', 8), (3, 100, 2, 5, 'Reduction operation', 16);" +
      fmt::format("INSERT INTO NVTX_EVENTS VALUES (20000, 26000, 59, NULL, 5, {}, 3, NULL, x'{}');", kThread,
                  head + hex(77, 8) + hex(12'345, 8) + hex(0, 8));
  const ExecutionGraph graph = graph_of(serialized(sql));
  EXPECT_THAT(bytes_of(graph.ranks.at(1)), ElementsAre(12'345u));
}

TEST(NsightSqlite, messages__of_one_kernel_are_several) {
  Export one;
  one.init(77, 4, 1);
  one.range("ncclGroupStart", 10, 11);
  one.call("ncclSend", 12, 77, 500, 2);
  one.call("ncclRecv", 14, 77, 300, 0);
  one.range("ncclGroupEnd", 16, 20);
  one.kernel(4, 18, 30, 40);
  const ExecutionGraph graph = graph_of(one.bytes());
  EXPECT_THAT(nodes_of(graph, 1),
              AllOf(Contains(StartsWith("send 500 B to 2 ")), Contains(StartsWith("receive 300 B from 0 "))));
  EXPECT_THAT(bytes_of(graph.ranks[1]), ElementsAre(500u, 300u));
}

TEST(NsightSqlite, messages__of_an_all_to_all_of_many_ranks_are_read) {
  Export one;
  constexpr int ranks = 600;
  one.init(77, ranks, 1);
  one.range("nccl:all_to_all", 9, 1400);
  for (int peer = 0; peer < ranks; ++peer) {
    one.call("ncclSend", 10 + 2 * peer, 77, 500, peer);
    one.call("ncclRecv", 11 + 2 * peer, 77, 300, peer);
  }
  one.range("nccl:all_reduce", 1300, 1400);
  one.kernel(4, 1400, 1500, 1600);
  const ExecutionGraph graph = graph_of(one.bytes());
  EXPECT_EQ(bytes_of(graph.ranks.at(1)).size(), 2u * (ranks - 1)) << "none to itself";
  EXPECT_THAT(graph.warnings, AllOf(Not(Contains(HasSubstr("left out"))), Not(Contains(HasSubstr("have no size")))));
}

TEST(NsightSqlite, sizes__that_are_not_there_are_counted) {
  Export one;
  one.range("iteration 0", 0, 100);
  one.kernel(1, 5, 10, 20);
  one.kernel(2, 25, 30, 40);
  one.kernel(2, 45, 50, 60);
  const ExecutionGraph graph = graph_of(one.bytes());
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("2 of 2 communications have no size: record NCCL's ranges")));
  Export part;
  part.call("ncclAllGather", 20, 99, 100);
  part.kernel(3, 25, 30, 40);
  part.call("ncclAllReduce", 41, 99, 100);
  EXPECT_THAT(graph_of(part.bytes()).warnings,
              AllOf(Contains(HasSubstr("1 collective of communicators whose number of ranks is not in it")),
                    Contains(HasSubstr("1 call of NCCL without a kernel"))));
}

TEST(NsightSqlite, one_process__of_several_is_read) {
  Export first = training(0);
  Export second(6LL << 24 | 9, 1);
  second.init(77, 4, 1);
  second.call("ncclAllReduce", 20, 77, 9);
  second.kernel(2, 25, 30, 40);
  const ExecutionGraph graph = graph_of(serialized(kSchema + second.sql() + first.sql()));
  EXPECT_EQ(bytes_of(graph.ranks.at(0)).size(), 8u);
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("it holds 2 processes or GPUs that communicate: only GPU 0 is read")));
}

TEST(NsightSqlite, ranks__of_several_files_are_joined) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 4; ++rank) files.push_back(training(rank).bytes());
  std::vector<PartialGraph> parts;
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    const auto input = memory_input(files[rank], fmt::format("report{}.sqlite", rank));
    parts.push_back(kNsightSqlite.read(*input, {}));
  }
  const ExecutionGraph graph = join(std::move(parts));
  ASSERT_EQ(graph.ranks.size(), 4u);
  for (const RankGraph& rank : graph.ranks) EXPECT_EQ(bytes_of(rank).size(), 8u);
}

TEST(NsightSqlite, other_databases__and_damage_are_refused) {
  EXPECT_THAT(refusal(serialized("CREATE TABLE a (b)")), HasSubstr("without a table CUPTI_ACTIVITY_KIND_KERNEL"));
  EXPECT_THAT(refusal(serialized(kSchema)), HasSubstr("it has no kernels of a GPU"));
  const std::string whole = training().bytes();
  for (std::size_t size = 16; size < whole.size(); size += 1111)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("cut off"));
  std::string damaged = whole;
  for (std::size_t i = 5000; i < damaged.size(); i += 7) damaged[i] = '\xff';
  refusal(damaged);
}

TEST(NsightSqlite, whatever_is_no_plain_table__is_refused) {
  const std::string kernels = "CUPTI_ACTIVITY_KIND_KERNEL";
  EXPECT_THAT(refusal(serialized("CREATE TABLE a (start, end); CREATE VIEW " + kernels + " AS SELECT * FROM a")),
              HasSubstr("without a table"));
  EXPECT_THAT(refusal(serialized("CREATE TABLE " + kernels +
                                 " (start, end GENERATED ALWAYS AS (hex(zeroblob(1000000))) VIRTUAL, deviceId)")),
              AnyOf(HasSubstr("has a column that is computed"), HasSubstr("damaged")));
  EXPECT_THAT(refusal(serialized("CREATE VIRTUAL TABLE " + kernels + " USING fts5(start, end)")),
              HasSubstr("without a table"));
  EXPECT_THAT(refusal(serialized("CREATE VIRTUAL TABLE " + kernels +
                                 " USING fts5(start, end); PRAGMA writable_schema = 1; UPDATE sqlite_master SET "
                                 "rootpage = 2 WHERE name = '" +
                                 kernels + "'")),
              HasSubstr("no such module"))
      << "one that claims a page";
  // A trigger in the database is not executed.
  Export one = training();
  EXPECT_EQ(graph_of(serialized(kSchema + one.sql() +
                                "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM NVTX_EVENTS; END;"))
                .ranks.size(),
            4u);
}

TEST(NsightSqlite, a_tree_in_a_circle__costs_no_more_than_its_size_is_worth) {
  // In every interior page, all children are changed to the page itself.
  std::string sql = kSchema;
  for (int i = 0; i < 3000; ++i)
    sql += fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', NULL, 7, 0, NULL, NULL);", i, i,
                       std::string(300, 'x'));
  std::string bytes = serialized(sql + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 0, 1, 1);");
  constexpr std::size_t page = 4096;
  for (std::size_t at = page; at < bytes.size(); at += page) {
    if (bytes[at] != 5) continue;  // type 5 is an interior page of a table
    const auto cells = static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + 3]) << 8U |
                                                static_cast<unsigned char>(bytes[at + 4]));
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::size_t pointer = at + 12 + 2 * cell;
      const auto content = static_cast<std::size_t>(static_cast<unsigned char>(bytes[pointer]) << 8U |
                                                    static_cast<unsigned char>(bytes[pointer + 1]));
      const std::size_t number = at / page + 1;
      bytes[at + content + 2] = static_cast<char>(number >> 8U);
      bytes[at + content + 3] = static_cast<char>(number);
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  refusal(bytes);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(NsightSqlite, definitions__are_not_parsed_as_often_as_pages_lead_to_them) {
  // The root page of the schema becomes an interior page whose children are all the same leaf.
  constexpr std::size_t page = 65'536;
  constexpr std::size_t children = 10'000;
  std::string columns = "a";
  for (int i = 0; i < 6000; ++i) columns += ",a";
  std::string bytes = serialized(
      "PRAGMA page_size = 65536; CREATE TABLE d (a); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL "
      "(start, end); PRAGMA writable_schema = 1; INSERT INTO sqlite_master VALUES ('table', "
      "'d', 'd', 2, 'CREATE TABLE IF NOT EXISTS d(" +
      columns + ")')");
  ASSERT_EQ(bytes.size(), 3 * page);
  constexpr std::size_t head = 100;
  bytes += bytes.substr(0, page);
  bytes.replace(3 * page, 100, bytes.substr(head, 100));  // in pages other than the first, the tree begins at byte 0
  const auto put = [&](std::size_t at, std::size_t value, int size) {
    while (--size >= 0) bytes[at++] = static_cast<char>(value >> (8 * size));
  };
  put(28, 4, 4);  // pages
  put(head, 5, 1);
  put(head + 1, 0, 2);
  put(head + 3, children, 2);
  put(head + 5, page - 5, 2);
  put(head + 8, 4, 4);
  for (std::size_t child = 0; child < children; ++child) put(head + 12 + 2 * child, page - 5, 2);
  put(page - 5, 4, 4);
  put(page - 1, 1, 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(refusal(bytes), HasSubstr("takes more work than its size is worth"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(NsightSqlite, texts__that_rows_share_are_not_read_for_each) {
  std::string sql = "PRAGMA page_size = 512;" + kSchema;
  for (int i = 0; i < 2000; ++i)
    sql += fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', NULL, 7, 0, NULL, NULL);", i, i,
                       i == 0 ? std::string(200'000, 'x') : std::string(1000, 'y'));
  std::string bytes = serialized(sql + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 0, 1, 1);");
  // Many rows refer to the overflow pages of the long text in the first row.
  EXPECT_THAT(refusal(bytes), HasSubstr("no error"));
  const std::size_t first = bytes.find(std::string(20, 'x'));
  const std::size_t overflow = bytes.find_first_not_of('x', first);
  const std::string next = bytes.substr(overflow, 4);
  for (std::size_t at = bytes.find(std::string(20, 'y')); at != std::string::npos;
       at = bytes.find(std::string(20, 'y'), at)) {
    const std::size_t end = bytes.find_first_not_of('y', at);
    if (end == std::string::npos || end + 4 > bytes.size()) break;
    if (end - at < 400) bytes.replace(end, 4, next);
    at = end;
  }
  const auto begin = std::chrono::steady_clock::now();
  refusal(bytes);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(NsightSqlite, pages_that_lead_to_short_values__are_not_gone_through_for_each) {
  // Rows of 60 bytes claim to begin with one long text, and refer to its overflow pages.
  constexpr int rows = 20'000;
  constexpr std::size_t page = 512;
  constexpr std::size_t local = 39;  // bytes of a long row in its own page; the rest fills whole overflow pages
  constexpr std::size_t length = 4'000'000;
  std::string sql =
      "PRAGMA page_size = 512; CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER);"
      "CREATE TABLE NVTX_EVENTS (filler TEXT, start INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2);" +
      fmt::format("INSERT INTO NVTX_EVENTS VALUES ('{}', 3);", std::string(length, 'x'));
  for (int i = 0; i < rows; ++i) sql += fmt::format("INSERT INTO NVTX_EVENTS VALUES ('{}', 3);", std::string(50, 'y'));
  std::string bytes = serialized(sql);
  const std::size_t first = bytes.find(std::string(20, 'x'));
  const std::string next = bytes.substr(bytes.find_first_not_of('x', first), 4);
  const auto varint = [](std::uint64_t value) {
    std::string text(1, static_cast<char>(value & 0x7fU));
    while ((value >>= 7U) != 0) text.insert(text.begin(), static_cast<char>((value & 0x7fU) | 0x80U));
    return text;
  };
  // The record header has 6 bytes: 1 for its length, 4 for the type of the text, and 1 for the type of a number of one
  // byte.
  constexpr std::size_t head = 6;
  constexpr std::size_t payload = local + (page - 4) * ((length - 10'000) / (page - 4));
  const std::string types = std::string(1, '\6') + varint(13 + 2 * (payload - head - 1)) + '\1';
  ASSERT_EQ(types.size(), head);
  int forged = 0;
  for (std::size_t at = bytes.find(std::string(50, 'y')); at != std::string::npos;
       at = bytes.find(std::string(50, 'y'), at + 1)) {
    std::size_t row = at - 3;  // position after the row number, which has one to three bytes
    while (bytes[row - 2] < 0) --row;
    const std::string number = bytes.substr(row - 1, at - 3 - row + 1);
    const std::string cell = varint(payload) + number + types + std::string(local - head, 'z') + next;
    bytes.replace(row - 2, cell.size(), cell);
    ++forged;
  }
  ASSERT_EQ(forged, rows);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(refusal(bytes), HasSubstr("takes more work than its size is worth"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(NsightSqlite, what_is_kept__counts) {
  const std::string bytes = training().bytes();
  const auto input = memory_input(bytes, "t");
  input->share(std::make_shared<TraceBudget>(std::size_t{20} << 10U));
  EXPECT_THROW(kNsightSqlite.read(*input, {}), InputError);
}

}  // namespace
}  // namespace mltcp::workload::nsight_sqlite_test
