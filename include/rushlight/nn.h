// Neural networks: modules, layers, losses, initial values.
#pragma once

#include <rushlight/nn/init.h>
#include <rushlight/nn/layers.h>
#include <rushlight/nn/module.h>
