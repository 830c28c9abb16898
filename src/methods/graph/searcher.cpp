// The searcher of graph on the CPU, and its form over the arrays of a builder.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "methods/arrays.h"
#include "methods/certain_rows.h"
#include "methods/graph/edge_changes.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/kept_array.h"
#include "methods/graph/lent_searcher.h"
#include "methods/graph/stored_rows.h"
#include "methods/graph/traversal.h"
#include "methods/ordered_scan.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t default_ef = 64;  // of an index without calibration
constexpr std::size_t worth_comparing =
    8;  // live rows are all compared up to this multiple of the rows that a search compared
constexpr std::size_t most_for_passing = 2;  // rows that a filtered search compares, for each that passes
constexpr double traversal_overhead = 4;     // times the comparisons that a filtered search makes
constexpr double slow_kept = 400;            // rows in order that double the time of each
constexpr double unseen_share = 0.4;         // about the share of a row's neighbours that were not visited before

struct DeadCount {
    std::size_t linked = 0;  // dead rows that searches pass through
    std::size_t alive = 0;   // live rows
};

class GraphSearcher : public Searcher
{
public:
    GraphSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays);

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_seeds) {
            write_piece(std::span<std::uint32_t>(seeds_), offset, bytes);
        } else if (array == array_neighbours) {
            write_piece(neighbours_.room(rows_ * options_.degree), offset, bytes);
        } else if (array == array_edge_changes) {
            write_piece(std::span<EdgeChange>(changes_), offset, bytes);
        } else {
            // Arrays that the CPU does not use are ignored.
            stored_->write(array, offset, bytes);
        }
    }
    void lend(const LentArrays& lent);
    void finish_load(ThreadPool& pool) override;
    std::uint64_t memory_bytes() const override
    {
        return stored_->memory_bytes() + neighbours_.memory_bytes() + seeds_.size() * sizeof(std::uint32_t);
    }
    ResultKind result_kind() const override { return stored_->result_kind(); }
    bool values_are_distances() const override { return options_.vectors != GraphVectors::bits; }
    double bound_width(const float* query) const override { return stored_->bound_width(query); }
    double search_cost(const SearchBatch& batch) const override;
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("ef_search", static_cast<std::int64_t>(ef_of(batch)));
        return settings;
    }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                      ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override;
    bool takes_filters() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double pass_rate) const override;
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override;

private:
    void find_unlinked();
    std::size_t ef_of(const SearchBatch& batch) const;
    DeadCount count_dead(RowBitmap dead) const;
    bool few_are_alive(const SearchBatch& batch, const DeadCount& dead) const;
    void compare_all(const SearchBatch& batch, const GraphQuery& query, std::vector<Candidate>& found) const;
    bool find(const SearchBatch& batch, std::size_t number, const DeadCount& dead, const GraphQuery& query,
              std::vector<Candidate>& found) const;
    void take_best(const TraversalScratch& scratch, std::vector<Candidate>& found) const;
    std::vector<RowResult> search_one(const SearchBatch& batch, std::size_t number, const DeadCount& dead) const;
    void search_one_ladder(std::span<const SearchBatch> rungs, std::size_t number, RungResults& results) const;

    mutable OfBitmap<DeadCount> dead_;
    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_ = 0;
    GraphOptions options_;
    bool is_part_;  // of delta rows: few of its nearest are among the nearest of the whole index
    std::vector<std::uint32_t> seeds_;
    KeptArray<std::uint32_t> neighbours_;
    EdgeView edges_;
    std::vector<std::uint64_t> unlinked_;  // bitmap of rows without edges
    std::vector<EdgeChange> changes_;      // during loading
    std::unique_ptr<StoredRows> stored_;
};

GraphSearcher::GraphSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
    : metric_(static_cast<Metric>(shape.metric)),
      dimensions_(shape.dimensions),
      is_part_(options.get(option_part, 0) != 0)
{
    const ArrayShape* neighbours = find_array(arrays, array_neighbours);
    rows_ = neighbours != nullptr ? neighbours->rows : 0;
    options_ = GraphOptions::resolve(options, dimensions_);
    stored_ = make_stored_rows(metric_, dimensions_, rows_, options_);
    if (rows_ == 0) return;
    require_graph_arrays(arrays, shape, options_);
    seeds_.resize(find_array(arrays, array_seeds)->rows);
    edges_.degree = options_.degree;
    if (const ArrayShape* changes = find_array(arrays, array_edge_changes)) changes_.resize(changes->rows);
}

