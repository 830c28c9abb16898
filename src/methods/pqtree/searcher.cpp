// The searcher of pqtree on the CPU.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "methods/arrays.h"
#include "methods/certain_rows.h"
#include "methods/ordered_scan.h"
#include "methods/pqtree/build_arrays.h"
#include "methods/pqtree/proposer.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t prefetched = 4;  // rows prefetched while one is ranked
constexpr double look_cost = 40;       // float operations, of testing whether a row of a bin is alive

// Proposes rows by line codes and ranks the best by their stored form.
class TreeSearcher : public Searcher
{
public:
    TreeSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays);

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (stored_->is_array(array)) return write_piece(stored_->bytes(), offset, bytes);
        if (array == array_tree_codes) return write_piece(std::span<std::uint8_t>(index_.codes), offset, bytes);
        // Arrays that the CPU does not use are ignored.
        index_.write_quantizer(array, offset, bytes);
    }
    void finish_load(ThreadPool& pool) override;
    std::uint64_t memory_bytes() const override
    {
        return stored_->memory_bytes() + position_of_.size() * sizeof(std::uint32_t) +
               (proposer_ != nullptr ? proposer_->memory_bytes() : 0);
    }
    ResultKind result_kind() const override { return stored_->result_kind(); }
    double bound_width(const float* query) const override { return stored_->bound_width(query); }
    double search_cost(const SearchBatch& batch) const override;
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        const SearchPlan plan = search_plan(index_.options, index_.rows, batch);
        ParameterList settings;
        settings.set("width", static_cast<std::int64_t>(plan.width));
        settings.set("candidates", static_cast<std::int64_t>(plan.candidates));
        return settings;
    }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override;
    // Bins are taken until they hold enough live rows, however few are alive.
    double filtered_cost(const SearchBatch& batch, double pass_rate) const override;
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override;

private:
    std::vector<RowResult> search_one(const SearchBatch& batch, const float* query, ThreadPool& pool) const;
    double value(const float* query, double query_norm, std::uint32_t row) const;
    double value_at(const float* query, std::size_t position) const;
    std::vector<RowResult> rank(const float* query, const std::vector<Candidate>& candidates, std::size_t k) const;

    Metric metric_;
    TreeArrays index_;
    std::optional<StoredVectors> stored_;
    std::unique_ptr<CpuTreeProposer> proposer_;
    std::vector<std::uint32_t> position_of_;  // of rows in the proposer's order, where no vectors are kept
};

std::size_t rows_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* codes = find_array(arrays, array_tree_codes);
    return codes != nullptr ? codes->rows : 0;
}

TreeSearcher::TreeSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
    : metric_(static_cast<Metric>(shape.metric))
{
    index_.dimensions = shape.dimensions;
    index_.rows = rows_of(arrays);
    index_.options = TreeOptions::resolve(options, index_.rows, shape.dimensions);
    if (index_.rows > 0) require_pqtree_arrays(arrays, index_.options, index_.rows, index_.dimensions);
    index_.make_quantizer_room();
    index_.codes.resize(index_.rows * index_.options.code_bytes());
    stored_.emplace(metric_, index_.dimensions, index_.rows, form_of(index_.options), index_.half);
}

void TreeSearcher::finish_load(ThreadPool& pool)
{
    if (index_.rows == 0) return;
    index_.check_quantizer();
    proposer_ = make_cpu_proposer(metric_, index_.options, index_.tree, index_.lines, index_.codes, pool);
    index_.codes = {};
    // Values come from the vectors where these are kept.
    if (index_.options.keeps_vectors()) return;
    position_of_.resize(index_.rows);
    for (std::uint32_t position = 0; position < index_.rows; ++position)
        position_of_[proposer_->row_at(position)] = position;
}

double TreeSearcher::search_cost(const SearchBatch& batch) const
{
    const SearchPlan plan = search_plan(index_.options, index_.rows, batch);
    const double descent = static_cast<double>(index_.options.k1 + plan.width * index_.options.k2);
    // The terms of lines, then a few operations for each line part of a candidate.
    const double lines = static_cast<double>(index_.options.line_parts) *
                         (8.0 * static_cast<double>(most_lines) + 4.0 * static_cast<double>(plan.candidates));
    const double vectors = descent + 2.0 * static_cast<double>(plan.ranked);
    return static_cast<double>(batch.count) * (2 * vectors * static_cast<double>(index_.dimensions) + lines);
}

// The value of a row: of its vector, or of the point that its line code stands for.
double TreeSearcher::value(const float* query, double query_norm, std::uint32_t row) const
{
    if (index_.options.keeps_vectors()) return stored_->value(query, query_norm, row);
    return value_at(query, position_of_[row]);
}

