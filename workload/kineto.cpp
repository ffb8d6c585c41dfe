// Reader of PyTorch profiler traces (see kineto.h).
#include "mltcp/workload/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/json.h"
#include "mltcp/base/text.h"
#include "mltcp/workload/inspection.h"

namespace mltcp::workload {
namespace {

using nlohmann::json;

constexpr TextFile kKinetoFile{"a trace of PyTorch's profiler", std::size_t{1} << 30};
constexpr Uint128 kMostBytes = 1'000'000'000'000'000'000;  // of a communication: 1 EB
constexpr double kMostStart = 3e15;                        // microseconds since 1970: the year 2065
constexpr double kMostLength = 1e15;
constexpr Uint128 kMostSentBytes = std::uint64_t{1} << 62;
constexpr std::int64_t kMostWorkers = 10'000'000;
constexpr int kMostDepth = 64;
constexpr std::size_t kMostValues = 1'000'000;  // of an event

struct Event {
  Nanos start;
  Nanos length;
  [[nodiscard]] Nanos end() const { return start + length; }
};
/// What an annotation, an operation or a kernel tells about a communication; as far as it does.
struct Details {
  std::string collective;
  std::optional<Bytes> in;
  std::optional<Bytes> out;
  std::uint32_t workers = 0;
};
struct Kernel : Event {
  std::int64_t correlation = -1;
  Details details;
};
struct Launch : Event {
  std::string thread;
};
struct Around : Event {
  Details details;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string letters(std::string_view text) {
  std::string result = lower(text);
  std::erase_if(result, [](char c) { return c < 'a' || c > 'z'; });
  return result;
}

/// Bytes of an element as PyTorch spells its type, in a graph ("Float") or in C++ ("float", "c10::BFloat16").
std::optional<Bytes> element_bytes(std::string_view type) {
  static const std::map<std::string, Bytes, std::less<>> sizes{{"float", 4},
                                                               {"double", 8},
                                                               {"half", 2},
                                                               {"bfloat16", 2},
                                                               {"long", 8},
                                                               {"long int", 8},
                                                               {"int", 4},
                                                               {"short", 2},
                                                               {"char", 1},
                                                               {"short int", 2},
                                                               {"signed char", 1},
                                                               {"unsigned char", 1},
                                                               {"byte", 1},
                                                               {"bool", 1},
                                                               {"int64", 8},
                                                               {"int32", 4},
                                                               {"int8", 1},
                                                               {"uint8", 1},
                                                               {"float8_e4m3fn", 1},
                                                               {"float8_e5m2", 1},
                                                               {"float8_e4m3fnuz", 1},
                                                               {"float8_e5m2fnuz", 1}};
  std::string name = lower(type);
  if (name.starts_with("c10::")) name.erase(0, 5);
  const auto found = sizes.find(name);
  return found == sizes.end() ? std::nullopt : std::optional(found->second);
}

enum class Kind { collective, send, nothing, unknown };

std::pair<Kind, Collective> kind_of(std::string_view name) {
  const std::string plain = letters(name);
  const auto has = [&](std::string_view part) { return plain.find(part) != std::string::npos; };
  if (has("reducescatter")) return {Kind::collective, Collective::reduce_scatter};
  if (has("allreduce")) return {Kind::collective, Collective::all_reduce};
  if (has("allgather")) return {Kind::collective, Collective::all_gather};
  if (has("alltoall")) return {Kind::collective, Collective::all_to_all};
  if (has("broadcast")) return {Kind::collective, Collective::broadcast};
  if (has("sendrecv")) return {Kind::unknown, Collective::none};  // a kernel's name: an all-to-all, a send or a receive
  if (has("recv") || has("barrier")) return {Kind::nothing, Collective::none};
  // What a send sends is what a worker sends that forwards a broadcast.
  if (has("send")) return {Kind::send, Collective::broadcast};
  return {Kind::unknown, Collective::none};
}

class Parser {
 public:
  explicit Parser(const std::string& file) { trace_.file = file; }

