// JSON of any length, element by element: the elements of one array are parsed one at a time, so that memory is bounded
// by the longest of them. The text around them is skipped.
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
  /// The elements are those of the array `key` in the file's object; or of the file's array; or a sequence of objects.
  JsonElements(TraceInput& input, std::string_view key);

  /// Calls `each` with every element, and `member` with other members of the file's object, large ones excepted. Throws
  /// InputError "FILE: byte N: cause; cure".
  void read(const std::function<void(const rapidjson::Value&)>& each,
            const std::function<void(std::string_view key, const rapidjson::Value&)>& member = {});

  /// For messages, the place of the current element, from 1: "element 3, byte 190".
  [[nodiscard]] std::string place() const;

 private:
  static constexpr int kEnd = -1;

  int peek();          ///< next byte, kEnd at the end
  int peek_visible();  ///< the same after white space
  void take() { ++at_; }
  void expect(char which, std::string_view where);
  bool fill();
  std::size_t skip_value();  ///< goes to the end of a value; returns its beginning in buffer_
  const rapidjson::Value& parse(std::size_t from);
  void elements(const std::function<void(const rapidjson::Value&)>& each);
  [[noreturn]] void fail(std::string_view cause) const;

  TraceInput& input_;
  std::string key_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;    ///< in buffer_
  std::size_t end_ = 0;   ///< end of the bytes in buffer_
  std::size_t keep_ = 0;  ///< if keeping_: beginning of the bytes that must stay in buffer_
  bool keeping_ = false;
  std::uint64_t before_ = 0;  ///< bytes of the input before buffer_
  std::uint64_t element_at_ = 0;
  std::size_t element_ = 0;
  rapidjson::Document document_;
};

/// Numbers and texts of a JSON object, with a default if there is none.
namespace json {
/// The member, or null.
const rapidjson::Value* member(const rapidjson::Value& object, const char* key);
/// Reads a whole number, or a text of one. False if there is none.
bool whole(const rapidjson::Value* value, std::int64_t& result);
std::string_view text(const rapidjson::Value* value);
}  // namespace json

}  // namespace mltcp::workload
