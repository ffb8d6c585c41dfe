// Reads tables of an untrusted SQLite file in memory. Each table is read row by row, from its first row to its last.
// Rejects virtual tables, views, triggers and computed columns (https://sqlite.org/security.html).
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
  /// Reads all of `input`. Calls `hold` with the numbers of bytes that stay in memory. Throws InputError "FILE: cause;
  /// cure".
  Database(TraceInput& input, const std::function<void(std::size_t)>& hold);

  class Row {
   public:
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    [[nodiscard]] std::optional<std::int64_t> whole(int column) const;
    /// Returns the bytes of a text or blob, or an empty string for values of other types. The result is valid until the
    /// next row is read.
    [[nodiscard]] std::string_view text(int column) const;

   private:
    sqlite3_stmt* statement_;
  };

  [[nodiscard]] bool has(std::string_view table);
  /// Calls `each` for every row of a table. Missing columns are empty. A missing table has no rows.
  void each(std::string_view table, std::initializer_list<std::string_view> columns,
            const std::function<void(const Row&)>& each);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  /// Sets how much work statements may still do. The work is counted every `at_once` instructions.
  void allow(std::int64_t instructions, int at_once);
  void query(const std::string& sql, const std::function<void(const Row&)>& each);
  [[noreturn]] void fail(std::string_view cause) const;

  std::string name_;
  std::string bytes_;      ///< content of the file; must outlive database_
  std::int64_t left_ = 0;  ///< work still allowed: instructions of SQLite's machine plus bytes of texts
  int at_once_ = 1;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace mltcp::workload
