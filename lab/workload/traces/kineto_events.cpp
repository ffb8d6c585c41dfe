// Parser of traces of PyTorch's profiler (see kineto_events.h).
#include "mltcp/lab/workload/traces/kineto_events.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/recorded.h"

namespace mltcp::workload {
namespace {

using namespace mltcp::literals;
using Kind = KinetoDetails::Kind;

constexpr double kMaxStart = 3e15;  // microseconds since 1970: the year 2065
constexpr double kMaxLength = 1e15;
constexpr Nanos kMaxApart = 3600_s;  // maximum time between events; no profiler runs that long
constexpr Nanos kMaxAlone = 60_s;    // length that an event may always have, even in a short trace
constexpr Nanos kTolerance = 1_us;   // some profilers write times in whole microseconds
constexpr std::int64_t kMaxWorkers = 10'000'000;
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxValues = 1'000'000;  // maximum number of values per event
constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr std::size_t kMaxKept = std::size_t{1} << 30;  // maximum number of bytes kept in memory
constexpr std::size_t kMaxElement = 64;                 // maximum number of characters read per element of a list
// Maximum pieces (16 MiB) without a value; no profiler writes so long a text.
constexpr std::size_t kMaxQuietChunks = 256;
constexpr std::string_view kCure = "give a trace that torch.profiler exported";
constexpr std::string_view kAnew = "export the trace again";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Sets the kind of communication that `name` states.
void name_kind(std::string_view name, KinetoDetails& of) {
  std::string plain = lower(name);
  std::erase_if(plain, [](char c) { return c < 'a' || c > 'z'; });
  const auto has = [&](std::string_view part) { return plain.find(part) != std::string::npos; };
  const auto collective = [&](Collective kind, const char* instead = nullptr) {
    of.kind = Kind::collective;
    of.collective = kind;
    of.instead = instead;
  };
  if (has("reducescatter")) return collective(Collective::reduce_scatter);
  if (has("allreduce")) return collective(Collective::all_reduce);
  if (has("allgather")) return collective(Collective::all_gather);
  if (has("alltoall")) return collective(Collective::all_to_all);
  if (has("broadcast") || has("bcast")) return collective(Collective::broadcast);
  if (has("sendrecv")) return;  // a kernel that may run an all-to-all, a send or a receive
  if (has("recv") || has("receive")) {
    of.kind = Kind::receive;
  } else if (has("barrier")) {
    of.kind = Kind::barrier;
  } else if (has("send")) {
    of.kind = Kind::send;
  } else if (has("gather") || has("scatter")) {
    collective(Collective::all_to_all, "gathers and scatters are taken as all-to-alls, by the busiest rank");
  } else if (has("reduce")) {
    collective(Collective::broadcast, "reductions to one rank are taken as broadcasts from it");
  }
}

/// Returns whether a kernel with this name belongs to a communication library: NCCL, RCCL, MSCCL, oneCCL, HCCL and
/// others.
bool names_communication(std::string_view name) {
  static constexpr std::string_view kParts[] = {
      "allreduce", "all_reduce", "allgather", "all_gather", "alltoall",       "all_to_all",    "hccl",     "hcom_",
      "nccl",      "oneccl",     "rccl",      "sccl",       "reduce_scatter", "reducescatter", "sendrecv", "xccl"};
  // Every kernel is tested, so the test must be fast. Few names contain the first two letters of an entry of kParts,
  // and only these names are examined further. A capital and its small letter have the same low 5 bits.
  static constexpr auto kPair = [](char a, char b) { return static_cast<std::size_t>((a & 31) << 5 | (b & 31)); };
  static constexpr auto kBegins = [] {
    std::array<bool, 1024> all{};
    for (const std::string_view part : kParts) all[kPair(part[0], part[1])] = true;
    return all;
  }();
  // Triton kernels are named after the operations that the compiler fused
  if (name.starts_with("triton_")) return false;
  // The search stops before the types that follow the name.
  for (std::size_t at = 0; at + 1 < name.size() && name[at] != '<' && name[at] != '('; ++at) {
    if (!kBegins[kPair(name[at], name[at + 1])]) continue;
    const std::string rest = lower(name.substr(at, 14));
    for (const std::string_view part : kParts)
      if (rest.starts_with(part)) return true;
  }
  return false;
}

/// Returns the part of an annotation after the name of a communication library: "all_reduce" for "nccl:all_reduce".
/// Returns an empty text if there is no such name.
std::string_view annotated(std::string_view name) {
  const std::size_t colon = name.substr(0, 5).find(':');
  if (colon == std::string_view::npos) return {};
  static constexpr std::string_view kLibraries[] = {"nccl", "rccl", "xccl", "hccl", "hcom", "gloo", "mpi", "ucc"};
  return std::find(std::begin(kLibraries), std::end(kLibraries), name.substr(0, colon)) == std::end(kLibraries)
             ? std::string_view()
             : name.substr(colon + 1);
}

/// Converts microseconds to nanoseconds. A double is not precise enough for nanoseconds since 1970. Returns an empty
/// value if `text` is not a number from 0 to `max`.
std::optional<Nanos> parse_micros(std::string_view text, double max) {
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  auto [at, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc() || text.starts_with('-') || static_cast<double>(whole) > max) return std::nullopt;
  if (at == end) return Nanos(whole * 1000);
  if (*at == '.') {
    std::int64_t nanos = 0;
    std::int64_t unit = 100;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, unit /= 10)
      if (unit > 0)
        nanos += (*at - '0') * unit;
      else if (unit == 0 && *at >= '5' && std::exchange(unit, -1) == 0)
        ++nanos;
      else
        unit = -1;
    if (at == end) return Nanos(whole * 1000 + nanos);
  }
  const double value = std::strtod(std::string(text).c_str(), nullptr);  // the number has an exponent
  if (!(value >= 0) || value > max) return std::nullopt;
  return Nanos(std::llround(value * 1000));
}

/// Returns the ranks of a list such as "[0, 1, 2]". Returns no ranks if some are left out ("[0, 1, ..., 7]"), repeated
/// or out of range.
std::vector<std::uint32_t> parse_ranks(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    if (*at == '.') return {};
    if (*at < '0' || *at > '9') {
      ++at;
      continue;
    }
    std::uint32_t rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank >= kMaxWorkers) return {};
    ranks.push_back(rank);
    at = next;
  }
  std::ranges::sort(ranks);
  if (std::ranges::adjacent_find(ranks) != ranks.end()) return {};
  return ranks;
}

