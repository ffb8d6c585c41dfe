// See pickle.h.
#include "mltcp/lab/workload/traces/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "mltcp/base/error.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kRead = std::size_t{256} << 10;
constexpr std::size_t kCounted = std::size_t{64} << 10;
constexpr std::size_t kMaxDepth = 16;
constexpr std::uint64_t kMaxOfOne = 2'000'000;  // maximum number of values per element
constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
// Indices of predefined values: None, False, True, and from kSmall on the numbers 0 to 255.
constexpr std::uint32_t kNone = 0;
constexpr std::uint32_t kFalse = 1;
constexpr std::uint32_t kTrue = 2;
constexpr std::uint32_t kSmall = 3;

enum Operation : std::uint8_t {
  mark = '(',
  stop = '.',
  pop_one = '0',
  pop_marked = '1',
  bytes4 = 'B',
  bytes1 = 'C',
  real8 = 'G',
  whole4 = 'J',
  whole1 = 'K',
  whole2 = 'M',
  none = 'N',
  string4 = 'T',
  string1 = 'U',
  unicode4 = 'X',
  append_one = 'a',
  append_marked = 'e',
  get1 = 'h',
  get4 = 'j',
  put1 = 'q',
  put4 = 'r',
  set_one = 's',
  tuple_marked = 't',
  set_marked = 'u',
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  protocol = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  new_true = 0x88,
  new_false = 0x89,
  long1 = 0x8a,
  unicode1 = 0x8c,
  unicode8 = 0x8d,
  memoize = 0x94,
  frame = 0x95,
};

/// Instructions that import, make or call something, or that request an object from the loading program.
constexpr std::string_view kRefused = "Rbcio\x81\x82\x83\x84\x92\x93PQ";

}  // namespace

bool is_pickle(std::string_view beginning) {
  constexpr char max_protocol = 5;
  // Instructions that may come after the number of the protocol. None of them is a tag in the Protocol Buffers that
  // this project reads.
  constexpr std::string_view first = "}](c\x95";
  return beginning.size() > 2 && beginning[0] == '\x80' && beginning[1] >= 2 && beginning[1] <= max_protocol &&
         first.find(beginning[2]) != std::string_view::npos;
}

Pickle::Pickle(TraceInput& input, const std::function<void(std::size_t)>& hold)
    : input_(input), hold_(hold), buffer_(kRead) {
  values_.resize(kSmall + 256);
  values_[kFalse] = {Kind::boolean, 0, 0};
  values_[kTrue] = {Kind::boolean, 0, 1};
  for (std::uint32_t i = 0; i < 256; ++i) values_[kSmall + i] = {Kind::whole, 0, i};
  run();
}

void Pickle::fail(std::string_view cause, std::string_view cure) const {
  throw InputError(fmt::format("{}: byte {}: {}; {}", input_.name(), before_ + at_, cause, cure));
}

std::string Pickle::place() const { return fmt::format("element {}", element_); }

bool Pickle::fill() {
  before_ += end_;
  at_ = 0;
  end_ = input_.read(buffer_.data(), buffer_.size());
  return end_ > 0;
}

std::uint8_t Pickle::byte() {
  if (at_ == end_ && !fill()) fail("the file is cut off");
  return static_cast<std::uint8_t>(buffer_[at_++]);
}

std::uint64_t Pickle::number(std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(byte()) << (8 * i);
  return value;
}

/// Reads a number of `bytes` bytes in two's complement. Throws InputError if there are more than 8 bytes.
std::uint64_t Pickle::long_number(std::size_t bytes) {
  if (bytes > 8) fail("a number is out of range");
  const std::uint64_t value = number(bytes);
  if (bytes == 0) return 0;
  const auto unused = static_cast<unsigned>(64 - 8 * bytes);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

void Pickle::count(std::size_t bytes) {
  counted_ += bytes;
  if (counted_ < kCounted) return;
  hold_(counted_);
  counted_ = 0;
}

Pickle::Index Pickle::add(Kind kind, std::uint64_t bits, std::uint32_t size) {
  if (values_.size() >= kNever || items_.size() >= kNever) fail("it holds too much");
  count(sizeof(Value));
  values_.push_back({kind, size, bits});
  return static_cast<Index>(values_.size() - 1);
}

void Pickle::push(Index value) {
  count(sizeof(value));
  stack_.push_back(value);
}

void Pickle::require(std::size_t size) const {
  if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < size) fail("an instruction has no operand");
}

