#include "kernels/fft_plan.h"

#include <cmath>
#include <cstdlib>
#include <iterator>
#include <list>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>

#include "kernels/scratch.h"

namespace rushlight::kernels {
namespace {

// exp(-2 pi i k / n), by angles below pi / 4, which sine and cosine round best.
std::pair<double, double> unit_root(int64_t k, int64_t n) {
  k %= n;
  const bool below = 2 * k > n;  // the real axis, before the sign
  k = below ? n - k : k;
  const bool left = 4 * k > n;
  const int64_t twice = left ? n - 2 * k : 2 * k;  // of the angle in units of 2 pi / n
  const bool steep = 4 * twice > n;
  const double units = steep ? static_cast<double>(n - 2 * twice) / 2 : static_cast<double>(twice);
  const double angle = std::numbers::pi * units / static_cast<double>(n);
  const double across = steep ? std::sin(angle) : std::cos(angle);
  const double up = steep ? std::cos(angle) : std::sin(angle);
  return {left ? -across : across, below ? up : -up};
}

template <typename T>
void push_root(std::vector<T>& table, int64_t k, int64_t n) {
  const auto [re, im] = unit_root(k, n);
  table.push_back(static_cast<T>(re));
  table.push_back(static_cast<T>(im));
}

// How long a stage takes, about, with the time to move an element as unit.
struct RadixCost {
  int radix;
  double cost;
};
constexpr RadixCost kRadixCosts[] = {{16, 2.5}, {15, 2.8}, {13, 3.6}, {12, 2.5}, {11, 3.2},
                                     {10, 2.4}, {9, 2.3},  {8, 2.0},  {7, 2.3},  {6, 2.0},
                                     {5, 1.9},  {4, 1.6},  {3, 1.6},  {2, 1.4}};

// The cheapest stages for n, of radices from `first` on in that list; none where all cost `bound`
// or more.
std::optional<double> cheapest(int64_t n, size_t first, double bound, std::vector<int>& found) {
  if (n == 1) {
    found.clear();
    return 0;
  }
  std::optional<double> best;
  for (size_t i = first; i < std::size(kRadixCosts); ++i) {
    const auto [radix, cost] = kRadixCosts[i];
    if (n % radix != 0 || cost >= bound) {
      continue;
    }
    std::vector<int> rest;
    const std::optional<double> others = cheapest(n / radix, i, bound - cost, rest);
    if (others && cost + *others < bound) {
      bound = cost + *others;
      best = bound;
      found = std::move(rest);
      found.push_back(radix);
    }
  }
  return best;
}

// The radices of the stages of a smooth length, in order: the last needs no factors.
std::vector<int> radices_of(int64_t n) {
  static_assert(kFftMaxRadix == 31);
  std::vector<int> large;
  for (int prime : {17, 19, 23, 29, 31}) {
    for (; n % prime == 0; n /= prime) {
      large.push_back(prime);
    }
  }
  std::vector<int> found;
  cheapest(n, 0, 1e9, found);
  large.insert(large.end(), found.begin(), found.end());
  return large;
}

bool is_prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) {
      return false;
    }
  }
  return n > 1;
}

int64_t power_of(int64_t base, int64_t exponent, int64_t modulus) {
  int64_t result = 1;
  for (; exponent > 0; exponent /= 2) {
    result = exponent % 2 != 0 ? result * base % modulus : result;
    base = base * base % modulus;
  }
  return result;
}

// A number whose powers are all of 1 ... p - 1, p being prime: no power (p - 1) / prime of it is 1.
int64_t primitive_root(int64_t p) {
  for (int64_t g = 2;; ++g) {
    bool all = true;
    int64_t rest = p - 1;
    for (int64_t prime = 2; rest > 1 && all; ++prime) {
      if (rest % prime != 0) {
        continue;
      }
      all = power_of(g, (p - 1) / prime, p) != 1;
      while (rest % prime == 0) {
        rest /= prime;
      }
    }
    if (all) {
      return g;
    }
  }
}

