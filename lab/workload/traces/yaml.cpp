// See yaml.h.
#include "mltcp/lab/workload/traces/yaml.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>
#include <string>

namespace mltcp::workload {
namespace {

class PlainOnly final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw YAML::ParserException(mark, "it has an alias (*NAME) instead of the value");
  }
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    deeper(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    deeper(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void deeper(const YAML::Mark& mark) {
    constexpr int max = 16;
    if (++depth_ > max) throw YAML::ParserException(mark, "it is nested deeply");
  }

  int depth_ = 0;
};

}  // namespace

YAML::Node load_yaml(std::string_view text) {
  const std::string copy(text);
  std::istringstream stream(copy);
  PlainOnly plain;
  YAML::Parser(stream).HandleNextDocument(plain);
  return YAML::Load(copy);
}

}  // namespace mltcp::workload
