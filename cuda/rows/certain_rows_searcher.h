// The base of the searchers that compare certain rows alone, where their rows have the form for it.
#pragma once

#include <optional>
#include <span>

#include "device/searcher.h"
#include "methods/tested_rows.h"
#include "rows/certain_rows.h"
#include "rows/resident_attributes.h"

namespace pgwarp::cuda::rows
{

class CertainRowsSearcher : public DeviceSearcher, public TestsAllRows
{
public:
    bool compares_certain_rows() const final;
    bool tests_all_rows(std::uint32_t k) const final { return k <= most_compared_k && compares_certain_rows(); }
    void search_passing(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                        ThreadPool& pool) const final;

protected:
    // As DeviceSearcher's.
    CertainRowsSearcher(Context& context, std::size_t dimensions, const char* name)
        : DeviceSearcher(context, dimensions, name), attributes_(context)
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
    std::uint64_t attribute_bytes() const { return attributes_.bytes(); }

private:
    void search_tested(const SearchBatch& batch, const Tombstones* dead, Results& results, ThreadPool& pool) const;
    void search_one_by_one(const SearchBatch& batch, std::span<const RowList> lists, const RowCursor& after,
                           const CertainRows& rows, Results& results, ThreadPool& pool) const;

    mutable ResidentAttributes attributes_;
};

}  // namespace pgwarp::cuda::rows
