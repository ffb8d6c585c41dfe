// TOML functions for the readers in this folder (see toml.h). Also compiles the functions of the parser toml++.
#define TOML_IMPLEMENTATION
#include "mltcp/lab/experiment/files/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file_format.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"

namespace mltcp::experiment {
namespace {

// The parser limits the nesting of arrays and inline tables, but not the number of parts of a dotted key. Each part is
// a nested table, and tables are destroyed by recursion. Real keys have at most three parts.
constexpr std::size_t kMaxKeyParts = 16;

// Returns the length of the quoted text at the beginning of `text`, including both quotes. If the closing quote is
// missing, the length extends to the end of the line. For a multi-line text, it then extends to the end of `text`.
std::size_t size_of_quoted(std::string_view text) {
  const char c = text.front();
  const bool long_text = text.size() > 2 && text[1] == c && text[2] == c;
  std::size_t end = long_text ? 3 : 1;
  const auto closed = [&] { return text[end] == c && (!long_text || text.substr(end, 3) == text.substr(0, 3)); };
  while (end < text.size() && !closed() && (long_text || text[end] != '\n'))
    end += std::size_t{c == '"' && text[end] == '\\' ? 2U : 1U};
  if (!long_text && end < text.size() && text[end] == '\n') return end;
  end += long_text ? 3 : 1;
  // The content of a multi-line text may end with up to two quotes, directly before the closing quotes.
  for (int own = 0; long_text && own < 2 && end < text.size() && text[end] == c; ++own) ++end;
  return std::min(end, text.size());
}

// Returns the line of the first key with too many parts; empty if there is no such key.
std::optional<std::size_t> line_of_deep_key(std::string_view text) {
  std::size_t line = 1;
  std::size_t parts = 1;
  const auto skip_to = [&](std::size_t end) {
    end = std::min(end, text.size());
    line += static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    text.remove_prefix(end);
  };
  while (!text.empty()) {
    const char c = text.front();
    if (c == '#') {
      skip_to(text.find('\n'));
    } else if (c == '"' || c == '\'') {
      skip_to(size_of_quoted(text));
    } else {
      if (c == '.' && ++parts > kMaxKeyParts) return line;
      if (std::string_view("\n=,{}").find(c) != std::string_view::npos) parts = 1;
      skip_to(1);
    }
  }
  return std::nullopt;
}

bool fails_assertion(std::string_view text) {
  try {
    static_cast<void>(toml::parse(text));
  } catch (const ParserAssertion&) {
    return true;
  } catch (const toml::parse_error&) {
    // Expected, because the text is cut off.
  }
  return false;
}

// Finds the line of `text` that fails an assertion of the parser, because the assertion reports no line number. The
// first N lines of `text` fail the assertion if and only if they include that line.
std::size_t line_of_assertion(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    ends.push_back(at + 1);
  const auto line =
      std::ranges::partition_point(ends, [&](std::size_t end) { return !fails_assertion(text.substr(0, end)); });
  return static_cast<std::size_t>(line - ends.begin()) + 1;
}

// ---- Texts ----

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string key_text(std::string_view key) {
  const bool bare = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? std::string(key) : quoted(key);
}

// ---- Missing quotes ----

// A line with missing quotes: its key within its table, and the corrected line.
struct Unquoted {
  std::string key;
  bool opened = false;  // whether only the closing quote is missing
  std::string line;
};

bool reads_as_value(const std::string& word) {
  try {
    return toml::parse("v = " + word).size() == 1;
  } catch (const toml::parse_error&) {
    return false;
  } catch (const ParserAssertion&) {
    return false;
  }
}

// Returns the position after the closing quote of the quoted text that begins at `from`; npos if there is no closing
// quote.
std::size_t end_of_quoted(std::string_view text, std::size_t from) {
  const char quote = text[from];
  for (std::size_t at = from + 1; at < text.size(); at += std::size_t{quote == '"' && text[at] == '\\' ? 2U : 1U})
    if (text[at] == quote) return at + 1;
  return std::string_view::npos;
}

// Returns `word` in quotes. Removes a quote at the end of `word` first.
std::string in_toml_quotes(std::string_view word) {
  if (!word.empty() && (word.back() == '"' || word.back() == '\'')) word.remove_suffix(1);
  return quoted(trimmed(word));
}

// Returns the corrected line if adding quotes around values is enough to make `line` valid TOML; empty if not.
std::optional<Unquoted> without_quotes(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  Unquoted found{std::string(trimmed(line.substr(0, equals))), false, ""};
  const std::string_view value = line.substr(equals + 1);
  const std::size_t first = value.find_first_not_of(" \t");
  if (first == std::string_view::npos || value[first] == '#') return std::nullopt;
  found.line = found.key + " = ";
  const bool structured = value[first] == '[' || value[first] == '{';
  bool changed = false;
  for (std::size_t at = first; at < value.size();) {
    const char c = value[at];
    if (c == '#') break;
    if (structured && std::string_view(" \t\r[]{},=").find(c) != std::string_view::npos) {
      found.line += c;
      ++at;
      continue;
    }
    std::size_t end = at;
    if (c == '"' || c == '\'') {
      end = end_of_quoted(value, at);
      if (end == std::string_view::npos) {
        if (structured) return std::nullopt;  // the intended end of the text is unknown
        found.opened = changed = true;
        found.line += quoted(trimmed(value.substr(at + 1)));
        break;
      }
      found.line += value.substr(at, end - at);
    } else {
      end = std::min(value.find_first_of(structured ? "[]{},=#" : "#", at), value.size());
      const std::string word(trimmed(value.substr(at, end - at)));
      if ((structured && end < value.size() && value[end] == '=') || reads_as_value(word)) {
        found.line += word + (structured && end < value.size() && value[end] != ',' ? " " : "");
      } else {
        changed = true;
        found.line += in_toml_quotes(word) + (structured && end < value.size() && value[end] == '}' ? " " : "");
      }
    }
    at = end;
  }
  found.line = trimmed(found.line);
  try {
    if (!changed || toml::parse(found.line).size() != 1) return std::nullopt;
  } catch (const toml::parse_error&) {
    return std::nullopt;
  } catch (const ParserAssertion&) {
    return std::nullopt;
  }
  return found;
}

// Position of a line within the tables and texts of a file.
struct Place {
  std::string table;         // prefix of keys on this line, such as "job[2]."; empty at the top level
  bool inside_text = false;  // whether the line begins inside a multi-line text
};

// Returns the position of the last line of `text`.
Place position_of_last_line(std::string_view text) {
  const std::size_t last = text.find_last_of('\n') + 1;  // 0 if there is no line end
  Place place;
  std::map<std::string, std::size_t, std::less<>> elements;
  const auto note_table = [&](std::string_view line) {
    if (line.empty() || line.front() != '[') return;
    const bool array = line.starts_with("[[");
    const std::size_t begin = array ? 2 : 1;
    const std::size_t end = line.find(']');
    if (end == std::string_view::npos || end < begin) return;
    const std::string name(trimmed(line.substr(begin, end - begin)));
    // The condition excludes a row in a list of lists, which also begins with a bracket.
    constexpr std::string_view of_names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (name.find_first_of(of_names) != 0 || name.find(',') != std::string::npos) return;
    place.table = array ? fmt::format("{}[{}].", name, ++elements[name]) : name + ".";
  };
  std::size_t at = 0;  // start of a line that is not inside a multi-line text
  while (at < last) {
    note_table(trimmed(text.substr(at, text.find('\n', at) - at)));
    while (at < text.size() && text[at] != '\n') {
      if (text[at] == '#')
        at = std::min(text.find('\n', at), text.size());
      else
        at += text[at] == '"' || text[at] == '\'' ? size_of_quoted(text.substr(at)) : 1;
    }
    ++at;
  }
  place.inside_text = at != last;
  if (!place.inside_text) note_table(trimmed(text.substr(last)));
  return place;
}

// Throws InputError if quotes are missing on line `number`, where the parser stopped, or on the line above. Lines are
// counted from 1.
void refuse_missing_quotes(std::string_view text, const std::string& file, std::size_t number) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; lines.size() < number && at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  constexpr std::size_t longest = 200;
  for (int tries = 0; tries < 2 && !lines.empty(); ++tries, lines.pop_back()) {
    const std::string_view line = lines.back();
    if (line.size() > longest) continue;
    const auto found = without_quotes(line);
    if (!found) continue;
    const Place place =
        position_of_last_line(text.substr(0, static_cast<std::size_t>(line.data() - text.data()) + line.size()));
    if (place.inside_text) continue;
    throw InputError(
        one_line(fmt::format("{}:{}: {}{}: {}; put it in quotes: {}", file, lines.size(), place.table, found->key,
                             found->opened ? "the quote at the end is missing" : "a text has no quotes", found->line)));
  }
}

// ---- Paths ----

toml::key key_at(std::string_view name, std::uint32_t line) {
  toml::source_region place;
  place.begin = {line, 1};
  place.end = place.begin;
  return toml::key(name, place);
}

// Sets the line number of all keys in `node`.
void set_lines(toml::node& node, std::uint32_t line) {
  if (toml::array* array = node.as_array(); array != nullptr)
    for (toml::node& element : *array) set_lines(element, line);
  toml::table* const table = node.as_table();
  if (table == nullptr) return;
  toml::table changed;
  for (auto&& [key, child] : *table) {
    set_lines(child, line);
    changed.insert(key_at(key.str(), line), child);
  }
  *table = std::move(changed);
}

// One step of a key path, such as "job[2]", "job[*]" or "cc".
struct Step {
  static constexpr std::size_t kAll = 0;
  std::string_view key;
  std::optional<std::size_t> index;  // index in an array, from 1, or `kAll`
};

Step step_from(std::string_view text, std::string_view path) {
  Step step{text.substr(0, text.find('[')), std::nullopt};
  std::string_view rest = text.substr(step.key.size());
  bool good = !step.key.empty() && step.key.find_first_of("]\"' ") == std::string_view::npos;
  if (!rest.empty()) {
    good = good && rest.size() > 2 && rest.back() == ']';
    if (good && rest == "[*]") {
      step.index = Step::kAll;
    } else if (good) {
      step.index = number_from<std::size_t>(rest.substr(1, rest.size() - 2), 1, SIZE_MAX);
      good = step.index.has_value();
    }
  }
  if (!good)
    throw InputError(fmt::format(
        "{} is not a path of keys; write one such as bottleneck.buffer, job[2].start (counted from 1) or job[*].jitter",
        in_quotes(path)));
  return step;
}

void set_from(toml::table& table, std::string_view path, std::size_t from, const toml::node& value,
              std::uint32_t line) {
  const std::size_t dot = std::min(path.find('.', from), path.size());
  const Step step = step_from(path.substr(from, dot - from), path);
  const bool last = dot == path.size();
  const auto place = path.substr(0, dot);
  const auto descend = [&](toml::node& node) {
    if (!node.is_table())
      throw InputError(
          fmt::format("{} is {}, which has no keys; leave out the rest of the path", place, type_name(node)));
    set_from(*node.as_table(), path, dot + 1, value, line);
  };
  if (!step.index) {
    if (last) {
      table.erase(step.key);
      table.insert(key_at(step.key, line), value);
      return;
    }
    if (!table.contains(step.key)) table.insert(key_at(step.key, line), toml::table());
    descend(*table.get(step.key));
    return;
  }
  toml::array* const array = table.get_as<toml::array>(step.key);
  if (array == nullptr)
    throw InputError(
        fmt::format("there is no array {}; leave out [...], or add it to the experiment", in_quotes(step.key)));
  if (*step.index > array->size())
    throw InputError(fmt::format("{} has {} element{}; write [1] to [{}], or [*] for all of them", in_quotes(step.key),
                                 array->size(), array->size() == 1 ? "" : "s", array->size()));
  for (std::size_t i = 0; i < array->size(); ++i) {
    if (*step.index != Step::kAll && *step.index != i + 1) continue;
    if (last)
      array->replace(array->cbegin() + static_cast<std::ptrdiff_t>(i), value);
    else
      descend((*array)[i]);
  }
  if (!last) return;
  // The elements of an array have no keys, so the line number is attached to the array's key.
  toml::array kept = std::move(*array);
  table.erase(step.key);
  table.insert(key_at(step.key, line), std::move(kept));
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file, std::string_view page) {
  if (const auto line = line_of_deep_key(text))
    throw InputError(
        one_line(fmt::format("{}:{}: TOML: a key has more than {} parts between dots; correct the line, "
                             "see {}",
                             file, *line, kMaxKeyParts, page)));
  if (trimmed(text).starts_with('{'))
    throw InputError(
        one_line(fmt::format("{}:1: this is JSON, not TOML; write TOML, see {}, or make a page of a command's --json "
                             "results with mltcp report",
                             file, page)));
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    refuse_missing_quotes(text, file, std::max<std::uint32_t>(error.source().begin.line, 1));
    if (const std::string_view format = file_format(text).name;
        format == "CSV" || format == "YAML" || format == "numbers in columns")
      throw InputError(one_line(fmt::format("{}:1: this is {}, not TOML; write TOML, see {}", file, format, page)));
    throw InputError(one_line(
        fmt::format("{}:{}: TOML: {}; correct the line (values with a unit are in quotes, such as \"150 ms\"), see {}",
                    file, std::max<std::uint32_t>(error.source().begin.line, 1), error.description(), page)));
  } catch (const ParserAssertion&) {
    throw InputError(one_line(fmt::format("{}:{}: TOML: a key or value is expected; correct the line, see {}", file,
                                          line_of_assertion(text), page)));
  }
}

