// The base of the searchers that compare certain rows alone, where their rows have the form for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/searcher.h"
#include "methods/tested_rows.h"
#include "rows/certain_rows.h"
#include "rows/resident_attributes.h"
#include "rows/resident_scores.h"

namespace pgwarp::cuda::rows
{

class CertainRowsSearcher : public DeviceSearcher, public TestsAllRows
{
public:
    bool compares_certain_rows() const final;
    bool tests_all_rows(std::uint32_t k) const final { return k <= most_compared_k && compares_certain_rows(); }
    double shared_cost(std::size_t queries) const final;
    void search_passing(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                        ThreadPool& pool) const final;

protected:
    // As DeviceSearcher's.
    CertainRowsSearcher(Context& context, std::size_t dimensions, const char* name)
        : DeviceSearcher(context, dimensions, name), attributes_(context), scores_(context)
    {
    }

    // The rows in the form of CertainRows; none where they have another.
    virtual std::optional<CertainRows> certain_rows() const { return std::nullopt; }
    // Tombstones have the words of the bitmap, where the searcher has certain_rows().
    void search_lists(const SearchBatch& batch, std::span<const RowList> lists, const RowResult& after,
                      const Tombstones* dead, Results& results, ThreadPool& pool) const final;
    // Of a batch with filters.
    AttributeView attributes_of(const SearchBatch& batch) const
    {
        return attributes_.get(batch.filters[0], row_count());
    }
    // The rows as tiles score them, where the searcher has them for its own searches.
    virtual const ScoredRows* scored_rows() const { return nullptr; }
    // Of what is made when searches with filters first ask for it.
    std::uint64_t filter_bytes() const { return attributes_.bytes() + scores_.bytes(); }

private:
    const ScoredRows* scores_for(const SearchBatch& batch, const CertainRows& rows) const;
    void search_tested(const SearchBatch& batch, const Tombstones* dead, Results& results, ThreadPool& pool) const;
    Unfinished search_tiles(const SearchBatch& batch, const CertainRows& rows, const ScoredRows& scored,
                            std::uint32_t k, Results& results, ThreadPool& pool) const;
    void search_pieces(const SearchBatch& batch, const Round& round, const CertainRows& rows, std::uint32_t k,
                       Results& results, ThreadPool& pool) const;
    void search_one_by_one(const SearchBatch& batch, std::span<const RowList> lists, const RowCursor& after,
                           const CertainRows& rows, Results& results, ThreadPool& pool) const;

    mutable ResidentAttributes attributes_;
    mutable ResidentScores scores_;
};

}  // namespace pgwarp::cuda::rows
