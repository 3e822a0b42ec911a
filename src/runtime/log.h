// What RUSHLIGHT_LOG, or set_log_topics, asks to be told about: a list of topics between commas,
// such as "kernels,plans". Lines go to stderr.
//
//   plans    each plan that is made: its kernels, in order     passes   what each pass did
//   graphs   the graph of each plan that is made, as text      kernels  kernels compiled or read
//   breaks   each segment that ended early: why, and where     loops    the text of fused kernels
//   bisect   what RUSHLIGHT_BISECT counts
#pragma once

#include <rushlight/error.h>

#include <string_view>

namespace rushlight {

bool is_logged(std::string_view topic);
// In place of what RUSHLIGHT_LOG says. Error(Value) for a topic that is not there.
RUSHLIGHT_API void set_log_topics(std::string_view topics);
RUSHLIGHT_API std::string_view log_topics();
// Milliseconds of a steady clock, for log lines.
double now_ms();

}  // namespace rushlight