std::string to_toml(const toml::node& node) {
  if (const auto* text = node.as_string()) return experiment::quoted(text->get());
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* decimal = node.as_floating_point()) {
    const std::string text = fmt::format("{}", decimal->get());
    return text.find_first_of(".ein") == std::string::npos ? text + ".0" : text;
  }
  if (const toml::array* array = node.as_array()) {
    std::string text;
    for (const toml::node& element : *array) text += (text.empty() ? "" : ", ") + to_toml(element);
    return "[" + text + "]";
  }
  if (const toml::table* table = node.as_table()) {
    std::string text;  // toml++ sorts the keys
    for (const auto& [key, child] : *table)
      text += (text.empty() ? " " : ", ") + key_text(key.str()) + " = " + to_toml(child);
    return text.empty() ? "{}" : "{" + text + " }";
  }
  std::ostringstream moment;
  if (const auto* date = node.as_date()) moment << date->get();
  if (const auto* time = node.as_time()) moment << time->get();
  if (const auto* both = node.as_date_time()) moment << both->get();
  return moment.str();
}

std::string value_from_word(std::string_view word) {
  const bool structured = !word.empty() && std::string_view("\"'[{").find(word.front()) != std::string_view::npos;
  if (structured && line_of_deep_key(word))
    throw InputError(fmt::format("a key in {} has more than {} parts between dots; leave it out",
                                 in_quotes(word.substr(0, 100)), kMaxKeyParts));
  try {
    const toml::table parsed = toml::parse(fmt::format("v = {}", word));
    const toml::node* const value = parsed.get("v");
    if (parsed.size() == 1 && value != nullptr &&
        (structured || value->is_integer() || value->is_floating_point() || value->is_boolean()))
      return to_toml(*value);
  } catch (const toml::parse_error&) {
    // Handled below: refused, or taken as a text without quotes.
  } catch (const ParserAssertion&) {
  }
  if (structured)
    throw InputError(fmt::format("{} is not a TOML value; close its quotes and brackets, and quote it for the shell",
                                 in_quotes(word)));
  return quoted(word);
}

void set_value(toml::table& root, std::string_view path, const toml::node& value, std::uint32_t line) {
  if (static_cast<std::size_t>(std::ranges::count(path, '.')) >= kMaxKeyParts)
    throw InputError(
        fmt::format("the path has more than {} parts between dots; write one such as bottleneck.buffer", kMaxKeyParts));
  toml::table carrier;
  carrier.insert("v", value);
  set_lines(*carrier.get("v"), line);
  set_from(root, path, 0, *carrier.get("v"), line);
}

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a decimal number";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    default:
      return "nothing";
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace mltcp::experiment
