// `hello OWN-IP` waits and prints its address. On another machine, `hello OWN-IP ADDRESS` sends it a message.
#include <fmt/ranges.h>
#include <mltcp/endpoint/endpoint.h>
#include <mltcp/socket/register_datapath.h>
using namespace mltcp::endpoint;
int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3 || argv[1][0] == '-')
    return fmt::print(stderr, "hello OWN-IP waits, hello OWN-IP ADDRESS sends\n"), 2;
  mltcp::socket::register_datapath();
  Endpoint endpoint({.datapath = {.device = "udp:"}, .address = mltcp::Address::parse(argv[1])});
  std::array<char, 100> text{"hello, you there"};
  OperationHandle operation = 0;
  Code code = Code::ok;
  if (argc > 2) {
    std::vector<std::byte> blob;  // invalid digits become 0; the checksum of the address detects them
    for (std::string hex = argv[2]; !hex.empty(); hex.erase(0, 2))
      blob.push_back(std::byte(std::strtoul(hex.substr(0, 2).c_str(), nullptr, 16)));
    ConnectionHandle peer = 0;
    code = endpoint.connect(blob, {.kind = ConnectionKind::tagged}, peer);
    if (code == Code::ok) code = endpoint.send_tagged(peer, std::as_bytes(std::span(text)).first(16), 1, {}, operation);
  } else {
    fmt::print("{:02x}\n", fmt::join(endpoint.address().bytes(), ""));
    std::fflush(stdout);
    code =
        endpoint.receive_tagged(kAnyConnection, std::as_writable_bytes(std::span(text)), 1, kWholeTag, {}, operation);
  }
  Completion end;
  if (code == Code::ok) code = endpoint.wait(operation, end, mltcp::Nanos::never());
  if (code != Code::ok)
    throw std::runtime_error(endpoint.failure().empty() ? std::string(to_text(code)) : endpoint.failure());
  if (end.code != Code::ok) throw std::runtime_error(to_text(end));
  if (argc == 2) fmt::print("{}\n", std::string_view(text.data(), end.bytes));
} catch (const std::exception& error) {
  return fmt::print(stderr, "hello: {}\n", error.what()), 1;
}
