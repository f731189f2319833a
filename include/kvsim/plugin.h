/* SPDX-License-Identifier: Apache-2.0
   SPDX-FileCopyrightText: The kvsim authors

   A shared library of yours as a back end of kvsim: `--backend plugin:./libmine.so`.

   The library exports one function, kvsim_plugin_open(), which returns a struct of functions. kvsim
   calls them from one thread at a time. This header is C89 and needs nothing else of kvsim; a
   sample is tests/gpu/plugin_sample.c:

     cc -shared -fPIC -I include -o libsample.so tests/gpu/plugin_sample.c

   Numbers travel as float whatever their format: every bfloat16, binary16 and FP8 number is one.
   Convert them to your own types (exactly) and back. Do not let your compiler contract or reorder
   what you want to look at: -ffp-contract=off, no -ffast-math. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. Structs of another version are refused. */
#define KVSIM_PLUGIN_VERSION 1

/* What run() and set_threads() return. After anything but KVSIM_PLUGIN_OK kvsim asks error() for
   one line of text. */
enum {
  KVSIM_PLUGIN_OK = 0,
  KVSIM_PLUGIN_UNAVAILABLE = 1, /* not on this machine, or not for this call */
  KVSIM_PLUGIN_USAGE = 2,       /* shapes or attributes that the operator does not take */
  KVSIM_PLUGIN_FAILED = 3       /* anything else */
};

/* Numbers of one format, row-major. */
typedef struct kvsim_plugin_tensor {
  const char* format;  /* name of a format, as `kvsim formats` prints it: "binary32", "bfloat16" */
  size_t rank;         /* dimensions; 0: one number */
  const size_t* shape; /* [rank], each at least 1 */
  const float* values; /* numbers of the format */
  /* Bytes by which your copy should begin behind a multiple of 64: 0 to 63, a multiple of the size
     of an element. Where your answer cannot depend on it, ignore it. */
  size_t misalignment;
} kvsim_plugin_tensor;

/* What else decides, as text: "causal" "1". */
typedef struct kvsim_plugin_attribute {
  const char* name;
  const char* value;
} kvsim_plugin_attribute;

/* One call. kvsim has checked the shapes, that the operator is offered in the format of the inputs,
   and that the operator has these attributes. */
typedef struct kvsim_plugin_call {
  const char* operation; /* "linear", "dot" …; gpu/operators.h lists them with their shapes */
  size_t input_count;
  const kvsim_plugin_tensor* inputs;
  size_t attribute_count;
  const kvsim_plugin_attribute* attributes;
} kvsim_plugin_call;

/* Where the result goes. */
typedef struct kvsim_plugin_result {
  size_t capacity; /* in: floats that values has room for, exactly those of the result */
  float* values;   /* in: write the numbers here, row-major */
  size_t count;    /* out: how many you wrote; must be capacity */
  /* in: the format of the inputs; out: that of the result, if it is another. Must stay valid until
     the next call. */
  const char* format;
} kvsim_plugin_result;

/* One operator that the library offers. */
typedef struct kvsim_plugin_operator {
  const char* operation;  /* a name of gpu/operators.h */
  const char* formats;    /* names of formats, by blanks: "binary32 bfloat16" */
  const char* attributes; /* names of attributes that it takes, by blanks; may be NULL */
  const char* note;       /* for the user; may be NULL */
} kvsim_plugin_operator;

/* What kvsim_plugin_open() returns. All pointers stay valid until close(). */
typedef struct kvsim_plugin {
  unsigned version;    /* KVSIM_PLUGIN_VERSION */
  size_t size;         /* sizeof(kvsim_plugin) */
  const char* name;    /* of the library: "mylib" */
  const char* release; /* its version: "1.2.0" */
  size_t operator_count;
  const kvsim_plugin_operator* operators;
  void* state; /* handed to every function below */
  /* Computes one operator. */
  int (*run)(void* state, const kvsim_plugin_call* call, kvsim_plugin_result* result);
  /* How many threads may be used from now on; kvsim begins with 1. NULL: only 1 is ever used. */
  int (*set_threads)(void* state, size_t threads);
  /* The i-th thing beside name, release and CPU that the bits may hang on: sets name and value and
     returns 1, or returns 0 where i is too large. NULL: there is none. */
  int (*describe)(void* state, size_t i, const char** name, const char** value);
  /* One line that says why the last call failed. NULL: nothing is known. */
  const char* (*error)(void* state);
  /* Called once, at the end. NULL: nothing to do. */
  void (*close)(void* state);
} kvsim_plugin;

/* Exported by the library. `version` is the KVSIM_PLUGIN_VERSION of the kvsim that asks; NULL: the
   library does not serve it. */
const kvsim_plugin* kvsim_plugin_open(unsigned version);

#ifdef __cplusplus
}
#endif
