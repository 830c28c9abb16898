#include "rows/resident_scores.h"

#include <new>
#include <utility>

#include "device/error.h"
#include "device/wait.h"
#include "distance/proposals.h"
#include "methods/device_wait.h"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr std::uint64_t workspaces = std::uint64_t{1} << 30;  // that searches shall find room for

ScoreKind kind_of(Metric metric)
{
    return metric == Metric::l2 ? ScoreKind::half_l2 : ScoreKind::half_dot;
}

bool has_kind(Metric metric)
{
    return metric == Metric::l2 || metric == Metric::inner_product || metric == Metric::cosine;
}

// Whether tiles read the halves that are compared where they lie.
bool serves_halves(Context& context, const ResidentRows& resident)
{
    if (resident.half.rows == nullptr || resident.stride != resident.dimensions ||
        resident.dimensions % dimension_multiple != 0)
        return false;
    return resident.positions % tile_rows == 0 || warp_groups_available(context, resident.dimensions);
}

}  // namespace

const ScoredRows* ResidentScores::get(const CertainRows& rows, std::uint32_t count)
{
    const ResidentRows& resident = rows.resident;
    if (!has_kind(resident.metric) || count == 0) return nullptr;
    if (resident.full == nullptr && !serves_halves(*context_, resident)) return nullptr;
    if (bytes() == 0 && !has_room(rows, count)) return nullptr;
    try {
        made_.run([&] {
            scored_ = make(rows, count);
            bytes_.store(scored_.bytes(), std::memory_order_relaxed);
        });
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    return &scored_;
}

bool ResidentScores::has_room(const CertainRows& rows, std::uint32_t count) const
{
    const std::size_t stride = round_up(rows.resident.dimensions, dimension_multiple);
    const std::size_t of_row = sizeof(float) + (rows.resident.full != nullptr ? stride * sizeof(__half) : 0);
    return context_->pool().room() >= std::size_t{round_up(count, tile_rows)} * of_row + workspaces;
}

ScoredRows ResidentScores::make(const CertainRows& rows, std::uint32_t count)
{
    const ResidentRows& resident = rows.resident;
    constexpr double operations = 10;  // on an element
    const DevicePatience patience(patience_for(operations * count * resident.dimensions, 0, 0));
    check(cudaSetDevice(context_->device()), "choosing the device");
    if (!owner_.has_value()) owner_.emplace(context_->lease(Priority::search));
    const ScoreKind kind = kind_of(resident.metric);
    ScoredRows made = resident.full != nullptr
                          ? make_scored_rows(context_->pool(), resident.metric, kind, resident.full, count,
                                             resident.dimensions, *owner_)
                          : make_scored_halves(context_->pool(), kind,
                                               {resident.half.rows, resident.half.mean, resident.half.scale, count,
                                                resident.positions, resident.dimensions},
                                               *owner_);
    // Searches read it in the order of streams of their own.
    wait_for(*owner_, "making scores");
    return made;
}

}  // namespace pgwarp::cuda::rows
