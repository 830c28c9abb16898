#include "exact/exact_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "device/error.h"
#include "exact/thresholds.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t largest_ranked_k = 512;
constexpr std::uint64_t entries_memory = std::uint64_t{256} << 20;
constexpr std::uint32_t refilter_capacity = largest_capacity;

// How a search of this k over so many positions goes about it.
struct Plan {
    std::uint32_t keep;      // proposals wanted in the end: some more than k
    std::uint32_t sample;    // positions of the sample
    std::uint32_t capacity;  // entries a slot
    std::uint32_t growth;    // of ranges
    bool list_all;           // so few rows that all are proposals
};

// The rank, among what is known, of a threshold that is to let through `keep` rows once `growth` times as many are
// known. Positions are in random order: ranks scatter by the root of their number, and three times that is added. The
// rare query that finds too few is one whose proof fails.
std::uint32_t rank_for(std::uint32_t keep, double growth)
{
    const double share = keep / growth;
    return std::min(keep, static_cast<std::uint32_t>(std::ceil(share + 3 * std::sqrt(share) + 2)));
}

Plan make_plan(std::uint32_t k, std::uint32_t positions, std::uint32_t queries)
{
    constexpr std::uint32_t few_queries = 64;  // for which launches cost more than proposals
    constexpr std::uint32_t largest_sample = maxima_group * 4096;
    Plan plan{};
    plan.keep = k + k / 4 + 8;
    plan.growth = queries <= few_queries ? 32 : k <= 32 ? 16 : 8;
    const std::uint32_t rank = rank_for(plan.keep, plan.growth);
    // Few of the best of the sample share a group then, so the best of the groups tell their scores.
    plan.sample = maxima_group * std::bit_ceil(16 * rank);
    if (queries <= few_queries) {
        plan.sample = std::max(plan.sample, std::min(largest_sample, std::bit_floor(positions / 24)));
    }
    // Twice what a range is expected to bring.
    plan.capacity = std::clamp(std::bit_ceil(2 * rank * plan.growth), 512U, largest_capacity);
    plan.list_all = positions <= 2048 || positions < 2 * plan.sample;
    if (positions <= largest_capacity && plan.list_all) plan.capacity = largest_capacity;
    return plan;
}

// Device memory of one slab of slots, carved from one allocation.
class Slab
{
public:
    Slab(MemoryPool& pool, const ScoredRows& rows, std::uint32_t count, std::uint32_t capacity, std::uint32_t maxima,
         cudaStream_t stream)
    {
        queries.count = count;
        queries.padded = round_up(count, tile_queries);
        // Laid out twice: to learn the size, and in memory.
        lay_out(rows, capacity, maxima);
        memory_ = DeviceArray<std::byte>(pool, bytes_, "exact search workspace", stream);
        bytes_ = 0;
        lay_out(rows, capacity, maxima);
        check(cudaMemsetAsync(counts, 0, queries.padded * sizeof(std::uint32_t), stream), "clearing counts");
        check(cudaMemsetAsync(incomplete, 0, queries.padded * sizeof(std::uint32_t), stream), "clearing flags");
    }

    Proposals proposals(std::uint32_t capacity) const { return {entries, counts, thresholds, capacity, nullptr, 0}; }

    PreparedQueries queries;
    Proposal* entries = nullptr;
    std::uint32_t* counts = nullptr;
    std::uint32_t* incomplete = nullptr;
    float* thresholds = nullptr;
    float* maxima = nullptr;

private:
    template <class T>
    void take(T*& array, std::size_t count)
    {
        array = memory_.data() == nullptr ? nullptr : reinterpret_cast<T*>(memory_.data() + bytes_);
        bytes_ += round_up<std::size_t>(count * sizeof(T), 256);
    }
    void lay_out(const ScoredRows& rows, std::uint32_t capacity, std::uint32_t maxima_width)
    {
        const std::size_t slots = queries.padded;
        if (rows.halves.size() > 0) take(queries.halves, slots * rows.padded_dimensions);
        take(queries.floats, slots);
        take(queries.factors, slots);
        take(queries.bounds, slots);
        take(queries.usable, slots);
        take(entries, slots * capacity);
        take(counts, slots);
        take(incomplete, slots);
        take(thresholds, slots);
        take(maxima, slots * maxima_width);
    }

    DeviceArray<std::byte> memory_;
    std::size_t bytes_ = 0;
};

class Search
{
public:
    Search(Context& context, const ExactRows& rows, const float* queries, std::uint32_t count,
           const std::uint64_t* dead, const ExactAnswer& answer, const CancelToken* cancel, cudaStream_t stream)
        : context_(context),
          rows_(rows),
          queries_(queries),
          count_(count),
          dead_(dead),
          answer_(answer),
          cancel_(cancel),
          stream_(stream)
    {
    }