void GraphSearcher::lend(const LentArrays& lent)
{
    neighbours_.borrow(lent.edges.neighbours);
    stored_->lend(lent.vectors);
    stored_->lend(lent.halves);
    stored_->lend(lent.bits);
}

void GraphSearcher::finish_load(ThreadPool& pool)
{
    if (rows_ == 0) return;
    if (!changes_.empty()) apply_changes(neighbours_.room(rows_ * options_.degree), options_.degree, changes_);
    changes_ = {};
    edges_.neighbours = neighbours_.all(rows_ * options_.degree);
    find_unlinked();
    const auto exists = [this](std::uint32_t row) { return row < rows_; };
    if (!std::all_of(seeds_.begin(), seeds_.end(), exists)) throw BadRequest("a seed is no row of its index");
    pool.parallel_for(rows_, 65536, [&](std::size_t begin, std::size_t end) {
        const auto known = [&](std::uint32_t row) { return row == no_neighbour || exists(row); };
        const std::uint32_t* first = edges_.neighbours.data() + begin * edges_.degree;
        if (!std::all_of(first, first + (end - begin) * edges_.degree, known))
            throw BadRequest("a neighbour is no row of its index");
    });
    stored_->finish_load();
    stored_->prepare_searches(seeds_, edges_, pool);
}

// Finds the rows that a merge removed from the graph. All others have edges, except the only row of an index.
void GraphSearcher::find_unlinked()
{
    unlinked_.assign((rows_ + 63) / 64, 0);
    for (std::size_t row = 0; row < rows_; ++row) {
        const bool unlinked = edges_.neighbours[row * edges_.degree] == no_neighbour && rows_ > 1;
        unlinked_[row / 64] |= std::uint64_t{unlinked} << (row % 64);
    }
}

std::size_t GraphSearcher::ef_of(const SearchBatch& batch) const
{
    std::int64_t ef = batch.settings.get("ef_search", 0);
    if (ef <= 0) ef = batch.effort;
    if (ef <= 0) ef = default_ef;
    if (is_part_) ef /= 2;
    return std::clamp<std::size_t>(static_cast<std::size_t>(ef), std::max<std::size_t>(batch.k, 1),
                                   std::max<std::size_t>(rows_, batch.k));
}

double GraphSearcher::search_cost(const SearchBatch& batch) const
{
    const double unseen = unseen_share * static_cast<double>(options_.degree);
    const double compared = static_cast<double>(seeds_.size()) + unseen * static_cast<double>(ef_of(batch));
    return 2 * static_cast<double>(batch.count) * std::min(compared, static_cast<double>(rows_)) *
           static_cast<double>(dimensions_);
}

DeadCount GraphSearcher::count_dead(RowBitmap dead) const
{
    if (dead.empty()) return {0, rows_};
    std::size_t all = 0;
    std::size_t linked = 0;
    for (std::size_t word = 0; word < unlinked_.size(); ++word) {
        const std::size_t rows = rows_ - 64 * word;
        const std::uint64_t bits = rows < 64 ? dead[word] & ((std::uint64_t{1} << rows) - 1) : dead[word];
        all += static_cast<std::size_t>(std::popcount(bits));
        linked += static_cast<std::size_t>(std::popcount(bits & ~unlinked_[word]));
    }
    return {linked, rows_ - all};
}

// A search passes through dead rows until it has found enough live ones: the fewer are alive, the more rows it
// compares, until comparing the live rows alone takes no longer.
bool GraphSearcher::few_are_alive(const SearchBatch& batch, const DeadCount& dead) const
{
    if (dead.linked == 0) return false;
    const auto alive = static_cast<double>(dead.alive);
    const double expanded =
        static_cast<double>(ef_of(batch)) * (alive + static_cast<double>(dead.linked)) / std::max(alive, 1.0);
    return alive <= static_cast<double>(seeds_.size()) + unseen_share * static_cast<double>(options_.degree) * expanded;
}

void GraphSearcher::compare_all(const SearchBatch& batch, const GraphQuery& query, std::vector<Candidate>& found) const
{
    constexpr std::size_t step = 512;
    constexpr float most = std::numeric_limits<float>::max();  // also for infinities and NaN
    TopK best(ef_of(batch));
    std::vector<std::uint32_t> rows;
    std::vector<float> compared(step);
    const auto compare = [&] {
        batch.check_cancel();
        stored_->scores(query, rows, compared.data());
        for (std::size_t i = 0; i < rows.size(); ++i) best.push(compared[i] < most ? compared[i] : most, rows[i]);
        rows.clear();
    };
    for (std::uint32_t row = 0; row < rows_; ++row) {
        if (row % 64 == 0 && batch.dead[row / 64] == ~std::uint64_t{0}) {
            row += 63;
            continue;
        }
        if (!bit_is_set(batch.dead, row)) rows.push_back(row);
        if (rows.size() == step) compare();
    }
    compare();
    found = best.take_sorted();
}