  KinetoTrace parse(std::string_view text) {
    bool has_events = false;
    bool wanted = true;      // the field of the file that is being read: others are not kept
    std::size_t values = 0;  // of the event that is being read, or before it
    json root;
    try {
      root = json::parse(text.begin(), text.end(), [&](int depth, json::parse_event_t event, json& value) {
        if (depth > kMostDepth) fail("it is nested too deeply", cure);
        if (event == json::parse_event_t::key && depth == 1) {
          has_events |= value == "traceEvents";
          wanted = value == "traceEvents" || value == "distributedInfo";
          values = 0;
          return wanted;
        }
        if (wanted && ++values > kMostValues) fail(fmt::format("an event has more than {} values", kMostValues), cure);
        if (event != json::parse_event_t::object_end || depth != 2) return true;
        take(value);
        values = 0;
        return false;  // it is not needed any more
      });
    } catch (const json::parse_error& error) {
      // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
      const std::string_view what = error.what();
      fail(fmt::format("no JSON: {}", what.substr(std::min(what.find("] ") + 2, what.size()))), cure);
    } catch (const json::exception&) {
      fail("a number is out of range", cure);
    }
    if (!root.is_object() || !has_events) fail("there is no \"traceEvents\"", cure);
    read_workers(root);
    make_steps();
    return std::move(trace_);
  }

 private:
  static constexpr std::string_view cure = "give a trace that torch.profiler exported, unpacked";

  [[noreturn]] void fail(std::string_view cause, std::string_view advice) const {
    throw InputError(one_line(fmt::format("{}: {}; {}", trace_.file, cause, advice)));
  }
  void warn(std::string_view what) { trace_.warnings.push_back(one_line(fmt::format("{}: {}", trace_.file, what))); }

  void read_workers(const json& root) {
    const auto info = root.find("distributedInfo");
    if (info == root.end() || !info->is_object()) return;
    if (const auto rank = whole(*info, "rank", 0, kMostWorkers)) trace_.rank = static_cast<std::uint32_t>(*rank);
    if (const auto size = whole(*info, "world_size", 1, kMostWorkers))
      trace_.workers = static_cast<std::uint32_t>(*size);
  }

  std::optional<std::int64_t> whole(const json& object, const char* key, std::int64_t least, std::int64_t most) const {
    const auto value = object.find(key);
    if (value == object.end()) return std::nullopt;
    const auto number = whole_number(*value, least, most);
    if (!number)
      fail(fmt::format("\"{}\" is {} and no whole number from {} to {}", key, in_quotes(value->dump(-1, ' ', true)),
                       least, most),
           "export the trace anew");
    return number;
  }

  Nanos time(const json& event, const char* key, const std::string& name, double most_micros) const {
    const auto value = event.find(key);
    if (value == event.end() || !value->is_number() || !(value->get<double>() >= 0) ||
        value->get<double>() > most_micros)
      fail(fmt::format("the event {} has no \"{}\" in microseconds from 0 to {}", in_quotes(name), key, most_micros),
           "export the trace anew");
    // Whole microseconds since 1970 are more nanoseconds than a double can tell apart.
    return value->is_number_integer() ? Nanos(value->get<std::int64_t>() * 1000)
                                      : Nanos(std::llround(value->get<double>() * 1000));
  }

  /// Takes what is needed of an event.
  void take(const json& event) {
    const auto text = [&](const char* key) {
      const auto value = event.find(key);
      return value != event.end() && value->is_string() ? value->get<std::string>() : std::string();
    };
    if (text("ph") != "X") return;
    const std::string category = text("cat");
    const std::string name = text("name");
    const bool kernel = category == "kernel";
    const bool step = category == "user_annotation" && name.starts_with("ProfilerStep#");
    const bool around = (category == "user_annotation" && name.starts_with("nccl:")) ||
                        (category == "cpu_op" && name == "record_param_comms");
    // NCCL launches its kernels by the driver from CUDA 11.8 on.
    const bool launch = category == "cuda_runtime" || category == "cuda_driver";
    if (!kernel && !step && !around && !launch) return;
    const Event when{time(event, "ts", name, kMostStart), time(event, "dur", name, kMostLength)};
    static const json none = json::object();
    const auto found = event.find("args");
    const json& args = found != event.end() && found->is_object() ? *found : none;
    const std::string thread = event.contains("tid") ? event["tid"].dump() : std::string();
    const auto correlation = args.find("correlation");
    const std::int64_t number = correlation != args.end() ? whole_number<std::int64_t>(*correlation).value_or(-1) : -1;
    if (step) {
      trace_.steps.push_back({name, when.start, when.length, {}});
    } else if (around) {
      around_[thread].push_back({when, details(args, category == "cpu_op" ? std::string() : name.substr(5))});
    } else if (!kernel) {
      if (number >= 0) launches_[number] = {when, thread};
    } else if (name.starts_with("nccl") && name.find("Kernel") != std::string::npos) {
      kernels_.push_back({when, number, details(args, name)});
    } else {
      computation_.push_back(when);
    }
  }

