// Reader of layer-by-layer descriptions of training iterations (see layer_trace.h).
#include "mltcp/lab/workload/traces/layer_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {
namespace {

// Limits far above those of any real trace. A larger number is a mistake, and sums within the limits do not overflow.
constexpr std::uint64_t kMaxNanos = 10'000'000'000'000'000;  // 115 days
constexpr std::uint64_t kMaxWorkers = 10'000'000;
constexpr std::size_t kMaxLayers = 1'000'000;
constexpr std::size_t kMaxRecomputedLayers = 1'000'000;
constexpr std::size_t kColumns = 12;

constexpr std::array<std::pair<std::string_view, Parallelism>, 11> kParallelisms{
    {{"DATA", Parallelism::data},
     {"MODEL", Parallelism::model},
     {"HYBRID_DATA_MODEL", Parallelism::hybrid_data_model},
     {"HYBRID_MODEL_DATA", Parallelism::hybrid_model_data},
     {"HYBRID_CUSTOMIZED", Parallelism::hybrid_customized},
     {"HYBRID_TRANSFORMER", Parallelism::hybrid_transformer},
     {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", Parallelism::hybrid_transformer_fwd_in_bckwd},
     {"HYBRID_DLRM", Parallelism::hybrid_dlrm},
     {"HYBRID_DLRM_ENHANCED", Parallelism::hybrid_dlrm_enhanced},
     {"DISTRIBUTED_INFERENCE", Parallelism::distributed_inference},
     {"MICRO", Parallelism::micro}}};

constexpr std::array<std::pair<std::string_view, Collective>, 7> kCollectives{
    {{"NONE", Collective::none},
     {"ALLREDUCE", Collective::all_reduce},
     {"ALLGATHER", Collective::all_gather},
     {"REDUCESCATTER", Collective::reduce_scatter},
     {"ALLTOALL", Collective::all_to_all},
     {"BROADCAST", Collective::broadcast},
     {"ALLREDUCEALLTOALL", Collective::all_reduce_all_to_all}}};

constexpr std::array<std::pair<std::string_view, Group>, 4> kSuffixes{
    {{"_TP", Group::model}, {"_DP", Group::data}, {"_EP", Group::expert}, {"_DP_EP", Group::expert_data}}};

constexpr std::array<std::string_view, kColumns + 1> kColumnNames{"name",
                                                                  "dependency",
                                                                  "forward compute",
                                                                  "forward collective",
                                                                  "forward size",
                                                                  "input-gradient compute",
                                                                  "input-gradient collective",
                                                                  "input-gradient size",
                                                                  "weight-gradient compute",
                                                                  "weight-gradient collective",
                                                                  "weight-gradient size",
                                                                  "update time",
                                                                  "parallelism"};

template <typename T, std::size_t n>
std::optional<T> find(const std::array<std::pair<std::string_view, T>, n>& table, std::string_view text) {
  for (const auto& [spelled, value] : table)
    if (spelled == text) return value;
  return std::nullopt;
}

template <typename T, std::size_t n>
std::string spellings(const std::array<std::pair<std::string_view, T>, n>& table) {
  std::string list;
  for (const auto& entry : table) list += (list.empty() ? "" : ", ") + std::string(entry.first);
  return list;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view kSpaces = " \t\r\v\f";

struct Line {
  std::uint32_t number = 0;
  std::vector<std::string_view> tokens;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text) { trace_.file = file; }

  Trace parse() {
    split_lines();
    std::size_t at = 0;
    std::optional<Line> count;
    if (const auto parallelism = find(kParallelisms, lines_[0].tokens[0])) {
      trace_.parallelism = *parallelism;
      read_header(lines_[0]);
      at = 1;
      if (at < lines_.size() && lines_[at].tokens.size() == 1) count = lines_[at++];
    } else {
      refuse_foreign_format();
    }
    const std::size_t columns = trace_.parallelism == Parallelism::hybrid_customized ? kColumns + 1 : kColumns;
    const std::size_t first = at;
    for (; at < lines_.size(); ++at) {
      if (trace_.layers.size() == kMaxLayers)
        fail(lines_[at].number, "layer", "there are more than a million layers", "give a trace of one iteration");
      read_layer(lines_[at], columns);
    }
    if (trace_.layers.empty())
      fail(lines_[first - 1].number, "layers", "no layer follows", "add a line of 12 columns for each layer");
    check_count(count);
    check_indices();
    report_ignored_sizes();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(std::uint32_t line, std::string_view column, std::string_view cause,
                         std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}:{}: {}: {}; {}", trace_.file, line, column, cause, cure)));
  }
  void warn(std::uint32_t line, std::string_view what) {
    trace_.warnings.push_back(one_line(fmt::format("{}:{}: {}", trace_.file, line, what)));
  }

  void split_lines() {
    std::uint32_t number = 0;
    std::string_view rest = text_;
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++number;
      for (const char c : line)
        if (std::iscntrl(static_cast<unsigned char>(c)) != 0 && std::isspace(static_cast<unsigned char>(c)) == 0)
          fail(number, "text",
               fmt::format("a byte of value {} shows that this is not text", static_cast<unsigned char>(c)),
               "give a trace in the 12-column text format");
      auto tokens = words_of(line, kSpaces);
      if (!tokens.empty()) lines_.push_back({number, std::move(tokens)});
    }
    if (lines_.empty()) fail(1, "text", "the file is empty", "give a trace with at least one layer");
  }

  // Called if the first line is no known header. If the file has another format, the message is about the whole file,
  // not about the columns of a layer.
  void refuse_foreign_format() const {
    const Line& line = lines_[0];
    // Files next to a trace (networks, cost models, communicators) are YAML, often with comments at the beginning. The
    // words of comments would be counted as columns.
    const auto is_comment = [](const Line& each) { return each.tokens[0].starts_with('#'); };
    const auto content = std::ranges::find_if_not(lines_, is_comment);
    const auto is_yaml = [](std::string_view token) {
      return token == "---" || (token.ends_with(':') && std::isalnum(static_cast<unsigned char>(token[0])) != 0);
    };
    if (content != lines_.end() && is_yaml(content->tokens[0]))
      fail(content->number, "layer",
           fmt::format("the line begins with {}, so this is YAML, like the network files that come with a trace",
                       in_quotes(content->tokens[0])),
           "give the trace itself, in the 12-column text format of ASTRA-sim 1.0, SimAI and AICB");
    if (is_comment(line))
      fail(line.number, "layer", fmt::format("the line begins with {}, and a trace has no comments", in_quotes("#")),
           "remove the comments, or give a trace in the 12-column text format of ASTRA-sim 1.0, SimAI and AICB");
    if (line.tokens.size() >= kColumns - 2) return;  // the line is a layer, perhaps with a mistake
    const bool count_follows = lines_.size() > 1 && lines_[1].tokens.size() == 1 && all_digits(lines_[1].tokens[0]);
    if (count_follows) {
      // Suggests the longest known name that begins the unknown name, e.g. DATA for "DATA_REORDER".
      std::string_view like;
      for (const auto& entry : kParallelisms)
        if (line.tokens[0].starts_with(entry.first) && entry.first.size() > like.size()) like = entry.first;
      fail(line.number, "parallelism", fmt::format("{} is not known", in_quotes(line.tokens[0])),
           fmt::format("{}begin the file with one of {}",
                       like.empty() ? "" : fmt::format("write {} if its training loop will do; ", like),
                       spellings(kParallelisms)));
    }
    fail(line.number, "layer",
         fmt::format("the line begins with {} and has {} of the 12 columns of a layer, so this is another format",
                     in_quotes(line.tokens[0]), line.tokens.size()),
         "give a trace in the 12-column text format of ASTRA-sim 1.0, SimAI and AICB");
  }

  std::uint64_t number(const Line& line, std::size_t index, std::string_view column, std::uint64_t max) const {
    const std::string_view token = line.tokens[index];
    if (token.size() > 1 && token[0] == '-' && all_digits(token.substr(1)))
      fail(line.number, column, fmt::format("{} is negative", in_quotes(token)), "write 0 or a positive whole number");
    if (!all_digits(token))
      fail(line.number, column, fmt::format("{} is not a whole number", in_quotes(token)),
           "write digits only, in nanoseconds or bytes");
    const auto value = number_from<std::uint64_t>(token);
    if (!value || *value > max)
      fail(line.number, column, fmt::format("{} is too large", in_quotes(token)), fmt::format("write at most {}", max));
    return *value;
  }

  // Reads pairs of a key, which may end with a colon, and a number. For two keys the number is the length of a list
  // that follows.
  void read_header(const Line& line) {
    std::size_t at = 1;
    const bool dlrm =
        trace_.parallelism == Parallelism::hybrid_dlrm || trace_.parallelism == Parallelism::hybrid_dlrm_enhanced;
    if (dlrm && at < line.tokens.size() && all_digits(line.tokens[at])) {
      trace_.last_bottom_layer = static_cast<std::uint32_t>(number(line, at, "last bottom layer", kMaxLayers));
      has_bottom_ = true;
      ++at;
    }
    while (at < line.tokens.size()) {
      std::string_view key = line.tokens[at++];
      if (key.ends_with(':')) key.remove_suffix(1);
      if (at == line.tokens.size())
        fail(line.number, in_quotes(key), "the value is missing", "write a number after it");
      if (key == "checkpoints") {
        at = read_list(line, at, key, trace_.checkpoints);
        continue;
      }
      if (key == "checkpoint_initiates") {
        at = read_list(line, at, key, trace_.recompute_before);
        continue;
      }
      const std::size_t value_at = at++;
      const auto workers = [&] { return static_cast<std::uint32_t>(number(line, value_at, key, kMaxWorkers)); };
      if (key == "model_parallel_NPU_group") {
        trace_.model_group = workers();
      } else if (key == "ep") {
        trace_.expert_group = workers();
      } else if (key == "pp") {
        trace_.pipeline_stages = workers();
        if (trace_.pipeline_stages > 1)
          warn(line.number, fmt::format("pp is {}: transfers between pipeline stages are not among the layers, so the "
                                        "job does not send them",
                                        trace_.pipeline_stages));
      } else if (key == "all_gpus") {
        trace_.all_workers = workers();
      } else if (key == "DLRM_LAST_BOTTOM_LAYER") {
        trace_.last_bottom_layer = static_cast<std::uint32_t>(number(line, value_at, key, kMaxLayers));
        has_bottom_ = true;
      } else if (key != "vpp" && key != "ga" && key != "pp_comm") {
        // Ignores vpp and ga, because virtual stages and gradient accumulation are already unrolled into layers.
        // Ignores pp_comm, because the warning about pp covers it.
        warn(line.number, fmt::format("{} in the header is not known and has no effect", in_quotes(key)));
      }
    }
    if (dlrm && !has_bottom_)
      fail(line.number, "last bottom layer", "the header does not say where the bottom MLP ends",
           "write the index of its last layer after HYBRID_DLRM");
  }

  std::size_t read_list(const Line& line, std::size_t at, std::string_view key, std::vector<std::uint32_t>& list) {
    const std::uint64_t count = number(line, at++, key, kMaxLayers);
    for (std::uint64_t i = 0; i < count; ++i, ++at) {
      if (at == line.tokens.size())
        fail(line.number, key, fmt::format("{} layers are announced and {} follow", count, i),
             "write as many layer indices as announced");
      list.push_back(static_cast<std::uint32_t>(number(line, at, key, kMaxLayers)));
    }
    std::ranges::sort(list);
    return at;
  }

  void read_layer(const Line& line, std::size_t columns) {
    if (line.tokens.size() != columns)
      fail(line.number, "layer", fmt::format("{} columns where {} are expected", line.tokens.size(), columns),
           columns == kColumns ? "write name, dependency, three times compute, collective and size, and update time"
                               : "write the 12 columns of a layer and its parallelism");
    Layer layer;
    layer.line = line.number;
    layer.name = line.tokens[0];
    std::string_view dependency = line.tokens[1];
    if (dependency.starts_with('-')) dependency.remove_prefix(1);
    if (!all_digits(dependency))
      fail(line.number, kColumnNames[1], fmt::format("{} is not a whole number", in_quotes(line.tokens[1])),
           "write -1, as the column is reserved");
    layer.parallelism = trace_.parallelism;
    if (columns > kColumns) layer.parallelism = read_layer_parallelism(line);
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      const std::size_t at = 2 + 3 * pass;
      LayerPass& target = layer.passes[pass];
      target.compute = Nanos(static_cast<std::int64_t>(number(line, at, kColumnNames[at], kMaxNanos)));
      read_collective(line, at + 1, static_cast<Pass>(pass), target);
      target.size = number(line, at + 2, kColumnNames[at + 2], kMaxCallBytes);
      if (target.collective == Collective::none && target.size != 0) {
        if (ignored_sizes_++ == 0) first_ignored_line_ = line.number;
        target.size = 0;
      }
    }
    layer.update = Nanos(static_cast<std::int64_t>(number(line, 11, kColumnNames[11], kMaxNanos)));
    trace_.layers.push_back(std::move(layer));
  }

