// The form of the rows of an index that matrix tiles score, made when a search first asks for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/context.h"
#include "distance/half_rows.h"
#include "methods/once.h"
#include "rows/certain_rows.h"

namespace pgwarp::cuda::rows
{

// Thread-safe.
class ResidentScores
{
public:
    // The context outlives this.
    explicit ResidentScores(Context& context) : context_(&context) {}

    // The same rows in all calls. The first call waits for the form. Null where the rows have none, or no memory is
    // left for it beside the workspaces of searches. Throws CudaError.
    const ScoredRows* get(const CertainRows& rows, std::uint32_t count);
    std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

private:
    bool has_room(const CertainRows& rows, std::uint32_t count) const;
    ScoredRows make(const CertainRows& rows, std::uint32_t count);

    Context* context_;
    std::optional<Context::Lease> owner_;  // of the arrays
    Once made_;
    ScoredRows scored_;
    std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace pgwarp::cuda::rows