// The least smooth number from `least` on; of few stages: 2, 3 and 5 alone.
int64_t friendly_length(int64_t least) {
  int64_t best = 1;
  while (best < least) {
    best *= 2;
  }
  for (int64_t fives = 1; fives <= 25; fives *= 5) {
    for (int64_t threes = fives; threes <= 9 * fives && threes < best; threes *= 3) {
      int64_t n = threes;
      while (n < least) {
        n *= 2;
      }
      best = n < best ? n : best;
    }
  }
  return best;
}

template <typename T>
int64_t bytes_of(const std::vector<T>& list) {
  return static_cast<int64_t>(list.size() * sizeof(T));
}

}  // namespace

bool fft_is_smooth(int64_t n) {
  for (int prime = 2; prime <= kFftMaxRadix; ++prime) {
    while (n % prime == 0) {
      n /= prime;
    }
  }
  return n == 1;
}

template <typename T>
FftPlan<T>::FftPlan(int64_t n) : length(n), room(n) {
  if (fft_is_smooth(n)) {
    make_stages();
  } else if (n <= INT32_MAX && is_prime(n) && fft_is_smooth(n - 1)) {
    make_powers();
  } else {
    make_chirp();
  }
}

template <typename T>
void FftPlan<T>::make_stages() {
  std::vector<size_t> starts;
  int64_t left = length;
  int64_t done = 1;
  for (int radix : radices_of(length)) {
    const int64_t m = left / radix;
    starts.push_back(tables.size());
    for (int k = 0; k < radix; ++k) {
      push_root(tables, k, radix);
    }
    for (int64_t p = 1; p < m; ++p) {
      for (int64_t j = 1; j < radix; ++j) {
        push_root(tables, p * j, left);
      }
    }
    stages.push_back({radix, m, done, nullptr, nullptr});
    done *= radix;
    left = m;
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    stages[i].roots = tables.data() + starts[i];
    stages[i].twiddles = stages[i].roots + 2 * stages[i].radix;
  }
}

template <typename T>
void FftPlan<T>::make_chirp() {
  room = friendly_length(2 * length - 1);
  convolution = fft_cached<FftPlan<T>>(room);
  std::vector<double> kernel(static_cast<size_t>(2 * room), 0.0);
  for (int64_t k = 0; k < length; ++k) {
    const auto square = static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k);
    const auto turns = static_cast<int64_t>(square % static_cast<unsigned __int128>(2 * length));
    const auto [re, im] = unit_root(turns, 2 * length);
    chirp.push_back(static_cast<T>(re));
    chirp.push_back(static_cast<T>(im));
    chirp_back.push_back(static_cast<T>(re));
    chirp_back.push_back(static_cast<T>(-im));
    for (int64_t at : {k, (room - k) % room}) {
      kernel[static_cast<size_t>(2 * at)] = re / static_cast<double>(room);
      kernel[static_cast<size_t>(2 * at + 1)] = -im / static_cast<double>(room);
    }
  }
  make_filter(std::move(kernel));
}

template <typename T>
void FftPlan<T>::make_powers() {
  const int64_t count = length - 1;
  convolution = fft_cached<FftPlan<T>>(count);
  const int64_t g = primitive_root(length);
  for (int64_t q = 0, power = 1; q < count; ++q, power = power * g % length) {
    powers.push_back(static_cast<int32_t>(power));
  }
  std::vector<double> kernel;
  for (int64_t q = 0; q < count; ++q) {
    const auto [re, im] = unit_root(powers[static_cast<size_t>((count - q) % count)], length);
    kernel.push_back(re / static_cast<double>(count));
    kernel.push_back(im / static_cast<double>(count));
  }
  make_filter(std::move(kernel));
}

// Transforms the kernel in one lane of a group of doubles, whatever T is.
template <typename T>
void FftPlan<T>::make_filter(std::vector<double> kernel) {
  const FftEngine<double>& engine = fft_engine<double>();
  const int64_t n = convolution->length;
  const auto plan = fft_cached<FftPlan<double>>(n);
  Scratch memory;
  double* a = memory.get<double>(4 * n * engine.width);
  engine.load(a, {{kernel.data()}, 2, 1, 1}, n, false);
  const double* result = engine.stages(plan->stages.data(), static_cast<int>(plan->stages.size()),
                                       a, a + 2 * n * engine.width);
  engine.store(result, {{kernel.data()}, 2, 1, 1}, n, false, 1.0);
  filter.assign(kernel.begin(), kernel.end());
}

