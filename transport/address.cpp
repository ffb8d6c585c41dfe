// Reads and writes addresses as text (see address.h).
#include "mltcp/transport/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

/// Returns all of `text` as a decimal number; empty if it is not a number from `min` to `max`.
std::optional<std::uint32_t> number_in(std::string_view text, std::uint32_t min, std::uint32_t max) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || at != end || number < min || number > max) return std::nullopt;
  return number;
}

std::optional<Address> ip_in(std::string_view text) {
  const std::string ip(text);
  if (ip.find('\0') != std::string::npos) return std::nullopt;
  Address address;
  in_addr v4{};
  if (inet_pton(AF_INET, ip.c_str(), &v4) == 1) return Address::v4(ntohl(v4.s_addr), 0);
  if (inet_pton(AF_INET6, ip.c_str(), address.ip.data()) == 1) return address;
  return std::nullopt;
}

}  // namespace

Address Address::parse(std::string_view text, std::uint16_t port) {
  std::string_view ip = text;
  std::string_view number;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos)
      throw InputError(fmt::format("{}: the bracket is not closed; write [fd00::1]:62400", in_quotes(text)));
    ip = text.substr(1, bracket - 1);
    has_port = bracket + 1 < text.size();
    number = text.substr(bracket + 1);
    if (has_port && !number.starts_with(':'))
      throw InputError(fmt::format("{}: no port follows the bracket; write [fd00::1]:62400", in_quotes(text)));
    if (has_port) number.remove_prefix(1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    ip = text.substr(0, text.find(':'));
    number = text.substr(text.find(':') + 1);
    has_port = true;
  }
  auto address = ip_in(ip);
  const bool bracketed_v4 = address && text.starts_with('[') && ip.find(':') == std::string_view::npos;
  if (!address || bracketed_v4)
    throw InputError(fmt::format("{}: no IP address; write one such as 10.0.0.1 or fd00::1{}", in_quotes(text),
                                 has_port ? ", with a port such as 10.0.0.1:62400 or [fd00::1]:62400" : ""));
  address->port = port;
  if (!has_port) return *address;
  const auto written = number_in(number, 0, 65535);
  if (!written) throw InputError(fmt::format("{}: {} is no port; give 0 to 65535", in_quotes(text), in_quotes(number)));
  address->port = static_cast<std::uint16_t>(*written);
  return *address;
}

AddressPrefix AddressPrefix::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = ip_in(text.substr(0, slash));
  if (!address)
    throw InputError(fmt::format("{}: no IP address; write one such as 10.0.0.1/24 or fd00::1/64", in_quotes(text)));
  const std::uint32_t max = address->is_v4() ? 32 : 128;
  const auto bits = slash == std::string_view::npos ? std::nullopt : number_in(text.substr(slash + 1), 1, max);
  if (!bits)
    throw InputError(fmt::format(
        "{}: no prefix length; write the number of the address's bits that name the network, 1 to {}, such as {}",
        in_quotes(text), max, address->is_v4() ? "10.0.0.1/24" : "fd00::1/64"));
  return {*address, *bits};
}

std::string to_text(const Address& address) {
  const auto& ip = address.ip;
  if (address.is_v4()) return fmt::format("{}.{}.{}.{}:{}", ip[12], ip[13], ip[14], ip[15], address.port);
  // The form of RFC 5952, except that runs of zeros are not shortened.
  std::string text = "[";
  for (std::size_t i = 0; i < 16; i += 2) text += fmt::format("{}{:x}", i == 0 ? "" : ":", ip[i] << 8 | ip[i + 1]);
  return text + fmt::format("]:{}", address.port);
}

}  // namespace mltcp
