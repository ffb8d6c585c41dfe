// The balancers (see balancers.h).
#include "mltcp/transport/balancers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/random.h"

namespace mltcp {
namespace {

/// Always the first value.
class One final : public Balancer {
 public:
  One(std::uint32_t /*values*/, std::uint64_t /*seed*/) {}
  std::uint8_t next(std::span<PathValue> /*values*/, bool /*begins_burst*/) override { return 0; }
  void on_acked(std::span<PathValue> /*values*/, std::uint8_t /*path*/, bool /*is_marked*/) override {}
  void on_lost(std::span<PathValue> /*values*/, std::uint8_t /*path*/) override {}
};

/// All values in turn. Each round has another order, so that connections do not stay in step.
class Turn {
 public:
  Turn(std::uint32_t values, std::uint64_t seed) : random_(seed), values_(values) {
    order_ = draw();
    at_ = draw();
  }
  std::uint8_t next() {
    if (++at_ >= values_) {
      at_ = 0;
      order_ = draw();
    }
    return static_cast<std::uint8_t>((at_ + order_) % values_);
  }
  std::uint32_t draw() { return static_cast<std::uint32_t>(random_.below(values_)); }

 private:
  Random random_;
  std::uint32_t values_;
  std::uint32_t at_ = 0;
  std::uint32_t order_ = 0;
};

class Spray final : public Balancer {
 public:
  Spray(std::uint32_t values, std::uint64_t seed) : turn_(values, seed) {}
  std::uint8_t next(std::span<PathValue> /*values*/, bool /*begins_burst*/) override { return turn_.next(); }
  void on_acked(std::span<PathValue> /*values*/, std::uint8_t /*path*/, bool /*is_marked*/) override {}
  void on_lost(std::span<PathValue> /*values*/, std::uint8_t /*path*/) override {}

 private:
  Turn turn_;
};

/// Skips values with a penalty, which each skip reduces. The penalty grows with each mark and shrinks without marks.
/// After several marks it doubles, so that a value whose path is slower than the others is hardly used.
class Bitmap final : public Balancer {
 public:
  Bitmap(std::uint32_t values, std::uint64_t seed) : turn_(values, seed) {}
  std::uint8_t next(std::span<PathValue> values, bool /*begins_burst*/) override {
    std::uint8_t path = turn_.next();
    for (std::size_t i = 1; i < values.size() && values[path].penalty > 0; ++i) {
      --values[path].penalty;
      path = turn_.next();
    }
    return path;
  }
  void on_acked(std::span<PathValue> values, std::uint8_t path, bool is_marked) override {
    if (is_marked)
      punish(values[path], kMark);
    else
      values[path].last_penalty /= 2;
  }
  void on_lost(std::span<PathValue> values, std::uint8_t path) override { punish(values[path], kLoss); }

 private:
  static constexpr std::uint8_t kMark = 1;
  static constexpr std::uint8_t kLoss = 4;
  static constexpr std::uint8_t kMaxPenalty = 63;
  static constexpr int kDoubling = 8;  ///< penalty from which on each mark doubles it
  static void punish(PathValue& value, std::uint8_t by) {
    const int last = value.last_penalty;
    value.penalty = value.last_penalty =
        static_cast<std::uint8_t>(std::min(std::max(last + by, last >= kDoubling ? last * 2 : 0), int{kMaxPenalty}));
  }

  Turn turn_;
};

/// Sends with the values whose packets arrived without a mark, oldest first. `Fallback` chooses if there is none.
template <typename Fallback>
class Recycling final : public Balancer {
 public:
  Recycling(std::uint32_t values, std::uint64_t seed) : fallback_(values, seed) {}

  std::uint8_t next(std::span<PathValue> values, bool begins_burst) override {
    if (fresh_ > 0) return good_[(end_ - fresh_--) % kGood];
    if (frozen_ > 0 && known_ > 0) {
      --frozen_;
      return good_[++reused_ % known_];
    }
    return fallback_.next(values, begins_burst);
  }
  void on_acked(std::span<PathValue> values, std::uint8_t path, bool is_marked) override {
    fallback_.on_acked(values, path, is_marked);
    if (is_marked) return;
    good_[end_++ % kGood] = path;
    fresh_ = std::min(fresh_ + 1, kGood);
    known_ = std::min(known_ + 1, kGood);
  }
  void on_lost(std::span<PathValue> values, std::uint8_t path) override {
    fallback_.on_lost(values, path);
    frozen_ = kFrozen;
  }

 private:
  static constexpr std::uint32_t kGood = 8;     ///< values remembered
  static constexpr std::uint32_t kFrozen = 64;  ///< packets for which only known values are used after a loss

  Fallback fallback_;
  std::array<std::uint8_t, kGood> good_{};
  std::uint32_t end_ = 0;    ///< values ever stored; the next one is stored at this position modulo kGood
  std::uint32_t fresh_ = 0;  ///< stored values that have not been used yet
  std::uint32_t known_ = 0;  ///< stored values
  std::uint32_t reused_ = 0;
  std::uint32_t frozen_ = 0;  ///< packets until unknown values are used again
};

/// Keeps one value for a burst. The next burst gets another value if packets of this one were marked or lost.
class Flowlet final : public Balancer {
 public:
  Flowlet(std::uint32_t values, std::uint64_t seed) : turn_(values, seed) { path_ = turn_.next(); }
  std::uint8_t next(std::span<PathValue> /*values*/, bool begins_burst) override {
    if (begins_burst && bad_ > good_) path_ = turn_.next();
    if (begins_burst) bad_ = good_ = 0;
    return path_;
  }
  void on_acked(std::span<PathValue> /*values*/, std::uint8_t path, bool is_marked) override {
    if (path == path_) ++(is_marked ? bad_ : good_);
  }
  void on_lost(std::span<PathValue> /*values*/, std::uint8_t path) override {
    if (path == path_) ++bad_;
  }

 private:
  Turn turn_;
  std::uint8_t path_;
  std::uint32_t bad_ = 0;
  std::uint32_t good_ = 0;
};

template <typename T>
std::unique_ptr<Balancer> make(std::uint32_t values, std::uint64_t seed) {
  return std::make_unique<T>(values, seed);
}

constexpr std::array kBalancers{
    BalancerTable{"one", "one path for all packets", make<One>},
    BalancerTable{"spray", "all paths in turn", make<Spray>},
    BalancerTable{"reps", "recycles paths without congestion marks", make<Recycling<Spray>>},
    BalancerTable{"bitmap", "all paths in turn, leaves out paths with marks or losses for some turns", make<Bitmap>},
    BalancerTable{"mixed", "as reps, and as bitmap if no path is to be recycled", make<Recycling<Bitmap>>},
    BalancerTable{"flowlet", "one path for a burst; another one for the next if it was congested", make<Flowlet>},
};

}  // namespace

std::span<const BalancerTable> balancers() { return kBalancers; }

const BalancerTable& find_balancer(std::string_view name) {
  std::vector<std::string> known;
  for (const BalancerTable& table : kBalancers) {
    if (table.name == name) return table;
    known.emplace_back(table.name);
  }
  const auto meant = nearest(name, known);
  throw InputError(fmt::format(
      "there is no balancer \"{}\"; {}", name,
      meant ? fmt::format("did you mean \"{}\"?", *meant) : fmt::format("write one of {}", fmt::join(known, ", "))));
}

}  // namespace mltcp
