#include "methods/ivfadc/searcher.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "methods/ordered_scan.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t rank_grain = 8;  // candidates that a thread ranks at a time
constexpr std::size_t prefetched = 3;  // candidates prefetched while one is ranked
constexpr double fan_out_cost = 2e6;   // float operations from which one query is spread over threads

std::size_t rows_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* lists = find_array(arrays, array_list_of_row);
    return lists != nullptr ? lists->rows : 0;
}

// Lists as stored; an index without rows has none of the arrays.
std::size_t lists_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* centroids = find_array(arrays, array_centroids);
    return centroids != nullptr ? centroids->rows : 1;
}

std::unique_ptr<RowStore> make_store(Metric metric, std::size_t dimensions, std::size_t rows, const IvfOptions& options,
                                     std::span<const float> centroids, const ByteLists& bytes)
{
    const VectorForm form = form_of(options);
    if (form != VectorForm::none) return make_vector_store(metric, dimensions, rows, form);
    if (options.byte_codes) return make_byte_store(metric, dimensions, centroids, bytes);
    return make_code_store(metric, dimensions, rows, options, centroids);
}

}  // namespace

IvfadcSearcher::IvfadcSearcher(const IndexShape& shape, const ParameterList& options,
                               std::span<const ArrayShape> arrays)
    : metric_(static_cast<Metric>(shape.metric)),
      dimensions_(shape.dimensions),
      rows_(rows_of(arrays)),
      options_(IvfOptions::resolve(options, rows_, shape.dimensions)),
      centroids_(lists_of(arrays) * shape.dimensions),
      lists_(lists_of(arrays), rows_),
      keeps_positions_(shape.attribute_count > 0)
{
    if (rows_ > 0) require_ivfadc_arrays(arrays, options_, rows_, lists_of(arrays), dimensions_);
    store_ = make_store(metric_, dimensions_, rows_, options_, centroids_, proposer_.rows());
    values_by_list_ = !options_.keeps_half() && !options_.keeps_full();
    if (options_.byte_codes) stored_bytes_ = std::make_unique<StoredBytes>(metric_, dimensions_, rows_);
}

std::size_t IvfadcSearcher::probes_of(const SearchBatch& batch) const
{
    std::int64_t probes = batch.settings.get("probes", 0);
    if (probes <= 0) probes = batch.effort;
    // An index too small to be calibrated is searched whole.
    if (probes <= 0) probes = static_cast<std::int64_t>(lists_.lists());
    return std::min<std::size_t>(static_cast<std::size_t>(probes), lists_.lists());
}

// Bytes propose with a small error: for few neighbours several times as many are ranked by their values.
std::size_t IvfadcSearcher::refine_factor_of(const SearchBatch& batch) const
{
    const std::int64_t asked = batch.settings.get("refine_factor", 0);
    if (asked > 0) return static_cast<std::size_t>(asked);
    if (!has_proposer_) return 1;
    return batch.k <= 20 ? 3 : 2;
}

// Returns the cost of one query, in float operations.
double IvfadcSearcher::cost_of(std::size_t probes) const
{
    const double width = static_cast<double>(dimensions_);
    const double lists = static_cast<double>(lists_.lists());
    const double probed = static_cast<double>(probes);
    const double scanned = static_cast<double>(rows_) * probed / lists;
    if (!has_proposer_) return 2 * (lists + scanned) * width;
    // Bytes are scored about four times as fast as floats. A list costs a block at least, and preparing the query for
    // it costs another.
    const double block = static_cast<double>(ByteLists::block);
    return 0.5 * (lists + std::max(scanned, probed * block) + probed * block) * width;
}

