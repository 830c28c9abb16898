// Candidates by match count and their ranks.
#include "methods/matchcount/signature_searcher.h"

#include <algorithm>
#include <mutex>

#include "methods/arrays.h"
#include "methods/certain_rows.h"
#include "methods/matchcount/count_gate.h"
#include "methods/matchcount/matchcount.h"
#include "methods/ordered_scan.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t piece_rows = 16384;
constexpr std::size_t block_bytes = std::size_t{1} << 15;  // of signatures, which stay in the cache for the next query
constexpr std::size_t most_block_rows = 1024;
constexpr std::size_t together = 16;  // queries that a block is compared with

}  // namespace

SignatureSearcher::SignatureSearcher(std::size_t rows, std::size_t functions, std::size_t signature_bytes,
                                     std::size_t rank_grain)
    : rows_(rows), functions_(functions), signature_bytes_(signature_bytes), rank_grain_(rank_grain)
{
}

void SignatureSearcher::expect_signatures(std::span<const ArrayShape> arrays)
{
    require_array(arrays, array_signatures, ArrayType::u8, rows_, signature_bytes_);
    signatures_.resize(rows_ * signature_bytes_);
}

void SignatureSearcher::write_signatures(std::uint64_t offset, std::span<const std::byte> bytes)
{
    write_piece(std::span<std::uint8_t>(signatures_), offset, bytes);
}

std::size_t SignatureSearcher::candidates_of(const SearchBatch& batch) const
{
    return matchcount::candidates_of(batch, rows_);
}

ParameterList SignatureSearcher::resolved_settings(const SearchBatch& batch) const
{
    ParameterList settings;
    settings.set(parameter_candidates, static_cast<std::int64_t>(candidates_of(batch)));
    return settings;
}

std::size_t SignatureSearcher::block_rows() const
{
    return std::clamp<std::size_t>(block_bytes / signature_bytes_, 1, most_block_rows);
}

// Offers the live rows of a block to the gate.
void SignatureSearcher::compare(const SearchBatch& batch, const std::uint8_t* signature, std::size_t begin,
                                std::size_t end, CountGate& gate) const
{
    std::uint16_t counts[most_block_rows];
    count_matches(signature, signatures_.data() + begin * signature_bytes_, end - begin, counts);
    for (std::size_t row = begin; row < end; ++row) {
        if (counts[row - begin] >= gate.threshold() && !bit_is_set(batch.dead, row))
            gate.pass(static_cast<std::uint32_t>(row), counts[row - begin]);
    }
}

// The threads share the rows.
SignatureSearcher::Found SignatureSearcher::find_by_pieces(const SearchBatch& batch, const std::uint8_t* signature,
                                                           std::size_t wanted, ThreadPool& pool) const
{
    Found found;
    std::mutex mutex;
    const std::size_t share = (rows_ + pool.threads() - 1) / pool.threads();
    pool.parallel_for(rows_, std::max(piece_rows, share), [&](std::size_t begin, std::size_t end) {
        CountGate gate(wanted, functions_);
        for (std::size_t at = begin; at < end; at += block_rows()) {
            batch.check_cancel();
            compare(batch, signature, at, std::min(end, at + block_rows()), gate);
        }
        const Found some = gate.take();
        const std::lock_guard lock(mutex);
        found.insert(found.end(), some.begin(), some.end());
    });
    return rows_of_largest_count(std::move(found), wanted);
}

// Returns the live rows without their counts.
SignatureSearcher::Found SignatureSearcher::all_rows(const SearchBatch& batch) const
{
    Found rows;
    for (const std::uint32_t row : rows_outside(batch.dead, rows_)) rows.push_back({row, 0});
    return rows;
}

// Returns for each query the live rows of largest match count.
std::vector<SignatureSearcher::Found> SignatureSearcher::find_candidates(const SearchBatch& batch, std::size_t wanted,
                                                                         ThreadPool& pool) const
{
    std::vector<Found> found(batch.count);
    const std::size_t bytes = signature_bytes_;
    std::vector<std::uint8_t> signatures(batch.count * bytes);
    sign_queries(batch, signatures.data(), pool);
    if (batch.count < pool.threads()) {
        for (std::size_t q = 0; q < batch.count; ++q)
            found[q] = find_by_pieces(batch, signatures.data() + q * bytes, wanted, pool);
        return found;
    }
    const std::size_t grain = std::clamp<std::size_t>(batch.count / pool.threads(), 1, together);
    pool.parallel_for(batch.count, grain, [&](std::size_t first, std::size_t last) {
        std::vector<CountGate> gates(last - first, CountGate(wanted, functions_));
        for (std::size_t at = 0; at < rows_; at += block_rows()) {
            batch.check_cancel();
            const std::size_t end = std::min(rows_, at + block_rows());
            for (std::size_t q = first; q < last; ++q)
                compare(batch, signatures.data() + q * bytes, at, end, gates[q - first]);
        }
        for (std::size_t q = first; q < last; ++q) found[q] = rows_of_largest_count(gates[q - first].take(), wanted);
    });
    return found;
}

