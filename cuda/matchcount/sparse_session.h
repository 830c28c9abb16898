// The search of a chunk of queries among sparse vectors, from their elements to rows. A sample of the positions gives
// each query a threshold; ranges of positions, each several times as long as all before, are filtered by it and raise
// it; the rows that pass are ranked. Queries without a proof are filtered once more, by a threshold that has one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "device/searcher.h"
#include "matchcount/sparse_mirror.h"

namespace pgwarp::cuda
{

struct SparseSearchTuning {
    std::uint32_t keep = 0;                   // proposals wanted; 0: by k
    std::uint32_t growth = 16;                // ratio of the lengths of successive ranges
    std::uint64_t chunk_bytes = 40ULL << 20;  // of the bytes of lists, which stay in the L2 cache
};

struct SparsePlan : ChunkPlan {
    std::uint32_t first = 0;  // query of the round
    std::uint32_t slots = 0;  // count, padded
    std::uint32_t keep = 0;   // proposals wanted in the end
    std::uint32_t growth = 0;
    std::uint32_t sample = 0;         // positions
    std::uint32_t capacity = 0;       // proposals of a slot
    std::uint32_t chunk = 0;          // positions whose bytes are made together
    bool list_all = false;            // all rows are proposals, as they are few
    std::uint32_t elements = 0;       // of the queries
    std::uint32_t most_elements = 0;  // of a query
};

// Counts of queries by the way that answered them.
struct SparseStatistics {
    std::uint64_t queries = 0;
    std::uint64_t filtered_again = 0;
    std::uint64_t by_host = 0;
    std::chrono::nanoseconds writing{0};  // in which the host wrote queries
};

class SparseSession
{
public:
    // Everything given must outlive the session. dead: null where no row is dead.
    SparseSession(Context& context, const SparseMirror& mirror, const SparseSearchTuning& tuning,
                  const SearchBatch& batch, const Round& round, const Tombstones* dead);

    // A plan of at most `most` queries from the round's query `first` on.
    SparsePlan plan(std::size_t first, std::size_t most, std::size_t room) const;
    // Enqueues the search. Waits in between. found[] is no_answer for queries that the device does not serve.
    void search(const SparsePlan& plan, const Chunk& chunk, ThreadPool& pool, SparseStatistics& statistics) const;

private:
    struct Sent;
    struct Slab;
    struct Workspace;

    SparseView query(const SparsePlan& plan, std::size_t i) const;
    void shape(SparsePlan& plan) const;
    Sent lay_out_sent(const SparsePlan& plan, Carver& memory) const;
    Slab lay_out_slab(Carver& memory, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
                      std::uint32_t chunk) const;
    Workspace lay_out(const SparsePlan& plan, Carver& memory) const;
    std::uint32_t write_queries(const SparsePlan& plan, const Sent& sent, ThreadPool& pool) const;
    void write_slot(const SparsePlan& plan, const Sent& sent, std::size_t i, std::atomic<std::uint32_t>& items) const;
    void clear(const Slab& slab, cudaStream_t stream) const;
    void filter(const Slab& slab, Proposals out, PositionRange range, cudaStream_t stream) const;
    void propose(const SparsePlan& plan, const Slab& slab, cudaStream_t stream) const;
    void search_again(const SparsePlan& plan, const Workspace& workspace, std::uint32_t count,
                      const Chunk& chunk) const;
    matchcount::SparseRankJob rank_job(const SparsePlan& plan, const Sent& sent, const Slab& slab,
                                       const Chunk& chunk) const;

    Context& context_;
    const SparseMirror& mirror_;
    const SparseSearchTuning& tuning_;
    const SearchBatch& batch_;
    const Round& round_;
    const float* penalties_;
};

}  // namespace pgwarp::cuda