/// Input stream for RapidJSON that reads the trace in pieces.
class Stream {
 public:
  using Ch = char;

  Stream(const KinetoSource& source, const std::string& file) : source_(source), file_(file) {
    refill();
    // Skips a byte order mark.
    if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with("\xEF\xBB\xBF")) at_ += 3;
    if (at_ == end_) refill();
  }

  /// RapidJSON calls this function instead of its own function of the same name, and only outside of texts.
  friend void SkipWhitespace(Stream& stream) { stream.skip(); }

  [[nodiscard]] Ch Peek() const { return *at_; }
  Ch Take() {
    const char c = *at_;
    if (at_ != end_ && ++at_ == end_) refill();
    return c;
  }
  [[nodiscard]] std::size_t Tell() const { return before_ + static_cast<std::size_t>(at_ - buffer_->data()); }
  [[nodiscard]] bool ended() const { return at_ == end_; }
  /// Returns the number of the current line, from 1.
  [[nodiscard]] std::size_t line() const {
    return lines_ + static_cast<std::size_t>(std::count(buffer_->data(), at_, '\n')) + 1;
  }
  void value() { quiet_ = 0; }

  // RapidJSON requires these functions of a stream and never calls them.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch /*c*/) {}
  void Flush() {}
  std::size_t PutEnd(Ch* /*begin*/) { return 0; }

 private:
  void refill() {
    const std::size_t read = end_ == nullptr ? 0 : static_cast<std::size_t>(end_ - buffer_->data());
    before_ += read;
    lines_ += static_cast<std::size_t>(std::count(buffer_->data(), buffer_->data() + read, '\n'));
    if (++quiet_ > kMaxQuietChunks)
      throw InputError(one_line(fmt::format("{}: byte {}: a text of more than {} MB; {}", file_, before_,
                                            kMaxQuietChunks * kChunk / 1'000'000, kCure)));
    const std::size_t filled = source_(buffer_->data(), kChunk);
    at_ = buffer_->data();
    end_ = at_ + filled;
    *end_ = '\0';
  }

  void skip() {
    enum : std::uint8_t { kOther, kBlank, kNumber };
    static constexpr auto kKinds = [] {
      std::array<std::uint8_t, 256> all{};
      for (const char c : {' ', '\n', '\r', '\t'}) all[static_cast<unsigned char>(c)] = kBlank;
      for (const char c : {'-', 'i', 'n'}) all[static_cast<unsigned char>(c)] = kNumber;
      return all;
    }();
    const auto kind = [&] { return kKinds[static_cast<unsigned char>(*at_)]; };
    while (kind() == kBlank)
      if (++at_ == end_) refill();
    if (kind() == kNumber) respell();
  }

  /// Replaces libkineto's spelling of infinite numbers and NaN (inf, nan) by the spelling that RapidJSON reads (Inf,
  /// NaN).
  void respell() {
    constexpr std::ptrdiff_t max = 4;  // characters
    if (end_ - at_ < max) {
      // The remaining characters are in the next piece.
      const auto rest = static_cast<std::size_t>(end_ - at_);
      before_ = Tell();
      lines_ = line() - 1;
      std::copy(at_, end_, buffer_->data());
      at_ = buffer_->data();
      end_ = at_ + rest;
      for (std::size_t read = 1; read > 0 && end_ - at_ < max; end_ += read)
        read = source_(end_, kChunk - static_cast<std::size_t>(end_ - at_));
      *end_ = '\0';
    }
    char* const number = at_ + (*at_ == '-' ? 1 : 0);
    const std::string_view spelled(number, static_cast<std::size_t>(end_ - number));
    if (spelled.starts_with("inf")) number[0] = 'I';
    if (spelled.starts_with("nan")) number[0] = number[2] = 'N';
  }

  const KinetoSource& source_;
  const std::string& file_;
  std::unique_ptr<std::array<char, kChunk + 1>> buffer_ = std::make_unique<std::array<char, kChunk + 1>>();
  char* at_ = nullptr;
  char* end_ = nullptr;
  std::size_t before_ = 0;  ///< number of bytes before the buffer
  std::size_t lines_ = 0;   ///< number of line ends before the buffer
  std::size_t quiet_ = 0;   ///< number of pieces read since the last value
};