    void run(ExactStatistics& statistics)
    {
        statistics.queries += count_;
        if (rows_.rows == 0 || answer_.k == 0) {
            check(cudaMemsetAsync(answer_.found, 0, count_ * sizeof(std::uint32_t), stream_), "empty answer");
            return;
        }
        if (std::min(answer_.k, rows_.rows) > largest_ranked_k) {
            std::vector<std::uint32_t> ids(count_);
            for (std::uint32_t i = 0; i < count_; ++i) ids[i] = i;
            statistics.scanned += count_;
            return scan(ids);
        }
        choose_penalties();
        unproven_memory_ =
            DeviceArray<std::uint32_t>(context_.pool(), 6 * std::size_t{count_} + 4, "unproven queries", stream_);
        Unproven first = unproven(0);
        filter_all(first);
        const auto failed = counts_of(first);
        statistics.filtered_again += failed[0];
        statistics.scanned += failed[1];
        if (failed[0] > 0) {
            Unproven second = unproven(1);
            filter_again(first, failed[0], second);
            const auto left = counts_of(second);
            statistics.scanned += left[0] + left[1];
            scan(read_ids(second.filter, left[0]));
            scan(read_ids(second.scan, left[1]));
        }
        scan(read_ids(first.scan, failed[1]));
    }

private:
    void choose_penalties()
    {
        penalties_ = rows_.scored.penalties.data();
        if (dead_ == nullptr) return;
        live_ = DeviceArray<float>(context_.pool(), rows_.scored.padded_positions, "live rows' penalties", stream_);
        mark_dead(rows_.scored, dead_, live_.data(), stream_);
        penalties_ = live_.data();
    }

    Unproven unproven(std::uint32_t turn)
    {
        std::uint32_t* at = unproven_memory_.data() + std::size_t{turn} * (3 * std::size_t{count_} + 2);
        Unproven lists;
        lists.counts = at;
        lists.filter = at + 2;
        lists.scan = lists.filter + count_;
        lists.thresholds = reinterpret_cast<float*>(lists.scan + count_);
        check(cudaMemsetAsync(lists.counts, 0, 2 * sizeof(std::uint32_t), stream_), "clearing counts");
        return lists;
    }

    std::array<std::uint32_t, 2> counts_of(const Unproven& lists) const
    {
        std::array<std::uint32_t, 2> counts{};
        check(cudaMemcpyAsync(counts.data(), lists.counts, sizeof(counts), cudaMemcpyDeviceToHost, stream_),
              "counting unproven queries");
        check(cudaStreamSynchronize(stream_), "waiting for proofs");
        return counts;
    }

    std::vector<std::uint32_t> read_ids(const std::uint32_t* ids, std::uint32_t count) const
    {
        std::vector<std::uint32_t> host(count);
        if (count == 0) return host;
        check(cudaMemcpyAsync(host.data(), ids, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream_),
              "reading unproven queries");
        check(cudaStreamSynchronize(stream_), "reading unproven queries");
        return host;
    }

    void check_cancelled() const
    {
        if (cancel_ != nullptr) cancel_->check();
    }

    static std::uint32_t slab_slots(std::uint32_t capacity)
    {
        return static_cast<std::uint32_t>(std::max<std::uint64_t>(
            tile_queries, entries_memory / (capacity * sizeof(Proposal)) / tile_queries * tile_queries));
    }

    void filter_range(const Slab& slab, const Proposals& out, PositionRange range)
    {
        check_cancelled();
        ProposalJob job;
        job.rows = &rows_.scored;
        job.penalties = penalties_;
        job.vectors = rows_.vectors;
        job.queries = slab.queries;
        job.out = out;
        job.range = range;
        propose(context_, job, stream_);
    }

    void rank(const Slab& slab, const Proposals& proposals, const std::uint32_t* ids, std::uint32_t first,
              const Unproven& lists)
    {
        RankJob job;
        job.rows = &rows_.scored;
        job.vectors = rows_.vectors;
        job.queries = slab.queries;
        job.ids = ids;
        job.first = first;
        job.proposals = proposals;
        job.incomplete = slab.incomplete;
        job.answer = answer_;
        job.unproven = lists;
        rank_proposals(job, stream_);
    }

    void filter_all(const Unproven& lists)
    {
        const std::uint32_t positions = rows_.scored.padded_positions;
        const Plan plan = make_plan(std::min(answer_.k, rows_.rows), positions, count_);
        const bool list_all = plan.list_all && rows_.rows <= plan.capacity;
        const std::uint32_t sample = std::min(plan.sample, std::bit_floor(positions / tile_rows) * tile_rows);
        const std::uint32_t step = slab_slots(plan.capacity);
        for (std::uint32_t first = 0; first < count_; first += step) {
            Slab slab(context_.pool(), rows_.scored, std::min(step, count_ - first), plan.capacity,
                      list_all ? 0 : sample / maxima_group, stream_);
            prepare_queries(rows_.scored, queries_, nullptr, first, slab.queries, stream_);
            const Proposals proposals = slab.proposals(plan.capacity);
            if (list_all) {
                propose_all(rows_.scored, penalties_, slab.queries, proposals, slab.thresholds, stream_);
            } else {
                filter_slab(slab, proposals, plan, sample);
            }
            rank(slab, proposals, nullptr, first, lists);
        }
    }