  Parallelism read_layer_parallelism(const Line& line) const {
    const auto parallelism = find(kParallelisms, line.tokens[kColumns]);
    if (parallelism == Parallelism::data || parallelism == Parallelism::model ||
        parallelism == Parallelism::hybrid_data_model || parallelism == Parallelism::hybrid_model_data)
      return *parallelism;
    fail(line.number, kColumnNames[kColumns],
         fmt::format("{} is not the parallelism of a layer", in_quotes(line.tokens[kColumns])),
         "write one of DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA");
  }

  void read_collective(const Line& line, std::size_t index, Pass pass, LayerPass& target) const {
    const std::string_view token = line.tokens[index];
    const std::size_t underscore = std::min(token.find('_'), token.size());
    const auto collective = find(kCollectives, token.substr(0, underscore));
    const auto suffix = token.substr(underscore);
    const auto group = suffix.empty() ? default_group(pass) : find(kSuffixes, suffix);
    if (!collective || !group)
      fail(line.number, kColumnNames[index], fmt::format("{} is not a known collective", in_quotes(token)),
           fmt::format("write one of {}, followed by one of {} if needed", spellings(kCollectives),
                       spellings(kSuffixes)));
    target.collective = *collective;
    target.group = *group;
  }

  // The embeddings of a DLRM (layer 0) are spread over all workers in every pass.
  std::optional<Group> default_group(Pass pass) const {
    const bool dlrm =
        trace_.parallelism == Parallelism::hybrid_dlrm || trace_.parallelism == Parallelism::hybrid_dlrm_enhanced;
    return pass == Pass::weight_gradient || (dlrm && trace_.layers.empty()) ? Group::data : Group::model;
  }

