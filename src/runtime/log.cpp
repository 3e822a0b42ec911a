#include "runtime/log.h"

#include <chrono>
#include <cstdlib>
#include <string>

namespace rushlight {

double now_ms() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(time).count();
}

bool is_logged(std::string_view topic) {
  static const std::string asked = [] {
    const char* value = std::getenv("RUSHLIGHT_LOG");
    return value == nullptr ? std::string() : std::string(value);
  }();
  std::string_view rest = asked;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == topic) {
      return true;
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

}  // namespace rushlight