    void filter_slab(const Slab& slab, const Proposals& proposals, const Plan& plan, std::uint32_t sample)
    {
        const std::uint32_t positions = rows_.scored.padded_positions;
        const std::uint32_t groups = sample / maxima_group;
        std::uint32_t known = sample;
        std::uint32_t end = next_end(known, plan);
        if (groups >= 2 * rank_for(plan.keep, double{1} * end / known)) {
            Proposals maxima = proposals;
            maxima.maxima = slab.maxima;
            maxima.maxima_width = groups;
            filter_range(slab, maxima, {0, sample});
            thresholds_from_maxima(slab.queries, slab.maxima, groups, rank_for(plan.keep, double{1} * end / known),
                                   slab.thresholds, stream_);
        } else {
            // So large a k among so few rows: begin with as many as there is room for.
            open_thresholds(slab.queries, slab.thresholds, stream_);
            end = plan.capacity / tile_rows * tile_rows;
        }
        for (std::uint32_t begin = 0;; begin = known) {
            filter_range(slab, proposals, {begin, end});
            known = end;
            if (known == positions) break;
            end = next_end(known, plan);
            tighten_thresholds(slab.queries, proposals, rank_for(plan.keep, double{1} * end / known), slab.thresholds,
                               slab.incomplete, stream_);
        }
    }

    // The end of the range after that which ends at `known`; a short rest joins it.
    std::uint32_t next_end(std::uint32_t known, const Plan& plan) const
    {
        const std::uint64_t wanted = std::uint64_t{known} * plan.growth;
        const std::uint32_t positions = rows_.scored.padded_positions;
        return wanted * 4 / 3 >= positions ? positions : static_cast<std::uint32_t>(wanted);
    }

    void filter_again(const Unproven& failed, std::uint32_t count, const Unproven& lists)
    {
        const std::uint32_t step = slab_slots(refilter_capacity);
        for (std::uint32_t first = 0; first < count; first += step) {
            Slab slab(context_.pool(), rows_.scored, std::min(step, count - first), refilter_capacity, 0, stream_);
            const std::uint32_t* ids = failed.filter + first;
            prepare_queries(rows_.scored, queries_, ids, 0, slab.queries, stream_);
            take_thresholds(slab.queries, failed.thresholds + first, slab.thresholds, stream_);
            const Proposals proposals = slab.proposals(refilter_capacity);
            filter_range(slab, proposals, {0, rows_.scored.padded_positions});
            rank(slab, proposals, ids, 0, lists);
        }
    }

    void scan(const std::vector<std::uint32_t>& ids)
    {
        if (ids.empty()) return;
        DeviceArray<std::byte> workspace(context_.pool(), scan_workspace_bytes(rows_.rows), "exact scan workspace",
                                         stream_);
        ScanJob job;
        job.metric = rows_.metric;
        job.vectors = rows_.vectors;
        job.rows = rows_.rows;
        job.dimensions = rows_.dimensions;
        job.dead = dead_;
        job.answer = answer_;
        for (const std::uint32_t id : ids) {
            check_cancelled();
            job.id = id;
            job.query = queries_ + std::size_t{id} * rows_.dimensions;
            scan_rows(job, workspace.data(), stream_);
        }
    }

    Context& context_;
    const ExactRows& rows_;
    const float* queries_;
    std::uint32_t count_;
    const std::uint64_t* dead_;
    ExactAnswer answer_;
    const CancelToken* cancel_;
    cudaStream_t stream_;
    const float* penalties_ = nullptr;
    DeviceArray<float> live_;
    DeviceArray<std::uint32_t> unproven_memory_;
};

ScoreKind kind_for(Metric metric)
{
    switch (metric) {
        case Metric::l2:
            return ScoreKind::half_l2;
        case Metric::inner_product:
        case Metric::cosine:
            return ScoreKind::half_dot;
        case Metric::l1:
            break;
    }
    return ScoreKind::float_l1;
}

}  // namespace

ExactRows make_exact_rows(MemoryPool& pool, Metric metric, const float* vectors, std::uint32_t rows,
                          std::uint32_t dimensions, cudaStream_t stream)
{
    ExactRows made;
    made.metric = metric;
    made.vectors = vectors;
    made.rows = rows;
    made.dimensions = dimensions;
    made.scored = make_scored_rows(pool, metric, kind_for(metric), vectors, rows, dimensions, stream);
    return made;
}

void search_exactly(Context& context, const ExactRows& rows, const float* queries, std::uint32_t count,
                    const std::uint64_t* dead, const ExactAnswer& answer, ExactStatistics& statistics,
                    const CancelToken* cancel, cudaStream_t stream)
{
    if (count == 0) return;
    Search(context, rows, queries, count, dead, answer, cancel, stream).run(statistics);
}

}  // namespace pgwarp::cuda
