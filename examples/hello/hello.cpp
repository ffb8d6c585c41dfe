// `hello OWN-IP` waits and prints its address, `hello OWN-IP ADDRESS` sends it a message from another machine.
#include <fmt/ranges.h>
#include <mltcp/endpoint/endpoint.h>
#include <mltcp/socket/register_datapath.h>
int main(int argc, char** argv) {
  using namespace mltcp::endpoint;
  if (argc < 2) return fmt::print(stderr, "hello OWN-IP waits, hello OWN-IP ADDRESS sends\n"), 2;
  mltcp::socket::register_datapath();
  Endpoint endpoint({.datapath = {.device = "udp:"}, .address = mltcp::Address::parse(argv[1])});
  std::array<char, 100> text{"hello, you there"};
  OperationHandle operation = 0;
  Code code = Code::ok;
  if (argc > 2) {
    std::vector<std::byte> blob;
    for (std::string hex = argv[2]; hex.size() > 1; hex.erase(0, 2))
      blob.push_back(std::byte(std::stoi(hex.substr(0, 2), nullptr, 16)));
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
  if (code == Code::ok && (code = endpoint.wait(operation, end, mltcp::Nanos::never())) == Code::ok) code = end.code;
  fmt::print("{}\n", code == Code::ok ? std::string_view(text.data(), end.bytes) : to_text(code));
  return static_cast<int>(code);
}
