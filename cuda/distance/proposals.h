// Proposing rows by low-precision scores. A proposer goes over a range of positions in one of three ways:
//   filter: every pair with a score above its query's threshold is appended to the query's entries;
//   maxima: the largest score of each 32 positions is written out, from which a first threshold is chosen; with masks
//     the largest among the rows that the query's mask admits;
//   best: of each 256 positions those with the largest scores are appended, without a threshold: by streaming only.
// Selection is thus fused into the distance tile as one comparison a pair; thresholds are tightened between ranges
// (passes/thresholds.h). It replaces a k-selection queue in registers behind the tile (Faiss paper, section 5.1),
// because the comparison costs the same for every k.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "distance/half_rows.h"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t maxima_group = 32;
inline constexpr std::uint32_t best_group = 256;
inline constexpr std::uint32_t streamed_queries = 4;  // up to which any kind of score is proposed by streaming

struct Proposal {
    float score;
    std::uint32_t position;
};

// The output for the slots of a batch; device pointers. An entry beyond the capacity is counted, but not written.
struct Proposals {
    Proposal* entries = nullptr;        // [slots][capacity]
    std::uint32_t* counts = nullptr;    // [slots]
    const float* thresholds = nullptr;  // [slots]; +infinity: no entry passes
    std::uint32_t capacity = 0;
    float* maxima = nullptr;            // not null: write maxima[slot][maxima_width] instead
    std::uint32_t maxima_width = 0;     // positions of the range / maxima_group
    std::uint32_t* left_out = nullptr;  // not null: append the best; [slots], zero at first: raised to the inverted
                                        // descending_bits() of the largest score that isn't appended
    std::uint32_t best = 0;             // of each best_group positions
};

// Summands of scores besides the products, a byte a pair: score += units[slot] * the byte. The bytes of 128 positions
// lie as the matrix kernels read them (added_place.h).
struct AddedBytes {
    const std::uint8_t* values = nullptr;  // [slots][width]; null: nothing is added
    const float* units = nullptr;          // [slots]
    std::uint32_t width = 0;               // positions of the range, a multiple of tile_rows
};

// The rows that may count for each slot, a bit a position at the place of mask_place.h. out.maxima then gets minus the
// largest score of the admitted rows of each group; +infinity where there are none.
struct RowMasks {
    const std::uint32_t* words = nullptr;    // [masks][out.maxima_width]; null: all rows count
    const std::uint32_t* of_slot = nullptr;  // [padded slots]: the mask of each
};

// Positions [begin, end). begin is a multiple of tile_rows; end is one too, or the number of positions.
struct PositionRange {
    std::uint32_t begin;
    std::uint32_t end;
};

struct ProposalJob {
    const ScoredRows* rows = nullptr;
    const float* penalties = nullptr;  // those of `rows`, or with dead rows marked
    const float* vectors = nullptr;    // the rows themselves, [order.rows][dimensions]: read by float kinds
    PreparedQueries queries;
    Proposals out;
    PositionRange range{};
    AddedBytes added;  // by warp groups up to 256 dimensions, and portably
    RowMasks masks;    // of half kinds, where maxima are written and no bytes are added
};

// Each enqueues launches of at most about 2 ms. propose() chooses between those that serve a job.
void propose_by_warp_groups(Context& context, const ProposalJob& job, cudaStream_t stream);  // sm_90a, half kinds
void propose_portably(Context& context, const ProposalJob& job, cudaStream_t stream);        // half kinds
void propose_by_streaming(Context& context, const ProposalJob& job, cudaStream_t stream);    // any kind, few queries
void propose_by_l1_tiles(Context& context, const ProposalJob& job, cudaStream_t stream);     // float_l1

// Whether this build and device can run propose_by_warp_groups for rows of this number of dimensions.
bool warp_groups_available(Context& context, std::uint32_t padded_dimensions);

// Calls the fastest of these that serves the job.
void propose(Context& context, const ProposalJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda
