// One peer of a context: its connection, the matching of sends and receives, and the writes of bound buffers.
// protocol.h describes the messages on the connection. The context's lock guards all members that are not constant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "mltcp/endpoint/endpoint.h"
#include "mltcp/plugins/gloo/internal/context.h"
#include "mltcp/plugins/gloo/internal/protocol.h"

namespace gloo::transport::mltcp {

class Buffer;
class Pair;

class Address final : public ::gloo::transport::Address {
 public:
  explicit Address(const PairAddress& address);
  [[nodiscard]] std::string str() const override { return text_; }
  [[nodiscard]] std::vector<char> bytes() const override { return bytes_; }

 private:
  std::vector<char> bytes_;
  std::string text_;
};

/// Returns why a peer was lost, as text for people. People cannot reconnect, but they can look at the peer's log.
std::string cause_of(::mltcp::endpoint::Code code);

/// An endpoint operation that a pair has posted. Op objects are reused.
struct Op {
  enum class Kind : std::uint8_t {
    connect,
    hello,
    control_send,
    control_receive,
    send,
    receive,
    orphan,  ///< a receive whose buffer was destroyed; its message is dropped
    write_send,
    write_receive,
  };
  Kind kind = Kind::send;
  Pair* pair = nullptr;
  UnboundBuffer* unbound = nullptr;
  Buffer* bound = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t slot = 0;
  std::uint64_t id = 0;
  std::uint64_t tag = 0;
  std::uint64_t order = 0;  ///< number of the operation in its buffer's OrderedEnds
  std::size_t place = 0;    ///< index in the list of active operations
  ::mltcp::endpoint::OperationHandle handle = 0;
};

class Pair final : public ::gloo::transport::Pair {
 public:
  Pair(Context& context, int peer);
  ~Pair() override;