// Returns, for each number of probes, the nearest lists, nearest first. The lists of fewer probes need not all be among
// those of more, because rounding may put a centroid on the wrong side of the last list.
std::vector<std::vector<Candidate>> IvfadcSearcher::nearest_lists(const float* query,
                                                                  std::span<const std::size_t> probes,
                                                                  ThreadPool& pool) const
{
    std::vector<std::vector<Candidate>> nearest;
    if (has_proposer_) {
        proposer_.nearest_lists(query, probes, pool, nearest);
        return nearest;
    }
    thread_local std::vector<float> own_distance;
    std::vector<float>& distance = own_distance;  // of this thread, for the others
    const std::size_t lists = lists_.lists();
    distance.resize(lists);
    pool.parallel_for(lists, items_at_a_time(dimensions_ * sizeof(float)), [&](std::size_t begin, std::size_t end) {
        scores(coarse_metric(metric_), query, centroids_.data() + begin * dimensions_, end - begin, dimensions_,
               distance.data() + begin);
    });
    for (const std::size_t some : probes) {
        TopK best(some);
        best.push_block(distance.data(), lists, 0);
        nearest.push_back(best.take_sorted());
    }
    return nearest;
}

// Returns the reach of a query on the proposer's scale.
double IvfadcSearcher::reach_of(const SearchBatch& batch, std::size_t number) const
{
    if (batch.reach.empty() || !batch.proposals_will_do) return HUGE_VAL;
    const double reach = batch.reach[number];
    switch (metric_) {
        case Metric::l2:
            return reach * reach;
        case Metric::cosine:
            return reach - 1;
        default:
            return reach;
    }
}

// Returns the room for the scores of a list, which come in whole blocks.
std::size_t IvfadcSearcher::room_of(std::uint32_t list) const
{
    const std::size_t rows = lists_.end(list) - lists_.begin(list);
    return (rows + ByteLists::block - 1) / ByteLists::block * ByteLists::block;
}

// Scores a list's rows. Returns a limit: only rows with a score below it are within reach.
float IvfadcSearcher::score_list(const PreparedQuery& query, double reach, const Candidate& probe, float* out) const
{
    if (has_proposer_) return proposer_.score(query.query, probe.row, reach, out);
    const std::size_t begin = lists_.begin(probe.row);
    store_->scores(query, probe.row, probe.score, begin, lists_.end(probe.row) - begin, out);
    return std::numeric_limits<float>::infinity();
}

// Offers the positions of a list's rows that the query doesn't leave out.
void IvfadcSearcher::offer_list(const SearchBatch& batch, std::size_t number, std::uint32_t list, const float* scores,
                                float limit, TopK& best) const
{
    thread_local std::vector<std::uint32_t> below;
    const std::uint32_t begin = lists_.begin(list);
    const std::size_t rows = lists_.end(list) - begin;
    below.resize(std::max(below.size(), rows + ByteLists::block));
    const std::size_t found = select_below(scores, rows, std::min(limit, best.threshold()), below.data());
    for (std::size_t i = 0; i < found; ++i) {
        const std::uint32_t position = begin + below[i];
        if (!batch.leaves_out(number, lists_.row_at(position))) best.push(scores[below[i]], position);
    }
}

// Scores and offers the lists one after the other. Candidates carry positions.
void IvfadcSearcher::scan_lists(const SearchBatch& batch, const PreparedQuery& query, double reach,
                                std::span<const Candidate> probes, std::span<Scan> scans) const
{
    thread_local std::vector<float> scores;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        const std::uint32_t list = probes[i].row;
        if (batch.cancel != nullptr && i % 64 == 63) batch.cancel->check();
        if (has_proposer_ && batch.proposals_will_do && i + 1 < probes.size()) proposer_.prefetch(probes[i + 1].row);
        if (lists_.begin(list) == lists_.end(list)) continue;
        scores.resize(std::max(scores.size(), room_of(list)));
        const float limit = score_list(query, reach, probes[i], scores.data());
        for (Scan& scan : scans)
            if (i < scan.probes) offer_list(batch, 0, list, scores.data(), limit, scan.best);
    }
}

