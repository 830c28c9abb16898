// The step from proposals to the answer: canonical distances of the proposals that may belong to it, by falling score,
// and the proof that no other row does.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/answers.h"
#include "device/context.h"
#include "distance/proposals.h"
#include "matchcount/sparse_form.h"

namespace pgwarp::cuda::matchcount
{

// The rows as they are, in device memory.
struct SparseRowsView {
    const std::uint64_t* offsets = nullptr;  // [rows + 1]
    const SparseElement* elements = nullptr;
    const double* squares = nullptr;  // [rows], canonical |y|^2
    std::uint64_t element_count = 0;
    std::uint32_t rows = 0;
};

// The queries as they are, in device memory; numbered like the answers.
struct SparseQueriesView {
    const std::uint32_t* offsets = nullptr;  // [queries + 1]
    const SparseElement* elements = nullptr;
    const double* squares = nullptr;
    const SparseQueryBound* bounds = nullptr;
    std::uint32_t most_elements = 0;  // of a query
};

// The queries without a proof. All rows with scores above its threshold contain the answer of a query.
struct SparseUnproven {
    std::uint32_t* ids = nullptr;
    float* thresholds = nullptr;
    std::uint32_t* count = nullptr;
};

inline constexpr std::uint32_t most_ranked_k = 128;

struct SparseRankJob {
    SparseRowsView rows;
    SparseRowBounds bounds;
    RowOrder order;
    SparseQueriesView queries;
    std::uint32_t slots = 0;
    const std::uint32_t* ids = nullptr;  // [slots], numbers of queries; null: the slots themselves
    Proposals proposals;
    const std::uint32_t* incomplete = nullptr;  // [slots]
    Answers answers;
    std::uint32_t k = 0;      // at most most_ranked_k
    SparseUnproven unproven;  // null: such queries get no_answer, as those do for which no threshold is known
};

// Asynchronous. Throws CudaError.
void rank_sparse(const Context& context, const SparseRankJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
