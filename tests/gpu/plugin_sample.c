/* SPDX-License-Identifier: Apache-2.0
   SPDX-FileCopyrightText: The kvsim authors

   A plug-in: dot, linear and sum in binary32. Terms of even and of odd index have an accumulator
   each, products are rounded, and the odd accumulator is added to the even one: the order
   lanes(2,1) with product rounded. */
#include <kvsim/plugin.h>
#include <string.h>

static const char* failure = NULL;

/* Sum of a[k] * b[k]; b NULL: of a[k]. volatile keeps the compiler from fusing or reordering. */
static float ordered_sum(const float* a, const float* b, size_t n) {
  volatile float lanes[2] = {0, 0};
  size_t k;
  for (k = 0; k < n; ++k) {
    volatile float product = b == NULL ? a[k] : a[k] * b[k];
    lanes[k % 2] = k < 2 ? product : lanes[k % 2] + product;
  }
  return n < 2 ? lanes[0] : lanes[0] + lanes[1];
}

static void run_linear(const kvsim_plugin_call* call, float* out) {
  const kvsim_plugin_tensor* x = &call->inputs[0];
  const kvsim_plugin_tensor* w = &call->inputs[1];
  const size_t terms = x->shape[1];
  size_t i;
  size_t j;
  for (i = 0; i < x->shape[0]; ++i) {
    for (j = 0; j < w->shape[0]; ++j) {
      *out++ = ordered_sum(x->values + i * terms, w->values + j * terms, terms);
    }
  }
}

static int run(void* state, const kvsim_plugin_call* call, kvsim_plugin_result* result) {
  const kvsim_plugin_tensor* a = &call->inputs[0];
  const size_t terms = a->shape[a->rank - 1];
  size_t i;
  (void)state;
  if (strcmp(call->operation, "linear") == 0) {
    if (call->input_count > 2) {
      failure = "the sample adds no bias";
      return KVSIM_PLUGIN_USAGE;
    }
    run_linear(call, result->values);
  } else if (strcmp(call->operation, "dot") == 0) {
    result->values[0] = ordered_sum(a->values, call->inputs[1].values, terms);
  } else {
    for (i = 0; i < result->capacity; ++i) {
      result->values[i] = ordered_sum(a->values + i * terms, NULL, terms);
    }
  }
  result->count = result->capacity;
  return KVSIM_PLUGIN_OK;
}

static int describe(void* state, size_t i, const char** name, const char** value) {
  (void)state;
  if (i > 0) return 0;
  *name = "accumulators";
  *value = "2";
  return 1;
}

static const char* error(void* state) {
  (void)state;
  return failure;
}

static const kvsim_plugin_operator operators[] = {
    {"dot", "binary32", NULL, NULL},
    {"linear", "binary32", NULL, "no bias"},
    {"sum", "binary32", NULL, NULL},
};

static const kvsim_plugin plugin = {
    KVSIM_PLUGIN_VERSION,
    sizeof(kvsim_plugin),
    "sample",
    "1.0",
    3,
    operators,
    NULL,
    run,
    NULL,
    describe,
    error,
    NULL,
};

const kvsim_plugin* kvsim_plugin_open(unsigned version) {
  return version == KVSIM_PLUGIN_VERSION ? &plugin : NULL;
}
