// Searches of ivfadc with filters: by lists, or among certain rows.
#include <algorithm>
#include <cmath>

#include "methods/certain_rows.h"
#include "methods/ivfadc/filtered_scan.h"
#include "methods/ivfadc/searcher.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t scanned_for_passing = 4;  // rows that a filtered search scans, for each that passes
constexpr double scan_overhead = 12;            // of the time of an operation, where certain rows are compared

}  // namespace

// Costs of the lists that hold enough rows that pass.
double IvfadcSearcher::filtered_cost(const SearchBatch& batch, double pass_rate) const
{
    const double lists = static_cast<double>(lists_.lists());
    const double probes = std::min(static_cast<double>(probes_of(batch)) * (2 - pass_rate) / pass_rate, lists);
    return scan_overhead * cost_of(static_cast<std::size_t>(std::ceil(probes)));
}

// Scans lists, nearest first, until these hold as many rows that pass as the usual lists hold rows. False: comparing
// the rows that pass promises more.
bool IvfadcSearcher::scan_filtered(const SearchBatch& batch, std::size_t number, const PreparedQuery& query,
                                   TopK& best) const
{
    thread_local std::vector<float> scores;
    const RowFilter& filter = batch.filters[number];
    const std::size_t usual = probes_of(batch);
    const double rate = static_cast<double>(std::max<std::uint64_t>(filter.passing, 1)) / static_cast<double>(rows_);
    std::size_t asked =
        std::min(lists_.lists(), 1 + static_cast<std::size_t>(2 * static_cast<double>(usual) / std::min(rate, 1.0)));
    std::vector<Candidate> probes = std::move(nearest_lists(query.query, {&asked, 1}, caller_alone()).front());
    FilteredScan scan(filter, rows_);
    for (std::size_t i = 0;; ++i) {
        if (i == usual) scan.end_usual();
        if (i >= usual && scan.has_too_few()) return false;
        if (i >= usual && scan.has_enough()) return true;
        if (i >= usual && scan.scanned() > scanned_for_passing * filter.passing + scan.usual()) return false;
        if (i == probes.size()) {
            if (asked == lists_.lists()) return true;
            asked = lists_.lists();
            append_others(std::move(nearest_lists(query.query, {&asked, 1}, caller_alone()).front()), probes);
            if (i == probes.size()) return true;
        }
        const std::uint32_t list = probes[i].row;
        if (batch.cancel != nullptr && i % 64 == 63) batch.cancel->check();
        if (lists_.begin(list) == lists_.end(list)) continue;
        scores.resize(std::max(scores.size(), room_of(list)));
        const float limit = score_list(query, HUGE_VAL, probes[i], scores.data());
        offer_list(batch, number, list, scores.data(), limit, best);
        scan.count(lists_, list);
    }
}

std::vector<RowResult> IvfadcSearcher::search_filtered(const SearchBatch& batch, std::size_t number) const
{
    const PreparedQuery prepared = store_->prepare(batch.queries.data() + number * dimensions_);
    TopK best(candidates_of(batch));
    if (!scan_filtered(batch, number, prepared, best)) return {};
    return rank(prepared, best.take_sorted(), batch.k, caller_alone());
}

void IvfadcSearcher::search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                  std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (batch.k == 0) return;
    for_queries(batch, pool, [&](std::size_t q) {
        const PreparedQuery prepared = store_->prepare(batch.queries.data() + q * dimensions_);
        RowList list = rows[q];
        std::vector<std::uint32_t> proposed;
        const std::size_t valued = valued_certain_rows(batch.k);
        const bool has_vectors = form_of(options_) != VectorForm::none;
        if (has_vectors && list.size() > valued && after.distance == before_all.distance) {
            const auto score_some = [&](RowList some, float* out) {
                thread_local std::vector<std::uint32_t> positions;
                positions.clear();
                for (const std::uint32_t row : some) positions.push_back(lists_.position_of(row));
                store_->scores_of(prepared, positions, out);
            };
            proposed = rows_of(propose_certain_rows(batch, list, valued, score_some, pool));
            list = proposed;
        }
        const auto value_of = [&](std::uint32_t row) {
            const std::size_t position = lists_.position_of(row);
            return store_->value(prepared, values_by_list_ ? list_at(position) : 0, position);
        };
        results[q] = value_certain_rows(batch, list, after, value_of, pool);
    });
}

}  // namespace pgwarp
