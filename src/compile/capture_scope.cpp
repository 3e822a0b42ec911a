#include <rushlight/compile.h>

#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "compile/compile.h"
#include "graph/capture.h"

namespace rushlight {
namespace {

// Settings are kept for ever, so there are no two alike.
uint32_t settings_for(const CompileOptions& options) {
  static std::mutex mutex;
  static std::map<std::pair<double, bool>, uint32_t> numbers;
  const double budget = options.activation_memory_budget;
  if (!(budget >= 0 && budget <= 1)) {
    fail(ErrorKind::Runtime, "compile",
         "The valid ranges for memory budget are 0 <= m <= 1. The provided value is ", budget,
         " (activation_memory_budget)");
  }
  std::lock_guard<std::mutex> lock(mutex);
  auto [at, fresh] = numbers.try_emplace({budget, options.fullgraph});
  if (fresh) {
    graph::Settings settings;
    settings.runner = compiler::run;
    settings.name = "native";
    settings.activation_memory_budget = budget;
    settings.fullgraph = options.fullgraph;
    at->second = graph::register_settings(std::move(settings));
  }
  return at->second;
}

}  // namespace

Capture::Capture(const CompileOptions& options)
    : open_(graph::open_capture(settings_for(options))) {}

Capture::~Capture() {
  if (open_) {
    graph::close_capture(true);
  }
}

void Capture::close() {
  if (open_) {
    open_ = false;
    graph::close_capture(false);
  }
}

}  // namespace rushlight