void GraphSearcher::take_best(const TraversalScratch& scratch, std::vector<Candidate>& found) const
{
    for (const BestRows::Entry& entry : scratch.best.entries())
        if (!entry.dead) found.push_back({entry.score, entry.row});
}

// Finds the candidates of a query. False: more rows would be compared than pass its filter.
bool GraphSearcher::find(const SearchBatch& batch, std::size_t number, const DeadCount& dead, const GraphQuery& query,
                         std::vector<Candidate>& found) const
{
    thread_local TraversalScratch scratch;
    const DeadRows dead_rows{batch.dead, dead.linked, dead.alive};
    const StoredScorer scorer(*stored_, query);
    if (!batch.filters.empty() && !batch.filters[number].passes_all()) {
        const RowFilter& filter = batch.filters[number];
        const std::size_t most = std::max<std::size_t>(filter.passing, seeds_.size());
        const double rate = static_cast<double>(filter.passing) / static_cast<double>(rows_);
        traverse_filtered(edges_, seeds_, ef_of(batch), dead_rows, {&filter, batch.k, most_for_passing * most, rate},
                          scorer, batch.cancel, scratch);
        take_best(scratch, found);
        return scratch.finished;
    }
    if (few_are_alive(batch, dead)) {
        compare_all(batch, query, found);
        return true;
    }
    traverse(edges_, seeds_, ef_of(batch), dead_rows, scorer, batch.cancel, scratch);
    take_best(scratch, found);
    // Live rows behind a region of dead rows may lie in any direction.
    if (scratch.best.excess_dead() > ef_of(batch) && dead.alive <= worth_comparing * scratch.compared)
        compare_all(batch, query, found);
    return true;
}

std::vector<RowResult> GraphSearcher::search_one(const SearchBatch& batch, std::size_t number,
                                                 const DeadCount& dead) const
{
    thread_local GraphQuery query;
    thread_local std::vector<Candidate> found;
    stored_->prepare(batch.queries.data() + number * dimensions_, query);
    found.clear();
    if (!find(batch, number, dead, query, found)) return {};
    if (batch.proposals_will_do) {
        std::vector<RowResult> proposed;
        for (const Candidate& candidate : std::span(found).first(std::min<std::size_t>(found.size(), batch.k)))
            proposed.push_back({candidate.score, candidate.row});
        return proposed;
    }
    FirstRows first(batch.k);
    for (const Candidate& candidate : found) first.offer({stored_->value(query, candidate.row), candidate.row});
    return first.take_sorted();
}

void GraphSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                           ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0) return;
    const OfBitmap<DeadCount>::Use counted = dead_.get(batch.dead_version, [&] { return count_dead(batch.dead); });
    const DeadCount& dead = *counted;
    if (dead.alive == 0) return;
    for_queries(batch, pool, [&](std::size_t q) { results[q] = search_one(batch, q, dead); });
}

// Searches all rungs of one query in one traversal. The value of a row is computed once.
void GraphSearcher::search_one_ladder(std::span<const SearchBatch> rungs, std::size_t number,
                                      RungResults& results) const
{
    thread_local TraversalScratch scratch;
    thread_local GraphQuery query;
    thread_local std::vector<RowResult> valued;  // in order of rows
    stored_->prepare(rungs[0].queries.data() + number * dimensions_, query);
    std::size_t efs[max_rungs] = {};
    for (std::size_t rung = 0; rung < rungs.size(); ++rung)
        efs[rung] = std::max(ef_of(rungs[rung]), rung > 0 ? efs[rung - 1] : 0);
    valued.clear();
    const auto by_row = [](const RowResult& a, const RowResult& b) { return a.row < b.row; };
    const auto found = [&](std::size_t rung) {
        const std::vector<BestRows::Entry>& entries = scratch.best.entries();
        const auto known = static_cast<std::ptrdiff_t>(valued.size());
        FirstRows first(rungs[rung].k);
        for (std::size_t i = 0; i < std::min(efs[rung], entries.size()); ++i) {
            RowResult result{0, entries[i].row};
            const auto before = std::lower_bound(valued.begin(), valued.begin() + known, result, by_row);
            if (before != valued.begin() + known && before->row == result.row) {
                result = *before;
            } else {
                result.distance = stored_->value(query, result.row);
                valued.push_back(result);
            }
            first.offer(result);
        }
        if (rung + 1 < rungs.size()) std::sort(valued.begin(), valued.end(), by_row);
        results[rung][number] = first.take_sorted();
    };
    traverse_rungs(edges_, seeds_, {efs, rungs.size()}, StoredScorer(*stored_, query), rungs[0].cancel, scratch, found);
}

