#include "passes/exact_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "device/error.h"
#include "device/wait.h"
#include "passes/pace.h"
#include "passes/thresholds.h"
#include "passes/tied_search.h"
#include "passes/wide_search.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint64_t entries_memory = std::uint64_t{256} << 20;

class Search
{
public:
    Search(Context& context, const ExactRows& rows, const float* queries, std::uint32_t count, const DeadRows& dead,
           const ExactAnswer& answer, const CancelToken* cancel, cudaStream_t stream)
        : context_(context),
          rows_(rows),
          queries_(queries),
          count_(count),
          dead_(dead),
          answer_(answer),
          cancel_(cancel),
          stream_(stream),
          penalties_(dead.penalties != nullptr ? dead.penalties : rows.scored.penalties.data())
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
            return search_left(search_wide(), statistics);
        }
        unproven_memory_ =
            DeviceArray<std::uint32_t>(context_.pool(), 6 * std::size_t{count_} + 4, "unproven queries", stream_);
        Unproven first = unproven(0);
        filter_all(first);
        const auto failed = counts_of(first);
        statistics.filtered_again += failed[0];
        std::vector<std::uint32_t> left = read_ids(first.scan, failed[1]);
        if (failed[0] > 0) {
            Unproven second = unproven(1);
            filter_again(first, failed[0], second);
            const auto counts = counts_of(second);
            for (const std::uint32_t id : read_ids(second.filter, counts[0])) left.push_back(id);
            for (const std::uint32_t id : read_ids(second.scan, counts[1])) left.push_back(id);
        }
        search_left(std::move(left), statistics);
    }

private:
    // Answers queries without any proof: by search_tied() and, where that fails, by a scan of all rows.
    void search_left(std::vector<std::uint32_t> ids, ExactStatistics& statistics)
    {
        if (!ids.empty() && serves_tied(context_, rows_, answer_.k)) {
            check_cancelled();
            search_tied(context_, rows_, queries_, ids, dead_, answer_, cancel_, stream_);
            const std::vector<std::uint32_t> found = read_ids(answer_.found, count_);
            statistics.tied += ids.size();
            std::erase_if(ids, [&](std::uint32_t id) { return found[id] != not_proved; });
            statistics.tied -= ids.size();
        }
        statistics.scanned += ids.size();
        scan(ids);
    }

    // Returns the queries that the wide search could not prove.
    std::vector<std::uint32_t> search_wide()
    {
        std::vector<std::uint32_t> left;
        const WidePlan plan = make_wide_plan(rows_.scored.padded_positions, rows_.rows, std::min(answer_.k, rows_.rows),
                                             context_.shared_bytes_per_block());
        std::vector<std::uint32_t> found(count_, not_proved);
        if (plan.capacity > 0) {
            search_widely(context_, rows_, plan, queries_, count_, dead_, answer_, cancel_, stream_);
            read_back(found.data(), answer_.found, count_ * sizeof(std::uint32_t), stream_, "waiting for proofs");
        }
        for (std::uint32_t i = 0; i < count_; ++i) {
            if (found[i] == not_proved) left.push_back(i);
        }
        return left;
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
        read_back(counts.data(), lists.counts, sizeof(counts), stream_, "waiting for proofs");
        return counts;
    }

    std::vector<std::uint32_t> read_ids(const std::uint32_t* ids, std::uint32_t count) const
    {
        std::vector<std::uint32_t> host(count);
        if (count == 0) return host;
        read_back(host.data(), ids, count * sizeof(std::uint32_t), stream_, "reading unproven queries");
        return host;
    }

    void check_cancelled() const
    {
        if (cancel_ != nullptr) cancel_->check();
    }

    std::uint32_t slab_slots(std::uint32_t capacity) const
    {
        const std::uint64_t bytes =
            std::max<std::uint64_t>(capacity * sizeof(Proposal), rows_.scored.padded_dimensions * sizeof(__half));
        return static_cast<std::uint32_t>(
            std::max<std::uint64_t>(tile_queries, entries_memory / bytes / tile_queries * tile_queries));
    }

    Slab make_slab(std::uint32_t count, std::uint32_t capacity, std::uint32_t maxima) const
    {
        const std::uint32_t padded = round_up(count, tile_queries);
        Slab slab(context_.pool(), rows_.scored, padded, capacity, maxima, stream_);
        slab.take(count, padded);
        return slab;
    }
    Passes passes() const { return {&context_, &rows_, penalties_, cancel_, stream_}; }

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
        rank_proposals(context_, job, stream_);
    }

    void filter_all(const Unproven& lists)
    {
        const Plan plan = make_plan(context_, rows_, std::min(answer_.k, rows_.rows), count_);
        const std::uint32_t step = slab_slots(plan.capacity);
        Pace pace(stream_);
        for (std::uint32_t first = 0; first < count_; first += step) {
            const std::uint32_t width = std::min(step, count_ - first);
            pace.step(double{1} * width * plan.capacity * rows_.dimensions);
            const Slab slab = make_slab(width, plan.capacity, plan.sample / maxima_group);
            prepare_queries(rows_.scored, queries_, nullptr, first, slab.queries, stream_);
            passes().propose(slab, plan);
            rank(slab, slab.proposals(plan), nullptr, first, lists);
        }
    }

    void filter_again(const Unproven& failed, std::uint32_t count, const Unproven& lists)
    {
        const std::uint32_t refilter_capacity = largest_capacity(context_);
        const std::uint32_t step = slab_slots(refilter_capacity);
        Pace pace(stream_);
        for (std::uint32_t first = 0; first < count; first += step) {
            const std::uint32_t width = std::min(step, count - first);
            pace.step(double{1} * width * refilter_capacity * rows_.dimensions);
            const Slab slab = make_slab(width, refilter_capacity, 0);
            const std::uint32_t* ids = failed.filter + first;
            prepare_queries(rows_.scored, queries_, ids, 0, slab.queries, stream_);
            take_thresholds(slab.queries, failed.thresholds + first, slab.thresholds, stream_);
            const Proposals proposals = slab.proposals(refilter_capacity);
            passes().filter(slab, proposals, {0, rows_.scored.padded_positions});
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
        job.dead = dead_.bits;
        job.answer = answer_;
        Pace pace(stream_);
        for (const std::uint32_t id : ids) {
            pace.step(double{1} * rows_.rows * rows_.dimensions);
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
    DeadRows dead_;
    ExactAnswer answer_;
    const CancelToken* cancel_;
    cudaStream_t stream_;
    const float* penalties_;
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
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
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
                    const DeadRows& dead, const ExactAnswer& answer, ExactStatistics& statistics,
                    const CancelToken* cancel, cudaStream_t stream)
{
    if (count == 0) return;
    Search(context, rows, queries, count, dead, answer, cancel, stream).run(statistics);
}

}  // namespace pgwarp::cuda
