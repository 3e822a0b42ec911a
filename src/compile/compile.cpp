#include "compile/compile.h"

#include "graph/execute.h"

namespace rushlight::compile {

void run(graph::Segment& segment) { graph::execute(segment); }
Statistics statistics() { return {}; }
void reset() {}

}  // namespace rushlight::compile
