#include "runtime/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>

namespace rushlight {
namespace {

constexpr std::string_view kTopics[] = {"plans",  "passes", "graphs", "kernels",
                                        "breaks", "loops",  "bisect"};

template <typename F>
void for_each_topic(std::string_view list, F&& visit) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    visit(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

// Lists are never freed: another thread may be reading the one before.
std::atomic<const std::string*>& asked() {
  static std::atomic<const std::string*> list = [] {
    const char* value = std::getenv("RUSHLIGHT_LOG");
    return new std::string(value == nullptr ? "" : value);
  }();
  return list;
}

}  // namespace

double now_ms() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(time).count();
}

bool is_logged(std::string_view topic) {
  const std::string& list = *asked().load(std::memory_order_acquire);
  bool found = false;
  for_each_topic(list, [&](std::string_view item) { found = found || item == topic; });
  return found;
}

void set_log_topics(std::string_view topics) {
  for_each_topic(topics, [](std::string_view item) {
    if (std::find(std::begin(kTopics), std::end(kTopics), item) == std::end(kTopics)) {
      fail(ErrorKind::Value, "set_log_topics", "there is no topic '", item,
           "': topics are plans, passes, graphs, kernels, breaks, loops and bisect");
    }
  });
  asked().store(new std::string(topics), std::memory_order_release);
}

std::string_view log_topics() {
  return *asked().load(std::memory_order_acquire);
}

}  // namespace rushlight