// Ranks the candidates of a query: of each rung the first ones, as many as it looks at.
void SignatureSearcher::rank(std::span<const SearchBatch> rungs, std::size_t query,
                             std::span<const CountedRow> candidates, ThreadPool& pool, RungResults& results) const
{
    std::vector<double> values(candidates.size());
    pool.parallel_for(candidates.size(), rank_grain_, [&](std::size_t begin, std::size_t end) {
        rungs[0].check_cancel();
        for (std::size_t i = begin; i < end; ++i) values[i] = value(rungs[0], query, candidates[i].row);
    });
    for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
        FirstRows first(rungs[rung].k);
        const std::size_t compared = std::min(candidates_of(rungs[rung]), candidates.size());
        for (std::size_t i = 0; i < compared; ++i) first.offer({values[i], candidates[i].row});
        results[rung][query] = first.take_sorted();
    }
}

// Returns the rows of largest match count, with estimates of their similarities (protocol/similarity.h).
void SignatureSearcher::estimate(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                                 ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0 || batch.count == 0) return;
    const auto candidates = find_candidates(batch, std::min<std::size_t>(batch.k, rows_), pool);
    for (std::size_t q = 0; q < batch.count; ++q) {
        for (const CountedRow& row : candidates[q]) {
            const double estimated = similarity(row.count);
            if (estimated > 0) results[q].push_back({-estimated, row.row});
        }
    }
}

void SignatureSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                               ThreadPool& pool) const
{
    if (batch.settings.get(setting_estimate, 0) != 0) return estimate(batch, results, pool);
    RungResults of_rungs;
    const SearchRung alone{batch.effort, batch.k, 0};
    search_rungs(batch, {&alone, 1}, of_rungs, pool);
    results = std::move(of_rungs[0]);
}

void SignatureSearcher::search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                                     ThreadPool& pool) const
{
    results.assign(rungs.size(), std::vector<std::vector<RowResult>>(batch.count));
    if (rows_ == 0 || batch.count == 0) return;
    const std::vector<SearchBatch> batches = batches_of(batch, rungs);
    std::size_t least = rows_;
    std::size_t most = 0;
    for (const SearchBatch& rung : batches) {
        least = std::min(least, candidates_of(rung));
        most = std::max(most, candidates_of(rung));
    }
    const auto candidates =
        least == rows_ ? std::vector(batch.count, all_rows(batch)) : find_candidates(batch, most, pool);
    const auto rank_one = [&](std::size_t q, ThreadPool& threads) {
        rank(batches, q, candidates[q], threads, results);
    };
    if (batch.count < pool.threads()) {
        for (std::size_t q = 0; q < batch.count; ++q) rank_one(q, pool);
        return;
    }
    for_queries(batch, pool, [&](std::size_t q) { rank_one(q, caller_alone()); });
}

void SignatureSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                     std::vector<RowResult>& results, ThreadPool& pool) const
{
    results = scan_in_order(
        rows_, batch, after_distance, after_row, row_itself, [&](std::size_t row) { return value(batch, 0, row); },
        pool);
}

void SignatureSearcher::search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                     std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    for_queries(batch, pool, [&](std::size_t q) {
        const auto value_of = [&](std::uint32_t row) { return value(batch, q, row); };
        results[q] = value_certain_rows(batch, rows[q], after, value_of, pool);
    });
}

// An index too small to be calibrated is searched whole.
std::size_t candidates_of(const SearchBatch& batch, std::size_t rows)
{
    std::int64_t candidates = batch.settings.get(parameter_candidates, 0);
    if (candidates <= 0) candidates = batch.effort;
    if (candidates <= 0) return rows;
    return std::min<std::size_t>(rows, std::max<std::size_t>(static_cast<std::size_t>(candidates), batch.k));
}

}  // namespace pgwarp::matchcount
