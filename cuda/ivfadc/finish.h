// From scores to answers: limits for a limited scan, and the last step, which ranks the best candidates by their
// values.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/answers.h"
#include "ivfadc/scan.h"
#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

inline constexpr std::uint32_t limited_most = 512;      // most candidates wanted of a limited scan
inline constexpr std::uint32_t overflowed = no_answer;  // in Answers::found: too many candidates passed the limit

// Of each query, from the scores of its first slots (those of `first_ranks` lists): the limit that at least `wanted`
// rows pass, and those rows as first candidates. The largest float where there are fewer. wanted <= limited_most.
void set_limits(const MirrorView& mirror, const ProbeView& probes, const DenseScores& scores, std::uint32_t count,
                std::uint32_t first_ranks, std::uint32_t wanted, float* limits, const LimitedScores& out,
                cudaStream_t stream);

// Ranks the `wanted` (<= 1024) best candidates of each query by value and row; emits the k first.
void finish_dense(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes,
                  const DenseScores& scores, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                  const Answers& out, cudaStream_t stream);
void finish_limited(const MirrorView& mirror, const QueryView& queries, const LimitedScores& candidates,
                    std::uint32_t count, std::uint32_t wanted, std::uint32_t k, const Answers& out,
                    cudaStream_t stream);

// Any number wanted: the `wanted` best of each query with their values, in any order: values, rows [count][wanted].
void finish_wide(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes, const DenseScores& scores,
                 std::uint32_t count, std::uint32_t wanted, std::uint32_t* positions, const Answers& out,
                 cudaStream_t stream);

// Values of positions [first, first + count) for the first query; values[i], NaN in padding.
void all_values(const MirrorView& mirror, const QueryView& queries, std::uint32_t first, std::uint32_t count,
                double* values, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
