// The base of the searchers over a mirror of resident rows: loading, sizes, continuations, and what values of full
// vectors and of halves promise.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "device/searcher.h"
#include "device/wait.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "rows/certain_rows_searcher.h"
#include "rows/forms.h"
#include "rows/ordered_rows.h"

namespace pgwarp::cuda::rows
{

// Mirror is made of (context, shape, options, arrays) and has write(), finish_load(), rows(), is_split(),
// device_bytes(), host_bytes() and remote_row_bytes(). Its namespace has continuation_bytes() and
// enqueue_continuation().
template <class Mirror>
class MirrorSearcher : public CertainRowsSearcher
{
public:
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) final
    {
        const DevicePatience patience(build_patience);
        mirror_.write(array, offset, bytes);
    }
    void finish_load(ThreadPool& pool) final
    {
        const DevicePatience patience(build_patience);
        finish_mirror(pool);
    }
    std::uint64_t memory_bytes() const final { return device_bytes() + mirror_.host_bytes(); }
    Residence residence() const final { return {context().device(), mirror_.is_split(), device_bytes()}; }

protected:
    // name: as for DeviceSearcher. more: further arguments of the mirror.
    template <class... More>
    MirrorSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                   Context& context, const char* name, More&&... more)
        : CertainRowsSearcher(context, shape.dimensions, name),
          mirror_(context, shape, options, arrays, std::forward<More>(more)...)
    {
    }
    virtual void finish_mirror(ThreadPool&) { mirror_.finish_load(); }
    // The bitmap of dead rows as kernels read it; null where none is dead.
    virtual const std::uint32_t* bits_of(const Tombstones* dead) const = 0;

    std::uint64_t device_bytes() const { return mirror_.device_bytes() + filter_bytes(); }
    std::size_t row_count() const final { return mirror_.rows(); }
    std::size_t remote_row_bytes() const final { return mirror_.remote_row_bytes(); }
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const final
    {
        const auto enqueue = [&](const ChunkPlan& plan, const Chunk& chunk) {
            enqueue_continuation(mirror_, plan, chunk, {after.distance, after.row}, bits_of(dead));
        };
        ChunkPlan plan;
        plan.ordered = one.k <= ordered_most;
        plan.workspace = continuation_bytes(mirror_);
        search_one(one, plan, enqueue, answer, pool);
    }

    Mirror mirror_;
};

// Those whose lists have positions beside the numbers of rows, and whose options say which vectors rank.
template <class Mirror>
class ListedSearcher : public MirrorSearcher<Mirror>
{
public:
    ResultKind result_kind() const final
    {
        const auto& mirror = this->mirror_;
        if (mirror.options().keeps_full()) return promise_of_vectors(mirror.metric() == Metric::cosine).kind;
        return mirror.options().keeps_half() ? ResultKind::lower_bound : ResultKind::approximate;
    }
    double bound_width(const float* query) const final
    {
        const auto& mirror = this->mirror_;
        if (mirror.options().keeps_full()) return pgwarp::bound_width(mirror.metric(), 0, 1);
        if (!mirror.options().keeps_half()) return 0;
        return pgwarp::bound_width(mirror.metric(), mirror.half_error(), canonical_norm(query, this->dimensions()));
    }

protected:
    using MirrorSearcher<Mirror>::MirrorSearcher;

    // The form: one bit for each position. The bits of rows are freed.
    Tombstones make_tombstones(RowBitmap bitmap, const Context::Lease& stream) const final
    {
        Tombstones dead = DeviceSearcher::make_tombstones(bitmap, stream);
        const auto& view = this->mirror_.view();
        dead.form = DeviceArray<std::byte>(this->context().pool(), view.positions / 8, "dead positions", stream);
        dead_positions(dead.words.data(), view.row_at, view.positions,
                       reinterpret_cast<std::uint32_t*>(dead.form.data()), stream);
        wait_for(stream, "placing dead rows");
        dead.words = {};
        return dead;
    }
    const std::uint32_t* bits_of(const Tombstones* dead) const final
    {
        return dead != nullptr ? dead->form_as<std::uint32_t>() : nullptr;
    }
};

}  // namespace pgwarp::cuda::rows