/// Fields of an event whose values are stored while the parser reads the event.
enum Field : std::uint8_t {
  kPhase,
  kCategory,
  kName,
  kThread,
  kProcess,
  kStart,
  kLength,
  kArgs,
  kCorrelation,
  kCollective,
  kIn,
  kOut,
  kGroupSize,
  kType,
  kDims,
  kTypes,
  kGroupName,
  kGroupRanks,
  kSource,
  kDestination,
  kStream,
  kDevice,
  kOfStream,
  kOfCorrelation,
  kFields,
};

using NamedField = std::pair<std::string_view, Field>;
constexpr NamedField kEventFields[] = {{"ph", kPhase},    {"ts", kStart},   {"cat", kCategory}, {"tid", kThread},
                                       {"pid", kProcess}, {"dur", kLength}, {"name", kName},    {"args", kArgs}};
constexpr NamedField kArgsFields[] = {{"dtype", kType},
                                      {"stream", kStream},
                                      {"device", kDevice},
                                      {"Src Rank", kSource},
                                      {"Dst Rank", kDestination},
                                      {"Group size", kGroupSize},
                                      {"Input Dims", kDims},
                                      {"Input type", kTypes},
                                      {"correlation", kCorrelation},
                                      {"In msg nelems", kIn},
                                      {"Out msg nelems", kOut},
                                      {"wait_on_stream", kOfStream},
                                      {"Collective name", kCollective},
                                      {"Process Group Name", kGroupName},
                                      {"Process Group Ranks", kGroupRanks},
                                      {"wait_on_cuda_event_record_corr_id", kOfCorrelation}};

Field field_of(std::span<const NamedField> fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &NamedField::first);
  return found == fields.end() ? kFields : found->second;
}

class Parser : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Parser> {
 public:
  Parser(const KinetoSource& source, const std::string& file, const KinetoKeep& keep)
      : stream_(source, file), keep_(keep) {
    events_.file = file;
  }

  KinetoEvents parse() {
    rapidjson::Reader reader;
    const rapidjson::ParseResult result =
        reader.Parse<rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag>(stream_, *this);
    if (result.IsError()) refuse(result);
    if (!has_events_) fail("there is no \"traceEvents\"", kCure);
    finish();
    return std::move(events_);
  }

