#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/parallel.h"

namespace rushlight {
namespace {

std::optional<double> quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) {
    return std::nullopt;
  }
  return std::strtod(quota.c_str(), nullptr) / period;
}

std::optional<double> quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  std::string name;
  while (std::getline(names, name, ',')) {
    if (name == "cpu") {
      return true;
    }
  }
  return false;
}

// A group is limited by its own quota and by those of all its ancestors.
template <typename Read>
double smallest_quota(const std::string& mount, std::string group, double limit, Read read) {
  for (;;) {
    if (const auto quota = read(mount + group)) {
      limit = std::min(limit, *quota);
    }
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) {
      return limit;
    }
    group.resize(slash);
  }
}

double cgroup_quota(double limit) {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      limit = smallest_quota("/sys/fs/cgroup", group, limit, quota_v2);
    } else if (lists_cpu(controllers)) {
      limit = smallest_quota("/sys/fs/cgroup/cpu", group, limit, quota_v1);
      limit = smallest_quota("/sys/fs/cgroup/cpu,cpuacct", group, limit, quota_v1);
    }
  }
  return limit;
}

int affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return CPU_COUNT(&set);
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int available_cores() {
  static const int cores = [] {
    const int visible = std::max(1, affinity_count());
    // Rounded down: a loop whose threads together exceed the quota is stopped at its barrier.
    return std::max(1, static_cast<int>(cgroup_quota(visible)));
  }();
  return cores;
}

}  // namespace rushlight