void Pickle::push_text(std::size_t size) {
  if (size >= kNever) fail("a text is too long");
  const std::size_t begin = texts_.size();
  // Memory grows with the bytes read, not with the stated length.
  for (std::size_t left = size; left > 0;) {
    if (at_ == end_ && !fill()) fail("the file is cut off");
    const std::size_t part = std::min(left, end_ - at_);
    count(part);
    texts_.append(buffer_.data() + at_, part);
    at_ += part;
    left -= part;
  }
  push(add(Kind::text, begin, static_cast<std::uint32_t>(size)));
}

std::size_t Pickle::above_mark() {
  if (marks_.empty()) fail("a mark is missing");
  const std::size_t above = stack_.size() - marks_.back();
  marks_.pop_back();
  return above;
}

void Pickle::append(Kind kind, std::size_t size) {
  require(size + 1);
  Value& to = values_[stack_[stack_.size() - size - 1]];
  if (to.kind != kind) fail("an item is added to something that is not a list or dict");
  if (kind == Kind::dict && size % 2 != 0) fail("a key of a dict has no value");
  if (size > 0) {
    constexpr std::size_t head = 2;
    auto chunk = static_cast<Index>(to.bits >> 32U);
    const bool extends = to.size > 0 && chunk + head + items_[chunk] == items_.size();
    if (!extends) {
      const Index before = std::exchange(chunk, static_cast<Index>(items_.size()));
      items_.insert(items_.end(), head, 0);
      if (to.size > 0)
        items_[before + 1] = chunk;
      else
        to.bits = chunk;
      to.bits = static_cast<std::uint64_t>(chunk) << 32U | (to.bits & kNever);
    }
    items_[chunk] += static_cast<Index>(size);
    to.size += static_cast<std::uint32_t>(size);
    count((size + head) * sizeof(Index));
    items_.insert(items_.end(), stack_.end() - static_cast<std::ptrdiff_t>(size), stack_.end());
    if (items_.size() >= kNever) fail("it holds too much");
  }
  stack_.resize(stack_.size() - size);
}

void Pickle::collect(std::size_t size) {
  require(size);
  stack_.insert(stack_.end() - static_cast<std::ptrdiff_t>(size), add(Kind::tuple));
  append(Kind::tuple, size);
}

void Pickle::remember(std::uint64_t place) {
  // A valid pickle has at most as many numbered values as preceding bytes.
  if (place > before_ + at_) fail("a number of a value is out of range");
  require(1);
  if (place >= memo_.size()) {
    count((place + 1 - memo_.size()) * sizeof(Index));
    memo_.resize(place + 1, kNever);
  }
  memo_[place] = stack_.back();
}

void Pickle::recall(std::uint64_t place) {
  if (place >= memo_.size() || memo_[place] == kNever) fail("a value is used before it is defined");
  push(memo_[place]);
}

void Pickle::run() {
  while (step(byte())) {
  }
  if (stack_.size() != 1 || values_[stack_[0]].kind != Kind::dict) fail("it is not a dict");
}

bool Pickle::step(std::uint8_t operation) {
  switch (operation) {
    case protocol:
      byte();
      break;
    case frame:
      number(8);
      break;
    case stop:
      return false;
    case mark:
      count(sizeof(marks_.back()));
      marks_.push_back(stack_.size());
      break;
    case none:
      push(kNone);
      break;
    case new_true:
      push(kTrue);
      break;
    case new_false:
      push(kFalse);
      break;
    case whole1:
      push(kSmall + byte());
      break;
    case whole2:
      push(add(Kind::whole, number(2)));
      break;
    case whole4:
      push(add(Kind::whole, long_number(4)));
      break;
    case long1:
      push(add(Kind::whole, long_number(byte())));
      break;
    case real8: {
      std::uint64_t bits = 0;
      for (int i = 0; i < 8; ++i) bits = bits << 8U | byte();
      push(add(Kind::real, bits));
      break;
    }
    case string1:
    case bytes1:
    case unicode1:
      push_text(byte());
      break;
    case string4:
    case bytes4:
    case unicode4:
      push_text(number(4));
      break;
    case unicode8:
      push_text(number(8));
      break;
    case empty_tuple:
      push(add(Kind::tuple));
      break;
    case empty_list:
      push(add(Kind::list));
      break;
    case empty_dict:
      push(add(Kind::dict));
      break;
    case tuple1:
    case tuple2:
    case tuple3:
      collect(operation - tuple1 + 1U);
      break;
    case tuple_marked:
      collect(above_mark());
      break;
    case append_one:
      append(Kind::list, 1);
      break;
    case append_marked:
      append(Kind::list, above_mark());
      break;
    case set_one:
      append(Kind::dict, 2);
      break;
    case set_marked:
      append(Kind::dict, above_mark());
      break;
    case pop_one:
      require(1);
      stack_.pop_back();
      break;
    case pop_marked:
      stack_.resize(stack_.size() - above_mark());
      break;
    case put1:
      remember(byte());
      break;
    case put4:
      remember(number(4));
      break;
    case memoize:
      remember(memo_.size());
      break;
    case get1:
      recall(byte());
      break;
    case get4:
      recall(number(4));
      break;
    default:
      if (kRefused.find(static_cast<char>(operation)) != std::string_view::npos)
        throw CallInPickle(
            fmt::format("{}: byte {}: the pickle imports or calls something (instruction 0x{:02x}), which is not "
                        "allowed; give a file of dicts, lists, texts and numbers only, as the recorder writes it",
                        input_.name(), before_ + at_, operation));
      fail(fmt::format("0x{:02x} is not an instruction for dicts, lists, texts and numbers", operation));
  }
  return true;
}