  // RapidJSON calls these functions. A result of false would end the parsing.
  bool Default() { return other(); }
  bool Null() { return other(); }
  bool Bool(bool /*value*/) { return other(); }
  bool Double(double /*value*/) { return other(); }  // NaN or Infinity
  bool RawNumber(const char* text, rapidjson::SizeType length, bool /*copy*/) {
    return value({text, length}, Value::Type::number);
  }
  bool String(const char* text, rapidjson::SizeType length, bool /*copy*/) {
    return value({text, length}, Value::Type::text);
  }
  bool StartObject() {
    begin();
    if (top_ == Top::events && depth_ == 3) {
      begin_event();
    } else if (top_ == Top::events && depth_ == 4 && field_ == kArgs) {
      in_args_ = true;
      skipped_ = skipped_ || !wanted();
    } else if (top_ == Top::info && depth_ == 4 && info_key_ == "pg_config") {
      keep(sizeof(Configured));
      configured_.emplace_back();
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType /*members*/) {
    if (top_ == Top::events && depth_ == 3) take();
    if (depth_ == 4) in_args_ = false;
    --depth_;
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType length, bool /*copy*/) {
    stream_.value();
    const std::string_view key(text, length);
    if (depth_ == 1) {
      top_ = key == "traceEvents"           ? Top::events
             : key == "distributedInfo"     ? Top::info
             : key == "baseTimeNanoseconds" ? Top::clock
                                            : Top::other;
      has_events_ |= top_ == Top::events;
      values_ = 0;
    } else if (top_ == Top::events && !skipped_) {
      if (depth_ == 3) field_ = field_of(kEventFields, key);
      if (depth_ == 4 && in_args_) field_ = field_of(kArgsFields, key);
    } else if (top_ == Top::info) {
      if (depth_ == 2) info_key_ = key;
      if (depth_ == 4) config_key_ = key;
    }
    return true;
  }
  bool StartArray() {
    begin();
    if (in_args_ && !skipped_ && depth_ == 5) {
      if (field_ == kDims) shapes_.clear();
      if (field_ == kTypes) types_.clear();
      if (field_ == kGroupRanks) values_of_[kGroupRanks].type = Value::Type::text;
    }
    if (in_args_ && !skipped_ && depth_ == 6) {
      if (field_ == kDims) shapes_.emplace_back();
      if (field_ == kTypes) types_.emplace_back();
    }
    return true;
  }
  bool EndArray(rapidjson::SizeType /*elements*/) {
    --depth_;
    return true;
  }

 private:
  enum class Top { other, events, info, clock };
  struct Value {
    enum class Type { text, number, other };
    Type type = Type::other;
    std::string text;
  };
  /// One element of "Input Dims": the sizes of a tensor.
  struct Shape {
    enum class State { none, sizes, wrong };
    State state = State::none;
    bool begun = false;
    Uint128 elements = 1;
  };
  struct Configured {
    std::string name;
    std::vector<std::uint32_t> ranks;
  };

  [[noreturn]] void fail(std::string_view cause, std::string_view advice) const {
    throw InputError(one_line(fmt::format("{}: {}; {}", events_.file, cause, advice)));
  }
  [[nodiscard]] std::string place() const { return fmt::format("event {} (byte {})", events_.count, stream_.Tell()); }
  /// Throws InputError for a trace that is cut off or is not JSON.
  [[noreturn]] void refuse(const rapidjson::ParseResult& result) const {
    if (result.Code() == rapidjson::kParseErrorNumberTooBig)
      fail(fmt::format("line {}, byte {}: a number is out of range", stream_.line(), result.Offset()), kCure);
    std::string cause;
    if (result.Code() == rapidjson::kParseErrorDocumentEmpty && stream_.ended())
      cause = "it is empty";
    else if (stream_.ended())
      cause = fmt::format("it ends in the middle, after {}, as if cut off", plural(events_.count, "event"));
    else
      cause = rapidjson::GetParseError_En(result.Code());
    if (cause.ends_with('.')) cause.pop_back();
    fail(fmt::format("not JSON: parse error at line {}, byte {}: {}", stream_.line(), result.Offset(), cause), kCure);
  }

  /// Called at the beginning of an object or an array.
  void begin() {
    count();
    if (++depth_ > kMaxDepth) fail("it is nested too deeply", kCure);
    // The argument is an object or an array, so it is neither a text nor a number.
    if (in_args_ && !skipped_ && depth_ == 5) set(field_, {}, Value::Type::other);
  }
  void count() {
    stream_.value();
    if (top_ != Top::events && top_ != Top::info) return;
    if (++values_ > kMaxValues)
      fail(fmt::format("{} has more than {} values", top_ == Top::events ? "an event" : "\"distributedInfo\"",
                       kMaxValues),
           kCure);
  }

  /// Charges bytes that stay in memory from now on.
  void keep(std::size_t bytes) {
    if (keep_) return keep_(bytes);
    kept_ += bytes;
    if (kept_ > kMaxKept) fail(fmt::format("its events need more than {} MiB", kMaxKept >> 20U), "record fewer steps");
  }

  bool other() { return value({}, Value::Type::other); }
  bool value(std::string_view text, Value::Type type) {
    count();
    switch (top_) {
      case Top::events:
        if (!skipped_) event_value(text, type);
        break;
      case Top::info:
        info_value(text, type);
        break;
      case Top::clock:
        if (depth_ == 1) events_.clock = Nanos(number_from<std::int64_t>(text).value_or(0));
        break;
      case Top::other:
        break;
    }
    return true;
  }

  void event_value(std::string_view text, Value::Type type) {
    if (depth_ == 3 || (depth_ == 4 && in_args_)) {
      set(field_, text, type);
    } else if (in_args_ && depth_ == 5) {
      if (field_ == kDims) shapes_.emplace_back();
      // No valid element is longer than kMaxElement. A longer element remains invalid when it is cut.
      text = text.substr(0, kMaxElement);
      if (field_ == kTypes) types_.push_back(type == Value::Type::text ? std::string(text) : std::string());
      if (field_ == kGroupRanks) values_of_[kGroupRanks].text.append(text).append(",");
    } else if (in_args_ && depth_ == 6 && field_ == kDims) {
      side(text, type);
    }
  }

  void side(std::string_view text, Value::Type type) {
    Shape& shape = shapes_.back();
    const auto parsed = type == Value::Type::number ? number_from<std::int64_t>(text) : std::nullopt;
    const bool is_whole = parsed.has_value();
    const std::int64_t size = parsed.value_or(-1);
    // A list of sizes begins with a number.
    if (!std::exchange(shape.begun, true) && is_whole) shape.state = Shape::State::sizes;
    if (shape.state != Shape::State::sizes || shape.elements > kMaxKinetoBytes) return;
    if (size < 0)
      shape.state = Shape::State::wrong;
    else
      shape.elements *= static_cast<std::uint64_t>(size);
  }

  void set(std::uint8_t field, std::string_view text, Value::Type type) {
    if (field >= kFields) return;
    values_of_[field].type = type;
    values_of_[field].text.assign(text);
    present_ |= 1U << field;
  }

  void info_value(std::string_view text, Value::Type type) {
    if (depth_ == 2 && (info_key_ == "rank" || info_key_ == "world_size")) {
      const std::int64_t min = info_key_ == "rank" ? 0 : 1;
      const auto number = checked(info_key_, text, type, min, kMaxWorkers);
      (info_key_ == "rank" ? rank_ : world_) = static_cast<std::uint32_t>(number);
    }
    if (info_key_ != "pg_config" || configured_.empty()) return;
    Configured& configured = configured_.back();
    if (depth_ == 4 && config_key_ == "pg_name") {
      keep(text.size());
      configured.name = text;
    }
    if (depth_ == 4 && config_key_ == "ranks" && type == Value::Type::text) {
      configured.ranks = parse_ranks(text);
      keep(configured.ranks.size() * sizeof(std::uint32_t));
    }
    if (depth_ == 5 && config_key_ == "ranks" && type == Value::Type::number)
      if (const auto rank = number_from<std::int64_t>(text); rank && *rank >= 0 && *rank < kMaxWorkers)
        configured.ranks.push_back(static_cast<std::uint32_t>(*rank));
  }

  std::int64_t checked(std::string_view key, std::string_view text, Value::Type type, std::int64_t min,
                       std::int64_t max) const {
    const auto number = type == Value::Type::number ? number_from<std::int64_t>(text, min, max) : std::nullopt;
    if (!number)
      fail(
          fmt::format("\"{}\" is {}, not a whole number from {} to {}", key,
                      in_quotes(type == Value::Type::text ? fmt::format("\"{}\"", text) : std::string(text)), min, max),
          kAnew);
    return *number;
  }
  [[nodiscard]] bool has(Field field) const { return (present_ & 1U << field) != 0; }
  std::optional<std::int64_t> whole(Field field, std::string_view key, std::int64_t min, std::int64_t max) const {
    if (!has(field)) return std::nullopt;
    const Value& found = values_of_[field];
    return checked(key, found.text, found.type, min, max);
  }
  /// Returns the number in a field, or `otherwise` if there is none.
  [[nodiscard]] std::int64_t number(Field field, std::int64_t otherwise) const {
    return has(field) && values_of_[field].type == Value::Type::number
               ? number_from<std::int64_t>(values_of_[field].text).value_or(otherwise)
               : otherwise;
  }
  [[nodiscard]] std::string_view text(Field field) const {
    return has(field) && values_of_[field].type == Value::Type::text ? std::string_view(values_of_[field].text)
                                                                     : std::string_view();
  }

  Nanos time(Field field, std::string_view key, double max_micros) const {
    std::optional<Nanos> found;
    if (has(field) && values_of_[field].type == Value::Type::number)
      found = parse_micros(values_of_[field].text, max_micros);
    if (!found)
      fail(fmt::format("{}: {} has no \"{}\" in microseconds from 0 to {}{}", place(), in_quotes(text(kName)), key,
                       max_micros,
                       has(field) && values_of_[field].type == Value::Type::number
                           ? fmt::format(" but {}", in_quotes(values_of_[field].text))
                           : std::string()),
           kAnew);
    return *found;
  }

  void begin_event() {
    ++events_.count;
    present_ = 0;
    skipped_ = false;
    in_args_ = false;
    field_ = kFields;
    shapes_.clear();
    types_.clear();
  }

  enum class Sort { none, step, around, launch, synchronisation, wait_call, wait, communication, kernel, copy };

  [[nodiscard]] Sort sort() const {
    if (text(kPhase) != "X") return Sort::none;
    const std::string_view category = text(kCategory);
    const std::string_view name = text(kName);
    if (category == "cpu_op" || category == "Operator") return name == "record_param_comms" ? Sort::around : Sort::none;
    // PyTorch up to 1.11 begins these categories with a capital.
    if (category == "kernel" || category == "Kernel" || category == "mtia_ccp_events" || category == "hpu_op")
      return Sort::kernel;
    if (category == "gpu_memcpy" || category == "gpu_memset" || category == "Memcpy" || category == "Memset")
      return Sort::copy;
    if (category == "user_annotation") {
      if (name.starts_with("ProfilerStep#")) return Sort::step;
      return annotated(name).empty() ? Sort::none : Sort::around;
    }
    // From CUDA 11.8 on, NCCL launches its kernels through the driver API. A prefix of the category names the kind of
    // device.
    if (category.ends_with("_runtime") || category.ends_with("_driver") || category == "Runtime") {
      const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
      if (has("Synchronize")) return Sort::synchronisation;
      if (has("StreamWaitEvent")) return Sort::wait_call;
      // Calls whose names contain these words launch nothing. Any other call may launch a kernel, even if CUPTI had no
      // name for it.
      return has("Event") || has("Capturing") || has("Get") || has("Attribute") || has("Occupancy") ? Sort::none
                                                                                                    : Sort::launch;
    }
    if (category == "collective_comm") return Sort::around;
    if (category == "cuda_sync" && name == "Stream Wait Event") return Sort::wait;
    return Sort::none;
  }
  /// Returns whether the event's arguments may be needed, given the values read so far.
  [[nodiscard]] bool wanted() const { return !has(kPhase) || !has(kCategory) || !has(kName) || sort() != Sort::none; }

  /// Stores the needed values of the event that has been read.
  void take() {
    values_ = 0;
    Sort sort = this->sort();
    if (sort == Sort::none) return;
    // PyTorch launches a check for NaN with a communication. The check has the arguments of the communication, but does
    // not communicate.
    if (sort == Sort::kernel && (names_communication(text(kName)) ||
                                 (has(kCollective) && text(kName).find("checkForNaN") == std::string_view::npos)))
      sort = Sort::communication;
    const bool detailed = sort == Sort::around || sort == Sort::communication || sort == Sort::step;
    const std::string_view name = text(kName);
    keep((detailed ? sizeof(KinetoEvents::Communication) : sizeof(KinetoEvents::Kernel)) +
         (sort == Sort::step ? name.size() : 0));
    const Nanos start = time(kStart, "ts", kMaxStart);
    // A profiler that is stopped during a wait may leave the length out.
    const Nanos length = sort == Sort::wait && !has(kLength) ? Nanos(0) : time(kLength, "dur", kMaxLength);
    if (start.count == 0 && length.count == 0 && sort != Sort::wait) {
      ++untimed_;
      return;
    }
    const std::int64_t correlation = number(kCorrelation, -1);
    const auto stream = static_cast<std::uint32_t>(number(kStream, number(kThread, 0)) & 0xFFFFFFFF);
    switch (sort) {
      case Sort::none:
        break;
      case Sort::step: {
        KinetoEvents::Step step;
        step.start = start;
        step.length = length;
        step.name = name;
        events_.steps.push_back(std::move(step));
        break;
      }
      case Sort::around: {
        const std::uint32_t thread = this->thread();
        if (events_.around.size() <= thread) {
          keep((thread + 1 - events_.around.size()) * sizeof(events_.around.front()));
          events_.around.resize(thread + 1);
        }
        KinetoEvents::Around around;
        around.start = start;
        around.length = length;
        const std::string_view what = annotated(name);
        around.operation = what.empty();
        around.details = details(what);
        around.coalesced = what.find("coalesced") != std::string_view::npos && !around.details.in;
        events_.around[thread].push_back(around);
        break;
      }
      case Sort::synchronisation:
        events_.synchronisations.push_back({start, length});
        [[fallthrough]];
      case Sort::launch:
        if (correlation >= 0) events_.launches.push_back({correlation, start, thread()});
        break;
      case Sort::wait_call:
        events_.wait_calls.push_back({start, thread()});
        break;
      case Sort::wait:
        events_.waits.push_back({correlation, number(kOfCorrelation, -1), stream,
                                 static_cast<std::uint32_t>(number(kOfStream, 0) & 0xFFFFFFFF)});
        break;
      case Sort::communication: {
        KinetoEvents::Communication communication;
        communication.start = start;
        communication.length = length;
        communication.correlation = correlation;
        communication.stream = stream;
        communication.name = name_of(name.substr(0, name.find('(')));
        communication.event = events_.count;
        communication.details = details(name.substr(0, name.find('(')));
        devices_.insert(number(kDevice, number(kProcess, 0)));
        events_.communications.push_back(communication);
        break;
      }
      case Sort::kernel:
      case Sort::copy: {
        KinetoEvents::Kernel kernel;
        kernel.start = start;
        kernel.length = length;
        kernel.correlation = correlation;
        kernel.stream = stream;
        kernel.copies = sort == Sort::copy;
        if (sort == Sort::kernel) devices_.insert(number(kDevice, number(kProcess, 0)));
        events_.kernels.push_back(kernel);
        break;
      }
    }
  }

  std::uint32_t thread() {
    const std::string& tid = has(kThread) ? values_of_[kThread].text : empty_;
    if (tid == last_thread_ && !threads_.empty()) return last_thread_number_;
    last_thread_ = tid;
    const auto [found, is_new] = threads_.try_emplace(tid, static_cast<std::uint32_t>(threads_.size()));
    if (is_new) keep(kPlace + tid.size());
    last_thread_number_ = found->second;
    return last_thread_number_;
  }
  std::uint32_t name_of(std::string_view name) {
    const auto [found, is_new] = names_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (is_new) {
      keep(2 * (kPlace + name.size()));
      events_.names.emplace_back(name);
    }
    return found->second;
  }

  KinetoDetails details(std::string_view name) {
    KinetoDetails result;
    const std::string_view spelled = text(kCollective).empty() ? name : text(kCollective);
    name_kind(spelled, result);
    if (const auto size = whole(kGroupSize, "Group size", 0, kMaxWorkers))
      result.workers = static_cast<std::uint32_t>(*size);
    result.group = group(result.workers);
    if (result.kind == Kind::send || result.kind == Kind::receive) peer(spelled, result);
    const auto in = whole(kIn, "In msg nelems", 0, INT64_MAX);
    const auto out = whole(kOut, "Out msg nelems", 0, INT64_MAX);
    if (in || out) {
      if (!has(kType) || values_of_[kType].type != Value::Type::text) return result;
      if (in) result.in = product(static_cast<Uint128>(*in), text(kType));
      if (out) result.out = product(static_cast<Uint128>(*out), text(kType));
      return result;
    }
    if (!has(kDims) || !has(kTypes)) return result;
    Uint128 sum = 0;
    for (std::size_t i = 0; i < shapes_.size() && i < types_.size(); ++i) {
      const Shape& shape = shapes_[i];
      if (shape.state == Shape::State::none || types_[i].empty()) continue;
      if (shape.state == Shape::State::wrong)
        fail(fmt::format("{}: \"Input Dims\" of {} are not sizes", place(), in_quotes(text(kName))), kCure);
      const auto bytes = product(shape.elements, types_[i]);
      if (!bytes) return result;
      sum += *bytes;
      result.in = static_cast<Bytes>(std::min<Uint128>(sum, kMaxKinetoBytes));
    }
    return result;
  }

  void peer(std::string_view name, KinetoDetails& result) const {
    const Field field = result.kind == Kind::send ? kDestination : kSource;
    if (const auto stated = number(field, -1); stated >= 0 && stated < kMaxWorkers) {
      result.peer = stated;
      return;
    }
    // Names such as "send 0->1" and "recv 1<-0" state the peer.
    std::size_t at = name.find("->");
    if (at == std::string_view::npos) at = name.find("<-");
    if (at == std::string_view::npos) return;
    const auto stated = number_from<std::int64_t>(name.substr(at + 2));
    if (!stated || *stated < 0 || *stated >= kMaxWorkers) return;
    result.peer = *stated;
    result.peer_of_group = true;
  }

  std::int32_t group(std::uint32_t size) {
    const std::string_view name = text(kGroupName);
    const std::string_view list = text(kGroupRanks);
    if (name.empty() && list.empty()) return -1;
    std::string key(name);
    key += '\n';
    key += list;
    const auto [found, is_new] = groups_.try_emplace(std::move(key), static_cast<std::int32_t>(groups_.size()));
    if (is_new) {
      auto ranks = parse_ranks(list);
      if (size > 0 && ranks.size() != size) ranks = {};
      keep(kPlace + 2 * name.size() + list.size() + sizeof(KinetoEvents::Group) + ranks.size() * sizeof(ranks.front()));
      events_.groups.push_back({std::string(name), std::move(ranks)});
    }
    return found->second;
  }

  /// Returns the number of bytes, or an empty value if the element type is unknown.
  std::optional<Bytes> product(Uint128 elements, std::string_view type) {
    const auto each = element_bytes(type);
    if (!each) {
      if (events_.unknown_type.empty())
        events_.unknown_type = one_line(fmt::format("{}: the element type {} is not known", place(), in_quotes(type)));
      return std::nullopt;
    }
    if (elements > kMaxKinetoBytes || elements * *each > kMaxKinetoBytes)
      fail(fmt::format("{}: a communication has more than 1 EB", place()), kAnew);
    return static_cast<Bytes>(elements * *each);
  }

  void finish() {
    events_.rank = rank_;
    events_.workers = world_.value_or(0);
    events_.devices = static_cast<std::uint32_t>(devices_.size());
    if (untimed_ > 0)
      warn(fmt::format("{} at time 0 without a duration left out: they were not timed", plural(untimed_, "event")));
    leave_out_steps();
    constexpr std::size_t place = 64;  // memory per map entry, in bytes
    keep(configured_.size() * place);
    std::map<std::string_view, const Configured*> configured;
    for (const Configured& each : configured_) configured.try_emplace(each.name, &each);
    for (auto& group : events_.groups) {
      if (!group.ranks.empty()) continue;
      const auto found = configured.find(group.name);
      if (found == configured.end()) continue;
      group.ranks = found->second->ranks;
      std::ranges::sort(group.ranks);
      if (std::ranges::adjacent_find(group.ranks) != group.ranks.end()) group.ranks.clear();
    }
    const auto by_start = [](const KinetoSpan& a, const KinetoSpan& b) { return a.start < b.start; };
    std::ranges::stable_sort(events_.steps, by_start);
    std::ranges::stable_sort(events_.kernels, by_start);
    std::ranges::stable_sort(events_.communications, by_start);
    std::ranges::stable_sort(events_.synchronisations, by_start);
    for (auto& all : events_.around) std::ranges::stable_sort(all, by_start);
    std::ranges::stable_sort(events_.wait_calls, [](const auto& a, const auto& b) { return a.start < b.start; });
    std::ranges::stable_sort(events_.waits, [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
    auto& launches = events_.launches;
    std::ranges::stable_sort(launches, [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
    // If several launches have the same correlation, keeps the last one.
    const auto kept = std::unique(launches.rbegin(), launches.rend(),
                                  [](const auto& a, const auto& b) { return a.correlation == b.correlation; });
    launches.erase(launches.begin(), kept.base());
    find_launches();
    align_clocks();
    leave_out_far();
    take_from_host();
  }

  void warn(std::string_view warning) { events_.warnings.emplace_back(warning); }

  void leave_out_steps() {
    const std::size_t none =
        std::erase_if(events_.steps, [](const KinetoSpan& step) { return step.length.count == 0; });
    if (none > 0) warn(fmt::format("{} that took no time left out", plural(none, "step")));
  }

  template <typename Visit>
  void each_on_gpu(const Visit& visit) {
    for (KinetoEvents::Kernel& kernel : events_.kernels) visit(kernel);
    for (KinetoEvents::Kernel& kernel : events_.communications) visit(kernel);
  }

  void find_launches() {
    using Call = KinetoEvents::Kernel::Call;
    const auto& launches = events_.launches;
    each_on_gpu([&](KinetoEvents::Kernel& kernel) {
      kernel.known = Call::none;
      if (launches.empty() || kernel.correlation <= 0 || kernel.correlation > launches.back().correlation) return;
      const auto after = std::upper_bound(launches.begin(), launches.end(), kernel.correlation,
                                          [](std::int64_t key, const auto& each) { return key < each.correlation; });
      kernel.known = Call::earlier;
      if (after == launches.begin()) return;
      kernel.call = std::prev(after)->start;
      kernel.known = std::prev(after)->correlation == kernel.correlation ? Call::own : Call::nearest;
    });
  }

  /// Moves the GPU's times if the clocks of host and GPU differ. The clocks differ if most kernels begin before their
  /// launch, or if nearly all kernels begin more than an hour after their launch.
  void align_clocks() {
    std::vector<Nanos> late;  // time from launch to start of each kernel
    keep((events_.kernels.size() + events_.communications.size()) * sizeof(Nanos));
    std::size_t early = 0;
    each_on_gpu([&](const KinetoEvents::Kernel& kernel) {
      if (kernel.known != KinetoEvents::Kernel::Call::own) return;
      late.push_back(kernel.start - kernel.call);
      if (late.back() < Nanos(0) - kTolerance) ++early;
    });
    if (late.empty()) return;
    const auto min = late.begin() + static_cast<std::ptrdiff_t>(late.size() / 50);
    std::nth_element(late.begin(), min, late.end());
    const bool differ = early > late.size() / 2 || *min > kMaxApart;
    if (differ) each_on_gpu([by = *min](KinetoEvents::Kernel& kernel) { kernel.start -= by; });
    if (differ || early > 0)
      warn(fmt::format("{} they are launched: the clocks of host and GPU differ{}",
                       early > 0 ? fmt::format("{} kernels begin before", early) : "kernels begin hours after",
                       differ ? fmt::format(", so the GPU's times are moved by {:+.3f} ms", (Nanos(0) - *min).millis())
                              : std::string()));
  }

  /// Leaves out events that begin more than an hour away from the main part of the trace. Also leaves out events that
  /// are much longer than the whole trace.
  void leave_out_far() {
    const auto each_list = [&](const auto& visit) {
      visit(events_.steps);
      visit(events_.kernels);
      visit(events_.communications);
      visit(events_.launches);
      visit(events_.synchronisations);
      visit(events_.wait_calls);
      for (auto& all : events_.around) visit(all);
    };
    KinetoSpan range{Nanos::never(), Nanos(0)};
    Nanos last;
    std::size_t count = 0;
    each_list([&](const auto& all) {
      for (const auto& each : all) {
        range.start = std::min(range.start, each.start);
        last = std::max(last, each.start);
      }
      count += all.size();
    });
    if (count == 0) return;
    range.length = last - range.start;
    if (range.length > kMaxApart) range = largest_heap(each_list, count);
    const Nanos max = std::max(kMaxAlone, std::min(range.length, kMaxApart) * 10);
    std::size_t far = 0;
    each_list([&](auto& all) {
      far += std::erase_if(all, [&](const auto& each) {
        if constexpr (requires { each.length; })
          if (each.length > max) return true;
        return each.start < range.start || each.start > range.end();
      });
    });
    if (far == 0) return;
    find_launches();
    warn(fmt::format("{} left out, hours from the others or longer than all of them: such times are wrong",
                     plural(far, "event")));
  }

  /// Returns the time span of the largest set of events in which successive starts are at most an hour apart. If
  /// several sets are equally large, returns the last one.
  template <typename EachList>
  KinetoSpan largest_heap(const EachList& each_list, std::size_t count) {
    std::vector<Nanos> starts;
    keep(count * sizeof(Nanos));
    starts.reserve(count);
    each_list([&](const auto& all) {
      for (const auto& each : all) starts.push_back(each.start);
    });
    std::ranges::sort(starts);
    KinetoSpan largest;
    std::size_t max = 0;
    for (std::size_t from = 0, to = 0; from < count; from = to) {
      for (to = from + 1; to < count && starts[to] - starts[to - 1] <= kMaxApart;) ++to;
      if (to - from >= max) largest = {starts[from], starts[to - 1] - starts[from]};
      max = std::max(max, to - from);
    }
    return largest;
  }

  /// If no kernel communicates, as on CPUs, uses the host's records as communications.
  void take_from_host() {
    if (!events_.communications.empty()) return;
    const auto tells = [](const KinetoEvents::Around& around) {
      return around.details.kind != Kind::unknown || around.details.in.value_or(0) > 0 ||
             around.details.out.value_or(0) > 0;
    };
    bool operations = false;
    for (const auto& all : events_.around)
      for (const auto& around : all) operations |= around.operation && tells(around);
    for (std::uint32_t thread = 0; thread < events_.around.size(); ++thread) {
      Nanos end;
      for (const auto& around : events_.around[thread]) {
        if (around.operation != operations || !tells(around) || around.start < end) continue;
        end = around.end();
        KinetoEvents::Communication one;
        one.start = around.start;
        one.length = around.length;
        one.stream = thread;
        one.name = name_of(around.details.kind == Kind::send      ? "send"
                           : around.details.kind == Kind::receive ? "receive"
                           : around.details.kind == Kind::barrier ? "barrier"
                                                                  : name(around.details.collective));
        one.details = around.details;
        keep(sizeof(one));
        events_.communications.push_back(one);
      }
    }
    std::ranges::stable_sort(events_.communications, {}, &KinetoSpan::start);
    events_.of_host = !events_.communications.empty();
  }

  Stream stream_;
  KinetoEvents events_;
  Top top_ = Top::other;
  int depth_ = 0;
  bool has_events_ = false;
  const KinetoKeep& keep_;
  std::size_t kept_ = 0;    ///< bytes charged; not used if keep_ is set
  std::size_t values_ = 0;  ///< number of values read since the last event ended
  // State of the current event.
  bool skipped_ = false;
  bool in_args_ = false;
  std::uint8_t field_ = kFields;
  std::uint32_t present_ = 0;  ///< one bit per field that the event has
  std::array<Value, kFields> values_of_;
  std::vector<Shape> shapes_;
  std::vector<std::string> types_;  ///< element types; an empty text for an element without a type
  // State of "distributedInfo".
  std::string info_key_;
  std::string config_key_;
  std::vector<Configured> configured_;
  std::optional<std::uint32_t> rank_;
  std::optional<std::uint32_t> world_;
  std::unordered_map<std::string, std::uint32_t> threads_;
  std::string last_thread_;
  std::uint32_t last_thread_number_ = 0;
  const std::string empty_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<std::string, std::int32_t> groups_;
  std::set<std::int64_t> devices_;
  std::size_t untimed_ = 0;  ///< number of events left out because they have no time
};

}  // namespace

const KinetoEvents::Launch* KinetoEvents::launch(std::int64_t correlation) const {
  const auto found = std::lower_bound(launches.begin(), launches.end(), correlation,
                                      [](const Launch& each, std::int64_t key) { return each.correlation < key; });
  return found == launches.end() || found->correlation != correlation ? nullptr : &*found;
}

KinetoEvents read_kineto_events(const KinetoSource& source, const std::string& file, const KinetoKeep& keep) {
  return Parser(source, file, keep).parse();
}

}  // namespace mltcp::workload