  [[nodiscard]] const ::gloo::transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>& bytes) override;
  void close() override;
  /// The endpoint's thread moves the data in synchronous and in asynchronous mode. If both arguments are true, waits of
  /// bound buffers poll instead of sleeping.
  void setSync(bool enable, bool busy_poll) override;
  std::unique_ptr<::gloo::transport::Buffer> createSendBuffer(int slot, void* memory, std::size_t bytes) override;
  std::unique_ptr<::gloo::transport::Buffer> createRecvBuffer(int slot, void* memory, std::size_t bytes) override;
  void send(::gloo::transport::UnboundBuffer* buffer, std::uint64_t tag, std::size_t offset,
            std::size_t bytes) override;
  void recv(::gloo::transport::UnboundBuffer* buffer, std::uint64_t tag, std::size_t offset,
            std::size_t bytes) override;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] Context& context() { return context_; }

  // Call the following functions only with the lock held.

  /// Returns the peer's name for messages, such as "rank 2 (10.0.0.2:62400)".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool failed() const { return !error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] bool polls() const { return polls_; }
  /// Throws IoException if the pair has failed, and EnforceNotMet if the pair was never connected.
  void check_usable() const;
  void start_send(UnboundBuffer& buffer, std::uint64_t slot, std::size_t offset, std::size_t bytes);
  void start_receive(UnboundBuffer& buffer, std::uint64_t slot, std::size_t offset, std::size_t bytes);
  /// Returns the arrival number with which a send became available on `slot`, for comparison with other pairs. Returns
  /// 0 if no send is available.
  [[nodiscard]] std::uint64_t waiting_since(std::uint64_t slot) const;
  void write(Buffer& buffer, std::uint64_t slot, std::byte* data, std::size_t bytes, std::size_t offset);
  /// Continues the writes that waited because no receive buffer existed for them.
  void advance_writes();
  /// Waits until nothing refers to `buffer`.
  void release(Buffer& buffer, Context::Lock& lock);

  void queue(const Record& record, std::span<const std::byte> data = {});
  void flush();
  /// Posts operations for which the endpoint had no room, and waits until they are posted. Only for the program's
  /// threads.
  void settle(Context::Lock& lock);
  enum class Ending : std::uint8_t {
    graceful,  ///< operations in progress may finish
    at_once,
  };
  void fail(const std::string& cause, Ending ending, bool notify_others);
  void begin_close();
  void finish_close(Context::Lock& lock);
  /// Drops queued operations of `buffer` and cancels its posted operations.
  void cancel_of(const UnboundBuffer& buffer);
  [[nodiscard]] bool refers_to(const UnboundBuffer& buffer) const;
  /// Sets `slot` to a slot on which `buffer` has an operation in progress. Returns false if there is no such slot.
  bool awaited_by(const UnboundBuffer& buffer, std::uint64_t& slot) const;
  void abort();

  /// Called when a peer's hello has arrived, with the locks of the device and of the context held. Returns false if the
  /// connection is refused.
  bool adopt(::mltcp::endpoint::ConnectionHandle connection, const Hello& hello);
  /// Called for the event that the connection has ended.
  void on_closed(const ::mltcp::endpoint::Completion& event);

 private:
  struct PendingSend {
    UnboundBuffer* buffer;
    std::byte* data;
    std::size_t bytes;
    std::uint64_t order;
  };
  /// The state of one slot (see protocol.h).
  struct Slot {
    std::deque<PendingSend> sends;      ///< announced sends for which no receive is known
    std::deque<std::uint64_t> granted;  ///< ids of the peer's receives for which there is no send yet
    std::int64_t waiting = 0;
    std::uint64_t since = 0;
    [[nodiscard]] bool empty() const { return sends.empty() && granted.empty() && waiting == 0; }
  };
  using Slots = std::unordered_map<std::uint64_t, Slot>;
  struct Outgoing {
    Buffer* buffer;
    std::byte* data;
    std::size_t bytes;
    std::uint64_t order;
  };
  struct Incoming {
    std::uint64_t id = 0;
    std::uint64_t slot = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    enum class State : std::uint8_t { waits, under_way, done } state = State::waits;
    bool is_inline = false;
    Buffer* buffer = nullptr;
    std::vector<std::byte> data;
  };
  struct Frame {
    alignas(64) std::array<std::byte, kFrameBytes> bytes;
    std::size_t used = 0;
    bool busy = false;  ///< outgoing frame: is being sent; incoming frame: has arrived
  };

  // Operations (defined in pair_ops.cpp).
  Op& take_op(Op::Kind kind);
  void give_op(Op& op);
  void post(Op& op);
  ::mltcp::endpoint::Code try_post(Op& op);
  void pump();
  static void ended(void* context, const ::mltcp::endpoint::Completion& completion) noexcept;
  void on_end(Op& op, const ::mltcp::endpoint::Completion& completion);
  void on_connected(const ::mltcp::endpoint::Completion& completion);
  void on_received(Op& op, const ::mltcp::endpoint::Completion& completion);
  void on_sent(Op& op, const ::mltcp::endpoint::Completion& completion);
  void on_write_received(const Op& op, const ::mltcp::endpoint::Completion& completion);
  void post_control_receive(std::uint64_t number);
  void take_frames();
  void close_if_flushed();

  // Matching (defined in pair.cpp).
  void post_send(const PendingSend& send, std::uint64_t slot, std::uint64_t id);
  Slot& slot(std::uint64_t number);
  void drop_if_empty(std::uint64_t number);
  void count_waiting(std::uint64_t number, int by);
  bool take(const Record& record, std::span<const std::byte> data);
  void on_receive_ready(std::uint64_t number, std::uint64_t id);
  bool on_write(const Record& record, std::span<const std::byte> data);
  void on_write_ready(std::uint64_t id);
  bool start_write(Incoming& write);

  void call(const PairAddress& peer);
  void accept_peer(const PairAddress& peer);
  void wait_until_connected(Context::Lock& lock);
  void open();
  void fail_waiters();

  Context& context_;
  const int rank_;
  const std::uint64_t id_;
  const Address address_;
  std::string peer_text_;

  enum class State : std::uint8_t { fresh, connecting, connected };
  State state_ = State::fresh;
  bool is_connect_called_ = false;  ///< connect() was called
  bool adopted_ = false;            ///< the peer has connected
  bool ended_ = true;               ///< there is no connection, or it has ended
  bool closing_ = false;
  bool close_asked_ = false;
  bool polls_ = false;
  std::uint64_t caller_ = 0;  ///< id of the peer's pair, from its address or its hello
  ::mltcp::endpoint::ConnectionHandle connection_ = 0;
  std::string error_;

  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<Op*> spare_;
  std::vector<Op*> active_;
  std::deque<Op*> backlog_;  ///< active operations that are not posted yet

  Slots slots_;
  std::vector<Slots::node_type> spare_slots_;
  std::uint64_t next_id_ = 1;

  std::vector<Buffer*> buffers_;
  std::map<std::uint64_t, Buffer*> receive_buffers_;
  std::unordered_map<std::uint64_t, Outgoing> outgoing_;
  /// writes in the order in which the peer sent them, which is the order in which they complete
  std::deque<Incoming> incoming_;

  std::vector<std::byte> outbox_;
  bool is_urgent_ = false;  ///< true if part of `outbox_` must be sent at once
  std::array<std::byte, kHelloBytes> hello_{};
  std::unique_ptr<std::array<Frame, kControlFrames>> out_;
  std::unique_ptr<std::array<Frame, kControlFrames>> in_;
  std::uint64_t next_out_ = 0;
  std::uint64_t next_in_ = 0;
};

}  // namespace gloo::transport::mltcp
