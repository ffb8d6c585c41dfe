// Names of ports; see port_name.h.
#include "mltcp/dpdk/port_name.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::dpdk {
namespace {

using Kind = PortName::Kind;

struct KindWord {
  std::string_view word;
  Kind kind;
};
constexpr std::array<KindWord, 6> kKinds{{{"af_packet", Kind::af_packet},
                                          {"af_xdp", Kind::af_xdp},
                                          {"memif", Kind::memif},
                                          {"tap", Kind::tap},
                                          {"ring", Kind::ring},
                                          {"pci", Kind::pci}}};
/// Kinds of host datapaths that carry no Ethernet frames. They are no DPDK ports, and a switch cannot use them.
constexpr std::array<std::string_view, 2> kWithoutFrames{"udp", "verbs"};
/// Maximum length of a DPDK device name, from which the driver's prefix must be subtracted.
constexpr std::size_t kLongestName = 32;

[[noreturn]] void fail(std::string_view text, const std::string& problem, std::string_view cure) {
  throw InputError(fmt::format("port {}: {}; write {}", in_quotes(text), problem, cure));
}

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Returns a PCI address such as "3b:00.0" or "0000:3b:00.0" in lower case, with its domain. Empty if `text` is no PCI
/// address.
std::optional<std::string> pci_address(std::string_view text) {
  std::string full(std::count(text.begin(), text.end(), ':') == 1 ? "0000:" : "");
  for (const char c : text) full.push_back(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
  constexpr std::string_view kPattern = "xxxx:xx:xx.7";
  if (full.size() != kPattern.size()) return std::nullopt;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (kPattern[i] == 'x' ? !hex : (kPattern[i] == '7' ? c < '0' || c > '7' : c != kPattern[i])) return std::nullopt;
  }
  return full;
}

/// Throws InputError unless `name`, which becomes part of DPDK's device name, is valid.
void check_name(std::string_view text, std::string_view name, std::size_t longest, std::string_view what,
                std::string_view cure) {
  if (name.empty()) fail(text, fmt::format("it names no {}", what), cure);
  if (name.size() > longest) {
    fail(text, fmt::format("the {} has {} characters, more than {}", what, name.size(), longest), cure);
  }
  for (const char c : name) {
    if (!is_alnum(c) && std::string_view("._-@").find(c) == std::string_view::npos) {
      fail(text, fmt::format("no {} may contain the character {}", what, in_quotes(std::string_view(&c, 1))), cure);
    }
  }
}

void parse_memif(std::string_view text, std::string_view rest, PortName& name) {
  constexpr std::string_view kCure = "memif:/run/mltcp.sock,role=server,id=0 and role=client at the other end";
  std::size_t comma = rest.find(',');
  name.target = rest.substr(0, comma);
  if (name.target.empty() || name.target.front() != '/') {
    fail(text, "its socket is no path that begins with /", kCure);
  }
  constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;
  if (name.target.size() > kLongestPath) {
    fail(text,
         fmt::format("the path has {} characters, and a socket's has {} at most", name.target.size(), kLongestPath),
         "a shorter one, such as memif:/run/mltcp.sock");
  }
  while (comma != std::string_view::npos) {
    rest.remove_prefix(comma + 1);
    comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    if (item == "role=server" || item == "role=client") {
      name.server = item == "role=server";
      continue;
    }
    const std::string_view number = item.substr(std::min<std::size_t>(item.size(), 3));
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.id);
    if (!item.starts_with("id=") || number.empty() || error != std::errc() || end != number.data() + number.size()) {
      fail(text, fmt::format("{} is neither role=server, role=client nor id=NUMBER", in_quotes(item)), kCure);
    }
  }
}

void parse_ring(std::string_view text, std::string_view rest, PortName& name) {
  constexpr std::string_view kCure = "for example ring:loop, or ring:left,to=right and ring:right,to=left";
  constexpr std::string_view kTo = "to=";
  const std::size_t comma = rest.find(',');
  name.target = rest.substr(0, comma);
  check_name(text, name.target, 15, "name", kCure);
  if (comma == std::string_view::npos) return;
  const std::string_view item = rest.substr(comma + 1);
  if (!item.starts_with(kTo)) fail(text, fmt::format("{} is not to=NAME", in_quotes(item)), kCure);
  name.arguments = item.substr(kTo.size());
  check_name(text, name.arguments, 15, "name", kCure);
}

}  // namespace

std::string_view to_text(Kind kind) {
  for (const KindWord& entry : kKinds) {
    if (entry.kind == kind) return entry.word;
  }
  return "driver";
}

bool is_port_kind(std::string_view word) {
  return std::any_of(kKinds.begin(), kKinds.end(), [&](const KindWord& entry) { return entry.word == word; });
}

PortName parse_port_name(std::string_view text) {
  PortName name;
  if (const auto address = pci_address(text)) {
    name.kind = Kind::pci;
    name.target = *address;
    return name;
  }
  if (text.starts_with("net_")) {
    const std::size_t comma = text.find(',');
    name.target = text.substr(0, comma);
    if (comma != std::string_view::npos) name.arguments = text.substr(comma + 1);
    check_name(text, name.target, 2 * kLongestName - 1, "device", kPortForms);
    for (const char c : name.arguments) {
      if (c <= ' ' || c > '~') fail(text, "a name for DPDK has no spaces and no special characters", kPortForms);
    }
    return name;
  }
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const auto* const entry =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const KindWord& candidate) { return candidate.word == word; });
  if (std::find(kWithoutFrames.begin(), kWithoutFrames.end(), word) != kWithoutFrames.end())
    fail(text, fmt::format("{} carries messages between hosts, but Ethernet frames are needed here", in_quotes(word)),
         kPortForms);
  if (entry == kKinds.end() || colon == std::string_view::npos) {
    fail(text, text.empty() ? "it is empty" : fmt::format("{} is no kind of port", in_quotes(word)), kPortForms);
  }
  name.kind = entry->kind;
  const std::string_view rest = text.substr(colon + 1);
  const std::string example = fmt::format("{}:{}", word, name.kind == Kind::tap ? "mltcp0" : "eth0");
  switch (name.kind) {
    case Kind::memif:
      parse_memif(text, rest, name);
      break;
    case Kind::pci: {
      const auto address = pci_address(rest);
      if (!address) fail(text, fmt::format("{} is no PCI address", in_quotes(rest)), "for example pci:0000:3b:00.0");
      name.target = *address;
      break;
    }
    case Kind::ring:
      parse_ring(text, rest, name);
      break;
    default:
      check_name(text, rest, IFNAMSIZ - 1, "interface", "for example " + example);
      name.target = rest;
      break;
  }
  return name;
}

}  // namespace mltcp::dpdk
