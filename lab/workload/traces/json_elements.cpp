// See json_elements.h. The scanner finds the end of an element by brackets and quotation marks. RapidJSON then parses
// the element in place.
#include "mltcp/lab/workload/traces/json_elements.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kRead = std::size_t{256} << 10;
constexpr std::size_t kMaxElement = std::size_t{64} << 20;
constexpr std::size_t kMaxMember = std::size_t{16} << 20;
constexpr std::size_t kMaxDepth = 64;
constexpr unsigned kParse = rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                            rapidjson::kParseNanAndInfFlag | rapidjson::kParseStopWhenDoneFlag;

}  // namespace

JsonElements::JsonElements(TraceInput& input, std::string_view key) : input_(input), key_(key), buffer_(kRead) {}

void JsonElements::fail(std::string_view cause) const {
  throw InputError(fmt::format("{}: byte {}: {}; copy or record it again", input_.name(), before_ + at_, cause));
}

std::string JsonElements::place() const { return fmt::format("element {}, byte {}", element_, element_at_); }

bool JsonElements::fill() {
  // Removes bytes that have been read, except those of the current value.
  const std::size_t from = keeping_ ? keep_ : at_;
  if (from > 0) {
    std::memmove(buffer_.data(), buffer_.data() + from, end_ - from);
    at_ -= from;
    end_ -= from;
    keep_ = 0;
    before_ += from;
  }
  if (end_ > kMaxElement) fail(fmt::format("a value is longer than {} MiB", kMaxElement >> 20U));
  if (buffer_.size() < end_ + kRead) buffer_.resize(std::max(buffer_.size() * 2, end_ + kRead));
  const std::size_t count = input_.read(buffer_.data() + end_, kRead);
  end_ += count;
  return count > 0;
}

int JsonElements::peek() {
  if (at_ == end_ && !fill()) return kEnd;
  return static_cast<unsigned char>(buffer_[at_]);
}

int JsonElements::peek_visible() {
  int next = peek();
  while (next == ' ' || next == '\n' || next == '\r' || next == '\t') {
    take();
    next = peek();
  }
  return next;
}

void JsonElements::expect(char which, std::string_view where) {
  const int next = peek_visible();
  if (next == kEnd) fail("the file is cut off");
  if (next != which) fail(fmt::format("'{}' is missing {}", which, where));
  take();
}

std::size_t JsonElements::skip_value() {
  int next = peek_visible();
  if (next == kEnd) fail("the file is cut off");
  keep_ = at_;
  keeping_ = true;
  std::size_t depth = 0;
  bool text = false;
  while (true) {
    next = peek();
    if (next == kEnd) fail("the file is cut off");
    if (text) {
      // Most bytes of a file are in texts. Skips to the next quotation mark or backslash at once.
      const char* from = buffer_.data() + at_;
      const char* to = buffer_.data() + end_;
      const char* stop = std::find_if(from, to, [](char c) { return c == '"' || c == '\\'; });
      at_ += static_cast<std::size_t>(stop - from);
      if (stop == to) continue;
      take();
      if (*stop == '\\') {
        if (peek() == kEnd) fail("the file is cut off");
        take();
      } else {
        text = false;
        if (depth == 0) break;
      }
      continue;
    }
    if (next == '"') {
      text = true;
    } else if (next == '{' || next == '[') {
      if (++depth > kMaxDepth) fail(fmt::format("values are nested more than {} deep", kMaxDepth));
    } else if (next == '}' || next == ']') {
      if (depth == 0) break;
      if (--depth == 0) {
        take();
        break;
      }
    } else if (depth == 0 && (next == ',' || next == ' ' || next == '\n' || next == '\r' || next == '\t')) {
      break;
    }
    take();
  }
  keeping_ = false;
  return keep_;
}

const rapidjson::Value& JsonElements::parse(std::size_t from) {
  // The parser needs a 0 byte after the value, where the next value may begin. The overwritten byte is restored
  // afterwards.
  if (at_ == buffer_.size()) buffer_.push_back('\0');
  const char behind = std::exchange(buffer_[at_], '\0');
  document_.SetNull();
  document_.GetAllocator().Clear();
  document_.ParseInsitu<kParse>(buffer_.data() + from);
  buffer_[at_] = behind;
  if (document_.HasParseError()) {
    std::string why = rapidjson::GetParseError_En(document_.GetParseError());
    std::erase(why, '.');
    throw InputError(fmt::format("{}: byte {}: this is not JSON ({}); copy or record it again", input_.name(),
                                 before_ + from + document_.GetErrorOffset(), why));
  }
  return document_;
}

void JsonElements::elements(const std::function<void(const rapidjson::Value&)>& each) {
  expect('[', "before the elements");
  if (peek_visible() == ']') {
    take();
    return;
  }
  while (true) {
    const std::size_t from = skip_value();
    ++element_;
    element_at_ = before_ + from;
    each(parse(from));
    const int next = peek_visible();
    if (next == kEnd) fail("the file is cut off");
    take();
    if (next == ']') return;
    if (next != ',') fail("',' or ']' is missing after an element");
  }
}

void JsonElements::read(const std::function<void(const rapidjson::Value&)>& each,
                        const std::function<void(std::string_view key, const rapidjson::Value&)>& member) {
  if (key_.empty()) {
    if (peek_visible() == '[') {
      elements(each);
    } else {
      while (peek_visible() != kEnd) {
        if (peek() != '{') fail("'{' is missing before an element");
        const std::size_t from = skip_value();
        ++element_;
        element_at_ = before_ + from;
        each(parse(from));
        if (peek_visible() == ',') take();
      }
    }
  } else {
    expect('{', "at the beginning");
    bool found = false;
    if (peek_visible() == '}') {
      take();
    } else {
      while (true) {
        if (peek_visible() != '"') fail("the name of a member is missing");
        const rapidjson::Value& name = parse(skip_value());
        const std::string key(name.GetString(), name.GetStringLength());
        expect(':', "after the name of a member");
        if (key == key_ && peek_visible() == '[') {
          found = true;
          elements(each);
        } else {
          const std::size_t from = skip_value();
          if (member && at_ - from <= kMaxMember) member(key, parse(from));
        }
        const int next = peek_visible();
        if (next == kEnd) fail("the file is cut off");
        take();
        if (next == '}') break;
        if (next != ',') fail("',' or '}' is missing after a member");
      }
    }
    if (!found) fail(fmt::format("there is no list {}", in_quotes(key_)));
  }
  if (peek_visible() != kEnd) fail("there is text after the end");
}

namespace json {

const rapidjson::Value* member(const rapidjson::Value& object, const char* key) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

bool whole(const rapidjson::Value* value, std::int64_t& result) {
  if (value == nullptr) return false;
  if (value->IsInt64()) {
    result = value->GetInt64();
    return true;
  }
  if (value->IsDouble()) {
    const double number = value->GetDouble();
    if (!(number > -9e18 && number < 9e18)) return false;
    result = static_cast<std::int64_t>(number);
    return static_cast<double>(result) == number;
  }
  if (!value->IsString()) return false;
  const auto number = number_from<std::int64_t>({value->GetString(), value->GetStringLength()});
  result = number.value_or(result);
  return number.has_value();
}

std::string_view text(const rapidjson::Value* value) {
  return value != nullptr && value->IsString() ? std::string_view(value->GetString(), value->GetStringLength())
                                               : std::string_view();
}

}  // namespace json

}  // namespace mltcp::workload
