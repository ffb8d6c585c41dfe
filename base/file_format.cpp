// Recognises formats of files by their first bytes (see file_format.h).
#include "mltcp/base/file_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include "mltcp/base/text.h"

namespace mltcp {
namespace {

using namespace std::literals;

constexpr std::size_t kLookedAt = 4096;
constexpr std::string_view kUnpack = "unpack it and give the file inside";

struct Magic {
  std::string_view bytes;
  FileFormat format;
};
constexpr std::array kMagic{
    Magic{"\x89PNG"sv, {"a picture (PNG)", "", true}},
    Magic{"\xff\xd8\xff"sv, {"a picture (JPEG)", "", true}},
    Magic{"GIF8"sv, {"a picture (GIF)", "", true}},
    Magic{"%PDF"sv, {"PDF", "", true}},
    Magic{"\x7f"
          "ELF"sv,
          {"a program or library (ELF)", "", true}},
    Magic{"SQLite format 3\0"sv, {"SQLite", "", true}},
    Magic{"PK\x03\x04"sv, {"a zip archive", kUnpack, true}},
    Magic{"7z\xbc\xaf"sv, {"a 7-Zip archive", kUnpack, true}},
    Magic{"Rar!"sv, {"a RAR archive", kUnpack, true}},
    Magic{"\x04\x22\x4d\x18"sv, {"packed by LZ4", kUnpack, true}},
    Magic{"\x1f\x9d"sv, {"packed by compress", kUnpack, true}},
    Magic{"\x1f\x8b"sv, {"packed by gzip", kUnpack, true}},
    Magic{"\x28\xb5\x2f\xfd"sv, {"packed by zstd", kUnpack, true}},
    Magic{"\xfd"
          "7zXZ"sv,
          {"packed by xz", kUnpack, true}},
    Magic{"BZh"sv, {"packed by bzip2", kUnpack, true}},
    Magic{"\x89HDF"sv, {"HDF5", "", true}},
    Magic{"PAR1"sv, {"Parquet", "", true}},
    Magic{"ARROW1"sv, {"Arrow", "", true}},
    Magic{"\x93NUMPY"sv, {"a NumPy array", "", true}},
    Magic{"\x80\x02"sv, {"a Python pickle", "", true}},
    Magic{"\x80\x03"sv, {"a Python pickle", "", true}},
    Magic{"\x80\x04"sv, {"a Python pickle", "", true}},
    Magic{"\x80\x05"sv, {"a Python pickle", "", true}},
    Magic{"\x0a\x0d\x0d\x0a"sv, {"a capture (pcapng)", "give it to mltcp inspect", true}},
    Magic{"\xd4\xc3\xb2\xa1"sv, {"a capture (pcap)", "convert it: tshark -F pcapng -r FILE -w NEW.pcapng", true}},
    Magic{"\xff\xfe"sv, {"text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW", true}},
    Magic{"\xfe\xff"sv, {"text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW", true}},
};

bool has_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

FileFormat markup(std::string_view text) {
  if (has_word(text, "<svg")) return {"a picture (SVG)", "open it in a browser", true};
  if (has_word(text, "<html") || has_word(text, "<!doctype html")) return {"HTML", "open it in a browser", true};
  if (has_word(text, "<system version=") && has_word(text, "<cpu "))
    return {"NCCL's topology of a host (XML)", "give it to NCCL as NCCL_TOPO_FILE", true};
  if (has_word(text, "<graphs version="))
    return {"NCCL's graph of channels (XML)", "give it to NCCL as NCCL_GRAPH_FILE", true};
  if (has_word(text, "<?xml") || has_word(text, "</") || has_word(text, "/>")) return {"XML", "", true};
  return {};
}

/// Returns the first four lines that are neither empty nor comments.
std::vector<std::string_view> first_lines(std::string_view text) {
  constexpr std::size_t max = 4;
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < max) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (const std::string_view shown = trimmed(line); !shown.empty() && shown.front() != '#') lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool all_numbers(std::string_view line) {
  std::size_t count = 0;
  while (!(line = trimmed(line)).empty()) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    double value = 0;
    const auto [stop, problem] = std::from_chars(line.data(), line.data() + end, value);
    if (problem != std::errc() || stop != line.data() + end) return false;
    line.remove_prefix(end);
    ++count;
  }
  return count > 0;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '"';
  });
}
/// Returns whether the line has the form "key = value" or "key: value". `sign` is '=' or ':'.
bool is_pair(std::string_view line, char sign) {
  const std::size_t at = line.find(sign);
  if (at == std::string_view::npos || !is_name(trimmed(line.substr(0, at)))) return false;
  return sign != ':' || at + 1 == line.size() || line[at + 1] == ' ' || line[at + 1] == '\r';
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(mark) ? mark.size() : 0);
}

bool is_text(std::string_view beginning) {
  return std::none_of(beginning.begin(), beginning.end(), [](char c) {
    return std::iscntrl(static_cast<unsigned char>(c)) != 0 && std::isspace(static_cast<unsigned char>(c)) == 0;
  });
}

FileFormat file_format(std::string_view beginning) {
  beginning = beginning.substr(0, kLookedAt);
  if (!is_text(beginning)) {
    for (const Magic& magic : kMagic)
      if (beginning.starts_with(magic.bytes)) return magic.format;
    return {"binary data", "", true};
  }
  beginning = without_byte_order_mark(beginning);
  const std::vector<std::string_view> lines = first_lines(beginning);
  if (lines.empty()) return {};
  const std::string_view first = trimmed(lines[0]);
  if (first.front() == '<') return markup(beginning);
  if (first.starts_with("[[") ||
      (first.front() == '[' && first.back() == ']' && first.size() > 2 && is_name(first.substr(1, first.size() - 2)) &&
       !all_numbers(first.substr(1, first.size() - 2))))
    return {"TOML", "", false};
  if (first.front() == '{' || first.front() == '[') return {"JSON", "", false};
  if (std::all_of(lines.begin(), lines.end(), all_numbers)) return {"numbers in columns", "", false};
  if (is_pair(first, '=') && !first.ends_with(';')) return {"TOML", "", false};
  const auto is_yaml = [](std::string_view line) {
    return is_pair(trimmed(line), ':') || line.starts_with("- ") || line.starts_with("  ");
  };
  if (first == "---" || std::all_of(lines.begin(), lines.end(), is_yaml)) return {"YAML", "", false};
  const auto commas = [](std::string_view line) { return std::count(line.begin(), line.end(), ','); };
  const bool is_prose = first.find(", ") != std::string_view::npos && commas(first) < 3;
  if (commas(first) > 0 && !is_prose && (lines.size() < 2 || commas(lines[1]) == commas(first)))
    return {"CSV", "", false};
  return {};
}

}  // namespace mltcp
