#include "runtime/cpu.h"

#include <gtest/gtest.h>
#include <rushlight/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace rushlight {
namespace {

// The level is chosen once in a process, so each choice is tried in a child of its own.
std::string choice_with(const char* setting) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("RUSHLIGHT_CPU", setting, 1);
    std::string text;
    try {
      text = cpu_level_name(cpu_level());
    } catch (const Error& error) {
      text = error.what();
    }
    const bool written = write(ends[1], text.data(), text.size()) >= 0;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  char buffer[256];
  const ssize_t length = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {buffer, length > 0 ? static_cast<size_t>(length) : 0};
}

TEST(Cpu, ForcedLevelIsTaken) {
  EXPECT_EQ(choice_with("base"), "base");
}

TEST(Cpu, EmptySettingMeansDetected) {
  EXPECT_EQ(choice_with(""), cpu_level_name(detected_cpu_level()));
}

TEST(Cpu, UnknownLevelIsNamed) {
  EXPECT_EQ(choice_with("v5"), "RUSHLIGHT_CPU must be base, v3, v4 or v4amx, got 'v5'");
}

TEST(Cpu, LevelAboveTheMachineIsRefused) {
  if (detected_cpu_level() == CpuLevel::v4amx) {
    GTEST_SKIP() << "this machine has every level";
  }
  EXPECT_EQ(choice_with("v4amx"), "RUSHLIGHT_CPU=v4amx is above what this machine has: " +
                                      std::string(cpu_level_name(detected_cpu_level())));
}

}  // namespace
}  // namespace rushlight