  Details details(const json& args, const std::string& name) const {
    Details result;
    result.collective = name;
    if (const auto spelled = args.find("Collective name"); spelled != args.end() && spelled->is_string())
      result.collective = spelled->get<std::string>();
    if (const auto group = whole(args, "Group size", 0, kMostWorkers))
      result.workers = static_cast<std::uint32_t>(*group);
    const auto in = whole(args, "In msg nelems", 0, INT64_MAX);
    const auto out = whole(args, "Out msg nelems", 0, INT64_MAX);
    if (in || out) {
      const auto type = args.find("dtype");
      if (type == args.end() || !type->is_string()) return result;
      if (in) result.in = product(static_cast<Uint128>(*in), type->get<std::string>());
      if (out) result.out = product(static_cast<Uint128>(*out), type->get<std::string>());
      return result;
    }
    const auto dims = args.find("Input Dims");
    const auto types = args.find("Input type");
    if (dims == args.end() || types == args.end() || !dims->is_array() || !types->is_array()) return result;
    Uint128 sum = 0;
    for (std::size_t i = 0; i < dims->size() && i < types->size(); ++i) {
      const json& shape = (*dims)[i];
      if (!shape.is_array() || shape.empty() || !shape[0].is_number_integer() || !(*types)[i].is_string()) continue;
      Uint128 elements = 1;
      for (const json& side : shape) {
        const auto size = whole_number<std::int64_t>(side, 0);
        if (!size) fail(fmt::format("\"Input Dims\" of {} are no sizes", in_quotes(name)), cure);
        elements *= static_cast<std::uint64_t>(*size);
        if (elements > kMostBytes) break;
      }
      sum += product(elements, (*types)[i].get<std::string>());
      result.in = static_cast<Bytes>(std::min(sum, kMostBytes));
    }
    return result;
  }

  [[nodiscard]] Bytes product(Uint128 elements, const std::string& type) const {
    const auto each = element_bytes(type);
    if (!each) fail(fmt::format("the element type {} is not known", in_quotes(type)), "leave out what communicates it");
    if (elements * *each > kMostBytes) fail("a communication has more than 1 EB", "export the trace anew");
    return static_cast<Bytes>(elements * *each);
  }

  void make_steps() {
    auto& steps = trace_.steps;
    if (steps.empty())
      fail("there is no \"ProfilerStep#\"", "call step() of torch.profiler.profile once in each iteration");
    std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    for (auto& [thread, all] : around_)
      std::sort(all.begin(), all.end(), [](const Around& a, const Around& b) { return a.start < b.start; });
    std::sort(kernels_.begin(), kernels_.end(), [](const Kernel& a, const Kernel& b) { return a.start < b.start; });
    join_computation();
    std::size_t outside = 0;
    std::size_t unknown = 0;
    for (const Kernel& kernel : kernels_) {
      const auto launch = launches_.find(kernel.correlation);
      const Nanos launched = launch == launches_.end() ? kernel.start : launch->second.start;
      const auto after = std::upper_bound(steps.begin(), steps.end(), launched,
                                          [](Nanos at, const KinetoStep& step) { return at < step.start; });
      if (after == steps.begin() ||
          (after == steps.end() && launched > std::prev(after)->start + std::prev(after)->length)) {
        ++outside;
        continue;
      }
      KinetoStep& step = *std::prev(after);
      const std::optional<KinetoCommunication> communication =
          resolve(kernel, launch == launches_.end() ? nullptr : &launch->second);
      if (!communication) {
        ++unknown;
        continue;
      }
      step.communications.push_back(*communication);
      step.communications.back().start -= step.start;
      const double share = computing(kernel.start, kernel.end());
      step.communications.back().overlaps = share > 0 && share * 2 >= computing(step.start, step.start + step.length);
    }
    if (outside > 0) warn(fmt::format("{} communications lie outside all steps and are left out", outside));
    if (unknown > 0) warn(fmt::format("{} communications whose size or kind is not told are left out", unknown));
    const Nanos first = steps.front().start;
    for (KinetoStep& step : steps) step.start -= first;
  }

