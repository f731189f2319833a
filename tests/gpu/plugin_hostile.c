/* SPDX-License-Identifier: Apache-2.0
   SPDX-FileCopyrightText: The kvsim authors

   A plug-in that breaks one rule of include/kvsim/plugin.h: the one that the environment variable
   KVSIM_HOSTILE names. */
#include <kvsim/plugin.h>
#include <stdlib.h>
#include <string.h>

#ifndef KVSIM_NO_ENTRY

static const char* rule = "";

static int broken(const char* name) { return strcmp(rule, name) == 0; }

static int run(void* state, const kvsim_plugin_call* call, kvsim_plugin_result* result) {
  size_t i;
  (void)state;
  (void)call;
  for (i = 0; i < result->capacity; ++i) result->values[i] = 1.00390625F;
  result->count = result->capacity;
  if (broken("count")) --result->count;
  if (broken("past")) result->values[result->capacity] = 1;
  if (broken("number")) result->format = "bfloat16";
  if (broken("format")) result->format = "float13";
  if (broken("null-format")) result->format = NULL;
  if (broken("status")) return 77;
  if (broken("unavailable")) return KVSIM_PLUGIN_UNAVAILABLE;
  return KVSIM_PLUGIN_OK;
}

static int set_threads(void* state, size_t threads) {
  (void)state;
  return broken("threads") && threads > 1 ? KVSIM_PLUGIN_FAILED : KVSIM_PLUGIN_OK;
}

static int describe(void* state, size_t i, const char** name, const char** value) {
  (void)state;
  (void)i;
  *name = "again and again";
  *value = broken("null-value") ? NULL : "line\nline";
  return 1;
}

static const char* error(void* state) {
  (void)state;
  return broken("unavailable") ? "no such\ndevice" : NULL;
}

const kvsim_plugin* kvsim_plugin_open(unsigned version) {
  static kvsim_plugin_operator row;
  static kvsim_plugin plugin;
  const char* chosen = getenv("KVSIM_HOSTILE");
  rule = chosen == NULL ? "" : chosen;
  row.operation = broken("null-operation") ? NULL : broken("operation") ? "lineer" : "dot";
  row.formats = broken("formats") ? NULL : broken("float13") ? "binary32 float13" : "binary32";
  memset(&plugin, 0, sizeof plugin);
  plugin.version = broken("version") ? version + 1 : version;
  plugin.size = broken("size") ? 8 : sizeof plugin;
  plugin.name = broken("null-name") ? NULL : broken("name") ? "" : "hostile";
  plugin.release = NULL;
  plugin.operator_count = broken("many") ? (size_t)-1 : broken("none") ? 0 : 1;
  plugin.operators = broken("null-operators") ? NULL : &row;
  plugin.run = broken("null-run") ? NULL : run;
  plugin.set_threads = set_threads;
  plugin.describe = describe;
  plugin.error = error;
  return broken("refuse") ? NULL : &plugin;
}

#endif
