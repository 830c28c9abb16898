// The step from scores to answers: limits for a limited scan, and the ranking of the best candidates by their values.
// All functions are asynchronous and throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/answers.h"
#include "ivfadc/scan.h"
#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

inline constexpr std::uint32_t limited_most = 512;      // the most candidates wanted in a limited scan
inline constexpr std::uint32_t overflowed = no_answer;  // in Answers::found: too many candidates passed the limit

// Sets, for each query, a limit that at least `wanted` rows pass, from the scores of its first slots (those of
// first_ranks lists), and writes those rows as first candidates. The limit is the largest float where there are fewer
// rows. wanted <= limited_most.
void set_limits(const MirrorView& mirror, const ProbeView& probes, const DenseScores& scores, std::uint32_t count,
                std::uint32_t first_ranks, std::uint32_t wanted, float* limits, const LimitedScores& out,
                cudaStream_t stream);

// Ranks the `wanted` (<= 1024) best candidates of each query by (value, row) and writes the first k.
void finish_dense(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes,
                  const DenseScores& scores, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                  const Answers& out, cudaStream_t stream);
void finish_limited(const MirrorView& mirror, const QueryView& queries, const LimitedScores& candidates,
                    std::uint32_t count, std::uint32_t wanted, std::uint32_t k, const Answers& out,
                    cudaStream_t stream);

// For any `wanted`: writes the best candidates of each query with their values, unordered: values, rows
// [count][wanted].
void finish_wide(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes, const DenseScores& scores,
                 std::uint32_t count, std::uint32_t wanted, std::uint32_t* positions, const Answers& out,
                 cudaStream_t stream);

// values[i] = the value of position first + i for the first query, i < count; NaN in padding.
void all_values(const MirrorView& mirror, const QueryView& queries, std::uint32_t first, std::uint32_t count,
                double* values, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