  [[nodiscard]] std::optional<KinetoCommunication> resolve(const Kernel& kernel, const Launch* launch) const {
    if (const auto own = complete(kernel, kernel.details)) return own;
    if (launch == nullptr) return std::nullopt;
    const auto thread = around_.find(launch->thread);
    if (thread == around_.end()) return std::nullopt;
    // The innermost that encloses the launch is the last that began before; what began before that may enclose it.
    auto at = std::upper_bound(thread->second.begin(), thread->second.end(), launch->start,
                               [](Nanos when, const Around& around) { return when < around.start; });
    for (int looked = 0; looked < 4 && at != thread->second.begin(); ++looked) {
      --at;
      if (at->end() < launch->start) continue;
      if (const auto found = complete(kernel, at->details)) return found;
    }
    return std::nullopt;
  }

  /// What `details` make of a kernel; nothing if they don't tell enough.
  [[nodiscard]] std::optional<KinetoCommunication> complete(const Kernel& kernel, const Details& details) const {
    auto [kind, collective] = kind_of(details.collective);
    if (kind == Kind::unknown) std::tie(kind, collective) = kind_of(kernel.details.collective);
    const std::uint32_t workers = details.workers > 0 ? details.workers : trace_.workers;
    KinetoCommunication result{kernel.start, kernel.length, collective, 0, workers, false};
    if (kind == Kind::nothing) return result;
    if (kind == Kind::unknown) return std::nullopt;
    // The size of an all-gather is that of the whole, which is what comes out.
    if (collective == Collective::all_gather) {
      if (!details.in && !details.out) return std::nullopt;
      const Uint128 size = details.out ? Uint128{*details.out} : Uint128{*details.in} * workers;
      result.size = static_cast<Bytes>(std::min(size, kMostBytes));
      return result;
    }
    if (!details.in) return std::nullopt;
    result.size = *details.in;
    if (kind == Kind::send) result.workers = 2;
    return result;
  }

  // Makes of the computing kernels the times at which there is any, so that overlaps() can add them up.
  void join_computation() {
    std::sort(computation_.begin(), computation_.end(),
              [](const Event& a, const Event& b) { return a.start < b.start; });
    std::vector<Event> joined;
    for (const Event& event : computation_) {
      if (!joined.empty() && event.start <= joined.back().end())
        joined.back().length = std::max(joined.back().end(), event.end()) - joined.back().start;
      else
        joined.push_back(event);
    }
    computation_ = std::move(joined);
  }

  /// Part of the time in which the GPU computes, 0 to 1.
  [[nodiscard]] double computing(Nanos begin, Nanos end) const {
    Nanos sum;
    auto at = std::partition_point(computation_.begin(), computation_.end(),
                                   [&](const Event& event) { return event.end() <= begin; });
    for (; at != computation_.end() && at->start < end; ++at)
      sum += std::min(at->end(), end) - std::max(at->start, begin);
    return begin < end ? static_cast<double>(sum.count) / static_cast<double>((end - begin).count) : 0;
  }

