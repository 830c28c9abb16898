// Tombstones on the device, as the last search had them: they seldom change from one search to the next.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "device/error.h"
#include "exact/passes.h"
#include "index/index.h"

namespace pgwarp::cuda
{

// Null: no row is dead.
struct DeadRows {
    const std::uint64_t* bits = nullptr;  // device
    const float* penalties = nullptr;     // device: those of the rows, dead ones marked
};

// Thread-safe.
class DeadRowsCache
{
public:
    class Entry
    {
    public:
        Entry(RowBitmap dead, Context& context, const ExactRows& rows, const Context::Lease& stream)
            : given_(dead.begin(), dead.end()),
              bits_(context.pool(), dead.size(), "exact dead rows", stream),
              penalties_(context.pool(), rows.scored.padded_positions, "exact dead rows", stream)
        {
            check(cudaMemcpyAsync(bits_.data(), given_.data(), bits_.bytes(), cudaMemcpyHostToDevice, stream),
                  "sending dead rows");
            mark_dead(rows.scored, bits_.data(), penalties_.data(), stream);
            stream.stream().synchronize();
        }
        bool is(RowBitmap dead) const { return std::ranges::equal(given_, dead); }
        DeadRows view() const { return {bits_.data(), penalties_.data()}; }

    private:
        std::vector<std::uint64_t> given_;
        DeviceArray<std::uint64_t> bits_;
        DeviceArray<float> penalties_;
    };
    using Use = std::shared_ptr<const Entry>;  // to be kept while kernels read it

    // stream: outlives the cache; what is old is freed in its order. Null where `dead` is empty.
    Use of(RowBitmap dead, Context& context, const ExactRows& rows, const Context::Lease& stream)
    {
        if (dead.empty()) return nullptr;
        const Use last = current();
        if (last != nullptr && last->is(dead)) return last;
        const std::lock_guard making(making_);
        const Use made_meanwhile = current();
        if (made_meanwhile != nullptr && made_meanwhile->is(dead)) return made_meanwhile;
        const Use made = std::make_shared<Entry>(dead, context, rows, stream);
        const std::lock_guard lock(mutex_);
        entry_ = made;
        return made;
    }
    static DeadRows view(const Use& use) { return use != nullptr ? use->view() : DeadRows{}; }

private:
    Use current()
    {
        const std::lock_guard lock(mutex_);
        return entry_;
    }

    std::mutex making_;
    std::mutex mutex_;
    Use entry_;
};

}  // namespace pgwarp::cuda