  void check_count(const std::optional<Line>& count) {
    if (trace_.parallelism == Parallelism::unspecified) return;
    if (!count) {
      warn(lines_[0].number,
           fmt::format("the number of layers is missing after the first line; {} were read", trace_.layers.size()));
      return;
    }
    const std::uint64_t announced = number(*count, 0, "number of layers", std::numeric_limits<std::uint64_t>::max());
    if (announced != trace_.layers.size())
      warn(count->number,
           fmt::format("{} layers are announced and {} follow, which are used", announced, trace_.layers.size()));
  }

  void check_indices() const {
    const auto inside = [&](std::uint32_t index, std::string_view key) {
      if (index >= trace_.layers.size())
        fail(lines_[0].number, key, fmt::format("there is no layer {}", index),
             fmt::format("write an index from 0 to {}", trace_.layers.size() - 1));
    };
    if (has_bottom_) inside(trace_.last_bottom_layer, "last bottom layer");
    for (const std::uint32_t index : trace_.checkpoints) inside(index, "checkpoints");
    for (const std::uint32_t index : trace_.recompute_before) {
      inside(index, "checkpoint_initiates");
      if (trace_.checkpoints.empty() || trace_.checkpoints.front() > index)
        fail(lines_[0].number, "checkpoint_initiates", fmt::format("layer {} has no checkpoint before it", index),
             "list one under checkpoints");
    }
    check_recomputation();
  }

