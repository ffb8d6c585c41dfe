// The server of a measurement: listens, and measures what the client requests (see perf.h).
#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/host_datapaths.h"
#include "mltcp/lab/experiment/hosts/pending_streams.h"
#include "mltcp/lab/experiment/perf/internal/perf_end.h"
#include "mltcp/lab/experiment/perf/perf.h"

namespace mltcp::experiment {
namespace {

using perf::Json;
using perf::Refused;

constexpr Nanos kLook{100'000'000};
/// Maximum time that a client may stay silent between batches, since other clients wait until this client has finished.
constexpr Nanos kPatience{60'000'000'000};
constexpr Nanos kBatchLimit{600'000'000'000};
/// Maximum time for the client to open its endpoint. Opening takes long if VFIO maps a NIC's memory, page by page.
constexpr Nanos kOpeningPatience{60'000'000'000};

class Session {
 public:
  Session(MessageStream& stream, const PerfPlace& place, const PerfCallbacks& callbacks, const std::string& version)
      : stream_(stream), place_(place), callbacks_(callbacks), version_(version) {}

  /// `first` is the client's first message.
  void run(const std::string& first) {
    greet(perf::message_of(first));
    for (;;) {
      const Json message = receive(kPatience);
      if (message.contains("bye")) return;
      if (message.contains("connect")) {
        end_->accept(Nanos(30'000'000'000), [] {});
        perf::send(stream_, {{"connected", end_->connections()}});
        continue;
      }
      measure(perf::batch_of(message));
    }
  }

 private:
  Json receive(Nanos limit) {
    return perf::receive(stream_, limit, callbacks_.interrupted, [&] {
      if (end_ != nullptr) end_->drive();
    });
  }

  void greet(Json hello) {
    if (hello.contains("opening")) hello = receive(kOpeningPatience);
    if (const std::string protocol = perf::text_of(hello, "hello"); protocol != perf::kProtocol)
      throw Refused(fmt::format("the client uses protocol {}, but the server uses {}; use the same build on both",
                                protocol, perf::kProtocol));
    const std::string algorithm = perf::text_of(hello, "cc");
    // A client must not make the server load a shared object.
    if (cc::names_a_library(algorithm))
      throw Refused(
          fmt::format("congestion control {}: the server accepts only algorithms of its build; give the name of one",
                      in_quotes(algorithm)));
    const auto mine = [](bool authenticates) {
      return authenticates ? "authenticates only (--authenticate, MLTCP_AUTHENTICATE)" : "encrypts";
    };
    const bool theirs = hello.contains("authenticate") && hello["authenticate"] == true;
    const bool ours = place_.protection == security::Protection::authenticate;
    if (place_.key != nullptr && theirs != ours)
      throw Refused(fmt::format("the client {}, but the server {}; start both with --authenticate, or both without",
                                mine(theirs), mine(ours)));
    end_ = std::make_unique<perf::End>(place_, perf::own_ip(stream_.file()), algorithm);
    perf::send(
        stream_,
        {{"address", perf::to_hex(end_->address().bytes())}, {"device", end_->description()}, {"version", version_}});
  }

  void measure(const perf::Batch& batch) {
    if (end_->connections() == 0) throw Refused("there is no connection; use the same build on both");
    end_->reserve(batch.bytes);
    end_->prepare(batch, false);
    perf::send(stream_, {{"ready", true}});
    const perf::Outcome outcome = end_->run(kBatchLimit, Nanos(), [&] {
      // The client sends nothing during a batch; receive() throws if the stream has ended.
      if (const auto early = stream_.receive())
        throw Refused("the client did not wait for the end of a batch; use the same build on both");
      if (const std::string why = callbacks_.interrupted(); !why.empty()) throw RunError(why);
    });
    perf::send(stream_, {{"done", outcome.time.count}});
  }

  MessageStream& stream_;
  const PerfPlace& place_;
  const PerfCallbacks& callbacks_;
  const std::string& version_;
  std::unique_ptr<perf::End> end_;
};

/// Serves one client. Returns the reason if this fails, otherwise an empty text.
std::string serve_one(MessageStream& stream, const std::string& first, const PerfPlace& place,
                      const PerfCallbacks& callbacks, const std::string& version) {
  std::string why;
  std::string public_reason;  // sent to the client in place of `why`
  try {
    Session(stream, place, callbacks, version).run(first);
    return {};
  } catch (const StreamError& error) {
    return "the client " + perf::why_gone(stream, error);
  } catch (const Refused& refusal) {
    why = refusal.what();
  } catch (const std::exception& error) {
    why = error.what();
    // A client must not learn paths of this machine.
    if (why.find('/') != std::string::npos) public_reason = "it cannot open its endpoint; read its output";
  }
  try {
    perf::send(stream, {{"error", public_reason.empty() ? why : public_reason}});
  } catch (const StreamError&) {
    // The client has already closed the connection.
  }
  return why;
}

}  // namespace

void serve_perf(const std::string& address, const PerfPlace& place, bool once, const PerfCallbacks& callbacks,
                const std::string& version) {
  register_datapaths_once();
  // The datapath is opened anew for each client. Opening it once here reports its problems before the first client
  // connects.
  try_out(place);
  StreamListener listener(parse_stream_address(address), perf::kServerRole, place.key);
  callbacks.tell(
      fmt::format("listening on {}{}", to_text(listener.address()),
                  place.key == nullptr ? "" : fmt::format(", for clients with key {:016x}", place.key->id())));
  PendingStreams pending(listener, "client", callbacks.tell);
  // Without a key anybody can connect, so the number of lines is limited.
  const auto tell = [&](const std::string& line) {
    if (place.key == nullptr)
      pending.tell(line);
    else
      callbacks.tell(line);
  };
  for (;;) {
    const auto first = pending.next();
    if (!first) {
      if (!callbacks.interrupted().empty()) return;
      std::vector<int> files;
      pending.add_files(files);
      wait_for(files, kLook);
      continue;
    }
    MessageStream& stream = *first->stream;
    tell(fmt::format("client {}", stream.peer().empty() ? "on this machine" : stream.peer()));
    const std::string why = serve_one(stream, first->message, place, callbacks, version);
    if (!callbacks.interrupted().empty()) return;
    if (once && !why.empty()) throw RunError(one_line(why));
    tell(why.empty() ? "done" : "failed: " + one_line(why));
    if (once) return;
  }
}

}  // namespace mltcp::experiment