  KinetoTrace trace_;
  std::vector<Kernel> kernels_;
  std::vector<Event> computation_;
  std::unordered_map<std::int64_t, Launch> launches_;
  std::map<std::string, std::vector<Around>> around_;  ///< by thread
};

}  // namespace

const KinetoStep& KinetoTrace::typical() const {
  std::vector<const KinetoStep*> order;
  for (const KinetoStep& step : steps) order.push_back(&step);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [](const KinetoStep* a, const KinetoStep* b) {
    return std::pair(a->length, a->start) < std::pair(b->length, b->start);
  });
  return **middle;
}

bool is_kineto(const std::filesystem::path& path) { return path.extension() == ".json"; }

KinetoTrace load_kineto(const std::filesystem::path& path) {
  const std::string file = path.string();
  return parse_kineto(read_text_file(path, file, kKinetoFile), file);
}

KinetoTrace parse_kineto(std::string_view text, const std::string& file) { return Parser(file).parse(text); }

std::optional<Bytes> sent_bytes(const KinetoCommunication& communication, const MappingOptions& options) {
  const auto sent = bytes_sent(communication.collective, communication.size,
                               options.workers > 0 ? options.workers : communication.workers);
  if (!sent || *sent == 0) return sent;
  const long double scaled =
      std::round(static_cast<long double>(*sent) * static_cast<long double>(options.bytes_scale));
  if (scaled > static_cast<long double>(kMostSentBytes)) return std::nullopt;
  return std::max(static_cast<Bytes>(scaled), Bytes{1});
}

std::vector<Phase> to_phases(const KinetoTrace& trace, const KinetoStep& step, const MappingOptions& options) {
  check(options, trace.file);
  std::vector<Phase> phases;
  Nanos unscaled;  // compute time so far: scaled as a sum, so that short pieces don't vanish
  Nanos scaled;
  const auto compute = [&](Nanos until, Nanos from) {
    if (until <= from) return;
    unscaled += until - from;
    const long double sum =
        std::round(static_cast<long double>(unscaled.count) * static_cast<long double>(options.compute_scale));
    if (sum > static_cast<long double>(kMostSentBytes))
      throw InputError(
          fmt::format("{}: the compute times of a step exceed 146 years; lower compute_scale", trace.file));
    Phase phase;
    phase.compute = Nanos(static_cast<std::int64_t>(sum)) - scaled;
    if (phase.compute.count == 0) return;
    scaled += phase.compute;
    if (!phases.empty() && phases.back().kind == Phase::Kind::compute)
      phases.back().compute += phase.compute;
    else
      phases.push_back(std::move(phase));
  };
  Nanos now;
  Uint128 sum = 0;
  for (const KinetoCommunication& communication : step.communications) {
    compute(communication.start, now);
    now = std::max(now, communication.start + (communication.overlaps ? Nanos(0) : communication.length));
    Phase phase;
    phase.kind = Phase::Kind::communicate;
    const std::optional<Bytes> sent = sent_bytes(communication, options);
    if (!sent || (sum += *sent) > kMostSentBytes)
      throw InputError(fmt::format("{}: the bytes of a step do not fit into 62 bits; lower bytes_scale", trace.file));
    phase.bytes = *sent;
    if (phase.bytes == 0) continue;
    phase.overlap = communication.overlaps;
    phase.label = fmt::format("{} of {}", name(communication.collective), rounded(communication.size));
    phases.push_back(std::move(phase));
  }
  compute(step.length, now);
  return phases;
}

Job to_job(const KinetoTrace& trace, const std::string& job_name, const MappingOptions& options) {
  Job job;
  job.name = job_name;
  job.phases = to_phases(trace, trace.typical(), options);
  if (job.bytes_per_iteration() == 0)
    throw InputError(
        one_line(fmt::format("{}: {} sends nothing; give a trace of several workers with their "
                             "communications in it",
                             trace.file, trace.typical().name)));
  return job;
}

std::string describe(const KinetoTrace& trace, const MappingOptions& options, Rate link) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{}: PyTorch profiler, rank {} of {} workers, {} steps\n", one_line(trace.file), trace.rank,
                 trace.workers, trace.steps.size());
  for (const KinetoStep& step : trace.steps) {
    Job job;
    job.phases = to_phases(trace, step, options);
    const auto overlapping = static_cast<std::size_t>(std::count_if(
        step.communications.begin(), step.communications.end(), [](const auto& c) { return c.overlaps; }));
    fmt::format_to(out,
                   "  {:<18} {:>10.3f} ms, computes {:>10.3f} ms, {:>4} communications ({} overlap), {:>11} sent\n",
                   one_line(step.name), step.length.millis(), job.compute_per_iteration().millis(),
                   step.communications.size(), overlapping, rounded(job.bytes_per_iteration()));
  }
  const KinetoStep& typical = trace.typical();
  const IdealIteration ideal = ideal_iteration(to_phases(trace, typical, options), link);
  fmt::format_to(out, "{} is typical; alone on {} it takes {:.3f} ms and sends for {:.1f}% of them\n",
                 one_line(typical.name), to_text(link), ideal.length.millis(), ideal.duty_cycle() * 100);
  for (const KinetoCommunication& c : typical.communications)
    fmt::format_to(out, "  at {:>9.3f} ms  {:<14} {:>11} among {}, {:>11} sent{}\n", c.start.millis(),
                   name(c.collective), rounded(c.size), options.workers > 0 ? options.workers : c.workers,
                   rounded(sent_bytes(c, options).value_or(0)), c.overlaps ? ", overlaps" : "");
  for (const std::string& warning : trace.warnings) fmt::format_to(out, "warning: {}\n", warning);
  return text;
}

}  // namespace mltcp::workload
