// Reads tables of SQLite files with limits on memory and work (see database.h).
#include "mltcp/lab/workload/traces/database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kRead = std::size_t{256} << 10;
constexpr int kMaxValue = 1 << 24;       // maximum bytes of a row
constexpr int kMaxDefinition = 1 << 14;  // maximum bytes of a table's definition
constexpr int kMaxInSchema = 10'000;     // maximum instructions to parse the schema; a table or an index takes seven
constexpr int kAtOnce = 1000;            // instructions
// Allowed work for each byte of the file: instructions of SQLite's virtual machine plus bytes of texts. The value is
// large enough for short rows.
constexpr std::int64_t kPerByte = 16;
constexpr std::int64_t kPerPage = 32;  // work that is charged for an access to a page, in instructions
constexpr std::int64_t kAnyway = 1'000'000;

int only_reads(void*, int action, const char* what, const char*, const char*, const char*) {
  const bool allowed = action == SQLITE_SELECT || action == SQLITE_READ ||
                       (action == SQLITE_PRAGMA && what != nullptr && std::string_view(what) == "table_xinfo");
  return allowed ? SQLITE_OK : SQLITE_DENY;
}

}  // namespace

void Database::fail(std::string_view cause) const {
  throw InputError(fmt::format("{}: {}; export it again", name_, one_line(cause)));
}

Database::Database(TraceInput& input, const std::function<void(std::size_t)>& hold) : name_(input.name()) {
  for (std::size_t size = 0;;) {
    bytes_.resize(size + kRead);
    const std::size_t count = input.read(bytes_.data() + size, kRead);
    hold(count);
    bytes_.resize(size += count);
    if (count == 0) break;
  }
  // The header contains the number of pages. Set its versions (bytes 18 and 19) to 1, so that a file with a separate
  // log (WAL) is read without the log.
  constexpr std::size_t head = 100;
  if (bytes_.size() < head) fail("the file is cut off");
  const auto big = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8U | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  };
  const std::uint64_t page = big(16, 2) == 1 ? 65'536 : big(16, 2);
  if (page * big(28, 4) > bytes_.size())
    fail(fmt::format("the file is cut off: it has {} bytes of {}", bytes_.size(), page * big(28, 4)));
  bytes_[18] = bytes_[19] = 1;
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr);
  database_.reset(opened);
  if (result != SQLITE_OK) fail("there is no memory for a database");
  sqlite3_drop_modules(opened, nullptr);  // disables virtual tables
  auto* const bytes = reinterpret_cast<unsigned char*>(bytes_.data());
  const auto size = static_cast<sqlite3_int64>(bytes_.size());
  if (sqlite3_deserialize(opened, "main", bytes, size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    fail("it can't be opened as a database");
  for (const auto& [option, on] : {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1),
                                   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                   {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                   {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                   {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}})
    sqlite3_db_config(opened, option, on, nullptr);
  for (const auto& [limit, most] : {std::pair(SQLITE_LIMIT_LENGTH, kMaxDefinition),
                                    {SQLITE_LIMIT_SQL_LENGTH, kMaxDefinition},
                                    {SQLITE_LIMIT_COLUMN, 200},
                                    {SQLITE_LIMIT_EXPR_DEPTH, 20},
                                    {SQLITE_LIMIT_ATTACHED, 0},
                                    {SQLITE_LIMIT_WORKER_THREADS, 0}})
    sqlite3_limit(opened, limit, most);
  sqlite3_set_authorizer(opened, only_reads, nullptr);
  // The first statement makes SQLite parse the definitions of tables. If several pages refer to one page of
  // definitions, SQLite parses this page several times. So count every instruction.
  allow(kMaxInSchema, 1);
  query(R"(SELECT 1 FROM "sqlite_master" LIMIT 0)", [](const Row&) {});
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kMaxValue);
  allow(kPerByte * static_cast<std::int64_t>(bytes_.size()) + kAnyway, kAtOnce);
}

void Database::allow(std::int64_t instructions, int at_once) {
  left_ = instructions;
  at_once_ = at_once;
  const auto count = [](void* self) {
    auto& database = *static_cast<Database*>(self);
    return (database.left_ -= database.at_once_) < 0 ? 1 : 0;
  };
  sqlite3_progress_handler(database_.get(), at_once, count, this);
}

void Database::query(const std::string& sql, const std::function<void(const Row&)>& each) {
  sqlite3_stmt* prepared = nullptr;
  int result = sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, Close> statement(prepared);
  if (result == SQLITE_OK) {
    const Row row(prepared);
    while ((result = sqlite3_step(prepared)) == SQLITE_ROW) {
      // Several rows may share one long text, so count the text for each row.
      for (int column = 0; column < sqlite3_column_count(prepared); ++column)
        left_ -= static_cast<std::int64_t>(row.text(column).size());
      // Several rows may share one page, so count each access to a page.
      for (const int pages : {SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS}) {
        int count = 0;
        int unused = 0;
        sqlite3_db_status(database_.get(), pages, &count, &unused, 1);
        left_ -= kPerPage * count;
      }
      if (left_ < 0) {
        result = SQLITE_INTERRUPT;
        break;
      }
      each(row);
    }
  }
  if (result == SQLITE_INTERRUPT) fail("to read it takes more work than its size is worth");
  if (result == SQLITE_TOOBIG)
    fail(fmt::format("a row, or the definition of a table, has more than {} bytes",
                     sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, -1)));
  if (result != SQLITE_DONE) fail(fmt::format("the database is damaged ({})", sqlite3_errmsg(database_.get())));
}

bool Database::has(std::string_view table) {
  // Views and virtual tables have no root page, and do not count as tables.
  bool found = false;
  query("SELECT \"name\", \"type\", \"rootpage\" FROM \"sqlite_master\"", [&](const Row& row) {
    found = found || (row.text(0) == table && row.text(1) == "table" && row.whole(2).value_or(0) > 0);
  });
  return found;
}

void Database::each(std::string_view table, std::initializer_list<std::string_view> columns,
                    const std::function<void(const Row&)>& each) {
  if (!has(table)) return;
  std::set<std::string, std::less<>> there;
  query(fmt::format("PRAGMA table_xinfo({})", table), [&](const Row& row) {
    constexpr int name = 1;
    constexpr int hidden = 6;
    if (row.whole(hidden).value_or(0) != 0) fail(fmt::format("{} has a column that is computed", table));
    there.emplace(row.text(name));
  });
  std::vector<std::string> wanted;
  for (const std::string_view column : columns)
    wanted.push_back(there.find(column) == there.end() ? "NULL" : fmt::format("\"{}\"", column));
  query(fmt::format("SELECT {} FROM \"{}\" NOT INDEXED", fmt::join(wanted, ", "), table), each);
}

std::optional<std::int64_t> Database::Row::whole(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

std::string_view Database::Row::text(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) return {};
  const void* const at = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return at == nullptr ? std::string_view()
                       : std::string_view(static_cast<const char*>(at), static_cast<std::size_t>(size));
}

}  // namespace mltcp::workload
