// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch/rope.h"

#include <ATen/ATen.h>

#include <array>

#include "gpu/torch/decoder_operators.h"
#include "gpu/torch/decoder_weights.h"
#include "gpu/torch/guarded.h"

namespace kvsim::gpu::aten {
namespace {

class Rope : public TorchRope {
 public:
  Rope(const ModelConfig& config, const softfloat::Format& storage)
      : config_(config),
        context_{config_, scalar_type(storage), at::kCPU},
        frequencies_{rope_frequencies(context_, false), rope_frequencies(context_, true)} {}

  [[nodiscard]] Result<TorchRopeFactors> factors(bool windowed, std::int64_t first,
                                                 std::int64_t count) const override {
    return guarded<TorchRopeFactors>([&] {
      use_threads(1);
      const RopeFactors made =
          rope_factors(context_, frequencies_[windowed ? 1 : 0], {first, count});
      return TorchRopeFactors{doubles_of(made.cosine), doubles_of(made.sine)};
    });
  }

 private:
  ModelConfig config_;
  OperatorContext context_;
  std::array<at::Tensor, 2> frequencies_;  ///< of layers without a window, and with one
};

}  // namespace
}  // namespace kvsim::gpu::aten

extern "C" __attribute__((visibility("default"))) void kvsim_make_torch_rope(
    const kvsim::ModelConfig& config, const kvsim::softfloat::Format& storage,
    kvsim::Result<std::unique_ptr<kvsim::gpu::TorchRope>>& rope) {
  using kvsim::gpu::TorchRope;
  rope = kvsim::gpu::aten::guarded<std::unique_ptr<TorchRope>>([&] {
    return std::unique_ptr<TorchRope>(std::make_unique<kvsim::gpu::aten::Rope>(config, storage));
  });
}
