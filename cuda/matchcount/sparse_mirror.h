// The sparse vectors of an index in device memory, in the form of sparse_form.h and as they are.
#pragma once

#include <cstdint>

#include "device/context.h"
#include "distance/half_rows.h"
#include "matchcount/sparse_form.h"
#include "matchcount/sparse_rank.h"
#include "matchcount/sparse_sums.h"

namespace pgwarp::cuda
{

class SparseMirror
{
public:
    // Waits. `index` and `stream` must outlive the mirror. Throws std::bad_alloc.
    SparseMirror(const pgwarp::matchcount::SparseIndex& index, const matchcount::SparseTuning& tuning,
                 MemoryPool& memory, const Context::Lease& stream, ThreadPool& pool);

    const matchcount::SparseForm& form() const { return form_; }
    // Whether the device serves any query.
    bool in_range() const { return form_.in_range(); }
    const ScoredRows& scored() const { return scored_; }
    matchcount::SparseListsView lists() const;
    matchcount::SparseRowsView rows() const;
    std::uint64_t device_bytes() const
    {
        return scored_.bytes() + starts_.bytes() + postings_.bytes() + offsets_.bytes() + elements_.bytes() +
               squares_.bytes();
    }
    // An estimate before the mirror is made.
    static std::uint64_t expected_bytes(std::uint64_t rows, std::uint64_t elements);

private:
    void allocate(MemoryPool& memory, const Context::Lease& stream, ThreadPool& pool);
    void send_columns(const Context::Lease& stream, ThreadPool& pool);
    void send_lists(const Context::Lease& stream, ThreadPool& pool);
    void send_rows(const pgwarp::matchcount::SparseIndex& index, const Context::Lease& stream, ThreadPool& pool);

    matchcount::SparseForm form_;
    ScoredRows scored_;
    DeviceArray<std::uint32_t> starts_;
    DeviceArray<uint4> postings_;
    DeviceArray<std::uint64_t> offsets_;
    DeviceArray<matchcount::SparseElement> elements_;
    DeviceArray<double> squares_;
};

}  // namespace pgwarp::cuda
