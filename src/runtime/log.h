// What RUSHLIGHT_LOG asks to be told about: a list of topics between commas, such as
// "kernels,plans". Lines go to stderr.
#pragma once

#include <string_view>

namespace rushlight {

bool is_logged(std::string_view topic);
// Milliseconds of a steady clock, for log lines.
double now_ms();

}  // namespace rushlight
