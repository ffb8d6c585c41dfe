// Reads tables of an untrusted SQLite file in memory, row by row, each from its first row to its last. Views, triggers,
// virtual tables and computed columns are refused (https://sqlite.org/security.html).
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/lab/workload/traces/trace_input.h"

namespace mltcp::workload {

class Database {
 public:
  /// Reads all of `input`; calls `hold` with the bytes that it keeps. Throws InputError "FILE: cause; cure".
  Database(TraceInput& input, const std::function<void(std::size_t)>& hold);

  class Row {
   public:
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    [[nodiscard]] std::optional<std::int64_t> whole(int column) const;
    /// A text or bytes; empty for other types. Valid as long as the row.
    [[nodiscard]] std::string_view text(int column) const;

   private:
    sqlite3_stmt* statement_;
  };

  [[nodiscard]] bool has(std::string_view table);
  /// Calls `each` for every row. Missing columns are empty; a missing table has no rows.
  void each(std::string_view table, std::initializer_list<std::string_view> columns,
            const std::function<void(const Row&)>& each);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  /// Sets the work that statements may still do, counted every `at_once` instructions.
  void allow(std::int64_t instructions, int at_once);
  void query(const std::string& sql, const std::function<void(const Row&)>& each);
  [[noreturn]] void fail(std::string_view cause) const;

  std::string name_;
  std::string bytes_;      ///< outlives the database
  std::int64_t left_ = 0;  ///< instructions of SQLite's machine, and bytes of texts, still allowed
  int at_once_ = 1;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace mltcp::workload
