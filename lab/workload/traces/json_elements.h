// Reads JSON of any length element by element. The elements of one array are parsed one at a time, so that the longest
// element bounds the memory. The text around the array is skipped.
#pragma once

#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/traces/trace_input.h"

namespace mltcp::workload {

class JsonElements {
 public:
  /// If `key` is empty, the file must be an array of elements or a sequence of objects. If `key` is not empty, the file
  /// must be an object, and the elements are those of its array `key`.
  JsonElements(TraceInput& input, std::string_view key);

  /// Calls `each` with every element. If the file is an object, calls `member` with each of its members, except the
  /// array `key` and members longer than 16 MiB. Throws InputError "FILE: byte N: cause; cure".
  void read(const std::function<void(const rapidjson::Value&)>& each,
            const std::function<void(std::string_view key, const rapidjson::Value&)>& member = {});

  /// Returns the position of the current element for messages, e.g. "element 3, byte 190". Elements count from 1.
  [[nodiscard]] std::string place() const;

 private:
  static constexpr int kEnd = -1;

  int peek();          ///< returns the next byte without consuming it; kEnd at the end of the input
  int peek_visible();  ///< like peek(), but skips white space first
  void take() { ++at_; }
  void expect(char which, std::string_view where);
  bool fill();
  std::size_t skip_value();  ///< skips a value; returns the index in buffer_ at which the value begins
  const rapidjson::Value& parse(std::size_t from);
  void elements(const std::function<void(const rapidjson::Value&)>& each);
  [[noreturn]] void fail(std::string_view cause) const;

  TraceInput& input_;
  std::string key_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;    ///< index of the next byte in buffer_
  std::size_t end_ = 0;   ///< number of valid bytes in buffer_
  std::size_t keep_ = 0;  ///< if keeping_: index of the first byte that must stay in buffer_
  bool keeping_ = false;
  std::uint64_t before_ = 0;  ///< number of input bytes before buffer_
  std::uint64_t element_at_ = 0;
  std::size_t element_ = 0;
  rapidjson::Document document_;
};

/// Access to JSON values that may be missing or of an unexpected type.
namespace json {
/// Returns the member, or nullptr if there is none.
const rapidjson::Value* member(const rapidjson::Value& object, const char* key);
/// Sets `result` to the whole number that a JSON number or a JSON text states. Returns false if there is none.
bool whole(const rapidjson::Value* value, std::int64_t& result);
std::string_view text(const rapidjson::Value* value);
}  // namespace json

}  // namespace mltcp::workload