void GraphSearcher::search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                                 ThreadPool& pool) const
{
    if (rungs.size() == 1 || rows_ == 0 || batch.proposals_will_do || !batch.filters.empty())
        return Searcher::search_rungs(batch, rungs, results, pool);
    // Among dead rows a search keeps more rows than its effort, by a number that depends on all rows seen.
    const OfBitmap<DeadCount>::Use dead = dead_.get(batch.dead_version, [&] { return count_dead(batch.dead); });
    if (dead->linked > 0 || dead->alive == 0) return Searcher::search_rungs(batch, rungs, results, pool);
    const std::vector<SearchBatch> batches = batches_of(batch, rungs);
    results.assign(rungs.size(), std::vector<std::vector<RowResult>>(batch.count));
    for_queries(batch, pool, [&](std::size_t q) { search_one_ladder(batches, q, results); });
}

void GraphSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                 std::vector<RowResult>& results, ThreadPool& pool) const
{
    GraphQuery query;
    if (rows_ > 0) stored_->prepare(batch.queries.data(), query);
    results = scan_in_order(
        rows_, batch, after_distance, after_row, row_itself,
        [&](std::size_t row) { return stored_->value(query, static_cast<std::uint32_t>(row)); }, pool);
}

// All rows that are passed through are compared, and kept in order: the more, the longer each takes.
double GraphSearcher::filtered_cost(const SearchBatch& batch, double pass_rate) const
{
    const auto ef = static_cast<double>(ef_of(batch));
    const double kept = filtered_limit(ef, std::min(ef, static_cast<double>(batch.k)), pass_rate) / pass_rate;
    const double unseen = unseen_share * static_cast<double>(options_.degree);
    const double compared = std::min(static_cast<double>(seeds_.size()) + unseen * kept, static_cast<double>(rows_));
    return traversal_overhead * (1 + kept / slow_kept) * 2 * compared * static_cast<double>(dimensions_);
}

void GraphSearcher::search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                 std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (batch.k == 0) return;
    for_queries(batch, pool, [&](std::size_t q) {
        GraphQuery query;
        stored_->prepare(batch.queries.data() + q * dimensions_, query);
        const auto value_of = [&](std::uint32_t row) { return stored_->value(query, row); };
        const auto score_some = [&](RowList some, float* out) { stored_->scores(query, some, out); };
        const std::size_t valued = std::max(ef_of(batch), valued_certain_rows(batch.k));
        RowList list = rows[q];
        std::vector<std::uint32_t> proposed;
        if (list.size() > valued && after.distance == before_all.distance) {
            proposed = rows_of(propose_certain_rows(batch, list, valued, score_some, pool));
            list = proposed;
        }
        results[q] = value_certain_rows(batch, list, after, value_of, pool);
    });
}

}  // namespace

std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const ParameterList& options,
                                                   std::span<const ArrayShape> arrays, const ReadArray& read,
                                                   const LentArrays& lent, ThreadPool& pool)
{
    auto searcher = std::make_unique<GraphSearcher>(shape, options, arrays);
    searcher->lend(lent);
    for (const ArrayShape& array : arrays) {
        if (std::string(array.name) == array_neighbours) break;  // the large arrays are lent
        std::vector<std::byte> bytes(array.bytes());
        read(array.name, bytes);
        searcher->write(array.name, 0, bytes);
    }
    searcher->finish_load(pool);
    return searcher;
}

std::unique_ptr<Searcher> make_lent_graph_searcher(const IndexShape& shape, const Builder& builder,
                                                   const LentArrays& lent, ThreadPool& pool)
{
    const std::vector<ArrayShape> arrays = builder.arrays();
    return make_lent_graph_searcher(
        shape, builder.effective_options(), arrays,
        [&](const std::string& name, std::span<std::byte> out) { builder.read(name, 0, out); }, lent, pool);
}

std::unique_ptr<Searcher> make_graph_searcher(const IndexShape& shape, const ParameterList& options,
                                              std::span<const ArrayShape> arrays)
{
    return std::make_unique<GraphSearcher>(shape, options, arrays);
}

}  // namespace pgwarp
