// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/along_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/protocol/pair_text.h"

namespace kvsim::experiments {

Result<bool> along_text(std::span<const AlongArm> arms, const AlongOptions& options,
                        const std::function<Result<bool>(const AlongStep&)>& visit) {
  std::vector<ArmSequence> sequences;
  sequences.reserve(arms.size());
  for (const AlongArm& each : arms) {
    Result<ArmSequence> opened = each.arm->open(each.prompt, options.new_tokens);
    if (!opened) return opened.error();
    sequences.push_back(std::move(*opened));
  }
  for (std::int64_t step = 0; step < options.new_tokens; ++step) {
    std::vector<EnginePass> passes;
    passes.reserve(arms.size());
    for (ArmSequence& sequence : sequences) {
      Result<EnginePass> pass = sequence.next(options.request);
      if (!pass) return pass.error();
      passes.push_back(std::move(*pass));
    }
    const AlongStep done{step, passes, sequences};
    if (Result<bool> visited = visit(done); !visited) return visited;
    const TokenId token = options.choose ? options.choose(done)
                                         : static_cast<TokenId>(argmax_of(passes.front().logits));
    if (std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end()) break;
    for (ArmSequence& sequence : sequences) sequence.feed(token);
  }
  return true;
}

}  // namespace kvsim::experiments