template <typename T>
int64_t FftPlan<T>::bytes() const {
  return bytes_of(tables) + bytes_of(chirp) + bytes_of(chirp_back) + bytes_of(filter) +
         bytes_of(powers);
}

template <typename T>
FftSplit<T>::FftSplit(int64_t n) {
  if (!fft_is_smooth(n)) {
    return;
  }
  const int width = fft_engine<T>().width;
  const auto filled = [&](int64_t count) {
    const int64_t groups = (count + width - 1) / width;
    return static_cast<double>(groups * width) / static_cast<double>(count);
  };
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d != 0) {
      continue;
    }
    for (int64_t r : {d, n / d}) {
      // A transform's part of the work goes with its stages.
      const double first = std::log2(static_cast<double>(r));
      const double second = std::log2(static_cast<double>(n / r));
      const double now = (first * filled(n / r) + second * filled(r)) / (first + second) *
                         (1 + 0.02 * std::abs(first - second));
      if (rows == 0 || now < cost) {
        rows = r;
        cost = now;
      }
    }
  }
  if (rows == 0) {
    return;
  }
  columns = n / rows;
  of_columns = fft_cached<FftPlan<T>>(rows);
  of_rows = fft_cached<FftPlan<T>>(columns);
  for (int64_t first = 0; first < columns; first += width) {
    for (int64_t k = 0; k < rows; ++k) {
      push_root(each, k * first, n);
    }
  }
  for (int64_t k = 0; k < rows; ++k) {
    std::vector<T> lane;
    for (int64_t l = 0; l < width; ++l) {
      push_root(lane, k * l, n);
    }
    for (size_t part = 0; part < 2; ++part) {
      for (size_t l = part; l < lane.size(); l += 2) {
        within.push_back(lane[l]);
      }
    }
  }
}

template <typename T>
int64_t FftSplit<T>::bytes() const {
  return bytes_of(each) + bytes_of(within);
}

template <typename T>
FftRoots<T>::FftRoots(int64_t n) {
  for (int64_t k = 0; 4 * k <= n; ++k) {
    push_root(values, k, n);
  }
}

namespace {

constexpr int64_t kCacheBytes = int64_t{32} << 20;  // of each kind

// Those used last, newest first.
template <typename Made>
struct Cache {
  struct Item {
    int64_t n;
    std::shared_ptr<const Made> made;
  };
  std::mutex lock;
  std::list<Item> items;
  int64_t bytes = 0;

  std::shared_ptr<const Made> find(int64_t n) {
    const std::lock_guard guard(lock);
    for (auto item = items.begin(); item != items.end(); ++item) {
      if (item->n == n) {
        items.splice(items.begin(), items, item);
        return items.front().made;
      }
    }
    return nullptr;
  }

  void keep(int64_t n, const std::shared_ptr<const Made>& made) {
    const std::lock_guard guard(lock);
    items.push_front({n, made});
    bytes += made->bytes();
    while (items.size() > 1 && (bytes > kCacheBytes || items.size() > 128)) {
      bytes -= items.back().made->bytes();
      items.pop_back();
    }
  }
};

}  // namespace

template <typename Made>
std::shared_ptr<const Made> fft_cached(int64_t n) {
  static Cache<Made> cache;
  std::shared_ptr<const Made> found = cache.find(n);
  if (found == nullptr) {
    // Two threads may make the same: either is right.
    found = std::make_shared<const Made>(n);
    cache.keep(n, found);
  }
  return found;
}

template struct FftPlan<float>;
template struct FftPlan<double>;
template struct FftSplit<float>;
template struct FftSplit<double>;
template struct FftRoots<float>;
template struct FftRoots<double>;
template std::shared_ptr<const FftPlan<float>> fft_cached(int64_t n);
template std::shared_ptr<const FftPlan<double>> fft_cached(int64_t n);
template std::shared_ptr<const FftSplit<float>> fft_cached(int64_t n);
template std::shared_ptr<const FftSplit<double>> fft_cached(int64_t n);
template std::shared_ptr<const FftRoots<float>> fft_cached(int64_t n);
template std::shared_ptr<const FftRoots<double>> fft_cached(int64_t n);

}  // namespace rushlight::kernels
