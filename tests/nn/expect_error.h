// One way to ask for an error's kind and for words of its text.
#pragma once

#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <string>

namespace rushlight {

template <typename Body>
void expect_error(ErrorKind kind, const std::string& text, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace rushlight
