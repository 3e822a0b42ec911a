#include "kernels/random.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace rushlight {
namespace {

constexpr int64_t kCount = 1003;  // no multiple of 16, so that tails are drawn

uint64_t hash(const void* data, size_t size) {
  uint64_t value = 0xcbf29ce484222325ULL;
  for (size_t i = 0; i < size; ++i) {
    value = (value ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3ULL;
  }
  return value;
}

// FNV-1a hashes of what PyTorch 2.13 draws with seed 1234 into 1003 elements.
struct Stream {
  std::string name;
  DType dtype;
  uint64_t hash;
};
const Stream kStreams[] = {
    {"uniform", DType::Float32, 0x230a14a1d9d02da1ULL},
    {"uniform", DType::Float64, 0x0088808a2bfea7cfULL},
    {"uniform", DType::Float16, 0x8c75dc5801fa6785ULL},
    {"uniform", DType::BFloat16, 0x22acd0777051e6a6ULL},
    {"normal", DType::Float32, 0x434081cbf6b938e1ULL},
    {"normal", DType::Float64, 0x6e4304375ee8f745ULL},
    {"normal", DType::Float16, 0x721ca86d9b53138eULL},
    {"normal", DType::BFloat16, 0xaf07a4372bad1e54ULL},
    {"bernoulli", DType::Float32, 0x3caeeb3bede6d855ULL},
    {"bernoulli", DType::Float64, 0x497f25cdc9ff8c85ULL},
    {"bernoulli", DType::Float16, 0x6108c29d05503d3dULL},
    {"bernoulli", DType::BFloat16, 0xb242e1d8851f481dULL},
    {"bernoulli", DType::Bool, 0x3df08971f7ea3c6fULL},
    {"integers", DType::Int64, 0xcbd236ba22458a2fULL},
    {"integers", DType::Int32, 0x5d37d093a6c9af7bULL},
    {"integers", DType::Float32, 0x7cf5757950c57985ULL},
    {"wide", DType::Int64, 0xae4f3a6ab06d49afULL},
    {"of_type", DType::Int64, 0xa360297a5842febeULL},
    {"of_type", DType::Int32, 0xad98e0bc6f1a372eULL},
    {"of_type", DType::UInt8, 0xef62ec303480ca8fULL},
    {"of_type", DType::Bool, 0x30ae3c57e7c9a06dULL},
    {"of_type", DType::Float32, 0x30cea49742b9231aULL},
    {"of_type", DType::Float64, 0x52384b3654d7d123ULL},
    {"exponential", DType::Float32, 0xb2fd50ee85951032ULL},
    {"geometric", DType::Int64, 0x8f487c0dd570b9ffULL},
    {"cauchy", DType::Float32, 0x3fd8dbb9a77c16f5ULL},
    {"log_normal", DType::Float32, 0x6d86a29243b5a479ULL},
    {"permutation", DType::Int64, 0x19d52e7c81de45b7ULL},
    {"poisson", DType::Float32, 0xb5d03922fbe6ed7cULL},
    {"multinomial", DType::Int64, 0x6705d6ad64dcb8ebULL},
};

void draw(const Stream& stream, void* out, streams::State& state) {
  std::vector<float> ramp(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    ramp[i] = stream.name == "poisson" ? static_cast<float>(i) / 25 : static_cast<float>(i);
  }
  if (stream.name == "uniform") {
    streams::uniform(out, stream.dtype, kCount, -3, 7, state);
  } else if (stream.name == "normal") {
    streams::normal(out, stream.dtype, kCount, 0.5, 2, true, state);
  } else if (stream.name == "bernoulli") {
    streams::bernoulli(out, stream.dtype, kCount, 0.3, 1, state);
  } else if (stream.name == "integers") {
    streams::integers(out, stream.dtype, kCount, 105, -5, state);
  } else if (stream.name == "wide") {
    streams::integers(out, stream.dtype, kCount, (uint64_t{1} << 40) + 5, -5, state);
  } else if (stream.name == "of_type") {
    streams::integers_of_type(out, stream.dtype, kCount, state);
  } else if (stream.name == "exponential") {
    streams::exponential(out, stream.dtype, kCount, 2.5, state);
  } else if (stream.name == "geometric") {
    streams::geometric(out, stream.dtype, kCount, 0.3, state);
  } else if (stream.name == "cauchy") {
    streams::cauchy(out, stream.dtype, kCount, 1, 2, state);
  } else if (stream.name == "log_normal") {
    streams::log_normal(out, stream.dtype, kCount, 0.5, 0.7, state);
  } else if (stream.name == "permutation") {
    streams::permutation(static_cast<int64_t*>(out), kCount, state);
  } else if (stream.name == "poisson") {
    streams::poisson(out, ramp.data(), stream.dtype, kCount, state);
  } else if (stream.name == "multinomial") {
    streams::multinomial(static_cast<int64_t*>(out), ramp.data(), DType::Float32, 1, kCount, kCount,
                         state);
  } else {
    FAIL() << "no stream called " << stream.name;
  }
}

TEST(Random, StreamsEqualPyTorchs) {
  for (const Stream& stream : kStreams) {
    SCOPED_TRACE(stream.name + " " + std::string(dtype_name(stream.dtype)));
    Generator generator(1234);
    std::vector<uint8_t> bytes(kCount * element_size(stream.dtype));
    draw(stream, bytes.data(), generator.state());
    EXPECT_EQ(hash(bytes.data(), bytes.size()), stream.hash);
  }
}

TEST(Random, KeptNormalIsPartOfTheState) {
  Generator generator(1234);
  float three[3];
  streams::normal(three, DType::Float32, 3, 0, 1, true, generator.state());
  const std::vector<uint8_t> saved = generator.get_state();
  ASSERT_EQ(saved.size(), 5056u);
  EXPECT_EQ(hash(saved.data(), saved.size()), 0x6d1fc89190339112ULL);
  float next;
  streams::normal(&next, DType::Float32, 1, 0, 1, true, generator.state());
  Generator other;
  other.set_state(saved);
  float again;
  streams::normal(&again, DType::Float32, 1, 0, 1, true, other.state());
  EXPECT_EQ(next, again);
}

TEST(Random, BulkDrawsEqualSingleDraws) {
  Generator bulk(7);
  Generator single(7);
  std::vector<uint32_t> words(3000);
  bulk.state().fill(words.data(), 5);
  bulk.state().fill(words.data() + 5, 2995);
  for (const uint32_t word : words) {
    ASSERT_EQ(word, single.state().random32());
  }
  EXPECT_EQ(bulk.get_state(), single.get_state());
}

TEST(Random, RejectsForeignStates) {
  Generator generator;
  EXPECT_THROW(generator.set_state(std::vector<uint8_t>(10)), Error);
  std::vector<uint8_t> state = generator.get_state();
  const int32_t left = 700;
  std::memcpy(state.data() + 8, &left, sizeof(left));
  EXPECT_THROW(generator.set_state(state), Error);
}

}  // namespace
}  // namespace rushlight
