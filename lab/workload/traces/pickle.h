// Reads plain data written by Python's pickle, protocols 2 to 5 (https://docs.python.org/3/library/pickletools.html):
// dicts, lists, tuples, texts, numbers, booleans and None. A pickle is a program for a stack machine. Instructions that
// import or call something are refused, so no code is ever run.
//
// A value that is used several times is stored once. Values are converted to JSON element by element. Their total is
// limited to a few times the size of the file, so that a small file cannot expand without bound.
#pragma once

#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/lab/workload/traces/trace_input.h"

namespace mltcp::workload {

bool is_pickle(std::string_view beginning);

/// Thrown for a pickle that imports or calls something.
class CallInPickle : public InputError {
  using InputError::InputError;
};

class Pickle {
 public:
  /// Reads `input` to its end. Calls `hold` with the number of bytes that stay in memory. Throws InputError "FILE: byte
  /// N: cause; cure".
  Pickle(TraceInput& input, const std::function<void(std::size_t)>& hold);

  /// Works like JsonElements::read(). The pickle must be a dict. Calls `member` with each member except the list `key`.
  /// Then calls `each` with the elements of that list, which must be distinct dicts. Leaves out the members named
  /// `unread` of nested dicts.
  void read(std::string_view key, std::string_view unread, const std::function<void(const rapidjson::Value&)>& each,
            const std::function<void(std::string_view key, const rapidjson::Value&)>& member);
  /// Returns the position of the current element for messages, e.g. "element 3".
  [[nodiscard]] std::string place() const;

 private:
  enum class Kind : std::uint8_t { none, boolean, whole, real, text, list, tuple, dict };
  using Index = std::uint32_t;
  struct Value {
    Kind kind = Kind::none;
    std::uint32_t size = 0;  ///< bytes of a text; number of items of a list, tuple or dict, where keys count as items
    /// The content, depending on `kind`. A whole number stores its value, and a real number its bits. A text stores its
    /// beginning in texts_. A list, tuple or dict stores its first chunk in items_ in the lower half, and its last
    /// chunk in the upper half.
    std::uint64_t bits = 0;
  };

  void run();
  bool step(std::uint8_t operation);
  void push(Index value);
  Index add(Kind kind, std::uint64_t bits = 0, std::uint32_t size = 0);
  void push_text(std::size_t size);
  std::size_t above_mark();                  ///< removes the last mark; returns the number of values above it
  void require(std::size_t size) const;      ///< throws if there are fewer values above the last mark
  void append(Kind kind, std::size_t size);  ///< appends the `size` topmost values to the value below them
  void collect(std::size_t size);            ///< makes a tuple of the `size` topmost values
  void remember(std::uint64_t place);
  void recall(std::uint64_t place);

  std::uint8_t byte();
  std::uint64_t number(std::size_t bytes);
  std::uint64_t long_number(std::size_t bytes);
  bool fill();
  void count(std::size_t bytes);
  [[noreturn]] void fail(std::string_view cause, std::string_view cure = "copy or record it again") const;

  void each_item(const Value& value, const std::function<void(Index)>& each) const;
  [[nodiscard]] std::string_view text_of(Index value) const;
  rapidjson::Value json(Index value, std::string_view unread, std::size_t depth);

  TraceInput& input_;
  const std::function<void(std::size_t)>& hold_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t before_ = 0;  ///< number of input bytes before buffer_
  std::size_t counted_ = 0;   ///< number of bytes not yet reported to hold_
  std::deque<Value> values_;
  std::string texts_;
  std::vector<Index> items_;  ///< chunks, each with its number of items, the index of the next chunk, and its items
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Index> memo_;
  std::uint64_t shown_ = 0;         ///< number of values converted to JSON
  std::uint64_t shown_of_one_ = 0;  ///< number of values converted for the current element
  std::size_t element_ = 0;
  rapidjson::Document document_;
};

}  // namespace mltcp::workload
