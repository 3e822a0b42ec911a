// The King James Bible as numbers: one a character, split into training and validation.
#pragma once

#include <rushlight/rushlight.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>

namespace gpt {

struct Text {
  std::string alphabet;     // sorted
  rushlight::Tensor train;  // int64, one dimension
  rushlight::Tensor held_out;

  explicit Text(const std::string& characters) {
    std::set<char> letters(characters.begin(), characters.end());
    alphabet.assign(letters.begin(), letters.end());
    auto count = static_cast<int64_t>(characters.size());
    rushlight::Tensor tokens = rushlight::empty({count}, rushlight::DType::Int64);
    auto* values = tokens.data_ptr<int64_t>();
    for (char letter : characters) {
      *values++ = static_cast<int64_t>(alphabet.find(letter));
    }
    int64_t split = count - count / 10;
    train = tokens.narrow(0, 0, split);
    held_out = tokens.narrow(0, split, count - split);
  }
};

// The text of a file, or without one the Bible that Debian's package bible-kjv prints.
inline Text read_text(const std::string& path) {
  if (!path.empty()) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      throw std::runtime_error("cannot read " + path);
    }
    return Text(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  FILE* shown = popen("bible -f 'gen1:1-rev22:21'", "r");
  if (shown == nullptr) {
    throw std::runtime_error("cannot start 'bible'");
  }
  std::string characters;
  char buffer[65536];
  while (size_t count = fread(buffer, 1, sizeof(buffer), shown)) {
    characters.append(buffer, count);
  }
  if (pclose(shown) != 0 || characters.empty()) {
    throw std::runtime_error("no program 'bible': apt install bible-kjv, or give --text FILE");
  }
  return Text(characters);
}

struct Batch {
  rushlight::Tensor x;
  rushlight::Tensor y;
};

// Windows that begin at `starts` (B,) and the same moved on by one: two (B, context) int64.
inline Batch batch(const rushlight::Tensor& tokens, const rushlight::Tensor& starts,
                   int64_t context) {
  rushlight::Tensor windows =
      starts.unsqueeze(1) + rushlight::arange(rushlight::Scalar(context + 1));
  rushlight::Tensor taken = tokens.take(windows);
  return {taken.narrow(1, 0, context), taken.narrow(1, 1, context)};
}

}  // namespace gpt
