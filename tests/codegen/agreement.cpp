#include "agreement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/kernel_cache.h"

namespace rushlight::testing {
namespace {

constexpr size_t kPage = 4096;

template <typename Int, typename Float>
int64_t distance(Float a, Float b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<int64_t>::max();
  }
  if (std::signbit(a) != std::signbit(b)) {
    return std::numeric_limits<int64_t>::max();
  }
  int64_t difference = int64_t{std::bit_cast<Int>(a)} - int64_t{std::bit_cast<Int>(b)};
  return difference < 0 ? -difference : difference;
}

float random_float(std::mt19937_64& random, bool special) {
  static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-41f, -3e-39f, 3e38f, 1.0f};
  if (special && random() % 16 == 0) {
    return odd[random() % std::size(odd)];
  }
  return std::normal_distribution<float>(0, 2)(random);
}

void fill_element(char* at, DType dtype, const Problem& problem, std::mt19937_64& random) {
  auto put = [at](auto value) { std::memcpy(at, &value, sizeof(value)); };
  switch (dtype) {
    case DType::Bool:
      return put(static_cast<uint8_t>(random() % 2));
    case DType::Float32:
      return put(random_float(random, problem.special));
    case DType::Float64:
      return put(static_cast<double>(random_float(random, problem.special)));
    case DType::Float16:
      return put(to_half(random_float(random, problem.special)));
    case DType::BFloat16:
      return put(to_bfloat16(random_float(random, problem.special)));
    case DType::Int64:
      if (problem.index_limit > 0) {
        return put(static_cast<int64_t>(random() % static_cast<uint64_t>(problem.index_limit)));
      }
      [[fallthrough]];
    default: {
      uint64_t bits = random() % 4 == 0 ? random() : random() % 9 - 4;
      std::memcpy(at, &bits, static_cast<size_t>(element_size(dtype)));
    }
  }
}

struct Layouts {
  std::vector<std::vector<int64_t>> strides;
  std::vector<int64_t> counts;
};

// Unit dimensions get stride 1; the others follow, last first, with room between rows.
Layouts lay_out(const Problem& problem) {
  Layouts result;
  for (size_t b = 0; b < problem.kernel.buffers.size(); ++b) {
    const std::vector<loop::Layout>& dims = problem.kernel.buffers[b].dims;
    std::vector<int64_t> strides(dims.size(), 0);
    int64_t count = 1;
    for (size_t d = dims.size(); d-- > 0;) {
      if (dims[d] == loop::Layout::Unit) {
        strides[d] = 1;
        count = std::max<int64_t>(problem.sizes[b][d], 1);
      }
    }
    for (size_t d = dims.size(); d-- > 0;) {
      if (dims[d] == loop::Layout::Any) {
        strides[d] = count + (count > 1 ? 1 : 2);
        count = strides[d] * (problem.sizes[b][d] - 1) + count;
      }
    }
    result.strides.push_back(strides);
    result.counts.push_back(std::max<int64_t>(count, 1));
  }
  return result;
}

using Memories = std::vector<GuardedMemory>;

Memories fill_buffers(const Problem& problem, const Layouts& layouts) {
  std::mt19937_64 random(problem.seed);
  Memories memories;
  for (size_t b = 0; b < problem.kernel.buffers.size(); ++b) {
    DType dtype = problem.kernel.buffers[b].dtype;
    size_t size = static_cast<size_t>(element_size(dtype));
    memories.emplace_back(size * static_cast<size_t>(layouts.counts[b]));
    for (int64_t i = 0; i < layouts.counts[b]; ++i) {
      fill_element(memories.back().data() + static_cast<size_t>(i) * size, dtype, problem, random);
    }
  }
  return memories;
}

enum class How { Interpreted, Compiled, Streamed };

