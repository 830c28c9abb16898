// The base of the searchers that compare certain rows alone, where their rows have the form for it.
#pragma once

#include <optional>
#include <span>

#include "device/searcher.h"
#include "rows/certain_rows.h"

namespace pgwarp::cuda::rows
{

class CertainRowsSearcher : public DeviceSearcher
{
public:
    bool compares_certain_rows() const final;

protected:
    using DeviceSearcher::DeviceSearcher;

    // The rows in the form of CertainRows; none where they have another.
    virtual std::optional<ResidentRows> certain_rows() const { return std::nullopt; }
    // Tombstones have the words of the bitmap, where the searcher has certain_rows().
    void search_lists(const SearchBatch& batch, std::span<const RowList> lists, const RowResult& after,
                      const Tombstones* dead, Results& results, ThreadPool& pool) const final;

private:
    void search_one_by_one(const SearchBatch& batch, std::span<const RowList> lists, const RowCursor& after,
                           const CertainRows& rows, Results& results, ThreadPool& pool) const;
};

}  // namespace pgwarp::cuda::rows
