// All of Rushlight's C++ interface.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/compile.h>
#include <rushlight/data.h>
#include <rushlight/generated/functions.h>
#include <rushlight/generated/namespaces.h>
#include <rushlight/indexing.h>
#include <rushlight/memory.h>
#include <rushlight/nn.h>
#include <rushlight/operators.h>
#include <rushlight/optim.h>
#include <rushlight/printing.h>
#include <rushlight/profiler.h>
#include <rushlight/safetensors.h>
#include <rushlight/tensor.h>
#include <rushlight/values.h>
