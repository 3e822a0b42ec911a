// rushlight-compile: compiles kernels for another process, which starts it and talks to it over the
// socket that is its descriptor 3. Not for people.
#include <csignal>
#include <cstdio>

#include "runtime/compile_workers.h"

int main(int count, char**) {
  if (count != 1) {
    std::fprintf(stderr, "rushlight-compile is started by a program that uses Rushlight\n");
    return 2;
  }
  std::signal(SIGINT, SIG_IGN);  // meant for the other process, which ends this one
  rushlight::serve_compilations(3);
  return 0;
}