void run(const Problem& problem, const Layouts& layouts, const Memories& memories, How how) {
  std::vector<void*> buffers;
  std::vector<const int64_t*> strides;
  for (size_t b = 0; b < memories.size(); ++b) {
    buffers.push_back(memories[b].data());
    strides.push_back(layouts.strides[b].data());
  }
  std::vector<uint64_t> scalars;
  for (size_t i = 0; i < problem.scalars.size(); ++i) {
    DType dtype = problem.kernel.scalars[i];
    double value = problem.scalars[i];
    scalars.push_back(dtype == DType::Float32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                      : dtype == DType::Float64
                          ? std::bit_cast<uint64_t>(value)
                          : static_cast<uint64_t>(static_cast<int64_t>(value)));
  }
  const int64_t length = problem.extents.empty() ? 0 : problem.extents.back();
  std::vector<float> scratch(static_cast<size_t>(length + loop::kScratchPadding));
  loop::KernelArgs args{buffers.data(),
                        strides.data(),
                        problem.extents.data(),
                        scalars.data(),
                        how == How::Streamed ? ~uint64_t{0} : 0,
                        scratch.data()};
  int split = loop::split_axis(problem.kernel);
  int64_t end = split < 0 ? 1 : problem.extents[static_cast<size_t>(split)];
  if (how == How::Interpreted) {
    loop::interpret(problem.kernel, args, 0, end);
    return;
  }
  loop::KernelFunction function = get_kernel(problem.kernel);
  // In two parts, as threads would: the cut must not show.
  int64_t cut = split < 0 ? 0 : end / 3;
  if (cut > 0) {
    function(&args, 0, cut);
  }
  function(&args, cut, end);
}

template <typename T>
T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

bool close(const char* a, const char* b, DType dtype, int ulp) {
  switch (dtype) {
    case DType::Float32:
      return ulp_distance(read<float>(a), read<float>(b)) <= ulp;
    case DType::Float64:
      return ulp_distance(read<double>(a), read<double>(b)) <= ulp;
    case DType::Float16:
      return distance<int32_t>(to_float(read<Half>(a)), to_float(read<Half>(b))) <=
             (int64_t{ulp} << 13);
    case DType::BFloat16:
      return distance<int32_t>(to_float(read<BFloat16>(a)), to_float(read<BFloat16>(b))) <=
             (int64_t{ulp} << 16);
#define RUSHLIGHT_CASE(type, convert) \
  case DType::type:                   \
    return distance<int32_t>(to_float(read<type>(a)), to_float(read<type>(b))) == 0;
      RUSHLIGHT_FLOAT8(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    default:
      return std::memcmp(a, b, static_cast<size_t>(element_size(dtype))) == 0;
  }
}

}  // namespace

GuardedMemory::GuardedMemory(size_t size) : size_(size) {
  mapped_ = (size + kPage - 1) / kPage * kPage + kPage;
  void* map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(map, MAP_FAILED);
  map_ = static_cast<char*>(map);
  EXPECT_EQ(mprotect(map_ + mapped_ - kPage, kPage, PROT_NONE), 0);
  data_ = map_ + mapped_ - kPage - size;
}

GuardedMemory::~GuardedMemory() {
  if (map_) {
    munmap(map_, mapped_);
  }
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      size_(other.size_) {}

int64_t ulp_distance(float a, float b) {
  return distance<int32_t>(a, b);
}
int64_t ulp_distance(double a, double b) {
  return distance<int64_t>(a, b);
}

namespace {

// Whether all is as wanted; reports the first element that is not.
bool compare(const Problem& problem, const Memories& wanted, const Memories& got) {
  for (size_t b = 0; b < wanted.size(); ++b) {
    DType dtype = problem.kernel.buffers[b].dtype;
    size_t size = static_cast<size_t>(element_size(dtype));
    for (size_t i = 0; i < wanted[b].size() / size; ++i) {
      const char* x = wanted[b].data() + i * size;
      const char* y = got[b].data() + i * size;
      if (!close(x, y, dtype, problem.ulp)) {
        std::string extents;
        for (int64_t extent : problem.extents) {
          extents += std::to_string(extent) + " ";
        }
        uint64_t raw_wanted = 0;
        uint64_t raw_got = 0;
        std::memcpy(&raw_wanted, x, size);
        std::memcpy(&raw_got, y, size);
        ADD_FAILURE() << "buffer " << b << " element " << i << " of " << wanted[b].size() / size
                      << ": wanted " << std::hex << raw_wanted << ", got " << raw_got << std::dec
                      << ", extents " << extents << "\n"
                      << loop::print(problem.kernel);
        return false;
      }
    }
  }
  return true;
}

}  // namespace

void expect_agreement(const Problem& problem) {
  ASSERT_EQ(loop::verify(problem.kernel), "") << loop::print(problem.kernel);
  Layouts layouts = lay_out(problem);
  Memories wanted = fill_buffers(problem, layouts);
  run(problem, layouts, wanted, How::Interpreted);
  for (How how : {How::Compiled, How::Streamed}) {
    Memories got = fill_buffers(problem, layouts);
    run(problem, layouts, got, how);
    if (!compare(problem, wanted, got)) {
      return;
    }
  }
}

}  // namespace rushlight::testing