void Pickle::each_item(const Value& value, const std::function<void(Index)>& each) const {
  std::size_t chunk = value.bits & kNever;
  for (std::uint32_t done = 0; done < value.size; chunk = items_[chunk + 1]) {
    const std::uint32_t size = items_[chunk];
    for (std::uint32_t i = 0; i < size; ++i) each(items_[chunk + 2 + i]);
    done += size;
  }
}

std::string_view Pickle::text_of(Index value) const {
  const Value& one = values_[value];
  return one.kind == Kind::text ? std::string_view(texts_).substr(one.bits, one.size) : std::string_view();
}

rapidjson::Value Pickle::json(Index index, std::string_view unread, std::size_t depth) {
  const Value& value = values_[index];
  // Limits expansion. If each value is used once, there are at most as many values as bytes. A text is stored once but
  // may be used often, so its length counts as well.
  shown_ += value.kind == Kind::text ? 1 + value.size / 4 : 1;
  if (shown_ > 4 * (before_ + at_) || ++shown_of_one_ > kMaxOfOne)
    fail("it unfolds to more than the file holds", "give one as the recorder writes it");
  if (depth > kMaxDepth) fail(fmt::format("values are nested more than {} deep", kMaxDepth));
  auto& allocator = document_.GetAllocator();
  switch (value.kind) {
    case Kind::none:
      return rapidjson::Value();
    case Kind::boolean:
      return rapidjson::Value(value.bits != 0);
    case Kind::whole:
      return rapidjson::Value(static_cast<std::int64_t>(value.bits));
    case Kind::real:
      return rapidjson::Value(std::bit_cast<double>(value.bits));
    case Kind::text:
      return rapidjson::Value(rapidjson::StringRef(texts_.data() + value.bits, value.size));
    case Kind::list:
    case Kind::tuple: {
      rapidjson::Value list(rapidjson::kArrayType);
      each_item(value, [&](Index item) { list.PushBack(json(item, unread, depth + 1), allocator); });
      return list;
    }
    case Kind::dict:
      break;
  }
  rapidjson::Value dict(rapidjson::kObjectType);
  Index key = kNever;
  each_item(value, [&](Index item) {
    if (key == kNever) {
      key = item;
      return;
    }
    const Index named = std::exchange(key, kNever);
    if (values_[named].kind != Kind::text || text_of(named) == unread) return;
    dict.AddMember(json(named, unread, depth + 1), json(item, unread, depth + 1), allocator);
  });
  return dict;
}

void Pickle::read(std::string_view key, std::string_view unread,
                  const std::function<void(const rapidjson::Value&)>& each,
                  const std::function<void(std::string_view key, const rapidjson::Value&)>& member) {
  const auto shown = [&](Index value) {
    shown_of_one_ = 0;
    document_.SetNull();
    document_.GetAllocator().Clear();
    return json(value, unread, 0);
  };
  Index list = kNever;
  Index named = kNever;
  each_item(values_[stack_[0]], [&](Index item) {
    if (named == kNever) {
      named = item;
      return;
    }
    const std::string_view name = text_of(std::exchange(named, kNever));
    if (name == key && values_[item].kind == Kind::list)
      list = item;
    else if (!name.empty())
      member(name, shown(item));
  });
  if (list == kNever) return;
  Index last = 0;
  each_item(values_[list], [&](Index item) {
    ++element_;
    if (values_[item].kind != Kind::dict) fail(fmt::format("{} is not a dict", place()));
    // New values get ascending indices, so the elements of a valid list have ascending indices.
    if (item <= last) fail(fmt::format("{} is given twice", place()), "give one as the recorder writes it");
    last = item;
    each(shown(item));
  });
}

}  // namespace mltcp::workload