// Several threads score the rows. The caller offers them in the order of scan_lists(), because of equal scores the
// first are kept.
void IvfadcSearcher::scan_lists_together(const SearchBatch& batch, const PreparedQuery& query, double reach,
                                         std::span<const Candidate> probes, std::span<Scan> scans,
                                         ThreadPool& pool) const
{
    std::vector<std::size_t> first(probes.size() + 1);
    for (std::size_t i = 0; i < probes.size(); ++i) first[i + 1] = first[i] + room_of(probes[i].row);
    const auto scores = std::make_unique_for_overwrite<float[]>(first.back());
    std::vector<float> limits(probes.size());
    const std::size_t grain = std::max<std::size_t>(1, probes.size() / (4 * pool.threads()));
    pool.parallel_for(probes.size(), grain, [&](std::size_t begin, std::size_t end) {
        batch.check_cancel();
        for (std::size_t i = begin; i < end; ++i) {
            if (first[i] < first[i + 1]) limits[i] = score_list(query, reach, probes[i], scores.get() + first[i]);
        }
    });
    for (std::size_t i = 0; i < probes.size(); ++i) {
        for (Scan& scan : scans)
            if (i < scan.probes) offer_list(batch, 0, probes[i].row, scores.get() + first[i], limits[i], scan.best);
    }
}

// Returns the number of rows that a search ranks. Scores in single precision may swap near ties, so it is a few more
// than k.
std::size_t IvfadcSearcher::candidates_of(const SearchBatch& batch) const
{
    const std::size_t k = std::min<std::size_t>(batch.k, rows_);
    if (batch.proposals_will_do) return k;
    return std::min<std::size_t>(rows_, std::max<std::size_t>(k * refine_factor_of(batch), k + 8 + k / 8));
}

std::size_t IvfadcSearcher::list_at(std::size_t position) const
{
    std::size_t low = 0;
    std::size_t high = lists_.lists();
    while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        (lists_.begin(middle) <= position ? low : high) = middle;
    }
    return low;
}

// The k nearest of the candidates by their values.
std::vector<RowResult> IvfadcSearcher::rank(const PreparedQuery& query, const std::vector<Candidate>& candidates,
                                            std::size_t k, ThreadPool& pool) const
{
    std::vector<RowResult> results(candidates.size());
    pool.parallel_for(candidates.size(), rank_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (i + prefetched < candidates.size()) store_->prefetch(candidates[i + prefetched].row);
            const std::uint32_t position = candidates[i].row;
            const std::size_t list = values_by_list_ ? list_at(position) : 0;
            results[i] = {store_->value(query, list, position), lists_.row_at(position)};
        }
    });
    FirstRows first(k);
    for (const RowResult& result : results) first.offer(result);
    return first.take_sorted();
}

// Without a filter.
std::vector<RowResult> IvfadcSearcher::search_one(const SearchBatch& batch, std::size_t number, ThreadPool& pool) const
{
    const float* query = batch.queries.data() + number * dimensions_;
    std::vector<Candidate> own_lists;
    std::vector<Candidate>& probed = batch.probed != nullptr ? (*batch.probed)[number] : own_lists;
    const PreparedQuery prepared = store_->prepare(query);
    const double reach = reach_of(batch, number);
    const std::size_t k = std::min<std::size_t>(batch.k, rows_);
    std::vector<Candidate> candidates;
    ThreadPool* scanning = nullptr;
    for (std::size_t probes = probes_of(batch);; probes = std::min(4 * probes, lists_.lists())) {
        const bool alone = batch.count > 1 || cost_of(probes) < fan_out_cost;
        scanning = alone ? &caller_alone() : &pool;
        if (probed.size() < probes) probed = std::move(nearest_lists(query, {&probes, 1}, *scanning).front());
        Scan scan{probed.size(), TopK(candidates_of(batch))};
        if (scanning->threads() == 1) {
            scan_lists(batch, prepared, reach, probed, {&scan, 1});
        } else {
            scan_lists_together(batch, prepared, reach, probed, {&scan, 1}, *scanning);
        }
        candidates = scan.best.take_sorted();
        if (candidates.size() >= k || batch.proposals_will_do) break;
        if (probes < lists_.lists()) continue;
        // All lists were probed: scores beyond float's range may have hidden rows, which values do not.
        SearchBatch one = batch;
        one.queries = std::span(query, dimensions_);
        std::vector<RowResult> all;
        search_exact(one, -HUGE_VAL, 0, all, pool);
        return all;
    }
    if (batch.proposals_will_do) {
        std::vector<RowResult> proposed;
        for (const Candidate& candidate : candidates)
            proposed.push_back({candidate.score, lists_.row_at(candidate.row)});
        return proposed;
    }
    return rank(prepared, candidates, batch.k, *scanning);
}

void IvfadcSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                            ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0) return;
    // A loop of one runs its body outside the pool, so that the query's own loops may use the threads.
    SearchBatch unfiltered = batch;
    unfiltered.filters = {};
    for_queries(batch, pool, [&](std::size_t q) {
        const bool filtered = !batch.filters.empty() && !batch.filters[q].passes_all();
        results[q] = filtered ? search_filtered(batch, q) : search_one(unfiltered, q, pool);
    });
}

// Searches all rungs of one query. Each probes the lists of the rung before and then more, so every list is scored
// once.
void IvfadcSearcher::search_one_ladder(std::span<const SearchBatch> rungs, std::size_t number, RungResults& results,
                                       ThreadPool& pool) const
{
    const float* query = rungs[0].queries.data() + number * dimensions_;
    const PreparedQuery prepared = store_->prepare(query);
    std::vector<std::size_t> probes;
    for (const SearchBatch& rung : rungs) probes.push_back(probes_of(rung));
    const bool alone = rungs[0].count > 1 || cost_of(*std::max_element(probes.begin(), probes.end())) < fan_out_cost;
    ThreadPool& scanning = alone ? caller_alone() : pool;
    std::vector<Candidate> probed;
    std::vector<Scan> scans;
    for (const std::vector<Candidate>& lists : nearest_lists(query, probes, scanning)) {
        const std::size_t before = probed.size();
        for (const Candidate& list : lists) {
            const auto known = std::span(probed).first(before);
            const auto same = [&](const Candidate& other) { return other.row == list.row; };
            if (std::none_of(known.begin(), known.end(), same)) probed.push_back(list);
        }
        scans.push_back({probed.size(), TopK(candidates_of(rungs[scans.size()]))});
    }
    if (scanning.threads() == 1) {
        scan_lists(rungs[0], prepared, HUGE_VAL, probed, scans);
    } else {
        scan_lists_together(rungs[0], prepared, HUGE_VAL, probed, scans, scanning);
    }
    for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
        const std::vector<Candidate> candidates = scans[rung].best.take_sorted();
        const bool enough = candidates.size() >= std::min<std::size_t>(rungs[rung].k, rows_);
        results[rung][number] =
            enough ? rank(prepared, candidates, rungs[rung].k, scanning) : search_one(rungs[rung], number, pool);
    }
}

void IvfadcSearcher::search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                                  ThreadPool& pool) const
{
    if (rungs.size() == 1 || rows_ == 0 || batch.proposals_will_do || batch.probed != nullptr || !batch.filters.empty())
        return Searcher::search_rungs(batch, rungs, results, pool);
    const std::vector<SearchBatch> batches = batches_of(batch, rungs);
    results.assign(rungs.size(), std::vector<std::vector<RowResult>>(batch.count));
    for_queries(batch, pool, [&](std::size_t q) { search_one_ladder(batches, q, results, pool); });
}

void IvfadcSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                  std::vector<RowResult>& results, ThreadPool& pool) const
{
    const PreparedQuery prepared = store_->prepare(batch.queries.data());
    results = scan_in_order(
        rows_, batch, after_distance, after_row, [this](std::size_t position) { return lists_.row_at(position); },
        [&](std::size_t position) { return store_->value(prepared, list_at(position), position); }, pool);
}

std::unique_ptr<Searcher> make_ivfadc_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays)
{
    return std::make_unique<IvfadcSearcher>(shape, options, arrays);
}

}  // namespace pgwarp
