// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/families.h"

namespace kvsim::attention {
namespace {
Error not_yet() { return {ErrorKind::unavailable, "this kernel's family is not here yet"}; }
}  // namespace

Result<bool> run_paged(const Run&, AttentionResult&) { return not_yet(); }
Result<bool> run_torch_cpu(const Run&, AttentionResult&) { return not_yet(); }
Result<bool> run_llama_cpu(const Run&, AttentionResult&) { return not_yet(); }
Result<bool> check_paged(const AttentionKernel&, const AttentionProblem&) { return true; }
Result<bool> check_llama_cpu(const AttentionKernel&, const AttentionProblem&) { return true; }

}  // namespace kvsim::attention