  // Limits recomputation. With too few checkpoints, it grows with the square of the number of layers.
  void check_recomputation() const {
    std::uint64_t layers = 0;
    const auto& checkpoints = trace_.checkpoints;
    for (std::size_t i = 0; i < trace_.recompute_before.size(); ++i) {
      const std::uint32_t index = trace_.recompute_before[i];
      if (i > 0 && index == trace_.recompute_before[i - 1]) continue;
      layers += index - *std::prev(std::ranges::upper_bound(checkpoints, index));
    }
    if (layers > kMaxRecomputedLayers)
      fail(lines_[0].number, "checkpoint_initiates", fmt::format("{} layers are recomputed in an iteration", layers),
           fmt::format("list more checkpoints, so that at most {} are", kMaxRecomputedLayers));
  }

  void report_ignored_sizes() {
    if (ignored_sizes_ > 0)
      warn(first_ignored_line_,
           fmt::format("a size with the collective NONE has no effect ({} times)", ignored_sizes_));
  }

  std::string_view text_;
  std::vector<Line> lines_;  // lines that are not blank
  Trace trace_;
  bool has_bottom_ = false;
  std::size_t ignored_sizes_ = 0;
  std::uint32_t first_ignored_line_ = 0;
};

}  // namespace

std::string_view name(Parallelism parallelism) {
  for (const auto& [spelled, value] : kParallelisms)
    if (value == parallelism) return spelled;
  return "unspecified";
}

std::string_view name(Group group) {
  using enum Group;
  return word_of<Group>(group, {{model, "model"}, {data, "data"}, {expert, "expert"}, {expert_data, "expert-data"}});
}

std::string_view name(Pass pass) {
  using enum Pass;
  return word_of<Pass>(
      pass, {{forward, "forward"}, {input_gradient, "input-gradient"}, {weight_gradient, "weight-gradient"}});
}

Trace parse_trace(std::string_view text, const std::string& file) { return Parser(text, file).parse(); }

}  // namespace mltcp::workload
