#include <algorithm>
#include <cmath>

#include "index/arrays.h"
#include "index/graph/edges.h"
#include "index/graph/graph.h"
#include "index/graph/stored_rows.h"
#include "index/graph/traversal.h"
#include "index/ordered_scan.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t default_ef = 64;  // of an index without calibration

class GraphSearcher : public Searcher
{
public:
    GraphSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays);

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_seeds) {
            write_piece(std::span<std::uint32_t>(seeds_), offset, bytes);
        } else if (array == array_neighbours) {
            write_piece(std::span<std::uint32_t>(edges_.neighbours), offset, bytes);
        } else {
            // What this device has no use for is left out.
            stored_->write(array, offset, bytes);
        }
    }
    void finish_load(ThreadPool& pool) override;
    std::uint64_t memory_bytes() const override
    {
        return stored_->memory_bytes() + (seeds_.size() + edges_.neighbours.size()) * sizeof(std::uint32_t);
    }
    ResultKind result_kind() const override { return stored_->result_kind(); }
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
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override;

private:
    std::size_t ef_of(const SearchBatch& batch) const;
    std::vector<RowResult> search_one(const SearchBatch& batch, std::size_t number) const;

    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_ = 0;
    GraphOptions options_;
    std::vector<std::uint32_t> seeds_;
    GraphEdges edges_;
    std::unique_ptr<StoredRows> stored_;
};

GraphSearcher::GraphSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
    : metric_(static_cast<Metric>(shape.metric)), dimensions_(shape.dimensions)
{
    const ArrayShape* neighbours = find_array(arrays, array_neighbours);
    rows_ = neighbours != nullptr ? neighbours->rows : 0;
    options_ = GraphOptions::resolve(options, rows_, dimensions_);
    stored_ = make_stored_rows(metric_, dimensions_, rows_, options_, arrays);
    if (rows_ == 0) return;
    require_array(arrays, array_neighbours, ArrayType::u32, rows_, options_.degree);
    const ArrayShape* seeds = find_array(arrays, array_seeds);
    if (seeds == nullptr || seeds->rows == 0) throw BadRequest("array \"seeds\" is missing");
    require_array(arrays, array_seeds, ArrayType::u32, seeds->rows, 1);
    seeds_.resize(seeds->rows);
    edges_.degree = options_.degree;
    edges_.neighbours.resize(rows_ * options_.degree);
}

void GraphSearcher::finish_load(ThreadPool& pool)
{
    if (rows_ == 0) return;
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

std::size_t GraphSearcher::ef_of(const SearchBatch& batch) const
{
    std::int64_t ef = batch.settings.get("ef_search", 0);
    if (ef <= 0) ef = batch.effort;
    if (ef <= 0) ef = default_ef;
    return std::clamp<std::size_t>(static_cast<std::size_t>(ef), std::max<std::size_t>(batch.k, 1),
                                   std::max<std::size_t>(rows_, batch.k));
}

double GraphSearcher::search_cost(const SearchBatch& batch) const
{
    // Each row kept has about so many neighbours that were not seen before.
    const double fresh = 0.4 * static_cast<double>(options_.degree);
    const double compared = static_cast<double>(seeds_.size()) + fresh * static_cast<double>(ef_of(batch));
    return 2 * static_cast<double>(batch.count) * std::min(compared, static_cast<double>(rows_)) *
           static_cast<double>(dimensions_);
}

std::vector<RowResult> GraphSearcher::search_one(const SearchBatch& batch, std::size_t number) const
{
    thread_local TraversalScratch scratch;
    thread_local GraphQuery query;
    stored_->prepare(batch.queries.data() + number * dimensions_, query);
    traverse(edges_, seeds_, ef_of(batch), batch.dead, StoredScorer(*stored_, query), batch.cancel, scratch);
    if (batch.proposals_will_do) {
        std::vector<RowResult> proposed;
        for (const BestRows::Entry& entry : scratch.best.entries()) {
            if (!entry.dead && proposed.size() < batch.k) proposed.push_back({entry.score, entry.row});
        }
        return proposed;
    }
    FirstRows first(batch.k);
    for (const BestRows::Entry& entry : scratch.best.entries()) {
        if (!entry.dead) first.offer({stored_->value(query, entry.row), entry.row});
    }
    return first.take_sorted();
}

void GraphSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                           ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0) return;
    pool.parallel_for(batch.count, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            if (batch.cancel != nullptr) batch.cancel->check();
            results[q] = search_one(batch, q);
        }
    });
}

void GraphSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                 std::vector<RowResult>& results, ThreadPool& pool) const
{
    GraphQuery query;
    if (rows_ > 0) stored_->prepare(batch.queries.data(), query);
    results = scan_in_order(
        rows_, batch, after_distance, after_row,
        [&](std::size_t row) {
            return RowResult{stored_->value(query, static_cast<std::uint32_t>(row)), static_cast<std::uint32_t>(row)};
        },
        pool);
}

}  // namespace

std::unique_ptr<Searcher> make_graph_searcher(const IndexShape& shape, const ParameterList& options,
                                              std::span<const ArrayShape> arrays)
{
    return std::make_unique<GraphSearcher>(shape, options, arrays);
}

}  // namespace pgwarp
