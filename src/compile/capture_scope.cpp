#include <rushlight/compile.h>

#include <exception>
#include <map>
#include <mutex>

#include "compile/compile.h"
#include "graph/capture.h"

namespace rushlight {
namespace {

// Settings are kept for ever, so there is one for each budget.
uint32_t settings_for(double budget) {
  static std::mutex mutex;
  static std::map<double, uint32_t> numbers;
  if (!(budget >= 0 && budget <= 1)) {
    fail(ErrorKind::Runtime, "compile",
         "The valid ranges for memory budget are 0 <= m <= 1. The provided value is ", budget,
         " (activation_memory_budget)");
  }
  std::lock_guard<std::mutex> lock(mutex);
  auto [at, fresh] = numbers.try_emplace(budget);
  if (fresh) {
    graph::Settings settings;
    settings.runner = compiler::run;
    settings.name = "native";
    settings.activation_memory_budget = budget;
    at->second = graph::register_settings(std::move(settings));
  }
  return at->second;
}

}  // namespace

Capture::Capture(const CompileOptions& options)
    : open_(graph::open_capture(settings_for(options.activation_memory_budget))) {}

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