// The value of a row by its line code.
double TreeSearcher::value_at(const float* query, std::size_t position) const
{
    thread_local std::vector<std::uint8_t> code;
    thread_local std::vector<float> point;
    code.resize(index_.options.code_bytes());
    point.resize(index_.dimensions);
    proposer_->read_line_code(position, code.data());
    decode_lines(index_.tree, index_.lines, code.data(), point.data());
    // Points of lines are not of unit length; the squared distance of unit vectors is twice their cosine distance.
    if (metric_ == Metric::cosine) return canonical_l2_squared(query, point.data(), index_.dimensions) / 2;
    return canonical_distance(metric_, query, point.data(), index_.dimensions);
}

std::vector<RowResult> TreeSearcher::rank(const float* query, const std::vector<Candidate>& candidates,
                                          std::size_t k) const
{
    const double norm = canonical_norm(query, index_.dimensions);
    FirstRows first(k);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (i + prefetched < candidates.size()) stored_->prefetch(candidates[i + prefetched].row);
        first.offer({value(query, norm, candidates[i].row), candidates[i].row});
    }
    return first.take_sorted();
}

std::vector<RowResult> TreeSearcher::search_one(const SearchBatch& batch, const float* query, ThreadPool& pool) const
{
    SearchPlan plan = search_plan(index_.options, index_.rows, batch);
    const std::size_t k = std::min<std::size_t>(batch.k, index_.rows);
    const std::span<const float> one(query, index_.dimensions);
    // Dead rows, and a narrow descent, may leave fewer rows than wanted: then the descent is whole, and at last the
    // answer exact.
    for (bool whole = plan.width == index_.options.k1; !plan.complete; whole = true) {
        std::vector<std::vector<Candidate>> proposed;
        proposer_->propose(one, plan, batch.dead, proposed, caller_alone(), batch.cancel);
        if (batch.proposals_will_do) {
            std::vector<RowResult> rows;
            proposed[0].resize(std::min(proposed[0].size(), k));
            for (const Candidate& candidate : proposed[0]) rows.push_back({candidate.score, candidate.row});
            return rows;
        }
        if (proposed[0].size() >= (whole ? k : plan.ranked)) return rank(query, proposed[0], k);
        if (whole) break;
        plan.width = index_.options.k1;
    }
    SearchBatch alone = batch;
    alone.queries = one;
    std::vector<RowResult> all;
    search_exact(alone, -HUGE_VAL, 0, all, pool);
    return all;
}

void TreeSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                          ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (index_.rows == 0 || batch.k == 0) return;
    for_queries(batch, pool, [&](std::size_t q) {
        results[q] = search_one(batch, batch.queries.data() + q * index_.dimensions, pool);
    });
}

void TreeSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                std::vector<RowResult>& results, ThreadPool& pool) const
{
    const float* query = batch.queries.data();
    const double norm = canonical_norm(query, index_.dimensions);
    results = scan_in_order(
        index_.rows, batch, after_distance, after_row,
        [&](std::size_t position) {
            return index_.options.keeps_vectors() ? row_itself(position) : proposer_->row_at(position);
        },
        [&](std::size_t position) {
            return index_.options.keeps_vectors() ? stored_->value(query, norm, position) : value_at(query, position);
        },
        pool);
}

// The rows of more bins are looked at, but no more are ranked.
double TreeSearcher::filtered_cost(const SearchBatch& batch, double pass_rate) const
{
    const SearchPlan plan = search_plan(index_.options, index_.rows, batch);
    const double looked_at =
        std::min(static_cast<double>(plan.candidates) / pass_rate, static_cast<double>(index_.rows));
    return search_cost(batch) + looked_at * look_cost;
}

// Stored vectors propose by fast scores; line codes are decoded row by row.
void TreeSearcher::search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (batch.k == 0) return;
    for_queries(batch, pool, [&](std::size_t q) {
        const float* query = batch.queries.data() + q * index_.dimensions;
        const double norm = canonical_norm(query, index_.dimensions);
        RowList list = rows[q];
        std::vector<std::uint32_t> proposed;
        const std::size_t valued = valued_certain_rows(batch.k);
        if (index_.options.keeps_vectors() && list.size() > valued && after.distance == before_all.distance) {
            std::vector<float> prepared;
            stored_->prepare(query, prepared);
            const auto score_some = [&](RowList some, float* out) { stored_->scores(prepared.data(), some, out); };
            proposed = rows_of(propose_certain_rows(batch, list, valued, score_some, pool));
            list = proposed;
        }
        const auto value_of = [&](std::uint32_t row) { return value(query, norm, row); };
        results[q] = value_certain_rows(batch, list, after, value_of, pool);
    });
}

}  // namespace

std::unique_ptr<Searcher> make_pqtree_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays)
{
    return std::make_unique<TreeSearcher>(shape, options, arrays);
}

}  // namespace pgwarp
