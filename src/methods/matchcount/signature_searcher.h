// The search of an index whose rows have signatures: a scan of all signatures finds the rows that agree with a query on
// most hash functions, and their distances rank them. Rows, functions and distances are those of a derived class.
//
// Effort is the number of candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/matchcount/match_count.h"
#include "methods/method.h"

namespace pgwarp::matchcount
{

class CountGate;

class SignatureSearcher : public Searcher
{
public:
    ParameterList resolved_settings(const SearchBatch& batch) const override;
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                      ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override;
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override;

protected:
    // rank_grain: candidates that a thread ranks at a time.
    SignatureSearcher(std::size_t rows, std::size_t functions, std::size_t signature_bytes, std::size_t rank_grain);

    std::size_t rows() const { return rows_; }
    std::size_t signature_bytes() const { return signature_bytes_; }
    // Checks the shape of the array of signatures, and makes room for them. Throws BadRequest.
    void expect_signatures(std::span<const ArrayShape> arrays);
    // Takes a piece of that array.
    void write_signatures(std::uint64_t offset, std::span<const std::byte> bytes);
    std::uint64_t signature_memory() const { return signatures_.size(); }
    std::size_t candidates_of(const SearchBatch& batch) const;

    // Signs the queries of a batch into out[batch.count][signature_bytes()].
    virtual void sign_queries(const SearchBatch& batch, std::uint8_t* out, ThreadPool& pool) const = 0;
    // out[i] = number of functions on which row i and the query agree; rows [count][signature_bytes()].
    virtual void count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                               std::uint16_t* out) const = 0;
    // Returns the value to be emitted for a row, as search() ranks it.
    virtual double value(const SearchBatch& batch, std::size_t query, std::size_t row) const = 0;
    // Returns the estimate of the similarity of a row and a query that agree on `count` functions.
    virtual double similarity(std::uint32_t count) const = 0;

private:
    using Found = std::vector<CountedRow>;  // largest count first, ties by row

    std::size_t block_rows() const;
    void compare(const SearchBatch& batch, const std::uint8_t* signature, std::size_t begin, std::size_t end,
                 CountGate& gate) const;
    Found find_by_pieces(const SearchBatch& batch, const std::uint8_t* signature, std::size_t wanted,
                         ThreadPool& pool) const;
    std::vector<Found> find_candidates(const SearchBatch& batch, std::size_t wanted, ThreadPool& pool) const;
    Found all_rows(const SearchBatch& batch) const;
    void rank(std::span<const SearchBatch> rungs, std::size_t query, std::span<const CountedRow> candidates,
              ThreadPool& pool, RungResults& results) const;
    void estimate(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const;

    std::size_t rows_;
    std::size_t functions_;
    std::size_t signature_bytes_;
    std::size_t rank_grain_;
    BulkVector<std::uint8_t> signatures_;  // [rows][signature_bytes]
};

}  // namespace pgwarp::matchcount
