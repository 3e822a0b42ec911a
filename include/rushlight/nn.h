// Neural networks: modules, layers, losses, initial values.
#pragma once

#include <rushlight/nn/activation.h>
#include <rushlight/nn/container.h>
#include <rushlight/nn/convolution.h>
#include <rushlight/nn/flex_attention.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/layers.h>
#include <rushlight/nn/loss.h>
#include <rushlight/nn/module.h>
#include <rushlight/nn/pooling.h>
#include <rushlight/nn/recurrent.h>
#include <rushlight/nn/utils.h>
